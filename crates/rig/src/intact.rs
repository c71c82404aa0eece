// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells intact directories of the cache from damaged ones: a list of hashes lies beside the files.
//!
//! The files and the list are durable before the directory gets its name. They are checked before the directory is
//! used. Whoever needs a directory that is not intact makes it again.

use crate::error::At;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the list's file.
const LIST: &str = "hashes.json";
/// The most bytes of a list. The list of a kernel of 6,000 modules takes 1 MiB.
const LIST_MAX: u64 = 64 << 20;

/// The hashes of a directory's files, by the paths of the files in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hashes {
    directory: PathBuf,
    files: BTreeMap<String, String>,
}

impl Hashes {
    /// Lists all files below a directory, except those below the directories in `except`, and makes the list durable.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File).
    pub(crate) fn write(directory: &Path, except: &[&str]) -> Result<()> {
        let mut files = BTreeMap::new();
        let mut left = vec![PathBuf::new()];
        while let Some(inside) = left.pop() {
            let place = directory.join(&inside);
            for entry in fs::read_dir(&place).at(&place)? {
                let entry = entry.at(&place)?;
                let path = inside.join(entry.file_name());
                let kind = entry.file_type().at(&place)?;
                if kind.is_dir() && !except.iter().any(|e| path == Path::new(e)) {
                    left.push(path);
                } else if kind.is_file() {
                    let hash = hash_file(&directory.join(&path))?;
                    files.insert(path.to_string_lossy().into_owned(), hash);
                }
            }
        }
        let list = directory.join(LIST);
        fs::write(&list, serde_json::to_vec_pretty(&files).expect("a map of texts")).at(&list)?;
        make_durable(directory)
    }

    /// The list of a directory. `None` if there is no list, or if it is none.
    ///
    /// # Errors
    /// [`Error::File`] if the list cannot be read, which says nothing about its content.
    pub(crate) fn read(directory: &Path) -> Result<Option<Hashes>> {
        let path = directory.join(LIST);
        let text = match confined::read(&path, LIST_MAX) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            // Of something else than a file, or of a file that is too long.
            Err(e) if e.raw_os_error().is_none() => return Ok(None),
            read => read.at(&path)?,
        };
        let files = serde_json::from_slice(&text).ok();
        Ok(files.map(|files| Hashes { directory: directory.into(), files }))
    }

    /// The hash of this file of the directory. `None` if the file is not in the list.
    pub(crate) fn of(&self, path: &Path) -> Option<&str> {
        let inside = path.strip_prefix(&self.directory).unwrap_or(path);
        self.files.get(inside.to_str()?).map(String::as_str)
    }

    /// Whether this file of the directory exists and is unchanged.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, which says nothing about its content; [`Error::Interrupted`].
    pub(crate) fn is_intact(&self, path: &Path) -> Result<bool> {
        match hash_file(&self.directory.join(path)) {
            Ok(hash) => Ok(self.of(path) == Some(&hash)),
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Whether every file of the directory is unchanged.
    ///
    /// # Errors
    /// The errors of [`is_intact`](Self::is_intact).
    pub(crate) fn are_intact(&self) -> Result<bool> {
        for path in self.files.keys() {
            if !self.is_intact(Path::new(path))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a directory has a list, and every file of it can be read and is unchanged.
///
/// # Errors
/// [`Error::Interrupted`].
pub(crate) fn is_intact(directory: &Path) -> Result<bool> {
    let Some(hashes) = Hashes::read(directory)? else { return Ok(false) };
    match hashes.are_intact() {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        looked => Ok(looked.unwrap_or(false)),
    }
}

/// Puts a finished directory in its place for good. If an intact directory is there, that one stays. A damaged one is
/// replaced.
///
/// # Errors
/// [`Error::File`](crate::Error::File).
pub(crate) fn publish(made: &Path, place: &Path) -> Result<()> {
    Hashes::write(made, &[])?;
    if place.exists() && !is_intact(place)? {
        crate::cache::discard(place)?;
    }
    match fs::rename(made, place) {
        // Another command made the directory at the same time.
        Err(_) if place.is_dir() => Ok(()),
        done => done.at(place),
    }
}

/// The blake3 of a file, in hexadecimal. The file has to be a regular one, since reading another kind may wait.
///
/// # Errors
/// [`Error::File`] or [`Error::Interrupted`].
pub(crate) fn hash_file(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let hashed = hasher.update_reader(Heeding(confined::file(path).at(path)?));
    if hashed.is_err() && work::is_cancelled() {
        return Err(Error::Interrupted);
    }
    hashed.at(path)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// A reader that ends when the user asks to stop.
struct Heeding(File);

impl io::Read for Heeding {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match work::is_cancelled() {
            true => Err(io::Error::other("the user asked to stop")),
            false => self.0.read(buffer),
        }
    }
}

/// Makes everything durable by one call for the whole file system, since a kernel has thousands of files.
pub(crate) fn make_durable(directory: &Path) -> Result<()> {
    let opened = File::open(directory).at(directory)?;
    rustix::fs::syncfs(&opened).map_err(io::Error::from).at(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(root: &Path, name: &str) -> PathBuf {
        let made = root.join(name);
        fs::create_dir_all(made.join("in/side")).unwrap();
        fs::write(made.join("a"), "1").unwrap();
        fs::write(made.join("in/side/b"), "2").unwrap();
        made
    }

    #[test]
    fn every_change_of_a_listed_file_shows() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("place");
        publish(&made(root.path(), ".draft"), &place).unwrap();
        assert!(is_intact(&place).unwrap());
        let changes: [&dyn Fn(&Path); 5] = [
            &|p| fs::write(p.join("in/side/b"), "3").unwrap(),
            &|p| fs::write(p.join("a"), "").unwrap(),
            &|p| fs::remove_file(p.join("a")).unwrap(),
            &|p| fs::write(p.join(LIST), "{").unwrap(),
            &|p| fs::remove_file(p.join(LIST)).unwrap(),
        ];
        for (n, change) in changes.iter().enumerate() {
            change(&place);
            assert!(!is_intact(&place).unwrap(), "{n}");
            // A damaged directory is replaced.
            publish(&made(root.path(), ".draft"), &place).unwrap();
            assert!(is_intact(&place).unwrap(), "{n}");
        }
    }

    #[test]
    fn what_is_excepted_may_change_and_what_is_not_listed_is_not_intact() {
        let root = tempfile::tempdir().unwrap();
        let made = made(root.path(), "made");
        Hashes::write(&made, &["in"]).unwrap();
        fs::write(made.join("in/side/b"), "3").unwrap();
        let hashes = Hashes::read(&made).unwrap().unwrap();
        assert!(hashes.are_intact().unwrap() && hashes.is_intact(&made.join("a")).unwrap());
        assert!(!hashes.is_intact(Path::new("in/side/b")).unwrap());
    }
}
