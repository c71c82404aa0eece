// SPDX-License-Identifier: GPL-2.0-or-later
//! What costs are in instructions and in virtual time, by what the witness saw. The probe in the guest times the same
//! batches by its own clock, and knows no instructions.

use ::rig::{Batch, Span, Witness};
use probes::Plan;
use std::collections::BTreeMap;

/// The counters of each series: the instructions and the virtual time of the batch in the middle, and the instructions
/// of the least and of the greatest batch. What is taken away from each is the middle of what is to be taken away.
pub(super) fn counters(plan: &Plan, witness: &Witness) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (index, name) in (0u16..).zip(plan.series()) {
        let of = witness.batches.range((index, 0)..=(index, u32::MAX)).map(|(_, batch)| *batch);
        let batches: Vec<Batch> = of.filter(Batch::is_whole).collect();
        let counts = sorted(&batches, |batch| batch.counts);
        let Some(taken) = middle(&sorted(&batches, |batch| batch.takes)) else { continue };
        let mut enter = |what: &str, value: u64, less: u64| {
            // A batch that is shorter than what is to be taken away has no cost.
            if let Some(cost) = value.checked_sub(less) {
                counters.insert(format!("{what}_{name}"), cost);
            }
        };
        let (Some(middle), Some(least), Some(most)) =
            (middle(&counts), counts.first(), counts.last())
        else {
            continue;
        };
        enter("insns", middle.0, taken.0);
        enter("virtual_ns", middle.1, taken.1);
        enter("least_insns", least.0, taken.0);
        enter("most_insns", most.0, taken.0);
    }
    counters
}

/// A part of all batches, rising by instructions.
fn sorted(batches: &[Batch], part: impl Fn(&Batch) -> Span) -> Vec<Span> {
    let mut spans: Vec<Span> = batches.iter().map(part).collect();
    spans.sort_unstable();
    spans
}

fn middle(sorted: &[Span]) -> Option<Span> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}
