// SPDX-License-Identifier: GPL-2.0-or-later
//! `manifest.json`: what was run, on what, and with which results. This file has everything that is needed to judge or
//! repeat the run. Unknown keys are refused: a file with other keys must have another schema number.

use super::{BundleError, FILE_MAX, RunId, UtcTime, Warning};
use crate::Truth;
use confined::Directory;
use sample::{Clock, Disturbance, Insns, Nanos};
use serde::{Deserialize, Serialize};
use stats::{Finding, Limit, MissTally, Summary, Verdict, judge};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::Path;

/// The number of the format that this version writes and reads.
pub const SCHEMA: u64 = 4;

/// The numbers of the formats that this version reads. Those of schema 3 have no [`Manifest::paths`].
pub(crate) const READ: RangeInclusive<u64> = OLDEST..=SCHEMA;
pub(crate) const OLDEST: u64 = 3;

/// The name of the manifest in a bundle.
pub const MANIFEST: &str = "manifest.json";

/// The manifest of a bundle, which is read or written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The number of the format, [`SCHEMA`].
    pub schema: u64,
    /// The run's name. The directory has the same name.
    pub run: RunId,
    /// False if the run was interrupted. In this case the bundle has the samples until then.
    pub complete: bool,
    /// The clock of every time in the bundle.
    pub clock: Clock,
    /// What was run, and on what.
    pub about: About,
    /// The conclusion.
    pub conclusion: Conclusion,
    /// The raw samples.
    pub samples: SamplesRecord,
    /// The numbers of each series, in the order of the run: its [`SeriesId`](sample::SeriesId)s index this list.
    pub series: Vec<Summary>,
    /// The instructions that the target completed between trigger and answer: the numbers of each series of which they
    /// were counted, in the same order. Absent in bundles of schema 3.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paths: Option<Vec<Summary<Insns>>>,
    /// All other files of the bundle, by their path in it.
    pub files: BTreeMap<String, FileRecord>,
    /// The seal: BLAKE3 of the file before the line of the seal, in hexadecimal. It shows that a byte was changed. It
    /// is no signature, since everybody can compute another seal.
    pub seal: String,
}

/// What was run, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The experiment's title.
    pub title: String,
    /// When the run was started.
    pub created: UtcTime,
    /// The onset that ran it.
    pub tool: Tool,
    /// The kind of target: `local` or `rig`.
    pub target: String,
    /// Kernel and boot options (the flavour), as in `6.12 preempt=none`.
    pub flavour: String,
    /// The load's name.
    pub load: String,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// The kernel that ran. Absent if onset was killed before the target said.
    pub kernel: Option<Kernel>,
    /// The machine on which the kernel ran. Absent if onset was killed before the target said.
    pub machine: Option<Machine>,
    /// The version of QEMU, if one was used.
    pub qemu: Option<String>,
    /// The version of the plugin, if one was used.
    pub plugin: Option<String>,
    /// The experiment, as the user asked for it.
    pub experiment: Experiment,
    /// How much the load did while onset measured, by the load's own counters.
    pub load_counters: BTreeMap<String, u64>,
    /// The counts of a probe beside its samples. The unit ends the name of each.
    pub probe_counters: BTreeMap<String, u64>,
    /// How accurate each series of the probe is; absent if neither a witness nor the port saw it.
    pub truth: Option<Vec<Truth>>,
}

/// A version of onset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// As in `0.1.0`.
    pub version: String,
    /// The commit it was built from, or `unknown`.
    pub revision: String,
}

/// A kernel as it reports itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The name under which the kernel is kept, as in `6.12-rt`.
    pub name: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub build: String,
    /// The whole command line with which the kernel was booted.
    pub command_line: String,
    /// What else the running kernel says of itself, for example its clock source and its limit for real-time tasks.
    pub reported: BTreeMap<String, String>,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The way in which instructions were executed, for example `tcg`.
    pub accelerator: String,
    /// The processor model.
    pub cpu: String,
    /// The memory in MiB.
    pub memory_mib: u32,
    /// An instruction takes 2^shift ns of virtual time. Absent if time is not counted in this way.
    pub icount_shift: Option<u8>,
    /// The key of the snapshot from which the run was restored. Absent if the guest was booted.
    pub snapshot: Option<String>,
    /// The parts of the guest: the hash of each by its name. Absent on a machine, and in older bundles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub contents_blake3: BTreeMap<String, String>,
}

/// The experiment, as the user asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The whole text of the experiment's file.
    pub source: String,
    /// The directory from which relative paths count. Absent without relative paths, if the directory is no text, and
    /// in older bundles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub directory: Option<String>,
    /// The keys and values that were set on the command line, in their order.
    pub overrides: Vec<(String, String)>,
    /// The table or figure of a paper that the experiment makes again.
    pub paper: Option<String>,
    /// The time under load before the measuring phase.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// The triggers, with every default filled in. Absent if a probe measured.
    pub trigger: Option<Trigger>,
    /// The probe's plan, with every default filled in. Absent if triggers were answered.
    pub probe: Option<probes::Plan>,
}

impl About {
    /// The word for the instrument: `trigger`, or the probe's name, as the experiment's sections have them; `generator`
    /// for a generator on a line, and `import` if another program measured.
    pub fn instrument(&self) -> &'static str {
        match (&self.experiment.probe, &self.experiment.trigger) {
            (Some(plan), _) => plan.probe.name(),
            (None, Some(_)) => "trigger",
            (None, None) if self.target == "generator" => "generator",
            (None, None) => "import",
        }
    }
}

/// When triggers are raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The times of the triggers.
    pub schedule: Schedule,
    /// How long the line stays high.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
    /// How long onset waits for an answer to the last trigger.
    #[serde(rename = "grace_ns")]
    pub grace: Nanos,
    /// The disturbances while onset measures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
}

/// The times of triggers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// One trigger in each period.
    Periodic {
        /// The mean distance of two triggers.
        #[serde(rename = "period_ns")]
        period: Nanos,
        /// Each trigger is late by a random time up to this one. The times come from the seed.
        #[serde(rename = "jitter_ns")]
        jitter: Nanos,
        /// The time from the beginning of the measuring phase to the first trigger.
        #[serde(rename = "phase_ns")]
        phase: Nanos,
        /// The number of triggers.
        count: u64,
    },
    /// Triggers at given times.
    Times {
        /// The times since the beginning of the measuring phase, rising.
        times_ns: Vec<Nanos>,
    },
}

/// The conclusion from the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// The outcome.
    pub verdict: Verdict,
    /// The limits that apply to this run.
    pub limits: Vec<Limit>,
    /// The outcome of each limit.
    pub findings: Vec<Finding>,
    /// All warnings.
    pub warnings: Vec<Warning>,
}

impl Conclusion {
    /// The conclusion from a run's numbers, limits and doubts. `tallies` are the misses of each deadline that is
    /// limited. The function adds the doubts that the numbers raise.
    pub fn of(
        summaries: &[Summary],
        tallies: &[MissTally],
        limits: Vec<Limit>,
        mut warnings: Vec<Warning>,
    ) -> Self {
        let is_dropped = |warning: &Warning| matches!(warning, Warning::ChannelDropped { .. });
        let records = summaries.iter().map(|summary| summary.losses.dropped).sum();
        // A probe says itself what it could not hand over. The channel's own count is there already.
        if records > 0 && !warnings.iter().any(is_dropped) {
            warnings.push(Warning::ChannelDropped { records });
        }
        warnings.extend(summaries.iter().flat_map(Warning::of_losses));
        let sound = !warnings.iter().any(Warning::invalidates);
        let judgement = judge(&limits, summaries, tallies, sound);
        let doubtful = judgement.findings.iter().filter_map(|f| Warning::of_finding(f, summaries));
        for doubt in doubtful {
            // Two limits on one series may raise the same.
            if !warnings.contains(&doubt) {
                warnings.push(doubt);
            }
        }
        Conclusion { verdict: judgement.verdict, limits, findings: judgement.findings, warnings }
    }
}

/// The raw samples as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplesRecord {
    /// The number of samples of all responders.
    pub count: u64,
    /// When the last answer came, since measuring began. Absent if there is no sample, and in older bundles.
    #[serde(rename = "until_ns", skip_serializing_if = "Option::is_none", default)]
    pub until: Option<Nanos>,
    /// The hash of the samples' canonical bytes (see [`Fingerprint`](super::Fingerprint)), in hexadecimal.
    pub blake3: String,
}

/// A file of the bundle, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// The length of the file.
    pub bytes: u64,
    /// The hash of the file's bytes, in hexadecimal.
    pub blake3: String,
}

/// The numbers on which a verdict is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Samples of the series with the fewest samples: of the series with limits, or of all series if none has a limit.
    pub samples_min: u64,
    /// Samples of the series with the most samples.
    pub samples_max: u64,
    /// How long the run measured, up to the last answer; null if there was no answer, and in older bundles.
    #[serde(rename = "measured_ns")]
    pub measured: Option<Nanos>,
}

impl Manifest {
    /// Whether another program measured.
    pub fn is_imported(&self) -> bool {
        self.conclusion.warnings.iter().any(|w| matches!(w, Warning::Imported { .. }))
    }

    /// The numbers on which the verdict is based.
    pub fn evidence(&self) -> Evidence {
        let limited =
            |s: &&Summary| self.conclusion.limits.iter().any(|l| l.responder == s.responder);
        let counts = |series: &mut dyn Iterator<Item = &Summary>| -> Vec<u64> {
            series.map(|s| s.count).collect()
        };
        let mut judged = counts(&mut self.series.iter().filter(limited));
        if judged.is_empty() {
            judged = counts(&mut self.series.iter());
        }
        Evidence {
            samples_min: judged.iter().copied().min().unwrap_or(0),
            samples_max: judged.iter().copied().max().unwrap_or(0),
            // An imported file does not say when its loops were.
            measured: self.samples.until.filter(|_| !self.is_imported()),
        }
    }

    /// The text of the file with its seal. It is indented, so that two manifests can be compared line by line.
    pub(super) fn text(&self) -> Vec<u8> {
        let unsealed = Manifest { seal: String::new(), ..self.clone() };
        let mut text = serde_json::to_vec_pretty(&unsealed).expect("plain data without odd keys");
        text.push(b'\n');
        text.truncate(text.len() - end_of("").len());
        let seal = blake3::hash(&text).to_hex();
        text.extend(end_of(&seal).bytes());
        text
    }

    /// Reads the manifest of the bundle in `dir`, and no other file of the bundle.
    ///
    /// # Errors
    /// [`BundleError`] if the directory is no bundle, has another schema, or has not the text that was written.
    pub fn read(dir: &Path) -> Result<Self, BundleError> {
        Self::read_in(&super::directory(dir)?)
    }

    /// The same as [`read`](Self::read) for an open directory.
    pub(crate) fn read_in(dir: &Directory) -> Result<Self, BundleError> {
        let path = dir.at(MANIFEST);
        let bytes = match dir.read(MANIFEST, FILE_MAX) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(BundleError::NotABundle { path: dir.path().to_owned() });
            }
            read => read.map_err(BundleError::io("read", &path))?,
        };
        /// The one key that a manifest of every schema has.
        #[derive(Deserialize)]
        struct Any {
            schema: u64,
        }
        let damaged = |e: serde_json::Error| BundleError::damaged(&path, e);
        let Any { schema: found } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if !READ.contains(&found) {
            return Err(BundleError::ForeignSchema { path, found });
        }
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(damaged)?;
        if found == SCHEMA && manifest.paths.is_none() {
            return Err(BundleError::damaged(&path, "it has no paths"));
        }
        let sealed = bytes.strip_suffix(end_of(&manifest.seal).as_bytes());
        if sealed.is_none_or(|text| blake3::hash(text).to_hex().as_str() != manifest.seal) {
            let why =
                "somebody changed it after it was written, since its seal does not fit its text";
            return Err(BundleError::damaged(&path, why));
        }
        Ok(manifest)
    }
}

/// The end of a manifest with this seal.
fn end_of(seal: &str) -> String {
    format!("  \"seal\": \"{seal}\"\n}}\n")
}
