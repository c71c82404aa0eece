// SPDX-License-Identifier: GPL-2.0-or-later
//! What a probe is told: one JSON object, the same on every target.

pub use rt::Overrun;
use rt::Policy;
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// One measurement, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is measured, and how.
    pub probe: Probe,
    /// How the measuring threads are scheduled.
    pub policy: Policy,
    /// CPUs that are measured, rising. Probes that measure one take the first, those that need two the first two.
    pub cpus: Vec<u32>,
    /// Keep the CPUs out of deep idle states by `/dev/cpu_dma_latency` while measuring.
    pub pm_qos: bool,
}

/// The probes. The name in files is that of the variant in small letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Probe {
    /// How late a sleeping task runs.
    Periodic(Periodic),
    /// How long reading a clock takes, and whether it goes backwards.
    Gtod(Gtod),
    /// How late a waiting task runs after another one gave it an event.
    Async(Async),
    /// The six components of the Rhealstone benchmark.
    Rhealstone(Rhealstone),
    /// The periodic interrupt of the real-time clock.
    Rtc(Rtc),
    /// What takes a busy CPU away.
    Noise(Noise),
    /// How exactly a pulse is held.
    Toggle(Toggle),
    /// Priority inversion, unbounded and bounded.
    Inversion(Inversion),
    /// The driver's responders, triggered by the driver's own timer.
    Ladder(Ladder),
    /// Debian's cyclictest, run and read by us: the peer that we are compared with.
    Cyclictest(Cyclictest),
}

impl Probe {
    /// Its name in files.
    pub const fn name(&self) -> &'static str {
        match self {
            Probe::Periodic(_) => "periodic",
            Probe::Gtod(_) => "gtod",
            Probe::Async(_) => "async",
            Probe::Rhealstone(_) => "rhealstone",
            Probe::Rtc(_) => "rtc",
            Probe::Noise(_) => "noise",
            Probe::Toggle(_) => "toggle",
            Probe::Inversion(_) => "inversion",
            Probe::Ladder(_) => "ladder",
            Probe::Cyclictest(_) => "cyclictest",
        }
    }
}

impl Plan {
    /// How long measuring takes at the least, about.
    pub fn duration(&self) -> Nanos {
        let times = |one: Nanos, n: u64| Nanos(one.0.saturating_mul(n));
        let sum = |all: &[Nanos]| Nanos(all.iter().map(|one| one.0).sum());
        match &self.probe {
            Probe::Periodic(p) => {
                times(sum(&p.periods), p.count.saturating_mul(p.methods.len() as u64))
            }
            // A pair of reads, with what is done about it.
            Probe::Gtod(p) => times(Nanos(500), p.count.saturating_mul(p.clocks.len() as u64)),
            Probe::Async(p) => {
                let series = (p.mechanisms.len() * p.placements.len()) as u64;
                times(p.period, p.count.saturating_mul(series))
            }
            Probe::Rhealstone(p) => {
                let series = (p.components.len() * p.interfaces.len()) as u64;
                times(Nanos::from_micros(50), p.count.saturating_mul(series))
            }
            Probe::Rtc(p) => times(Nanos(1_000_000_000 / u64::from(p.rate_hz.max(1))), p.count),
            Probe::Noise(p) => p.duration,
            Probe::Toggle(p) => times(p.period, p.count),
            // With either mutex.
            Probe::Inversion(p) => {
                let held = times(p.held, p.middle.len() as u64);
                times(Nanos(sum(&p.middle).0 + held.0), p.count.saturating_mul(2))
            }
            Probe::Ladder(p) => times(p.period, p.count),
            Probe::Cyclictest(p) => times(p.period, p.count.saturating_mul(p.methods.len() as u64)),
        }
    }
}

impl Probe {
    /// The shortest time between two samples of one measuring thread; `None` where they come as fast as they can.
    pub fn shortest_gap(&self) -> Option<Nanos> {
        match self {
            Probe::Periodic(p) => p.periods.iter().min().copied(),
            Probe::Async(p) => Some(p.period),
            Probe::Toggle(p) => Some(p.width.min(p.period)),
            Probe::Rtc(p) => Some(Nanos(1_000_000_000 / u64::from(p.rate_hz.max(1)))),
            Probe::Cyclictest(p) => Some(p.period),
            Probe::Gtod(_)
            | Probe::Rhealstone(_)
            | Probe::Noise(_)
            | Probe::Inversion(_)
            | Probe::Ladder(_) => None,
        }
    }

    /// Whether a measuring task is busy for whole periods, so that the kernel may throttle it.
    pub fn spins(&self) -> bool {
        match self {
            Probe::Noise(_) | Probe::Gtod(_) | Probe::Inversion(_) | Probe::Rhealstone(_) => true,
            Probe::Periodic(p) => p.methods.contains(&SleepMethod::Busy),
            _ => false,
        }
    }

    /// Programs that it runs.
    pub const fn programs(&self) -> &'static [&'static str] {
        match self {
            Probe::Cyclictest(_) => &["cyclictest"],
            _ => &[],
        }
    }
}

/// See [`Probe::Periodic`]. One series for each method, period and, where there are several, CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// How it sleeps; each is measured in turn.
    pub methods: Vec<SleepMethod>,
    /// How long; each is measured in turn.
    #[serde(rename = "periods_ns")]
    pub periods: Vec<Nanos>,
    /// Periods per series, those that are lost included.
    pub count: u64,
    /// What is done about a period that is already over.
    pub overrun: Overrun,
    /// One thread that changes its CPU each period, in turn, rather than one thread for each CPU.
    pub migrate: bool,
}

/// The longest period of a busy wait: a longer one would be throttled by the kernel, or taken for one that never ends.
pub const BUSY_MAX: Nanos = Nanos::from_millis(400);

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

/// See [`Probe::Gtod`]. One series a clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gtod {
    /// Which clocks.
    pub clocks: Vec<ReadClock>,
    /// Pairs of reads per clock.
    pub count: u64,
}

/// A clock that is read in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadClock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`.
    Raw,
    /// `CLOCK_REALTIME`.
    Realtime,
    /// `CLOCK_MONOTONIC_COARSE`.
    Coarse,
    /// `CLOCK_BOOTTIME`.
    Boottime,
    /// The time-stamp counter, converted to ns.
    Tsc,
}

/// See [`Probe::Async`]. One series for each mechanism and placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Async {
    /// How the event is handed over; each is measured in turn.
    pub mechanisms: Vec<Mechanism>,
    /// Where the two threads run; each is measured in turn.
    pub placements: Vec<Placement>,
    /// From event to event.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Events per series.
    pub count: u64,
}

/// How one thread tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Mutex and condition variable of the C library.
    Condvar,
    /// A bare futex.
    Futex,
    /// An eventfd.
    Eventfd,
    /// A pipe.
    Pipe,
    /// `sem_post`, `sem_wait`.
    PosixSemaphore,
    /// `semop`.
    SysvSemaphore,
    /// `mq_send`, `mq_receive`.
    PosixQueue,
    /// `msgsnd`, `msgrcv`.
    SysvQueue,
    /// A signal and its handler.
    Signal,
    /// A signal taken by `sigwaitinfo`.
    Sigwait,
}

/// Where two threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Both on the first CPU of the plan.
    Same,
    /// The waiting one on the first, the telling one on the second.
    Across,
}

/// See [`Probe::Rhealstone`]. One series for each component and, where both exist, interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rhealstone {
    /// Which components; each is measured in turn.
    pub components: Vec<Component>,
    /// Whose semaphores and queues.
    pub interfaces: Vec<Interface>,
    /// Repetitions per series.
    pub count: u64,
}

/// A component of the Rhealstone benchmark (Kar 1989, 1990).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// Between two tasks of one priority.
    TaskSwitch,
    /// To a task of higher priority.
    Preemption,
    /// From interrupt to its handler's first instruction.
    InterruptLatency,
    /// From asking for a semaphore that a lower task holds to having it, less that task's own time.
    SemaphoreShuffle,
    /// To resolve that a high task waits for a resource of a low one that a middle one keeps from running.
    DeadlockBreaking,
    /// A message of non-zero length from task to task.
    MessagePassing,
}

/// Of which standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// System V, as in the 2001 paper.
    Sysv,
    /// POSIX.
    Posix,
}

/// See [`Probe::Rtc`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rtc {
    /// Interrupts a second: a power of two, 2 … 8192.
    pub rate_hz: u32,
    /// How many.
    pub count: u64,
    /// Measure a timerfd at that rate where there is no such clock.
    pub timerfd: bool,
}

/// See [`Probe::Noise`]. One series a CPU: the gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// How long it is busy.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// The shortest gap that counts.
    #[serde(rename = "threshold_ns")]
    pub threshold: Nanos,
}

/// See [`Probe::Toggle`]. Two series: the rising and the falling edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toggle {
    /// From rising edge to rising edge (2007 assessment, §2: 1 ms).
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// How long the line is high (2007 assessment, §2: 50 µs).
    #[serde(rename = "width_ns")]
    pub width: Nanos,
    /// Pulses.
    pub count: u64,
    /// How it sleeps up to an edge.
    pub method: SleepMethod,
    /// What is toggled.
    pub line: Line,
}

/// What a pulse is put on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// A variable: the pulse is seen by nobody but the probe.
    Memory,
    /// Data pin 7 of the parallel port at this I/O address.
    ParallelPort(u16),
    /// A line of a GPIO chip: device (`/dev/gpiochip0`) and offset.
    Gpio(String, u32),
}

/// See [`Probe::Inversion`]. One series for each mutex and length of the middle thread's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inversion {
    /// How long the middle thread works; each is measured in turn.
    #[serde(rename = "middle_ns")]
    pub middle: Vec<Nanos>,
    /// How long the low thread holds the mutex.
    #[serde(rename = "held_ns")]
    pub held: Nanos,
    /// Repetitions per series.
    pub count: u64,
}

/// See [`Probe::Ladder`]. One series a responder of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ladder {
    /// From trigger to trigger; must be what the module was loaded with.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Triggers.
    pub count: u64,
}

/// See [`Probe::Cyclictest`]. One series a method, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cyclictest {
    /// The methods, of those that both know.
    pub methods: Vec<SleepMethod>,
    /// Its interval.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Its loops.
    pub count: u64,
}
