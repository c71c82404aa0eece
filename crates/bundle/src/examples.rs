// SPDX-License-Identifier: GPL-2.0-or-later
//! Bundles and manifests for the tests of this and of other crates.

use crate::*;
use sample::{Clock, Insns, Loss, Nanos, Observation, Sample, SeriesId, SeriesName};
use stats::{Limit, Series, Statistic, Summary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) const HARDIRQ: SeriesId = SeriesId(0);
pub(crate) const TASK: SeriesId = SeriesId(1);

pub(crate) fn name(text: &str) -> SeriesName {
    text.parse().expect("a name")
}

pub(crate) fn responders() -> Vec<SeriesName> {
    ["hardirq", "task"].map(name).into()
}

/// The `n`th run of the 21st of November 2026.
pub fn run_id(n: u64) -> RunId {
    let created = UtcTime::from_unix_seconds(1_795_219_200 + n).expect("before the year 9999");
    RunId::new(created, "ladder", 0xbeef)
}

/// The facts about a run of the rig.
pub fn about() -> About {
    let words = |s: &str| s.to_owned();
    About {
        title: words("Response ladder"),
        created: "2026-11-21T20:01:36Z".parse().expect("a time"),
        tool: Tool { version: words("0.1.0"), revision: words("unknown") },
        target: words("rig"),
        flavour: words("6.12 preempt=none"),
        load: words("idle"),
        seed: u64::MAX,
        kernel: Some(Kernel {
            name: words("6.12"),
            release: words("6.12.0-amd64"),
            build: words("#1 SMP PREEMPT_DYNAMIC"),
            command_line: words("preempt=none nokaslr"),
            reported: BTreeMap::new(),
        }),
        machine: Some(Machine {
            accelerator: words("tcg"),
            cpu: words("max"),
            memory_mib: 256,
            icount_shift: Some(0),
            snapshot: None,
            contents_blake3: BTreeMap::new(),
        }),
        qemu: Some(words("10.0.2")),
        plugin: Some(words("0.1.0")),
        experiment: Experiment {
            source: words("title = \"Response ladder\"\n"),
            directory: None,
            overrides: vec![(words("seed"), words("1"))],
            paper: None,
            warm_up: Nanos::from_millis(200),
            probe: None,
            trigger: Some(Trigger {
                schedule: Schedule::Periodic {
                    period: Nanos::from_millis(1),
                    jitter: Nanos::from_micros(200),
                    phase: Nanos::from_millis(1),
                    count: 100,
                },
                high: Nanos(500_000),
                grace: Nanos::from_millis(1_000),
                disturbances: Vec::new(),
            }),
        },
        load_counters: BTreeMap::from([(words("bytes_written"), 4_096)]),
        probe_counters: BTreeMap::new(),
        truth: None,
    }
}

/// The conclusion from the writer's numbers, with one limit.
pub fn conclusion(writer: &BundleWriter) -> Conclusion {
    Conclusion::of(&writer.summaries(), &writer.tallies(), limits(), Vec::new())
}

pub(crate) fn limits() -> Vec<Limit> {
    vec![Limit::at_most(name("task"), Statistic::Max, Nanos::from_millis(1))]
}

/// The beginning of a run with these series.
pub(crate) fn begun(run: &RunId, clock: Clock, responders: Vec<SeriesName>) -> Begun {
    let about = About { kernel: None, machine: None, load_counters: BTreeMap::new(), ..about() };
    let (run, limits, warnings) = (run.clone(), limits(), Vec::new());
    Begun { schema: SCHEMA, run, clock, responders, about, limits, warnings }
}

pub(crate) fn sample(series: SeriesId, trigger: u64) -> Sample {
    // A multiplicative hash makes latencies that differ. They have no pattern that an encoding could hide.
    let latency = Nanos(200 + trigger.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000);
    let at = Nanos(trigger * 1_000_000);
    Sample { series, trigger, at, latency, path: Some(Insns(latency.0 / 2)) }
}

pub(crate) fn writer(root: &Path, run: &RunId, triggers: u64) -> BundleWriter {
    let mut writer = BundleWriter::create(root, &begun(run, Clock::Virtual, responders()))
        .expect("a writable store");
    for trigger in 0..triggers {
        for series in [HARDIRQ, TASK] {
            writer
                .observe(&Observation::Sample(sample(series, trigger)))
                .expect("room on the disk");
        }
    }
    writer.observe(&Observation::Loss(TASK, Loss::Superseded, 2)).expect("room on the disk");
    writer.add_console("[    0.000000] Linux\n").expect("room on the disk");
    writer
}

/// The manifest of a run with this flavour. Each of these responders answered ten times.
pub fn manifest_of(flavour: &str, responders: &[&str]) -> Manifest {
    let series = responders.iter().map(|responder| {
        let mut series = Series::new(name(responder), Clock::Virtual);
        (0..10).for_each(|trigger| series.record(&sample(HARDIRQ, trigger)));
        series.summary()
    });
    let series: Vec<Summary> = series.collect();
    let limits = Vec::new();
    Manifest {
        schema: SCHEMA,
        run: run_id(1),
        complete: true,
        clock: Clock::Virtual,
        about: About { flavour: flavour.to_owned(), ..about() },
        conclusion: Conclusion::of(&series, &[], limits, Vec::new()),
        samples: SamplesRecord {
            count: 10 * series.len() as u64,
            until: Some(Nanos::from_millis(10)),
            blake3: String::new(),
        },
        series,
        paths: Some(Vec::new()),
        files: BTreeMap::new(),
        seal: String::new(),
    }
}

/// Writes a bundle with two responders and this many triggers to the store at `root`.
pub fn write_bundle(root: &Path, run: &RunId, triggers: u64) -> PathBuf {
    let writer = writer(root, run, triggers);
    let conclusion = conclusion(&writer);
    writer.finish(about(), conclusion, true).expect("room on the disk")
}

/// The files of a directory, except the lock.
#[cfg(test)]
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}
