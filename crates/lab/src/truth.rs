// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares what a probe said with what happened: each latency that a probe reported with the latency that the rig saw
//! from outside.
//!
//! The witness ([`rig::Witness`]) sees when a thread was to be woken, and when the thread's first instruction after
//! that ran. The probe's error is what it reports beyond that: the instructions up to its reading of the clock. If the
//! probe slept for a length of time, the instructions from the reading before to the call belong to the error too.
//! `docs/truth.md` defines what is compared for each way of sleeping.
//!
//! The module cannot see what made a thread late, nor anything of a thread that spins and does not call the kernel.

use crate::x86_64::{CLOCK_NANOSLEEP, READ, RT_SIGTIMEDWAIT, SETITIMER, TIMER_SETTIME};
use bundle::{Deviation, Truth};
use probes::plan::SleepMethod;
use probes::{Plan, Probe, cyclictest_passed};
use rig::{ClockLine, Wake, Witness};
use sample::{Insns, Monotonic, Nanos, Sample, SeriesName, Stamp};
use std::collections::BTreeMap;

/// Judges a run of `plan` on one CPU. `samples` are those of the series `names`, as the probe reported them, and their
/// times count from `origin`. The result is empty if the guest died before it reported its clock, or if the probe did
/// not report its origin.
pub fn judge(
    plan: &Plan,
    names: &[SeriesName],
    samples: &[Sample],
    origin: Option<Stamp<Monotonic>>,
    witness: &Witness,
) -> Vec<Truth> {
    let (Some(line), Some(origin)) = (witness.clock_line(), origin) else { return Vec::new() };
    let of_series = by_series(samples, names.len());
    let seen = onsets_of(plan, &of_series, origin, &line, &witness.wakes);
    let judged = ways(plan).into_iter().zip(names).zip(of_series.iter().zip(&seen));
    judged
        .map(|((way, name), (samples, seen))| truth(name.clone(), &way, samples, seen, &line))
        .collect()
}

/// The wake-ups that answer the events of each series of a plan, in the order of the series: when each event was due,
/// and when the thread woke. `samples` are all those that the probe reported.
pub fn onsets(
    plan: &Plan,
    samples: &[Sample],
    origin: Stamp<Monotonic>,
    line: &ClockLine,
    wakes: &[Wake],
) -> Vec<Vec<Onset>> {
    onsets_of(plan, &by_series(samples, ways(plan).len()), origin, line, wakes)
}

fn by_series(samples: &[Sample], series: usize) -> Vec<Vec<&Sample>> {
    let mut of_series: Vec<Vec<&Sample>> = vec![Vec::new(); series];
    samples.iter().for_each(|s| of_series[s.series.index()].push(s));
    of_series
}

fn onsets_of(
    plan: &Plan,
    of_series: &[Vec<&Sample>],
    origin: Stamp<Monotonic>,
    line: &ClockLine,
    wakes: &[Wake],
) -> Vec<Vec<Onset>> {
    let begun = |index: usize, period: Nanos| {
        let first = of_series[index].first()?;
        let due = first.at.checked_sub(period.checked_mul(first.trigger)?)?;
        origin.checked_add(due)?.checked_sub(period)
    };
    let ways = ways(plan);
    let begins: Vec<Option<Stamp<Monotonic>>> =
        ways.iter().enumerate().map(|(index, way)| begun(index, way.period)).collect();
    let onsets = ways.iter().enumerate().map(|(index, way)| {
        let end = begins[index + 1..].iter().flatten().next().copied();
        let series = begins[index].map(|begin| Series { way, begin, end, line });
        let mut onsets = series.map_or_else(Vec::new, |series| series.onsets(wakes));
        if way.counts_loops {
            number_after_loops(&mut onsets, way, &of_series[index]);
        }
        onsets
    });
    onsets.collect()
}

/// Numbers the loops of cyclictest as its samples are: after a late loop the periods that passed have numbers, too.
fn number_after_loops(onsets: &mut [Onset], way: &Way, samples: &[&Sample]) {
    let mut samples = samples.iter().peekable();
    let mut passed = 0;
    for (made, onset) in (0..).zip(onsets) {
        while let Some(before) = samples.next_if(|sample| sample.trigger < made + passed) {
            passed += cyclictest_passed(way.method, before.latency, way.period);
        }
        onset.number = made + passed;
    }
}

fn truth(
    series: SeriesName,
    way: &Way,
    samples: &[&Sample],
    seen: &[Onset],
    line: &ClockLine,
) -> Truth {
    let onsets: BTreeMap<u64, &Onset> = seen.iter().map(|o| (o.number, o)).collect();
    let error = |s: &&Sample| {
        let reported = i64::try_from(s.latency.0).ok()?;
        onsets.get(&s.trigger).map(|onset| reported - onset.latency_ns(way.method))
    };
    let errors: Vec<i64> = samples.iter().filter_map(error).collect();
    // The first wake-up has instructions from before measuring.
    let mut own: Vec<Insns> = seen.iter().skip(1).map(|onset| onset.own).collect();
    own.sort_unstable();
    let uncertainty = match way.asked() {
        // From one instant to a near one, the offset of the clock does not matter.
        Asked::FromCall => Nanos(1),
        _ => line.uncertainty(),
    };
    Truth {
        series,
        samples: samples.len() as u64,
        matched: errors.len() as u64,
        error: Deviation::of(errors),
        uncertainty,
        own: own.get(own.len() / 2).copied(),
    }
}

/// The way in which a series sleeps.
struct Way {
    method: SleepMethod,
    period: Nanos,
    /// Whether the thread makes a loop of each wake-up, as cyclictest does, and its periods are numbered after that.
    /// Our own probe says which period it sleeps for.
    counts_loops: bool,
}

/// The instant by which a wake-up is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Each call names the instant.
    ByCall,
    /// The instant is a period after the call.
    FromCall,
    /// A call that armed a timer named the first instant, or the timer was armed for a period from then on.
    ByTimer(u8),
    /// Only the probe knows the instant.
    ByProbe,
}

/// The series of a plan, in the order of their numbers.
fn ways(plan: &Plan) -> Vec<Way> {
    let way = |counts_loops| move |(method, period)| Way { method, period, counts_loops };
    match &plan.probe {
        Probe::Periodic(p) => {
            let each = |method| p.periods.iter().map(move |period| (method, *period));
            p.methods.iter().flat_map(|method| each(*method)).map(way(false)).collect()
        }
        Probe::Cyclictest(p) => p.methods.iter().map(|m| (*m, p.period)).map(way(true)).collect(),
        _ => Vec::new(),
    }
}

impl Way {
    fn asked(&self) -> Asked {
        match self.method {
            SleepMethod::Nanosleep => Asked::FromCall,
            SleepMethod::ClockNanosleep | SleepMethod::Deadline => Asked::ByCall,
            SleepMethod::PosixTimer => Asked::ByTimer(TIMER_SETTIME),
            SleepMethod::Itimer => Asked::ByTimer(SETITIMER),
            // Nobody judges the busy wait ([`can_be_judged`]).
            SleepMethod::Timerfd | SleepMethod::Precise | SleepMethod::Busy => Asked::ByProbe,
        }
    }

    /// The call in which the series waits.
    fn waits_in(&self) -> u8 {
        match self.method {
            SleepMethod::Timerfd => READ,
            SleepMethod::PosixTimer | SleepMethod::Itimer => RT_SIGTIMEDWAIT,
            SleepMethod::Nanosleep
            | SleepMethod::ClockNanosleep
            | SleepMethod::Deadline
            | SleepMethod::Precise
            | SleepMethod::Busy => CLOCK_NANOSLEEP,
        }
    }
}

/// A wake-up that answers an event.
pub struct Onset {
    /// The number of the event, as in the probe's samples.
    pub number: u64,
    /// When it was due.
    pub due: Stamp<Monotonic>,
    woke: Stamp<Monotonic>,
    own: Insns,
}

impl Onset {
    /// How late the thread was. A thread that sleeps precisely wakes before the event and has the CPU at the event. In
    /// this case it is on time.
    fn latency_ns(&self, method: SleepMethod) -> i64 {
        let late = i128::from(self.woke.ns()) - i128::from(self.due.ns());
        let late = if method == SleepMethod::Precise { late.max(0) } else { late };
        // Two times of one run are not 292 years apart.
        late as i64
    }
}

/// A series, and when it was measured.
struct Series<'a> {
    way: &'a Way,
    /// The instant one period before its first event.
    begin: Stamp<Monotonic>,
    /// The beginning of the next series.
    end: Option<Stamp<Monotonic>>,
    line: &'a ClockLine,
}

impl Series<'_> {
    fn onsets(&self, wakes: &[Wake]) -> Vec<Onset> {
        let own = self.own(wakes);
        let waits: Vec<&Wake> =
            own.iter().copied().filter(|w| w.call == self.way.waits_in()).collect();
        match self.way.asked() {
            Asked::ByCall => self.at_requests(&waits),
            Asked::FromCall => self.after_calls(&waits),
            Asked::ByTimer(call) => {
                let armed = own.iter().find(|w| w.call == call);
                let first = armed.and_then(|w| w.requested.or_else(|| self.after(w)));
                first.map_or_else(Vec::new, |first| self.on_timer(first, &waits))
            }
            Asked::ByProbe if self.way.method == SleepMethod::Precise => self.at_requests(&waits),
            Asked::ByProbe => self.on_timer(self.event(0), &waits),
        }
    }

    /// The wake-ups of the measuring thread, which is the one that waited most often.
    fn own<'w>(&self, wakes: &'w [Wake]) -> Vec<&'w Wake> {
        // The probe read its clock right before its first call. The time between is less than the uncertainty.
        let begin = self.begin.saturating_sub(self.line.uncertainty());
        let within = |w: &&Wake| {
            let called = self.line.to_monotonic(w.called);
            called.is_some_and(|at| at >= begin && self.end.is_none_or(|end| at < end))
        };
        let meanwhile: Vec<&Wake> = wakes.iter().filter(within).collect();
        let mut waits: BTreeMap<u32, u64> = BTreeMap::new();
        for wake in meanwhile.iter().filter(|w| w.call == self.way.waits_in()) {
            *waits.entry(wake.thread).or_default() += 1;
        }
        let thread = waits.into_iter().max_by_key(|(_, n)| *n).map(|(thread, _)| thread);
        meanwhile.into_iter().filter(|w| Some(w.thread) == thread).collect()
    }

    /// When event `number` was due, by the probe.
    fn event(&self, number: u64) -> Stamp<Monotonic> {
        self.begin.saturating_add(self.way.period.saturating_mul(number.saturating_add(1)))
    }

    /// The instant a period after a call.
    fn after(&self, wake: &Wake) -> Option<Stamp<Monotonic>> {
        self.line.to_monotonic(wake.called)?.checked_add(self.way.period)
    }

    fn onset(&self, number: u64, due: Stamp<Monotonic>, wake: &Wake) -> Option<Onset> {
        let woke = self.line.to_monotonic(wake.woke)?;
        Some(Onset { number, due, woke, own: wake.own })
    }

    /// The wake-ups, where each call asks for an event, or for less than a period before it.
    fn at_requests(&self, waits: &[&Wake]) -> Vec<Onset> {
        let onset = |wake: &&Wake| {
            let requested = wake.requested?;
            let since = requested.since(self.begin)?;
            let number = since.0.div_ceil(self.way.period.0).checked_sub(1)?;
            let due = match self.way.asked() {
                Asked::ByProbe => self.event(number),
                _ => requested,
            };
            self.onset(number, due, wake)
        };
        waits.iter().filter_map(onset).collect()
    }

    fn after_calls(&self, waits: &[&Wake]) -> Vec<Onset> {
        let relative = waits.iter().filter(|w| w.requested.is_none());
        (0..).zip(relative).filter_map(|(n, w)| self.onset(n, self.after(w)?, w)).collect()
    }

    /// The wake-ups of a timer of the kernel. Each one answers the earliest event without an answer, and all events
    /// that are due with it. A wake-up before its event answers nothing: the probe waits on.
    fn on_timer(&self, first: Stamp<Monotonic>, waits: &[&Wake]) -> Vec<Onset> {
        let mut next = 0u64;
        let mut onsets = Vec::new();
        for wake in waits {
            let due = first.saturating_add(self.way.period.saturating_mul(next));
            let Some(onset) = self.onset(next, due, wake) else { continue };
            let Some(late) = onset.woke.since(due) else { continue };
            next = next.saturating_add(late / self.way.period + 1);
            onsets.push(onset);
        }
        onsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::plan::{Cyclictest, Overrun, Periodic};
    use rig::ClockPoint;
    use rt::Policy;
    use sample::{SeriesId, Virtual};

    const PERIOD: u64 = 1_000_000;
    /// How far the guest's clock is ahead of virtual time.
    const AHEAD: u64 = 7_000;
    const ORIGIN: u64 = 10_000_000;

    fn seen_at(guest_ns: u64) -> Stamp<Virtual> {
        Stamp::from_ns(guest_ns - AHEAD)
    }

    fn witness(wakes: Vec<Wake>) -> Witness {
        let point = |read: u64| ClockPoint {
            begun: seen_at(read - 50),
            insns: Insns(0),
            width: Nanos(100),
            read: Stamp::from_ns(read),
        };
        let mut witness = Witness::default();
        (witness.wakes, witness.clock) = (wakes, vec![point(5_000_000), point(90_000_000)]);
        witness
    }

    /// The wake-up of a waiting thread. Times are by the guest's clock.
    fn wake(call: u8, called: u64, requested: Option<u64>, woke: u64) -> Wake {
        Wake {
            thread: 1,
            call,
            called: seen_at(called),
            requested: requested.map(Stamp::from_ns),
            own: Insns(200),
            woke: seen_at(woke),
            insns: Insns(0),
        }
    }

    /// When event `n` of a series that begins at `begin` is due.
    fn due(begin: u64, n: u64) -> u64 {
        begin + (n + 1) * PERIOD
    }

    fn sample(series: u16, number: u64, due: u64, latency: u64) -> Sample {
        let (series, at) = (SeriesId(series), Nanos(due - ORIGIN));
        Sample { series, trigger: number, at, latency: Nanos(latency), path: None }
    }

    fn plan(methods: &[SleepMethod]) -> Plan {
        let probe = Probe::Periodic(Periodic {
            methods: methods.to_vec(),
            periods: vec![Nanos(PERIOD)],
            count: 10,
            overrun: Overrun::Skip,
            migrate: false,
            slack: Nanos(1),
        });
        Plan { probe, policy: Policy::Fifo(90), cpus: vec![0], pm_qos: false, program: None }
    }

    fn judged(plan: &Plan, samples: &[Sample], wakes: Vec<Wake>) -> Vec<Truth> {
        let names: Vec<SeriesName> =
            plan.series().iter().map(|name| name.parse().unwrap()).collect();
        judge(plan, &names, samples, Some(Stamp::from_ns(ORIGIN)), &witness(wakes))
    }

    fn errors(truth: &Truth) -> (i64, i64) {
        let error = truth.error.expect("something matched");
        (error.min_ns, error.max_ns)
    }

    #[test]
    fn an_absolute_sleep_is_judged_by_what_each_call_asked_for() {
        let due = |n| due(ORIGIN, n);
        let asleep = |n: u64| wake(CLOCK_NANOSLEEP, due(n) - 900_000, Some(due(n)), due(n) + 3_000);
        // Another thread sleeps meanwhile, less often than the first; and one wake-up was not seen.
        let other = Wake { thread: 2, ..asleep(1) };
        let wakes = vec![asleep(0), other, asleep(2), asleep(3)];
        let samples: Vec<Sample> = (0..4).map(|n| sample(0, n, due(n), 3_060 + n)).collect();
        let [truth] = &judged(&plan(&[SleepMethod::ClockNanosleep]), &samples, wakes)[..] else {
            panic!("one series")
        };
        assert_eq!((truth.samples, truth.matched, errors(truth)), (4, 3, (60, 63)));
        assert_eq!(truth.error.unwrap().mean_ns, (60 + 62 + 63) as f64 / 3.0);
        assert_eq!((truth.uncertainty, truth.own), (Nanos(51), Some(Insns(200))));
    }

    #[test]
    fn a_relative_sleep_is_judged_from_its_call_on() {
        let called = |n: u64| ORIGIN + 80 + n * 1_005_000;
        let wakes =
            (0..3).map(|n| wake(CLOCK_NANOSLEEP, called(n), None, called(n) + PERIOD + 4_000));
        // The probe read its clock 80 before the call and 40 after the wake-up.
        let samples: Vec<Sample> =
            (0..3).map(|n| sample(0, n, called(n) - 80 + PERIOD, 4_120)).collect();
        let truth = judged(&plan(&[SleepMethod::Nanosleep]), &samples, wakes.collect());
        assert_eq!((truth[0].matched, errors(&truth[0])), (3, (120, 120)));
        assert_eq!(truth[0].uncertainty, Nanos(1));
    }

    #[test]
    fn a_timers_wake_up_answers_all_events_that_are_due_and_one_before_its_event_none() {
        let due = |n| due(ORIGIN, n);
        let waits = |called: u64, woke| wake(RT_SIGTIMEDWAIT, called, None, woke);
        let wakes = vec![
            wake(TIMER_SETTIME, ORIGIN + 100, Some(due(0)), ORIGIN + 900),
            waits(ORIGIN + 1_000, due(0) + 5_000),
            waits(due(0) + 6_000, due(1) + 2_500_000),
            waits(due(3) + 500_100, due(4) - 300_000),
            waits(due(4) - 200_000, due(4) + 5_000),
        ];
        let reported = [(0, 5_070), (1, 2_500_070), (4, 5_070)];
        let samples = reported.map(|(n, latency)| sample(0, n, due(n), latency));
        let truth = judged(&plan(&[SleepMethod::PosixTimer]), &samples, wakes);
        assert_eq!((truth[0].matched, errors(&truth[0])), (3, (70, 70)));
    }

    #[test]
    fn who_wakes_early_and_spins_is_on_time_and_who_wakes_late_is_not() {
        let due = |n| due(ORIGIN, n);
        let asks = |n, woke| wake(CLOCK_NANOSLEEP, due(n) - 900_000, Some(due(n) - 9_000), woke);
        let wakes = vec![asks(0, due(0) - 4_000), asks(1, due(1) + 2_000)];
        let samples = [sample(0, 0, due(0), 30), sample(0, 1, due(1), 2_040)];
        let truth = judged(&plan(&[SleepMethod::Precise]), &samples, wakes);
        assert_eq!((truth[0].matched, errors(&truth[0])), (2, (30, 40)));
    }

    #[test]
    fn series_that_follow_each_other_in_one_thread_are_told_apart_by_time() {
        let begins = [ORIGIN, ORIGIN + 20_000_000];
        let slept = |begin: u64, late: u64| {
            let asked = due(begin, 0);
            wake(CLOCK_NANOSLEEP, begin + 50, Some(asked), asked + late)
        };
        let wakes = vec![slept(begins[0], 3_000), slept(begins[1], 8_000)];
        let samples =
            [sample(0, 0, due(begins[0], 0), 3_040), sample(1, 0, due(begins[1], 0), 8_050)];
        let both = plan(&[SleepMethod::ClockNanosleep, SleepMethod::Deadline]);
        let truth = judged(&both, &samples, wakes);
        assert_eq!((errors(&truth[0]), errors(&truth[1])), ((40, 40), (50, 50)));
    }

    #[test]
    fn cyclictest_counts_loops_and_is_judged_by_them() {
        let probe = Probe::Cyclictest(Cyclictest {
            methods: vec![SleepMethod::ClockNanosleep],
            period: Nanos(PERIOD),
            count: 3,
        });
        let plan = Plan { probe, ..plan(&[]) };
        // The series begins some time after the start, and leaves out two periods.
        let due = |n| due(ORIGIN + 3_141_592, n);
        let asks = |n, late| wake(CLOCK_NANOSLEEP, due(n) - 900_000, Some(due(n)), due(n) + late);
        let wakes = vec![asks(0, 4_000), asks(1, 2_300_000), asks(4, 4_000), asks(5, 4_000)];
        let reported = [(0, 4_064), (1, 2_300_064), (4, 4_064), (5, 4_064)];
        let sampled = |(n, latency)| sample(0, n, ORIGIN + (n + 1) * PERIOD, latency);
        let truth = judged(&plan, &reported.map(sampled), wakes);
        assert_eq!((truth[0].matched, errors(&truth[0])), (4, (64, 64)));
    }

    #[test]
    fn without_the_guests_clock_or_the_probes_origin_nothing_is_judged() {
        let plan = plan(&[SleepMethod::Timerfd]);
        let names = ["timerfd-1ms".parse().unwrap()];
        let samples = [sample(0, 0, due(ORIGIN, 0), 50)];
        let woke = due(ORIGIN, 0) + 20;
        let seen = witness(vec![wake(READ, ORIGIN + 500, None, woke)]);
        let origin = Some(Stamp::from_ns(ORIGIN));
        assert_eq!(judge(&plan, &names, &samples, None, &seen), []);
        assert_eq!(judge(&plan, &names, &samples, origin, &Witness::default()), []);
        let truth = judge(&plan, &names, &samples, origin, &seen);
        assert_eq!((truth[0].matched, errors(&truth[0]), truth[0].own), (1, (30, 30), None));
    }
}
