// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt that was made before, read from its directory. It may have been killed: all that a hunt knows follows from
//! its trials.

use super::about::About;
use super::journal::{Journal, Say};
use crate::Error;
use crate::followed::CauseShare;
use hunt::{HuntEnd, Knowledge, StrategyName};
use sample::{Disturbance, Nanos};
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The journal's name in a hunt's directory.
pub const JOURNAL: &str = "trials.jsonl";
/// The name of what `--json` prints, as a file of its own.
pub const CONCLUSION: &str = "hunt.json";
/// How long it is at most, in bytes. Chosen: far more than the finds of all responders take with their causes.
const CONCLUSION_MAX: u64 = 256 << 20;

/// The name of the file by which a responder's worst answer can be had again, or the one of this rank below it.
pub fn find_file(responder: &str, rank: usize) -> String {
    match rank {
        0 => format!("{responder}.find.json"),
        rank => format!("{responder}.{}.find.json", rank + 1),
    }
}

/// What a hunt's directory holds.
#[derive(Clone, Debug)]
pub struct PastHunt {
    /// What it was about.
    pub about: About,
    /// What it knew after its last trial.
    pub known: Knowledge,
    /// What triggers at random alone had known, over their own virtual time.
    pub random: Knowledge,
    /// What it came to; `None` where it was killed, or goes on.
    pub conclusion: Option<Conclusion>,
}

/// What a hunt's trials do not tell: how it ended, and its finds as they were explained then.
#[derive(Clone, Debug, Deserialize)]
pub struct Conclusion {
    /// Why.
    pub ended: HuntEnd,
    /// The finds of each responder, the latest first.
    #[serde(default)]
    pub worst: Vec<PastFind>,
}

/// A find at the end of its hunt.
#[derive(Clone, Debug, Deserialize)]
pub struct PastFind {
    /// Who answered.
    pub responder: String,
    /// How late.
    pub latency_ns: Nanos,
    /// Its file, as it was called from where the hunt was run.
    pub find: Option<PathBuf>,
    /// Who chose the instant.
    pub at_strategy: StrategyName,
    /// Number of the trial.
    pub trial: u64,
    /// In which of the hunt's guests.
    pub guest: usize,
    /// What disturbed until the answer.
    pub disturbances: Vec<Disturbance>,
    /// Where its time went, the longest first; empty where that is not known.
    pub causes: Vec<CauseShare>,
}

impl PastHunt {
    /// Whether this is the directory of a hunt.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(JOURNAL).is_file()
    }

    /// Reads it.
    ///
    /// # Errors
    /// A journal or a conclusion that is damaged or of another version; a hunt whose first trial did not end.
    pub fn read(directory: &Path, say: Say) -> Result<PastHunt, Error> {
        let (about, trials) = Journal::read(&directory.join(JOURNAL), say)?;
        let (mut known, mut random) = (Knowledge::default(), Knowledge::default());
        // Trials end in any order; what comes after one that is not there did not count yet.
        let in_order =
            trials.values().zip(0..).take_while(|(result, number)| result.number == *number);
        for (result, _) in in_order {
            known.take(result);
            if result.strategy.strategy().is_baseline() {
                random.take(result);
            }
        }
        if known.trials == 0 {
            let directory = directory.display();
            return Err(Error::Unfit(format!(
                "the hunt in {directory} has no trial that ended; go on with it: onset hunt … --directory {directory}"
            )));
        }
        Ok(PastHunt { about, known, random, conclusion: conclusion(&directory.join(CONCLUSION))? })
    }
}

fn conclusion(path: &Path) -> Result<Option<Conclusion>, Error> {
    let damaged = |why: String| {
        let path = path.display();
        Error::File(format!("{path}: {why}; remove it, the trials tell the rest"))
    };
    let read = confined::directory_of(path).and_then(|(dir, name)| dir.read(name, CONCLUSION_MAX));
    match read {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(damaged(e.to_string())),
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| damaged(e.to_string())),
    }
}
