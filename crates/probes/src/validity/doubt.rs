// SPDX-License-Identifier: GPL-2.0-or-later
//! The doubts about a measurement on the target, with the texts that explain each.

use crate::context::show_cpu_list;
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// A doubt about a measurement on the target. In JSON it is an object with `code` and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Doubt {
    /// Measured CPUs were not running. Invalidates.
    CpuOffline {
        /// The CPUs or the name.
        cpus: Vec<u32>,
    },
    /// Measured CPUs were outside of the process's cpuset. Invalidates.
    CpuNotAllowed {
        /// The CPUs or the name.
        cpus: Vec<u32>,
    },
    /// No measuring thread ran on CPUs that the plan names. Invalidates.
    CpuNotUsed {
        /// The CPUs or the name.
        cpus: Vec<u32>,
    },
    /// Measuring threads ran on CPUs that the plan does not name. Invalidates.
    CpuNotAsked {
        /// The CPUs or the name.
        cpus: Vec<u32>,
    },
    /// The kernel runs with another preemption mode than the one that the flavour asks for. Invalidates.
    PreemptionDiffers {
        /// The mode that the flavour asks for.
        asked: String,
        /// The mode that the kernel runs with.
        found: String,
        /// The modes that this kernel accepts. Empty if it accepts none, or does not say.
        modes: Vec<String>,
    },
    /// The kernel did not take some words of its command line. Invalidates.
    BootWordsRefused {
        /// The words, each with the reason.
        words: Vec<String>,
    },
    /// Some CPUs are isolated, and none of them was measured.
    MeasuredNotIsolated {
        /// The measured CPUs.
        cpus: Vec<u32>,
        /// The isolated CPUs.
        isolated: Vec<u32>,
    },
    /// Interrupts go to a measured CPU that is isolated.
    IrqOnIsolated {
        /// As `NUMBER:NAME@CPUS`.
        irqs: Vec<String>,
    },
    /// The kernel was built with options that find its own defects.
    DebugKernel {
        /// These options.
        options: Vec<String>,
    },
    /// The kernel would stop a real-time task that spins. It did not say that it had stopped one.
    RtThrottling {
        /// How long real-time tasks may run in each period.
        #[serde(rename = "runtime_ns")]
        runtime: Nanos,
        /// That period.
        #[serde(rename = "period_ns")]
        period: Nanos,
    },
    /// The kernel stopped real-time tasks while onset measured. Invalidates.
    RtThrottled,
    /// A measuring thread has to wait for other real-time tasks.
    RealTimeRivals {
        /// As `PID NAME POLICY:PRIORITY`.
        tasks: Vec<String>,
    },
    /// The clock of the kernel is not the time-stamp counter.
    Clocksource {
        /// The clock source of the kernel.
        clocksource: String,
    },
    /// Another CPU on the core of a measured CPU was busy while onset measured.
    SiblingBusy {
        /// The measured CPU.
        cpu: u32,
        /// The busy CPU.
        sibling: u32,
        /// For how much of the time it was busy.
        percent: u64,
    },
    /// The hypervisor gave time of a measured CPU to others.
    Stolen {
        /// The CPU or the CPUs.
        cpu: u32,
        /// How much, in steps of 10 ms.
        #[serde(rename = "stolen_ns")]
        stolen: Nanos,
    },
    /// A measured CPU was slowed down by heat.
    ThermallyThrottled {
        /// The CPUs or the name.
        cpu: u32,
        /// How often its core was.
        core: u64,
        /// How often its package was.
        package: u64,
    },
    /// A measured CPU had another frequency after the measurement than before it.
    FrequencyChanged {
        /// The CPUs or the name.
        cpu: u32,
        /// The frequency before, in kHz.
        before_khz: i64,
        /// The frequency after, in kHz.
        after_khz: i64,
    },
    /// The governor may lower the frequency of measured CPUs.
    Governor {
        /// The CPUs or the name.
        governor: String,
        /// The CPU or the CPUs.
        cpus: Vec<u32>,
    },
    /// Measured CPUs may sleep so deeply that waking up takes long.
    DeepIdle {
        /// The deepest state that is allowed.
        state: String,
        /// How long it takes to leave this state, as its driver says.
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

    /// Whether the numbers do not mean what they say, because the measurement was not the one that the plan asks for.
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

    /// The symptom: what onset saw, with numbers.
    pub fn symptom(&self) -> String {
        let list = |cpus: &[u32]| show_cpu_list(cpus);
        match self {
            Self::CpuOffline { cpus } => format!("measured CPUs were not online: {}", list(cpus)),
            Self::CpuNotAllowed { cpus } => {
                format!("this process may not run on these measured CPUs: {}", list(cpus))
            }
            Self::CpuNotUsed { cpus } => {
                format!("the probe measured nothing on these CPUs of its plan: {}", list(cpus))
            }
            Self::CpuNotAsked { cpus } => {
                format!("measuring threads ran on these CPUs outside of the plan: {}", list(cpus))
            }
            Self::PreemptionDiffers { asked, found, modes } => {
                let which = match modes.join(", ") {
                    modes if modes.is_empty() => String::new(),
                    modes => format!("; this kernel accepts {modes}"),
                };
                format!("the flavour asks for preempt={asked}, but the kernel runs {found}{which}")
            }
            Self::BootWordsRefused { words } => format!(
                "these words of the kernel's command line were not taken: {}",
                words.join(", ")
            ),
            Self::MeasuredNotIsolated { cpus, isolated } => {
                format!("CPUs {} are isolated, but {} were measured", list(isolated), list(cpus))
            }
            Self::IrqOnIsolated { irqs } => {
                format!("these interrupts go to isolated CPUs: {}", irqs.join("; "))
            }
            Self::DebugKernel { options } => {
                format!("the kernel has debugging options: {}", options.join(" "))
            }
            Self::RtThrottling { runtime, period } => format!(
                "the kernel lets real-time tasks run only {} of every {} µs, and this probe is always busy",
                runtime.as_micros(),
                period.as_micros()
            ),
            Self::RtThrottled => "the kernel stopped real-time tasks meanwhile".to_owned(),
            Self::RealTimeRivals { tasks } => {
                format!("other tasks have the same or a higher priority: {}", tasks.join("; "))
            }
            Self::Clocksource { clocksource } => format!("the clock source is {clocksource}"),
            Self::SiblingBusy { cpu, sibling, percent } => format!(
                "CPU {sibling} shares a core with the measured CPU {cpu}, and was busy {percent} % of the time"
            ),
            Self::Stolen { cpu, stolen } => {
                format!("the host gave {} ms of CPU {cpu} to others", stolen.as_millis())
            }
            Self::ThermallyThrottled { cpu, core, package } => format!(
                "heat slowed down CPU {cpu}: its core {core} times, its package {package} times"
            ),
            Self::FrequencyChanged { cpu, before_khz, after_khz } => format!(
                "CPU {cpu} ran at {} MHz before the measurement and at {} MHz after it",
                before_khz / 1000,
                after_khz / 1000
            ),
            Self::Governor { governor, cpus } => {
                format!("the frequency governor of CPUs {} is {governor}", list(cpus))
            }
            Self::DeepIdle { state, exit_latency } => format!(
                "measured CPUs may sleep in state {state}, which takes {} µs to leave",
                exit_latency.as_micros()
            ),
        }
    }

    /// The probable cause.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::CpuOffline { .. } => {
                "the CPUs were switched off, before the measurement or during it"
            }
            Self::CpuNotAllowed { .. } => {
                "a cpuset or a container keeps this process from these CPUs"
            }
            Self::CpuNotUsed { .. } => {
                "a cpuset moved the thread, or the thread ended before its first sample"
            }
            Self::CpuNotAsked { .. } => {
                "somebody changed the affinity of a thread, or the CPU of the thread went offline"
            }
            Self::PreemptionDiffers { .. } => {
                "the word is misspelt, or this kernel does not have the mode: since Linux 7.0 a kernel that has lazy \
                 refuses none and voluntary, before 6.13 only patched kernels have lazy, and some kernels have only one \
                 mode; or somebody changed the mode while the kernel ran"
            }
            Self::BootWordsRefused { .. } => {
                "the words are misspelt, or this kernel does not have the parameter or does not take the value"
            }
            Self::MeasuredNotIsolated { .. } => "isolcpus= and --cpus name different CPUs",
            Self::IrqOnIsolated { .. } => {
                "irqaffinity= is missing or contradicts isolcpus=, or irqbalance moved the interrupts, or the kernel \
                 places them itself (managed interrupts)"
            }
            Self::DebugKernel { .. } => "the kernel was built to find defects",
            Self::RtThrottling { .. } => "sched_rt_runtime_us sets a limit, as it does by default",
            Self::RtThrottled => "the probe or another real-time task used up sched_rt_runtime_us",
            Self::RealTimeRivals { .. } => {
                "services with a real-time policy run on the machine beside the probe"
            }
            Self::Clocksource { .. } => {
                "the kernel found the time-stamp counter unstable, or has clocksource= on its command line"
            }
            Self::SiblingBusy { .. } => {
                "the load or another process ran on that CPU; both CPUs share the units and caches of one core"
            }
            Self::Stolen { .. } => "this is a virtual machine, and its host was busy",
            Self::ThermallyThrottled { .. } => "the cooling is too weak for this much work",
            Self::FrequencyChanged { .. } => {
                "the governor or the processor chose another frequency (turbo, power limit)"
            }
            Self::Governor { .. } => {
                "this governor is the default of most distributions, and saves power"
            }
            Self::DeepIdle { .. } => {
                "no program limits how long a CPU may take to wake up (PM QoS)"
            }
        }
    }

    /// What to do next.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::CpuOffline { .. } => {
                "write 1 to /sys/devices/system/cpu/cpuN/online, or measure other CPUs by --cpus"
            }
            Self::CpuNotAllowed { .. } => {
                "start onset outside of the cpuset (/proc/self/cpuset), or measure other CPUs by --cpus"
            }
            Self::CpuNotUsed { .. } | Self::CpuNotAsked { .. } => {
                "repeat the run while nothing else changes cpusets or affinities"
            }
            Self::PreemptionDiffers { .. } => {
                "ask for a mode that the kernel accepts, or leave preempt= out of the flavour: then the kernel runs with its \
                 default mode"
            }
            Self::BootWordsRefused { .. } => {
                "correct or remove the words; write a parameter of a module as MODULE.PARAMETER=VALUE"
            }
            Self::MeasuredNotIsolated { .. } => "measure the isolated CPUs by --cpus",
            Self::IrqOnIsolated { .. } => {
                "boot with irqaffinity= and the other CPUs, and with isolcpus=managed_irq,domain,…; stop \
                 irqbalance, or write to /proc/irq/NUMBER/smp_affinity_list"
            }
            Self::DebugKernel { .. } => "measure the kernel that the product will have",
            Self::RtThrottling { .. } => {
                "write -1 to /proc/sys/kernel/sched_rt_runtime_us while you measure; since Linux 6.12 also write 0 to \
                 /sys/kernel/debug/sched/fair_server/cpuN/runtime"
            }
            Self::RtThrottled => {
                "write -1 to /proc/sys/kernel/sched_rt_runtime_us while you measure, and repeat the run"
            }
            Self::RealTimeRivals { .. } => {
                "stop these tasks, keep them on other CPUs, or give the probe a higher priority by --policy"
            }
            Self::Clocksource { .. } => {
                "read the reason in the kernel's log; boot with tsc=reliable if you know that the counter is reliable"
            }
            Self::SiblingBusy { .. } => {
                "keep the load and the measured CPUs on different cores, or write off to /sys/devices/system/cpu/smt/control"
            }
            Self::Stolen { .. } => {
                "measure on a machine without a hypervisor, or give the guest dedicated CPUs"
            }
            Self::ThermallyThrottled { .. } => {
                "let the machine cool down, reduce the load, and repeat the run"
            }
            Self::FrequencyChanged { .. } | Self::Governor { .. } => {
                "choose the governor performance: cpupower frequency-set -g performance"
            }
            Self::DeepIdle { .. } => {
                "measure with --pm-qos if the product will limit idle states too; else say beside the numbers that it will not"
            }
        }
    }
}
