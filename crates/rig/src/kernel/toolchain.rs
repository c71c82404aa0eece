// SPDX-License-Identifier: GPL-2.0-or-later
//! The compiler that builds modules for a kernel: the machine's own, or the compiler of the kernel's Debian release in
//! a build root. A build root is a directory of unpacked packages in which make runs as an ordinary user.
//!
//! A kernel's headers have programs and options of the release that built it. A machine whose compiler or C library is
//! older than that release's cannot use them. A machine with newer ones can.

use super::archive::{Announce, Archive};
use super::{Kernel, Kernels};
use crate::cache::{self, DRAFT, Owned};
use crate::error::At;
use crate::intact::make_durable;
use crate::{Error, Result, tool};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);

/// Debian's releases by the numbers that the names of kernels have: `+deb13`.
const RELEASES: [(u32, &str); 3] = [(12, "bookworm"), (13, "trixie"), (14, "forky")];

/// The programs that kbuild calls besides the compiler. Below, the libraries of kbuild's own programs (objtool,
/// modpost). Of the names of a library the first one that a release has counts. Debian 13 renamed the libraries whose
/// interface has times in it.
const TOOLS: [&str; 8] =
    ["make", "dash", "coreutils", "sed", "grep", "mawk", "findutils", "diffutils"];
const LIBRARIES: [&str; 3] = ["libelf1t64|libelf1", "libssl3t64|libssl3", "zlib1g"];

/// The place of the kernel's headers in a build root, and below the place of the module's sources.
pub(super) const HEADERS: &str = "/headers";
pub(super) const MODULE: &str = "/module";

/// The system in which make runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// The machine itself.
    Machine,
    /// A build root, with the name of its compiler.
    Root { directory: PathBuf, compiler: String },
}

/// The compiler that built a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    /// The GNU compiler of this major version.
    Gcc(u32),
    Clang,
}

impl Compiler {
    /// The compiler by a kernel's configuration (`CONFIG_GCC_VERSION` is 140200 for 14.2.0). `None` if it does not say.
    fn of(configuration: &str) -> Option<Compiler> {
        if configuration.lines().any(|l| l == "CONFIG_CC_IS_CLANG=y") {
            return Some(Compiler::Clang);
        }
        let version = configuration.lines().find_map(|l| l.strip_prefix("CONFIG_GCC_VERSION="));
        version?.parse::<u32>().ok().filter(|v| *v > 0).map(|v| Compiler::Gcc(v / 10_000))
    }
}

impl Kernel {
    /// The toolchain that builds modules for this kernel. If a build root is needed and missing, it is made.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the machine cannot build them and no release of Debian has a fitting build root. Also the
    /// errors of making a build root.
    pub(super) fn toolchain(&self, headers: &Path) -> Result<Toolchain> {
        let compiler = self.configuration().as_deref().and_then(Compiler::of);
        let needed = match compiler {
            // Nothing says that the machine's compiler does not fit.
            None => return Ok(Toolchain::Machine),
            Some(Compiler::Clang) => {
                return Err(self.error(
                    "clang built this kernel, and onset builds its driver with gcc: give a kernel that gcc built",
                ));
            }
            Some(Compiler::Gcc(major)) => major,
        };
        let cache = self.headers_in_cache(headers);
        let Err(why) = machine_fits(needed, headers, cache.as_deref()) else {
            return Ok(Toolchain::Machine);
        };
        let Some(codename) = debian_release(&self.record.release) else {
            return Err(self.error(format!(
                "{why}, and onset makes build roots only for kernels of Debian: install gcc {needed} or newer"
            )));
        };
        let kernels = Kernels { directory: self.kernels().into(), announce: self.announce };
        let directory =
            kernels.build_root(codename, needed, &format!("{}: {why}", self.record.name))?;
        Ok(Toolchain::Root { directory, compiler: format!("gcc-{needed}") })
    }
}

/// Whether the machine's compiler is as new as a kernel's, and the programs of the kernel's headers run here. The error
/// says why not.
fn machine_fits(
    needed: u32,
    headers: &Path,
    cache: Option<&Path>,
) -> std::result::Result<(), String> {
    let version = tool::run(Command::new("gcc").arg("-dumpversion"), "gcc", DEADLINE);
    let major = version.ok().and_then(|v| v.trim().split('.').next()?.parse::<u32>().ok());
    match major {
        None => return Err(format!("gcc {needed} built this kernel, and this machine has no gcc")),
        Some(major) if major < needed => {
            return Err(format!(
                "gcc {needed} built this kernel, and this machine has gcc {major}"
            ));
        }
        Some(_) => {}
    }
    // If the headers have no such programs, make says so.
    let modpost = headers.join("scripts/mod/modpost");
    if !modpost.is_file() {
        return Ok(());
    }
    let Ok(workshop) = cache::owned(&std::env::temp_dir(), "onset-driver-") else { return Ok(()) };
    let mut modpost = on_machine(&modpost.to_string_lossy(), cache, workshop.path());
    let run = tool::run(modpost.arg("/dev/null"), "make", DEADLINE);
    match run {
        Err(Error::Program { why, .. })
            if why.contains("version `GLIBC") || why.contains("shared librar") =>
        {
            Err("the programs in the kernel's headers need a newer C library than this machine has"
                .into())
        }
        _ => Ok(()),
    }
}

/// The number of the Debian release for which a kernel was built.
pub(super) fn debian_number(release: &str) -> Option<u32> {
    let number = release.split_once("+deb")?.1;
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok()
}

/// The number of the Debian that this machine runs (os-release(5)).
pub(super) fn debian_of_machine() -> Option<u32> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_string())
    };
    field("ID").filter(|id| id == "debian").and_then(|_| field("VERSION_ID")?.parse().ok())
}

/// The codename of that release.
fn debian_release(release: &str) -> Option<&'static str> {
    let number = debian_number(release)?;
    RELEASES.iter().find(|(n, _)| *n == number).map(|(_, codename)| *codename)
}

impl Kernels {
    fn build_roots(&self) -> PathBuf {
        self.directory.join(".build-roots")
    }

    /// The existing build roots: their names, and how many bytes each has.
    pub fn list_build_roots(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(self.build_roots()).into_iter().flatten().flatten();
        let named = entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
        let mut found: Vec<(String, u64)> = named
            .filter(|(name, _)| !name.starts_with('.'))
            .map(|(name, path)| (name, bytes_of(&path)))
            .collect();
        found.sort();
        found
    }

    /// Removes all build roots. The next module that needs one makes it again.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn remove_build_roots(&self) -> Result<()> {
        for (name, _) in self.list_build_roots() {
            cache::discard(&self.build_roots().join(name))?;
        }
        Ok(())
    }

    /// The build root of a release with this compiler. It is made if needed. `why` says why it is needed.
    fn build_root(&self, codename: &str, gcc: u32, why: &str) -> Result<PathBuf> {
        let parent = self.build_roots();
        fs::create_dir_all(&parent).at(&parent)?;
        let place = parent.join(format!("{codename}-gcc-{gcc}"));
        let usable = check_namespaces();
        if place.is_dir() {
            return usable.map(|()| place);
        }
        usable?;
        let announce = self.announce;
        announce(&format!(
            "{why}; onset makes a build root of {codename} (some 65 MB to download, 240 MB on disk, in {})",
            parent.display()
        ));
        let draft = cache::owned(&parent, DRAFT)?;
        let archive = self.archive(&announce)?;
        let root = self.unpack_root(&archive, codename, gcc, &draft, &announce)?;
        make_durable(&root)?;
        match fs::rename(&root, &place) {
            // Another command made the build root at the same time.
            Err(_) if place.is_dir() => {}
            done => done.at(&place)?,
        }
        Ok(place)
    }

    fn unpack_root(
        &self,
        archive: &Archive,
        codename: &str,
        gcc: u32,
        draft: &Owned,
        announce: Announce,
    ) -> Result<PathBuf> {
        let downloads = draft.path().join("packages");
        fs::create_dir(&downloads).at(&downloads)?;
        let wanted = |archive: &Archive| -> Result<()> {
            archive.download_with_dependencies(codename, gcc, &TOOLS, &LIBRARIES, &downloads)
        };
        // The lists may be older than the archive.
        match wanted(archive) {
            Err(Error::Program { .. }) => {
                archive.update(announce)?;
                wanted(archive)?;
            }
            done => done?,
        }
        let root = draft.path().join("root");
        for directory in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64"] {
            let path = root.join(directory);
            fs::create_dir_all(&path).at(&path)?;
        }
        // Every Debian of today has these links. Older packages still name the old places.
        for merged in ["bin", "sbin", "lib", "lib64"] {
            let link = root.join(merged);
            symlink(format!("usr/{merged}"), &link).at(&link)?;
        }
        for entry in fs::read_dir(&downloads).at(&downloads)?.flatten() {
            let deb = entry.path();
            if deb.extension().is_some_and(|e| e == "deb") {
                tool::run(
                    Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root),
                    "dpkg",
                    DEADLINE,
                )?;
            }
        }
        // Packages that are only unpacked set no alternatives.
        let awk = root.join("usr/bin/awk");
        symlink("mawk", &awk).at(&awk)?;
        for mounted in ["dev", "proc", "tmp", &HEADERS[1..], &MODULE[1..]] {
            let path = root.join(mounted);
            fs::create_dir_all(&path).at(&path)?;
        }
        Ok(root)
    }
}

/// The command that runs a program in a build root: in namespaces of its own and without a network. It sees nothing of
/// the machine but the headers, which it cannot write, and the module's sources.
pub(super) fn in_root(root: &Path, headers: &Path, module: &Path) -> Command {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--unshare-all", "--die-with-parent", "--clearenv"]);
    bwrap.args(["--setenv", "PATH", "/usr/bin", "--setenv", "LC_ALL", "C"]);
    bwrap.arg("--ro-bind").arg(root).arg("/");
    bwrap.args(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    bwrap.arg("--ro-bind").arg(headers).arg(HEADERS);
    bwrap.arg("--bind").arg(module).arg(MODULE);
    bwrap.args(["--chdir", MODULE]);
    bwrap
}

/// The command that runs a program of a kernel's headers on the machine, or make with these headers: without network
/// and privileges. It can write only to `workshop`. Headers in the `cache` may be anybody's, so their programs do not
/// see the user's files, either. A tree that the user built may need these files. If the machine permits no namespaces,
/// the program runs as it is.
pub(super) fn on_machine(program: &str, cache: Option<&Path>, workshop: &Path) -> Command {
    if check_namespaces().is_err() {
        return Command::new(program);
    }
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    bwrap.args(["--setenv", "LC_ALL", "C", "--setenv", "PATH"]).arg(path);
    bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    if let Some(headers) = cache {
        for hidden in ["/home", "/root", "/run", "/tmp", "/var/tmp"] {
            if Path::new(hidden).is_dir() {
                bwrap.args(["--tmpfs", hidden]);
            }
        }
        // This comes after those mounts, since the headers may be in one of them.
        bwrap.arg("--ro-bind").arg(headers).arg(headers);
    }
    // The compiler's temporary files go there.
    bwrap.args(["--setenv", "TMPDIR"]).arg(workshop);
    bwrap.arg("--bind").arg(workshop).arg(workshop);
    bwrap.arg("--chdir").arg(workshop).arg(program);
    bwrap
}

/// Checks whether programs may run in namespaces of their own.
pub(super) fn check_namespaces() -> Result<()> {
    let mut probe = Command::new("bwrap");
    probe.args([
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "true",
    ]);
    tool::run(&mut probe, "bubblewrap", DEADLINE).map(drop).map_err(|e| match e {
        Error::Program { command, why } => Error::Program {
            command,
            why: format!(
                "{why}\nA build root needs namespaces, which this machine does not permit. Run onset as root, or permit them to users (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or install the kernel's own compiler"
            ),
        },
        other => other,
    })
}

/// The number of bytes of all files below a directory.
fn bytes_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |m| m.len()),
        _ => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_debian_names_its_release() {
        assert_eq!(debian_release("7.3.4+deb13-rt-amd64"), Some("trixie"));
        assert_eq!(debian_release("7.2.13+deb14-amd64"), Some("forky"));
        assert_eq!(debian_release("6.12.90+deb13.1-amd64"), Some("trixie"));
        assert_eq!(debian_release("6.1.0-56-amd64"), None);
        assert_eq!(debian_release("6.8.0-45-generic"), None);
    }

    #[test]
    fn a_configuration_names_its_compiler() {
        let gcc = "CONFIG_CC_IS_GCC=y\nCONFIG_GCC_VERSION=140200\n";
        assert_eq!(Compiler::of(gcc), Some(Compiler::Gcc(14)));
        let clang = "CONFIG_CC_IS_CLANG=y\nCONFIG_GCC_VERSION=0\n";
        assert_eq!(Compiler::of(clang), Some(Compiler::Clang));
        assert_eq!(Compiler::of("CONFIG_HZ=250\n"), None);
    }

    #[test]
    fn a_machine_whose_compiler_is_older_does_not_fit_and_says_why() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(machine_fits(1, nowhere, None), Ok(()));
        let why = machine_fits(99, nowhere, None).unwrap_err();
        assert!(why.contains("gcc 99") && why.contains("this machine"), "{why}");
    }

    #[test]
    fn headers_whose_programs_do_not_run_here_are_told_from_others() {
        let headers = tempfile::tempdir().unwrap();
        let scripts = headers.path().join("scripts/mod");
        fs::create_dir_all(&scripts).unwrap();
        let modpost = scripts.join("modpost");
        let script = |text: &str| {
            fs::write(&modpost, format!("#!/bin/sh\n{text}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&modpost, mode).unwrap();
        };
        script("exit 1");
        assert_eq!(machine_fits(1, headers.path(), None), Ok(()));
        script(
            "echo \"$0: /lib/libc.so.6: version \\`GLIBC_2.38' not found (required by $0)\" >&2; exit 1",
        );
        assert!(
            machine_fits(1, headers.path(), Some(headers.path()))
                .unwrap_err()
                .contains("C library")
        );
    }

    #[test]
    fn build_roots_are_listed_and_removed() {
        let cache = tempfile::tempdir().unwrap();
        let kernels = Kernels::open(cache.path()).unwrap();
        assert_eq!(kernels.list_build_roots(), []);
        let root = kernels.build_roots().join("trixie-gcc-14/usr/bin");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("make"), "1234").unwrap();
        assert_eq!(kernels.list_build_roots(), [("trixie-gcc-14".to_string(), 4)]);
        kernels.remove_build_roots().unwrap();
        assert_eq!(kernels.list_build_roots(), []);
    }
}
