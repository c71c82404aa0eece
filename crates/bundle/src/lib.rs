// SPDX-License-Identifier: GPL-2.0-or-later
//! Bundles: the immutable directory that holds everything that one run produced.
//!
//! ```text
//! <run>/manifest.json               what was run, on what, with which results; the hash of every other file
//!       samples.parquet             every sample
//!       histograms/<responder>.hdr  HdrHistogram V2, compressed, in ns
//!       series.json                 the data that a report draws
//!       console.txt                 the output of the target's kernel, if the target has a console
//! ```
//!
//! While the run goes on, there is a directory `.partial-<run>/` instead. It has what was known at the start of the
//! run, and a journal of everything that the run has yielded since. If a run is killed, the next command makes a bundle
//! from these.
//!
//! A bundle never changes after it appeared: the manifest has the hash of every other file, and of itself. A bundle may
//! come from anybody. So onset follows no links when it reads one, and reads only regular files of bounded size.
//! Reading cannot detect a manifest that somebody altered and sealed again.

mod claims;
mod collected;
pub mod company;
pub mod cyclictest;
mod details;
mod error;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
mod journal;
mod manifest;
mod run_id;
mod salvage;
mod samples;
pub mod settings;
pub mod store;
#[cfg(test)]
mod tests;
mod truth;
mod verify;
mod warning;
mod writer;

pub use details::Details;
pub use error::BundleError;
pub use manifest::{
    About, Conclusion, Evidence, Experiment, FileRecord, Kernel, MANIFEST, Machine, Manifest,
    SCHEMA, SamplesRecord, Schedule, Tool, Trigger,
};
pub use run_id::{NotARunId, NotATime, RunId, UtcTime};
pub use salvage::{Left, salvage};
pub use samples::{Fingerprint, GROUP_ROWS};
pub use truth::{Deviation, Truth};
pub use verify::Verified;
pub use warning::Warning;
use writer::lock_root;
pub use writer::{Begun, BundleWriter, SERIES_MAX};

use confined::Directory;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use sample::{Sample, SeriesName};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const SAMPLES: &str = "samples.parquet";
const SERIES: &str = "series.json";
const CONSOLE: &str = "console.txt";
const HISTOGRAMS: &str = "histograms";

/// The most bytes of a file that is read as a whole. The `series.json` of a run with [`SERIES_MAX`] series, and with
/// all drawings of each, takes a quarter of this.
const FILE_MAX: u64 = 256 << 20;

fn histogram_file(responder: &SeriesName) -> String {
    format!("{responder}.hdr")
}

fn histogram_path(responder: &SeriesName) -> String {
    format!("{HISTOGRAMS}/{}", histogram_file(responder))
}

/// Opens the directory of a bundle.
fn directory(path: &Path) -> Result<Directory, BundleError> {
    Directory::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            BundleError::NotABundle { path: path.to_owned() }
        }
        _ => BundleError::io("open", path)(e),
    })
}

/// An open bundle. Its manifest was read, and its files are there at their full length.
#[derive(Debug)]
pub struct Bundle {
    directory: Directory,
    manifest: Manifest,
}

impl Bundle {
    /// Opens the bundle in the directory `path`.
    ///
    /// # Errors
    /// [`BundleError`] names the file that is missing, cut short or foreign, and what to do.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let directory = directory(path)?;
        let manifest = Manifest::read_in(&directory)?;
        let bundle = Bundle { directory, manifest };
        let histograms = bundle.manifest.series.iter().map(|s| histogram_path(&s.responder));
        let mut expected: Vec<String> = histograms.chain([SAMPLES.into(), SERIES.into()]).collect();
        // Not every target has a console that onset can hear.
        if bundle.manifest.files.contains_key(CONSOLE) {
            expected.push(CONSOLE.into());
        }
        expected.sort();
        // onset never opens another name, so a manifest cannot point out of its bundle.
        if !bundle.manifest.files.keys().eq(expected.iter()) {
            let why = format!("its list of files should be {}", expected.join(", "));
            return Err(BundleError::damaged(&bundle.directory.at(MANIFEST), why));
        }
        for (name, record) in &bundle.manifest.files {
            let found = bundle.file(name).and_then(|file| file.metadata());
            let found = found.map_err(|e| BundleError::damaged(&bundle.at(name), e))?.len();
            if found != record.bytes {
                let why = format!("{found} bytes long instead of {}", record.bytes);
                return Err(BundleError::damaged(&bundle.at(name), why));
            }
        }
        Ok(bundle)
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The bundle's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The data that a report draws, by responder in the order of the run.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] if `series.json` is not the file that was written.
    pub fn details(&self) -> Result<Vec<Details>, BundleError> {
        let bytes = self.read_checked(SERIES)?;
        serde_json::from_slice(&bytes).map_err(|e| BundleError::damaged(&self.at(SERIES), e))
    }

    /// The histogram of a responder of the run, in ns.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] if its file is not the file that was written, or if there is none.
    pub fn histogram(&self, responder: &SeriesName) -> Result<Histogram<u64>, BundleError> {
        let name = histogram_path(responder);
        let bytes = self.read_checked(&name)?;
        let decoded = Deserializer::new().deserialize(&mut bytes.as_slice());
        decoded.map_err(|e| BundleError::damaged(&self.at(&name), e))
    }

    /// Hands every sample to `each`, in the order of recording. Memory does not grow with the number of samples.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] if `samples.parquet` is not the file that was written.
    pub fn samples(&self, each: impl FnMut(Sample)) -> Result<(), BundleError> {
        // The check comes first, because the decoder trusts lengths that it finds in the file.
        self.check(SAMPLES)?;
        let path = self.at(SAMPLES);
        let file = self.file(SAMPLES).map_err(BundleError::io("read", &path))?;
        let names: Vec<&SeriesName> = self.manifest.series.iter().map(|s| &s.responder).collect();
        samples::read_samples(file, &names, each).map_err(|why| BundleError::damaged(&path, why))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.at(name)
    }

    /// A file of the manifest's list. Its name has at most one directory.
    fn file(&self, name: &str) -> io::Result<File> {
        match name.split_once('/') {
            Some((directory, name)) => self.directory.directory(directory)?.file(name),
            None => self.directory.file(name),
        }
    }

    fn record(&self, name: &str) -> Result<&FileRecord, BundleError> {
        let record = self.manifest.files.get(name);
        record
            .ok_or_else(|| BundleError::damaged(&self.at(name), "the file is not in the manifest"))
    }

    fn read_checked(&self, name: &str) -> Result<Vec<u8>, BundleError> {
        let bytes = self.file(name).and_then(|file| confined::bounded(file, FILE_MAX));
        let bytes = bytes.map_err(BundleError::io("read", &self.at(name)))?;
        self.compare(name, blake3::hash(&bytes))?;
        Ok(bytes)
    }

    fn check(&self, name: &str) -> Result<(), BundleError> {
        let mut hasher = blake3::Hasher::new();
        let hashed = self.file(name).and_then(|file| hasher.update_reader(file).map(|_| ()));
        hashed.map_err(BundleError::io("read", &self.at(name)))?;
        self.compare(name, hasher.finalize())
    }

    fn compare(&self, name: &str, found: blake3::Hash) -> Result<(), BundleError> {
        if found.to_hex().as_str() == self.record(name)?.blake3 {
            return Ok(());
        }
        Err(BundleError::damaged(&self.at(name), "its contents have changed"))
    }
}
