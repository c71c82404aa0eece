// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kernel gets and what it pays: how late its `task` answered at worst, beside what its services cost. A kernel
//! is on the Pareto front if no other one is as good in everything and better in something.
//!
//! The longest answer is that of a run; a longer run may meet a longer one. Costs are those of an idle system.

use crate::costs;
use bundle::Manifest;
use bundle::company::unequal;
use probes::Figures;
use sample::{Losses, Nanos};
use serde::Serialize;
use stats::{Quantile, Statistic, Verdict};
use std::collections::BTreeSet;

/// The responder whose answers count: a process, which is what most users wait for.
const RESPONDER: &str = "task";
/// The costs that count: a system call that does nothing, one that works, and a switch between two processes.
pub(crate) const COSTS: [&str; 3] = ["null_call", "open_close", "context_2p_0k"];
/// The load under which costs count.
pub(crate) const IDLE: &str = "idle";

/// A kernel by what it gets and what it pays.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// The kernel and its boot options.
    pub flavour: String,
    /// The run with its longest answer, and the load under which that came.
    pub latency_run: String,
    /// The load.
    pub load: String,
    /// The longest answer of `task`.
    pub worst_ns: Nanos,
    /// How many answers there were under that load.
    pub answers: u64,
    /// The run with its costs.
    pub cost_run: String,
    /// What one operation of each cost takes, in the order of [`Prices::costs`].
    pub costs: Vec<f64>,
    /// Whether no other kernel is as good in all numbers and better in one.
    pub on_front: bool,
}

/// The kernels of which both is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    /// The names of the costs.
    pub costs: Vec<&'static str>,
    /// What the costs are counted in.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["instructions", "ns"])))]
    pub unit: &'static str,
    /// The kernels, in the order of the runs.
    pub kernels: Vec<Price>,
}

impl Prices {
    /// The prices of the kernels that the runs measured. A kernel has one if its answers are known under every load
    /// under which those of another one are, and its costs. `None` if fewer than two kernels have one, and if not the
    /// same responders answered: who has fewer of them answers earlier.
    pub(crate) fn of(runs: &[&Manifest]) -> Option<Prices> {
        let paid: Vec<(&Manifest, Vec<Cost>)> =
            runs.iter().filter_map(|run| Some((*run, paid(run)?))).collect();
        let is_counted = paid.iter().all(|(_, costs)| costs.iter().all(|c| c.insns.is_some()));
        let answered: Vec<Got> = runs.iter().filter_map(|run| got(run)).collect();
        let is_paid = |got: &&Got| paid.iter().any(|(run, _)| is_of(run, got.run));
        let loads: BTreeSet<&str> =
            answered.iter().filter(is_paid).map(|got| got.run.about.load.as_str()).collect();
        let mut kernels: Vec<Price> = Vec::new();
        let mut of_all: Vec<&Manifest> = Vec::new();
        for (cost_run, costs) in &paid {
            let own = || answered.iter().filter(|got| is_of(got.run, cost_run));
            let has = |load: &str| own().any(|got| got.run.about.load == load);
            let known = kernels.iter().any(|known| known.flavour == cost_run.about.flavour);
            if known || !loads.iter().all(|load| has(load)) || !own().all(|got| got.is_whole) {
                continue;
            }
            let Some(worst) = own().max_by_key(|got| got.worst) else { continue };
            of_all.extend(own().map(|got| got.run));
            let load = &worst.run.about.load;
            let under_it = own().filter(|got| got.run.about.load == *load);
            kernels.push(Price {
                flavour: cost_run.about.flavour.clone(),
                latency_run: worst.run.run.to_string(),
                load: load.clone(),
                worst_ns: worst.worst,
                answers: under_it.map(|got| got.answers).sum(),
                cost_run: cost_run.run.to_string(),
                costs: costs
                    .iter()
                    .map(|c| c.insns.filter(|_| is_counted).unwrap_or(c.ns))
                    .collect(),
                on_front: false,
            });
        }
        if kernels.len() < 2 || unequal(of_all).is_some() {
            return None;
        }
        let numbers: Vec<Vec<f64>> = kernels.iter().map(Price::numbers).collect();
        for (own, kernel) in numbers.iter().zip(&mut kernels) {
            kernel.on_front = !numbers.iter().any(|other| is_better(other, own));
        }
        let unit = if is_counted { "instructions" } else { "ns" };
        Some(Prices { costs: COSTS.into(), unit, kernels })
    }
}

/// Whether both runs are of the same kernel with the same boot options.
fn is_of(one: &Manifest, other: &Manifest) -> bool {
    one.about.flavour == other.about.flavour
}

impl Price {
    /// Everything of which less is better.
    fn numbers(&self) -> Vec<f64> {
        [&[self.worst_ns.0 as f64], self.costs.as_slice()].concat()
    }
}

/// Whether one is as good in all numbers, and better in one.
fn is_better(one: &[f64], other: &[f64]) -> bool {
    let pairs = || one.iter().zip(other);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

/// The longest answer of a run.
struct Got<'a> {
    run: &'a Manifest,
    worst: Nanos,
    answers: u64,
    /// Whether no longer answer is missing.
    is_whole: bool,
}

/// What a run with triggers got.
fn got<'a>(run: &'a Manifest) -> Option<Got<'a>> {
    run.about.experiment.trigger.as_ref()?;
    let series = run.series.iter().find(|series| series.responder.as_str() == RESPONDER)?;
    let is_whole = is_sound(run) && series.max.is_some() && hides_nothing(&series.losses);
    Some(Got { run, worst: series.max.unwrap_or_default(), answers: series.count, is_whole })
}

/// Whether a run is complete, and not unsound.
pub(crate) fn is_sound(run: &Manifest) -> bool {
    run.complete && run.conclusion.verdict != Verdict::Invalid
}

/// Whether no loss may hide a longer latency. An answer to several triggers counts for the oldest one, so superseded
/// triggers hide none. All other losses may hide one.
pub(crate) fn hides_nothing(losses: &Losses) -> bool {
    losses.total() == losses.superseded
}

/// Whether the superseded triggers leave a statistic as it is. They came late, and nobody knows how late. So they make
/// what is beyond a quantile more: as long as they are no more than half of what is beyond it anyway, it is a little
/// further down among all triggers. Half is chosen. A mean has no such part, and counts as p99 does.
pub(crate) fn leaves(losses: &Losses, count: u64, statistic: Statistic) -> bool {
    let all = count + losses.superseded;
    let beyond = |quantile: Quantile| all - quantile.rank(all);
    match statistic {
        Statistic::Max => true,
        Statistic::Quantile(quantile) => losses.superseded * 2 <= beyond(quantile),
        Statistic::Mean => losses.superseded * 2 <= beyond(Quantile::P99),
    }
}

/// The instructions of each of [`COSTS`] that a run counted, if it measured all of them on an idle system.
pub(crate) fn instructions(run: &Manifest) -> Option<Vec<f64>> {
    paid(run)?.into_iter().map(|cost| cost.insns).collect()
}

struct Cost {
    insns: Option<f64>,
    ns: f64,
}

/// What a run paid, if it measured all of [`COSTS`] on an idle system.
fn paid(run: &Manifest) -> Option<Vec<Cost>> {
    costs::of(run)?;
    if run.about.load != IDLE || !is_sound(run) {
        return None;
    }
    let figures = Figures(&run.about.probe_counters);
    let cost = |name: &&str| {
        let figure = figures.of(name)?;
        Some(Cost { insns: figure.insns_per_operation(), ns: figure.ns_per_operation() })
    };
    COSTS.iter().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::Bundle;
    use bundle::examples::{run_id, write_bundle};

    /// A run of `flavour` in which `task` answered after at most `worst`, and one that measured costs.
    fn runs(flavour: &str, worst: u64, insns: [u64; 3]) -> [Manifest; 2] {
        let root = tempfile::tempdir().expect("a directory");
        let path = write_bundle(root.path(), &run_id(0), 5);
        let example = Bundle::open(&path).expect("a bundle").manifest().clone();
        let mut latency = example.clone();
        latency.about.flavour = flavour.into();
        latency.about.load = "mixed".into();
        latency.series.truncate(1);
        latency.series[0].responder = RESPONDER.parse().expect("a name");
        latency.series[0].max = Some(Nanos(worst));
        let mut cost = example;
        cost.about.flavour = flavour.into();
        cost.about.load = IDLE.into();
        cost.about.experiment.trigger = None;
        cost.about.experiment.probe = Some(probes::Plan {
            probe: probes::Probe::Cost(probes::plan::Cost {
                suites: vec![probes::plan::Suite::Syscalls],
                count: 1,
                repetitions: 1,
                seed: 1,
            }),
            policy: rt::Policy::Other(0),
            cpus: vec![0],
            pm_qos: false,
            program: None,
        });
        for (name, insns) in COSTS.into_iter().zip(insns) {
            let more = ["median_ps", "least_median_ps", "most_median_ps", "virtual_ns", "insns"];
            let counters = more.map(|what| (format!("{what}_{name}"), insns));
            cost.about.probe_counters.extend(counters);
            cost.about.probe_counters.insert(format!("ops_{name}"), 1);
            cost.about.probe_counters.insert(format!("outliers_{name}"), 0);
        }
        [latency, cost]
    }

    fn prices(of: &[(&str, u64, [u64; 3])]) -> Option<Prices> {
        let all: Vec<Manifest> =
            of.iter().flat_map(|(f, worst, costs)| runs(f, *worst, *costs)).collect();
        Prices::of(&all.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_kernel_that_another_one_beats_in_everything_is_not_on_the_front() {
        let prices = prices(&[
            ("6.12 preempt=none", 2_000_000, [376, 6_000, 2_000]),
            ("6.12-rt", 30_000, [376, 8_000, 3_000]),
            ("7.3-rt", 30_000, [376, 8_000, 2_900]),
        ])
        .expect("three kernels");
        assert_eq!(prices.unit, "instructions");
        let front: Vec<_> =
            prices.kernels.iter().map(|k| (k.flavour.as_str(), k.on_front)).collect();
        assert_eq!(front, [("6.12 preempt=none", true), ("6.12-rt", false), ("7.3-rt", true)]);
        assert_eq!(prices.kernels[1].costs, [376.0, 8_000.0, 3_000.0]);
        assert_eq!(
            (prices.kernels[0].worst_ns, prices.kernels[0].load.as_str()),
            (Nanos(2_000_000), "mixed")
        );
    }

    /// Two kernels, each with a run at rest beside the busy one.
    fn two_kernels_at_rest_and_busy() -> Vec<Manifest> {
        let of = |flavour: &str| {
            let [busy, cost] = runs(flavour, 50_000, [1, 2, 3]);
            let mut idle = busy.clone();
            idle.about.load = IDLE.into();
            idle.series[0].max = Some(Nanos(7_000));
            [busy, idle, cost]
        };
        [of("6.12"), of("7.3")].into_iter().flatten().collect()
    }

    fn are_known(runs: &[Manifest]) -> bool {
        Prices::of(&runs.iter().collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn a_kernel_whose_busy_run_is_unsound_or_hides_an_answer_is_not_compared_by_its_run_at_rest() {
        let sound = two_kernels_at_rest_and_busy();
        assert!(are_known(&sound));
        let mut invalid = sound.clone();
        invalid[0].conclusion.verdict = Verdict::Invalid;
        assert!(!are_known(&invalid));
        let mut cut = sound.clone();
        cut[0].complete = false;
        assert!(!are_known(&cut));
        let mut lossy = sound.clone();
        lossy[0].series[0].losses.unanswered = 1;
        assert!(!are_known(&lossy));
        let mut superseded = sound.clone();
        superseded[0].series[0].losses.superseded = 3;
        assert!(are_known(&superseded));
        // Without its busy run it would be compared at rest.
        let mut lacking = sound.clone();
        lacking.remove(0);
        assert!(!are_known(&lacking));
        let mut fewer = sound;
        fewer[0].series.clear();
        assert!(!are_known(&fewer));
    }

    #[test]
    fn the_sentence_of_a_report_has_the_least_and_the_greatest_of_each_cost() {
        let [_, none] = runs("6.12 preempt=none", 5, [376, 6_000, 2_000]);
        let [_, rt] = runs("6.12-rt", 5, [376, 8_000, 1_900]);
        assert_eq!(
            costs::sentence(&[&none, &rt]).expect("costs"),
            "null_call costs 376 instructions; open_close costs 6,000 instructions on 6.12 preempt=none and 8,000 on 6.12-rt; context_2p_0k costs 1,900 instructions on 6.12-rt and 2,000 on 6.12 preempt=none."
        );
        assert_eq!(costs::sentence(&[]), None);
    }

    #[test]
    fn one_kernel_alone_has_no_front_and_an_unsound_run_counts_for_nothing() {
        assert_eq!(prices(&[("6.12", 5, [1, 2, 3])]), None);
        let mut all: Vec<Manifest> = [("6.12", 5), ("7.3", 6)]
            .iter()
            .flat_map(|(f, worst)| runs(f, *worst, [1, 2, 3]))
            .collect();
        assert!(Prices::of(&all.iter().collect::<Vec<_>>()).is_some());
        all[3].conclusion.verdict = Verdict::Invalid;
        assert_eq!(Prices::of(&all.iter().collect::<Vec<_>>()), None);
    }
}
