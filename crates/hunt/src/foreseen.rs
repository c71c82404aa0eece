// SPDX-License-Identifier: GPL-2.0-or-later
//! Stretches that a *scout* saw. A scout is a trial without triggers. Trials begin from snapshots and the rig is
//! deterministic, so after a scout it is known which stretches the kernel will open. A later trial finds a stretch
//! again by its number (see [`Occurrence`]).

use sample::{Insns, Nanos, Occurrence, Responder, Stretch};
use serde::{Deserialize, Serialize};

/// The latest time at which a stretch is fired into from the scout's ground, unless it is outstanding. The time is
/// chosen: twice the length of a hunt's longest early trials, 400 ms.
pub(crate) const NEAR: Nanos = Nanos::from_millis(800);
/// How many stretches of each kind are kept, the longest ones. The number is chosen: a scout's line in the journal has
/// some hundred kilobytes.
const KEPT: usize = 200;
/// How far apart two stretches are that a trial fires into. So most answers to the first are no part of the second. The
/// exceptions are the latest tasks on `preempt=none`, which are 2.0 ms late (docs/hunting.md, the table of random
/// minutes).
pub(crate) const APART: Nanos = Nanos::from_micros(1_500);

/// A stretch that a scout saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenStretch {
    /// The stretch's opener and its number.
    #[serde(flatten)]
    pub occurrence: Occurrence,
    /// The length of the stretch. If interrupts were masked, the length includes the interrupts that had waited for its
    /// end, one after the other.
    pub length_insns: Insns,
    /// When the stretch opened, since measuring began.
    pub at_ns: Nanos,
}

/// The longest stretches of each kind, by time.
pub fn longest(mut all: Vec<ForeseenStretch>) -> Vec<ForeseenStretch> {
    all.sort_by_key(|f| (std::cmp::Reverse(f.length_insns), f.at_ns, f.occurrence));
    let of = |kind| all.iter().filter(move |f| f.occurrence.kind == kind).take(KEPT);
    let mut kept: Vec<ForeseenStretch> = Stretch::ALL.into_iter().flat_map(of).copied().collect();
    kept.sort_by_key(|f| (f.at_ns, f.occurrence));
    kept
}

/// The kinds of stretches that may make this responder late.
pub fn kinds(responder: Responder) -> &'static [Stretch] {
    match responder {
        // Only masked interrupts make the hard handler late.
        Responder::Hardirq => &[Stretch::IrqsOff],
        // The cause that makes the other responders late depends on the kernel. In a kernel that does not preempt
        // itself, it is that the kernel does not schedule.
        _ => &Stretch::ALL,
    }
}

/// The stretches of this kind that are far enough apart, the longest first.
pub fn ranked(foreseen: &[ForeseenStretch], kind: Stretch) -> Vec<ForeseenStretch> {
    apart(Vec::new(), &by_length(foreseen, |f| f.occurrence.kind == kind), KEPT)
}

/// `chosen`, and those of `candidates` that are far enough from all before them, until there are `many`.
pub fn apart(
    chosen: Vec<ForeseenStretch>,
    candidates: &[ForeseenStretch],
    many: usize,
) -> Vec<ForeseenStretch> {
    apart_by(chosen, candidates.iter().copied(), many, APART, |f| f.at_ns)
}

/// The same for anything that has a time. `gap` is the least distance.
pub fn apart_by<T>(
    mut chosen: Vec<T>,
    candidates: impl IntoIterator<Item = T>,
    many: usize,
    gap: Nanos,
    at: impl Fn(&T) -> Nanos,
) -> Vec<T> {
    for next in candidates {
        if chosen.len() >= many {
            break;
        }
        if chosen.iter().all(|before| at(before).abs_diff(at(&next)) >= gap) {
            chosen.push(next);
        }
    }
    chosen
}

/// Ranks the stretches. The kinds take turns, each with its longest first: a long stretch of one kind is short for
/// another.
pub fn by_length(
    foreseen: &[ForeseenStretch],
    among: impl Fn(&ForeseenStretch) -> bool,
) -> Vec<ForeseenStretch> {
    let mut ranked: Vec<(usize, ForeseenStretch)> = Vec::new();
    for kind in Stretch::ALL {
        let own = foreseen.iter().filter(|f| f.occurrence.kind == kind && among(f));
        let mut own: Vec<ForeseenStretch> = own.copied().collect();
        own.sort_by_key(|f| (std::cmp::Reverse(f.length_insns), f.at_ns, f.occurrence));
        ranked.extend(own.into_iter().enumerate());
    }
    ranked.sort_by_key(|(rank, f)| (*rank, f.occurrence.kind));
    ranked.into_iter().map(|(_, f)| f).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{second, stretch};

    #[test]
    fn of_each_kind_the_longest_are_kept_in_the_order_of_time() {
        let kept = longest(second());
        assert!(kept.is_sorted_by_key(|f| f.at_ns));
        for kind in Stretch::ALL {
            let of = |all: &[ForeseenStretch]| {
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
            assert!(ranked[..n].iter().all(|g| g.at_ns.abs_diff(f.at_ns) >= APART), "{f:?}");
        }
        let near = |f: &ForeseenStretch| f.at_ns.abs_diff(Nanos(100_000_000)) < APART;
        assert_eq!(ranked.iter().filter(|f| near(f)).count(), 1);
    }
}
