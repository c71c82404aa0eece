// SPDX-License-Identifier: GPL-2.0-or-later
//! The journal of a hunt: a file that keeps what the hunt has done so far. It has a line of JSON that says what the
//! hunt is about, and a line for each trial.
//!
//! A kill or a power loss may damage the end of the file. Damaged lines at the end are dropped, and their trials are
//! made again. A journal with damage before whole lines is refused.

use super::about::{About, difference};
use crate::Error;
use hunt::TrialResult;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Hears what is said to people while something takes long.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// The beginning of a journal of any version.
const BEGINNING: &[u8] = b"{\"journal\":";
/// The most bytes of a journal. A trial takes some 400, and a hunt of a week makes ten million.
pub(super) const BYTES_MAX: u64 = 8 << 30;

/// The file of a journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    results: BTreeMap<u64, TrialResult>,
    /// The number of bytes in whole lines.
    whole: u64,
    /// Whether a line could not be written. A later line would stand behind half of it.
    is_broken: bool,
}

impl Journal {
    /// The version of the file that this version writes.
    pub const VERSION: u32 = About::JOURNAL;

    /// Opens the journal at `path` to go on with it, or begins a new one. A damaged end is cut off, and `say` hears of
    /// it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is damaged before its end. If it is about another hunt, the text says
    /// what differs.
    pub fn open(path: &Path, about: &About, say: Say) -> Result<Journal, Error> {
        let refused = |why: String| Error::Unfit(format!("{}: {why}", path.display()));
        let io = |e: std::io::Error| Error::File(format!("{}: {e}", path.display()));
        let (directory, name) = confined::directory_of(path).map_err(io)?;
        let mut file = directory.edit(name).map_err(io)?;
        // The lock lasts until the file is closed, also by a kill.
        confined::try_lock(&file).map_err(|e| refused(not_locked(&e, "another hunt writes it")))?;
        let bytes =
            file.try_clone().and_then(|file| confined::bounded(file, BYTES_MAX)).map_err(io)?;
        let Parsed { contents, whole } = parse(&bytes).map_err(refused)?;
        let first = contents.as_ref().map(|(known, _)| known);
        if let Some(difference) = first.and_then(|known| difference(known, about)) {
            return Err(refused(format!(
                "is of another hunt ({difference}); choose another directory, or hunt as it did"
            )));
        }
        let is_new = first.is_none();
        say_what_is_left_out(path, &bytes[whole..], say);
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let results = contents.map_or_else(BTreeMap::new, |(_, results)| results);
        let mut journal =
            Journal { path: path.into(), file, results, whole: whole as u64, is_broken: false };
        if is_new {
            journal.add(&line(about), File::write_all)?;
        }
        Ok(journal)
    }

    /// The content of a journal, without going on with it.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged before its end, or is no journal of this version.
    pub fn read(path: &Path, say: Say) -> Result<Contents, Error> {
        let refused = |why: String| Error::File(format!("{}: {why}", path.display()));
        let bytes = confined::directory_of(path).and_then(|(dir, name)| dir.read(name, BYTES_MAX));
        let bytes = bytes.map_err(|e| refused(e.to_string()))?;
        let Parsed { contents, whole } = parse(&bytes).map_err(refused)?;
        say_what_is_left_out(path, &bytes[whole..], say);
        contents.ok_or_else(|| refused("is no journal of a hunt: it is empty; hunt anew".into()))
    }

    /// The result of the trial with this number, if the trial was made before.
    pub fn result(&self, number: u64) -> Option<TrialResult> {
        self.results.get(&number).cloned()
    }

    /// The number of trials that the journal had when it was opened.
    pub fn count(&self) -> usize {
        self.results.len()
    }

    /// Whether a trial of before came out otherwise in a fork.
    pub fn has_other_forks(&self) -> bool {
        self.results.values().any(|result| result.forked_otherwise)
    }

    /// Adds the result of a trial.
    ///
    /// # Errors
    /// If the file cannot be written. The written part of the trial is cut off again, and nothing is added any more.
    pub fn append(&mut self, tried: &TrialResult) -> Result<(), Error> {
        self.add(&line(tried), File::write_all)
    }

    /// Adds a line.
    fn add(
        &mut self,
        line: &[u8],
        write: impl FnOnce(&mut File, &[u8]) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let path = self.path.display();
        if self.is_broken {
            let why = "a line before could not be written";
            return Err(Error::File(format!("{path}: {why}")));
        }
        if let Err(e) = write(&mut self.file, line) {
            self.is_broken = true;
            // If this fails, too, the file ends with half a line, which is cut off when the file is opened again.
            let _ = self.file.set_len(self.whole);
            return Err(Error::File(format!("{path}: {e}")));
        }
        self.whole += line.len() as u64;
        Ok(())
    }
}

/// Why a file is not locked, if `others` may have locked it.
pub fn not_locked(e: &std::io::Error, others: &str) -> String {
    match e.kind() {
        ErrorKind::WouldBlock => format!("{others}; wait for it, or choose another directory"),
        _ => format!(
            "cannot be locked: {e}; choose a directory on a file system that has locks (flock), or mount this one with them"
        ),
    }
}

/// The subject of the hunt, and the trials by number.
pub type Contents = (About, BTreeMap<u64, TrialResult>);

/// A journal that was read.
struct Parsed {
    /// The content. `None` if the file has no whole line.
    contents: Option<Contents>,
    /// The number of bytes before a damaged end.
    whole: usize,
}

fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let Some(first) = lines.next().filter(|line| line.ends_with(b"\n")) else {
        // A hunt was killed while it wrote the first line. Or this is somebody else's file, which stays as it is.
        return match BEGINNING.starts_with(&bytes[..bytes.len().min(BEGINNING.len())]) {
            true => Ok(Parsed { contents: None, whole: 0 }),
            false => Err("is no journal of a hunt; choose another directory".into()),
        };
    };
    let none = |e| format!("is no journal of a hunt: {e}");
    /// The one key that a journal of every version has.
    #[derive(Deserialize)]
    struct Any {
        journal: u32,
    }
    let Any { journal } = serde_json::from_slice(first).map_err(none)?;
    if journal != Journal::VERSION {
        return Err(format!(
            "has version {journal}, and this onset reads {}; take the onset that wrote it",
            Journal::VERSION
        ));
    }
    let about: About = serde_json::from_slice(first).map_err(none)?;
    let mut results = BTreeMap::new();
    let (mut whole, mut damaged) = (first.len(), None);
    for (line, number) in lines.zip(2..) {
        if !is_whole(line) {
            damaged.get_or_insert(number);
            continue;
        }
        if let Some(damaged) = damaged {
            return Err(format!(
                "line {damaged} is damaged, and line {number} behind it is whole, which neither a \
                 kill nor a power loss does; delete line {damaged}, and its trial is made again, or \
                 choose another directory"
            ));
        }
        let trial: TrialResult = serde_json::from_slice(line).map_err(|e| {
            format!("line {number}: a trial cannot be read: {e}; delete it, and it is made again")
        })?;
        let begins = [Some(trial.begin), trial.died.as_ref().map(|died| died.begin)];
        if begins.into_iter().flatten().any(|begin| begin.guest >= about.guests.len()) {
            return Err(format!(
                "line {number}: a trial is of a guest that the hunt does not have; delete it, and it is made again"
            ));
        }
        results.insert(trial.number, trial);
        whole += line.len();
    }
    Ok(Parsed { contents: Some((about, results)), whole })
}

/// Whether a line was written to its end and still is meaningful text.
fn is_whole(line: &[u8]) -> bool {
    line.ends_with(b"\n") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn say_what_is_left_out(path: &Path, end: &[u8], say: Say) {
    if !end.is_empty() {
        say(&format!(
            "! {}: its last {} bytes are no whole lines, as after a kill or a power loss, and are \
             left out; their trials count as not made",
            path.display(),
            end.len()
        ));
    }
}

/// What the bytes of a whole journal say.
pub(super) fn contents(bytes: &[u8]) -> Result<Contents, String> {
    let Parsed { contents, whole } = parse(bytes)?;
    contents.filter(|_| whole == bytes.len()).ok_or_else(|| "it was cut off".into())
}

/// The bytes of a journal.
pub(super) fn bytes<'a>(about: &About, results: impl Iterator<Item = &'a TrialResult>) -> Vec<u8> {
    let mut bytes = line(about);
    results.for_each(|result| bytes.extend(line(result)));
    bytes
}

/// The line for a value. It is written at once, so a line is whole or is the last one.
fn line(of: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(of).expect("plain data");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::super::tests::about;
    use super::*;
    use hunt::examples::{hunt, result};
    use hunt::{GuestDeath, Knowledge};
    use sample::{Losses, Nanos};
    use std::fs;
    use std::io::Error;

    /// A journal with the first trials of a hunt, and these trials.
    fn journal(directory: &Path) -> (PathBuf, Vec<TrialResult>) {
        let path = directory.join("journal");
        let trials = hunt(1, 2).round(0, &Knowledge::default());
        let trials: Vec<TrialResult> = trials.iter().map(result).collect();
        let mut journal = Journal::open(&path, &about(5), &|_| ()).unwrap();
        trials.iter().for_each(|tried| journal.append(tried).unwrap());
        (path, trials)
    }

    fn counted(path: &Path) -> usize {
        let read = Journal::read(path, &|_| ()).unwrap().1.len();
        assert_eq!(Journal::open(path, &about(5), &|_| ()).unwrap().count(), read);
        read
    }

    #[test]
    fn all_that_a_dead_guest_said_is_there_when_a_hunt_is_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut trials) = journal(directory.path());
        let console = "Oops: 0002\r\n \u{1b}[1mä\u{0}\r\n".to_string();
        trials[0].died = Some(GuestDeath { console, ..GuestDeath::default() });
        trials[0].number = 7;
        Journal::open(&path, &about(5), &|_| ()).unwrap().append(&trials[0]).unwrap();
        let again = Journal::open(&path, &about(5), &|_| ()).unwrap();
        assert_eq!((again.count(), again.result(7).as_ref()), (3, Some(&trials[0])));
    }

    #[test]
    fn numbers_that_no_hunt_comes_to_stay_the_most_that_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let (_, trials) = journal(directory.path());
        let most = Nanos(u64::MAX);
        let mut tried = TrialResult { triggers: u64::MAX, virtual_ns: most, ..trials[0].clone() };
        tried.way_ns = most;
        tried.instants = vec![most];
        tried.begin.after = most;
        tried.late.values_mut().flatten().for_each(|late| late.latency_ns = most);
        tried.losses.insert("task".into(), Losses { unanswered: u64::MAX, ..Losses::default() });
        let mut known = Knowledge::default();
        (0..3).for_each(|_| known.take(&tried));
        assert_eq!((known.triggers, known.virtual_ns), (u64::MAX, most));
        assert_eq!(known.losses["task"].total(), u64::MAX);
        let mut shares = known.by_guest().into_values().chain(known.by_strategy().into_values());
        assert!(shares.all(|share| share.virtual_ns == most));
    }

    #[test]
    fn a_file_that_is_no_journal_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        for theirs in ["my notes", "{\"a\": 1}", "{\"journal\"", "two\nlines\n", "\0"] {
            fs::write(&path, theirs).unwrap();
            let opened = Journal::open(&path, &about(5), &|_| ());
            // The beginning of our own line, as a kill leaves it, is replaced by a new journal.
            assert_eq!(opened.is_ok(), BEGINNING.starts_with(theirs.as_bytes()), "{theirs:?}");
            if let Err(refused) = opened {
                assert!(refused.to_string().contains("is no journal of a hunt"), "{}", refused);
                assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
            }
        }
        let victim = directory.path().join("victim");
        for text in ["", "{\"jour"] {
            fs::write(&victim, text).unwrap();
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(&victim, &path).unwrap();
            assert!(Journal::open(&path, &about(5), &|_| ()).is_err());
            assert_eq!(fs::read_to_string(&victim).unwrap(), text);
        }
    }

    #[test]
    fn nothing_is_written_behind_half_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let (path, trials) = journal(directory.path());
        let before = fs::read(&path).unwrap();
        let mut journal = Journal::open(&path, &about(5), &|_| ()).unwrap();
        let full = |file: &mut File, line: &[u8]| {
            file.write_all(&line[..line.len() / 2])?;
            Err(Error::other("no space left"))
        };
        let failure = journal.add(&line(&trials[0]), full).unwrap_err();
        assert!(failure.to_string().contains("no space left"), "{}", failure);
        assert_eq!(fs::read(&path).unwrap(), before);
        journal.append(&trials[0]).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_damaged_end_is_cut_off_and_its_trials_are_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let (path, trials) = journal(directory.path());
        let whole = fs::read(&path).unwrap();
        assert_eq!((trials.len(), counted(&path)), (2, 2));
        let torn = whole[..whole.len() - 20].to_vec();
        let ended = [&whole[..whole.len() - 20], b"\n"].concat();
        let zeros = [&torn[..], &[0; 4096]].concat();
        let zero_lines = [&torn[..], b"\0\0\n\0\n"].concat();
        let no_text = [&torn[..], b"\xff\xfe\n"].concat();
        for damaged in [torn, ended, zeros, zero_lines, no_text] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(counted(&path), 1);
            Journal::open(&path, &about(5), &|_| ()).unwrap().append(&trials[1]).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        fs::write(&path, [&whole[..], &[0; 100]].concat()).unwrap();
        assert_eq!(counted(&path), 2);
        fs::write(&path, &whole[..10]).unwrap();
        assert_eq!(Journal::open(&path, &about(5), &|_| ()).unwrap().count(), 0);
    }

    #[test]
    fn damage_before_whole_lines_is_refused_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let (path, _) = journal(directory.path());
        let whole = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let refused = |second: &[u8]| {
            let lines = [lines[0].as_bytes(), second, lines[2].as_bytes(), b""];
            fs::write(&path, lines.join(&b'\n')).unwrap();
            Journal::open(&path, &about(5), &|_| ()).unwrap_err().to_string()
        };
        for damaged in [&lines[1].as_bytes()[..30], b"\xff", b"\0\0"] {
            let why = refused(damaged);
            assert!(why.contains("line 2 is damaged") && why.contains("delete line 2"), "{why}");
        }
        let why = refused(b"{\"number\":0}");
        assert!(why.contains("line 2: a trial cannot be read"), "{why}");
    }
}
