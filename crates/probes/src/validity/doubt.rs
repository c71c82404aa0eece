// SPDX-License-Identifier: GPL-2.0-or-later
//! The doubts, with the words that explain them.

use crate::context::show_cpu_list;
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// A doubt about a measurement on the target. In JSON an object with `code` and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Doubt {
    /// Measured CPUs were not running.
    CpuOffline {
        /// Which.
        cpus: Vec<u32>,
    },
    /// Measured CPUs were outside of the process's cpuset.
    CpuNotAllowed {
        /// Which.
        cpus: Vec<u32>,
    },
    /// No measuring thread ran on CPUs that were to be measured.
    CpuNotUsed {
        /// Which.
        cpus: Vec<u32>,
    },
    /// Measuring threads ran on CPUs that were not to be measured.
    CpuNotAsked {
        /// Which.
        cpus: Vec<u32>,
    },
    /// The kernel may be preempted otherwise than it was told at boot.
    PreemptionDiffers {
        /// The mode that was asked for.
        asked: String,
        /// The mode in force.
        found: String,
        /// Those that this kernel can be told; none where it cannot be told any, or does not say.
        modes: Vec<String>,
    },
    /// The kernel did not take words that it was given at boot.
    BootWordsRefused {
        /// Each with why.
        words: Vec<String>,
    },
    /// Some CPUs are isolated, and none of them was measured.
    MeasuredNotIsolated {
        /// Those that were measured.
        cpus: Vec<u32>,
        /// Those that are isolated.
        isolated: Vec<u32>,
    },
    /// Interrupts are delivered to a measured CPU that is isolated.
    IrqOnIsolated {
        /// As `NUMBER:NAME@CPUS`.
        irqs: Vec<String>,
    },
    /// The kernel was built to find its own defects.
    DebugKernel {
        /// The options that make it so.
        options: Vec<String>,
    },
    /// The kernel would keep a spinning real-time task from running, and did not say that it had.
    RtThrottling {
        /// How long real-time tasks may run in each period.
        #[serde(rename = "runtime_ns")]
        runtime: Nanos,
        /// That period.
        #[serde(rename = "period_ns")]
        period: Nanos,
    },
    /// The kernel kept real-time tasks from running while measuring.
    RtThrottled,
    /// Other real-time tasks that a measuring thread has to wait for.
    RealTimeRivals {
        /// As `PID NAME POLICY:PRIORITY`.
        tasks: Vec<String>,
    },
    /// The kernel does not keep time by the time-stamp counter.
    Clocksource {
        /// By what instead.
        clocksource: String,
    },
    /// The other thread of a measured CPU's core worked while measuring.
    SiblingBusy {
        /// Which was measured.
        cpu: u32,
        /// Which worked.
        sibling: u32,
        /// How much of the time.
        percent: u64,
    },
    /// The hypervisor gave a measured CPU's time to others.
    Stolen {
        /// Whose.
        cpu: u32,
        /// How much, in steps of 10 ms.
        #[serde(rename = "stolen_ns")]
        stolen: Nanos,
    },
    /// A measured CPU was slowed down by heat.
    ThermallyThrottled {
        /// Which.
        cpu: u32,
        /// How often its core was.
        core: u64,
        /// How often its package was.
        package: u64,
    },
    /// A measured CPU had another frequency after than before.
    FrequencyChanged {
        /// Which.
        cpu: u32,
        /// Before, kHz.
        before_khz: i64,
        /// After, kHz.
        after_khz: i64,
    },
    /// The governor may lower the frequency of measured CPUs.
    Governor {
        /// Which.
        governor: String,
        /// Whose.
        cpus: Vec<u32>,
    },
    /// Measured CPUs may sleep so deeply that waking up takes long.
    DeepIdle {
        /// The deepest state that is allowed.
        state: String,
        /// How long leaving it takes, by its driver.
        #[serde(rename = "exit_latency_ns")]
        exit_latency: Nanos,
    },
}

impl Doubt {
    /// The word that names the kind in files and JSON.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::CpuOffline { .. } => "cpu_offline",
            Self::CpuNotAllowed { .. } => "cpu_not_allowed",
            Self::CpuNotUsed { .. } => "cpu_not_used",
            Self::CpuNotAsked { .. } => "cpu_not_asked",
            Self::PreemptionDiffers { .. } => "preemption_differs",
            Self::BootWordsRefused { .. } => "boot_words_refused",
            Self::MeasuredNotIsolated { .. } => "measured_not_isolated",
            Self::IrqOnIsolated { .. } => "irq_on_isolated",
            Self::DebugKernel { .. } => "debug_kernel",
            Self::RtThrottling { .. } => "rt_throttling",
            Self::RtThrottled => "rt_throttled",
            Self::RealTimeRivals { .. } => "real_time_rivals",
            Self::Clocksource { .. } => "clocksource",
            Self::SiblingBusy { .. } => "sibling_busy",
            Self::Stolen { .. } => "stolen",
            Self::ThermallyThrottled { .. } => "thermally_throttled",
            Self::FrequencyChanged { .. } => "frequency_changed",
            Self::Governor { .. } => "governor",
            Self::DeepIdle { .. } => "deep_idle",
        }
    }

    /// Whether the numbers do not mean what they say: something else was measured than was asked for.
    pub const fn invalidates(&self) -> bool {
        matches!(
            self,
            Self::CpuOffline { .. }
                | Self::CpuNotAllowed { .. }
                | Self::CpuNotUsed { .. }
                | Self::CpuNotAsked { .. }
                | Self::PreemptionDiffers { .. }
                | Self::BootWordsRefused { .. }
                | Self::RtThrottled
        )
    }

    /// What was seen, with its numbers.
    pub fn symptom(&self) -> String {
        let list = |cpus: &[u32]| show_cpu_list(cpus);
        match self {
            Self::CpuOffline { cpus } => format!("measured CPUs were not online: {}", list(cpus)),
            Self::CpuNotAllowed { cpus } => {
                format!("measured CPUs were not allowed to this process: {}", list(cpus))
            }
            Self::CpuNotUsed { cpus } => {
                format!("nothing was measured on CPUs that were asked for: {}", list(cpus))
            }
            Self::CpuNotAsked { cpus } => {
                format!("measuring threads ran on CPUs that were not asked for: {}", list(cpus))
            }
            Self::PreemptionDiffers { asked, found, modes } => {
                let which = match modes.join(", ") {
                    modes if modes.is_empty() => String::new(),
                    modes => format!("; it can be told {modes}"),
                };
                format!("preempt={asked} was asked for, and the kernel runs {found}{which}")
            }
            Self::BootWordsRefused { words } => {
                format!(
                    "the kernel did not take words that it was booted with: {}",
                    words.join(", ")
                )
            }
            Self::MeasuredNotIsolated { cpus, isolated } => {
                format!("CPUs {} are isolated, but {} measured", list(isolated), list(cpus))
            }
            Self::IrqOnIsolated { irqs } => {
                format!("interrupts are delivered to isolated CPUs: {}", irqs.join("; "))
            }
            Self::DebugKernel { options } => {
                format!("the kernel has debugging options: {}", options.join(" "))
            }
            Self::RtThrottling { runtime, period } => format!(
                "real-time tasks may run {} of every {} µs, and this probe is always busy",
                runtime.0 / 1000,
                period.0 / 1000
            ),
            Self::RtThrottled => "the kernel kept real-time tasks from running".to_owned(),
            Self::RealTimeRivals { tasks } => {
                format!("tasks of the same or a higher priority: {}", tasks.join("; "))
            }
            Self::Clocksource { clocksource } => format!("the clock source is {clocksource}"),
            Self::SiblingBusy { cpu, sibling, percent } => {
                format!(
                    "CPU {sibling}, on the core of measured CPU {cpu}, was busy {percent} % of the time"
                )
            }
            Self::Stolen { cpu, stolen } => {
                format!("{} ms of CPU {cpu} went to others outside", stolen.0 / 1_000_000)
            }
            Self::ThermallyThrottled { cpu, core, package } => format!(
                "CPU {cpu} was slowed down by heat: its core {core} times, its package {package} times"
            ),
            Self::FrequencyChanged { cpu, before_khz, after_khz } => format!(
                "CPU {cpu} ran at {} MHz before and {} MHz after",
                before_khz / 1000,
                after_khz / 1000
            ),
            Self::Governor { governor, cpus } => {
                format!("the frequency governor of CPUs {} is {governor}", list(cpus))
            }
            Self::DeepIdle { state, exit_latency } => format!(
                "measured CPUs may sleep in state {state}, which takes {} µs to leave",
                exit_latency.0 / 1000
            ),
        }
    }

    /// What probably caused it.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::CpuOffline { .. } => "they were switched off, before or while measuring",
            Self::CpuNotAllowed { .. } => "a cpuset or a container keeps this process from them",
            Self::CpuNotUsed { .. } => {
                "the thread was moved by a cpuset, or ended before its first sample"
            }
            Self::CpuNotAsked { .. } => {
                "the affinity was changed from outside, or its CPU went offline"
            }
            Self::PreemptionDiffers { .. } => {
                "the word is misspelt, or this kernel does not have the mode: since Linux 7.0 none and voluntary are \
                 refused where lazy exists, before 6.13 only patched kernels have lazy, and some kernels have no choice; \
                 or it was changed while running"
            }
            Self::BootWordsRefused { .. } => {
                "they are misspelt, or this kernel does not have the parameter or does not take the value"
            }
            Self::MeasuredNotIsolated { .. } => "isolcpus= and --cpus name different CPUs",
            Self::IrqOnIsolated { .. } => {
                "irqaffinity= is missing or contradicts isolcpus=, or irqbalance moved them, or the kernel \
                 places them itself (managed interrupts)"
            }
            Self::DebugKernel { .. } => "a kernel made for finding defects",
            Self::RtThrottling { .. } => "sched_rt_runtime_us has a limit, as it has by default",
            Self::RtThrottled => "the probe or another real-time task used up sched_rt_runtime_us",
            Self::RealTimeRivals { .. } => "services with a real-time policy run beside the probe",
            Self::Clocksource { .. } => {
                "the kernel found the time-stamp counter unstable, or was told clocksource="
            }
            Self::SiblingBusy { .. } => {
                "the load or another process ran there; the two share one core's units and caches"
            }
            Self::Stolen { .. } => "this is a virtual machine, and its host was busy",
            Self::ThermallyThrottled { .. } => "too little cooling for this much work",
            Self::FrequencyChanged { .. } => {
                "the governor or the processor chose another one (turbo, power limit)"
            }
            Self::Governor { .. } => "the default of most distributions, which saves power",
            Self::DeepIdle { .. } => "nobody limits how long waking up may take (PM QoS)",
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::CpuOffline { .. } => {
                "write 1 to /sys/devices/system/cpu/cpuN/online, or measure others by --cpus"
            }
            Self::CpuNotAllowed { .. } => {
                "start it outside of the cpuset (/proc/self/cpuset), or measure others by --cpus"
            }
            Self::CpuNotUsed { .. } | Self::CpuNotAsked { .. } => {
                "repeat with nothing that changes cpusets or affinities beside it"
            }
            Self::PreemptionDiffers { .. } => {
                "ask for a mode that the kernel can be told, or for none: a flavour without preempt= runs the kernel's \
                 default"
            }
            Self::BootWordsRefused { .. } => {
                "correct or remove them; parameters of a module are written MODULE.PARAMETER=VALUE"
            }
            Self::MeasuredNotIsolated { .. } => "measure the isolated CPUs by --cpus",
            Self::IrqOnIsolated { .. } => {
                "boot with irqaffinity= naming the other CPUs and isolcpus=managed_irq,domain,…; stop \
                 irqbalance, or write to /proc/irq/NUMBER/smp_affinity_list"
            }
            Self::DebugKernel { .. } => "measure the kernel that will ship",
            Self::RtThrottling { .. } => {
                "write -1 to /proc/sys/kernel/sched_rt_runtime_us while measuring; since Linux 6.12 also 0 to \
                 /sys/kernel/debug/sched/fair_server/cpuN/runtime"
            }
            Self::RtThrottled => {
                "write -1 to /proc/sys/kernel/sched_rt_runtime_us while measuring, and repeat"
            }
            Self::RealTimeRivals { .. } => {
                "stop them, keep them on other CPUs, or raise the priority by --policy"
            }
            Self::Clocksource { .. } => {
                "read the kernel's log for why; boot with tsc=reliable where you know that it is"
            }
            Self::SiblingBusy { .. } => {
                "keep load and measured CPUs on different cores, or write off to /sys/devices/system/cpu/smt/control"
            }
            Self::Stolen { .. } => {
                "measure on a machine of its own, or give the guest dedicated CPUs"
            }
            Self::ThermallyThrottled { .. } => "let it cool down, lessen the load, and repeat",
            Self::FrequencyChanged { .. } | Self::Governor { .. } => {
                "choose the governor performance: cpupower frequency-set -g performance"
            }
            Self::DeepIdle { .. } => {
                "measure with PM QoS if the product will have it, or say that it will not"
            }
        }
    }
}
