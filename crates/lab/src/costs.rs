// SPDX-License-Identifier: GPL-2.0-or-later
//! What costs are in instructions and in virtual time, by what the witness saw. The probe in the guest times the same
//! batches by its own clock, and knows no instructions.

use probes::Plan;
use rig::{Batch, BatchId, Span, Witness};
use std::collections::BTreeMap;

/// The batches of a series that make its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The batch in the middle by what counts.
    pub counts: (BatchId, Span),
    /// The batch in the middle by what is to be taken away.
    pub takes: (BatchId, Span),
    /// The least and the greatest of what counts.
    ends: (Span, Span),
}

impl Figure {
    /// The figure of the series with this index. `None` if no batch of it is whole.
    pub fn of(witness: &Witness, series: u16) -> Option<Figure> {
        let whole = || {
            let of = witness.batches.range((series, 0)..=(series, u32::MAX));
            of.filter(|(_, batch)| batch.is_whole())
        };
        let rising = |part: fn(&Batch) -> Span| {
            let mut all: Vec<(Span, BatchId)> = whole().map(|(id, b)| (part(b), *id)).collect();
            all.sort_unstable();
            all
        };
        let (counts, takes) = (rising(|batch| batch.counts), rising(|batch| batch.takes));
        let middle = |all: &[(Span, BatchId)]| {
            let (span, id) = *all.get(all.len().checked_sub(1)? / 2)?;
            Some((id, span))
        };
        let ends = (counts.first()?.0, counts.last()?.0);
        Some(Figure { counts: middle(&counts)?, takes: middle(&takes)?, ends })
    }

    /// The instructions of all operations. `None` if what is to be taken away is more than what counts.
    pub fn insns(&self) -> Option<u64> {
        self.counts.1.0.checked_sub(self.takes.1.0)
    }
}

/// The counters of each series: the instructions and the virtual time of the batch in the middle, and the instructions
/// of the least and of the greatest batch. What is taken away from each is the middle of what is to be taken away.
pub(crate) fn counters(plan: &Plan, witness: &Witness) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (index, name) in (0u16..).zip(plan.series()) {
        let Some(figure) = Figure::of(witness, index) else { continue };
        let ((_, counts), (_, takes), (least, most)) = (figure.counts, figure.takes, figure.ends);
        let mut enter = |what: &str, value: u64, less: u64| {
            // A batch that is shorter than what is to be taken away has no cost.
            if let Some(cost) = value.checked_sub(less) {
                counters.insert(format!("{what}_{name}"), cost);
            }
        };
        enter("insns", counts.0, takes.0);
        enter("virtual_ns", counts.1, takes.1);
        enter("least_insns", least.0, takes.0);
        enter("most_insns", most.0, takes.0);
    }
    counters
}
