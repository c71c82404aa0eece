// SPDX-License-Identifier: GPL-2.0-or-later
//! Judges whether a measurement can be trusted: it finds contradictions between the plan and the measurement, and
//! doubts about the machine. Pure: it takes the context before, the context after, and what the probe did.
//!
//! It judges by what the kernel reports at two moments. It cannot see an event between them that no counter counts. A
//! value that could not be read raises no doubt.

mod boot;
mod doubt;

pub use boot::boot;
pub use doubt::Doubt;

use crate::context::{Context, cpu_list, keys};
use crate::x86_64::{COUNTER, MACHINES};
use rt::Policy;
use sample::{Clock, Nanos};

/// `/proc/stat` counts in ticks of USER_HZ: 100 a second on every architecture that the kernel still runs on but alpha.
const TICK: Nanos = Nanos(10_000_000);
/// A sibling that is busy for a smaller share of the time does only the housekeeping of an idle machine.
const SIBLING_BUSY_PERCENT: u64 = 5;
/// A sibling with fewer ticks than this has too few for a percentage.
const SIBLING_TICKS_MIN: u64 = 20;
/// The kernel reports averages over the last tick, which vary by a few percent without any change of the frequency
/// (arch/x86/kernel/cpu/aperfmperf.c). Real changes come in steps of 100 MHz.
const FREQUENCY_PERCENT: i64 = 5;
/// Intel's processors take up to 10 µs to leave C1E. The next deeper states take 33 µs and more
/// (drivers/idle/intel_idle.c).
const SHALLOW: Nanos = Nanos(10_000);

/// The measurement, as far as its validity depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The CPUs that were to be measured, rising.
    pub cpus: Vec<u32>,
    /// The CPUs on which a measuring thread was seen running, rising.
    pub used: Vec<u32>,
    /// How the measuring threads were scheduled.
    pub policy: Policy,
    /// Whether a measuring thread is busy for whole periods. The kernel may throttle such a thread.
    pub spins: bool,
    /// Whether the probe itself kept the CPUs out of deep idle states while it measured.
    pub pm_qos: bool,
    /// The clock of the samples. Virtual time knows no speed of the processor, no idle states and no stolen time.
    pub clock: Clock,
}

/// Every doubt about the measurement, the contradictions first.
pub fn check(before: &Context, after: &Context, measured: &Measured) -> Vec<Doubt> {
    let seen = Seen { before, after, measured };
    let mut doubts = seen.placement();
    doubts.extend(boot(&boot::judged_words(before), before));
    doubts.extend(seen.isolation());
    doubts.extend(seen.kernel());
    doubts.extend(seen.rivals());
    if measured.clock != Clock::Virtual {
        doubts.extend(seen.clocksource());
        for cpu in &measured.cpus {
            doubts.extend(seen.siblings(*cpu));
            doubts.extend(seen.stolen(*cpu));
            doubts.extend(seen.heat(*cpu));
            doubts.extend(seen.frequency(*cpu));
        }
        doubts.extend(seen.governors());
        doubts.extend(seen.idle_states());
    }
    doubts
}

struct Seen<'a> {
    before: &'a Context,
    after: &'a Context,
    measured: &'a Measured,
}

impl Seen<'_> {
    /// The measured CPUs that are not in `list`. If the list is unknown, no CPU is outside.
    fn outside(&self, list: Option<Vec<u32>>) -> Vec<u32> {
        let Some(list) = list else { return Vec::new() };
        self.measured.cpus.iter().copied().filter(|c| !list.contains(c)).collect()
    }

    fn placement(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        // A CPU may have gone while the probe measured, and a cpuset may have shrunk.
        let mut either = |key, doubt: fn(Vec<u32>) -> Doubt| {
            let mut cpus = self.outside(self.before.cpus(key));
            cpus.extend(self.outside(self.after.cpus(key)));
            cpus.sort_unstable();
            cpus.dedup();
            if !cpus.is_empty() {
                doubts.push(doubt(cpus));
            }
        };
        either(keys::CPUS_ONLINE, |cpus| Doubt::CpuOffline { cpus });
        either(keys::CPUS_ALLOWED, |cpus| Doubt::CpuNotAllowed { cpus });
        let Measured { cpus: asked, used, .. } = self.measured;
        let unused = self.outside(Some(used.clone()));
        if !unused.is_empty() {
            doubts.push(Doubt::CpuNotUsed { cpus: unused });
        }
        let strayed: Vec<u32> = used.iter().copied().filter(|c| !asked.contains(c)).collect();
        if !strayed.is_empty() {
            doubts.push(Doubt::CpuNotAsked { cpus: strayed });
        }
        doubts
    }

    fn isolation(&self) -> Vec<Doubt> {
        let mut isolated = self.before.cpus(keys::CPUS_ISOLATED).unwrap_or_default();
        isolated.extend(self.before.cpus(keys::CPUS_ISOLATED_BY_CPUSET).unwrap_or_default());
        isolated.sort_unstable();
        isolated.dedup();
        if isolated.is_empty() {
            return Vec::new();
        }
        if self.measured.cpus.iter().all(|c| !isolated.contains(c)) {
            let cpus = self.measured.cpus.clone();
            return vec![Doubt::MeasuredNotIsolated { cpus, isolated }];
        }
        let irqs: Vec<String> = interrupts(self.after)
            .filter(|(_, cpus)| {
                cpus.iter().any(|c| isolated.contains(c) && self.measured.cpus.contains(c))
            })
            .map(|(irq, _)| irq.to_owned())
            .collect();
        if irqs.is_empty() { Vec::new() } else { vec![Doubt::IrqOnIsolated { irqs }] }
    }

    fn kernel(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if let Some(options) = self.before.get(keys::DEBUG_OPTIONS).filter(|o| *o != "none") {
            let options = options.split_whitespace().map(str::to_owned).collect();
            doubts.push(Doubt::DebugKernel { options });
        }
        let said = |context: &Context| context.get(keys::RT_THROTTLED).map(|t| t == "true");
        if said(self.before) == Some(false) && said(self.after) == Some(true) {
            doubts.push(Doubt::RtThrottled);
        } else if self.may_be_throttled() {
            let us = |key| self.before.number(key).and_then(|us| u64::try_from(us).ok());
            let pair = us(keys::RT_RUNTIME_US).zip(us(keys::RT_PERIOD_US)).filter(|(r, p)| r < p);
            let ns = |us: u64| Nanos(us.saturating_mul(1000));
            doubts.extend(pair.map(|(r, p)| Doubt::RtThrottling { runtime: ns(r), period: ns(p) }));
        }
        doubts
    }

    fn may_be_throttled(&self) -> bool {
        self.measured.spins
            && matches!(self.measured.policy, Policy::Fifo(_) | Policy::RoundRobin(_))
    }

    fn rivals(&self) -> Option<Doubt> {
        let own = priority(&self.measured.policy);
        // The tasks that existed before or after measuring. Both lists begin with the highest priority.
        let above = |context: &Context| -> Vec<String> {
            let tasks = context.get(keys::RT_TASKS_TOP).unwrap_or_default().split("; ");
            tasks.filter(|t| task_priority(t).is_some_and(|p| p >= own)).map(Into::into).collect()
        };
        let mut tasks = above(self.before);
        tasks.extend(above(self.after));
        tasks.sort_unstable();
        tasks.dedup();
        (!tasks.is_empty()).then_some(Doubt::RealTimeRivals { tasks })
    }

    fn clocksource(&self) -> Option<Doubt> {
        let has_counter = self.after.get(keys::ARCHITECTURE).is_some_and(|a| MACHINES.contains(&a));
        let is_real = self.after.get(keys::VIRTUALISATION) == Some("none");
        let clocksource = self.after.get(keys::CLOCKSOURCE).filter(|c| !c.starts_with(COUNTER))?;
        (has_counter && is_real).then(|| Doubt::Clocksource { clocksource: clocksource.into() })
    }

    /// How far a CPU's counter moved during the measurement. `None` if the counter was not read twice.
    fn moved(&self, key: &str, cpu: u32) -> Option<u64> {
        let counted = |context: &Context| context.number_of_cpu(key, cpu);
        u64::try_from(counted(self.after)?.checked_sub(counted(self.before)?)?).ok()
    }

    fn siblings(&self, cpu: u32) -> Vec<Doubt> {
        let doubt = |sibling: u32| {
            let busy = self.moved(keys::BUSY_TICKS, sibling)?;
            let all = busy.checked_add(self.moved(keys::IDLE_TICKS, sibling)?)?;
            let percent = busy.checked_mul(100)?.checked_div(all)?;
            (all >= SIBLING_TICKS_MIN && percent >= SIBLING_BUSY_PERCENT)
                .then_some(Doubt::SiblingBusy { cpu, sibling, percent })
        };
        self.before.siblings(cpu).into_iter().filter_map(doubt).collect()
    }

    fn stolen(&self, cpu: u32) -> Option<Doubt> {
        let ticks = self.moved(keys::STEAL_TICKS, cpu).filter(|ticks| *ticks > 0)?;
        Some(Doubt::Stolen { cpu, stolen: Nanos(ticks.saturating_mul(TICK.0)) })
    }

    fn heat(&self, cpu: u32) -> Option<Doubt> {
        let core = self.moved(keys::CORE_THROTTLES, cpu).unwrap_or(0);
        let package = self.moved(keys::PACKAGE_THROTTLES, cpu).unwrap_or(0);
        (core > 0 || package > 0).then_some(Doubt::ThermallyThrottled { cpu, core, package })
    }

    fn frequency(&self, cpu: u32) -> Option<Doubt> {
        let before_khz = self.before.number_of_cpu(keys::FREQUENCY_KHZ, cpu)?;
        let after_khz = self.after.number_of_cpu(keys::FREQUENCY_KHZ, cpu)?;
        let apart = before_khz.abs_diff(after_khz);
        let allowed = u64::try_from(before_khz.saturating_mul(FREQUENCY_PERCENT) / 100).ok()?;
        (apart > allowed).then_some(Doubt::FrequencyChanged { cpu, before_khz, after_khz })
    }

    /// One doubt for each governor that may lower the frequency of a measured CPU.
    fn governors(&self) -> Vec<Doubt> {
        let limit = |key, cpu| self.after.number_of_cpu(key, cpu);
        let is_fixed = |cpu| {
            let low = limit(keys::FREQUENCY_MIN_KHZ, cpu);
            low.is_some() && low == limit(keys::FREQUENCY_MAX_KHZ, cpu)
        };
        let of = |cpu| self.after.of_cpu(keys::GOVERNOR, cpu).filter(|g| *g != "performance");
        let mut doubts: Vec<Doubt> = Vec::new();
        for cpu in self.measured.cpus.iter().copied().filter(|c| !is_fixed(*c)) {
            let Some(name) = of(cpu) else { continue };
            let known = doubts.iter_mut().find_map(|d| match d {
                Doubt::Governor { governor, cpus } if governor == name => Some(cpus),
                _ => None,
            });
            match known {
                Some(cpus) => cpus.push(cpu),
                None => doubts.push(Doubt::Governor { governor: name.into(), cpus: vec![cpu] }),
            }
        }
        doubts
    }

    /// A doubt about the deepest idle state that a measured CPU may have entered.
    fn idle_states(&self) -> Option<Doubt> {
        if self.measured.pm_qos {
            return None;
        }
        let allowed = self.before.number(keys::CPU_DMA_LATENCY_US).unwrap_or(i64::MAX);
        let states = self.measured.cpus.iter().flat_map(|cpu| {
            let states = self.before.of_cpu(keys::IDLE_STATES, *cpu).unwrap_or_default();
            states.split_whitespace().filter_map(|s| s.rsplit_once(':'))
        });
        let latencies = states.filter_map(|(name, us)| Some((us.parse::<u32>().ok()?, name)));
        let (us, state) = latencies.filter(|(us, _)| i64::from(*us) <= allowed).max()?;
        let exit_latency = Nanos(u64::from(us) * 1000);
        (exit_latency > SHALLOW).then(|| Doubt::DeepIdle { state: state.into(), exit_latency })
    }
}

/// The interrupts in the context's list, each with its CPUs.
fn interrupts(context: &Context) -> impl Iterator<Item = (&str, Vec<u32>)> {
    let listed = context.get(keys::IRQS_ON_MEASURED).unwrap_or_default().split("; ");
    listed.filter_map(|irq| Some((irq, cpu_list(irq.rsplit_once('@')?.1)?)))
}

/// All policies on one scale: an ordinary task is below every real-time task, and a deadline is above.
fn priority(policy: &Policy) -> u8 {
    match policy {
        Policy::Other(_) => 0,
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => *priority,
        Policy::Deadline { .. } => 100,
    }
}

/// The place on the same scale for a task of the context's list.
fn task_priority(task: &str) -> Option<u8> {
    match task.rsplit_once(' ')?.1.rsplit_once(':') {
        Some((_, priority)) => priority.parse().ok(),
        None => Some(100),
    }
}

#[cfg(test)]
mod tests;
