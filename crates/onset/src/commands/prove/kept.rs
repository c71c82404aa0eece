// SPDX-License-Identifier: GPL-2.0-or-later
//! The proofs that a store keeps, and the knobs that they show to help towards a goal.
//!
//! A kept proof is the output of `onset tune prove --json`. Of it only the names of the runs count: the runs themselves
//! are judged anew, by the goal's statistic.

use super::blocks::{Subject, undecided};
use super::{CONTROL_ROW, TOGETHER, knob};
use crate::arguments::TuneApply;
use crate::commands::write_file;
use crate::failure::{Exit, Failure};
use bundle::{Bundle, Manifest};
use machine::{Cpus, Plan, System};
use probes::context::show_cpu_list;
use sample::Nanos;
use serde::Deserialize;
use stats::{Condition, Effect, Paired, Threshold};
use std::fs;
use std::path::Path;
use view::results::{Pairs, Proof, ProofRow};
use view::visible::tell;

/// The directory of the proofs in a store.
const DIRECTORY: &str = "proofs";
/// The most bytes of a proof.
const PROOF_MAX: u64 = 64 << 20;

/// What counts of a kept proof.
#[derive(Deserialize)]
struct Kept {
    responder: String,
    load: String,
    kernels: Vec<Kernel>,
    machine: Option<Machine>,
}

#[derive(Deserialize)]
struct Machine {
    machine: String,
    cpus: String,
}

#[derive(Deserialize)]
struct Kernel {
    flavour: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    change: String,
    words: String,
    runs: Vec<(String, String)>,
}

/// Keeps a proof in the store, under the name of its first run.
pub fn keep(proof: &Proof, store: &Path) -> Result<(), Failure> {
    let mut runs = proof.kernels.iter().flat_map(|kernel| &kernel.rows).flat_map(|row| &row.runs);
    let Some((first, _)) = runs.next() else { return Ok(()) };
    let directory = store.join(DIRECTORY);
    let failed = |e| Failure::unavailable(format!("{}: {e}", directory.display()));
    fs::create_dir_all(&directory).map_err(failed)?;
    let text = serde_json::to_string_pretty(proof).expect("plain data");
    write_file(&directory.join(format!("{first}.json")), &(text + "\n"))
}

/// The proofs of a series on this machine, its kernel and these measured CPUs, beside the load of the newest one; the
/// newest first.
fn kept(
    store: &Path,
    system: &System,
    (cpus, series): (&Cpus, &str),
) -> Result<Vec<Kept>, Failure> {
    let directory = store.join(DIRECTORY);
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort_by(|a, b| b.cmp(a));
    let read = |path: &std::path::PathBuf| -> Result<Kept, Failure> {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::unavailable(format!("{}: {e}; move the file away", path.display()))
        };
        let bytes = confined::read(path, PROOF_MAX).map_err(|e| wrong(&e))?;
        serde_json::from_slice(&bytes).map_err(|e| wrong(&e))
    };
    let all = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let found = all.len();
    let measured = show_cpu_list(&cpus.measured);
    let is_here = |kept: &Kept| {
        let is_same = |of: &Machine| of.machine == system.machine() && of.cpus == measured;
        let release = system.release();
        kept.responder == series
            && kept.machine.as_ref().is_some_and(is_same)
            && kept.kernels.iter().all(|kernel| Some(&kernel.flavour) == release.as_ref())
    };
    let mut here: Vec<Kept> = all.into_iter().filter(is_here).collect();
    let Some(load) = here.first().map(|newest| newest.load.clone()) else {
        return Err(undecided(format!(
            "no proof in {} is of {series} on this machine, its kernel and CPU {measured} ({found} are of others), so the \
             goal cannot be judged; make one: onset tune prove --knob NAME=VALUE --goal {series}.p99 --cpus {measured} \
             --store {}",
            directory.display(),
            store.display()
        )));
    };
    here.retain(|kept| kept.load == load);
    tell!("onset: {} proofs beside the load {load} judge the goal, on CPU {measured}", here.len());
    Ok(here)
}

/// The plan of the knobs that help towards a goal within the cost, and the status that says whether they reach it.
///
/// # Errors
/// If the goal or the cost is none, or if no proof can judge it. Nothing is changed.
pub fn towards(
    goal: &str,
    arguments: &TuneApply,
    (system, cpus): (&System, &Cpus),
) -> Result<(Plan, Exit), Failure> {
    let wrong = |e: &dyn std::fmt::Display| Failure::usage(format!("--goal: {e}"));
    let condition: Condition<Nanos> = Condition::goal(goal).map_err(|e| wrong(&e))?;
    let cost = arguments.cost.as_deref().map(stats::cost).transpose();
    let cost = cost.map_err(|e| Failure::usage(format!("--cost: {e}")))?;
    let subject = Subject::find(condition.responder.as_str(), cpus);
    let subject = subject.map_err(|e| wrong(&e.message))?;
    let Threshold::Value(bound) = condition.bound else { unreachable!("a goal's bound") };
    let store = arguments.store.store.as_path();
    let rows =
        rows(&kept(store, system, (cpus, &subject.series))?, store, &subject.series, &condition);
    let mut chosen: Vec<&ProofRow> = Vec::new();
    for row in rows.iter().filter(|row| ![CONTROL_ROW, TOGETHER].contains(&row.change.as_str())) {
        let other = chosen.iter().any(|other| knob(&other.words) == knob(&row.words));
        match unfit(row, cost) {
            None if other => tell!("onset: {} stays out: another value of it helps", row.words),
            None => chosen.push(row),
            Some(why) => tell!("onset: {} stays out: {why}", row.words),
        }
    }
    if chosen.is_empty() {
        return Err(undecided(format!(
            "no proof shows a knob that helps towards {goal:?} within the cost; nothing is changed"
        )));
    }
    let within = |ns: Option<f64>| ns.map(|ns| ns < bound.0 as f64);
    if chosen.iter().all(|row| within(row.worst_ns.0) == Some(true)) {
        tell!(
            "onset: each valid block of the proofs kept the goal without any knob; nothing is changed"
        );
        return Ok((Plan::default(), Exit::Success));
    }
    let words: Vec<String> = chosen.iter().map(|row| row.words.clone()).collect();
    let plan = Plan::default().with(&words, cpus).map_err(Failure::usage)?;
    let is_all = |row: &&ProofRow| {
        let mut of_row: Vec<&str> = row.words.split(' ').collect();
        let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
        of_row.sort_unstable();
        all.sort_unstable();
        of_row == all
    };
    let together = rows.iter().find(is_all);
    let why_not = match together {
        Some(row) => unfit(row, cost),
        None => cost.map(|_| "no proof measured them together, so their cost is unknown".into()),
    };
    if let Some(why) = why_not {
        let knobs: Vec<String> = words.iter().map(|word| format!("--knob {word}")).collect();
        return Err(undecided(format!(
            "each of {} helps, but together: {why}; nothing is changed; prove them together, on the same CPUs and beside the same load: \
             onset tune prove {} --goal {}.{}",
            words.join(", "),
            knobs.join(" "),
            subject.series,
            condition.statistic
        )));
    }
    let worst = together.and_then(|row| row.worst_ns.1);
    let median = together.and_then(|row| row.with_ns);
    Ok((plan, reached(goal, (worst, median), within(worst))))
}

/// Says whether the goal was reached with all chosen knobs: in each valid block of the proof. With the number of the
/// worst block, and the median of all.
fn reached(goal: &str, with: (Option<f64>, Option<f64>), is_within: Option<bool>) -> Exit {
    let time = |ns: f64| match ns.is_finite() {
        true => Nanos(ns.ceil() as u64).to_string(),
        false => "nobody knows how late".into(),
    };
    match (with.0.zip(with.1), is_within) {
        (Some((worst, _)), Some(true)) => {
            let worst = time(worst);
            tell!(
                "onset: in each valid block of the proof these knobs reached {goal:?}: {worst} at most"
            );
            Exit::Success
        }
        (Some((worst, median)), _) => {
            let (worst, median) = (time(worst), time(median));
            tell!(
                "onset: in the proof these knobs did not reach {goal:?}: {worst} in the worst block, {median} in the median"
            );
            Exit::Exceeded
        }
        (None, _) => {
            tell!(
                "onset: no proof measured these knobs together, so nobody knows whether they reach {goal:?}"
            );
            Exit::Undecided
        }
    }
}

/// The newest row of each change, from its runs.
fn rows(
    proofs: &[Kept],
    store: &Path,
    series: &str,
    condition: &Condition<Nanos>,
) -> Vec<ProofRow> {
    let mut rows: Vec<ProofRow> = Vec::new();
    for row in proofs.iter().flat_map(|proof| &proof.kernels).flat_map(|kernel| &kernel.rows) {
        if rows.iter().any(|newer| newer.words == row.words) {
            continue;
        }
        let mut pairs = Pairs::default();
        for (without, with) in &row.runs {
            let run = |name: &String| -> Result<Manifest, String> {
                let bundle = Bundle::open(&store.join(name)).map_err(|e| e.to_string())?;
                Ok(bundle.manifest().clone())
            };
            match (run(without), run(with)) {
                (Ok(a), Ok(b)) => pairs.latencies.push((a, b)),
                (a, b) => pairs.absent.extend([a.err(), b.err()].into_iter().flatten()),
            }
        }
        let goal = (series, condition.statistic);
        rows.push(ProofRow::of((row.change.clone(), row.words.clone()), goal, pairs));
    }
    rows
}

/// Why a knob is not applied.
fn unfit(row: &ProofRow, cost: Option<f64>) -> Option<String> {
    let Some(latency) = &row.latency else {
        let why = row.absent.first().map_or("its proof has no pairs", String::as_str);
        return Some(format!("it is not proven: {why}"));
    };
    match latency.effect {
        Effect::Helps => cost.and_then(|most| too_dear(row.load_time.as_ref(), most)),
        Effect::Harms => Some("it harms".into()),
        Effect::NoEffectSeen => Some("no effect is seen".into()),
        Effect::CannotTell { .. } => Some("its pairs cannot tell whether it helps".into()),
    }
}

/// Why a cost is not known to be within `most` of the throughput: the whole interval has to be.
fn too_dear(load_time: Option<&Paired>, most: f64) -> Option<String> {
    let interval = load_time.and_then(|time| time.ratio_interval);
    let Some((_, longest)) = interval else {
        return Some(
            "its cost is unknown: the load counted too little, or there are too few pairs".into(),
        );
    };
    let less = 1.0 - 1.0 / longest;
    (less > most).then(|| format!("it may cost {:.1} % of the throughput", 100.0 * less))
}
