// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset tune prove --json` prints: for each knob, its effect and its cost.

use super::effects::{Hunted, Quiet, Reason};
use crate::price;
use bundle::{Manifest, Warning};
use serde::Serialize;
use stats::{Effect, Paired, Statistic};

/// The smallest effect that counts.
pub const SMALLEST: f64 = 0.05;

/// The whole output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Number of this format.
    pub schema: u32,
    /// The responder (the mechanism that answers) whose answers are to come sooner.
    pub responder: String,
    /// The statistic of its latencies.
    pub statistic: &'static str,
    /// The load.
    pub load: String,
    /// The kernels.
    pub kernels: Vec<KernelProof>,
    /// With `--all`, the knobs whose values are of other CPUs than the one that a guest has.
    pub untried: Vec<String>,
}

/// One kernel with its knobs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelProof {
    /// Kernel and boot options (the flavour) without any knob.
    pub flavour: String,
    /// A control (a word that means nothing) first, then each knob. Then all of them together, if they were named and
    /// not screened.
    pub rows: Vec<ProofRow>,
    /// With `--screen`, groups of the knobs that change nothing in a quiet guest: all knobs of a group at once.
    pub groups: Vec<ProofRow>,
    /// What a hunt finds without a change, and with all helping knobs. Absent without `--hunt`, and if no knob helps.
    pub hunted: Option<Hunted>,
}

/// One change.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofRow {
    /// What is changed: the knob, `control`, or `together`.
    pub change: String,
    /// The words that the kernel's command line has more of.
    pub words: String,
    /// The effect on the statistic: one pair for each seed of the guest. Absent if no pair could be measured.
    pub latency: Option<Paired>,
    /// The effect on the time that the load takes for the same work.
    pub load_time: Option<Paired>,
    /// In how many pairs both guests gave the same answers to the nanosecond.
    pub identical: u32,
    /// What the change costs, for each of the costs of an idle system.
    pub costs: Vec<ProofCost>,
    /// Why some pairs could not be measured, in words.
    pub absent: Vec<String>,
    /// The runs: each pair without the change and with it.
    pub runs: Vec<(String, String)>,
    /// With `--screen`, what a quiet guest answers. Absent if the guest with the change could not be measured.
    pub quiet: Option<Quiet>,
    /// The number of the group, from 1, in which the knob got its pairs. Absent if it is in none.
    pub group: Option<u32>,
    /// Of a change that helps or harms, the causes whose part in the late answers changed most, that one first.
    pub reasons: Vec<Reason>,
}

/// One cost, in instructions for an operation.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofCost {
    /// The row of the cost suite.
    pub cost: &'static str,
    /// Without the change.
    pub without: f64,
    /// With it.
    pub with: f64,
}

impl Proof {
    /// Version of the format (docs/prove.schema.json).
    pub const SCHEMA: u32 = 2;
}

/// Runs without a change and with it.
#[derive(Default)]
pub struct Pairs {
    /// Both runs of each seed.
    pub latencies: Vec<(Manifest, Manifest)>,
    /// The runs of the cost suite.
    pub costs: Option<(Manifest, Manifest)>,
    /// Runs that failed, and why.
    pub absent: Vec<String>,
}

impl ProofRow {
    /// Judges the runs of a change.
    pub fn of(
        (change, words): (String, String),
        (responder, statistic): (&str, Statistic),
        mut pairs: Pairs,
    ) -> ProofRow {
        let (sound, unsound): (Vec<_>, Vec<_>) = pairs
            .latencies
            .into_iter()
            .partition(|(a, b)| [a, b].into_iter().all(|run| doubt(run, responder).is_none()));
        let unsound = unsound.iter().flat_map(|(a, b)| [a, b]);
        pairs.absent.extend(unsound.filter_map(|run| doubt(run, responder)));
        let value = |run: &Manifest| {
            let series = run.series.iter().find(|s| s.responder.as_str() == responder)?;
            statistic.of(series)
        };
        let both = |of: &dyn Fn(&Manifest) -> Option<f64>| -> Vec<(f64, f64)> {
            sound.iter().filter_map(|(a, b)| Some((of(a)?, of(b)?))).collect()
        };
        let same = |(a, b): &&(Manifest, Manifest)| a.samples.blake3 == b.samples.blake3;
        let name = |run: &Manifest| run.run.to_string();
        pairs.absent.sort();
        pairs.absent.dedup();
        ProofRow {
            change,
            words,
            latency: Paired::of(&both(&value), SMALLEST),
            load_time: load_time(&sound),
            identical: sound.iter().filter(same).count() as u32,
            costs: pairs.costs.as_ref().map(|(a, b)| costs(a, b)).unwrap_or_default(),
            absent: pairs.absent,
            runs: sound.iter().map(|(a, b)| (name(a), name(b))).collect(),
            quiet: None,
            group: None,
            reasons: Vec::new(),
        }
    }

    /// Whether the change has an effect on the statistic.
    pub fn has_effect(&self) -> bool {
        let effect = self.latency.as_ref().map(|latency| latency.effect);
        matches!(effect, Some(Effect::Helps | Effect::Harms))
    }
}

/// Why a run says nothing, as when the kernel did not take a word. `None` if it is sound.
pub fn unsound(run: &Manifest) -> Option<String> {
    let invalid = run.conclusion.warnings.iter().find(|warning| warning.invalidates());
    let why = || invalid.map_or_else(|| "the run is not complete".into(), Warning::symptom);
    (!price::is_sound(run)).then(why)
}

/// Why a run says nothing, or may hide a longer latency.
fn doubt(run: &Manifest, responder: &str) -> Option<String> {
    if let Some(why) = unsound(run) {
        return Some(why);
    }
    let series = run.series.iter().find(|s| s.responder.as_str() == responder);
    match series {
        None => Some(format!("{responder} did not answer")),
        Some(series) if !price::hides_nothing(&series.losses) => {
            Some(format!("{} triggers have no answer", series.losses.total()))
        }
        Some(_) => None,
    }
}

/// The time for the same work, from how often the load's workers succeeded: the geometric mean over the workers.
fn load_time(pairs: &[(Manifest, Manifest)]) -> Option<Paired> {
    let time = |a: &Manifest, b: &Manifest| {
        let of = |(name, before): (&String, &u64)| {
            let after = *b.about.load_counters.get(name)?;
            let is_work = !name.starts_with("kernel.") && !name.ends_with(".failed");
            let counts = is_work && *before > 0 && after > 0;
            counts.then(|| (*before as f64 / after as f64).ln())
        };
        let logs: Vec<f64> = a.about.load_counters.iter().filter_map(of).collect();
        (!logs.is_empty()).then(|| (1.0, (logs.iter().sum::<f64>() / logs.len() as f64).exp()))
    };
    let times: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| time(a, b)).collect();
    Paired::of(&times, SMALLEST)
}

fn costs(without: &Manifest, with: &Manifest) -> Vec<ProofCost> {
    let (Some(a), Some(b)) = (price::instructions(without), price::instructions(with)) else {
        return Vec::new();
    };
    let cost = |((cost, without), with)| ProofCost { cost, without, with };
    price::COSTS.into_iter().zip(a).zip(b).map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::examples::manifest_of;

    /// A run whose load did so much.
    fn run(counters: &[(&str, u64)]) -> Manifest {
        let mut run = manifest_of("6.12", &["task"]);
        let counters = counters.iter().map(|(name, n)| ((*name).to_owned(), *n));
        run.about.load_counters = counters.collect();
        run
    }

    #[test]
    fn a_load_that_does_half_as_much_takes_twice_the_time_and_failures_are_no_work() {
        let without = run(&[("fork.storm", 100), ("fork.failed", 1), ("kernel.forks", 800)]);
        let with = run(&[("fork.storm", 50), ("fork.failed", 64), ("kernel.forks", 100)]);
        let time = load_time(&[(without.clone(), with)]).expect("work");
        assert!((time.ratio_median - 2.0).abs() < 1e-9, "{time:?}");
        let idle = run(&[]);
        assert_eq!(load_time(&[(idle.clone(), idle)]), None);
    }

    #[test]
    fn a_run_that_is_not_sound_says_why_and_is_no_pair() {
        let without = run(&[]);
        let mut with = without.clone();
        with.complete = false;
        let pairs = Pairs { latencies: vec![(without, with)], ..Pairs::default() };
        let row = ProofRow::of(("a".into(), "a=1".into()), ("task", Statistic::Max), pairs);
        assert_eq!((row.latency, row.runs.len()), (None, 0));
        assert_eq!(row.absent, ["the run is not complete"]);
    }
}
