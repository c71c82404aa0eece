// SPDX-License-Identifier: GPL-2.0-or-later
//! Packages that somebody prepared, through `onset kernels add-deb`. (Unit tests: crates/rig/src/kernel/package.rs.)

use crate::hostile::ends;
use crate::table;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testbench::Lab;

/// An entry of a tar archive as somebody may write it.
#[derive(Clone)]
struct Entry {
    kind: u8,
    path: Vec<u8>,
    target: Vec<u8>,
    content: Vec<u8>,
    /// What it says that it holds; the length of its content by default.
    claims: Option<u64>,
}

fn entry(kind: u8, path: &str, target: &str, content: &[u8]) -> Entry {
    let (path, target) = (path.into(), target.into());
    Entry { kind, path, target, content: content.into(), claims: None }
}

fn file(path: &str, content: &[u8]) -> Entry {
    entry(b'0', path, "", content)
}

fn link(path: &str, target: &str) -> Entry {
    entry(b'2', path, target, b"")
}

impl Entry {
    /// The header, with a right sum, and the content in blocks.
    fn bytes(&self) -> Vec<u8> {
        let mut header = [0; 512];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, &self.path[..self.path.len().min(100)]);
        put(100, b"0004755\x000000000\x000000000\0");
        let size = self.claims.unwrap_or(self.content.len() as u64);
        // Eleven octal digits, or from 8 GiB on eight bytes (GNU tar).
        match size >> 33 {
            0 => put(124, format!("{size:011o}\0").as_bytes()),
            _ => {
                put(124, &[0x80, 0, 0, 0]);
                put(128, &size.to_be_bytes());
            }
        }
        put(136, b"00000000000\0        ");
        put(156, &[self.kind]);
        put(157, &self.target[..self.target.len().min(100)]);
        put(257, b"ustar  \0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut bytes = header.to_vec();
        bytes.extend(&self.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(Entry::bytes).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// An archive of ar(1) with these members.
fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let length = content.len();
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, 0, 100_644).bytes(),
        );
        bytes.extend(*content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

const CONTROL: &str =
    "Package: x\nVersion: 1\nArchitecture: amd64\nMaintainer: x\nDescription: x\n";

fn control(text: &str) -> Vec<u8> {
    tar(&[file("./control", text.as_bytes())])
}

fn deb_of(data: &[u8]) -> Vec<u8> {
    ar(&[("debian-binary", b"2.0\n"), ("control.tar", &control(CONTROL)), ("data.tar", data)])
}

/// Compresses `before`, so many zeros, and `after`.
fn compressed(before: &[u8], zeros: u64, after: &[u8]) -> Vec<u8> {
    let mut command = Command::new("zstd");
    command.args(["-1", "-q", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut zstd = command.spawn().expect("zstd");
    let mut stdin = zstd.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            stdin.write_all(before)?;
            let block = vec![0; 1 << 20];
            for _ in 0..zeros >> 20 {
                stdin.write_all(&block)?;
            }
            stdin.write_all(after)
        });
        zstd.wait_with_output().expect("it ends").stdout
    })
}

/// A package in which an entry of this kind has so many MiB of zeros.
fn bomb(kind: u8, path: &str, mib: u64) -> Vec<u8> {
    let claims = Some(mib << 20);
    let header = Entry { claims, ..entry(kind, path, "", b"") }.bytes();
    let data = compressed(&header, mib << 20, &tar(&kernel("9.6")));
    ar(&[("debian-binary", b"2.0\n"), ("control.tar", &control(CONTROL)), ("data.tar.zst", &data)])
}

/// The smallest image that is one.
fn image() -> Vec<u8> {
    let mut image = vec![0; 5 * 512];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image
}

/// A sound kernel: an image, a module, and headers.
fn kernel(release: &str) -> Vec<Entry> {
    vec![
        file(&format!("./boot/vmlinuz-{release}"), &image()),
        file(&format!("./lib/modules/{release}/kernel/a.ko"), b"module"),
        file(&format!("./usr/src/linux-headers-{release}/Makefile"), b"include /usr/src/x\n"),
    ]
}

/// The files of a sound kernel with these instead of those that have the same path.
fn with(others: &[Entry]) -> Vec<u8> {
    let mut entries = others.to_vec();
    entries.extend(kernel("9.6").into_iter().filter(|e| others.iter().all(|o| o.path != e.path)));
    deb_of(&tar(&entries))
}

/// The path by which an entry is preceded that is too long for a header (GNU tar).
fn long(path: &str) -> Entry {
    entry(b'L', "././@LongLink", "", format!("{path}\0").as_bytes())
}

const IMAGE: &str = "./boot/vmlinuz-9.6";
const MODULE: &str = "./lib/modules/9.6/kernel/a.ko";
const HEADERS: &str = "./usr/src/linux-headers-9.6";

/// Links, paths and kinds of files that lead out.
fn leading_out(outside: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let place = outside.to_str().expect("the lab's path is text");
    let victim = format!("{place}/victim");
    let up = format!("{}{victim}", "../".repeat(40));
    let makefile = format!("{HEADERS}/Makefile");
    vec![
        (
            "an absolute link and a file through it",
            with(&[link("./lib", place), file("./lib/victim", b"bad")]),
        ),
        (
            "a relative link and a file through it",
            with(&[link("./lib", &up), file("./lib/x", b"bad")]),
        ),
        (
            "links through links",
            with(&[link("./d/top", ".."), link("./e", "d/top/../.."), file("./e/x", b"bad")]),
        ),
        ("a path with ..", with(&[file(&format!("./{}{victim}", "../".repeat(9)), b"bad")])),
        ("an absolute path", with(&[file(&victim, b"bad")])),
        ("a second name of a file outside", with(&[entry(b'1', IMAGE, &victim, b"")])),
        ("a second name by ..", with(&[entry(b'1', IMAGE, &up, b"")])),
        ("an image that is a link", with(&[link(IMAGE, &victim)])),
        (
            "an image that is a link inside",
            with(&[link(IMAGE, "../unpacked"), file("./unpacked", b"HdrS")]),
        ),
        (
            // Inside where it is unpacked, and `cache/onset/bzImage` from where images go.
            "an image that is a link which means another elsewhere",
            with(&[
                link(IMAGE, "../unpacked/x/../../../../bzImage"),
                link("./unpacked/x", "../deep/a/b/c"),
                file("./deep/a/b/c/y", b"x"),
                file("./x/y", b"x"),
                file("./bzImage", &image()),
            ]),
        ),
        (
            "modules that are a link",
            with(&[link("./lib/modules/9.6", place), file(MODULE, b"bad")]),
        ),
        (
            "modules that are a link inside",
            with(&[
                link("./lib/modules/9.6", "../../m"),
                file("./m/kernel/a.ko", b"bad"),
                file(MODULE, b"x"),
            ]),
        ),
        (
            "an index that is a link",
            with(&[
                link("./lib/modules/9.6/modules.dep", &victim),
                link("./lib/modules/9.6/modules.order", &up),
            ]),
        ),
        ("a Makefile that is a link", with(&[link(&makefile, &victim)])),
        ("a Makefile that is a link to a device", with(&[link(&makefile, "/dev/zero")])),
        ("a Makefile that is a pipe", with(&[entry(b'6', &makefile, "", b"")])),
        ("headers that are a link", with(&[link(HEADERS, place), file(&makefile, b"bad")])),
        ("a configuration that is a link", with(&[link("./boot/config-9.6", &victim)])),
        ("a disk as image", with(&[entry(b'4', IMAGE, "", b"")])),
        ("a terminal as image", with(&[entry(b'3', IMAGE, "", b"")])),
        ("a pipe as image", with(&[entry(b'6', IMAGE, "", b"")])),
        ("a file where a directory is needed", with(&[file("./lib", b"bad")])),
    ]
}

/// Sizes, names and archives that are none.
fn untrue() -> Vec<(&'static str, Vec<u8>)> {
    let claim = |path: &str, claims: u64| Entry { claims: Some(claims), ..file(path, b"x") };
    let whole = with(&[]);
    let mut wrong_sum = tar(&kernel("9.6"));
    wrong_sum[148] ^= 1;
    wrong_sum.extend(vec![0; 8 << 20]);
    let deep = |levels: usize| [long(&"d/".repeat(levels)), entry(b'5', "./d", "", b"")];
    let raw = |path: &[u8]| Entry { path: path.into(), ..file("", b"x") };
    let control_of = |text: &str| {
        ar(&[
            ("debian-binary", b"2.0\n"),
            ("control.tar", &control(text)),
            ("data.tar", &tar(&kernel("9.6"))),
        ])
    };
    vec![
        ("a file of 1 TiB", with(&[claim("./x", 1 << 40)])),
        ("a file of 16 EiB", with(&[claim("./x", u64::MAX)])),
        ("a name of 1 TiB", with(&[Entry { claims: Some(1 << 40), ..long("x") }])),
        ("zeros, compressed", bomb(b'0', "./zeros", 700)),
        ("a name of zeros, compressed", bomb(b'L', "././@LongLink", 700)),
        ("the target of a link, compressed", bomb(b'K', "././@LongLink", 700)),
        ("further headers, compressed", bomb(b'x', "./x", 700)),
        ("a header with a wrong sum, and much behind it", deb_of(&wrong_sum)),
        ("directories, 1,000 deep", with(&deep(1_000))),
        ("directories, 100,000 deep", with(&deep(100_000))),
        ("a release that is a command", deb_of(&tar(&kernel("9.6 x;id")))),
        ("a release that is an option", deb_of(&tar(&kernel("-b")))),
        ("a release that leads out", deb_of(&tar(&kernel("..")))),
        (
            "names with escapes",
            with(&[file("./boot/vmlinuz-\u{1b}[2J", b"x"), file("./\u{1b}]0;x\u{7}", b"x")]),
        ),
        ("a release with escapes", deb_of(&tar(&kernel("9\u{1b}[2J")))),
        (
            "names that are no text",
            with(&[raw(b"./boot/\xff\xfe"), raw(b"./lib/modules/\xff/kernel/a.ko")]),
        ),
        ("an image that is no text by name", with(&[raw(b"./boot/vmlinuz-\xff")])),
        ("no name at all", with(&[raw(b""), raw(b"/"), raw(b"./"), raw(b".")])),
        ("an image of text", with(&[file(IMAGE, b"text")])),
        ("half an archive", whole[..whole.len() / 2].to_vec()),
        ("the beginning of an archive", whole[..70].to_vec()),
        ("nothing", Vec::new()),
        ("text", b"my notes\n".to_vec()),
        ("no control", ar(&[("debian-binary", b"2.0\n"), ("data.tar", &tar(&kernel("9.6")))])),
        ("an architecture with escapes", control_of(&CONTROL.replace("amd64", "\u{1b}[2J"))),
        ("a description without end", control_of(&format!("{CONTROL} {}\n", "x".repeat(32 << 20)))),
        (
            "a control archive that leads out",
            ar(&[
                ("debian-binary", b"2.0\n"),
                (
                    "control.tar",
                    &tar(&[file("../../victim", b"bad"), link("./control", "/dev/zero")]),
                ),
                ("data.tar", &tar(&kernel("9.6"))),
            ]),
        ),
    ]
}

/// What a package left behind that it should not have.
fn left(lab: &Lab, outside: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    if fs::read_to_string(outside.join("victim")).ok().as_deref() != Some("precious\n")
        || Lab::names(outside).len() != 1
        || Lab::names(lab.path()) != ["cache", "outside", "x.deb"]
    {
        wrong.push("something outside was written".into());
    }
    let kernels = lab.cache().join("kernels");
    let drafts = Lab::names(&kernels).into_iter().filter(|name| name.starts_with('.'));
    wrong.extend(drafts.map(|name| format!("{name} is left")));
    for name in Lab::names(&kernels) {
        let own = kernels.join(name);
        if !fs::symlink_metadata(own.join("vmlinuz")).is_ok_and(|image| image.is_file()) {
            wrong.push("a kernel has no image of its own".into());
        }
        let mut links = Command::new("find");
        links.arg(&own).args(["-type", "l", "-print0"]);
        let found = links.output().expect("findutils").stdout;
        for link in found.split(|byte| *byte == 0).filter(|link| !link.is_empty()) {
            let link =
                Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(link));
            if link.canonicalize().is_ok_and(|end| !end.starts_with(&own)) {
                wrong.push(format!("{} leads out", link.display()));
            }
        }
    }
    wrong
}

#[test]
fn a_hostile_package_leads_nowhere() {
    let lab = Lab::bare();
    let outside = lab.path().join("outside");
    fs::create_dir(&outside).expect("writable");
    let deb = lab.path().join("x.deb");
    fs::write(lab.cache().join("bzImage"), image()).expect("writable");
    let words = ["kernels", "add-deb", deb.to_str().expect("the lab's path is text")];
    // What is refused below is refused for what is hostile in it.
    fs::write(&deb, with(&[])).expect("writable");
    lab.onset(&words).exits(0);
    let packages = [leading_out(&outside), untrue()].concat();
    let mut unclean = Vec::new();
    for (what, bytes) in &packages {
        // By a program, which does not mind how deep it goes.
        let _ = Command::new("rm").arg("-rf").arg(lab.cache().join("kernels")).status();
        fs::write(outside.join("victim"), "precious\n").expect("writable");
        fs::write(&deb, bytes).expect("writable");
        let mut wrong: Vec<String> = [&words[..], &["kernels", "list"]]
            .into_iter()
            .filter_map(|words| ends(&lab, words))
            .collect();
        wrong.extend(left(&lab, &outside));
        unclean.extend(wrong.into_iter().map(|wrong| format!("{what}: {wrong}")));
    }
    table("hostile packages", packages.len() as u64, &unclean);
}
