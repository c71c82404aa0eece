// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset tune prove --json` says of a change beside its pairs: the answers of a quiet guest, the causes, and what
//! a hunt finds.

use sample::Nanos;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use trace::LedgerReport;

/// Of so many causes the part in the late answers is told.
const REASONS: usize = 3;

/// The median answer of each responder of one guest. It does not depend on the guest's history. The shortest does: on
/// PREEMPT_RT words that the kernel refuses move it.
pub type QuietAnswers = BTreeMap<String, Nanos>;

/// What a quiet guest (the load idle) answers without a change and with it: the same triggers, the same seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quiet {
    /// Whether all medians are the same to the nanosecond.
    pub same: bool,
    /// How many medians were compared. Those that the control moves are not.
    pub compared: u32,
    /// The medians that differ.
    pub differ: Vec<QuietDifference>,
}

/// A median that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuietDifference {
    /// Who answers.
    pub responder: String,
    /// Without the change.
    pub without_ns: Nanos,
    /// With it.
    pub with_ns: Nanos,
}

impl Quiet {
    /// The median of a responder's answers, if there are any: of an even number the lower one of both in the middle.
    pub fn median(mut latencies: Vec<Nanos>) -> Option<Nanos> {
        latencies.sort_unstable();
        latencies.get(latencies.len().checked_sub(1)? / 2).copied()
    }

    /// Compares two guests. The medians that `control` (a guest with a word that means nothing) moves do not count.
    pub fn of(
        without: &QuietAnswers,
        with: &QuietAnswers,
        control: Option<&QuietAnswers>,
    ) -> Quiet {
        let is_steady = |key, value| control.is_none_or(|control| control.get(key) == Some(value));
        let steady = without.iter().filter(|(key, value)| is_steady(*key, *value));
        let both: Vec<_> = steady.filter_map(|(key, a)| Some((key, *a, *with.get(key)?))).collect();
        let differs = both.iter().filter(|(_, without, with)| without != with);
        let difference = |(responder, without, with): &(&String, Nanos, Nanos)| QuietDifference {
            responder: (*responder).clone(),
            without_ns: *without,
            with_ns: *with,
        };
        let differ: Vec<_> = differs.map(difference).collect();
        Quiet { same: differ.is_empty() && !both.is_empty(), compared: both.len() as u32, differ }
    }
}

/// A cause, and its part in the late answers: those from the p99 of their run on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// The cause, as `onset blame` names it.
    pub cause: String,
    /// Tasks, the interrupt or the softirq; empty where the cause has none.
    pub who: String,
    /// Its mean time in a late answer without the change, in ns.
    pub without_ns: f64,
    /// The same with the change, in ns.
    pub with_ns: f64,
}

impl Reason {
    /// The causes whose mean time in a late answer differs most between two ledgers, that one first. The differences of
    /// all causes add up to that of the mean late answer.
    pub fn of(without: &LedgerReport, with: &LedgerReport) -> Vec<Reason> {
        let (a, b) = (means(without), means(with));
        let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
        let mean = |means: &BTreeMap<(String, String), f64>, key: &(String, String)| {
            means.get(key).copied().unwrap_or_default()
        };
        let reason = |key: &(String, String)| Reason {
            cause: key.0.clone(),
            who: key.1.clone(),
            without_ns: mean(&a, key),
            with_ns: mean(&b, key),
        };
        let mut reasons: Vec<Reason> = keys.into_iter().map(reason).collect();
        let change = |reason: &Reason| (reason.with_ns - reason.without_ns).abs();
        reasons.retain(|reason| change(reason) > 0.0);
        reasons.sort_by(|x, y| change(y).total_cmp(&change(x)));
        reasons.truncate(REASONS);
        reasons
    }
}

/// The mean time of each cause in an answer of the ledger, in ns.
fn means(ledger: &LedgerReport) -> BTreeMap<(String, String), f64> {
    let mut means = BTreeMap::new();
    for row in &ledger.rows {
        let key = (row.cause.cause.clone(), row.cause.who.clone());
        *means.entry(key).or_default() += row.total_ns.0 as f64 / ledger.samples as f64;
    }
    means
}

/// The latest answer that two hunts of the same budget and seed found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hunted {
    /// The words of all helping knobs.
    pub words: String,
    /// The hunt without a change.
    pub without: HuntedWorst,
    /// The hunt with these words.
    pub with: HuntedWorst,
}

/// What one hunt found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HuntedWorst {
    /// The latest answer. Absent if there was none.
    pub worst_ns: Option<Nanos>,
    /// How many trials the hunt made.
    pub trials: u64,
    /// How many triggers.
    pub triggers: u64,
    /// The directory of the hunt.
    pub directory: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{CauseReport, LedgerRow};

    fn answers(medians: &[(&str, u64)]) -> QuietAnswers {
        medians.iter().map(|(who, ns)| (who.to_string(), Nanos(*ns))).collect()
    }

    #[test]
    fn what_the_control_moves_is_not_compared() {
        let without = answers(&[("hardirq", 7), ("task", 9)]);
        let control = answers(&[("hardirq", 7), ("task", 10)]);
        let with = answers(&[("hardirq", 7), ("task", 99)]);
        let quiet = Quiet::of(&without, &with, Some(&control));
        assert_eq!((quiet.same, quiet.compared), (true, 1));
        let quiet = Quiet::of(&without, &with, None);
        assert_eq!((quiet.same, quiet.compared), (false, 2));
        assert_eq!((quiet.differ[0].without_ns, quiet.differ[0].with_ns), (Nanos(9), Nanos(99)));
    }

    #[test]
    fn nothing_compared_is_not_the_same() {
        assert!(!Quiet::of(&answers(&[]), &answers(&[]), None).same);
    }

    #[test]
    fn the_median_of_an_even_number_is_one_of_the_answers() {
        assert_eq!(Quiet::median([5, 1, 9, 7].map(Nanos).to_vec()), Some(Nanos(5)));
        assert_eq!(Quiet::median(Vec::new()), None);
    }

    fn ledger(samples: u64, rows: &[(&str, u64)]) -> LedgerReport {
        let row = |(cause, ns): &(&str, u64)| LedgerRow {
            cause: CauseReport { cause: cause.to_string(), who: String::new(), stack: Vec::new() },
            count: 1,
            total_ns: Nanos(*ns),
            stretches: 1,
            longest_ns: Nanos(*ns),
            share: 0.5,
            max_ns: Nanos(*ns),
            max_stretches: 1,
            max_trigger: 0,
        };
        LedgerReport {
            samples,
            from_ns: Nanos(0),
            total_ns: rows.iter().map(|(_, ns)| Nanos(*ns)).sum(),
            rows: rows.iter().map(row).collect(),
            kinds: BTreeMap::new(),
        }
    }

    #[test]
    fn the_reason_is_the_cause_whose_time_in_an_answer_changes_most() {
        let without = ledger(10, &[("masked", 5_000), ("woken", 100), ("masked", 1_000)]);
        let with = ledger(5, &[("masked", 200), ("woken", 50), ("softirq", 400)]);
        let reasons = Reason::of(&without, &with);
        let told: Vec<_> =
            reasons.iter().map(|r| (r.cause.as_str(), r.without_ns, r.with_ns)).collect();
        assert_eq!(told, [("masked", 600.0, 40.0), ("softirq", 0.0, 80.0)]);
    }
}
