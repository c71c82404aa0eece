// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes a bundle, so that it appears whole or not at all.
//!
//! The writer puts everything into `.partial-<run>` beside the final place, makes it durable, and then renames the
//! directory. While the run goes on, the directory holds `begun.json` and the journal. [`BundleWriter::finish`] makes
//! all other files from these two and removes them, `begun.json` first. The writer holds a lock on `samples.parquet`. A
//! partial directory without such a lock belongs to a command that was killed or failed; [`salvage`](super::salvage())
//! finishes it.

use super::collected::Collected;
use super::details::Details;
use super::journal::Journal;
use super::manifest::{About, Conclusion, FileRecord, MANIFEST, Manifest, SCHEMA, SamplesRecord};
use super::samples::{HashedFile, SamplesWriter, Written};
use super::{
    BundleError, CONSOLE, HISTOGRAMS, RunId, SAMPLES, SERIES, Warning, histogram_file,
    histogram_path,
};
use confined::Directory;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use sample::{Clock, Observation, SeriesName};
use serde::{Deserialize, Serialize};
use stats::{Limit, MissTally, Series, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) const PARTIAL: &str = ".partial-";
pub(super) const BEGUN: &str = "begun.json";
pub(super) const JOURNAL: &str = "journal";
const LOCK: &str = ".lock";

/// The most series of a run. No probe on any machine makes more, and a manifest can list this many.
pub const SERIES_MAX: usize = 4096;

/// The facts about a run at its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// The number of the format, [`SCHEMA`].
    pub schema: u64,
    /// The run's name.
    pub run: RunId,
    /// The clock of every time that the run will yield.
    pub clock: Clock,
    /// The run's series in their order, each name once. There are at most [`SERIES_MAX`].
    pub responders: Vec<SeriesName>,
    /// What is run, and on what, as far as onset knows.
    pub about: About,
    /// The limits that apply to the run.
    pub limits: Vec<Limit>,
    /// The doubts at the beginning.
    pub warnings: Vec<Warning>,
}

/// Collects one run and writes its bundle. If it is dropped without [`finish`](Self::finish), it leaves nothing if
/// there was no observation. Otherwise it leaves files from which [`salvage`](super::salvage()) makes a bundle.
pub struct BundleWriter {
    pub(super) partial: Partial,
    run: RunId,
    clock: Clock,
    /// The series, by [`SeriesId`](sample::SeriesId).
    series: Vec<Collected>,
    journal: Journal,
    console: Option<FileRecord>,
}

/// The directory that is being written.
pub(super) struct Partial {
    pub(super) root: Directory,
    pub(super) directory: Directory,
    /// The directory's name in the store.
    pub(super) name: String,
    /// Whether dropping this removes the directory. This is so while there is no observation.
    pub(super) unwanted: bool,
    /// `samples.parquet`, with the lock that tells others that this command is writing.
    pub(super) samples: File,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.unwanted {
            // Nobody is left to tell. The next writer removes everything that stays behind.
            let _ = self.root.remove_all(&self.name);
        }
        let _ = confined::unlock(&self.samples);
    }
}

impl BundleWriter {
    /// Begins the bundle of a run in the store at `root`. If there is no store, the function creates it. A name of a
    /// series that appears twice, or more than [`SERIES_MAX`] series, are a bug of onset.
    ///
    /// # Errors
    /// [`BundleError::Exists`] if the store has such a run, and [`BundleError::Io`] otherwise.
    pub fn create(root: &Path, begun: &Begun) -> Result<Self, BundleError> {
        assert!(begun.is_sound(), "two series of one name, or too many");
        fs::create_dir_all(root).map_err(BundleError::io("create the store", root))?;
        let root = Directory::open(root).map_err(BundleError::io("open the store", root))?;
        let run = &begun.run;
        // Held until the partial directory has its own lock. A directory without a lock has no writer.
        let _exclusive = lock_root(&root)?;
        if root.has(run.as_str()) {
            return Err(BundleError::Exists { path: root.at(run.as_str()) });
        }
        let name = format!("{PARTIAL}{run}");
        let directory = root.make_directory(&name).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => BundleError::Exists { path: root.at(&name) },
            _ => BundleError::io("create", &root.at(&name))(source),
        })?;
        let samples = directory
            .create(SAMPLES)
            .and_then(|file| confined::try_lock(&file).map(|()| file))
            .map_err(BundleError::io("write", &directory.at(SAMPLES)));
        let samples = samples.inspect_err(|_| drop(root.remove_all(&name)))?;
        let partial = Partial { root, directory, name, unwanted: true, samples };
        let journal = partial.directory.create(JOURNAL);
        let journal = journal.map_err(BundleError::io("write", &partial.directory.at(JOURNAL)))?;
        let text = serde_json::to_vec_pretty(begun).expect("plain data without maps of odd keys");
        write_file(&partial.directory, BEGUN, &text)?;
        Ok(BundleWriter::over(partial, begun, Journal::new(journal)))
    }

    /// A writer for a run that was begun. The journal will get its observations, and no file has any yet.
    pub(super) fn over(partial: Partial, begun: &Begun, journal: Journal) -> Self {
        let (run, clock) = (begun.run.clone(), begun.clock);
        let new = |r: &SeriesName| Collected::new(r.clone(), clock, &begun.limits);
        let series = begun.responders.iter().map(new).collect();
        BundleWriter { partial, run, clock, series, journal, console: None }
    }

    /// The place that keeps the observations until the bundle has its name. Absent if there is no observation yet.
    pub fn kept(&self) -> Option<PathBuf> {
        (!self.partial.unwanted).then(|| self.partial.directory.path().to_owned())
    }

    /// Takes an observation from the matching of records. An index beyond the run's list is a bug of onset.
    ///
    /// # Errors
    /// [`BundleError::Io`], for example on a full disk.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), BundleError> {
        let pushed = self.journal.push(observation);
        pushed.map_err(|e| BundleError::io("write", &self.partial.directory.at(JOURNAL))(e))?;
        // Only an observation that is in the file counts, because a bundle's numbers follow from its samples.
        add(&mut self.series, observation);
        self.partial.unwanted = false;
        Ok(())
    }

    /// Counts the observations that are in the journal already. Returns their number.
    pub(super) fn replay(&mut self) -> Result<u64, BundleError> {
        let BundleWriter { journal, series, partial, .. } = self;
        let mut observations = 0;
        let read = journal.read(series.len(), |observation| {
            add(series, &observation);
            observations += 1;
            Ok(())
        });
        read.map_err(BundleError::io("read", &partial.directory.at(JOURNAL)))?;
        Ok(observations)
    }

    /// Removes everything, even if another command began the run.
    pub fn give_up(mut self) {
        self.partial.unwanted = true;
    }

    /// Counts `n` records that the channel dropped, for every responder.
    pub fn add_dropped(&mut self, n: u64) {
        self.series.iter_mut().for_each(|s| s.times.add_dropped(n));
    }

    /// Keeps the text that the target's kernel printed. Call this once.
    ///
    /// # Errors
    /// [`BundleError::Io`], for example on a full disk.
    pub fn add_console(&mut self, text: &str) -> Result<(), BundleError> {
        self.console = Some(write_file(&self.partial.directory, CONSOLE, text.as_bytes())?);
        Ok(())
    }

    /// The numbers so far, in the order of the run. Verdict and warnings are made from them.
    pub fn summaries(&self) -> Vec<Summary> {
        self.series.iter().map(|s| s.times.summary()).collect()
    }

    /// How often each deadline of the run's limits was missed so far.
    pub fn tallies(&self) -> Vec<MissTally> {
        let of = |one: &Collected| one.tallies(&one.times.summary().losses).collect::<Vec<_>>();
        self.series.iter().flat_map(of).collect()
    }

    /// Writes the bundle and returns its directory. `complete` is false for an interrupted run, whose bundle has the
    /// samples until then.
    ///
    /// # Errors
    /// [`BundleError::Io`]. In this case the observations are still at the place that [`kept`](Self::kept) gives.
    /// [`BundleError::NotDurable`] if the bundle is there and whole, and a power loss may undo it.
    pub fn finish(
        self,
        about: About,
        conclusion: Conclusion,
        complete: bool,
    ) -> Result<PathBuf, BundleError> {
        // A command that failed while it finished this run left some of the files.
        self.partial.clear(self.console.is_some())?;
        let series = self.summaries();
        let paths = self.series.iter().filter_map(Collected::path).collect();
        let BundleWriter { mut partial, run, clock, series: collected, journal, console } = self;
        let dir = &partial.directory;
        let mut files: BTreeMap<String, FileRecord> =
            console.map(|record| (CONSOLE.to_owned(), record)).into_iter().collect();

        let collected: Vec<Series> = collected.into_iter().map(|one| one.times).collect();
        let written = write_samples(&partial, &journal, &collected)
            .map_err(BundleError::io("write", &dir.at(SAMPLES)))?;
        let record = FileRecord { bytes: written.bytes, blake3: written.blake3 };
        files.insert(SAMPLES.to_owned(), record);
        let histograms = dir.make_directory(HISTOGRAMS);
        let histograms = histograms.map_err(BundleError::io("create", &dir.at(HISTOGRAMS)))?;
        for one in &collected {
            let record = write_file(&histograms, &histogram_file(one.responder()), &encode(one))?;
            files.insert(histogram_path(one.responder()), record);
        }
        let details: Vec<Details> = collected.iter().map(Details::of).collect();
        files.insert(SERIES.to_owned(), write_file(dir, SERIES, &drawing(&details))?);

        let samples = SamplesRecord {
            count: written.count,
            until: written.until,
            blake3: written.fingerprint,
        };
        let manifest = Manifest {
            schema: SCHEMA,
            run,
            complete,
            clock,
            about,
            conclusion,
            samples,
            series,
            paths: Some(paths),
            files,
            seal: String::new(),
        };
        write_file(dir, MANIFEST, &manifest.text())?;
        histograms.sync().map_err(BundleError::io("make durable", histograms.path()))?;
        drop(journal);
        partial.publish(&manifest.run)
    }
}

/// Adds an observation to its series.
fn add(series: &mut [Collected], observation: &Observation) {
    let id = match observation {
        Observation::Sample(sample) => sample.series,
        Observation::Loss(id, ..) => *id,
    };
    series[id.index()].add(observation);
}

/// Makes `samples.parquet` from the journal.
fn write_samples(partial: &Partial, journal: &Journal, series: &[Series]) -> io::Result<Written> {
    let names: Vec<SeriesName> = series.iter().map(|s| s.responder().clone()).collect();
    let mut file = partial.samples.try_clone()?;
    file.rewind()?;
    let mut samples = SamplesWriter::new(file, &names)?;
    journal.read(series.len(), |observation| match observation {
        Observation::Sample(sample) => samples.push(&sample),
        Observation::Loss(..) => Ok(()),
    })?;
    samples.finish()
}

impl Partial {
    /// Removes the files of a command that was killed, or failed, while it finished the bundle.
    pub(super) fn clear(&self, but_the_console: bool) -> Result<(), BundleError> {
        for name in [HISTOGRAMS, SERIES, CONSOLE, MANIFEST] {
            if name == CONSOLE && but_the_console {
                continue;
            }
            match self.directory.remove_all(name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(BundleError::io("remove", &self.directory.at(name)))?,
            }
        }
        let emptied = self.samples.set_len(0);
        emptied.map_err(BundleError::io("write", &self.directory.at(SAMPLES)))
    }

    /// Gives the directory its final name. Its manifest is written. When `begun.json` is removed, the bundle is whole,
    /// and whoever finds the directory may publish it.
    pub(super) fn publish(&mut self, run: &RunId) -> Result<PathBuf, BundleError> {
        sync(&self.directory)?;
        for name in [BEGUN, JOURNAL] {
            match self.directory.remove(name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(BundleError::io("remove", &self.directory.at(name)))?,
            }
        }
        sync(&self.directory)?;
        let place = self.root.at(run.as_str());
        self.root.rename(&self.name, run.as_str()).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                BundleError::Exists { path: place.clone() }
            }
            _ => BundleError::io("create", &place)(source),
        })?;
        self.unwanted = false;
        match self.root.sync() {
            Ok(()) => Ok(place),
            Err(source) => Err(BundleError::NotDurable { path: place, source }),
        }
    }
}

impl Begun {
    /// Whether each series has its own name, and whether there are not too many series.
    pub(super) fn is_sound(&self) -> bool {
        let distinct: BTreeSet<&SeriesName> = self.responders.iter().collect();
        distinct.len() == self.responders.len() && self.responders.len() <= SERIES_MAX
    }
}

/// The compressed V2 encoding of HdrHistogram. `decodeFromCompressedByteBuffer` of the Java library and
/// `HdrHistogram.decode` of the Python library read it (the latter after base64).
fn encode(series: &Series) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoded = V2DeflateSerializer::new().serialize(series.histogram(), &mut bytes);
    encoded.expect("writing to memory does not fail");
    bytes
}

/// The compact text of the drawings: thousands of points that nobody reads line by line.
fn drawing(details: &[Details]) -> Vec<u8> {
    serde_json::to_vec(details).expect("plain data without maps")
}

fn write_file(dir: &Directory, name: &str, bytes: &[u8]) -> Result<FileRecord, BundleError> {
    let written = dir.create(name).map(HashedFile::new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync()
    });
    let (bytes, blake3) = written.map_err(BundleError::io("write", &dir.at(name)))?;
    Ok(FileRecord { bytes, blake3 })
}

fn sync(dir: &Directory) -> Result<(), BundleError> {
    dir.sync().map_err(BundleError::io("make durable", dir.path()))
}

/// Locks the store: one command at a time creates, claims or repairs in it. Closing the file releases the lock. The
/// file is only read, since it may belong to another user.
pub(crate) fn lock_root(root: &Directory) -> Result<File, BundleError> {
    let opened = root.create(LOCK).or_else(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => root.file(LOCK),
        _ => Err(e),
    });
    let locked = opened.and_then(|file| confined::lock(&file).map(|()| file));
    locked.map_err(BundleError::io("lock the store by", &root.at(LOCK)))
}
