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

/// What follows an end of masked interrupts as soon as this had waited for that: `sti` lets one more instruction pass
/// (Intel SDM, volume 2, STI), and the end is told at it.
const AT_ONCE: u64 = 2;
/// A trigger so many instructions after an opening is inside: behind the instruction that masks, and far from the end
/// of whatever adds [`FROM`]. Chosen.
const INSIDE: u64 = 5;
/// Of answers whose path takes so many instructions, so many coincidences are kept each, the latest ones. Chosen: from
/// three times what a hard handler takes by itself, 315 instructions, to what a task takes on PREEMPT_RT, 9,000 to
/// 22,000 (README.md, the ladder); forty for each keep a scout's line in the journal short.
const PATHS: [u64; 5] = [1_000, 2_000, 5_000, 10_000, 20_000];
const KEPT: usize = 40;
/// What adds less to an answer than this makes nobody late, and there are hundreds of thousands of them in a second.
/// The latest hard handlers of 6.12-rt wait for 5,000 and more (docs/hunting.md, the table of random minutes).
const FROM: Insns = Insns(1_000);
/// Those that are nearer to each other meet the same, and the latest of them stands for all. Chosen: more than the
/// longest path for which they are kept.
const APART: Nanos = Nanos::from_micros(50);

/// What a trigger would meet at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coincidence {
    /// The instant, since measuring began.
    pub at_ns: Nanos,
    /// How long interrupts are masked from then on.
    pub masked_insns: Insns,
    /// The interrupts that come after that, the next first.
    pub interrupts: Vec<ComingInterrupt>,
}

/// An interrupt that comes while an answer is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComingInterrupt {
    /// How far the answer has come on its path by then.
    pub after_insns: Insns,
    /// How long it takes.
    pub takes_insns: Insns,
}

impl Coincidence {
    /// How much of an answer is not its own path, where that takes so long.
    pub fn adds(&self, path: Insns) -> Insns {
        let met = self.interrupts.iter().filter(|coming| coming.after_insns < path);
        self.masked_insns + met.map(|coming| coming.takes_insns).sum()
    }

    /// How long the path of an answer was that came so late.
    pub fn path(&self, answered: Insns) -> Insns {
        let beyond = answered.saturating_sub(self.masked_insns);
        let less = |left: Insns, coming: &ComingInterrupt| match coming.after_insns < left {
            true => left.saturating_sub(coming.takes_insns),
            false => left,
        };
        self.interrupts.iter().fold(beyond, less)
    }
}

/// Interrupts are masked, one stretch after the other without an instruction in between in which one could come.
#[derive(Clone, Copy, Debug)]
struct Masked {
    from: u64,
    to: u64,
    /// Whether an interrupt began it.
    interrupt: bool,
}

/// What a scout sees of interrupts, in nanoseconds since measuring began.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Virtual nanoseconds per instruction, as a power of two.
    shift: u8,
    masked: Vec<Masked>,
    /// Since when they are masked, and whether by an interrupt.
    open: Option<(u64, bool)>,
}

impl Timeline {
    /// Nothing was seen yet.
    pub fn new(shift: u8) -> Timeline {
        Timeline { shift, ..Timeline::default() }
    }

    /// Interrupts are masked from then on, by an interrupt or by something else. What comes late is nobody's, and not
    /// asked for.
    pub fn mask(&mut self, at: Nanos, by_interrupt: impl FnOnce() -> bool) {
        if at <= NEAR {
            self.open = Some((at.0, by_interrupt()));
        }
    }

    /// They are not masked any more.
    pub fn unmask(&mut self, Nanos(at): Nanos) {
        let Some((from, interrupt)) = self.open.take_if(|_| at <= NEAR.0) else { return };
        match self.masked.last_mut() {
            Some(last) if from <= last.to + (AT_ONCE << self.shift) => last.to = at,
            _ => self.masked.push(Masked { from, to: at, interrupt }),
        }
    }

    /// Those that make answers latest, by time.
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

/// What a trigger meets as this stretch opens, of all interrupts that come to somebody who has not masked them.
fn coincidence(met: &Masked, interrupts: &[Masked], shift: u8) -> Coincidence {
    let at = (met.from + (INSIDE << shift)).min(met.to);
    let insns = |ns: u64| Insns(ns >> shift);
    let mut taken = 0;
    let following = &interrupts[interrupts.partition_point(|next| next.from <= met.from)..];
    let coming = following.iter().map(|next| {
        // What came before was in the answer's way.
        let after = (next.from - met.to).saturating_sub(taken);
        taken += next.to - next.from;
        ComingInterrupt { after_insns: insns(after), takes_insns: insns(next.to - next.from) }
    });
    let [.., longest] = PATHS.map(Insns);
    let interrupts = coming.take_while(|coming| coming.after_insns < longest).collect();
    Coincidence { at_ns: Nanos(at), masked_insns: insns(met.to - at), interrupts }
}

/// Those that make answers latest whose path takes so long, the latest first.
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

    /// What is seen of stretches that begin and end then, in instructions, and whether an interrupt masks.
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
            // It had waited.
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
