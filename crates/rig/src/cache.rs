// SPDX-License-Identifier: GPL-2.0-or-later
//! The places of files that can be made again, and of onset's own parts.

use crate::error::At;
use crate::kernel::Kernels;
use crate::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The cache: kernels, images, snapshots, and scratch directories of running commands.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    announce: fn(&str),
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/onset`, or `~/.cache/onset`.
    pub fn of_user() -> Result<Cache> {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .filter(|p| p.is_absolute())
            .ok_or(Error::NoCachePlace)?;
        Cache::at(&base.join("onset"))
    }

    /// A cache in `directory`. The function makes the directory if needed.
    pub fn at(directory: &Path) -> Result<Cache> {
        fs::create_dir_all(directory).at(directory)?;
        Ok(Cache { directory: directory.canonicalize().at(directory)?, announce: |_| () })
    }

    /// The same cache. It calls `announce` with the name of each step that will take long.
    pub fn announcing(self, announce: fn(&str)) -> Cache {
        Cache { announce, ..self }
    }

    /// The cache's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kernels in the cache.
    pub fn kernels(&self) -> Result<Kernels> {
        Ok(Kernels::open(&self.directory)?.announcing(self.announce))
    }

    /// A subdirectory. The function makes it if needed.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        fs::create_dir_all(&path).at(&path)?;
        Ok(path)
    }

    /// A directory for one machine's files. It is removed when dropped.
    pub(crate) fn scratch(&self) -> Result<Owned> {
        owned(&self.place("scratch")?, "")
    }
}

/// The beginning of the names of drafts that lie beside finished things. No finished thing has such a name.
pub(crate) const DRAFT: &str = ".draft-";

/// A directory that belongs to this process. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct Owned {
    directory: tempfile::TempDir,
    /// Locked as long as this process owns the directory. Other containers and hosts see the lock, too, although this
    /// process has another number there or none.
    _held: Option<File>,
}

impl Owned {
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Makes an [`Owned`] directory in `parent`. Its name is `PREFIX` `PID` `-` and a random part. The function also
/// removes the directories of commands that were killed before they could remove them.
pub(crate) fn owned(parent: &Path, prefix: &str) -> Result<Owned> {
    sweep(parent, prefix)?;
    let prefix = format!("{prefix}{}-", std::process::id());
    loop {
        let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
        let directory = made.at(parent)?;
        // On a file system without locks, nobody else can lock the directory to remove it, either.
        let held = match locked(directory.path(), FlockOperation::LockExclusive) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e).at(directory.path()),
            held => held.ok().and_then(Lock::ours),
        };
        // Another command may have removed the directory before it was locked.
        if directory.path().exists() {
            return Ok(Owned { directory, _held: held });
        }
    }
}

/// Opens a directory, and nothing else: what lies in one that others may write to may be a pipe.
fn opened(directory: &Path) -> std::io::Result<File> {
    fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory)
}

/// What became of a lock that was asked for.
enum Lock {
    /// It is taken, until the file is closed.
    Ours(File),
    /// Somebody else has it.
    Theirs,
    /// The file system has no locks.
    Unknown,
}

impl Lock {
    /// The file that keeps it.
    fn ours(self) -> Option<File> {
        if let Lock::Ours(file) = self { Some(file) } else { None }
    }
}

/// Locks a directory.
fn locked(directory: &Path, how: FlockOperation) -> std::io::Result<Lock> {
    let file = opened(directory)?;
    match rustix::io::retry_on_intr(|| flock(&file, how)) {
        Ok(()) => Ok(Lock::Ours(file)),
        Err(Errno::WOULDBLOCK) => Ok(Lock::Theirs),
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Lock::Unknown),
        Err(e) => Err(e.into()),
    }
}

/// Locks a directory as one of its users. `None` if there is none, or if its file system has no locks.
pub(crate) fn held(directory: &Path) -> Result<Option<File>> {
    loop {
        let held = match locked(directory, FlockOperation::LockShared) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            held => held.at(directory)?.ours(),
        };
        // While the lock was waited for, another directory may have come in its place.
        let is_there = held.as_ref().is_none_or(|held| {
            let inode = |of: std::io::Result<fs::Metadata>| of.ok().map(|of| (of.dev(), of.ino()));
            inode(held.metadata()) == inode(fs::metadata(directory))
        });
        if is_there {
            return Ok(held);
        }
    }
}

/// Locks a directory for whoever takes it away. The outer `None` says that somebody uses it; the inner one that there
/// is none, or that its file system has no locks.
pub(crate) fn unused(directory: &Path) -> Result<Option<Option<File>>> {
    match locked(directory, FlockOperation::NonBlockingLockExclusive) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Some(None)),
        lock => Ok(match lock.at(directory)? {
            Lock::Theirs => None,
            lock => Some(lock.ours()),
        }),
    }
}

/// Removes the [`owned`] directories that nobody owns any more.
pub(crate) fn sweep(parent: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(parent).at(parent)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
        if owner.is_none_or(|(pid, _)| pid.parse::<u32>().is_err()) {
            continue;
        }
        // Kept until the directory is removed.
        let unowned = locked(&entry.path(), FlockOperation::NonBlockingLockExclusive);
        let unowned = unowned.ok().and_then(Lock::ours);
        if unowned.is_some() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Removes a directory. Others see it vanish at once: the function first renames it to a draft, so that nobody takes
/// the remains of a killed command for the thing. A missing directory is no error.
pub(crate) fn discard(directory: &Path) -> Result<()> {
    buried(directory).map(drop)
}

/// Puts a finished directory in the place of another one, which is removed once the new one is there: to remove its
/// files takes a while. If the new one cannot be put there, the old one comes back.
pub(crate) fn replace(made: &Path, directory: &Path) -> Result<()> {
    let grave = buried(directory)?;
    fs::rename(made, directory).at(directory).inspect_err(|_| {
        let _ = fs::rename(grave.path().join(OLD), directory);
    })
}

/// The name of what lies in a grave.
const OLD: &str = "old";

/// Moves a directory, if it is there, into a draft, in which it is removed.
fn buried(directory: &Path) -> Result<Owned> {
    let parent = directory.parent().expect("a directory of the cache has a parent");
    let grave = owned(parent, DRAFT)?;
    match fs::rename(directory, grave.path().join(OLD)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).at(directory),
        _ => Ok(grave),
    }
}

/// The parts of onset beside this program: the plugin and the guest's init.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The QEMU plugin.
    pub plugin: PathBuf,
    /// The guest's init, a static program.
    pub agent: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_somebody_uses_is_neither_removed_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("k");
        assert!(held(&kernel).unwrap().is_none() && unused(&kernel).unwrap().is_some());
        fs::create_dir(&kernel).unwrap();
        let users = [held(&kernel).unwrap(), held(&kernel).unwrap()];
        assert!(users.iter().all(Option::is_some) && unused(&kernel).unwrap().is_none());
        drop(users);
        assert!(unused(&kernel).unwrap().flatten().is_some());
    }

    #[test]
    fn scratch_that_is_locked_is_kept_and_no_other_whatever_processes_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let scratch = |name: &str| {
            let path = dir.path().join("scratch").join(name);
            fs::create_dir_all(path.join("in")).unwrap();
            path
        };
        // The directory of a process in another container, and the directory of a process whose number another process
        // has now.
        let elsewhere = scratch("4194999-x");
        let lock = locked(&elsewhere, FlockOperation::LockExclusive).unwrap();
        let dead = [scratch("4194998-x"), scratch(&format!("{}-x", std::process::id()))];
        let first = cache.scratch().unwrap();
        let second = cache.scratch().unwrap();
        assert!(first.path().exists() && second.path().exists() && elsewhere.exists());
        assert!(!dead.iter().any(|path| path.exists()));
        drop(lock);
        drop(first);
        let third = cache.scratch().unwrap();
        assert!(!elsewhere.exists() && second.path().exists() && third.path().exists());
    }

    #[test]
    fn what_several_commands_make_at_once_is_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let make = || {
            for _ in 0..50 {
                let scratch = cache.scratch().unwrap();
                fs::write(scratch.path().join("file"), "x").unwrap();
                assert!(scratch.path().join("file").exists());
            }
        };
        std::thread::scope(|threads| (0..4).for_each(|_| drop(threads.spawn(make))));
    }

    #[test]
    fn drafts_of_dead_commands_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let names = [".draft-4194999-x", ".draft-x", "4194999-x", "6.12", ".draft-1-x"];
        names.iter().for_each(|n| fs::create_dir_all(dir.path().join(n).join("in")).unwrap());
        let mine = owned(dir.path(), DRAFT).unwrap();
        let left = names.map(|n| dir.path().join(n).exists());
        assert_eq!(left, [false, true, true, true, false]);
        drop(mine);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn what_is_discarded_is_gone_and_so_is_its_grave() {
        let dir = tempfile::tempdir().unwrap();
        let thing = dir.path().join("thing");
        fs::create_dir_all(thing.join("in")).unwrap();
        discard(&thing).unwrap();
        discard(&thing).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
