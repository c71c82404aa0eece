// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes a bundle so that it appears whole or not at all.
//!
//! All is written into `.partial-<run>` beside the final place, made durable, and then renamed. While the
//! run goes on it holds `begun.json` and the journal; [`BundleWriter::finish`] makes everything else from them and
//! removes them, `begun.json` first. Who writes there holds a lock on its `samples.parquet`; a partial directory
//! without such a lock belongs to a command that was killed, and [`salvage`](super::salvage()) finishes it.

use super::details::Details;
use super::journal::Journal;
use super::manifest::{About, Conclusion, FileRecord, MANIFEST, Manifest, SCHEMA, SamplesRecord};
use super::salvage::salvage;
use super::samples::{HashedFile, SamplesWriter, Written};
use super::{BundleError, CONSOLE, HISTOGRAMS, RunId, SAMPLES, SERIES, Warning, histogram_path};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use rustix::fs::{FlockOperation, flock};
use sample::{Clock, Observation, SeriesName};
use serde::{Deserialize, Serialize};
use stats::{Limit, Series, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(super) const PARTIAL: &str = ".partial-";
pub(super) const BEGUN: &str = "begun.json";
pub(super) const JOURNAL: &str = "journal";

/// What is known of a run when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// [`SCHEMA`].
    pub schema: u64,
    /// The run's name.
    pub run: RunId,
    /// The clock of every time that it will yield.
    pub clock: Clock,
    /// Its series in their order, each name once: at most 2¹⁶, which [`SeriesId`](sample::SeriesId)s index.
    pub responders: Vec<SeriesName>,
    /// What is run, and on what, as far as it is known.
    pub about: About,
    /// The limits that apply.
    pub limits: Vec<Limit>,
    /// Doubts that there are from the start.
    pub warnings: Vec<Warning>,
}

/// Collects one run and writes its bundle. Dropped without [`finish`](Self::finish) it leaves nothing.
pub struct BundleWriter {
    partial: Partial,
    run: RunId,
    clock: Clock,
    /// By [`SeriesId`](sample::SeriesId).
    series: Vec<Series>,
    journal: Journal,
    console: Option<FileRecord>,
}

/// The directory that is being written.
pub(super) struct Partial {
    pub(super) root: PathBuf,
    pub(super) path: PathBuf,
    /// Whether dropping it removes it: as long as it has not its final name, except where it holds what a killed
    /// command left, which the next one may be able to finish.
    pub(super) unwanted: bool,
    /// `samples.parquet`, with the lock that tells others that somebody is writing.
    pub(super) samples: File,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.unwanted {
            // Nobody is left to tell; what stays behind is removed by the next writer.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl BundleWriter {
    /// Begins the bundle of a run in the store at `root`, which is created where there is none, and
    /// makes bundles of what killed commands left there. That a name of a series stands there twice is our own bug.
    ///
    /// # Errors
    /// [`BundleError::Exists`] when there is such a run; [`BundleError::Io`] otherwise.
    pub fn create(root: &Path, begun: &Begun) -> Result<Self, BundleError> {
        let distinct: BTreeSet<&SeriesName> = begun.responders.iter().collect();
        assert!(distinct.len() == begun.responders.len(), "two series of one name");
        fs::create_dir_all(root).map_err(BundleError::io("create the store", root))?;
        salvage(root)?;
        let run = &begun.run;
        // Held until the partial directory has its own lock: one without has no writer.
        let _exclusive = lock_root(root)?;
        let place = root.join(run.as_str());
        if place.exists() {
            return Err(BundleError::Exists { path: place });
        }
        let path = root.join(format!("{PARTIAL}{run}"));
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => BundleError::Exists { path: path.clone() },
            _ => BundleError::io("create", &path)(source),
        })?;
        let samples = create_file(&path.join(SAMPLES)).and_then(|file| {
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|e| BundleError::io("lock", &path.join(SAMPLES))(e.into()))?;
            Ok(file)
        });
        let samples = samples.inspect_err(|_| drop(fs::remove_dir_all(&path)))?;
        let partial = Partial { root: root.to_owned(), path, unwanted: true, samples };
        let journal = Journal::new(create_file(&partial.path.join(JOURNAL))?);
        write_file(&partial.path.join(BEGUN), &json(begun))?;
        Ok(BundleWriter::over(partial, begun, journal))
    }

    /// A writer of what was begun and what is added to the journal, and so far in no file.
    pub(super) fn over(partial: Partial, begun: &Begun, journal: Journal) -> Self {
        let (run, clock) = (begun.run.clone(), begun.clock);
        let series = begun.responders.iter().map(|r| Series::new(r.clone(), clock)).collect();
        BundleWriter { partial, run, clock, series, journal, console: None }
    }

    /// Takes what the matching of records yields. An index beyond the run's list is our own bug.
    ///
    /// # Errors
    /// [`BundleError::Io`], as on a full disk.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), BundleError> {
        count(&mut self.series, observation);
        let path = &self.partial.path;
        self.journal.push(observation).map_err(|e| BundleError::io("write", &path.join(JOURNAL))(e))
    }

    /// Counts what is in the journal already, and how many observations that are.
    pub(super) fn replay(&mut self) -> Result<u64, BundleError> {
        let BundleWriter { journal, series, partial, .. } = self;
        let mut observations = 0;
        let read = journal.read(series.len(), |observation| {
            count(series, &observation);
            observations += 1;
            Ok(())
        });
        read.map_err(BundleError::io("read", &partial.path.join(JOURNAL)))?;
        Ok(observations)
    }

    /// Leaves nothing, also of what another command began.
    pub(super) fn give_up(mut self) {
        self.partial.unwanted = true;
    }

    /// Counts `n` records that the channel dropped, for every responder.
    pub fn add_dropped(&mut self, n: u64) {
        self.series.iter_mut().for_each(|s| s.add_dropped(n));
    }

    /// Keeps what the target's kernel printed; once.
    ///
    /// # Errors
    /// [`BundleError::Io`], as on a full disk.
    pub fn add_console(&mut self, text: &str) -> Result<(), BundleError> {
        self.console = Some(write_file(&self.partial.path.join(CONSOLE), text.as_bytes())?);
        Ok(())
    }

    /// The numbers so far, in the order of the run: what verdict and warnings are made from.
    pub fn summaries(&self) -> Vec<Summary> {
        self.series.iter().map(Series::summary).collect()
    }

    /// Writes the bundle and returns its directory. `complete` is false for an interrupted run, whose
    /// bundle holds what there was.
    ///
    /// # Errors
    /// [`BundleError::Io`]; then nothing of the bundle is left.
    pub fn finish(
        self,
        about: About,
        conclusion: Conclusion,
        complete: bool,
    ) -> Result<PathBuf, BundleError> {
        let series = self.summaries();
        let BundleWriter { mut partial, run, clock, series: collected, journal, console } = self;
        let dir = partial.path.clone();
        let mut files: BTreeMap<String, FileRecord> =
            console.map(|record| (CONSOLE.to_owned(), record)).into_iter().collect();

        let written = write_samples(&partial, &journal, &collected)
            .map_err(BundleError::io("write", &dir.join(SAMPLES)))?;
        let record = FileRecord { bytes: written.bytes, blake3: written.blake3 };
        files.insert(SAMPLES.to_owned(), record);
        let histograms = dir.join(HISTOGRAMS);
        fs::create_dir(&histograms).map_err(BundleError::io("create", &histograms))?;
        for one in &collected {
            let name = histogram_path(one.responder());
            files.insert(name.clone(), write_file(&dir.join(name), &encode(one))?);
        }
        let details: Vec<Details> = collected.iter().map(Details::of).collect();
        files.insert(SERIES.to_owned(), write_file(&dir.join(SERIES), &drawing(&details))?);

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
            files,
        };
        write_file(&dir.join(MANIFEST), &json(&manifest))?;
        sync_dir(&histograms)?;
        drop(journal);
        partial.publish(&manifest.run)
    }
}

/// Adds an observation to the series that it belongs to.
fn count(series: &mut [Series], observation: &Observation) {
    match observation {
        Observation::Sample(sample) => series[sample.series.index()].record(sample),
        Observation::Loss(id, loss, n) => series[id.index()].lose(*loss, *n),
    }
}

/// Makes `samples.parquet` of the journal.
fn write_samples(partial: &Partial, journal: &Journal, series: &[Series]) -> io::Result<Written> {
    let names: Vec<SeriesName> = series.iter().map(|s| s.responder().clone()).collect();
    let mut samples = SamplesWriter::new(partial.samples.try_clone()?, &names)?;
    journal.read(series.len(), |observation| match observation {
        Observation::Sample(sample) => samples.push(&sample),
        Observation::Loss(..) => Ok(()),
    })?;
    samples.finish()
}

impl Partial {
    /// Gives the directory, whose manifest is written, its final name. From the removal of `begun.json` on the
    /// bundle is whole, and whoever finds the directory may publish it.
    pub(super) fn publish(&mut self, run: &RunId) -> Result<PathBuf, BundleError> {
        sync_dir(&self.path)?;
        for name in [BEGUN, JOURNAL] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(BundleError::io("remove", &path))?,
            }
        }
        sync_dir(&self.path)?;
        let place = self.root.join(run.as_str());
        // Fails where a bundle of the name has appeared meanwhile: rename replaces empty directories only.
        fs::rename(&self.path, &place).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                BundleError::Exists { path: place.clone() }
            }
            _ => BundleError::io("create", &place)(source),
        })?;
        self.unwanted = false;
        sync_dir(&self.root)?;
        Ok(place)
    }
}

/// HdrHistogram's V2 encoding, compressed: what `decodeFromCompressedByteBuffer` of the Java and
/// `HdrHistogram.decode` of the Python library read (the latter after base64).
fn encode(series: &Series) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoded = V2DeflateSerializer::new().serialize(series.histogram(), &mut bytes);
    encoded.expect("writing to memory does not fail");
    bytes
}

/// Indented, so that two manifests can be compared line by line.
fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data without maps of odd keys");
    text.push(b'\n');
    text
}

/// Compact: thousands of points that nobody reads line by line.
fn drawing(details: &[Details]) -> Vec<u8> {
    serde_json::to_vec(details).expect("plain data without maps")
}

/// A new file that can be written and read.
fn create_file(path: &Path) -> Result<File, BundleError> {
    let created = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    created.map_err(BundleError::io("write", path))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<FileRecord, BundleError> {
    let written = File::create_new(path).map(HashedFile::new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync()
    });
    let (bytes, blake3) = written.map_err(BundleError::io("write", path))?;
    Ok(FileRecord { bytes, blake3 })
}

fn sync_dir(path: &Path) -> Result<(), BundleError> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    synced.map_err(BundleError::io("make durable", path))
}

/// One at a time creates, claims or repairs in a store; released when the file is closed.
pub(crate) fn lock_root(root: &Path) -> Result<File, BundleError> {
    let path = root.join(".lock");
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let locked = opened.and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    locked.map_err(BundleError::io("lock the store by", &path))
}
