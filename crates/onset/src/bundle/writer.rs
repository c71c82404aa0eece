// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes a bundle so that it appears whole or not at all.
//!
//! All is written into `.partial-<run>` beside the final place, made durable, and then renamed. Who
//! writes there holds a lock on its `samples.parquet`; a partial directory without such a lock belongs
//! to a command that was killed, and [`sweep`] removes it.

use super::details::Details;
use super::manifest::{About, Conclusion, FileRecord, MANIFEST, Manifest, SCHEMA, SamplesRecord};
use super::samples::{HashedFile, SamplesWriter};
use super::{BundleError, CONSOLE, HISTOGRAMS, RunId, SAMPLES, SERIES, histogram_path};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use rustix::fs::{FlockOperation, flock};
use sample::{Clock, Loss, Observation, Sample, SeriesId, SeriesName};
use serde::Serialize;
use stats::{Series, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PARTIAL: &str = ".partial-";

/// Collects one run and writes its bundle. Dropped without [`finish`](Self::finish) it leaves nothing.
pub struct BundleWriter {
    partial: Partial,
    run: RunId,
    clock: Clock,
    /// By [`SeriesId`].
    series: Vec<Series>,
    samples: SamplesWriter,
    console: Option<FileRecord>,
}

/// The directory that is being written; removed unless renamed.
struct Partial {
    root: PathBuf,
    path: PathBuf,
    renamed: bool,
    /// Holds the lock that tells [`sweep`] that somebody is writing.
    _lock: File,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.renamed {
            // Nobody is left to tell; what stays behind is swept by the next writer.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl BundleWriter {
    /// Begins the bundle of `run` in the store at `root`, which is created where there is none, and
    /// removes what killed commands left there. `responders` are the run's series in its order, each name
    /// once: at most 2¹⁶, which [`SeriesId`]s index.
    ///
    /// # Errors
    /// [`BundleError::Exists`] when there is such a run; [`BundleError::Io`] otherwise.
    pub fn create(
        root: &Path,
        run: &RunId,
        clock: Clock,
        responders: Vec<SeriesName>,
    ) -> Result<Self, BundleError> {
        let distinct: BTreeSet<&SeriesName> = responders.iter().collect();
        assert!(distinct.len() == responders.len(), "two series of one name");
        fs::create_dir_all(root).map_err(BundleError::io("create the store", root))?;
        let exclusive = lock_root(root)?;
        sweep_locked(root)?;
        let place = root.join(run.as_str());
        if place.exists() {
            return Err(BundleError::Exists { path: place });
        }
        let path = root.join(format!("{PARTIAL}{run}"));
        fs::create_dir(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => BundleError::Exists { path: path.clone() },
            _ => BundleError::io("create", &path)(source),
        })?;
        let samples = path.join(SAMPLES);
        let writing = BundleError::io("write", &samples);
        let begun = (|| {
            let file = OpenOptions::new().write(true).create_new(true).open(&samples)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let lock = file.try_clone()?;
            fs::create_dir(path.join(HISTOGRAMS))?;
            Ok((lock, SamplesWriter::new(file, &responders)?))
        })();
        drop(exclusive);
        let (lock, samples) = begun.map_err(|e| {
            let _ = fs::remove_dir_all(&path);
            writing(e)
        })?;
        let partial = Partial { root: root.to_owned(), path, renamed: false, _lock: lock };
        let series = responders.into_iter().map(|r| Series::new(r, clock)).collect();
        Ok(BundleWriter { partial, run: run.clone(), clock, series, samples, console: None })
    }

    /// Takes what the matching of records yields. An index beyond the run's list is our own bug.
    ///
    /// # Errors
    /// [`BundleError::Io`], as on a full disk.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), BundleError> {
        match observation {
            Observation::Sample(sample) => self.push(sample),
            Observation::Loss(series, loss, n) => {
                self.lose(*series, *loss, *n);
                Ok(())
            }
        }
    }

    /// Adds an answer.
    ///
    /// # Errors
    /// [`BundleError::Io`], as on a full disk.
    pub fn push(&mut self, sample: &Sample) -> Result<(), BundleError> {
        self.series[sample.series.index()].record(sample);
        let path = &self.partial.path;
        self.samples.push(sample).map_err(|e| BundleError::io("write", &path.join(SAMPLES))(e))
    }

    /// Counts `n` losses of a series.
    pub fn lose(&mut self, series: SeriesId, loss: Loss, n: u64) {
        self.series[series.index()].lose(loss, n);
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
        let BundleWriter { mut partial, run, clock, series: collected, samples, console } = self;
        let dir = partial.path.clone();
        let mut files: BTreeMap<String, FileRecord> =
            console.map(|record| (CONSOLE.to_owned(), record)).into_iter().collect();

        let written = samples.finish().map_err(BundleError::io("write", &dir.join(SAMPLES)))?;
        let record = FileRecord { bytes: written.bytes, blake3: written.blake3 };
        files.insert(SAMPLES.to_owned(), record);
        for one in &collected {
            let name = histogram_path(one.responder());
            files.insert(name.clone(), write_file(&dir.join(name), &encode(one))?);
        }
        let details: Vec<Details> = collected.iter().map(Details::of).collect();
        files.insert(SERIES.to_owned(), write_file(&dir.join(SERIES), &drawing(&details))?);

        let samples = SamplesRecord { count: written.count, blake3: written.fingerprint };
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
        sync_dir(&dir.join(HISTOGRAMS))?;
        sync_dir(&dir)?;
        partial.publish(&manifest.run)
    }
}

impl Partial {
    fn publish(&mut self, run: &RunId) -> Result<PathBuf, BundleError> {
        let place = self.root.join(run.as_str());
        // Fails where a bundle of the name has appeared meanwhile: rename replaces empty directories only.
        fs::rename(&self.path, &place).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                BundleError::Exists { path: place.clone() }
            }
            _ => BundleError::io("create", &place)(source),
        })?;
        self.renamed = true;
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

/// One at a time creates, sweeps or repairs in a store; released when the file is closed.
pub(crate) fn lock_root(root: &Path) -> Result<File, BundleError> {
    let path = root.join(".lock");
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let locked = opened.and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    locked.map_err(BundleError::io("lock the store by", &path))
}

/// Removes what killed commands left in the store at `root`; leaves what somebody is writing.
///
/// # Errors
/// [`BundleError::Io`], as in a read-only store.
pub fn sweep(root: &Path) -> Result<(), BundleError> {
    let _exclusive = lock_root(root)?;
    sweep_locked(root)
}

/// A partial directory gets its lock while the root's is held, so one without a lock has no writer.
fn sweep_locked(root: &Path) -> Result<(), BundleError> {
    let entries = fs::read_dir(root).map_err(BundleError::io("list", root))?;
    for entry in entries {
        let entry = entry.map_err(BundleError::io("list", root))?;
        if !entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            continue;
        }
        let path = entry.path();
        let being_written = File::open(path.join(SAMPLES))
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err());
        if being_written {
            continue;
        }
        match fs::remove_dir_all(&path) {
            // Its writer finished and renamed it between the listing and now.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(BundleError::io("remove the debris", &path))?,
        }
    }
    Ok(())
}
