// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures that onset promises of its probes on this machine, beside cyclictest in alternation. Prints; asserts
//! nothing.
//!
//! Needs what `make build` builds, cyclictest (package rt-tests), and the right to be a real-time task.

mod figure;

use bundle::{Bundle, Manifest};
use figure::{heading, print, spread};
use sample::{Nanos, Stamp};
use serde_json::Value;
use stats::{Quantile, Summary};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What both are run with: a real-time task of high priority on one CPU, which is kept from idling deeply as cyclictest
/// does unless told otherwise. Without that, what a wake-up costs is the host's: a loop of two system calls and nothing
/// else took 22 to 35 µs of CPU time a period, from one minute to the next.
const TASK: [&str; 5] = ["--policy", "fifo:90", "--cpus", "0", "--pm-qos"];
/// Pairs of runs. Other work on the machine comes and goes, so neighbours are compared, and the median pair counts.
const ROUNDS: usize = 9;
/// Samples of a run whose cost is measured: seconds at a short period.
const COSTLY: u64 = 25_000;
const COSTLY_PERIOD: Nanos = Nanos::from_micros(200);
/// A clock tick of proc_pid_stat(5): USER_HZ is 100 on x86.
const TICK: Nanos = Nanos::from_millis(10);

type Answer<T> = Result<T, String>;

fn main() {
    // cargo passes --bench.
    heading();
    let answer = latencies()
        .and_then(|()| cost())
        .and_then(|()| start())
        .and_then(|()| precise())
        .and_then(|()| every_cpu());
    if let Err(why) = answer {
        println!("no further figures: {why}");
    }
}

/// A run of `onset measure`.
struct Run {
    manifest: Manifest,
    /// From starting the command to the first answer.
    first: Option<Nanos>,
}

impl Run {
    fn counter(&self, name: &str) -> Answer<f64> {
        let counters = &self.manifest.about.probe_counters;
        let value = counters.get(name).ok_or_else(|| format!("the probe counted no {name}"))?;
        Ok(*value as f64)
    }

    fn only(&self) -> Answer<&Summary> {
        self.manifest.series.first().ok_or_else(|| "no series".to_owned())
    }

    fn least(&self) -> Answer<f64> {
        self.only()?.min.map(|n| n.0 as f64).ok_or_else(|| "no samples".to_owned())
    }

    fn median(&self) -> Answer<f64> {
        let median = self.only()?.quantile(Quantile::P50);
        median.map(|n| n.0 as f64).ok_or_else(|| "no samples".to_owned())
    }
}

/// `onset measure` with `arguments`.
fn measure(arguments: &[&str]) -> Answer<Run> {
    let store = tempfile::tempdir().map_err(|e| e.to_string())?;
    let command = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/onset");
    let begun = rt::now();
    let output = Command::new(&command)
        .arg("measure")
        .args(arguments)
        .args(["--json", "--store"])
        .arg(store.path())
        .output()
        .map_err(|e| format!("{}: {e}; run make build first", command.display()))?;
    let failed = || String::from_utf8_lossy(&output.stderr).into_owned();
    let printed: Value = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
    let path = printed["runs"][0]["bundle"].as_str().map(PathBuf::from).ok_or_else(failed)?;
    let bundle = Bundle::open(&path).map_err(|e| e.to_string())?;
    let manifest = bundle.manifest().clone();
    let mut first = None;
    if let Some(origin) = manifest.about.probe_counters.get("origin_ns") {
        let origin = Stamp::from_ns(*origin).since(begun);
        let answered = |after: Nanos| origin?.checked_add(after);
        bundle
            .samples(|s| {
                first = first.or_else(|| answered(s.at.saturating_add(s.latency)));
            })
            .map_err(|e| e.to_string())?;
    }
    Ok(Run { manifest, first })
}

/// A run of the probe, and one of cyclictest through it, of `count` periods.
fn pair(period: &str, count: u64) -> Answer<(Run, Run)> {
    let count = count.to_string();
    let how = ["--period", period, "--count", &count];
    let ours = measure(&[&["periodic"], &how[..], &TASK].concat())?;
    let theirs = measure(&[&["cyclictest"], &how[..], &TASK].concat())?;
    Ok((ours, theirs))
}

/// Latencies of absolute sleep at 1 ms.
fn latencies() -> Answer<()> {
    let (mut least, mut median) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (ours, theirs) = pair("1ms", 4_000)?;
        least.push(ours.least()? / theirs.least()?);
        median.push(ours.median()? / theirs.median()?);
    }
    print("minimum latency at 1 ms, ours / cyclictest", "1.00", spread(least, 2));
    print("median latency at 1 ms, ours / cyclictest", "1.00", spread(median, 2));
    Ok(())
}

/// CPU time and memory of the measuring process where both keep every sample, and of cyclictest that keeps none.
fn cost() -> Answer<()> {
    let period = format!("{}us", COSTLY_PERIOD.as_micros());
    let per_million = |cpu_ns: f64| cpu_ns / COSTLY as f64 / 1e3;
    let (mut ours, mut theirs, mut quiet) = (Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut quiet_times, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (our, their) = pair(&period, COSTLY)?;
        let (a, b) = (our.counter("cpu_time_ns")?, their.counter("cpu_time_ns")?);
        let alone = quiet_cyclictest()?.0 as f64;
        ours.push(per_million(a));
        theirs.push(per_million(b));
        quiet.push(per_million(alone));
        times.push(a / b);
        quiet_times.push(a / alone);
        memory.push(our.counter("memory_peak_kib")? / their.counter("memory_peak_kib")?);
    }
    print("CPU time for a million samples, ours, s", "–", spread(ours, 2));
    print("  cyclictest --verbose, s", "–", spread(theirs, 2));
    print("  cyclictest --quiet, which keeps no sample, s", "–", spread(quiet, 2));
    print("  ours / cyclictest --verbose", "1.00", spread(times, 2));
    print("  ours / cyclictest --quiet", "1.00", spread(quiet_times, 2));
    print("peak memory, ours / cyclictest --verbose", "1.00", spread(memory, 2));
    Ok(())
}

/// CPU time of a run of cyclictest without the probe.
fn quiet_cyclictest() -> Answer<Nanos> {
    let before = children_time()?;
    let status = Command::new("cyclictest")
        .args(["--quiet", "--nsecs", "--mlockall", "--threads=1"])
        .args(["--policy=fifo", "--priority=90", "--affinity=0"])
        .arg(format!("--interval={}", COSTLY_PERIOD.as_micros()))
        .arg(format!("--loops={COSTLY}"))
        .stdout(Stdio::null())
        // It says that it holds /dev/cpu_dma_latency.
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("cyclictest: {e}; apt install rt-tests"))?;
    if !status.success() {
        return Err(format!("cyclictest: {status}"));
    }
    Ok(children_time()? - before)
}

/// CPU time of the processes that this one waited for (cutime and cstime of proc_pid_stat(5)).
fn children_time() -> Answer<Nanos> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| e.to_string())?;
    // Behind the name, which may hold spaces: cutime and cstime are fields 16 and 17, the state after it is 3.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(13);
    let ticks: u64 = fields.take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(TICK * ticks)
}

fn start() -> Answer<()> {
    let mut firsts = Vec::new();
    for _ in 0..ROUNDS {
        let run = measure(&[&["periodic", "--count", "1"], &TASK[..]].concat())?;
        let first = run.first.ok_or("no first sample")?;
        firsts.push(first.0 as f64 / 1e6);
    }
    print("start of the command to the first sample (1 ms), ms", "50", spread(firsts, 1));
    Ok(())
}

fn precise() -> Answer<()> {
    let sleep = |method| {
        let what = ["periodic", "--count", "4000", "--method", method];
        measure(&[&what, &TASK[..]].concat()).and_then(|run| run.median())
    };
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let plain = sleep("clock_nanosleep")?;
        ratios.push(sleep("precise")? / plain);
    }
    print("median error, precise sleep / absolute sleep", "0.1", spread(ratios, 4));
    Ok(())
}

/// Ten seconds at 50 µs on every CPU.
fn every_cpu() -> Answer<()> {
    const COUNT: u64 = 200_000;
    let cpus = rt::allowed_cpus().map_err(|e| e.to_string())?;
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let (list, count) = (list.join(","), COUNT.to_string());
    let run = measure(&[
        "periodic", "--period", "50us", "--count", &count, "--policy", "fifo:90", "--cpus", &list,
    ])?;
    let series = &run.manifest.series;
    let measured: u64 = series.iter().map(|s| s.count).sum();
    let lost: u64 = series.iter().flat_map(|s| s.losses.named()).map(|(_, n)| n).sum();
    let missing = (COUNT * cpus.len() as u64).abs_diff(measured + lost);
    print("50 µs on every CPU, 10 s: periods neither counted nor lost", "0", missing.to_string());
    print("  periods lost and counted", "–", format!("{lost} of {}", measured + lost));
    print("  page faults in the loops", "0", run.counter("page_faults")?.to_string());
    Ok(())
}
