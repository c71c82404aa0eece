// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures that onset promises, measured on this machine. Prints; asserts nothing.
//!
//! Needs what `make build` builds and the kernels 6.12 and 6.12-rt in the cache. `cargo bench --bench figures --
//! plugin` measures only what the plugin costs; with `ONSET_QEMU` in another QEMU.

mod figure;
mod processor;

use bundle::{self, About, Begun, BundleWriter, Conclusion, Experiment, RunId, Tool, UtcTime};
use experiment::Load;
use figure::{heading, print, spread};
use onset::installation::Installation;
use processor::processor_time;
use rig::{Bench, Cache, Generator, Guest, Outcome, Snapshot, Stimulus};
use sample::{
    ALL_RESPONDERS, Answers, At, Clock, Insns, Nanos, ResponderSet, Schedule, SeriesName, Stamp,
    When,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wire::{Consumer, Event, Producer, ring_bytes, ring_init};
use work::Progress;

fn main() {
    // cargo passes --bench.
    let plugin_only = std::env::args().any(|word| word == "plugin");
    heading();
    if plugin_only {
        return rig(overhead);
    }
    let collected = collecting();
    print("collector, ring to summary, ns a sample", "50", format!("{:.1}", collected.0));
    print("collector with series and journal, ns a sample", "–", format!("{:.1}", collected.1));
    print("bundle made of the journal, ns a sample", "–", format!("{:.1}", collected.2));
    rig(|bench, guest, snapshot| {
        overhead(bench, guest, snapshot);
        ladder();
    });
}

/// Measures in the rig, where there is one.
fn rig(measure: impl Fn(&Bench, &Guest, &(Snapshot, String))) {
    let command = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/onset");
    let installation = match Installation::find_near(&command) {
        Ok(installation) => installation,
        Err(e) => return println!("no figures of the rig: {}", e.message),
    };
    let cache = Cache::of_user().expect("a cache");
    let bench = Bench::new(cache, installation.parts()).expect("a rig");
    let guest = guest(&bench);
    let snapshot = bench.snapshot(&guest, &|p| eprintln!("  {p:?}")).expect("a snapshot");
    measure(&bench, &guest, &snapshot);
}

/// Nanoseconds a sample: up to the summary; up to series and journal of a bundle; and to end that.
fn collecting() -> (f64, f64, f64) {
    const TRIGGERS: u64 = 1_250_000;
    let root = tempfile::tempdir().expect("a directory for the bench");
    let set: ResponderSet = ALL_RESPONDERS.into_iter().collect();
    let created = UtcTime::from_unix_seconds(1_700_000_000).expect("a date");
    let run = RunId::new(created, "bench", 1);
    let names: Vec<SeriesName> = set.iter().map(SeriesName::from).collect();
    let begun = begun(run, created, names.clone());
    let mut writer = BundleWriter::create(root.path(), &begun).expect("a bundle");
    let mut series: Vec<stats::Series> =
        names.into_iter().map(|n| stats::Series::new(n, Clock::Virtual)).collect();
    let plain = collect(TRIGGERS, set, |o| {
        if let sample::Observation::Sample(s) = o {
            series[s.series.index()].record(&s);
        }
    });
    let written = collect(TRIGGERS, set, |o| writer.observe(&o).expect("room for the bench"));
    let samples = (TRIGGERS * 8) as f64;
    assert_eq!(series.iter().map(|s| s.summary().count).sum::<u64>(), TRIGGERS * 8);
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), Vec::new(), Vec::new());
    let began = Instant::now();
    writer.finish(begun.about, conclusion, true).expect("room for the bench");
    let ended = began.elapsed();
    let [plain, written, ended] =
        [plain, written, ended].map(|spent| spent.as_nanos() as f64 / samples);
    (plain, written, ended)
}

fn begun(run: RunId, created: UtcTime, responders: Vec<SeriesName>) -> Begun {
    let trigger = bundle::Trigger {
        schedule: bundle::Schedule::Times { times_ns: Vec::new() },
        high: Nanos(0),
        grace: Nanos(0),
        disturbances: Vec::new(),
    };
    let about = About {
        title: "bench".into(),
        created,
        tool: Tool { version: String::new(), revision: String::new() },
        target: "bench".into(),
        flavour: String::new(),
        load: "idle".into(),
        seed: 0,
        kernel: None,
        machine: None,
        qemu: None,
        plugin: None,
        experiment: Experiment {
            source: String::new(),
            directory: None,
            overrides: Vec::new(),
            paper: None,
            warm_up: Nanos(0),
            trigger: Some(trigger),
            probe: None,
        },
        probe_counters: BTreeMap::new(),
        truth: None,
        load_counters: BTreeMap::new(),
    };
    let (clock, limits, warnings) = (Clock::Virtual, Vec::new(), Vec::new());
    Begun { schema: bundle::SCHEMA, run, clock, responders, about, limits, warnings }
}

/// Time to drain, match and hand on the answers of eight responders to `triggers` triggers.
fn collect(
    triggers: u64,
    set: ResponderSet,
    mut each: impl FnMut(sample::Observation),
) -> Duration {
    const BATCH: u64 = 4096;
    // One place more, which the ring keeps for the record that ends a run.
    let bytes = ring_bytes(BATCH as usize * 9 + 1);
    let mut memory = vec![0u64; bytes / 8];
    let start: *mut u8 = memory.as_mut_ptr().cast();
    // SAFETY: exclusive, aligned memory that outlives both ends.
    let (mut producer, mut consumer) = unsafe {
        ring_init(start, bytes).expect("large enough");
        (
            Producer::attach(start, bytes).expect("initialised"),
            Consumer::attach(start, bytes).expect("initialised"),
        )
    };
    let mut answers = Answers::new(set, Stamp::from_ns(0), 0);
    let (mut pins, mut spent) = (0u16, Duration::ZERO);
    for first in (0..triggers).step_by(BATCH as usize) {
        for number in first..(first + BATCH).min(triggers) {
            let base = number * 1_000_000;
            let at = |ns| At::new(Stamp::from_ns(base + ns), Insns(base + ns));
            producer.push(&Event::Trigger { at: at(0), level: pins, number });
            for responder in set.iter() {
                pins ^= 1 << responder.pin();
                let delay = 300
                    + 1000 * u64::from(responder.pin())
                    + (number.wrapping_mul(0x9e37_79b9) >> 20 & 0xfff);
                producer.push(&Event::Pins { at: at(delay), level: pins, raised: number + 1 });
            }
        }
        let begun = Instant::now();
        consumer.drain(|b, _| {
            Event::decode(b).expect("our own event").tell(&mut answers, &mut each);
        });
        spent += begun.elapsed();
    }
    assert_eq!(consumer.dropped(), 0);
    spent
}

/// Virtual length of a run whose wall time is compared with and without the plugin.
const COMPARED: Nanos = Nanos::from_millis(1_500);
const PAIRS: usize = 5;

fn guest(bench: &Bench) -> Guest {
    let mut guest = Guest::plain(bench, "6.12", Load::Mixed)
        .expect("the kernel 6.12: onset kernels fetch 6.12");
    guest.parameters = vec!["preempt=full".into()];
    let contents = &mut guest.contents;
    (contents.driver, contents.task) = (Some(String::new()), Some(agent::TaskProcess::Agent));
    contents.ends_after_ns = Some(COMPARED.0);
    guest
}

fn overhead(bench: &Bench, guest: &Guest, snapshot: &(Snapshot, String)) {
    // Of few triggers the difference is the plugin's; of many it is the guest's, too, which answers them with eight
    // mechanisms, and without the plugin has nothing to answer.
    for (period_ms, what, promised) in [
        (100, "10 triggers a second", "1.10"),
        (1, "1 kHz of triggers, the guest's own answers included,", "–"),
    ] {
        let (ratios, shares, firsts) = pairs(bench, guest, snapshot, Nanos::from_millis(period_ms));
        print(
            &format!("wall time with the plugin and {what} / without"),
            promised,
            spread(ratios, 2),
        );
        print("  the same of QEMU's processor time", promised, spread(shares, 2));
        if period_ms == 1 {
            print("restored snapshot to first recorded answer, s", "0.5", spread(firsts, 2));
        }
    }
}

/// Wall time and processor time with the plugin to those without, and the seconds to the first answer, in alternation.
fn pairs(
    bench: &Bench,
    guest: &Guest,
    snapshot: &(Snapshot, String),
    period: Nanos,
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let stimulus = Stimulus::Triggers(Generator {
        when: When::Planned(Schedule::Periodic {
            phase: period,
            period,
            jitter: Nanos(0),
            seed: 1,
            count: COMPARED / period + 10,
        }),
        high: Nanos(500_000),
        grace: Nanos::from_millis(100),
        responders: ALL_RESPONDERS.into_iter().collect(),
        disturbances: Vec::new(),
        work: None,
    });
    let (mut ratios, mut shares, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (begun, before) = (Instant::now(), processor_time());
        let outcome: Outcome = bench
            .measure(
                guest,
                &stimulus,
                snapshot,
                &mut |_| ControlFlow::Continue(()),
                None,
                &|_: Progress| (),
            )
            .expect("a run");
        let (with, between) = (begun.elapsed(), processor_time());
        let without = bench.run_without_plugin(guest, &snapshot.0).expect("a run");
        let after = processor_time();
        shares.push((between - before).as_secs_f64() / (after - between).as_secs_f64());
        ratios.push(with.as_secs_f64() / without.as_secs_f64());
        firsts.extend(outcome.first_answer.map(|d| d.as_secs_f64()));
    }
    (ratios, shares, firsts)
}

/// The comparison of `make demo`, first with its snapshots made, then restored from them.
fn ladder() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let store = tempfile::tempdir().expect("a store for the bench");
    for (figure, promised) in [
        ("ladder.toml, snapshots made where missing, s", "–"),
        ("ladder.toml after boot: 5 flavours x 2 loads x 10000, s", "500"),
    ] {
        let begun = Instant::now();
        let mut child = Command::new(target.join("target/release/onset"))
            .args(["run", "experiments/ladder.toml", "--json", "--store"])
            .arg(store.path())
            .current_dir(&target)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("target/release/onset");
        let mut peak_kib = 0;
        while child.try_wait().expect("our child").is_none() {
            peak_kib = peak_memory(child.id()).unwrap_or(peak_kib);
            std::thread::sleep(Duration::from_millis(50));
        }
        print(figure, promised, format!("{:.0}", begun.elapsed().as_secs_f64()));
        print("  memory of the command, MiB", "150", format!("{:.0}", peak_kib as f64 / 1024.0));
    }
}

fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
