// SPDX-License-Identifier: GPL-2.0-or-later
//! Safe access to files below a directory that somebody else may have prepared.
//!
//! A store, the directory of a hunt or a cache may come from an archive, from another user or from another machine.
//! Whoever made it may have put symbolic links, hard links, devices or pipes in place of files. A [`Directory`] takes
//! one name at a time, relative to its descriptor, and follows no link. It opens only regular files. It changes only
//! files that belong to the running user and have no second name. So it never reads or writes anything outside, even if
//! somebody renames files meanwhile.
//!
//! [`read`] is for a file that the user named. Links in such a path are the user's own, and are followed.

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock, fstat,
    fsync, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mode of a new file, from which the user's mask takes away.
const EVERYBODYS: Mode = Mode::from_raw_mode(0o666);
/// The mode of a file that its owner alone may read.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// An open directory. It stays the same directory, even if it is renamed.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    /// Its path as the caller gave it, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens the directory that the user named; links in its path are followed.
    ///
    /// # Errors
    /// Of the operating system; `NotADirectory` where it is something else.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Directory { descriptor, path: path.to_owned() })
    }

    /// The path by which it was opened. Another file may be at this path now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry in it, for messages.
    pub fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// Whether it belongs to the running user.
    pub fn is_mine(&self) -> bool {
        fstat(&self.descriptor).is_ok_and(|stat| is_mine(&stat))
    }

    /// Whether only the running user and root can change what is in it.
    pub fn is_guarded(&self) -> bool {
        let is_safe =
            |stat: &Stat| (is_mine(stat) || stat.st_uid == 0) && stat.st_mode & 0o022 == 0;
        fstat(&self.descriptor).is_ok_and(|stat| is_safe(&stat))
    }

    /// Whether it still has the name by which it was opened.
    pub fn is_at_its_path(&self) -> bool {
        Directory::open(&self.path).is_ok_and(|there| there.is_same(self))
    }

    /// Whether both are the same directory, even under different names.
    pub fn is_same(&self, other: &Directory) -> bool {
        let (Ok(a), Ok(b)) = (fstat(&self.descriptor), fstat(&other.descriptor)) else {
            return false;
        };
        (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
    }

    /// The names in it, in no order.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// A directory in it.
    ///
    /// # Errors
    /// Of the operating system; a symbolic link is none.
    pub fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Directory> {
        let name = single(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(&self.descriptor, name, flags, Mode::empty())?;
        Ok(Directory { descriptor, path: self.path.join(name) })
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// Of the operating system; `AlreadyExists` where there is anything of that name.
    pub fn make_directory(&self, name: impl AsRef<OsStr>) -> io::Result<Directory> {
        let name = single(name.as_ref())?;
        mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o777))?;
        self.directory(name)
    }

    /// The entry of this name: its length in bytes, its inode, and when it changed, in ns since 1970. A link is not
    /// followed.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn stat(&self, name: impl AsRef<OsStr>) -> io::Result<Stat> {
        Ok(statat(&self.descriptor, single(name.as_ref())?, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Whether there is anything by this name.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        self.stat(name).is_ok()
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// Of the operating system. Anything else than a regular file is refused, without waiting for it.
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.opened(name.as_ref(), OFlags::RDONLY, EVERYBODYS)
    }

    /// All of a regular file that is at most `limit` bytes long.
    ///
    /// # Errors
    /// As [`file`](Self::file); `FileTooLarge` where it is longer.
    pub fn read(&self, name: impl AsRef<OsStr>, limit: u64) -> io::Result<Vec<u8>> {
        bounded(self.file(name)?, limit)
    }

    /// A new file that can be read and written.
    ///
    /// # Errors
    /// Of the operating system; `AlreadyExists` where there is anything of that name.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = single(name.as_ref())?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, EVERYBODYS)?.into())
    }

    /// A new file with these bytes, which are made durable.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn write_new(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create(name)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Writes these bytes to a file, durably: whoever opens the file finds the old contents or all new ones. A link of
    /// that name is replaced, and its target stays as it was.
    ///
    /// # Errors
    /// Of the operating system; then the file has its old contents.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let name = single(name.as_ref())?;
        let mut new = OsString::from(".");
        new.push(name);
        // By chance, too: machines that share the directory have processes of one number.
        let chance = RandomState::new().build_hasher().finish();
        new.push(format!(".{}.{chance:x}", std::process::id()));
        let _ = self.remove_all(&new);
        let written = self
            .write_new(&new, bytes)
            .and_then(|()| Ok(renameat(&self.descriptor, &new, &self.descriptor, name)?));
        if written.is_err() {
            let _ = self.remove(&new);
        }
        written?;
        self.sync()
    }

    /// Opens a regular file to read and change it. Makes an empty one if there is none.
    ///
    /// # Errors Of the operating system; `PermissionDenied` for a file of another user, and for a file with a second
    /// name, which could be anywhere.
    pub fn edit(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.edited(name.as_ref(), EVERYBODYS)
    }

    /// As [`edit`](Self::edit), of a file that nobody else may read: also one that was there has the mode 0600 then.
    ///
    /// # Errors
    /// As [`edit`](Self::edit).
    pub fn edit_private(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let file = self.edited(name.as_ref(), PRIVATE)?;
        fchmod(&file, PRIVATE)?;
        Ok(file)
    }

    fn edited(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let file = self.opened(name, OFlags::RDWR | OFlags::CREATE, mode)?;
        let stat = fstat(&file)?;
        if !is_mine(&stat) {
            return Err(refused("belongs to another user"));
        }
        if stat.st_nlink > 1 {
            return Err(refused("has a second name elsewhere (a hard link)"));
        }
        Ok(file)
    }

    /// Whether [`edit`](Self::edit) would open or make the file of this name.
    pub fn can_edit(&self, name: impl AsRef<OsStr>) -> bool {
        match self.stat(name) {
            Ok(stat) => {
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                is_file && is_mine(&stat) && stat.st_nlink == 1
            }
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, single(name.as_ref())?, AtFlags::empty())?)
    }

    /// Removes the entry of this name with everything in it. Links are removed and not followed.
    ///
    /// # Errors
    /// Of the operating system; `NotFound` where there is nothing.
    pub fn remove_all(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = single(name.as_ref())?;
        if FileType::from_raw_mode(self.stat(name)?.st_mode) != FileType::Directory {
            return self.remove(name);
        }
        let inner = self.directory(name)?;
        inner.names()?.into_iter().try_for_each(|entry| inner.remove_all(entry))?;
        Ok(unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames an entry to a name that no entry has yet.
    ///
    /// # Errors
    /// Of the operating system; `AlreadyExists` where there is anything of that name.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        self.renamed(from.as_ref(), self, to.as_ref())
    }

    /// Moves an entry to another directory, where no entry has its name yet. A link itself is moved.
    ///
    /// # Errors
    /// As [`rename`](Self::rename).
    pub fn hand_over(&self, name: impl AsRef<OsStr>, to: &Directory) -> io::Result<()> {
        self.renamed(name.as_ref(), to, name.as_ref())
    }

    fn renamed(&self, from: &OsStr, directory: &Directory, to: &OsStr) -> io::Result<()> {
        let (from, to) = (single(from)?, single(to)?);
        let at = |flags| renameat_with(&self.descriptor, from, &directory.descriptor, to, flags);
        match at(RenameFlags::NOREPLACE) {
            // Some file systems, for example on networks, cannot do that. There, a directory never replaces one that is
            // not empty.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !directory.has(to) => {
                Ok(at(RenameFlags::empty())?)
            }
            done => Ok(done?),
        }
    }

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.descriptor)?)
    }

    fn opened(&self, name: &OsStr, how: OFlags, mode: Mode) -> io::Result<File> {
        let name = single(name)?;
        // Without NONBLOCK a pipe would be waited for.
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.descriptor, name, flags, mode);
        let opened = opened.map_err(|e| match e {
            rustix::io::Errno::LOOP => {
                refused("is a symbolic link, which onset does not follow here")
            }
            // Of a pipe that nobody reads, or a socket.
            rustix::io::Errno::NXIO => refused("is no regular file"),
            e => e.into(),
        })?;
        regular(opened.into())
    }
}

/// The directory that holds the file at this path, which need not exist, and the name of the file.
///
/// # Errors
/// Of the operating system; `InvalidInput` where the path ends in no name.
pub fn directory_of(path: &Path) -> io::Result<(Directory, &OsStr)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().ok_or_else(|| nameless(path.as_os_str()))?;
    Ok((Directory::open(parent.unwrap_or(Path::new(".")))?, name))
}

/// All of the regular file at `path`, which the user named: links are followed. At most `limit` bytes.
///
/// # Errors
/// Of the operating system; `FileTooLarge` if the file is longer. Anything else than a regular file is refused, without
/// waiting for it.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    bounded(file(path)?, limit)
}

/// Opens the regular file at `path`, which the user named, to read it: links are followed.
///
/// # Errors
/// Of the operating system. Anything else than a regular file is refused, without waiting for it.
pub fn file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    regular(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Waits until nobody else has this file locked; the lock ends with the file.
///
/// # Errors
/// Of the operating system.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// Locks this file where nobody else has it locked; the lock ends with the file.
///
/// # Errors
/// `WouldBlock` where somebody has; of the operating system.
pub fn try_lock(file: impl AsFd) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Ends this command's lock at once. Without it, the lock may outlast the file: a program that another thread starts
/// has a copy of every file until it begins, some milliseconds later.
///
/// # Errors
/// Of the operating system.
pub fn unlock(file: impl AsFd) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}

fn regular(file: File) -> io::Result<File> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(refused("is no regular file")),
    }
}

/// All of a file that is at most `limit` bytes long.
///
/// # Errors
/// Of the operating system; `FileTooLarge` where it is longer.
pub fn bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Not by its length alone, since it may grow.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("is longer than {limit} bytes, and onset writes no such file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

fn is_mine(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// A name of one entry, which leads to no other directory.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty()
        || bytes == b"."
        || bytes == b".."
        || bytes.contains(&b'/')
        || bytes.contains(&0)
    {
        return Err(nameless(name));
    }
    Ok(name)
}

fn nameless(name: &OsStr) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} cannot be the name of a file"))
}

#[cfg(test)]
mod tests;
