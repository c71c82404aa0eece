// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes bundles from the remains of killed commands, with the same steps that end a run in order.
//!
//! Several commands may do so at once. Each claims partial directories by their lock, while it holds the lock of the
//! store. A later command finds these directories locked, or gone. A command that is killed meanwhile leaves the
//! journal as it was, for the next command. A directory that cannot become a bundle gets another name, so that it stops
//! no command.

use super::journal::{Journal, has_entry};
use super::manifest::{Conclusion, Manifest, READ};
use super::writer::{BEGUN, Begun, BundleWriter, JOURNAL, PARTIAL, Partial, lock_root};
use super::{BundleError, FILE_MAX, RunId, SAMPLES, Warning};
use confined::Directory;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The beginning of the names of directories that cannot become a bundle.
const ASIDE: &str = ".aside-";

/// A directory that could not become a bundle, and the reason. Displays as a sentence for the user.
#[derive(Debug)]
pub struct Left {
    /// The present place of the directory.
    pub place: PathBuf,
    /// The reason.
    pub why: String,
    /// Whether the directory was set aside for good. Otherwise the next command tries again.
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

/// Makes bundles from the remains of killed commands in the store at `root`. Removes directories in which nothing was
/// measured. The function leaves a directory that somebody is writing, that another user began, or that an onset of
/// another version began. If there are no remains, or no store, it only looks. Returns the directories that could not
/// become a bundle.
///
/// # Errors
/// [`BundleError::Io`] if the store cannot be read or locked, for example because it is read-only.
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
        // Looks again: a directory of the first look may be finished by now, or belong to somebody who was about to
        // lock it.
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

/// The runs of this user whose directories are not yet a bundle.
fn partial_directories(store: &Directory) -> Result<Vec<RunId>, BundleError> {
    let names = store.names().map_err(BundleError::io("list", store.path()))?;
    let runs = names.iter().filter_map(|name| name.to_str()?.strip_prefix(PARTIAL)?.parse().ok());
    let is_ours =
        |run: &RunId| store.directory(format!("{PARTIAL}{run}")).is_ok_and(|dir| dir.is_mine());
    Ok(runs.filter(is_ours).collect())
}

/// Claims the directory if no living command has it. A directory whose `samples.parquet` onset did not make is set
/// aside.
fn claim(root: &Path, run: &RunId) -> Result<Option<Partial>, Left> {
    let name = format!("{PARTIAL}{run}");
    let Ok(root) = Directory::open(root) else { return Ok(None) };
    let Ok(directory) = root.directory(&name) else { return Ok(None) };
    // If the writer was killed between making the directory and its first file, the file is made here. Both are made
    // under the lock of the store, which this command holds.
    let samples = match directory.edit(SAMPLES) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            return Err(set_aside(&root, &name, format!("{SAMPLES} {e}")));
        }
        Err(_) => return Ok(None),
        Ok(samples) => samples,
    };
    // The writer may have finished and renamed the directory before it let go of the lock.
    let is_free = confined::try_lock(&samples).is_ok() && directory.is_at_its_path();
    Ok(is_free.then_some(Partial { root, directory, name, unwanted: false, samples }))
}

/// Gives a directory that cannot become a bundle another name.
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

/// The possible states of a claimed directory.
enum Found {
    /// The directory has a run that was begun.
    Begun(Box<Begun>),
    /// The directory is a bundle that only lacks its name.
    Whole,
    /// The directory has no measurement.
    Debris,
    /// The directory has a measurement that cannot be read.
    Unfit(String),
    /// An onset of another version began the run, and only such an onset can read it.
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
    // A file that cannot be read was being written when its command was killed.
    let Ok(Any { schema }) = serde_json::from_slice(&bytes) else {
        return Ok(without_beginning(dir, "begun.json is damaged"));
    };
    if !READ.contains(&schema) {
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

/// The state of a directory without `begun.json`. The journal comes after this file, so an empty journal means debris.
fn without_beginning(dir: &Directory, why: &str) -> Found {
    match dir.file(JOURNAL).map(|journal| has_entry(&journal)) {
        Ok(Ok(true) | Err(_)) => Found::Unfit(why.into()),
        _ => Found::Debris,
    }
}

/// Finishes the directory. Returns the directory if it could not become a bundle.
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

/// Makes the bundle of a killed run, if it has at least one observation.
fn conclude(partial: Partial, begun: Begun) -> Result<(), BundleError> {
    let reading = BundleError::io("read", &partial.directory.at(JOURNAL));
    let journal = match partial.directory.file(JOURNAL) {
        // The writer was killed before it made a journal.
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
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), begun.limits, warnings);
    match writer.finish(begun.about, conclusion, false) {
        Ok(_) | Err(BundleError::NotDurable { .. }) => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
