// SPDX-License-Identifier: GPL-2.0-or-later
//! What was seen of a probe's run from outside: when its threads waited and woke, and how the guest's clock runs beside
//! virtual time.

use sample::{At, Insns, Monotonic, Nanos, Stamp, Virtual};
use std::collections::BTreeMap;
use wire::Event;

/// The most wake-ups that are kept, in 64 MB. Further ones are only counted.
const WAKES_MAX: usize = 1 << 20;
/// The most levels of the port that are kept, in 64 MB. A probe whose records fit into a guest makes fewer.
const LEVELS_MAX: usize = 1 << 22;

/// A wake-up: a thread of the guest waited in a system call, or armed a timer by one, and its next instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The number of the thread, in the order in which threads were first seen.
    pub thread: u32,
    /// The number of the system call.
    pub call: u8,
    /// When the thread made the call.
    pub called: Stamp<Virtual>,
    /// The time until which the thread asked to sleep, if it named a time on CLOCK_MONOTONIC. Or the first expiry of
    /// its timer, if it named a time on the timer's clock.
    pub requested: Option<Stamp<Monotonic>>,
    /// The instructions of user space from the previous wake-up up to the call. For the first wake-up they count from
    /// the thread's first call. This is what the program executes for each period. It counts all threads that ran
    /// meanwhile. A block of code that a page fault breaks off counts whole.
    pub own: Insns,
    /// When the call returned. The thread's first instruction is the next one.
    pub woke: Stamp<Virtual>,
    /// The instructions that the vCPU had completed at that moment.
    pub insns: Insns,
}

/// One reading of CLOCK_MONOTONIC in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPoint {
    /// When the reading began: at the instruction before it.
    pub begun: Stamp<Virtual>,
    /// The instructions that the vCPU had completed at `begun`.
    pub insns: Insns,
    /// How much later the reading was over.
    pub width: Nanos,
    /// The value of the reading.
    pub read: Stamp<Monotonic>,
}

impl ClockPoint {
    /// The middle of the stretch in which the guest read, in ns.
    fn middle(&self) -> i128 {
        i128::from(self.begun.ns()) + i128::from(self.width.0) / 2
    }
}

/// The level of the parallel port's data pins from some instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// When the guest wrote this level. The writing instruction is the next one. For the first level, when measuring
    /// began.
    pub at: Stamp<Virtual>,
    /// The pins, with D0 in bit 0.
    pub pins: u16,
}

/// A batch of the probe `cost`, by its series and its number.
pub type BatchId = (u16, u32);

/// Instructions of everything that ran, and virtual time in ns.
pub type Span = (u64, u64);

/// What the stretches of a batch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Those that count.
    pub counts: Span,
    /// Those that are to be taken away.
    pub takes: Span,
    /// Where the stretch that is open began.
    open: Option<Span>,
}

impl Batch {
    /// Takes the beginning or the end of a stretch.
    fn mark(&mut self, at: At, counts: bool, ends: bool) {
        let now = (at.insns.0, at.time.ns());
        if !ends {
            self.open = Some(now);
        } else if let Some(began) = self.open.take() {
            let sum = if counts { &mut self.counts } else { &mut self.takes };
            sum.0 += now.0.saturating_sub(began.0);
            sum.1 += now.1.saturating_sub(began.1);
        }
    }

    /// Whether all stretches of the batch ended.
    pub fn is_whole(&self) -> bool {
        self.open.is_none()
    }
}

/// Instructions by the function that executed them, which is known by its address ([`Event::Spent`]).
pub type Functions = BTreeMap<u64, u64>;

/// What each function executed in a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// In the stretches that count.
    pub counts: Functions,
    /// In those that are to be taken away.
    pub takes: Functions,
}

/// Everything that was seen, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// The wake-ups. Empty if the plugin was not asked to watch.
    pub wakes: Vec<Wake>,
    /// The number of wake-ups beyond those that are kept in [`wakes`](Self::wakes).
    pub wakes_left_out: u64,
    /// The readings of the guest's clock, several before the probe and several after it.
    pub clock: Vec<ClockPoint>,
    /// The levels that the guest wrote to the parallel port. The first is the level at the beginning.
    pub levels: Vec<Level>,
    /// The batches of the probe `cost`.
    pub batches: BTreeMap<BatchId, Batch>,
    /// What each function executed in the stretches of these batches. Empty if the plugin was not asked to count.
    pub spent: BTreeMap<BatchId, Spending>,
    /// The same of the stretch that ends next.
    ends_next: Functions,
    /// The calls of threads that have not woken.
    calls: BTreeMap<u32, Called>,
}

/// When a thread made its call, and the time until which it asked to sleep.
type Called = (Stamp<Virtual>, Option<Stamp<Monotonic>>);

impl Witness {
    /// Takes an event. Events of other kinds are ignored.
    pub(crate) fn observe(&mut self, event: &Event) {
        match *event {
            Event::Call { at, thread, requested, .. } => {
                self.calls.insert(thread, (at.time, requested));
            }
            Event::Wake { at, call, thread, own } => {
                let Some((called, requested)) = self.calls.remove(&thread) else { return };
                if self.wakes.len() == WAKES_MAX {
                    self.wakes_left_out += 1;
                    return;
                }
                let (woke, insns) = (at.time, at.insns);
                self.wakes.push(Wake { thread, call, called, requested, own, woke, insns });
            }
            Event::Mark { at, level: pins, .. } | Event::Pins { at, level: pins, .. }
                if self.levels.len() < LEVELS_MAX =>
            {
                self.levels.push(Level { at: at.time, pins });
            }
            Event::Batch { at, series, number, counts, ends } => {
                self.batches.entry((series, number)).or_default().mark(at, counts, ends);
                if !self.ends_next.is_empty() {
                    let spent = self.spent.entry((series, number)).or_default();
                    let sum = if counts { &mut spent.counts } else { &mut spent.takes };
                    for (function, insns) in std::mem::take(&mut self.ends_next) {
                        *sum.entry(function).or_default() += insns;
                    }
                }
            }
            Event::Spent { function, insns } => {
                self.ends_next.insert(function, insns.0);
            }
            Event::Clock { at, width, read } => {
                let (begun, insns) = (at.time, at.insns);
                self.clock.push(ClockPoint { begun, insns, width, read });
            }
            _ => {}
        }
    }

    /// The relation of the guest's clock to virtual time. `None` if there are fewer than two readings.
    pub fn clock_line(&self) -> Option<ClockLine> {
        let (early, late) = self.clock.split_at(self.clock.len() / 2);
        let tightest = |points: &[ClockPoint]| points.iter().min_by_key(|p| p.width).copied();
        let (a, b) = (tightest(early)?, tightest(late)?);
        (a.read < b.read && a.begun < b.begun).then_some(ClockLine { a, b })
    }
}

/// CLOCK_MONOTONIC of the guest as a straight line over virtual time. The line goes through the tightest reading before
/// the probe and the tightest after it. Nothing disciplines the guest's clock, so it runs evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockLine {
    a: ClockPoint,
    b: ClockPoint,
}

impl ClockLine {
    /// The virtual time at which the guest's clock showed `read`. `None` before virtual time began.
    pub fn to_virtual(&self, read: Stamp<Monotonic>) -> Option<Stamp<Virtual>> {
        let (shown, passed) = self.lengths();
        let since = i128::from(read.ns()) - i128::from(self.a.read.ns());
        let at = self.a.middle() + (since * passed).div_euclid(shown);
        u64::try_from(at).ok().map(Stamp::from_ns)
    }

    /// The time that the guest's clock showed at the virtual time `at`. `None` before it showed anything.
    pub fn to_monotonic(&self, at: Stamp<Virtual>) -> Option<Stamp<Monotonic>> {
        let (shown, passed) = self.lengths();
        let since = i128::from(at.ns()) - self.a.middle();
        let read = i128::from(self.a.read.ns()) + (since * shown).div_euclid(passed);
        u64::try_from(read).ok().map(Stamp::from_ns)
    }

    /// The time from one reading to the other, by the guest's clock and in virtual time.
    fn lengths(&self) -> (i128, i128) {
        let shown = i128::from(self.b.read.ns()) - i128::from(self.a.read.ns());
        (shown, self.b.middle() - self.a.middle())
    }

    /// How far a conversion may be off between the two readings: half of the wider reading, rounded up, and one for the
    /// conversion's own rounding.
    pub fn uncertainty(&self) -> Nanos {
        Nanos(self.a.width.max(self.b.width).0.div_ceil(2) + 1)
    }

    /// How much faster than virtual time the guest's clock runs, in parts per thousand million.
    pub fn drift_ppb(&self) -> i64 {
        let (shown, passed) = self.lengths();
        ((shown - passed) * 1_000_000_000 / passed) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Mark;

    fn at(ns: u64) -> At {
        At::new(Stamp::from_ns(ns), Insns(ns))
    }

    fn wake(call: u8, thread: u32, own: u64, ns: u64) -> Event {
        Event::Wake { at: at(ns), call, thread, own: Insns(own) }
    }

    fn call(call: u8, thread: u32, requested: Option<u64>, ns: u64) -> Event {
        Event::Call { at: at(ns), call, thread, requested: requested.map(Stamp::from_ns) }
    }

    fn pins(level: u16, ns: u64) -> Event {
        Event::Pins { at: at(ns), level, raised: 0 }
    }

    fn clock(read: u64, width: u64, ns: u64) -> Event {
        Event::Clock { at: at(ns), width: Nanos(width), read: Stamp::from_ns(read) }
    }

    fn seen(events: &[Event]) -> Witness {
        let mut witness = Witness::default();
        events.iter().for_each(|event| witness.observe(event));
        witness
    }

    #[test]
    fn a_call_and_the_next_wake_up_of_the_same_thread_belong_together() {
        let witness = seen(&[
            wake(230, 0, 5, 10),
            call(230, 0, Some(1_000), 20),
            call(0, 1, None, 30),
            wake(0, 1, 7, 40),
            wake(230, 0, 60, 1_500),
        ]);
        let [first, second] = witness.wakes[..] else { panic!("{witness:?}") };
        assert_eq!((first.thread, first.requested, first.called.ns()), (1, None, 30));
        assert_eq!((second.thread, second.call, second.own), (0, 230, Insns(60)));
        assert_eq!(second.requested, Some(Stamp::from_ns(1_000)));
        assert_eq!((second.called.ns(), second.woke.ns()), (20, 1_500));
    }

    #[test]
    fn the_levels_of_the_port_are_kept_from_that_on_which_measuring_began_with() {
        let mark = Mark::Measuring;
        let witness = seen(&[
            Event::Mark { at: at(5), mark, control: 0, level: 0xff, raised: 0 },
            pins(0x80, 10),
            call(230, 0, None, 15),
            pins(0, 20),
        ]);
        let levels: Vec<_> = witness.levels.iter().map(|l| (l.at.ns(), l.pins)).collect();
        assert_eq!(levels, [(5, 0xff), (10, 0x80), (20, 0)]);
    }

    #[test]
    fn what_counts_in_a_batch_is_apart_from_what_is_taken_away_and_an_open_stretch_adds_nothing() {
        let mark =
            |ns, number, counts, ends| Event::Batch { at: at(ns), series: 4, number, counts, ends };
        let witness = seen(&[
            mark(100, 0, true, false),
            mark(400, 0, true, true),
            mark(500, 0, false, false),
            mark(550, 0, false, true),
            mark(600, 1, true, false),
        ]);
        let batch = witness.batches[&(4, 0)];
        assert_eq!((batch.counts, batch.takes, batch.is_whole()), ((300, 300), (50, 50), true));
        let torn = witness.batches[&(4, 1)];
        assert_eq!((torn.counts, torn.is_whole()), ((0, 0), false));
    }

    #[test]
    fn the_line_goes_through_the_tightest_readings_at_both_ends() {
        // The guest's clock is 1,000 behind virtual time, and runs 1 % faster.
        let clock = |at: u64, width| {
            let middle = at + width / 2;
            clock((middle - 1_000) * 101 / 100, width, at)
        };
        let witness = seen(&[
            clock(2_000, 900),
            clock(4_950, 100),
            clock(99_900, 200),
            clock(200_000, 5_000),
        ]);
        let line = witness.clock_line().unwrap();
        for at in [5_000, 50_000, 100_000u64] {
            let read = Stamp::from_ns((at - 1_000) * 101 / 100);
            assert_eq!(line.to_virtual(read).unwrap().ns(), at);
            assert_eq!(line.to_monotonic(Stamp::from_ns(at)).unwrap(), read);
        }
        assert_eq!(line.uncertainty(), Nanos(101));
        assert!((9_900_000..10_100_000).contains(&line.drift_ppb()), "{}", line.drift_ppb());
        assert_eq!(line.to_virtual(Stamp::from_ns(0)).unwrap().ns(), 1_000);
    }

    #[test]
    fn fewer_than_two_readings_make_no_line() {
        assert_eq!(seen(&[]).clock_line(), None);
        assert_eq!(seen(&[clock(5, 10, 5)]).clock_line(), None);
    }
}
