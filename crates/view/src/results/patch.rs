// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset patch prove --json` prints: what preemption points of our own do.

use super::Proof;
use super::proof::{median, unsound};
use crate::costs::Change;
use bundle::Manifest;
use sample::Nanos;
use serde::Serialize;
use trace::{WindowKind, WindowsReport};

/// The smallest change of a cost that is told: one part in a hundred.
const COST_CHANGE: f64 = 0.01;

/// The whole output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchProof {
    /// Number of this format.
    pub schema: u32,
    /// The pairs, the reasons and the hunts. Each row is a kernel with patches, and the words are its name.
    pub proof: Proof,
    /// Each kernel with patches.
    pub kernels: Vec<PatchedKernel>,
}

/// What differs between the kernel without a patch and the one with some.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchedKernel {
    /// The change, as the proof's row names it.
    pub change: String,
    /// The stretches that its patches cut.
    pub stretches: Vec<PatchedStretch>,
    /// How late each responder answers.
    pub rungs: Vec<PatchedRung>,
    /// The costs that differ by 1 % or more, of all that were measured.
    pub costs: Vec<PatchedCost>,
    /// How many costs were measured.
    pub costs_measured: u32,
}

/// A function in which a kernel stays long with something off: its longest window without the patch and with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchedStretch {
    /// What is off.
    pub kind: WindowKind,
    /// The function: it, or a function that calls it, opened the window.
    pub function: String,
    /// The longest without the patch, less interrupts, softirqs and other tasks that came meanwhile. Absent if there
    /// was none.
    pub before_ns: Option<Nanos>,
    /// The same with it.
    pub after_ns: Option<Nanos>,
}

/// How late a responder answers without the patches and with them: medians over the pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchedRung {
    /// Who answers.
    pub responder: String,
    /// The median latency: before and after.
    pub median_ns: (f64, f64),
    /// The longest latency of a guest: before and after.
    pub max_ns: (f64, f64),
}

/// One operation of an idle system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchedCost {
    /// The row of the cost suite.
    pub cost: &'static str,
    /// Instructions without the patches.
    pub before: f64,
    /// Instructions with them.
    pub after: f64,
}

impl PatchProof {
    /// Version of the format (docs/patch.schema.json).
    pub const SCHEMA: u32 = 1;
}

impl PatchedStretch {
    /// Looks for the function's windows of both kernels.
    pub fn of(
        kind: WindowKind,
        function: String,
        before: &WindowsReport,
        after: &WindowsReport,
    ) -> PatchedStretch {
        let longest = |report: &WindowsReport| {
            let rows = report.windows.iter().filter(|row| row.kind == kind);
            rows.filter_map(|row| row.longest_of(&function)).max()
        };
        let (before_ns, after_ns) = (longest(before), longest(after));
        PatchedStretch { kind, function, before_ns, after_ns }
    }
}

impl PatchedRung {
    /// The responders of the pairs.
    pub fn of(pairs: &[(Manifest, Manifest)]) -> Vec<PatchedRung> {
        let is_valid = |pair: &&(Manifest, Manifest)| {
            [&pair.0, &pair.1].into_iter().all(|run| unsound(run).is_none())
        };
        let pairs: Vec<&(Manifest, Manifest)> = pairs.iter().filter(is_valid).collect();
        let Some((first, _)) = pairs.first() else { return Vec::new() };
        let rung = |responder: &str| {
            let over = |side: fn(&(Manifest, Manifest)) -> &Manifest,
                        of: fn(&stats::Summary) -> Option<Nanos>| {
                let series = pairs.iter().copied().filter_map(|pair| {
                    side(pair).series.iter().find(|s| s.responder.as_str() == responder)
                });
                median(series.filter_map(of).map(|ns| ns.0 as f64).collect())
            };
            let both = |of| Some((over(|(a, _)| a, of)?, over(|(_, b)| b, of)?));
            Some(PatchedRung {
                responder: responder.to_owned(),
                median_ns: both(|s| s.quantile(stats::Quantile::P50))?,
                max_ns: both(|s| s.max)?,
            })
        };
        first.series.iter().filter_map(|series| rung(series.responder.as_str())).collect()
    }
}

impl PatchedCost {
    /// The costs that differ, and how many were measured.
    pub fn of(before: &Manifest, after: &Manifest) -> (Vec<PatchedCost>, u32) {
        let are_valid = [before, after].into_iter().all(|run| unsound(run).is_none());
        let all = Change::all(before, after).filter(|_| are_valid).unwrap_or_default();
        let differs = |change: &&Change| {
            let (before, after) = change.sizes();
            (after - before).abs() >= before * COST_CHANGE
        };
        let cost = |change: &Change| {
            let (before, after) = change.sizes();
            PatchedCost { cost: change.row.name, before, after }
        };
        let differing = all.iter().filter(differs).map(cost).collect();
        (differing, all.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::examples::manifest_of;

    #[test]
    fn rungs_are_medians_over_the_pairs_of_those_who_answered_in_all() {
        let run = |max: &[u64]| {
            let mut run = manifest_of("6.12", &["hardirq", "task"]);
            for (series, max) in run.series.iter_mut().zip(max) {
                series.max = Some(Nanos(*max));
            }
            run
        };
        let pairs = [([10, 100], [5, 50]), ([30, 300], [7, 70]), ([20, 200], [6, 60])];
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (run(a), run(b))).collect();
        let rungs = PatchedRung::of(&pairs);
        let max = |n: usize| (rungs[n].responder.as_str(), rungs[n].max_ns);
        assert_eq!([max(0), max(1)], [("hardirq", (20.0, 6.0)), ("task", (200.0, 60.0))]);
        assert_eq!(PatchedRung::of(&[]), []);
    }

    #[test]
    fn runs_of_no_costs_have_none() {
        let run = manifest_of("6.12", &["task"]);
        assert_eq!(PatchedCost::of(&run, &run), (Vec::new(), 0));
    }
}
