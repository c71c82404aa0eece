// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset tune prove --json` prints: for each knob, its effect and its cost.

use super::effects::{Hunted, Quiet, Reason};
use crate::price;
use bundle::{Manifest, Warning};
use sample::Nanos;
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
    /// The kernels; on a machine the one that runs.
    pub kernels: Vec<KernelProof>,
    /// With `--all`, the knobs whose values are of other CPUs than the one that a guest has.
    pub untried: Vec<String>,
    /// How it was proven on a machine; null in the rig.
    pub machine: Option<MachineProof>,
}

/// A proof on a machine, in pairs of blocks: the one without the change, the other with it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineProof {
    /// The machine's number (machine-id(5)).
    pub machine: String,
    /// The CPUs that were measured.
    pub cpus: String,
    /// How long a block was measured.
    #[serde(rename = "block_ns")]
    pub block: Nanos,
    /// The seed of the lots that put the blocks in order.
    pub seed: u64,
    /// What the screening says of each change, in pairs of blocks that have one half of the changes each. Empty if
    /// there were few changes, which have a proof of their own each.
    pub screening: Vec<ProofRow>,
    /// The changes that help, each by its own proof. All others are dropped.
    pub chosen: Vec<String>,
}

/// One kernel with its knobs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelProof {
    /// Kernel and boot options (the flavour) without any knob.
    pub flavour: String,
    /// A control (a word that means nothing; on a machine nothing) first, then each knob, then several of them
    /// together: in the rig all if they were named and not screened, on a machine those that help.
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
    /// The words that the kernel's command line has more of; on a machine the knobs with their values.
    pub words: String,
    /// The effect on the statistic: one pair for each seed of the guest, or of blocks. Absent if no pair could be
    /// measured.
    pub latency: Option<Paired>,
    /// The statistic without the change: the median over the pairs.
    pub without_ns: Option<f64>,
    /// The statistic with the change: the median over the pairs.
    pub with_ns: Option<f64>,
    /// The greatest that any of these numbers can be in any pair of `runs`, without the change and with it; infinite if
    /// a trigger has no answer. A median says nothing of half of the pairs.
    #[serde(skip)]
    pub worst_ns: (Option<f64>, Option<f64>),
    /// The effect on the time that the load takes for the same work.
    pub load_time: Option<Paired>,
    /// The effect on how often the machine or guest changes tasks. It is neither good nor bad by itself.
    pub context_switches: Option<Paired>,
    /// The effect on the energy that the processors of the machine take. Absent where nobody can read it.
    pub energy: Option<Paired>,
    /// In how many pairs both guests or blocks gave the same answers to the nanosecond.
    pub identical: u32,
    /// What the change costs, for each of the costs of an idle system.
    pub costs: Vec<ProofCost>,
    /// Why some pairs could not be measured, in words.
    pub absent: Vec<String>,
    /// The runs of the pairs in which both are valid: each without the change and with it. Those that say something of
    /// the statistic come first.
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
    pub const SCHEMA: u32 = 3;
}

/// Runs without a change and with it.
#[derive(Default)]
pub struct Pairs {
    /// Both runs of each seed, or both blocks.
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
        goal: (&str, Statistic),
        mut pairs: Pairs,
    ) -> ProofRow {
        let (responder, statistic) = goal;
        let (sound, doubtful): (Vec<_>, Vec<_>) = pairs
            .latencies
            .into_iter()
            .partition(|(a, b)| [a, b].into_iter().all(|run| doubt(run, goal).is_none()));
        let doubts = doubtful.iter().flat_map(|(a, b)| [a, b]);
        pairs.absent.extend(doubts.filter_map(|run| doubt(run, goal)));
        let (sound, open): (Vec<_>, Vec<_>) =
            sound.into_iter().partition(|(a, b)| is_told_apart([a, b], goal));
        pairs.absent.extend(open.iter().map(|_| {
            format!("too many triggers were answered together with an older one to say in which run {statistic} is longer")
        }));
        let is_valid =
            |pair: &&(Manifest, Manifest)| unsound(&pair.0).is_none() && unsound(&pair.1).is_none();
        let valid: Vec<_> =
            sound.iter().chain(&open).chain(doubtful.iter().filter(is_valid)).collect();
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
        let values = both(&value);
        let is_in_doubt = |run: &Manifest| doubt(run, goal).is_some();
        let lost = |is: fn(bool, bool) -> bool| {
            doubtful.iter().filter(|(a, b)| is(is_in_doubt(a), is_in_doubt(b))).count()
        };
        let unpaired = (lost(|a, b| !a && b), lost(|a, b| a && !b));
        let (without_ns, with_ns): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
        let worst = |runs: &mut dyn Iterator<Item = &Manifest>| {
            let values = runs.map(|run| known(run, goal).map_or(f64::INFINITY, |(_, most)| most));
            values.max_by(f64::total_cmp)
        };
        let worst_ns =
            (worst(&mut valid.iter().map(|(a, _)| a)), worst(&mut valid.iter().map(|(_, b)| b)));
        ProofRow {
            change,
            words,
            latency: judged(&values, unpaired),
            without_ns: median(without_ns),
            with_ns: median(with_ns),
            worst_ns,
            load_time: load_time(&sound),
            context_switches: Paired::of(&both(&switches), SMALLEST),
            energy: Paired::of(&both(&energy), SMALLEST),
            identical: sound.iter().filter(same).count() as u32,
            costs: pairs.costs.as_ref().map(|(a, b)| costs(a, b)).unwrap_or_default(),
            absent: pairs.absent,
            runs: valid.iter().map(|(a, b)| (name(a), name(b))).collect(),
            quiet: None,
            group: None,
            reasons: Vec::new(),
        }
    }

    /// Whether the change has an effect on the statistic.
    pub fn has_effect(&self) -> bool {
        matches!(self.effect(), Some(Effect::Helps | Effect::Harms))
    }

    /// Whether the pairs show that the change helps.
    pub fn helps(&self) -> bool {
        self.effect() == Some(Effect::Helps)
    }

    fn effect(&self) -> Option<Effect> {
        self.latency.as_ref().map(|latency| latency.effect)
    }
}

/// Why a run says nothing, as when the kernel did not take a word. `None` if it is sound.
pub fn unsound(run: &Manifest) -> Option<String> {
    let invalid = run.conclusion.warnings.iter().find(|warning| warning.invalidates());
    let why = || invalid.map_or_else(|| "the run is not complete".into(), Warning::symptom);
    (!price::is_sound(run)).then(why)
}

/// Why a run says nothing, or may hide a longer latency.
fn doubt(run: &Manifest, (responder, statistic): (&str, Statistic)) -> Option<String> {
    if let Some(why) = unsound(run) {
        return Some(why);
    }
    let series = run.series.iter().find(|s| s.responder.as_str() == responder);
    match series {
        None => Some(format!("{responder} did not answer")),
        Some(series) if !price::hides_nothing(&series.losses) => {
            let lost = series.losses.named().into_iter().filter(|(_, count)| *count > 0);
            let lost: Vec<_> = lost.map(|(kind, count)| format!("{count} {kind}")).collect();
            Some(format!("{responder} has {}, which may hide a longer latency", lost.join(", ")))
        }
        Some(series) if statistic.of(series).is_none() => {
            let count = series.count;
            Some(format!("{responder} has {count} samples, which are too few for {statistic}"))
        }
        Some(_) => None,
    }
}

/// What pairs say, if those that are missing do not undo it. Of `unpaired`, the first are pairs in which only the run
/// with the change says nothing, as where it panicked: they may be rises. The others may be falls.
fn judged(values: &[(f64, f64)], unpaired: (usize, usize)) -> Option<Paired> {
    let mut paired = Paired::of(values, SMALLEST)?;
    let against = match paired.effect {
        Effect::Helps => std::iter::repeat_n((1.0, 2.0), unpaired.0),
        Effect::Harms => std::iter::repeat_n((2.0, 1.0), unpaired.1),
        Effect::NoEffectSeen | Effect::CannotTell { .. } => return Some(paired),
    };
    let all: Vec<(f64, f64)> = values.iter().copied().chain(against).collect();
    if Paired::of(&all, SMALLEST)?.effect != paired.effect {
        paired.effect = Effect::CannotTell { more_pairs: None };
    }
    Some(paired)
}

/// Between which times the statistic of a run is, over all its triggers. Nobody knows how late superseded triggers
/// would have been answered, but that none was later than the latest answer. A trigger without any answer has no bound.
fn known(run: &Manifest, (responder, statistic): (&str, Statistic)) -> Option<(f64, f64)> {
    let series = run.series.iter().find(|s| s.responder.as_str() == responder)?;
    let measured = statistic.of(series)?;
    if !price::hides_nothing(&series.losses) {
        return None;
    }
    match price::leaves(&series.losses, series.count, statistic) {
        true => Some((measured, measured)),
        false => Some((measured, series.max?.0 as f64)),
    }
}

/// Whether the superseded triggers of two runs leave no doubt about in which of both the statistic is longer, or that
/// it is as measured in both.
fn is_told_apart(pair: [&Manifest; 2], goal: (&str, Statistic)) -> bool {
    let [Some(a), Some(b)] = pair.map(|run| known(run, goal)) else { return true };
    if pair[0].samples.blake3 == pair[1].samples.blake3 {
        return true;
    }
    let is_exact = |(lower, upper): (f64, f64)| lower >= upper;
    (is_exact(a) && is_exact(b)) || a.1 < b.0 || b.1 < a.0
}

/// The time for the same work, from how often the load's workers succeeded: the geometric mean over the workers.
fn load_time(pairs: &[(Manifest, Manifest)]) -> Option<Paired> {
    let time = |a: &Manifest, b: &Manifest| {
        let of = |(name, before): (&String, &u64)| {
            let after = *b.about.load_counters.get(name)?;
            let is_of_machine = ["kernel.", "machine."].iter().any(|of| name.starts_with(of));
            let is_work = !is_of_machine && !name.ends_with(".failed");
            let counts = is_work && *before > 0 && after > 0;
            counts.then(|| (*before as f64 / after as f64).ln())
        };
        let logs: Vec<f64> = a.about.load_counters.iter().filter_map(of).collect();
        (!logs.is_empty()).then(|| (1.0, (logs.iter().sum::<f64>() / logs.len() as f64).exp()))
    };
    let times: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| time(a, b)).collect();
    Paired::of(&times, SMALLEST)
}

/// How often tasks changed.
fn switches(run: &Manifest) -> Option<f64> {
    run.about.load_counters.get("kernel.context_switches").map(|n| *n as f64)
}

/// How much energy the processors took, in µJ. Nothing where the kernel's number began anew.
fn energy(run: &Manifest) -> Option<f64> {
    let energy = run.about.load_counters.get("machine.energy_uj");
    energy.filter(|energy| **energy > 0).map(|energy| *energy as f64)
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values[values.len() / 2]);
    Some((low + high) / 2.0)
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
    use sample::Losses;
    use stats::Quantile;

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
    fn superseded_triggers_leave_a_maximum_and_no_quantile_of_which_they_may_be_most() {
        let p99 = "p99".parse().expect("a statistic");
        let lost = |superseded| Losses { superseded, ..Losses::default() };
        // A hundredth of a thousand triggers are ten.
        assert!(price::leaves(&lost(5), 995, p99) && !price::leaves(&lost(6), 994, p99));
        assert!(price::leaves(&lost(500), 500, Statistic::Max));
        assert!(!price::leaves(&lost(60), 936, Statistic::Mean));
        // Four stalls hide in the second run, and in the third they are what is late.
        let of = |count, p99: u64, max: u64, superseded| {
            let mut run = run(&[]);
            run.series[0].count = count;
            run.series[0].losses = lost(superseded);
            run.series[0].max = Some(Nanos(max));
            run.samples.blake3 = format!("{count} {max}");
            run.series[0].quantiles = [(Quantile::P99, Nanos(p99))].into_iter().collect();
            run
        };
        let [calm, stalls, slow] =
            [of(1_000, 900, 950, 0), of(936, 500, 15_500, 60), of(600, 30_000, 31_000, 400)];
        assert_eq!(known(&stalls, ("task", p99)), Some((500.0, 15_500.0)));
        assert_eq!(known(&calm, ("task", p99)), Some((900.0, 900.0)));
        assert!(!is_told_apart([&calm, &stalls], ("task", p99)));
        assert!(
            is_told_apart([&slow, &calm], ("task", p99))
                && is_told_apart([&calm, &calm], ("task", p99))
        );
        assert!(is_told_apart([&calm, &stalls], ("task", Statistic::Max)));
        // What says nothing of the median may be the worst block all the same.
        let row = |with: &Manifest| {
            let latencies = vec![(calm.clone(), calm.clone()), (calm.clone(), with.clone())];
            let pairs = Pairs { latencies, ..Pairs::default() };
            ProofRow::of(("a".into(), "a=1".into()), ("task", p99), pairs)
        };
        let open = row(&stalls);
        assert_eq!((open.absent.len(), open.runs.len(), open.identical), (1, 2, 1));
        assert_eq!(open.with_ns, Some(900.0));
        assert_eq!(open.worst_ns, (Some(900.0), Some(15_500.0)));
        let mut silent = calm.clone();
        silent.series[0].losses.unanswered = 1;
        assert_eq!(row(&silent).worst_ns, (Some(900.0), Some(f64::INFINITY)));
        // A change that changes nothing is no doubt.
        let pairs = Pairs { latencies: vec![(stalls.clone(), stalls)], ..Pairs::default() };
        let row = ProofRow::of(("a".into(), "a=1".into()), ("task", p99), pairs);
        assert_eq!((row.absent.len(), row.identical), (0, 1));
    }

    #[test]
    fn pairs_that_only_the_change_made_unusable_count_against_it() {
        let values = [(2.0, 1.0); 6];
        assert_eq!(judged(&values, (0, 6)).map(|paired| paired.effect), Some(Effect::Helps));
        let panicked = judged(&values, (6, 0)).map(|paired| paired.effect);
        assert_eq!(panicked, Some(Effect::CannotTell { more_pairs: None }));
        let rising = [(1.0, 2.0); 6];
        assert_eq!(judged(&rising, (6, 0)).map(|paired| paired.effect), Some(Effect::Harms));
        assert_eq!(judged(&[], (1, 0)), None);
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
        let both = (run(&[]), run(&[]));
        let pairs = Pairs { latencies: vec![both], ..Pairs::default() };
        let statistic = "p99.999".parse().unwrap();
        let row = ProofRow::of(("a".into(), "a=1".into()), ("task", statistic), pairs);
        assert!(row.absent[0].contains("too few for p99.999"), "{:?}", row.absent);
    }

    #[test]
    fn the_medians_are_those_of_the_pairs_and_switches_are_no_work() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        let both =
            [10, 30].map(|n| run(&[("kernel.context_switches", n), ("machine.energy_uj", 2 * n)]));
        let pairs = Pairs { latencies: vec![both.clone().into()], ..Pairs::default() };
        let row = ProofRow::of(("a".into(), "a=1".into()), ("task", Statistic::Max), pairs);
        assert_eq!(row.context_switches.map(|paired| paired.ratio_median), Some(3.0));
        assert_eq!(row.energy.map(|paired| paired.ratio_median), Some(3.0));
        assert_eq!(row.load_time, None);
        assert!(row.without_ns.is_some() && row.without_ns == row.with_ns);
    }
}
