// SPDX-License-Identifier: GPL-2.0-or-later
//! Coincidences: instants at which a trigger would meet several delays one after the other. The kernel masks interrupts
//! for a while, and other interrupts come before the answer does. Where no single stretch is long, as on PREEMPT_RT,
//! coincidences make the latest answers. Random triggers hit one by luck alone. A scout sees when the interrupts come,
//! and what is masked shortly before.
//!
//! A scout cannot foresee how the kernel schedules otherwise because of the trigger. So an answer may come some hundred
//! instructions earlier or later than expected.

use crate::foreseen::{NEAR, apart_by};
use sample::{Insns, Nanos};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A stretch follows an end of masked interrupts at once if its interrupt waited for this end: `sti` lets one more
/// instruction pass (Intel SDM, volume 2, STI), and the end is recorded at this instruction. A stretch that something
/// else opens is another one, however near: a trigger's interrupt would come before it.
pub const AT_ONCE: Insns = Insns(2);
/// A trigger this many instructions after an opening is inside: behind the instruction that masks, and far from the end
/// of any stretch that adds [`FROM`]. The number is chosen.
const INSIDE: u64 = 5;
/// The lengths of answers' paths, in instructions. For each, a scout keeps the coincidences that make such answers
/// latest. The lengths are chosen: from three times the 315 instructions of a hard handler to those of a task on
/// PREEMPT_RT, 9,000 to 22,000 (README.md, the ladder). Below: how many are kept for each. Forty keep a scout's line in
/// the journal short.
const PATHS: [u64; 5] = [1_000, 2_000, 5_000, 10_000, 20_000];
const KEPT: usize = 40;
/// A coincidence that adds less than this to an answer makes nobody late, and a second has hundreds of thousands of
/// them. The latest hard handlers of 6.12-rt wait for 5,000 and more (docs/hunting.md, the table of random minutes).
const FROM: Insns = Insns(1_000);
/// Coincidences that are nearer to each other meet the same, and the latest of them stands for all. The time is chosen:
/// more than the longest path for which coincidences are kept.
const APART: Nanos = Nanos::from_micros(50);

/// The delays that a trigger would meet at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coincidence {
    /// The instant, since measuring began.
    pub at_ns: Nanos,
    /// How long interrupts stay masked from that instant on.
    pub masked_insns: Insns,
    /// The interrupts that come after that, the nearest first.
    pub interrupts: Vec<ComingInterrupt>,
}

/// An interrupt that comes while an answer is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComingInterrupt {
    /// How far the answer has come on its path when the interrupt comes.
    pub after_insns: Insns,
    /// How long the interrupt takes.
    pub takes_insns: Insns,
}

impl Coincidence {
    /// How much of an answer is not its own path, if the path is this long.
    pub fn adds(&self, path: Insns) -> Insns {
        let met = self.interrupts.iter().filter(|coming| coming.after_insns < path);
        self.masked_insns + met.map(|coming| coming.takes_insns).sum()
    }

    /// The length of the path of an answer that came this late.
    pub fn path(&self, answered: Insns) -> Insns {
        let beyond = answered.saturating_sub(self.masked_insns);
        let less = |left: Insns, coming: &ComingInterrupt| match coming.after_insns < left {
            true => left.saturating_sub(coming.takes_insns),
            false => left,
        };
        self.interrupts.iter().fold(beyond, less)
    }
}

/// A time in which interrupts are masked. Stretches follow each other without an instruction at which an interrupt
/// could come.
#[derive(Clone, Copy, Debug)]
struct Masked {
    from: u64,
    to: u64,
    /// Whether an interrupt began this time.
    interrupt: bool,
}

/// The interrupts that a scout sees, in nanoseconds since measuring began.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The virtual nanoseconds of an instruction, as a power of two.
    shift: u8,
    masked: Vec<Masked>,
    /// Since when interrupts are masked, and whether by an interrupt.
    open: Option<(u64, bool)>,
}

impl Timeline {
    /// A timeline on which nothing was seen yet.
    pub fn new(shift: u8) -> Timeline {
        Timeline { shift, ..Timeline::default() }
    }

    /// Records that interrupts are masked from `at` on, by an interrupt or by something else. Later times than `NEAR`
    /// are ignored, and `by_interrupt` is not asked for them.
    pub fn mask(&mut self, at: Nanos, by_interrupt: impl FnOnce() -> bool) {
        if at <= NEAR {
            self.open = Some((at.0, by_interrupt()));
        }
    }

    /// Records that interrupts are no longer masked.
    pub fn unmask(&mut self, Nanos(at): Nanos) {
        let Some((from, interrupt)) = self.open.take_if(|_| at <= NEAR.0) else { return };
        match self.masked.last_mut() {
            Some(last) if interrupt && from <= last.to + (AT_ONCE.0 << self.shift) => last.to = at,
            _ => self.masked.push(Masked { from, to: at, interrupt }),
        }
    }

    /// The coincidences that make answers latest, by time.
    pub fn coincidences(&self) -> Vec<Coincidence> {
        let interrupts: Vec<Masked> =
            self.masked.iter().filter(|masked| masked.interrupt).copied().collect();
        let each = self.masked.iter().map(|masked| coincidence(masked, &interrupts, self.shift));
        let [.., longest] = PATHS.map(Insns);
        let all: Vec<Coincidence> = each.filter(|c| c.adds(longest) >= FROM).collect();
        let mut kept: Vec<&Coincidence> = PATHS.map(|path| latest(&all, Insns(path))).concat();
        kept.sort_by_key(|c| c.at_ns);
        kept.dedup();
        kept.into_iter().cloned().collect()
    }
}

/// The delays that a trigger meets as `met` opens. `interrupts` are all that come while nobody has masked them.
fn coincidence(met: &Masked, interrupts: &[Masked], shift: u8) -> Coincidence {
    let at = (met.from + (INSIDE << shift)).min(met.to);
    let insns = |ns: u64| Insns(ns >> shift);
    let mut taken = 0;
    let following = &interrupts[interrupts.partition_point(|next| next.from <= met.from)..];
    let coming = following.iter().map(|next| {
        // The earlier interrupts took time in which the answer could not go on.
        let after = (next.from - met.to).saturating_sub(taken);
        taken += next.to - next.from;
        ComingInterrupt { after_insns: insns(after), takes_insns: insns(next.to - next.from) }
    });
    let [.., longest] = PATHS.map(Insns);
    let interrupts = coming.take_while(|coming| coming.after_insns < longest).collect();
    Coincidence { at_ns: Nanos(at), masked_insns: insns(met.to - at), interrupts }
}

/// The coincidences that make answers with this path latest, the latest first.
fn latest(all: &[Coincidence], path: Insns) -> Vec<&Coincidence> {
    let mut ranked: Vec<&Coincidence> = all.iter().collect();
    ranked.sort_by_key(|c| (Reverse(c.adds(path)), c.at_ns));
    apart_by(Vec::new(), ranked, KEPT, APART, |c| c.at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: bool = true;
    const CLI: bool = false;

    /// A timeline of stretches with these beginnings and ends, in instructions. The flag says whether an interrupt
    /// masks.
    fn seen(shift: u8, stretches: &[(u64, u64, bool)]) -> Timeline {
        let mut timeline = Timeline::new(shift);
        for (from, to, by_interrupt) in stretches {
            timeline.mask(Nanos(from << shift), || *by_interrupt);
            timeline.unmask(Nanos(to << shift));
        }
        timeline
    }

    fn coming(after: u64, takes: u64) -> ComingInterrupt {
        ComingInterrupt { after_insns: Insns(after), takes_insns: Insns(takes) }
    }

    #[test]
    fn an_answer_meets_what_is_masked_what_waited_for_that_and_what_comes_on_its_way() {
        let stretches = [
            (1_000, 4_000, CLI),
            // This interrupt had waited.
            (4_002, 6_000, TIMER),
            (7_000, 7_200, CLI),
            (8_000, 9_500, TIMER),
            (10_500, 11_000, TIMER),
            (80_000, 81_500, TIMER),
        ];
        for shift in [0, 3] {
            let found = seen(shift, &stretches).coincidences();
            let first = Coincidence {
                at_ns: Nanos(1_005 << shift),
                masked_insns: Insns(4_995),
                interrupts: vec![coming(2_000, 1_500), coming(3_000, 500)],
            };
            assert_eq!(found[0], first);
            let adds = |path| found[0].adds(Insns(path)).0;
            assert_eq!([2_000, 2_001, 5_000].map(adds), [4_995, 6_495, 6_995]);
            for path in [500, 2_500, 5_000].map(Insns) {
                assert_eq!(found[0].path(found[0].adds(path) + path), path);
            }
            let last = &found[found.len() - 1];
            assert_eq!((last.at_ns.0, last.masked_insns.0), (80_005 << shift, 1_495));
        }
    }

    #[test]
    fn an_answer_does_not_wait_for_what_masks_next_if_that_is_no_interrupt() {
        let stretches = [(1_000, 4_000, CLI), (4_001, 6_000, CLI), (6_000, 9_000, CLI)];
        let found = seen(0, &stretches).coincidences();
        assert_eq!(found[0].masked_insns, Insns(2_995));
        assert!(found[0].interrupts.is_empty());
    }

    #[test]
    fn an_exception_or_a_call_is_none_that_comes_by_itself() {
        let found = seen(0, &[(1_000, 3_000, CLI), (4_000, 9_000, CLI)]).coincidences();
        assert!(found.iter().all(|c| c.interrupts.is_empty()), "{found:?}");
    }

    #[test]
    fn what_is_short_or_comes_late_is_left_out_and_of_those_nearby_the_latest_is_kept() {
        let each = (1..2_000).map(|n| (n * 1_000_000, n * 1_000_000 + 1_100 + n, CLI));
        let nearby = each.clone().map(|(from, ..)| (from + 10_000, from + 11_050, CLI));
        let short = each.clone().map(|(from, ..)| (from + 20_000, from + 20_900, CLI));
        let mut all: Vec<(u64, u64, bool)> = each.chain(nearby).chain(short).collect();
        all.sort_unstable();
        let found = seen(0, &all).coincidences();
        assert_eq!(found.len(), KEPT, "the same for each path");
        let last = NEAR.as_millis();
        let kept = (last - KEPT as u64..last).map(|n| Nanos(n * 1_000_000 + INSIDE));
        let at = found.iter().map(|c| c.at_ns);
        assert!(at.eq(kept), "{found:?}");
    }
}
