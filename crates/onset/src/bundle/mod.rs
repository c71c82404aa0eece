// SPDX-License-Identifier: GPL-2.0-or-later
//! The immutable directory that holds all that one run produced.
//!
//! ```text
//! <run>/manifest.json               what was run, on what, what came out; hash of every other file
//!       samples.parquet             every sample
//!       histograms/<responder>.hdr  HdrHistogram V2, compressed, in ns
//!       series.json                 what a report draws
//!       console.txt                 what the target's kernel printed, where it was heard
//! ```
//!
//! While the run goes on there is `.partial-<run>/` instead, with what was known at its start and a journal of all
//! that it yielded since. Of a run that was killed the next command makes a bundle from these.
//!
//! A bundle is never changed after it appeared. What reading cannot see: an altered manifest that is
//! still consistent with its files.

mod details;
mod error;
mod journal;
mod manifest;
mod run_id;
mod salvage;
mod samples;
#[cfg(test)]
pub(crate) mod tests;
mod warning;
mod writer;

pub use details::Details;
pub use error::BundleError;
pub use manifest::{
    About, Conclusion, Evidence, Experiment, FileRecord, Kernel, MANIFEST, Machine, Manifest,
    SCHEMA, SamplesRecord, Schedule, Tool, Trigger,
};
pub use run_id::{NotARunId, NotATime, RunId, UtcTime};
pub use salvage::salvage;
use samples::answered;
pub use samples::{Fingerprint, GROUP_ROWS};
pub use warning::Warning;
pub(crate) use writer::lock_root;
pub use writer::{Begun, BundleWriter};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use sample::{Sample, SeriesName};
use stats::Series;
use std::fs::File;
use std::path::{Path, PathBuf};

const SAMPLES: &str = "samples.parquet";
const SERIES: &str = "series.json";
const CONSOLE: &str = "console.txt";
const HISTOGRAMS: &str = "histograms";

fn histogram_path(responder: &SeriesName) -> String {
    format!("{HISTOGRAMS}/{responder}.hdr")
}

/// A bundle that was opened: its manifest was read and its files are there at their full length.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    manifest: Manifest,
}

impl Bundle {
    /// Opens the bundle in the directory `path`.
    ///
    /// # Errors
    /// [`BundleError`] names the file that is missing, cut short or foreign, and what to do.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let manifest = Manifest::read(path)?;
        let bundle = Bundle { path: path.to_owned(), manifest };
        let histograms = bundle.manifest.series.iter().map(|s| histogram_path(&s.responder));
        let mut expected: Vec<String> = histograms.chain([SAMPLES.into(), SERIES.into()]).collect();
        // Not every target has a console that can be heard.
        if bundle.manifest.files.contains_key(CONSOLE) {
            expected.push(CONSOLE.into());
        }
        expected.sort();
        // Only these names are ever joined to the path: a manifest cannot point out of its bundle.
        if !bundle.manifest.files.keys().eq(expected.iter()) {
            let why = format!("its list of files is not {}", expected.join(", "));
            return Err(BundleError::damaged(&path.join(MANIFEST), why));
        }
        for (name, record) in &bundle.manifest.files {
            let file = path.join(name);
            let found = file.metadata().map_err(|e| BundleError::damaged(&file, e))?.len();
            if found != record.bytes {
                let why = format!("{found} bytes long instead of {}", record.bytes);
                return Err(BundleError::damaged(&file, why));
            }
        }
        Ok(bundle)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What a report draws, by responder in the order of the run.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] when `series.json` is not what was written.
    pub fn details(&self) -> Result<Vec<Details>, BundleError> {
        let bytes = self.read_checked(SERIES)?;
        serde_json::from_slice(&bytes).map_err(|e| BundleError::damaged(&self.path.join(SERIES), e))
    }

    /// The histogram of a responder of the run, in ns.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] when its file is not what was written, or there is none.
    pub fn histogram(&self, responder: &SeriesName) -> Result<Histogram<u64>, BundleError> {
        let name = histogram_path(responder);
        let bytes = self.read_checked(&name)?;
        let decoded = Deserializer::new().deserialize(&mut bytes.as_slice());
        decoded.map_err(|e| BundleError::damaged(&self.path.join(name), e))
    }

    /// Hands every sample to `each`, in the order of recording; memory does not grow with their number.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] when `samples.parquet` is not what was written.
    pub fn samples(&self, each: impl FnMut(Sample)) -> Result<(), BundleError> {
        // First, because the decoder trusts lengths that it finds in the file.
        self.check(SAMPLES)?;
        let path = self.path.join(SAMPLES);
        let file = File::open(&path).map_err(BundleError::io("read", &path))?;
        let names: Vec<&SeriesName> = self.manifest.series.iter().map(|s| &s.responder).collect();
        samples::read_samples(file, &names, each).map_err(|why| BundleError::damaged(&path, why))
    }

    /// Computes everything again from the samples and compares it with what the bundle says.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] names the first file that disagrees.
    pub fn verify(&self) -> Result<(), BundleError> {
        if self.manifest.files.contains_key(CONSOLE) {
            self.check(CONSOLE)?;
        }
        let clock = self.manifest.clock;
        let new = |s: &stats::Summary| Series::new(s.responder.clone(), clock);
        let mut series: Vec<Series> = self.manifest.series.iter().map(new).collect();
        let (mut fingerprint, mut count, mut until) = (Fingerprint::default(), 0u64, None);
        self.samples(|sample| {
            fingerprint.add(&sample);
            count += 1;
            until = until.max(Some(answered(&sample)));
            series[sample.series.index()].record(&sample);
        })?;
        let recorded = &self.manifest.samples;
        let is_as_long = recorded.until.is_none() || recorded.until == until;
        if (count, fingerprint.hex()) != (recorded.count, recorded.blake3.clone()) || !is_as_long {
            let why = "its samples are not those of the manifest";
            return Err(BundleError::damaged(&self.path.join(SAMPLES), why));
        }
        for (series, recorded) in series.iter().zip(&self.manifest.series) {
            let mut computed = series.summary();
            // Losses left no samples to count them by.
            computed.losses = recorded.losses;
            if computed != *recorded {
                let why =
                    format!("its numbers of {} do not follow from the samples", series.responder());
                return Err(BundleError::damaged(&self.path.join(MANIFEST), why));
            }
            if !same_counts(&self.histogram(series.responder())?, series.histogram()) {
                let path = self.path.join(histogram_path(series.responder()));
                return Err(BundleError::damaged(&path, "it does not follow from the samples"));
            }
        }
        if self.details()? != series.iter().map(Details::of).collect::<Vec<_>>() {
            let why = "it does not follow from the samples";
            return Err(BundleError::damaged(&self.path.join(SERIES), why));
        }
        Ok(())
    }

    fn record(&self, name: &str) -> Result<&FileRecord, BundleError> {
        let record = self.manifest.files.get(name);
        record.ok_or_else(|| BundleError::damaged(&self.path.join(name), "not in the manifest"))
    }

    fn read_checked(&self, name: &str) -> Result<Vec<u8>, BundleError> {
        let path = self.path.join(name);
        let bytes = std::fs::read(&path).map_err(BundleError::io("read", &path))?;
        self.compare(name, blake3::hash(&bytes))?;
        Ok(bytes)
    }

    fn check(&self, name: &str) -> Result<(), BundleError> {
        let path = self.path.join(name);
        let mut hasher = blake3::Hasher::new();
        let hashed = File::open(&path).and_then(|file| hasher.update_reader(file).map(|_| ()));
        hashed.map_err(BundleError::io("read", &path))?;
        self.compare(name, hasher.finalize())
    }

    fn compare(&self, name: &str, found: blake3::Hash) -> Result<(), BundleError> {
        if found.to_hex().as_str() == self.record(name)?.blake3 {
            return Ok(());
        }
        Err(BundleError::damaged(&self.path.join(name), "its contents have changed"))
    }
}

/// Equal in every bucket; the one from the file may have been made for another range.
fn same_counts(a: &Histogram<u64>, b: &Histogram<u64>) -> bool {
    let buckets = |h: &Histogram<u64>| -> Vec<(u64, u64)> {
        h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
    };
    buckets(a) == buckets(b)
}
