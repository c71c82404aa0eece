// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `periodic`: how late a sleeping task runs (2001, §2 and tables 1–5: delay = slept − period).
//!
//! All methods except relative sleep and the busy wait are measured against one grid. Event `n` is due at
//! `start + (n + 1) · period`. Its latency is the reading of the clock in user space after the task woke, minus
//! that instant. The first period is event 0 and counts like any other. The probe cannot see when the timer's interrupt
//! came, and the latency contains the way back to user space.

mod timer;
mod wait;

use crate::definition::{
    Definition, Key, Kind, Measure, PERIOD_MIN, Sampled, TIME_MAX, Unsound, events, sum, times,
    word,
};
use crate::pace::Pace;
use crate::plan::Plan;
use crate::report::{Doubt, Report, RunError};
use crate::run::{check_count, check_time};
use crate::series::{duration, per_cpu};
use crate::threads::measuring;
use crate::{Output, overhead};
use rt::{Overrun, Policy, Release, RuntimeLimit, Usage};
use sample::{Loss, Monotonic, Nanos, Stamp};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use wait::{Absolute, Precise, Relative, Wait};

/// A real-time thread that has not blocked for this long will never block again.
const RUNAWAY: Nanos = Nanos::from_millis(1_000);
/// The least timer slack. The kernel takes 0 for the slack that the task began with (PR_SET_TIMERSLACK(2const)).
const SLACK: Nanos = Nanos(1);
/// How long busy waits follow each other without a rest; a burst has at least one. This is many ticks of a kernel, so
/// the busy waits meet ticks as often as a loop without rests would.
const BUSY_BURST: Nanos = Nanos::from_millis(100);
/// The longest period of a busy wait. The kernel would throttle a longer one, or take it for one that never ends.
const BUSY_MAX: Nanos = Nanos::from_millis(400);

pub(crate) const DEFINITION: Definition = Definition {
    name: "periodic",
    about: "How late a sleeping task runs",
    keys: &[
        Key::words::<SleepMethod>("methods", "clock_nanosleep", "How the task sleeps: {}."),
        Key {
            name: "periods",
            kind: Kind::Times(PERIOD_MIN),
            default: "1ms",
            help: "How long the task sleeps, for example 1ms; with several, the probe measures one after the other.",
        },
        Key::count("Number of periods in each series."),
        Key::word::<Overrun>(
            "overrun",
            "skip",
            "What the probe does about periods that passed while the task was late: {}.",
        ),
        Key::flag(
            "migrate",
            "Use one thread that goes from CPU to CPU, instead of one thread for each CPU",
        ),
        Key {
            name: "slack",
            kind: Kind::Time(SLACK),
            default: "1ns",
            help: "How much later than asked the kernel may wake a task without real-time policy (the timer slack); programs have 50us unless they change it.",
        },
    ],
    examples: [
        "onset measure periodic --duration 1h --cpus 0-3 --load mixed --limit max=100us",
        "onset measure periodic --method timerfd,precise --period 1ms --flavour '6.12 preempt=none'",
    ],
};

/// The probe's part of a plan: one series for each method and period, and for each CPU if there are several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// The ways of sleeping. The probe measures one after the other.
    pub methods: Vec<SleepMethod>,
    /// The periods. The probe measures one after the other.
    #[serde(rename = "periods_ns")]
    pub periods: Vec<Nanos>,
    /// The number of periods in each series, with the lost ones.
    pub count: u64,
    /// What the probe does about a period that is already over.
    pub overrun: Overrun,
    /// Whether one thread changes its CPU in each period, in turn. Otherwise each CPU has a thread.
    pub migrate: bool,
    /// The timer slack of each thread: how much later than asked the kernel may wake it. Tasks of real-time policies
    /// have none, whatever is set. Plans of older bundles do not name it: their threads had 1 ns.
    #[serde(rename = "slack_ns", default = "least_slack")]
    pub slack: Nanos,
}

fn least_slack() -> Nanos {
    SLACK
}

/// How a task sleeps for a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SleepMethod {
    /// `clock_nanosleep` for a relative time: each period begins when the task woke (2001, §2).
    Nanosleep,
    /// `clock_nanosleep` until an absolute time.
    ClockNanosleep,
    /// `read` of a periodic timerfd.
    Timerfd,
    /// A periodic POSIX timer whose signal is taken by `sigwaitinfo`.
    PosixTimer,
    /// `setitimer(ITIMER_REAL)` whose signal is taken by `sigwaitinfo`.
    Itimer,
    /// `clock_nanosleep` until an absolute time, under `SCHED_DEADLINE`.
    Deadline,
    /// Sleep until shortly before, then spin on the clock.
    Precise,
    /// Spin on the clock for the whole period (2001, tables 3 and 4: busy wait).
    Busy,
}

/// A measurement whose threads measure at once. Each thread has a series.
struct Job {
    method: SleepMethod,
    period: Nanos,
    policy: Policy,
    names: Vec<String>,
    /// The CPU of each thread. A thread without a CPU is not bound.
    cpus: Vec<Option<u32>>,
    /// The CPUs that the thread visits in turn, one for each period. If this is empty, the thread stays.
    round: Vec<u32>,
}

fn jobs(plan: &Plan, periodic: &Periodic) -> Vec<Job> {
    let job = |method: SleepMethod, period: Nanos| {
        let policy = policy(plan.policy, method, period);
        let base = format!("{}-{}", word(&method), duration(period));
        let bound = |cpu: &u32| Some(*cpu);
        let alone = |cpus, round| (vec![base.clone()], cpus, round);
        // The kernel accepts no deadline thread that is bound (sched-deadline.rst, §5).
        let (names, cpus, round) = if matches!(policy, Policy::Deadline { .. }) {
            alone(vec![None], Vec::new())
        } else if periodic.migrate {
            alone(vec![None], plan.cpus.clone())
        } else {
            (per_cpu(&base, &plan.cpus), plan.cpus.iter().map(bound).collect(), Vec::new())
        };
        let mut job = Job { method, period, policy, names, cpus, round };
        if method == SleepMethod::Itimer {
            // A process has only one ITIMER_REAL (setitimer(2)).
            job.names.truncate(1);
            job.cpus.truncate(1);
        }
        job
    };
    let periods = |method| periodic.periods.iter().map(move |period| (method, *period));
    periodic.methods.iter().flat_map(|method| periods(*method)).map(|(m, p)| job(m, p)).collect()
}

/// The policy of the plan, except for the method `deadline`. If the plan has no `SCHED_DEADLINE`, this method runs for
/// a tenth of the period. This is far more than a loop needs, and the kernel admits several such threads.
fn policy(policy: Policy, method: SleepMethod, period: Nanos) -> Policy {
    match (method, policy) {
        (_, Policy::Deadline { .. }) => policy,
        (SleepMethod::Deadline, _) => {
            Policy::Deadline { runtime: period / 10, deadline: period, period }
        }
        _ => policy,
    }
}

impl Measure for Periodic {
    fn series(&self, plan: &Plan) -> Vec<String> {
        jobs(plan, self).into_iter().flat_map(|job| job.names).collect()
    }

    fn threads(&self, plan: &Plan) -> usize {
        jobs(plan, self).iter().map(|job| job.cpus.len()).max().unwrap_or(1)
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Stretches
    }

    fn duration(&self) -> Nanos {
        times(sum(&self.periods), self.count, self.methods.len())
    }

    fn events(&self) -> u64 {
        events(self.count, self.methods.len() * self.periods.len())
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        self.periods.iter().min().copied()
    }

    fn spins(&self) -> bool {
        self.methods.contains(&SleepMethod::Busy)
    }

    fn unsound(&self) -> Option<Unsound> {
        let longest = self.periods.iter().max().copied().unwrap_or_default();
        (self.spins() && longest > BUSY_MAX).then(|| Unsound {
            key: "periods",
            wrong: format!("no task may be busy for whole periods of {longest}"),
            remedy: format!(
                "with busy, a period is at most {BUSY_MAX}; or take precise, which sleeps first"
            ),
        })
    }

    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_count(self.count)?;
        for period in &self.periods {
            check_time("periods_ns", *period)?;
        }
        check_slack(self.slack)?;
        let jobs = jobs(plan, self);
        jobs.iter().try_for_each(|job| timer::check(job.method, job.period))?;
        jobs.iter().try_for_each(|job| check_busy(job.method, job.period))?;
        // The limit is refused where a stricter one is in force. The stricter one serves as well.
        let _guard = RuntimeLimit::hold(RUNAWAY);
        let (origin, mut report, mut series) = (rt::now(), Report::default(), 0);
        report.add("origin_ns", origin.ns());
        for job in &jobs {
            let _alarm =
                (job.method == SleepMethod::Itimer).then(timer::BlockedAlarm::new).transpose()?;
            let tallies = measuring(job.policy, &job.cpus, outputs, |index, output| {
                let series = series + index as u16;
                Measurement { job, periodic: self, origin, series, output, stop }.measure()
            })?;
            for (tally, name) in tallies.iter().zip(&job.names) {
                tally.enter(name, &mut report);
            }
            series += job.names.len() as u16;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(report)
    }
}

fn check_slack(slack: Nanos) -> Result<(), RunError> {
    if (SLACK..=TIME_MAX).contains(&slack) {
        return Ok(());
    }
    Err(RunError::Plan { part: "slack_ns", wrong: format!("{slack} is outside of 1ns … 60min") })
}

/// Checks that a busy wait is short enough to leave other tasks time.
fn check_busy(method: SleepMethod, period: Nanos) -> Result<(), RunError> {
    if method != SleepMethod::Busy || period <= BUSY_MAX {
        return Ok(());
    }
    let wrong =
        format!("a busy wait takes at most {BUSY_MAX}, not {period}; take the method precise");
    Err(RunError::Plan { part: "periods_ns", wrong })
}

/// The counts of a thread beside its samples.
#[derive(Default)]
struct Tally {
    used: Usage,
    overhead: Nanos,
    skipped: u64,
    stopped: bool,
    margin: Option<Nanos>,
    /// Signals of an interval timer for events that were counted before the signal came.
    early: u64,
}

impl Tally {
    fn enter(&self, series: &str, report: &mut Report) {
        report.add("page_faults", self.used.page_faults());
        report.add("voluntary_switches", self.used.voluntary_switches);
        report.add("involuntary_switches", self.used.involuntary_switches);
        report.add("loop_cpu_time_ns", self.used.cpu_time.0);
        report.add("skipped_periods", self.skipped);
        report.largest("overhead_ns", self.overhead.0);
        if let Some(margin) = self.margin {
            report.largest("precise_margin_ns", margin.0);
        }
        if self.early > 0 {
            report.add("itimer_early_signals", self.early);
        }
        if self.stopped {
            report.doubts.push(Doubt::Stopped { series: series.to_owned() });
        }
    }
}

/// The measurement of one series in its thread.
struct Measurement<'a> {
    job: &'a Job,
    periodic: &'a Periodic,
    origin: Stamp<Monotonic>,
    series: u16,
    output: &'a mut Output,
    stop: &'a AtomicBool,
}

impl Measurement<'_> {
    fn measure(&mut self) -> Result<Tally, RunError> {
        rt::timer_slack(self.periodic.slack)?;
        self.migrate(0)?;
        let overhead = overhead::clock_read();
        let period = self.job.period;
        let (mut margin, mut early) = (None, 0);
        let mut tally = match self.job.method {
            SleepMethod::Nanosleep => self.watch(|m| m.relative()),
            SleepMethod::Busy => self.watch(|m| m.busy()),
            SleepMethod::ClockNanosleep | SleepMethod::Deadline => {
                self.watch(|m| m.grid(&mut Absolute, m.first(rt::now())))
            }
            SleepMethod::Precise => {
                // At most half the period, so that the task blocks in every period.
                let mut wait = Precise::calibrate(period / 2);
                let tally = self.watch(|m| m.grid(&mut wait, m.first(rt::now())));
                margin = Some(wait.margin());
                tally
            }
            SleepMethod::Timerfd => {
                let (mut wait, start) = timer::Timerfd::start(period)?;
                self.watch(|m| m.grid(&mut wait, m.first(start)))
            }
            SleepMethod::PosixTimer => {
                let (mut wait, start) = timer::PosixTimer::start(period)?;
                self.watch(|m| m.grid(&mut wait, m.first(start)))
            }
            SleepMethod::Itimer => {
                let (mut wait, start) = timer::Itimer::start(period)?;
                let tally = self.watch(|m| m.grid(&mut wait, m.first(start)));
                early = wait.early();
                tally
            }
        }?;
        tally.overhead = overhead;
        tally.margin = margin;
        tally.early = early;
        Ok(tally)
    }

    fn first(&self, start: Stamp<Monotonic>) -> Stamp<Monotonic> {
        start + self.job.period
    }

    /// Runs a loop, and counts the page faults and other effects that the kernel had on it.
    fn watch(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<Tally, RunError>,
    ) -> Result<Tally, RunError> {
        let before = Usage::of_thread();
        let tally = run(self)?;
        Ok(Tally { used: Usage::of_thread().since(&before), ..tally })
    }

    /// The loop of all methods that wait until absolute instants. It is compiled for each way of waiting.
    fn grid(&mut self, wait: &mut impl Wait, first: Stamp<Monotonic>) -> Result<Tally, RunError> {
        let count = self.periodic.count;
        let mut release = Release::new(first, self.job.period, self.periodic.overrun);
        let mut tally = Tally::default();
        loop {
            let (now, passed) = wait.wait(&release)?;
            let woken = release.woke(now, passed);
            self.put(woken.number, woken.due, woken.latency);
            // Events beyond the last one do not belong to this series.
            let skipped = woken.skipped.min(count - 1 - woken.number);
            if skipped > 0 {
                self.output.loss(self.series, Loss::Superseded, skipped);
                tally.skipped += skipped;
            }
            let next = woken.number + 1 + skipped;
            tally.stopped = woken.stop && next < count;
            if next >= count || woken.stop || self.stop.load(Ordering::Relaxed) {
                return Ok(tally);
            }
            self.migrate(next)?;
        }
    }

    /// The loop of relative sleep. A period begins when the task goes to sleep, so the task never skips a period.
    fn relative(&mut self) -> Result<Tally, RunError> {
        let wait = Relative::new(self.job.period);
        for number in 0..self.periodic.count {
            let (due, now) = wait.wait();
            self.put(number, due, now.since(due));
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.migrate(number + 1)?;
        }
        Ok(Tally::default())
    }

    /// The loop of the busy wait. As with relative sleep, a period begins with a reading of the clock. It ends with the
    /// first reading at or after its end. After a burst the task rests. A rest belongs to no period.
    fn busy(&mut self) -> Result<Tally, RunError> {
        let period = self.job.period;
        let mut pace = Pace::every((BUSY_BURST / period).max(1));
        for number in 0..self.periodic.count {
            let (due, now) = wait::spin(&rt::SystemClock, period);
            self.put(number, due, now.since(due));
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.migrate(number + 1)?;
            if pace.is_due() {
                pace.rest();
            }
        }
        Ok(Tally::default())
    }

    #[inline]
    fn put(&mut self, number: u64, due: Stamp<Monotonic>, latency: Option<Nanos>) {
        match (due.since(self.origin), latency) {
            (Some(at), Some(latency)) => self.output.sample(self.series, number, at, latency),
            _ => self.output.loss(self.series, Loss::Tainted, 1),
        }
    }

    #[inline]
    fn migrate(&self, number: u64) -> Result<(), RunError> {
        match self.job.round.as_slice() {
            [] => Ok(()),
            cpus => Ok(rt::pin(cpus[(number % cpus.len() as u64) as usize])?),
        }
    }
}
