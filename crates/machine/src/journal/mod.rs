// SPDX-License-Identifier: GPL-2.0-or-later
//! The journal of changes: a file that says what was changed, and is durable before the change is made.
//!
//! The directory holds `journal`, as long as something is changed; `journal.closed`, the one before; and `lock`, which
//! one process at a time has locked. The journal holds the old texts of files that others may not read, as a boot menu
//! with hashes of passwords. So nobody else may read it.

mod record;

pub use record::{Change, Read, Record, Unusable, VERSION, digits, line, read};

use crate::lock::Lock;
use crate::system::sync_directory_of;
use confined::Directory;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where the journal is if the user names no directory.
pub const DIRECTORY: &str = "/var/lib/onset/tune";
const NAME: &str = "journal";
const CLOSED: &str = "journal.closed";
const LOCK: &str = "lock";
/// The most bytes of a journal. A change takes some 400.
const BYTES_MAX: u64 = 64 << 20;

/// Why a journal cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it.
    #[error(
        "another onset tune (process {process}) is at work on {}; wait for its end, then try again",
        path.display()
    )]
    Busy {
        /// The directory.
        path: PathBuf,
        /// The number of the process, or `unknown`.
        process: String,
    },
    /// A record is damaged that is not the last one.
    #[error(
        "{}: line {line} is damaged, and onset does not guess what it said; each line names a path and its old value \
         as text: write back by hand what is still changed (a reboot takes back all but files on disk), then move the \
         file away",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged line.
        line: usize,
    },
    /// A newer onset wrote it.
    #[error(
        "{}: a newer onset wrote this journal (version {version}; this onset knows {VERSION}); undo with that onset",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Another user can change what is in its directory.
    #[error(
        "{}: another user can write here, and undo writes what a journal says; make the directory yours alone (chown, \
         chmod go-w), or name another one: --journal DIR",
        path.display()
    )]
    Shared {
        /// The directory.
        path: PathBuf,
    },
    /// The operating system refuses.
    #[error("{}: the journal cannot be used: {error}; {}", path.display(), remedy(error))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "run the command as root, or name a directory of your own: --journal DIR"
        }
        ErrorKind::StorageFull => {
            "free some space, or name a directory on another disk: --journal DIR"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "name a directory on a disk that can be written: --journal DIR"
        }
        _ => "name another directory: --journal DIR",
    }
}

/// An open journal. Nobody else has it.
#[derive(Debug)]
pub struct Journal {
    directory: Directory,
    /// It ends with the journal.
    _lock: Lock,
    /// None until the first record.
    file: Option<File>,
    read: Read,
    /// The bytes of a cut-off record at its end.
    torn: usize,
    /// Why a record could not be written whose half could not be cut off either. Whatever followed it would be damage.
    half: Option<ErrorKind>,
}

impl Journal {
    /// Opens the journal in a directory, which is made if it is missing. A half record at its end is cut off.
    ///
    /// # Errors
    /// All kinds.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let io = |error| JournalError::Io { path: path.into(), error };
        make(path, 0o700).map_err(io)?;
        let directory = Directory::open(path).map_err(io)?;
        if !directory.is_guarded() {
            return Err(JournalError::Shared { path: path.into() });
        }
        let lock = directory.edit_private(LOCK).and_then(Lock::take).map_err(io)?;
        let _lock = lock.map_err(|process| JournalError::Busy { path: path.into(), process })?;
        let (file, read) = (None, Read::default());
        let mut journal = Journal { directory, _lock, file, read, torn: 0, half: None };
        journal.load()?;
        // An older onset closed it with the mode of any file.
        if journal.directory.has(CLOSED) {
            journal.directory.edit_private(CLOSED).map_err(io)?;
        }
        Ok(journal)
    }

    fn load(&mut self) -> Result<(), JournalError> {
        if !self.directory.has(NAME) {
            return Ok(());
        }
        let mut file = self.directory.edit_private(NAME).map_err(|e| self.io(e))?;
        let copy = file.try_clone().map_err(|e| self.io(e))?;
        let bytes = confined::bounded(copy, BYTES_MAX).map_err(|e| self.io(e))?;
        self.read = self.understood(&bytes)?;
        self.torn = bytes.len() - self.read.whole;
        let cut = file.set_len(self.read.whole as u64).and_then(|()| file.sync_all());
        cut.and_then(|()| file.seek(SeekFrom::End(0)).map(drop)).map_err(|e| self.io(e))?;
        self.file = Some(file);
        Ok(())
    }

    /// The records in a directory's journal, without opening it to write. None if there is no journal.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for `Busy` and `Shared`.
    pub fn look(path: &Path) -> Result<Option<Read>, JournalError> {
        let io = |error| JournalError::Io { path: path.into(), error };
        let bytes =
            match Directory::open(path).and_then(|directory| directory.read(NAME, BYTES_MAX)) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
                Err(e) => return Err(io(e)),
            };
        read(&bytes).map(Some).map_err(|e| explained(path.join(NAME), e))
    }

    fn understood(&self, bytes: &[u8]) -> Result<Read, JournalError> {
        read(bytes).map_err(|e| explained(self.directory.at(NAME), e))
    }

    fn io(&self, error: io::Error) -> JournalError {
        JournalError::Io { path: self.directory.at(NAME), error }
    }

    /// The records that it holds.
    pub fn records(&self) -> &[Record] {
        &self.read.records
    }

    /// How many bytes of a half record were cut off when it was opened.
    pub fn torn(&self) -> usize {
        self.torn
    }

    /// Adds a record, and makes it durable.
    ///
    /// # Errors
    /// Of the operating system. Then the journal is as it was, or takes no more records.
    pub fn add(&mut self, record: Record) -> Result<(), JournalError> {
        if let Some(kind) = self.half {
            let why = format!("half a record stands at its end ({kind})");
            return Err(self.io(io::Error::new(kind, why)));
        }
        if self.read.records.is_empty() {
            self.begin().map_err(|e| self.io(e))?;
        }
        self.append(record).map_err(|e| self.io(e))
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.directory.edit_private(NAME)?);
        }
        self.append(Record::Journal { version: VERSION })?;
        self.directory.sync()
    }

    fn append(&mut self, record: Record) -> io::Result<()> {
        let text = line(&self.read.last, &record);
        let file = self.file.as_mut().expect("begun");
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(e) = written {
            let cut = file.set_len(self.read.whole as u64);
            if cut.and_then(|()| file.seek(SeekFrom::End(0))).is_err() {
                self.half = Some(e.kind());
            }
            return Err(e);
        }
        self.read.whole += text.len();
        self.read.last = text.split(' ').next().unwrap_or_default().to_owned();
        self.read.records.push(record);
        Ok(())
    }

    /// Closes the journal: its changes are settled. It stays beside as `journal.closed`.
    ///
    /// # Errors
    /// Of the operating system.
    pub fn close(self) -> Result<(), JournalError> {
        if self.file.is_none() {
            return Ok(());
        }
        let closed = std::fs::rename(self.directory.at(NAME), self.directory.at(CLOSED));
        closed.and_then(|()| self.directory.sync()).map_err(|e| self.io(e))
    }
}

fn explained(path: PathBuf, unusable: Unusable) -> JournalError {
    match unusable {
        Unusable::Damaged { line } => JournalError::Damaged { path, line },
        Unusable::Newer { version } => JournalError::Newer { path, version },
    }
}

/// Makes a directory with this mode, and those above it, durably.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        // Other things than a journal may be put beside it.
        make(parent, 0o755)?;
    }
    // Not writable for the group, whatever the user's mask says.
    match DirBuilder::new().mode(mode).create(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| sync_directory_of(path)),
    }
}

#[cfg(test)]
mod tests;
