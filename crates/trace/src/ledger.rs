// SPDX-License-Identifier: GPL-2.0-or-later
//! The latencies of a run by cause: it shows where all of their time went. The rows add up to the total exactly.

use crate::blame::Named;
use crate::{Cause, CauseReport, Explanation, LatencyKind, Reader, StackId, Stacks, Sum, Symbols};
use sample::Nanos;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The accounts of one responder. Memory grows with the number of different causes.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    from: Nanos,
    rows: HashMap<Named, Row>,
    kinds: BTreeMap<LatencyKind, Sum>,
    samples: u64,
    total: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    samples: u64,
    all: Sum,
    worst: Sum,
    worst_trigger: u64,
}

/// One cause's account.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedgerRow {
    /// The cause.
    #[serde(flatten)]
    pub cause: CauseReport,
    /// In how many samples.
    pub count: u64,
    /// Its time in all of them.
    pub total_ns: Nanos,
    /// Of how many stretches that is the sum.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub stretches: u64,
    /// The longest of them.
    pub longest_ns: Nanos,
    /// Its part of the ledger's total, 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub share: f64,
    /// The most of its time in one sample.
    pub max_ns: Nanos,
    /// Of how many stretches that is the sum.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_stretches: u64,
    /// The trigger of that sample, the first of them where several are alike.
    pub max_trigger: u64,
}

/// All accounts.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerReport {
    /// The number of samples in the ledger.
    pub samples: u64,
    /// The shortest latency that counts.
    pub from_ns: Nanos,
    /// The sum of all latencies.
    pub total_ns: Nanos,
    /// The rows, by their total. They add up to `total_ns`.
    pub rows: Vec<LedgerRow>,
    /// The total, by the latencies of the RT patch's paper.
    pub kinds: BTreeMap<LatencyKind, Sum>,
}

impl LedgerRow {
    /// The cause's time in all samples.
    pub fn all(&self) -> Sum {
        Sum { time: self.total_ns, stretches: self.stretches, longest: self.longest_ns }
    }
}

impl Ledger {
    /// A ledger of the latencies of `from` and more. `from` is a quantile of the run, or 0 for all.
    pub fn new(from: Nanos) -> Self {
        Ledger { from, ..Ledger::default() }
    }

    /// Enters a latency, unless it is shorter than the ledger's shortest. Tasks get their present names.
    pub fn add(&mut self, explanation: &Explanation, reader: &Reader, symbols: &dyn Symbols) {
        let latency = explanation.latency().time;
        if latency < self.from {
            return;
        }
        self.samples += 1;
        self.total += latency;
        for (kind, sum) in explanation.kinds() {
            self.kinds.entry(kind).or_default().add(sum);
        }
        // Causes that differ only in things without a name are one row, and one sample of it.
        let mut names: BTreeMap<(&Cause, &[StackId]), Named> = BTreeMap::new();
        let parts = explanation.parts.segments().map(|part| {
            let (cause, inside) = (&part.label.cause, part.label.inside.as_slice());
            let named = names.entry((cause, inside));
            let named = named.or_insert_with(|| cause.named(inside, reader, symbols));
            (named.clone(), part.length.time)
        });
        for (cause, sum) in Sum::by(parts.collect::<Vec<_>>()) {
            let row = self.rows.entry(cause).or_default();
            row.samples += 1;
            row.all.add(sum);
            if sum.time > row.worst.time || row.samples == 1 {
                (row.worst, row.worst_trigger) = (sum, explanation.trigger);
            }
        }
    }

    /// The accounts with names, by their total.
    pub fn report(&self, stacks: &Stacks, symbols: &dyn Symbols) -> LedgerReport {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|&(cause, row)| (std::cmp::Reverse(row.all.time), cause));
        let row = |(cause, row): (&Named, &Row)| LedgerRow {
            cause: cause.report(stacks, symbols),
            count: row.samples,
            total_ns: row.all.time,
            stretches: row.all.stretches,
            longest_ns: row.all.longest,
            share: row.all.time.share_of(self.total),
            max_ns: row.worst.time,
            max_stretches: row.worst.stretches,
            max_trigger: row.worst_trigger,
        };
        LedgerReport {
            samples: self.samples,
            from_ns: self.from,
            total_ns: self.total,
            rows: rows.into_iter().map(row).collect(),
            kinds: self.kinds.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, Beginning, Blame, Partition, Place, Stage};
    use proptest::prelude::*;
    use sample::{Insns, Stamp};

    struct Nameless;
    impl Symbols for Nameless {
        fn name(&self, _: u64) -> Option<String> {
            None
        }

        fn caller(&self, _: u64) -> Option<String> {
            None
        }
    }

    fn at(ns: u64) -> At {
        At::new(Stamp::from_ns(ns), Insns(ns))
    }

    fn explanation(trigger: u64, parts: &[(Cause, u64)]) -> Explanation {
        let mut end = 1_000 * trigger;
        let mut partition = Partition::new(at(end));
        for (cause, ns) in parts {
            end += ns;
            let blame = Blame { stage: Stage::Schedule, cause: cause.clone(), inside: Vec::new() };
            partition.until(at(end), blame).expect("in order");
        }
        Explanation {
            trigger,
            beginning: Beginning::Trigger,
            task: None,
            parts: partition,
            disturbances: Vec::new(),
        }
    }

    #[test]
    fn a_cause_is_counted_once_a_sample_and_its_worst_is_that_of_one_sample() {
        let off = || Cause::IrqsOff(Place::Address(0x10));
        let mut ledger = Ledger::new(Nanos(100));
        let reader = Reader::new(&[]);
        for (trigger, parts) in [
            (0, &[(Cause::Scheduler, 99)][..]),
            (1, &[(off(), 60), (Cause::Switch, 40), (off(), 20)]),
            (2, &[(Cause::Switch, 30), (off(), 70)]),
        ] {
            ledger.add(&explanation(trigger, parts), &reader, &Nameless);
        }
        let report = ledger.report(&Stacks::default(), &Nameless);
        assert_eq!((report.samples, report.total_ns), (2, Nanos(220)), "the first is too short");
        let first = &report.rows[0];
        assert_eq!((first.cause.cause.as_str(), first.count), ("irqs_off", 2));
        assert_eq!((first.total_ns, first.max_ns, first.max_trigger), (Nanos(150), Nanos(80), 1));
        assert_eq!(first.cause.stack, ["0x10"]);
        let row = |row: &LedgerRow| (row.stretches, row.longest_ns, row.max_stretches);
        assert_eq!(row(first), (3, Nanos(70), 2), "60 and 20, then 70");
        assert_eq!(report.rows[1].total_ns, Nanos(70));
        // Each answer is one stretch of it.
        let wakeup = Sum { time: Nanos(220), stretches: 2, longest: Nanos(120) };
        assert_eq!(report.kinds, BTreeMap::from([(LatencyKind::Wakeup, wakeup)]));
        let json = serde_json::to_value(&report.rows).expect("JSON");
        assert_eq!(json[0]["cause"], "irqs_off");
        assert_eq!(json[0]["max_trigger"], 1);
    }

    fn any_cause() -> impl Strategy<Value = Cause> {
        prop_oneof![
            Just(Cause::Scheduler),
            Just(Cause::Unexplained),
            (0u64..4).prop_map(|a| Cause::IrqsOff(Place::Address(a))),
            (0u64..4).prop_map(|t| Cause::Task(crate::TaskId(t))),
        ]
    }

    proptest! {
        #[test]
        fn rows_and_kinds_add_up_to_the_total(
            samples in prop::collection::vec(
                prop::collection::vec((any_cause(), 0u64..1_000), 0..10), 0..30)
        ) {
            let mut ledger = Ledger::new(Nanos(0));
            let mut total = 0;
            for (trigger, parts) in (0..).zip(&samples) {
                ledger.add(&explanation(trigger, parts), &Reader::new(&[]), &Nameless);
                total += parts.iter().map(|(_, ns)| ns).sum::<u64>();
            }
            let report = ledger.report(&Stacks::default(), &Nameless);
            prop_assert_eq!(report.total_ns, Nanos(total));
            prop_assert_eq!(report.rows.iter().map(|r| r.total_ns).sum::<Nanos>(), Nanos(total));
            prop_assert_eq!(report.kinds.values().map(|n| n.time).sum::<Nanos>(), Nanos(total));
        }
    }
}
