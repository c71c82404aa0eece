// SPDX-License-Identifier: GPL-2.0-or-later
//! Firing into what is known to come. Trials begin from snapshots, and the rig is deterministic: a *scout*, a trial
//! without triggers, sees which stretches the kernel will open, and those that come after it fire as the longest of them open.
//!
//! The first trigger of a trial comes exactly where the scout saw the stretch. Each answer disturbs what follows, so later
//! stretches are found by their number (see [`Occurrence`]), and those that no longer exist are not fired into.

use super::strategy::Random;
use sample::{Aim, Insns, Nanos, Occurrence, Responder, Rule, Schedule, Stretch, When};
use serde::{Deserialize, Serialize};

/// What comes later than this is fired into from a ground of its own.
pub(super) const NEAR: Nanos = Nanos::from_millis(800);
/// So many of each kind are kept, the longest ones.
const KEPT: usize = 200;
/// Two that are fired into are so far apart, so that most answers to the first are no part of the second.
const APART: Nanos = Nanos::from_micros(1_500);
/// Ways to fire into a stretch that is longer than all others.
pub(super) const ENTRIES: usize = 4;
/// A listed stretch is waited for until so long after the scout saw the last.
const MARGIN: Nanos = Nanos::from_millis(20);

/// A stretch that a scout saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    /// Which.
    #[serde(flatten)]
    pub occurrence: Occurrence,
    /// How long it was; where interrupts were masked, with those interrupts that had waited for its end, each for the other.
    pub length_insns: Insns,
    /// When it opened, since measuring began.
    pub at_ns: Nanos,
}

/// The longest of each kind, by time.
pub fn longest(mut all: Vec<Foreseen>) -> Vec<Foreseen> {
    all.sort_by_key(|f| (std::cmp::Reverse(f.length_insns), f.at_ns, f.occurrence));
    let of = |kind| all.iter().filter(move |f| f.occurrence.kind == kind).take(KEPT);
    let mut kept: Vec<Foreseen> = Stretch::ALL.into_iter().flat_map(of).copied().collect();
    kept.sort_by_key(|f| (f.at_ns, f.occurrence));
    kept
}

/// A trial that looks so far.
pub fn scouting(until: Nanos) -> When {
    When::Aimed(Aim {
        rule: Rule::Scout,
        kinds: every_kind(),
        gap: Nanos(0),
        count: 1,
        until,
        seed: 0,
    })
}

/// Trials that fire into this stretch alone, and nowhere before it, so that it comes exactly as foreseen: as it opens, and a
/// thousandth, a hundredth and a tenth of it later. A short stretch that is long because an interrupt came in it is short again
/// where an earlier trigger has moved that interrupt.
pub(super) fn entering(stretch: &Foreseen, gap: Nanos) -> [When; ENTRIES] {
    [0, 1, 10, 100].map(|thousandths| {
        // An instruction takes a nanosecond or more, so that this is in the stretch.
        let into = stretch.length_insns.0 * thousandths / 1_000;
        match into {
            // What is aimed at is known by its stack.
            0 => listed(&[*stretch], gap),
            _ => When::Planned(Schedule::Explicit(vec![Nanos(stretch.at_ns.0 + into)])),
        }
    })
}

/// The kinds of stretches that may make this responder late.
pub(super) fn kinds(responder: Responder) -> &'static [Stretch] {
    match responder {
        // Nothing but masked interrupts makes the hard handler late.
        Responder::Hardirq => &[Stretch::IrqsOff],
        // What makes the others late depends on the kernel: where it does not preempt itself, that it does not schedule.
        _ => &Stretch::ALL,
    }
}

/// Those of this kind that are apart, the longest first.
pub(super) fn ranked(foreseen: &[Foreseen], kind: Stretch) -> Vec<Foreseen> {
    apart(Vec::new(), &by_length(foreseen, |f| f.occurrence.kind == kind), KEPT)
}

/// A trial that fires as `first` opens, and then into the longest of those that come later: after the first answer the guest's
/// way is another, and what was foreseen may not come.
pub(super) fn firing(
    foreseen: &[Foreseen],
    first: Foreseen,
    gap: Nanos,
    random: &mut Random,
) -> When {
    let many = 1 << (2 * random.below(4));
    let mut later = by_length(foreseen, |f| f.at_ns > first.at_ns);
    later.retain(|_| random.below(4) != 0);
    listed(&apart(vec![first], &later, many), gap)
}

/// A trial that fires as these open.
fn listed(chosen: &[Foreseen], gap: Nanos) -> When {
    let last = chosen.iter().map(|f| f.at_ns).max().unwrap_or_default();
    When::Aimed(Aim {
        kinds: every_kind(),
        gap,
        count: chosen.len().max(1) as u64,
        until: Nanos(last.0 + MARGIN.0),
        rule: Rule::Listed(chosen.iter().map(|f| f.occurrence).collect()),
        seed: 0,
    })
}

/// `chosen`, and of `candidates` those that are apart from all before them, until there are so many.
fn apart(chosen: Vec<Foreseen>, candidates: &[Foreseen], many: usize) -> Vec<Foreseen> {
    apart_by(chosen, candidates.iter().copied(), many, (APART, |f| f.at_ns))
}

/// The same of anything that has a time, apart by so much.
pub(super) fn apart_by<T>(
    mut chosen: Vec<T>,
    candidates: impl IntoIterator<Item = T>,
    many: usize,
    (gap, at): (Nanos, impl Fn(&T) -> Nanos),
) -> Vec<T> {
    for next in candidates {
        if chosen.len() >= many {
            break;
        }
        if chosen.iter().all(|before| at(before).0.abs_diff(at(&next).0) >= gap.0) {
            chosen.push(next);
        }
    }
    chosen
}

/// The kinds take turns, each with its longest first: what is long for one is short for another.
fn by_length(foreseen: &[Foreseen], among: impl Fn(&Foreseen) -> bool) -> Vec<Foreseen> {
    let mut ranked: Vec<(usize, Foreseen)> = Vec::new();
    for kind in Stretch::ALL {
        let own = foreseen.iter().filter(|f| f.occurrence.kind == kind && among(f));
        let mut own: Vec<Foreseen> = own.copied().collect();
        own.sort_by_key(|f| (std::cmp::Reverse(f.length_insns), f.at_ns, f.occurrence));
        ranked.extend(own.into_iter().enumerate());
    }
    ranked.sort_by_key(|(rank, f)| (*rank, f.occurrence.kind));
    ranked.into_iter().map(|(_, f)| f).collect()
}

fn every_kind() -> u8 {
    Stretch::ALL.iter().map(|kind| *kind as u8).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(kind: Stretch, ordinal: u32, length: u64, at: Nanos) -> Foreseen {
        let occurrence = Occurrence { kind, key: 7, ordinal };
        Foreseen { occurrence, length_insns: Insns(length), at_ns: at }
    }

    /// One of each kind every millisecond, of lengths in no order.
    fn second() -> Vec<Foreseen> {
        let each = |n: u32| {
            let at = Nanos::from_millis(u64::from(n) + 1);
            Stretch::ALL.map(|kind| stretch(kind, n, 4_000 + u64::from(n) * 7919 % 1000, at))
        };
        (0..1000).flat_map(each).collect()
    }

    fn listed(when: &When) -> &[Occurrence] {
        match when {
            When::Aimed(Aim { rule: Rule::Listed(list), .. }) => list,
            other => panic!("{other:?} has no list"),
        }
    }

    #[test]
    fn of_each_kind_the_longest_are_kept_in_the_order_of_time() {
        let kept = longest(second());
        assert!(kept.is_sorted_by_key(|f| f.at_ns));
        for kind in Stretch::ALL {
            let of = |all: &[Foreseen]| {
                let own = all.iter().filter(|f| f.occurrence.kind == kind);
                let mut lengths: Vec<Insns> = own.map(|f| f.length_insns).collect();
                lengths.sort_by_key(|length| std::cmp::Reverse(*length));
                lengths
            };
            assert_eq!(of(&kept), of(&second())[..KEPT]);
        }
    }

    #[test]
    fn the_ranked_are_of_one_kind_and_apart_with_the_longest_first() {
        let mut foreseen = longest(second());
        foreseen.push(stretch(Stretch::IrqsOff, 5_000, 90_000, Nanos::from_millis(100)));
        let ranked = ranked(&foreseen, Stretch::IrqsOff);
        assert_eq!(ranked[0], foreseen[foreseen.len() - 1]);
        assert!(ranked.is_sorted_by_key(|f| std::cmp::Reverse(f.length_insns)));
        for (n, f) in ranked.iter().enumerate() {
            assert_eq!(f.occurrence.kind, Stretch::IrqsOff);
            assert!(ranked[..n].iter().all(|g| g.at_ns.0.abs_diff(f.at_ns.0) >= APART.0), "{f:?}");
        }
        let near = |f: &Foreseen| f.at_ns.0.abs_diff(100_000_000) < APART.0;
        assert_eq!(ranked.iter().filter(|f| near(f)).count(), 1);
    }

    #[test]
    fn a_stretch_is_entered_as_it_opens_and_further_and_further_in() {
        let outstanding = stretch(Stretch::PreemptOff, 3, 2_000_000, Nanos(70_000_000));
        let [opens, further @ ..] = entering(&outstanding, Nanos(300));
        assert_eq!(listed(&opens), [outstanding.occurrence]);
        assert_eq!(opens.count(), 1);
        let further = further.map(|when| match when {
            When::Planned(Schedule::Explicit(instants)) => instants,
            other => panic!("{other:?} is not exact"),
        });
        let entered = [70_002_000, 70_020_000, 70_200_000].map(|at| vec![Nanos(at)]);
        assert_eq!(further, entered);
    }

    proptest! {
        #[test]
        fn what_is_fired_into_was_foreseen_and_is_apart_and_the_guest_runs_until_after_it(
            seed: u64, number: u64, first in 0usize..500,
        ) {
            let foreseen = longest(second());
            let first = foreseen[first];
            let when = firing(&foreseen, first, Nanos(300), &mut Random::new(seed, number));
            let find = |o: &Occurrence| foreseen.iter().find(|f| f.occurrence == *o).map(|f| f.at_ns);
            let mut times: Vec<Nanos> = Vec::new();
            for occurrence in listed(&when) {
                times.push(find(occurrence).expect("it was foreseen"));
            }
            prop_assert_eq!(times[0], first.at_ns);
            prop_assert!(times[1..].iter().all(|at| *at > first.at_ns));
            times.sort();
            prop_assert!(times.windows(2).all(|w| w[1].0 - w[0].0 >= APART.0));
            prop_assert!(times.iter().all(|at| *at < when.longest_gap()));
            prop_assert_eq!(when.count(), times.len() as u64);
        }
    }
}
