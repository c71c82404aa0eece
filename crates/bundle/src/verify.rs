// SPDX-License-Identifier: GPL-2.0-or-later
//! Computes a bundle again from its samples, and compares the results with the bundle.
//!
//! Some parts do not follow from the samples, and only the seal protects them: the experiment, what machine and kernel
//! said about themselves, the counters of load and probe, losses, and warnings that do not follow from the numbers.

use super::collected::Collected;
use super::samples::answered;
use super::{
    Bundle, BundleError, CONSOLE, Conclusion, Details, Fingerprint, MANIFEST, SAMPLES, SERIES,
    Warning, histogram_path,
};
use hdrhistogram::Histogram;
use stats::{MissTally, Series, Summary};
use std::fmt;

/// The parts that were computed again and equal the bundle's. Displays as lines for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of files whose every byte was hashed, with the manifest.
    pub files: usize,
    /// The number of samples from which everything was computed.
    pub samples: u64,
    /// The number of series whose numbers, histogram and drawing follow from the samples.
    pub series: usize,
    /// The number of findings about limits that follow from the numbers, beside the verdict.
    pub findings: usize,
    /// The number of doubts that follow from the numbers.
    pub doubts: usize,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verified { files, samples, series, findings, doubts } = self;
        writeln!(f, "  by hash            every byte of {files} files, manifest.json among them")?;
        writeln!(
            f,
            "  computed again     from {samples} samples: all numbers, histograms and drawings of {series} series, the verdict, \
             {findings} findings, {doubts} warnings"
        )?;
        writeln!(
            f,
            "  only by hash       the experiment, machine and kernel, losses, counters, the other warnings"
        )?;
        writeln!(f, "  A hash shows every change, but not who made it: it is no signature.")
    }
}

impl Bundle {
    /// Computes everything again from the samples, and compares it with the bundle.
    ///
    /// # Errors
    /// [`BundleError::Damaged`] names the first file that disagrees.
    pub fn verify(&self) -> Result<Verified, BundleError> {
        if self.manifest.files.contains_key(CONSOLE) {
            self.check(CONSOLE)?;
        }
        let limits = &self.manifest.conclusion.limits;
        let new = |s: &Summary| Collected::new(s.responder.clone(), self.manifest.clock, limits);
        let mut series: Vec<Collected> = self.manifest.series.iter().map(new).collect();
        self.verify_samples(&mut series)?;
        let paths = series.iter().filter_map(Collected::path).collect::<Vec<_>>();
        if self.manifest.paths.as_ref().is_some_and(|recorded| *recorded != paths) {
            let why = "its numbers of instructions do not follow from the samples";
            return Err(BundleError::damaged(&self.at(MANIFEST), why));
        }
        let recorded = series.iter().zip(&self.manifest.series);
        let tallies: Vec<MissTally> =
            recorded.flat_map(|(one, recorded)| one.tallies(&recorded.losses)).collect();
        let series: Vec<Series> = series.into_iter().map(|one| one.times).collect();
        series
            .iter()
            .zip(&self.manifest.series)
            .try_for_each(|(series, recorded)| self.verify_series(series, recorded))?;
        if self.details()? != series.iter().map(Details::of).collect::<Vec<_>>() {
            let why = "its contents do not follow from the samples";
            return Err(BundleError::damaged(&self.at(SERIES), why));
        }
        let doubts = self.verify_conclusion(&tallies)?;
        Ok(Verified {
            files: self.manifest.files.len() + 1,
            samples: self.manifest.samples.count,
            series: series.len(),
            findings: self.manifest.conclusion.findings.len(),
            doubts,
        })
    }

    /// Records every sample.
    fn verify_samples(&self, series: &mut [Collected]) -> Result<(), BundleError> {
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
            let why = "its samples are not the samples of the manifest";
            return Err(BundleError::damaged(&self.at(SAMPLES), why));
        }
        Ok(())
    }

    fn verify_series(&self, series: &Series, recorded: &Summary) -> Result<(), BundleError> {
        let mut computed = series.summary();
        // A loss leaves no sample, so losses cannot be counted again.
        computed.losses = recorded.losses;
        if computed != *recorded {
            let why =
                format!("its numbers of {} do not follow from the samples", series.responder());
            return Err(BundleError::damaged(&self.at(MANIFEST), why));
        }
        if !same_counts(&self.histogram(series.responder())?, series.histogram()) {
            let path = self.at(&histogram_path(series.responder()));
            return Err(BundleError::damaged(&path, "its contents do not follow from the samples"));
        }
        Ok(())
    }

    /// Judges again. Returns the number of doubts that follow from the numbers.
    fn verify_conclusion(&self, tallies: &[MissTally]) -> Result<usize, BundleError> {
        let recorded = &self.manifest.conclusion;
        let derived = self.judged(tallies, Vec::new());
        let others = recorded.warnings.iter().filter(|w| !derived.warnings.contains(w));
        let mut others: Vec<Warning> = others.cloned().collect();
        // The manifest says whether the run is complete, and so do the doubts. Both have to agree.
        let is_cut_short = others.iter().any(Warning::cuts_short);
        let judged = self.judged(tallies, others.clone());
        others.extend(derived.warnings.iter().cloned());
        let same_doubts = others.len() == recorded.warnings.len()
            && derived.warnings.iter().all(|w| recorded.warnings.contains(w));
        if (judged.verdict, &judged.findings) != (recorded.verdict, &recorded.findings)
            || !same_doubts
            || self.manifest.complete == is_cut_short
        {
            let why = "its verdict, findings or warnings do not follow from its numbers and limits";
            return Err(BundleError::damaged(&self.at(MANIFEST), why));
        }
        Ok(derived.warnings.len())
    }

    fn judged(&self, tallies: &[MissTally], warnings: Vec<Warning>) -> Conclusion {
        let limits = self.manifest.conclusion.limits.clone();
        Conclusion::of(&self.manifest.series, tallies, limits, warnings)
    }
}

/// Whether both are equal in every bucket. The histogram from the file may have been made for another range.
fn same_counts(a: &Histogram<u64>, b: &Histogram<u64>) -> bool {
    let buckets = |h: &Histogram<u64>| -> Vec<(u64, u64)> {
        h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
    };
    buckets(a) == buckets(b)
}
