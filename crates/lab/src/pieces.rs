// SPDX-License-Identifier: GPL-2.0-or-later
//! The directory of a work that is made of pieces, such as an atlas: a file that says what the work is about, and a
//! file for each piece that is done. A file appears whole or not at all. So a kill or a power loss costs the pieces
//! that were under way, and no other.

use crate::Error;
use crate::hunting::not_locked;
use confined::Directory as Confined;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ABOUT_FILE: &str = "about.json";
/// How long one of several commands waits for the others, each of which only looks at what the work is about.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a file. A stressor of an atlas takes some 100 kB.
const BYTES_MAX: u64 = 64 << 20;

/// A piece of a work.
pub trait Piece: Serialize + DeserializeOwned {
    /// What a work of such pieces is about. Only with the same can it be gone on with.
    type About: Serialize + DeserializeOwned;
    /// The word for such a work.
    const WORK: &'static str;
    /// The option that names the directory of the work.
    const OPTION: &'static str;
    /// The name of the directory that holds the pieces.
    const PLACE: &'static str;

    /// The piece's name, which is also that of its file.
    fn name(&self) -> String;
}

/// The directory, which no other command may fill meanwhile, unless each has a share of the pieces.
#[derive(Debug)]
pub struct Directory<P> {
    pieces: Confined,
    path: PathBuf,
    /// It is locked as long as this lives.
    _about: Option<File>,
    of: PhantomData<P>,
}

impl<P: Piece> Directory<P> {
    /// Opens the directory to go on with the work in it, or makes a new one.
    ///
    /// # Errors
    /// If the directory cannot be read or written, is in use, or is of another work, with what differs.
    pub fn open(path: &Path, about: &P::About) -> Result<Directory<P>, Error> {
        Directory::opened(path, about, |file| confined::try_lock(file))
    }

    /// The same for one of several commands that fill the directory at once, each with other pieces.
    ///
    /// # Errors
    /// Those of [`Directory::open`].
    pub fn share(path: &Path, about: &P::About) -> Result<Directory<P>, Error> {
        let patient = |file: &File| {
            let until = Instant::now() + PATIENCE;
            loop {
                match confined::try_lock(file) {
                    Err(e)
                        if e.kind() == ErrorKind::WouldBlock
                            && Instant::now() < until
                            && !work::is_cancelled() =>
                    {
                        std::thread::sleep(work::POLL);
                    }
                    locked => return locked,
                }
            }
        };
        let opened = Directory::opened(path, about, patient)?;
        Ok(Directory { _about: None, ..opened })
    }

    fn opened(
        path: &Path,
        about: &P::About,
        lock: impl Fn(&File) -> io::Result<()>,
    ) -> Result<Directory<P>, Error> {
        let io = |e: io::Error| Error::File(format!("{}: {e}", path.display()));
        let refused = |why: String| Error::Unfit(format!("{}: {why}", path.display()));
        std::fs::create_dir_all(path).map_err(io)?;
        let top = Confined::open(path).map_err(io)?;
        let mut file = top.edit(ABOUT_FILE).map_err(io)?;
        lock(&file).map_err(|e| {
            refused(not_locked(&e, &format!("another command fills this {}", P::WORK)))
        })?;
        let mut text = String::new();
        (&mut file).take(BYTES_MAX).read_to_string(&mut text).map_err(io)?;
        if text.is_empty() {
            if top.directory(P::PLACE).is_ok() {
                return Err(refused(format!(
                    "has results and no {ABOUT_FILE}, which says of what; choose another directory"
                )));
            }
            let line = serde_json::to_string(about).expect("plain data") + "\n";
            // Its name has to last too: a stressor's file without it would belong to any atlas.
            let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
            written.and_then(|()| top.sync()).map_err(io)?;
        } else {
            let known: P::About = serde_json::from_str(&text).map_err(|e| {
                refused(format!(
                    "is no {} that this onset can go on with ({ABOUT_FILE}: {e}); choose another directory",
                    P::WORK
                ))
            })?;
            if let Some(difference) = difference(&known, about) {
                return Err(refused(format!(
                    "is of another {} ({difference}); choose another directory by {}, or remove this one",
                    P::WORK,
                    P::OPTION
                )));
            }
        }
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let pieces = match top.directory(P::PLACE) {
            Err(e) if e.kind() == ErrorKind::NotFound => top.make_directory(P::PLACE),
            other => other,
        };
        let pieces = pieces.map_err(io)?;
        Ok(Directory { pieces, path: path.into(), _about: Some(file), of: PhantomData })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the piece is done. A file that cannot be read or was damaged counts as none, and the piece is made
    /// again.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The piece of this name, if it is done.
    pub fn get(&self, name: &str) -> Option<P> {
        let bytes = self.pieces.read(file_of(name), BYTES_MAX).ok()?;
        let piece: P = serde_json::from_slice(&bytes).ok()?;
        (piece.name() == name).then_some(piece)
    }

    /// Keeps a piece.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, piece: &P) -> Result<(), Error> {
        let name = file_of(&piece.name());
        let line = serde_json::to_string(piece).expect("plain data") + "\n";
        let failed = |e| Error::File(format!("{}: {e}", self.pieces.at(&name).display()));
        self.pieces.replace(&name, line.as_bytes()).map_err(failed)
    }
}

fn file_of(name: &str) -> String {
    format!("{name}.json")
}

/// What the one says otherwise than the other: the first key, with both values.
fn difference<A: Serialize>(known: &A, asked: &A) -> Option<String> {
    let [known, asked] =
        [known, asked].map(|about| serde_json::to_value(about).expect("plain data"));
    let keys = known.as_object()?.iter();
    let mut differing = keys.filter(|(key, value)| asked.get(key.as_str()) != Some(value));
    differing.next().map(|(key, value)| {
        let asked = asked.get(key.as_str()).unwrap_or(&Value::Null);
        format!("its {key} is {value}, and now it would be {asked}")
    })
}

#[cfg(test)]
mod tests {
    use super::ABOUT_FILE;
    use crate::atlas::examples::{about, worked};
    use crate::atlas::{About, Tried};
    use sample::Nanos;
    use std::fs;

    type Directory = super::Directory<Tried>;

    #[test]
    fn what_was_kept_is_there_when_it_is_opened_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let directory = Directory::open(&path, &about()).unwrap();
        assert!(!directory.has("mmap"));
        directory.keep(&worked("mmap", 7, vec![])).unwrap();
        drop(directory);
        let again = Directory::open(&path, &about()).unwrap();
        assert_eq!(again.get("mmap"), Some(worked("mmap", 7, vec![])));
    }

    #[test]
    fn a_damaged_file_or_one_of_another_stressor_counts_as_not_tried() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path(), &about()).unwrap();
        directory.keep(&worked("mmap", 7, vec![])).unwrap();
        let file = root.path().join("stressors/mmap.json");
        fs::copy(&file, root.path().join("stressors/fork.json")).unwrap();
        assert!(!directory.has("fork"));
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert!(!directory.has("mmap"));
        directory.keep(&worked("mmap", 7, vec![])).unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole);
    }

    #[test]
    fn another_atlas_is_refused_with_what_differs_and_stays_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        drop(Directory::open(root.path(), &about()).unwrap());
        let before = fs::read(root.path().join(ABOUT_FILE)).unwrap();
        let other = About { duration_ns: Nanos(5), ..about() };
        let why = Directory::open(root.path(), &other).unwrap_err().to_string();
        assert!(why.contains("its duration_ns is 200000000, and now it would be 5"), "{why}");
        fs::write(root.path().join(ABOUT_FILE), "my notes").unwrap();
        let why = Directory::open(root.path(), &about()).unwrap_err().to_string();
        assert!(why.contains("is no atlas"), "{why}");
        fs::write(root.path().join(ABOUT_FILE), before).unwrap();
        Directory::open(root.path(), &about()).unwrap();
    }

    #[test]
    fn two_commands_do_not_fill_one_atlas_at_once() {
        let root = tempfile::tempdir().unwrap();
        let first = Directory::open(root.path(), &about()).unwrap();
        let why = Directory::open(root.path(), &about()).unwrap_err().to_string();
        assert!(why.contains("another command"), "{why}");
        drop(first);
        Directory::open(root.path(), &about()).unwrap();
        let shares = [1, 2].map(|_| Directory::share(root.path(), &about()).unwrap());
        shares[0].keep(&worked("mmap", 7, vec![])).unwrap();
        assert!(shares[1].has("mmap"));
    }
}
