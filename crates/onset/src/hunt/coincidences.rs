// SPDX-License-Identifier: GPL-2.0-or-later
//! Instants at which a trigger would meet several things one after the other: interrupts are masked for a while, and other
//! interrupts come before the answer has come. Where no single stretch is long, as on PREEMPT_RT, these make the latest
//! answers; whoever waits for them needs luck, but a scout sees when the interrupts come, and what is masked shortly before.
//!
//! What cannot be foreseen: how the kernel schedules otherwise because of the trigger. So an answer may come some hundred
//! instructions earlier or later than expected.

use super::foresight::{NEAR, apart_by};
use sample::{Insns, Kind, Nanos, Record, Stamp, Virtual};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// What follows an end of masked interrupts as soon as this had waited for that.
const AT_ONCE: u64 = 2;
/// A trigger so many instructions after an opening is inside.
const INSIDE: u64 = 5;
/// Of answers whose path takes so many instructions, so many coincidences are kept each, the latest ones.
const PATHS: [u64; 5] = [1_000, 2_000, 5_000, 10_000, 20_000];
const KEPT: usize = 40;
/// What adds less to an answer than this makes nobody late, and there are hundreds of thousands of them in a second.
const FROM: Insns = Insns(1_000);
/// Those that are nearer to each other meet the same, and the latest of them stands for all.
const APART: Nanos = Nanos::from_micros(50);

/// What a trigger would meet at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coincidence {
    /// The instant, since measuring began.
    pub at_ns: Nanos,
    /// How long interrupts are masked from then on.
    pub masked_insns: Insns,
    /// The interrupts that come after that, the next first.
    pub interrupts: Vec<Coming>,
}

/// An interrupt that comes while an answer is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coming {
    /// How far the answer has come on its path by then.
    pub after_insns: Insns,
    /// How long it takes.
    pub takes_insns: Insns,
}

impl Coincidence {
    /// How much of an answer is not its own path, where that takes so long.
    pub fn adds(&self, path: Insns) -> Insns {
        let met = self.interrupts.iter().filter(|coming| coming.after_insns < path);
        Insns(self.masked_insns.0 + met.map(|coming| coming.takes_insns.0).sum::<u64>())
    }

    /// How long the path of an answer was that came so late.
    pub fn path(&self, answered: Insns) -> Insns {
        let beyond = answered.0.saturating_sub(self.masked_insns.0);
        let less = |left: u64, coming: &Coming| match coming.after_insns.0 < left {
            true => left.saturating_sub(coming.takes_insns.0),
            false => left,
        };
        Insns(self.interrupts.iter().fold(beyond, less))
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
    origin: Option<Stamp<Virtual>>,
    masked: Vec<Masked>,
    /// Since when they are masked, and whether by an interrupt.
    open: Option<(u64, bool)>,
}

impl Timeline {
    /// Nothing was seen yet.
    pub fn new(shift: u8) -> Timeline {
        Timeline { shift, ..Timeline::default() }
    }

    /// Takes what the follower says; `is_interrupt` tells of an address whether an interrupt leads there.
    pub fn record(&mut self, record: &Record, is_interrupt: impl Fn(u64) -> bool) {
        if record.kind == Kind::Mark {
            self.origin = Some(record.at);
        }
        let since = self.origin.and_then(|origin| record.at.since(origin));
        let Some(Nanos(at)) = since.filter(|at| *at <= NEAR) else { return };
        match record.kind {
            Kind::Irqs if record.pins != 0 => self.open = Some((at, is_interrupt(record.number))),
            Kind::Irqs => {
                let Some((from, interrupt)) = self.open.take() else { return };
                match self.masked.last_mut() {
                    Some(last) if from <= last.to + (AT_ONCE << self.shift) => last.to = at,
                    _ => self.masked.push(Masked { from, to: at, interrupt }),
                }
            }
            _ => {}
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
        Coming { after_insns: insns(after), takes_insns: insns(next.to - next.from) }
    });
    let [.., longest] = PATHS.map(Insns);
    let interrupts = coming.take_while(|coming| coming.after_insns < longest).collect();
    Coincidence { at_ns: Nanos(at), masked_insns: insns(met.to - at), interrupts }
}

/// Those that make answers latest whose path takes so long, the latest first.
fn latest(all: &[Coincidence], path: Insns) -> Vec<&Coincidence> {
    let mut ranked: Vec<&Coincidence> = all.iter().collect();
    ranked.sort_by_key(|c| (Reverse(c.adds(path)), c.at_ns));
    apart_by(Vec::new(), ranked, KEPT, (APART, |c| c.at_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: u64 = 0xffff_ffff_8200_0000;
    const CLI: u64 = 0xffff_ffff_8100_0000;

    /// What is seen of stretches that begin and end then, in instructions, and of who masks.
    fn seen(shift: u8, stretches: &[(u64, u64, u64)]) -> Timeline {
        let mut timeline = Timeline::new(shift);
        let mut tell = |kind, pins, number, at: u64| {
            let at = Stamp::from_ns((50 + at) << shift);
            let record = Record { kind, pins, value: 0, number, at, insns: Insns(0) };
            timeline.record(&record, |address| address == TIMER);
        };
        tell(Kind::Irqs, 1, CLI, 0);
        tell(Kind::Mark, 0, 0, 0);
        for (from, to, by) in stretches {
            tell(Kind::Irqs, 1, *by, *from);
            tell(Kind::Irqs, 0, 0, *to);
        }
        timeline
    }

    fn coming(after: u64, takes: u64) -> Coming {
        Coming { after_insns: Insns(after), takes_insns: Insns(takes) }
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
                assert_eq!(found[0].path(Insns(found[0].adds(path).0 + path.0)), path);
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
        let mut all: Vec<(u64, u64, u64)> = each.chain(nearby).chain(short).collect();
        all.sort_unstable();
        let found = seen(0, &all).coincidences();
        assert_eq!(found.len(), KEPT, "the same for each path");
        let last = NEAR.0 / 1_000_000;
        let kept = (last - KEPT as u64..last).map(|n| Nanos(n * 1_000_000 + INSIDE));
        let at = found.iter().map(|c| c.at_ns);
        assert!(at.eq(kept), "{found:?}");
    }
}
