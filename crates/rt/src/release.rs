// SPDX-License-Identifier: GPL-2.0-or-later
//! Periodic release: event `n` is due at `start + n · period`, whatever became of the events before it.
//!
//! This is pure arithmetic; only [`Release::wait`] sleeps, through a [`Clock`]. So a late answer moves no later event,
//! and lateness does not add up (drift).

use crate::Clock;
use sample::{Monotonic, Nanos, Stamp};

/// What a task does about events that became due while it answered an earlier event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Overrun {
    /// Leave these events out, and count them.
    Skip,
    /// Answer these events at once, one after the other.
    CatchUp,
    /// End the series.
    Stop,
}

/// The releases of one periodic task.
#[derive(Clone, Debug)]
pub struct Release {
    due: Stamp<Monotonic>,
    number: u64,
    period: Nanos,
    overrun: Overrun,
    behind: u64,
}

/// How the task answered an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The number of the event, from 0. Skipped events have numbers too.
    pub number: u64,
    /// When the event was due.
    pub due: Stamp<Monotonic>,
    /// How late the answer came. `None` if it came before the event was due, which never happens with a sound clock.
    pub latency: Option<Nanos>,
    /// The number of events after this one that are left out.
    pub skipped: u64,
    /// Whether the overrun policy says to end.
    pub stop: bool,
}

impl Release {
    /// Event 0 is due at `first`. Each further event is due one `period` (at least 1 ns) after the event before it.
    pub fn new(first: Stamp<Monotonic>, period: Nanos, overrun: Overrun) -> Release {
        Release { due: first, number: 0, period: period.max(Nanos(1)), overrun, behind: 0 }
    }

    /// When the next event is due.
    #[inline]
    pub fn due(&self) -> Stamp<Monotonic> {
        self.due
    }

    /// The number of events that are due already and that the task answers without waiting ([`Overrun::CatchUp`]).
    #[inline]
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Whole periods between the next event and `now`: how many further events became due with the next one.
    #[inline]
    pub fn passed(&self, now: Stamp<Monotonic>) -> u64 {
        match now.since(self.due) {
            // A division costs more than all other steps here, and is hardly ever needed.
            Some(late) if late >= self.period => late / self.period,
            _ => 0,
        }
    }

    /// Takes the answer to the next event. The task gave it at `now`, when `passed` further events were due as well.
    /// The number comes from [`passed`](Self::passed), or from a kernel timer that counts its expirations.
    #[inline]
    pub fn woke(&mut self, now: Stamp<Monotonic>, passed: u64) -> Woken {
        let (due, number) = (self.due, self.number);
        let (skipped, behind) = match self.overrun {
            Overrun::Skip | Overrun::Stop => (passed, 0),
            Overrun::CatchUp => (0, passed),
        };
        self.behind = behind;
        self.number = number.saturating_add(1).saturating_add(skipped);
        self.due = due.saturating_add(self.period.saturating_mul(skipped.saturating_add(1)));
        let stop = passed > 0 && self.overrun == Overrun::Stop;
        Woken { number, due, latency: now.since(due), skipped, stop }
    }

    /// Sleeps until the next event, unless it is due already. Returns how the task answered the event.
    #[inline]
    pub fn wait(&mut self, clock: &impl Clock) -> Woken {
        if self.behind == 0 {
            clock.sleep_until(self.due);
        }
        let now = clock.now();
        self.woke(now, self.passed(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::fake::Fake;

    const PERIOD: u64 = 1_000;

    /// The answers to the events, where each sleep ends late by the next of `delays`.
    fn released(overrun: Overrun, delays: &[u64], events: usize) -> Vec<Woken> {
        let clock = Fake::default();
        clock.delays.borrow_mut().extend(delays);
        let mut release = Release::new(Stamp::from_ns(PERIOD), Nanos(PERIOD), overrun);
        (0..events).map(|_| release.wait(&clock)).collect()
    }

    fn latencies(woken: &[Woken]) -> Vec<(u64, u64)> {
        woken.iter().map(|w| (w.number, w.latency.unwrap().0)).collect()
    }

    #[test]
    fn lateness_does_not_add_up() {
        let woken = released(Overrun::Skip, &[30, 999, 0, 7], 4);
        assert_eq!(latencies(&woken), [(0, 30), (1, 999), (2, 0), (3, 7)]);
        assert!(woken.iter().all(|w| w.due.ns() == (w.number + 1) * PERIOD && w.skipped == 0));
    }

    #[test]
    fn skipping_counts_every_period_that_passed() {
        let woken = released(Overrun::Skip, &[0, 3_500, 0], 3);
        assert_eq!(latencies(&woken), [(0, 0), (1, 3_500), (5, 0)]);
        assert_eq!(woken[1].skipped, 3);
        assert_eq!(woken[2].due.ns(), 6 * PERIOD);
    }

    #[test]
    fn a_delay_of_exactly_one_period_has_passed_the_next_event() {
        assert_eq!(released(Overrun::Skip, &[PERIOD - 1], 1)[0].skipped, 0);
        assert_eq!(released(Overrun::Skip, &[PERIOD], 1)[0].skipped, 1);
    }

    #[test]
    fn catching_up_answers_every_event_and_shows_how_late_each_was() {
        let woken = released(Overrun::CatchUp, &[0, 2_500, 4], 5);
        assert_eq!(latencies(&woken), [(0, 0), (1, 2_500), (2, 1_500), (3, 500), (4, 4)]);
        assert!(woken.iter().all(|w| w.skipped == 0 && !w.stop));
    }

    #[test]
    fn stopping_ends_at_the_first_overrun_and_counts_it() {
        let woken = released(Overrun::Stop, &[999, 2_000], 2);
        assert!(!woken[0].stop);
        assert!(woken[1].stop);
        assert_eq!(woken[1].skipped, 2);
    }

    #[test]
    fn a_step_of_the_clock_is_an_overrun_once_and_then_forgotten() {
        let clock = Fake::default();
        let mut release = Release::new(Stamp::from_ns(PERIOD), Nanos(PERIOD), Overrun::Skip);
        release.wait(&clock);
        clock.now.set(1_000_000_300);
        let stepped = release.wait(&clock);
        assert_eq!(stepped.latency, Some(Nanos(999_998_300)));
        assert_eq!(release.wait(&clock).latency, Some(Nanos(0)));
    }

    #[test]
    fn a_clock_that_runs_fast_or_slow_moves_no_event() {
        // The sleeper's clock gains or loses against ours. The due times are on our grid.
        for drift in [1, 40] {
            let delays: Vec<u64> = (0..20).map(|n| n * drift).collect();
            let woken = released(Overrun::Skip, &delays, 20);
            assert!(woken.iter().zip(0..).all(|(w, n)| w.latency == Some(Nanos(n * drift))));
        }
    }

    #[test]
    fn an_answer_before_the_event_is_no_latency_and_moves_no_event() {
        let mut release = Release::new(Stamp::from_ns(PERIOD), Nanos(PERIOD), Overrun::Skip);
        let early = Stamp::from_ns(PERIOD - 1);
        let woken = release.woke(early, release.passed(early));
        assert_eq!((woken.latency, woken.skipped), (None, 0));
        assert_eq!(release.due().ns(), 2 * PERIOD);
    }

    #[test]
    fn the_end_of_time_overflows_nothing() {
        let mut release = Release::new(Stamp::from_ns(u64::MAX - 5), Nanos(10), Overrun::Skip);
        let woken = release.woke(Stamp::from_ns(u64::MAX), u64::MAX);
        assert_eq!(woken.latency, Some(Nanos(5)));
        assert_eq!(release.due().ns(), u64::MAX);
    }
}
