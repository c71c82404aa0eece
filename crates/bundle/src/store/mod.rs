// SPDX-License-Identifier: GPL-2.0-or-later
//! A store: a directory of bundles, `<root>/<run>/`, and an index of them.
//!
//! Only the bundles count. The index (`index.sqlite`) remembers the contents of their manifests, so that a list need
//! not read ten thousand of them. Deleting the index only makes the next list slower. A list reads the names, sizes and
//! times of the manifests, and opens only new or changed ones. A list cannot see damage to another file than the
//! manifest; this shows when the bundle is opened.

mod index;
#[cfg(test)]
mod tests;

use crate::{self as bundle, BundleError, Left, MANIFEST, Manifest, RunId, UtcTime};
use confined::Directory;
use index::{Index, Stamp};
use serde::{Deserialize, Serialize};
use stats::Verdict;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a list shows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The experiment's title.
    pub title: String,
    /// When the run was started.
    pub created: UtcTime,
    /// Kernel and boot parameters.
    pub flavour: String,
    /// The load's name.
    pub load: String,
    /// What measured: `trigger`, or a probe's name.
    pub instrument: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// The outcome.
    pub verdict: Verdict,
    /// False for a run that was interrupted.
    pub complete: bool,
    /// Samples of all responders.
    pub samples: u64,
}

impl From<&Manifest> for Headline {
    fn from(manifest: &Manifest) -> Self {
        let about = &manifest.about;
        Headline {
            title: about.title.clone(),
            created: about.created,
            flavour: about.flavour.clone(),
            load: about.load.clone(),
            instrument: about.instrument().into(),
            seed: about.seed,
            verdict: manifest.conclusion.verdict,
            complete: manifest.complete,
            samples: manifest.samples.count,
        }
    }
}

/// One bundle of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The run's name.
    pub run: RunId,
    /// The run's headline, or what is wrong with its manifest and what to do.
    pub state: Result<Headline, String>,
}

/// Why a store or a run in it cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// The store's directory cannot be read.
    Io(BundleError),
    /// The store has no run.
    Empty {
        /// The store.
        root: PathBuf,
    },
    /// The store has no run of this name.
    Unknown {
        /// The name that was asked for.
        wanted: String,
        /// The newest runs in the store, newest first.
        newest: Vec<RunId>,
    },
    /// Several runs begin with this name.
    Ambiguous {
        /// The name that was asked for.
        wanted: String,
        /// The runs that begin with this name, newest first.
        candidates: Vec<RunId>,
    },
}

/// The directory in a store that holds the runs that a user has thrown away. No list shows it.
const BIN: &str = ".bin";

/// The most names that an error shows.
const SHOWN: usize = 10;

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, heading) = match self {
            Self::Io(error) => return error.fmt(f),
            Self::Empty { root } => {
                return write!(
                    f,
                    "there are no runs in {}; make one with onset run",
                    root.display()
                );
            }
            Self::Unknown { wanted, newest } => {
                write!(f, "no run begins with {wanted:?}; ")?;
                (newest, "the newest are")
            }
            Self::Ambiguous { wanted, candidates } => {
                write!(f, "{} runs begin with {wanted:?}; ", candidates.len())?;
                (candidates, "give more of its name")
            }
        };
        write!(f, "{heading}:")?;
        names.iter().take(SHOWN).try_for_each(|run| write!(f, "\n  {run}"))?;
        if names.len() > SHOWN {
            write!(f, "\n  … and {} more", names.len() - SHOWN)
        } else {
            Ok(())
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BundleError> for StoreError {
    fn from(error: BundleError) -> Self {
        StoreError::Io(error)
    }
}

/// A directory of bundles. Any number of processes may use one at once.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// What the last list found: who asks again, as a server does, need not read the index again.
    found: Mutex<Option<Rows>>,
}

/// What manifests say, with the stamps that they had.
type Rows = HashMap<RunId, (Stamp, Headline)>;

impl Store {
    /// The store at `root`. A store that does not exist is empty: the writer of the first bundle makes it.
    pub fn at(root: &Path) -> Self {
        Store { root: root.to_owned(), found: Mutex::default() }
    }

    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every bundle, newest first. If a manifest cannot be read, the list says so. The function also works in a store
    /// that cannot be written, only more slowly than in one that can.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let Some(store) = self.opened()? else { return Ok(Vec::new()) };
        let runs = runs_of(&store)?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut index = found.is_none().then(|| Index::open(&store));
        let read = || index.as_ref().map_or_else(Rows::new, Index::rows);
        let mut before = found.take().unwrap_or_else(read);
        let (mut news, mut rows) = (Vec::new(), Rows::with_capacity(runs.len()));
        let mut entries = Vec::with_capacity(runs.len());
        for run in runs {
            let stamp = Stamp::of(&store, &run, MANIFEST);
            let state = match before.remove(&run) {
                Some((then, headline)) if Some(then) == stamp => Ok(headline),
                _ => {
                    let headline = headline(&store, &run);
                    // The index does not remember damage. Somebody may repair the bundle, so it is looked at again.
                    if let (Ok(headline), Some(stamp)) = (&headline, stamp) {
                        news.push((run.clone(), stamp, headline.clone()));
                    }
                    headline
                }
            };
            if let (Ok(headline), Some(stamp)) = (&state, stamp) {
                rows.insert(run.clone(), (stamp, headline.clone()));
            }
            entries.push(Entry { run, state });
        }
        // A run that is still in `before` has no directory any more, or is damaged now.
        if !news.is_empty() || !before.is_empty() {
            index.get_or_insert_with(|| Index::open(&store)).update(&news, before.keys());
        }
        *found = Some(rows);
        Ok(entries)
    }

    /// The directory of the one run whose name begins with `wanted`. `latest` is the newest run.
    ///
    /// # Errors
    /// [`StoreError`], with the names that the user may have meant.
    pub fn find(&self, wanted: &str) -> Result<PathBuf, StoreError> {
        let runs = self.opened()?.map_or(Ok(Vec::new()), |store| runs_of(&store))?;
        let Some(newest) = runs.first() else {
            return Err(StoreError::Empty { root: self.root.clone() });
        };
        if wanted == "latest" {
            return Ok(self.root.join(newest.as_str()));
        }
        let wanted = wanted.to_owned();
        let begins = |run: &&RunId| run.as_str().starts_with(&wanted);
        let candidates: Vec<&RunId> = runs.iter().filter(begins).collect();
        match candidates[..] {
            [run] => Ok(self.root.join(run.as_str())),
            [] => {
                Err(StoreError::Unknown { wanted, newest: runs.into_iter().take(SHOWN).collect() })
            }
            _ if candidates.iter().any(|run| run.as_str() == wanted) => Ok(self.root.join(wanted)),
            _ => {
                let candidates = candidates.into_iter().cloned().collect();
                Err(StoreError::Ambiguous { wanted, candidates })
            }
        }
    }

    /// Moves a run to the bin, from which [`restore`](Self::restore) brings it back. One rename does it: a command that
    /// is killed meanwhile leaves the run in the one place or in the other.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is no such run, or if the store cannot be changed.
    pub fn discard(&self, run: &RunId) -> Result<(), StoreError> {
        let store = self.opened()?.ok_or_else(|| self.unknown(run))?;
        let bin = match store.make_directory(BIN) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => store.directory(BIN),
            made => made,
        };
        let bin = bin.map_err(BundleError::io("open", &store.at(BIN)))?;
        hand_over(run, &store, &bin)
    }

    /// Brings a run back from the bin.
    ///
    /// # Errors
    /// As [`discard`](Self::discard).
    pub fn restore(&self, run: &RunId) -> Result<(), StoreError> {
        let store = self.opened()?.ok_or_else(|| self.unknown(run))?;
        let bin = store.directory(BIN).map_err(BundleError::io("open", &store.at(BIN)))?;
        hand_over(run, &bin, &store)
    }

    /// The bundles in the bin, newest first.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the directory cannot be read.
    pub fn discarded(&self) -> Result<Vec<Entry>, StoreError> {
        let Some(store) = self.opened()? else { return Ok(Vec::new()) };
        let bin = match store.directory(BIN) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(BundleError::io("open", &store.at(BIN)))?,
        };
        let runs = runs_of(&bin)?.into_iter();
        Ok(runs.map(|run| Entry { state: headline(&bin, &run), run }).collect())
    }

    fn unknown(&self, run: &RunId) -> StoreError {
        StoreError::Unknown { wanted: run.to_string(), newest: Vec::new() }
    }

    /// Makes bundles from the remains of killed or failed commands. Returns the directories that cannot become a
    /// bundle. In a store that cannot be written, everything stays as it is, for somebody who can write it.
    pub fn salvage(&self) -> Vec<Left> {
        bundle::salvage(&self.root).unwrap_or_default()
    }

    /// Removes the index, so that the next list reads every manifest.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the index cannot be removed.
    pub fn forget_index(&self) -> Result<(), StoreError> {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(self.opened()?.map_or(Ok(()), |store| index::remove(&store))?)
    }

    /// The open directory, if it exists.
    fn opened(&self) -> Result<Option<Directory>, BundleError> {
        match Directory::open(&self.root) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(BundleError::io("list", &self.root)),
        }
    }
}

/// Moves a run. Nothing else of that name is replaced.
fn hand_over(run: &RunId, from: &Directory, to: &Directory) -> Result<(), StoreError> {
    let failed = BundleError::io("move", &from.at(run.as_str()));
    from.hand_over(run.as_str(), to).map_err(failed)?;
    let synced = to.sync().and_then(|()| from.sync());
    Ok(synced.map_err(BundleError::io("move", &to.at(run.as_str())))?)
}

/// The names of the runs, newest first. Other entries of the directory are ignored.
fn runs_of(store: &Directory) -> Result<Vec<RunId>, BundleError> {
    let names = store.names().map_err(BundleError::io("list", store.path()))?;
    let mut runs: Vec<RunId> =
        names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
    runs.sort_unstable_by(|a, b| b.cmp(a));
    Ok(runs)
}

fn headline(store: &Directory, run: &RunId) -> Result<Headline, String> {
    let dir = store.directory(run.as_str());
    let dir = dir.map_err(|e| format!("cannot open {}: {e}", store.at(run.as_str()).display()))?;
    let manifest = Manifest::read_in(&dir).map_err(|e| e.to_string())?;
    if manifest.run != *run {
        let named = manifest.run;
        return Err(format!("{} holds the run {named}: rename it back", dir.path().display()));
    }
    Ok(Headline::from(&manifest))
}
