// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads a hunt that was made before from its directory. The hunt may have been killed: all its knowledge follows from
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

/// The name of the journal in a hunt's directory.
pub const JOURNAL: &str = "trials.jsonl";
/// The name of the file with the output of `--json`.
pub const CONCLUSION: &str = "hunt.json";
/// The most bytes of that file. The number is chosen: far more than the finds of all responders take with their causes.
const CONCLUSION_MAX: u64 = 256 << 20;

/// The name of the file that replays a responder's worst answer, or the answer of this rank below it.
pub fn find_file(responder: &str, rank: usize) -> String {
    match rank {
        0 => format!("{responder}.find.json"),
        rank => format!("{responder}.{}.find.json", rank + 1),
    }
}

/// The content of a hunt's directory.
#[derive(Clone, Debug)]
pub struct PastHunt {
    /// The subject of the hunt.
    pub about: About,
    /// The hunt's knowledge after its last trial.
    pub known: Knowledge,
    /// The knowledge that random triggers alone would have given, over their own virtual time.
    pub random: Knowledge,
    /// The conclusion of the hunt. `None` if it was killed, or goes on.
    pub conclusion: Option<Conclusion>,
}

/// What a hunt's trials do not tell: how it ended, and its finds as they were explained then.
#[derive(Clone, Debug, Deserialize)]
pub struct Conclusion {
    /// Why the hunt ended.
    pub ended: HuntEnd,
    /// The finds of each responder, the latest first.
    #[serde(default)]
    pub worst: Vec<PastFind>,
}

/// A find at the end of its hunt.
#[derive(Clone, Debug, Deserialize)]
pub struct PastFind {
    /// The responder.
    pub responder: String,
    /// How late the answer was.
    pub latency_ns: Nanos,
    /// The find's file, by its path from where the hunt was run.
    pub find: Option<PathBuf>,
    /// The strategy that chose the instant.
    pub at_strategy: StrategyName,
    /// The number of the trial.
    pub trial: u64,
    /// The number of the hunt's guest.
    pub guest: usize,
    /// The disturbances until the answer.
    pub disturbances: Vec<Disturbance>,
    /// Where the answer's time went, the longest first. Empty if this is not known.
    pub causes: Vec<CauseShare>,
}

impl PastHunt {
    /// Whether this is the directory of a hunt.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(JOURNAL).is_file()
    }

    /// Reads a hunt.
    ///
    /// # Errors
    /// If the journal or the conclusion is damaged or of another version, or if the hunt's first trial did not end.
    pub fn read(directory: &Path, say: Say) -> Result<PastHunt, Error> {
        let (about, trials) = Journal::read(&directory.join(JOURNAL), say)?;
        let (mut known, mut random) = (Knowledge::default(), Knowledge::default());
        // Trials end in any order. A trial after a missing one did not count yet.
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
