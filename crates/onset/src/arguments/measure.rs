// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure …`. An option is a key of the experiment that is made of it (docs/experiments.md), which checks
//! the values; here only their number and kind is known.

use super::Outcome;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The probes.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// How late a sleeping task runs.
    Periodic {
        /// How it sleeps: nanosleep, clock_nanosleep, timerfd, posix_timer, itimer, deadline, precise, busy.
        #[arg(long = "method", value_name = "METHOD", value_delimiter = ',')]
        methods: Vec<String>,
        /// How long, as 1ms; several are measured in turn.
        #[arg(
            long = "period",
            value_name = "TIME",
            value_delimiter = ',',
            allow_hyphen_values = true
        )]
        periods: Vec<String>,
        /// Periods a series.
        #[arg(long)]
        count: Option<u64>,
        /// What is done about periods that passed while the task was late: skip, catch_up, stop.
        #[arg(long)]
        overrun: Option<String>,
        /// One thread that goes from CPU to CPU rather than one for each.
        #[arg(long)]
        migrate: bool,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// How long reading a clock takes, and whether it goes backwards.
    Gtod {
        /// Which: monotonic, raw, realtime, coarse, boottime, tsc.
        #[arg(long = "clock", value_name = "CLOCK", value_delimiter = ',')]
        clocks: Vec<String>,
        /// Pairs of reads a clock.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// How late a waiting task runs after another gave it an event.
    Async {
        /// How: condvar, futex, eventfd, pipe, posix_semaphore, sysv_semaphore, posix_queue, sysv_queue, signal, sigwait.
        #[arg(long = "mechanism", value_name = "MECHANISM", value_delimiter = ',')]
        mechanisms: Vec<String>,
        /// Where the tasks run: same, across (CPUs).
        #[arg(long = "placement", value_name = "PLACEMENT", value_delimiter = ',')]
        placements: Vec<String>,
        /// From event to event, as 1ms.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        period: Option<String>,
        /// Events a series.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// The six components of the Rhealstone benchmark.
    Rhealstone {
        /// Which: task_switch, preemption, interrupt_latency, semaphore_shuffle, deadlock_breaking, message_passing.
        #[arg(long = "component", value_name = "COMPONENT", value_delimiter = ',')]
        components: Vec<String>,
        /// Whose semaphores and queues: sysv, posix.
        #[arg(long = "interface", value_name = "INTERFACE", value_delimiter = ',')]
        interfaces: Vec<String>,
        /// Repetitions a series.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// The periodic interrupt of the real-time clock.
    Rtc {
        /// Interrupts a second, a power of two.
        #[arg(long = "rate", value_name = "HZ")]
        rate_hz: Option<u64>,
        /// Interrupts.
        #[arg(long)]
        count: Option<u64>,
        /// Measure a timerfd at that rate where there is no such clock.
        #[arg(long)]
        timerfd: bool,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// What takes a busy CPU away: interrupts, firmware, the host.
    Noise {
        /// How long.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        duration: Option<String>,
        /// The shortest gap that counts.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        threshold: Option<String>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// How exactly a pulse is held.
    Toggle {
        /// From pulse to pulse.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        period: Option<String>,
        /// How long the line is high.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        width: Option<String>,
        /// Pulses.
        #[arg(long)]
        count: Option<u64>,
        /// How it sleeps up to an edge, as for periodic.
        #[arg(long)]
        method: Option<String>,
        /// What is toggled: memory, parport:ADDRESS, gpio:CHIP:LINE.
        #[arg(long)]
        line: Option<String>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// Priority inversion, unbounded and bounded.
    Inversion {
        /// How long the middle thread works; several are measured in turn.
        #[arg(long, value_name = "TIME", value_delimiter = ',', allow_hyphen_values = true)]
        middle: Vec<String>,
        /// How long the low thread holds the mutex.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        held: Option<String>,
        /// Repetitions a series.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// The driver's responders, triggered by the driver's own timer.
    Ladder {
        /// From trigger to trigger, as the module was told.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        period: Option<String>,
        /// Triggers.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
    /// Debian's cyclictest, run and read by us.
    Cyclictest {
        /// How it sleeps: clock_nanosleep, nanosleep, posix_timer.
        #[arg(long = "method", value_name = "METHOD", value_delimiter = ',')]
        methods: Vec<String>,
        /// Its interval.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        period: Option<String>,
        /// Its loops.
        #[arg(long)]
        count: Option<u64>,
        /// How it is measured.
        #[command(flatten)]
        how: How,
    },
}

/// What is the same for all probes.
#[derive(Debug, Args)]
pub struct How {
    /// Scheduling of the measuring tasks: fifo:90, rr:50, deadline:RUNTIME,DEADLINE,PERIOD, other.
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// CPUs that are measured, as 0-1,3.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Background work: idle, disk, net, fork, fs, compile, ipc, memory, mixed; several are measured in turn.
    #[arg(long = "load", value_name = "LOAD", value_delimiter = ',')]
    pub loads: Vec<String>,
    /// Let the load run on the measured CPUs too.
    #[arg(long)]
    pub load_on_measured_cpus: bool,
    /// A directory of the disk that the disk load keeps busy; without it, it writes to memory.
    #[arg(long, value_name = "DIR")]
    pub load_disk: Option<PathBuf>,
    /// Time under load before measuring begins.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warm_up: Option<String>,
    /// Keep the CPUs out of deep idle states.
    #[arg(long)]
    pub pm_qos: bool,
    /// How late is too late: STATISTIC=TIME for every series, as max=100us, or SERIES.STATISTIC=TIME; may be repeated.
    #[arg(long = "limit", value_name = "LIMIT")]
    pub limits: Vec<String>,
    /// Measure in the rig instead: a kernel of the cache and words for its command line, as "6.12 preempt=none"; may
    /// be repeated.
    #[arg(long = "flavour", value_name = "FLAVOUR")]
    pub flavours: Vec<String>,
    /// What becomes of the runs.
    #[command(flatten)]
    pub outcome: Outcome,
}
