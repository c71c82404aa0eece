// SPDX-License-Identifier: GPL-2.0-or-later
//! What a hunt has done so far, in a file that survives its end: a line of JSON that says what it is about, and one for each
//! trial. A line that was cut short by a kill is dropped; its trial is made again.

use super::finding::Tried;
use super::{Hunt, Strategy};
use crate::failure::Failure;
use crate::followed::Ready;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What a hunt is about. Only with the same can it be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Version of this file.
    pub journal: u32,
    /// The experiment's text, with what the command line replaced.
    pub experiment: String,
    /// The flavour.
    pub flavour: String,
    /// Where it hunts; at least one.
    pub guests: Vec<AboutGuest>,
    /// Names of responders whose worst is looked for.
    pub responders: Vec<String>,
    /// Names of strategies.
    pub strategies: Vec<String>,
    /// The seed.
    pub seed: u64,
}

/// One of the guests that a hunt is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutGuest {
    /// What keeps it busy.
    pub load: String,
    /// Of the random numbers that its kernel begins with.
    pub seed: u32,
    /// Key of its snapshot at the warm-up's end.
    pub snapshot: String,
}

impl AboutGuest {
    fn of(ready: &Ready) -> AboutGuest {
        let guest = ready.guest();
        AboutGuest {
            load: guest.contents.load.to_string(),
            seed: guest.seed,
            snapshot: ready.made_with().snapshot,
        }
    }
}

impl About {
    /// A hunt in these guests of a flavour, which are at the warm-up's end; `experiment` is empty where none says more of it.
    pub fn of<'a, 'b: 'a>(
        hunt: &Hunt,
        experiment: &str,
        flavour: String,
        guests: impl Iterator<Item = &'a Ready<'b>>,
    ) -> About {
        About {
            journal: Journal::VERSION,
            experiment: experiment.into(),
            flavour,
            guests: guests.map(AboutGuest::of).collect(),
            responders: hunt.responders.iter().map(|r| r.name().to_string()).collect(),
            strategies: hunt.strategies.iter().map(Strategy::to_string).collect(),
            seed: hunt.seed,
        }
    }

    /// What its guest of this number is called; `None` where that is the only one.
    pub fn guest(&self, number: usize) -> Option<String> {
        let guest = self.guests.get(number).filter(|_| self.guests.len() > 1)?;
        let alike = self.guests.iter().filter(|other| other.load == guest.load).count();
        Some(match alike {
            1 => guest.load.clone(),
            _ => format!("{}, guest seed {}", guest.load, guest.seed),
        })
    }

    /// Its loads, each once, with commas.
    pub fn loads(&self) -> String {
        let mut loads: Vec<&str> = self.guests.iter().map(|guest| &*guest.load).collect();
        loads.dedup();
        loads.join(", ")
    }
}

/// The file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    tried: BTreeMap<u64, Tried>,
}

impl Journal {
    /// The version of the file that is written.
    pub const VERSION: u32 = 9;

    /// Opens the journal at `path` to go on with it, or begins one.
    ///
    /// # Errors
    /// A file that cannot be read or written; one that is about something else, with what differs.
    pub fn open(path: &Path, about: &About) -> Result<Journal, Failure> {
        let refused = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let io = |e: std::io::Error| Failure::unavailable(format!("{}: {e}", path.display()));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).create(true).append(true).open(path).map_err(io)?;
        // Until the file is closed, also by a kill.
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            refused(
                "is being written by another hunt; wait for it, or choose another directory".into(),
            )
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| refused(e.to_string()))?;
        let whole = whole(&text);
        let known = parse(whole).map_err(refused)?;
        let first = known.as_ref().map(|(known, _)| known);
        if let Some(difference) = first.and_then(|known| difference(known, about)) {
            return Err(refused(format!(
                "is of another hunt ({difference}); choose another directory, or hunt as it did"
            )));
        }
        file.set_len(whole.len() as u64).map_err(io)?;
        if first.is_none() {
            write(&mut file, about).map_err(io)?;
        }
        let tried = known.map_or_else(BTreeMap::new, |(_, tried)| tried);
        Ok(Journal { path: path.into(), file, tried })
    }

    /// What a journal holds, without going on with it.
    ///
    /// # Errors
    /// A file that cannot be read, or is no journal of this version.
    pub fn read(path: &Path) -> Result<Contents, Failure> {
        let refused = |why: String| Failure::unavailable(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| refused(e.to_string()))?;
        parse(whole(&text))
            .map_err(refused)?
            .ok_or_else(|| refused("is no journal of a hunt: it is empty; hunt anew".into()))
    }

    /// The trial of this number, if it was made before.
    pub fn tried(&self, number: u64) -> Option<Tried> {
        self.tried.get(&number).cloned()
    }

    /// How many trials it held when it was opened.
    pub fn count(&self) -> usize {
        self.tried.len()
    }

    /// Adds a trial.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&mut self, tried: &Tried) -> Result<(), Failure> {
        write(&mut self.file, tried)
            .map_err(|e| Failure::unavailable(format!("{}: {e}", self.path.display())))
    }
}

/// The lines that were written to their end.
fn whole(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

/// What a journal is about, and its trials by number.
pub type Contents = (About, BTreeMap<u64, Tried>);

/// What the journal holds; `None` where it has no line.
fn parse(text: &str) -> Result<Option<Contents>, String> {
    let mut lines = text.lines();
    let Some(first) = lines.next() else { return Ok(None) };
    let none = |e| format!("is no journal of a hunt: {e}");
    /// The one key that every version has.
    #[derive(Deserialize)]
    struct Any {
        journal: u32,
    }
    let Any { journal } = serde_json::from_str(first).map_err(none)?;
    if journal != Journal::VERSION {
        return Err(format!(
            "has version {journal}, and this onset reads {}; take the onset that wrote it",
            Journal::VERSION
        ));
    }
    let about: About = serde_json::from_str(first).map_err(none)?;
    let tried = lines.map(|line| serde_json::from_str(line).map(|t: Tried| (t.number, t)));
    let tried = tried.collect::<Result<_, _>>();
    Ok(Some((about, tried.map_err(|e| format!("a trial cannot be read: {e}"))?)))
}

/// In one write, so that a line is whole or the last.
fn write(file: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

/// The first thing in which two hunts differ.
fn difference(known: &About, about: &About) -> Option<String> {
    let told = |about: &About| {
        let guests = |of: fn(&AboutGuest) -> String| {
            about.guests.iter().map(of).collect::<Vec<_>>().join(",")
        };
        [
            ("flavour", about.flavour.clone()),
            ("load", guests(|guest| guest.load.clone())),
            ("guest seed", guests(|guest| guest.seed.to_string())),
            ("seed", about.seed.to_string()),
            ("responders", about.responders.join(",")),
            ("strategies", about.strategies.join(",")),
            ("snapshot", guests(|guest| guest.snapshot.clone())),
            ("experiment", about.experiment.clone()),
        ]
    };
    let mut both = told(known).into_iter().zip(told(about));
    let ((what, a), (_, b)) = both.find(|(a, b)| a != b)?;
    Some(match what {
        "experiment" => "its experiment is another".to_string(),
        _ => format!("its {what} is {a}, not {b}"),
    })
}
