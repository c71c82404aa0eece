// SPDX-License-Identifier: GPL-2.0-or-later
//! What a census says: the distribution over the window, what was off at the triggers, how long random triggers wait
//! for the latest answers, and how far an extreme-value estimate is from what is so.

use super::{Opened, Stretches, Window};
use sample::{Nanos, displacement};
use serde::Serialize;
use stats::Pareto;
use std::collections::{BTreeMap, BTreeSet};

/// Answers this late count as the latest, in thousandths of the maximum.
const LATEST: u64 = 990;
/// Of how many instants one is drawn at random for the estimate.
const DRAWN: u64 = 10;
/// Which of the drawn latencies is the threshold of the estimate, in hundredths. This is a usual choice.
const THRESHOLD: usize = 90;
/// A cause of fewer of the excesses than this, in hundredths, does not count as one.
const CAUSE: usize = 5;
/// The seed of the drawn instants. Any is as good.
const SEED: u64 = 1;

/// What a census found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// The first instant, since measuring began.
    pub from_ns: Nanos,
    /// The last instant is at this time, or less than `every_ns` before it.
    pub until_ns: Nanos,
    /// How far apart two instants are.
    pub every_ns: Nanos,
    /// How many instants there are: each had a trigger in a trial of its own.
    pub triggers: u64,
    /// The triggers without an answer of their own.
    pub unanswered: u64,
    /// The latencies, exactly.
    pub latency: Option<ExactQuantiles>,
    /// What was off at the triggers, the latest answer first.
    pub off: Vec<OffShare>,
    /// What random triggers of this window meet.
    pub luck: Option<Luck>,
    /// The extreme-value estimates: of all latencies, and then of each cause that is drawn often enough.
    pub estimates: Vec<Estimate>,
}

/// Quantiles of all latencies of a window: each is a latency that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExactQuantiles {
    /// The shortest.
    pub min_ns: Nanos,
    /// Half are not longer than this.
    pub p50_ns: Nanos,
    /// Nine of ten are not longer than this.
    pub p90_ns: Nanos,
    /// 99 % are not longer than this.
    pub p99_ns: Nanos,
    /// 99.9 % are not longer than this.
    pub p999_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
}

/// The triggers at which the same was off.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OffShare {
    /// What was off: `irqs_off`, `preempt_off`, or `nothing`.
    pub kind: String,
    /// The functions that turned it off, innermost first.
    pub by: Vec<String>,
    /// How many triggers.
    pub triggers: u64,
    /// The share of all triggers, 0 … 1.
    pub share: f64,
    /// The shortest latency of these triggers. None if none was answered.
    pub min_ns: Option<Nanos>,
    /// The longest.
    pub max_ns: Option<Nanos>,
}

/// How long random triggers wait for an answer that is nearly as late as the latest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Luck {
    /// An answer is nearly as late from here on: 99 % of the maximum.
    pub from_ns: Nanos,
    /// The share of all instants with such an answer, 0 … 1.
    pub share: f64,
    /// After so many random triggers one such answer has come with even chance.
    pub even_after: u64,
}

/// What an extreme-value estimate says, and what is so.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// What was off at the triggers of this estimate. None for all triggers.
    pub off: Option<String>,
    /// How many random triggers the estimate is made of.
    pub drawn: u64,
    /// Why there is no estimate.
    pub refused: Option<String>,
    /// The estimate is that one of so many answers is later than `estimated_ns`.
    pub once_in: u64,
    /// The estimated latency.
    pub estimated_ns: Option<Nanos>,
    /// The latency that is so: the longest of the window.
    pub true_ns: Nanos,
}

/// A trigger and its answer.
struct Answer<'a> {
    latency: Nanos,
    off: Option<&'a Opened>,
}

impl Counted {
    /// What a window's latencies say. They are in the order of the window's instants.
    pub fn of(window: Window, latencies: &[Option<Nanos>], stretches: &Stretches) -> Counted {
        let all = || window.instants().zip(latencies);
        let answers: Vec<Option<Answer>> = all()
            .map(|(at, latency)| Some(Answer { latency: (*latency)?, off: stretches.at(at) }))
            .collect();
        let mut rising: Vec<Nanos> = latencies.iter().flatten().copied().collect();
        rising.sort_unstable();
        Counted {
            from_ns: window.from,
            until_ns: window.until,
            every_ns: window.every,
            triggers: latencies.len() as u64,
            unanswered: (latencies.len() - rising.len()) as u64,
            latency: ExactQuantiles::of(&rising),
            off: shares(all().map(|(at, latency)| (stretches.at(at), *latency))),
            luck: Luck::of(&rising, latencies.len()),
            estimates: estimates(&answers, &rising),
        }
    }
}

impl ExactQuantiles {
    /// Those of rising latencies, by the nearest rank.
    fn of(rising: &[Nanos]) -> Option<ExactQuantiles> {
        let (min, max) = (*rising.first()?, *rising.last()?);
        let at = |thousandths: usize| {
            rising[(rising.len() * thousandths).div_ceil(1_000).saturating_sub(1)]
        };
        let [p50, p90, p99, p999] = [500, 900, 990, 999].map(at);
        Some(ExactQuantiles {
            min_ns: min,
            p50_ns: p50,
            p90_ns: p90,
            p99_ns: p99,
            p999_ns: p999,
            max_ns: max,
        })
    }
}

impl Luck {
    fn of(rising: &[Nanos], triggers: usize) -> Option<Luck> {
        let from = Nanos((u128::from(rising.last()?.0) * u128::from(LATEST) / 1_000) as u64);
        let late = rising.len() - rising.partition_point(|latency| *latency < from);
        let share = late as f64 / triggers as f64;
        // The chance that none of n comes is (1 - share)^n.
        let even = if share < 1.0 { (0.5f64.ln() / (-share).ln_1p()).ceil() } else { 1.0 };
        Some(Luck { from_ns: from, share, even_after: even as u64 })
    }
}

fn kind(off: Option<&Opened>) -> String {
    off.map_or("nothing", |off| off.kind.name()).into()
}

/// What was off, in words.
fn words(off: Option<&Opened>) -> String {
    match off {
        Some(off) => format!("{} {}", off.kind.name(), off.by.join(" < ")).trim_end().into(),
        None => "nothing off".into(),
    }
}

fn shares<'a>(all: impl Iterator<Item = (Option<&'a Opened>, Option<Nanos>)>) -> Vec<OffShare> {
    let mut by: BTreeMap<Option<&Opened>, Vec<Option<Nanos>>> = BTreeMap::new();
    all.for_each(|(off, latency)| by.entry(off).or_default().push(latency));
    let total: usize = by.values().map(Vec::len).sum();
    let share = |(off, latencies): (Option<&Opened>, Vec<Option<Nanos>>)| OffShare {
        kind: kind(off),
        by: off.map_or_else(Vec::new, |off| off.by.clone()),
        triggers: latencies.len() as u64,
        share: latencies.len() as f64 / total as f64,
        min_ns: latencies.iter().flatten().min().copied(),
        max_ns: latencies.iter().flatten().max().copied(),
    };
    let mut shares: Vec<OffShare> = by.into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse((share.max_ns, share.triggers)));
    shares
}

/// The estimate of random triggers of all, and those of each cause.
fn estimates(answers: &[Option<Answer>], rising: &[Nanos]) -> Vec<Estimate> {
    let Some(longest) = rising.last() else { return Vec::new() };
    let last = Nanos(answers.len() as u64 - 1);
    let draw = |n| answers[displacement(SEED, n, last).0 as usize].as_ref();
    let drawn: Vec<&Answer> = (0..answers.len() as u64 / DRAWN).filter_map(draw).collect();
    let mut estimates = vec![estimate(None, &drawn, (rising.len(), *longest), causes(&drawn))];
    let groups: BTreeSet<Option<&Opened>> = drawn.iter().map(|answer| answer.off).collect();
    for off in groups {
        let own: Vec<&Answer> = drawn.iter().copied().filter(|a| a.off == off).collect();
        let all = answers.iter().flatten().filter(|answer| answer.off == off);
        let latencies: Vec<Nanos> = all.map(|answer| answer.latency).collect();
        let longest = latencies.iter().max().copied().unwrap_or_default();
        let estimate = estimate(Some(words(off)), &own, (latencies.len(), longest), 1);
        // Of what is seldom drawn nobody expects an estimate.
        if estimate.refused.is_none() {
            estimates.push(estimate);
        }
    }
    estimates
}

/// The index of the threshold among so many latencies.
fn threshold(count: usize) -> usize {
    (count * THRESHOLD / 100).min(count.saturating_sub(1))
}

fn sorted(drawn: &[&Answer]) -> Vec<Nanos> {
    let mut rising: Vec<Nanos> = drawn.iter().map(|answer| answer.latency).collect();
    rising.sort_unstable();
    rising
}

/// How many causes the excesses have.
fn causes(drawn: &[&Answer]) -> usize {
    let rising = sorted(drawn);
    let Some(at) = rising.get(threshold(rising.len())) else { return 0 };
    let exceeding: Vec<_> = drawn.iter().filter(|answer| answer.latency > *at).collect();
    let mut of: BTreeMap<Option<&Opened>, usize> = BTreeMap::new();
    exceeding.iter().for_each(|answer| *of.entry(answer.off).or_default() += 1);
    of.values().filter(|count| **count * 100 >= exceeding.len() * CAUSE).count()
}

fn estimate(
    off: Option<String>,
    drawn: &[&Answer],
    (once_in, longest): (usize, Nanos),
    causes: usize,
) -> Estimate {
    let rising = sorted(drawn);
    let fit = Pareto::fit(&rising, threshold(rising.len()));
    let refused = match (&fit, causes) {
        (_, 2..) => Some(format!(
            "the latencies beyond the threshold have {causes} causes, and no one distribution"
        )),
        (None, _) => {
            Some("too few latencies are beyond the threshold, or all of them are alike".into())
        }
        (Some(_), _) => None,
    };
    let once_in = once_in as u64;
    Estimate {
        off,
        drawn: drawn.len() as u64,
        estimated_ns: fit.filter(|_| refused.is_none()).map(|fit| fit.exceeded_once_in(once_in)),
        refused,
        once_in,
        true_ns: longest,
    }
}

#[cfg(test)]
mod tests {
    use super::super::opened::tests::stretches;
    use super::*;
    use trace::WindowKind::{IrqsOff, PreemptOff};

    const WINDOW: Window = Window { from: Nanos(0), until: Nanos(9_999), every: Nanos(1) };

    /// Nothing is off in the first 9,000 ns, where an answer takes up to 1,800 ns. Then interrupts are off for 1,000
    /// ns, and an answer comes 1,900 ns after their end.
    fn counted() -> Counted {
        let stretches = stretches(&[(IrqsOff, 9_000, 10_000, "lock")]);
        let latency = |at: u64| match at {
            0..9_000 => Some(Nanos(1_000 + at % 801)),
            _ => Some(Nanos(10_000 - at + 1_900)),
        };
        let mut latencies: Vec<Option<Nanos>> = (0..10_000).map(latency).collect();
        latencies[77] = None;
        Counted::of(WINDOW, &latencies, &stretches)
    }

    #[test]
    fn the_distribution_is_that_of_all_instants() {
        let counted = counted();
        assert_eq!((counted.triggers, counted.unanswered), (10_000, 1));
        let latency = counted.latency.expect("answers");
        assert_eq!((latency.min_ns, latency.max_ns), (Nanos(1_000), Nanos(2_900)));
        // The last thousand are later than all others.
        assert_eq!((latency.p99_ns, latency.p999_ns), (Nanos(2_801), Nanos(2_891)));
        let [lock, nothing] = &counted.off[..] else { panic!("{:?}", counted.off) };
        assert_eq!((lock.kind.as_str(), lock.triggers, lock.share), ("irqs_off", 1_000, 0.1));
        assert_eq!((lock.min_ns, lock.max_ns), (Some(Nanos(1_901)), Some(Nanos(2_900))));
        assert_eq!((nothing.kind.as_str(), nothing.triggers), ("nothing", 9_000));
    }

    #[test]
    fn random_triggers_wait_for_the_latest_as_long_as_it_is_rare() {
        let luck = counted().luck.expect("answers");
        // 2,871 … 2,900 ns are 30 of 10,000 instants.
        assert_eq!((luck.from_ns, luck.share, luck.even_after), (Nanos(2_871), 0.003, 231));
    }

    #[test]
    fn of_one_cause_there_is_an_estimate_and_of_several_there_is_none_for_all() {
        let counted = counted();
        let all = &counted.estimates[0];
        assert_eq!((all.off.as_ref(), all.once_in, all.true_ns), (None, 9_999, Nanos(2_900)));
        let estimated = all.estimated_ns.expect("nearly all excesses have one cause").0;
        assert!(estimated.abs_diff(2_900) < 290, "{all:?}");
        let two = stretches(&[(IrqsOff, 9_000, 9_500, "a"), (PreemptOff, 9_500, 10_000, "b")]);
        let latency = |at: u64| Some(Nanos(if at < 9_000 { 1_000 } else { 2_000 + at % 300 }));
        let latencies: Vec<Option<Nanos>> = (0..10_000).map(latency).collect();
        let mixed = Counted::of(WINDOW, &latencies, &two);
        let refused = mixed.estimates[0].refused.as_deref().expect("two causes");
        assert!(refused.contains("2 causes"), "{refused}");
        assert_eq!(mixed.estimates[0].estimated_ns, None);
    }

    #[test]
    fn nobody_answers_and_nothing_is_estimated() {
        let counted = Counted::of(WINDOW, &vec![None; 10_000], &stretches(&[]));
        assert_eq!((counted.unanswered, counted.latency, counted.luck), (10_000, None, None));
        assert_eq!(counted.estimates, []);
    }
}
