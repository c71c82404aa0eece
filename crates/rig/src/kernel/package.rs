// SPDX-License-Identifier: GPL-2.0-or-later
//! Unpacks Debian packages that anybody may have made. It writes nothing outside of the target directory and makes no
//! link to the outside, and the unpacked size has a limit.

use crate::error::At;
use crate::{Error, Result, tool};
use confined::Directory;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use tar::{Entry, EntryType};

/// The most bytes of the files in all packages of a kernel. Debian's take less than 1 GiB. Kernels with debugging
/// information in each module take 6 GiB.
const BYTES_MAX: u64 = 12 << 30;
/// The most files, directories and links. Debian's headers and modules have some 20,000.
const ENTRIES_MAX: u64 = 1_000_000;
/// The most bytes of a path (PATH_MAX).
const PATH_MAX: u64 = 4096;
/// The most levels of a path. Modules of drivers lie some 15 levels deep. Nothing could remove a much deeper file
/// again.
const DEPTH_MAX: usize = 64;

/// Packages that are being unpacked into a directory.
pub(super) struct Unpacking<'a> {
    root: &'a Path,
    /// The links, each with its place and its target. They are made at the end, so that no file is written through a
    /// link.
    links: BTreeMap<PathBuf, PathBuf>,
    bytes: u64,
    entries: u64,
}

impl<'a> Unpacking<'a> {
    /// Begins to unpack into the directory `root`, which is made.
    pub fn into(root: &'a Path) -> Result<Unpacking<'a>> {
        fs::create_dir_all(root).at(root)?;
        Ok(Unpacking { root, links: BTreeMap::new(), bytes: 0, entries: 0 })
    }

    /// Unpacks a package. It leaves out devices and pipes, and the permission to become another user.
    ///
    /// # Errors
    /// [`Error::Program`] with what is wrong with the package, or [`Error::Interrupted`].
    pub fn take(&mut self, deb: &Path) -> Result<()> {
        let refused = |why: String| Error::Program {
            command: format!("dpkg-deb --fsys-tarfile {}", deb.display()),
            why,
        };
        let program = tool::find("dpkg-deb")
            .ok_or(Error::NoProgram { name: "dpkg-deb".into(), package: "dpkg" })?;
        let mut command = Command::new(program);
        command.arg("--fsys-tarfile").arg(deb).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = work::Reaped::spawn(&mut command).map_err(|e| refused(e.to_string()))?;
        let (_, stdout, stderr) = child.pipes();
        let mut archive = tar::Archive::new(stdout.expect("it was asked for"));
        match self.entries(&mut archive) {
            Ok(false) => return Err(Error::Interrupted),
            Ok(true) => {}
            // dpkg-deb's own message about a damaged package says more. dpkg-deb ends when nobody reads the rest.
            Err(e) => {
                drop(archive);
                let said = if e.kind() == io::ErrorKind::InvalidData { None } else { stderr };
                let said = said.map(complaint).filter(|said| !said.is_empty());
                return Err(refused(said.unwrap_or_else(|| e.to_string())));
            }
        }
        // The rest of the archive is padding. Without reading it, dpkg-deb fails to write it.
        io::copy(&mut archive.into_inner().take(1 << 20), &mut io::sink()).at(deb)?;
        let said = stderr.map(complaint).unwrap_or_default();
        match child.wait().at(deb)? {
            status if status.success() => Ok(()),
            status => Err(refused(format!("{status}: {said}"))),
        }
    }

    /// Unpacks the entries of an archive. `false` if the user interrupts.
    pub(super) fn entries(&mut self, archive: &mut tar::Archive<impl Read>) -> io::Result<bool> {
        let mut long = Long::default();
        // The entries are read raw: the library would read all of a path into memory, however long.
        for entry in archive.entries()?.raw(true) {
            if work::is_cancelled() {
                return Ok(false);
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(too_much(&format!("{ENTRIES_MAX} files")));
            }
            let entry = entry?;
            match entry.header().entry_type() {
                EntryType::GNULongName => long.path = Some(long_path(entry)?),
                EntryType::GNULongLink => long.target = Some(long_path(entry)?),
                // dpkg refuses these kinds, too.
                kind @ (EntryType::XHeader | EntryType::XGlobalHeader | EntryType::GNUSparse) => {
                    return Err(invalid(format!("it has entries of the kind {kind:?}")));
                }
                _ => self.entry(entry, std::mem::take(&mut long))?,
            }
        }
        Ok(true)
    }

    /// Makes the links that lead to something inside the directory.
    pub fn finish(self) -> Result<()> {
        let root = self.root.canonicalize().at(self.root)?;
        for (path, target) in &self.links {
            let (parent, name) = self.parent_of(path).at(path)?;
            if !parent.has(name) {
                symlink(target, parent.at(name)).at(path)?;
            }
        }
        // A link may lead through other links, so all of them have to be there first.
        for path in self.links.keys() {
            let path = root.join(path);
            let leads_in = path.canonicalize().is_ok_and(|end| end.starts_with(&root));
            if path.is_symlink() && !leads_in {
                fs::remove_file(&path).at(&path)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry<'_, impl Read>, long: Long) -> io::Result<()> {
        let path = match long.path {
            Some(path) => inside(&path)?,
            None => inside(&entry.path()?)?,
        };
        let target = match long.target {
            None => entry.link_name()?.map(|target| target.into_owned()),
            target => target,
        };
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        match entry.header().entry_type() {
            EntryType::Directory => self.directory(&path).map(drop),
            EntryType::Regular | EntryType::Continuous => {
                let mode = if entry.header().mode()? & 0o111 == 0 { 0o644 } else { 0o755 };
                self.file(&path, mode, &mut entry)
            }
            EntryType::Symlink => {
                if let Some(target) = target {
                    self.links.insert(path, target);
                }
                Ok(())
            }
            EntryType::Link => {
                let target = inside(&target.unwrap_or_default())?;
                let (parent, name) = self.parent_of(&target)?;
                let mut source = parent.file(name)?;
                let mode = source.metadata()?.permissions().mode() & 0o777;
                self.file(&path, mode, &mut source)
            }
            _ => Ok(()),
        }
    }

    fn file(&mut self, path: &Path, mode: u32, content: &mut impl Read) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        // The file is one of another package. It is replaced, as dpkg does.
        match parent.remove(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = parent.create(name)?;
        let room = BYTES_MAX - self.bytes;
        let written = io::copy(&mut content.take(room + 1), &mut file)?;
        if written > room {
            return Err(too_much(&format!("{} GiB", BYTES_MAX >> 30)));
        }
        self.bytes += written;
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// The directory of a path, which is made if it is missing, and the name in the directory.
    fn parent_of<'p>(&self, path: &'p Path) -> io::Result<(Directory, &'p OsStr)> {
        let name = path.file_name().ok_or_else(|| invalid("a file without a name".into()))?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn directory(&self, path: &Path) -> io::Result<Directory> {
        let root = Directory::open(self.root)?;
        path.iter().try_fold(root, |directory, name| match directory.make_directory(name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => directory.directory(name),
            made => made,
        })
    }
}

/// The long path and target before an entry. They are for the entry whose header has no room for them.
#[derive(Default)]
struct Long {
    path: Option<PathBuf>,
    target: Option<PathBuf>,
}

fn long_path(entry: Entry<'_, impl Read>) -> io::Result<PathBuf> {
    let mut bytes = Vec::new();
    entry.take(PATH_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > PATH_MAX {
        return Err(invalid(format!("it has a path of more than {PATH_MAX} bytes")));
    }
    // The text has a NUL at its end.
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    Ok(OsString::from_vec(bytes).into())
}

/// A path of a package, without its beginning (`./` or `/`).
fn inside(path: &Path) -> io::Result<PathBuf> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(invalid(format!("it has the path {path:?}, which leads out of it")));
            }
        }
    }
    match inside.iter().count() {
        0..=DEPTH_MAX => Ok(inside),
        depth => {
            Err(invalid(format!("it has a path of {depth} names, and no kernel's has {DEPTH_MAX}")))
        }
    }
}

fn too_much(what: &str) -> io::Error {
    invalid(format!("it unpacks to more than {what}, which no kernel's packages do"))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn complaint(mut stderr: impl Read) -> String {
    let mut text = Vec::new();
    let _ = (&mut stderr).take(1 << 16).read_to_end(&mut text);
    tool::last_lines(&String::from_utf8_lossy(&text), 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with these entries: kind, path, and content or target.
    fn package(directory: &Path, entries: &[(EntryType, &str, &str)]) -> PathBuf {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, path, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o4755);
            // A malicious builder writes the path in this way. The crate's own functions refuse such paths.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
                header.set_size(0);
                header.set_cksum();
                builder.append(&header, io::empty()).unwrap();
            } else {
                header.set_size(content.len() as u64);
                header.set_cksum();
                builder.append(&header, content.as_bytes()).unwrap();
            }
        }
        let data = builder.into_inner().unwrap();
        let mut deb = b"!<arch>\n".to_vec();
        let empty = tar::Builder::new(Vec::new()).into_inner().unwrap();
        for (name, content) in
            [("debian-binary", &b"2.0\n"[..]), ("control.tar", &empty), ("data.tar", &data)]
        {
            deb.extend(
                format!(
                    "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                    0,
                    0,
                    0,
                    100_644,
                    content.len()
                )
                .bytes(),
            );
            deb.extend(content);
            deb.resize(deb.len().next_multiple_of(2), b'\n');
        }
        let path = directory.join("x.deb");
        fs::write(&path, deb).unwrap();
        path
    }

    fn unpack(entries: &[(EntryType, &str, &str)]) -> (tempfile::TempDir, Result<()>) {
        let place = tempfile::tempdir().unwrap();
        let deb = package(place.path(), entries);
        let root = place.path().join("root");
        let mut unpacking = Unpacking::into(&root).unwrap();
        let done = unpacking.take(&deb).and_then(|()| unpacking.finish());
        (place, done)
    }

    use EntryType::{Block, Directory as Dir, Fifo, Link, Regular, Symlink};
    use EntryType::{GNULongLink, GNULongName, XHeader};

    #[test]
    fn files_directories_and_links_inside_are_as_the_package_has_them() {
        let (place, done) = unpack(&[
            (Dir, "./usr/", ""),
            (Symlink, "./usr/link", "src/a"),
            (Symlink, "./usr/up", "../usr/src"),
            (Regular, "./usr/src/a", "text"),
            (Link, "./usr/same", "./usr/src/a"),
        ]);
        done.unwrap();
        let root = place.path().join("root/usr");
        for path in ["src/a", "link", "up/a", "same"] {
            assert_eq!(fs::read_to_string(root.join(path)).unwrap(), "text", "{path}");
        }
        let mode = root.join("src/a").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn links_that_lead_out_devices_and_pipes_are_left_out() {
        let (place, done) = unpack(&[
            (Symlink, "./absolute", "/etc/passwd"),
            (Symlink, "./out", "../../x"),
            (Symlink, "./d/top", ".."),
            (Symlink, "./through", "d/top/.."),
            (Symlink, "./dangling", "nothing"),
            (Fifo, "./pipe", ""),
            (Block, "./disk", ""),
            (Regular, "./d/a", "text"),
        ]);
        done.unwrap();
        let root = place.path().join("root");
        let mut names: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["d"]);
        assert!(root.join("d/top").is_symlink());
    }

    #[test]
    fn nothing_is_written_through_a_link_or_out_of_the_place() {
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().to_str().unwrap();
        let (_place, done) =
            unpack(&[(Symlink, "./lib", target), (Regular, "./lib/victim", "bad")]);
        done.unwrap();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        for path in ["../victim", "./a/../../victim"] {
            let (place, done) = unpack(&[(Regular, path, "bad")]);
            assert!(done.unwrap_err().to_string().contains("leads out of it"), "{path}");
            assert!(!place.path().join("victim").exists());
        }
        let (_place, done) = unpack(&[(Link, "./passwd", "/etc/passwd")]);
        assert!(done.is_err());
    }

    #[test]
    fn a_path_of_more_than_a_header_holds_is_taken_and_one_that_no_system_has_is_refused() {
        let long = format!("./{}/{}\0", "d".repeat(150), "x".repeat(150));
        let target = format!("{}/{}\0", "d".repeat(150), "x".repeat(150));
        let (place, done) = unpack(&[
            (GNULongName, "././@LongLink", &long),
            (Regular, "./short", "text"),
            (GNULongLink, "././@LongLink", &target),
            (Symlink, "./link", "short"),
        ]);
        done.unwrap();
        let root = place.path().join("root");
        assert_eq!(fs::read_to_string(root.join("link")).unwrap(), "text");
        assert!(!root.join("short").exists());
        for kind in [GNULongName, GNULongLink] {
            let longest = "x/".repeat(PATH_MAX as usize);
            let (_place, done) = unpack(&[(kind, "././@LongLink", &longest)]);
            assert!(done.unwrap_err().to_string().contains("more than 4096 bytes"));
        }
        let (_place, done) =
            unpack(&[(XHeader, "./x", "20 path=./elsewhere\n"), (Regular, "./x", "")]);
        assert!(done.unwrap_err().to_string().contains("of the kind"));
    }

    #[test]
    fn a_path_that_is_too_deep_to_be_removed_again_is_refused() {
        let of = |depth: usize| {
            let path = "d/".repeat(depth - 1) + "x";
            unpack(&[(GNULongName, "././@LongLink", &path), (Regular, "./short", "text")]).1
        };
        of(DEPTH_MAX).unwrap();
        assert!(of(DEPTH_MAX + 1).unwrap_err().to_string().contains("65 names"));
    }

    #[test]
    fn a_package_that_is_damaged_in_front_of_much_more_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        // This is more than a pipe takes, so dpkg-deb does not end by itself.
        let much = "x".repeat(1 << 20);
        let deb = package(place.path(), &[(Regular, "./a", ""), (Regular, "./b", &much)]);
        let mut bytes = fs::read(&deb).unwrap();
        let header = bytes.windows(2).rposition(|pair| pair == b"./").unwrap();
        bytes[header + 148] ^= 1;
        fs::write(&deb, bytes).unwrap();
        let root = place.path().join("root");
        let mut unpacking = Unpacking::into(&root).unwrap();
        assert!(unpacking.take(&deb).is_err());
    }
}
