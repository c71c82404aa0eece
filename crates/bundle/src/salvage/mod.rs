// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes bundles from the remains of killed commands, with the same steps that end a run in order.
//!
//! Several commands may do so at once. Each claims partial directories by their lock, while it holds the lock of the
//! store. A later command finds these directories locked, or gone. A command that is killed meanwhile leaves the
//! journal as it was, for the next command. A directory that cannot become a bundle gets another name, so that it stops
//! no command.

use super::journal::{Journal, has_entry};
use super::manifest::{Conclusion, Manifest, SCHEMA};
use super::writer::{BEGUN, Begun, BundleWriter, JOURNAL, PARTIAL, Partial, lock_root};
use super::{BundleError, FILE_MAX, RunId, SAMPLES, Warning};
use confined::Directory;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The beginning of the names of directories that cannot become a bundle.
const ASIDE: &str = ".aside-";

/// A directory that could not become a bundle, and why. Displays as a sentence for the user.
#[derive(Debug)]
pub struct Left {
    /// Where it is now.
    pub place: PathBuf,
    /// Why.
    pub why: String,
    /// Whether it was set aside for good; else the next command tries again.
    pub is_aside: bool,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Left { place, why, is_aside } = self;
        let place = place.display();
        match is_aside {
            true => write!(
                f,
                "{place}: onset cannot make a bundle from what a command left here: {why}; onset renamed the directory, and you may remove it"
            ),
            false => write!(
                f,
                "{place}: onset could not make a bundle yet from what a command left here: {why}; the next onset command tries again"
            ),
        }
    }
}

/// Makes bundles of what killed commands left in the store at `root`, and removes what nothing was measured
/// in; leaves what somebody is writing, what another user began, and what an onset of another version began. Where
/// there is nothing of the kind, or no store, it only looks. Returns what could not be made a bundle of.
///
/// # Errors
/// [`BundleError::Io`] where the store cannot be read or locked, as one that is read-only.
pub fn salvage(root: &Path) -> Result<Vec<Left>, BundleError> {
    let store = match Directory::open(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(BundleError::io("list", root))?,
    };
    if partial_directories(&store)?.is_empty() {
        return Ok(Vec::new());
    }
    let mut left = Vec::new();
    let claimed: Vec<(Partial, RunId)> = {
        let _exclusive = lock_root(&store)?;
        // Again: what was seen before may be finished meanwhile, or be somebody's who was about to lock it.
        let found = partial_directories(&store)?.into_iter();
        let claimed = found.filter_map(|run| match claim(root, &run) {
            Ok(partial) => Some((partial?, run)),
            Err(aside) => {
                left.push(aside);
                None
            }
        });
        claimed.collect()
    };
    left.extend(claimed.into_iter().filter_map(|(partial, run)| finish(partial, &run)));
    Ok(left)
}

/// The runs whose directories are not yet a bundle, and are this user's.
fn partial_directories(store: &Directory) -> Result<Vec<RunId>, BundleError> {
    let names = store.names().map_err(BundleError::io("list", store.path()))?;
    let runs = names.iter().filter_map(|name| name.to_str()?.strip_prefix(PARTIAL)?.parse().ok());
    let is_ours =
        |run: &RunId| store.directory(format!("{PARTIAL}{run}")).is_ok_and(|dir| dir.is_mine());
    Ok(runs.filter(is_ours).collect())
}

/// The directory, where no living command has it. One whose `samples.parquet` is none that onset made is set aside.
fn claim(root: &Path, run: &RunId) -> Result<Option<Partial>, Left> {
    let name = format!("{PARTIAL}{run}");
    let Ok(root) = Directory::open(root) else { return Ok(None) };
    let Ok(directory) = root.directory(&name) else { return Ok(None) };
    // Made where its writer was killed between the directory and its first file: both are made under the lock of
    // the store, which is held.
    let samples = match directory.edit(SAMPLES) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            return Err(set_aside(&root, &name, format!("{SAMPLES} {e}")));
        }
        Err(_) => return Ok(None),
        Ok(samples) => samples,
    };
    // Its writer may have finished and renamed it before it let go of the lock.
    let is_free = confined::try_lock(&samples).is_ok() && directory.is_at_its_path();
    Ok(is_free.then_some(Partial { root, directory, name, unwanted: false, samples }))
}

/// Gives what cannot become a bundle another name.
fn set_aside(root: &Directory, name: &str, why: String) -> Left {
    let run = name.strip_prefix(PARTIAL).unwrap_or(name);
    let names = (1..=100).map(|n| match n {
        1 => format!("{ASIDE}{run}"),
        n => format!("{ASIDE}{run}.{n}"),
    });
    for aside in names {
        match root.rename(name, &aside) {
            Ok(()) => return Left { place: root.at(aside), why, is_aside: true },
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => break,
        }
    }
    Left { place: root.at(name), why, is_aside: false }
}

/// What can be done with a claimed directory.
enum Found {
    /// A run that was begun.
    Begun(Box<Begun>),
    /// A bundle that only lacks its name.
    Whole,
    /// Nothing was measured.
    Debris,
    /// What was measured cannot be told.
    Unfit(String),
    /// An onset of another version began it, and alone can read it.
    Foreign,
}

fn look(dir: &Directory, run: &RunId) -> Result<Found, BundleError> {
    /// The one key that every schema has.
    #[derive(Deserialize)]
    struct Any {
        schema: u64,
    }
    let bytes = match dir.read(BEGUN, FILE_MAX) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let whole = Manifest::read_in(dir).is_ok_and(|manifest| manifest.run == *run);
            return Ok(if whole {
                Found::Whole
            } else {
                without_beginning(dir, "begun.json is missing")
            });
        }
        read => read.map_err(BundleError::io("read", &dir.at(BEGUN)))?,
    };
    // What cannot be read was being written when its command was killed.
    let Ok(Any { schema }) = serde_json::from_slice(&bytes) else {
        return Ok(without_beginning(dir, "begun.json is damaged"));
    };
    if schema != SCHEMA {
        return Ok(Found::Foreign);
    }
    Ok(match serde_json::from_slice::<Begun>(&bytes) {
        Ok(begun) if begun.run != *run => {
            Found::Unfit(format!("begun.json is of the run {}", begun.run))
        }
        Ok(begun) if begun.is_sound() => Found::Begun(Box::new(begun)),
        Ok(_) => Found::Unfit("begun.json names a series twice, or too many".into()),
        Err(e) => Found::Unfit(format!("begun.json is damaged: {e}")),
    })
}

/// Nothing had been measured where the journal has no entry: it is written after `begun.json`.
fn without_beginning(dir: &Directory, why: &str) -> Found {
    match dir.file(JOURNAL).map(|journal| has_entry(&journal)) {
        Ok(Ok(true) | Err(_)) => Found::Unfit(why.into()),
        _ => Found::Debris,
    }
}

/// Does it; returns what could not be made a bundle of.
fn finish(mut partial: Partial, run: &RunId) -> Option<Left> {
    let (store, name) = (partial.root.path().to_owned(), partial.name.clone());
    let aside = |why| match Directory::open(&store) {
        Ok(root) => set_aside(&root, &name, why),
        Err(_) => Left { place: store.join(&name), why, is_aside: false },
    };
    let done = match look(&partial.directory, run) {
        Ok(Found::Foreign) => return None,
        Ok(Found::Debris) => {
            partial.unwanted = true;
            return None;
        }
        Ok(Found::Unfit(why)) => return Some(aside(why)),
        Ok(Found::Whole) => partial.publish(run).map(drop),
        Ok(Found::Begun(begun)) => conclude(partial, *begun),
        Err(e) => Err(e),
    };
    match done {
        Ok(()) => None,
        Err(e @ BundleError::Exists { .. }) => Some(aside(e.to_string())),
        Err(e) => Some(Left { place: store.join(&name), why: e.to_string(), is_aside: false }),
    }
}

/// Makes the bundle of a killed run, where there is at least one observation.
fn conclude(partial: Partial, begun: Begun) -> Result<(), BundleError> {
    let reading = BundleError::io("read", &partial.directory.at(JOURNAL));
    let journal = match partial.directory.file(JOURNAL) {
        // Its writer was killed before it made one.
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map_err(reading)?),
    };
    let mut partial = partial;
    let Some(journal) = journal else {
        partial.unwanted = true;
        return Ok(());
    };
    let mut writer = BundleWriter::over(partial, &begun, Journal::new(journal));
    if writer.replay()? == 0 {
        writer.give_up();
        return Ok(());
    }
    let mut warnings = begun.warnings;
    warnings.push(Warning::Killed);
    let conclusion = Conclusion::of(&writer.summaries(), begun.limits, warnings);
    match writer.finish(begun.about, conclusion, false) {
        Ok(_) | Err(BundleError::NotDurable { .. }) => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
