// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `noise`: for how long something takes the CPU away from a busy task (the question of `hwlat_detector` and
//! `oslat`).
//!
//! Each measured CPU reads its clock in a loop and does nothing else. If two readings are further apart than the
//! threshold, something else ran: an interrupt, another task, firmware (SMI), the hypervisor. The gap is the sample.
//! The probe does not see what ran. Beside the samples it reports the CPU's interrupts and its stolen time, as the
//! kernel counted them meanwhile.

use crate::Output;
use crate::definition::{Definition, Key, Kind, Measure, Sampled};
use crate::plan::Plan;
use crate::report::{Report, RunError};
use crate::run::check_time;
use crate::series::per_cpu;
use crate::threads::measuring;
use crate::x86_64::tsc;
use rt::Usage;
use sample::{Loss, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of readings from which the probe learns how long one turn of the loop takes.
const READINGS: usize = 1001;
/// The number of gaps for which there is room. Nobody knows in advance how many come.
const GAPS: u64 = 1 << 16;

pub(crate) const DEFINITION: Definition = Definition {
    name: "noise",
    about: "How long interrupts, firmware or the host take the CPU away from a busy task",
    keys: &[
        Key {
            name: "duration",
            kind: Kind::Time(Nanos::from_millis(1)),
            default: "10s",
            help: "How long the probe is busy.",
        },
        Key {
            name: "threshold",
            kind: Kind::Time(Nanos(100)),
            default: "1us",
            help: "The shortest gap between two readings of the clock that counts.",
        },
    ],
    examples: [
        "onset measure noise --cpus 0-3 --duration 1min",
        "onset measure noise --threshold 500ns",
    ],
};

/// The probe's part of a plan: one series of gaps for each CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// How long the probe keeps each CPU busy.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// The shortest gap that counts.
    #[serde(rename = "threshold_ns")]
    pub threshold: Nanos,
}

impl Measure for Noise {
    fn series(&self, plan: &Plan) -> Vec<String> {
        per_cpu("noise", &plan.cpus)
    }

    fn threads(&self, plan: &Plan) -> usize {
        plan.cpus.len()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::Other(
            "its samples are gaps in a task that never waits; take periodic, or look at `onset windows` of this run, which shows what the kernel did",
        )
    }

    fn duration(&self) -> Nanos {
        self.duration
    }

    fn events(&self) -> u64 {
        GAPS
    }

    fn spins(&self) -> bool {
        true
    }

    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        check_time("duration_ns", self.duration)?;
        let cpus: Vec<_> = plan.cpus.iter().copied().map(Some).collect();
        let counted = || plan.cpus.iter().map(|cpu| Counted::read(*cpu)).collect::<Vec<_>>();
        let before = counted();
        let lost = measuring(plan.policy, &cpus, outputs, |index, output| {
            measure(self, Gaps { series: index as u16, output, stop, lost: Nanos(0), gaps: 0 })
        })?;
        let mut report = Report::default();
        for (((cpu, lost), before), after) in plan.cpus.iter().zip(lost).zip(before).zip(counted())
        {
            report.add(format!("lost_ns_cpu{cpu}"), lost.time.0);
            report.add(format!("gaps_cpu{cpu}"), lost.gaps);
            report.largest("overhead_ns", lost.overhead.0);
            report.add("page_faults", lost.faults);
            after.enter(&before, *cpu, &mut report);
        }
        Ok(report)
    }
}

struct Lost {
    time: Nanos,
    gaps: u64,
    overhead: Nanos,
    faults: u64,
}

/// Measures by the time-stamp counter if it is reliable. Reading it costs half as much as reading the kernel's clock.
fn measure(noise: &Noise, gaps: Gaps<'_>) -> Result<Lost, RunError> {
    if tsc::is_invariant() {
        let rate = tsc::Rate::measured()?;
        return watch(noise, gaps, tsc::ticks, |t| rate.nanos(t), |time| rate.ticks(time));
    }
    watch(noise, gaps, || rt::now().ns(), Nanos, |time| time.0)
}

/// Measures with a clock that is `read` in a unit of its own. The loop works in this unit and converts only the gaps.
fn watch(
    noise: &Noise,
    mut gaps: Gaps<'_>,
    read: impl Fn() -> u64,
    nanos: impl Fn(u64) -> Nanos,
    ticks: impl Fn(Nanos) -> u64,
) -> Result<Lost, RunError> {
    let overhead = nanos(turn(&read));
    if noise.threshold < overhead * 2 {
        let wrong = format!(
            "{}; the loop itself takes {overhead} for each turn, so give a threshold of at least twice that",
            noise.threshold
        );
        return Err(RunError::Plan { part: "threshold_ns", wrong });
    }
    let before = Usage::of_thread();
    gaps.find(ticks(noise.threshold), ticks(noise.duration), read, nanos);
    let faults = Usage::of_thread().since(&before).page_faults();
    Ok(Lost { time: gaps.lost, gaps: gaps.gaps, overhead, faults })
}

/// The median time between two readings.
fn turn(read: impl Fn() -> u64) -> u64 {
    let mut turns = [0; READINGS];
    let mut last = read();
    for turn in &mut turns {
        let now = read();
        *turn = now.saturating_sub(last);
        last = now;
    }
    *turns.select_nth_unstable(READINGS / 2).1
}

/// The search for gaps on one CPU.
struct Gaps<'a> {
    series: u16,
    output: &'a mut Output,
    stop: &'a AtomicBool,
    lost: Nanos,
    gaps: u64,
}

impl Gaps<'_> {
    #[inline]
    fn find(
        &mut self,
        threshold: u64,
        duration: u64,
        read: impl Fn() -> u64,
        nanos: impl Fn(u64) -> Nanos,
    ) {
        let start = read();
        let mut last = start;
        while last.saturating_sub(start) < duration && !self.stop.load(Ordering::Relaxed) {
            let now = read();
            match now.checked_sub(last) {
                Some(gap) if gap < threshold => last = now,
                Some(gap) => {
                    let gap = nanos(gap);
                    self.output.sample(
                        self.series,
                        self.gaps,
                        nanos(last.saturating_sub(start)),
                        gap,
                    );
                    self.gaps += 1;
                    self.lost = self.lost.saturating_add(gap);
                    // The time for reporting the gap is not the machine's fault.
                    last = read().max(now);
                }
                // Goes on from the clock's present value: otherwise the step back would show as a gap later.
                None => {
                    self.output.loss(self.series, Loss::Tainted, 1);
                    last = now;
                }
            }
        }
    }
}

/// The kernel's counts for one CPU. A count that cannot be read is absent.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    interrupts: BTreeMap<String, u64>,
    steal: Option<Nanos>,
}

impl Counted {
    fn read(cpu: u32) -> Counted {
        let text = |file| read_to_string(file).unwrap_or_default();
        // SAFETY: the call only asks for a number.
        let hz = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(0);
        Counted {
            interrupts: interrupts(&text("/proc/interrupts"), cpu),
            steal: steal(&text("/proc/stat"), cpu, hz),
        }
    }

    fn enter(&self, before: &Counted, cpu: u32, report: &mut Report) {
        for (name, count) in &self.interrupts {
            let came = count.saturating_sub(before.interrupts.get(name).copied().unwrap_or(0));
            if came > 0 {
                report.add(format!("interrupts_cpu{cpu}_{name}"), came);
            }
        }
        if let (Some(steal), Some(before)) = (self.steal, before.steal) {
            report.add(format!("steal_ns_cpu{cpu}"), steal.saturating_sub(before).0);
        }
    }
}

/// A CPU's column of /proc/interrupts, by the number or the short name of each interrupt.
fn interrupts(text: &str, cpu: u32) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let head = format!("CPU{cpu}");
    let column = lines.next().unwrap_or("").split_whitespace().position(|name| name == head);
    let Some(column) = column else { return BTreeMap::new() };
    lines
        .filter_map(|line| {
            let (name, counts) = line.split_once(':')?;
            Some((name.trim().to_owned(), counts.split_whitespace().nth(column)?.parse().ok()?))
        })
        .collect()
}

/// The stolen time of a CPU (proc_stat(5): the eighth number). The kernel counts it in units of 1/`hz` s.
fn steal(text: &str, cpu: u32, hz: u64) -> Option<Nanos> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    let ticks: u64 = line.split_whitespace().nth(8)?.parse().ok()?;
    Some(Nanos(ticks.saturating_mul(1_000_000_000u64.checked_div(hz)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::tests::output;
    use std::cell::Cell;

    #[test]
    fn the_kernels_counts_are_read_from_the_cpus_own_column() {
        let text = "           CPU0       CPU10\n  0:         46          3   IO-APIC   2-edge\n\
                    LOC:    1000       2000   Local timer interrupts\nERR:          0\n";
        let of = |cpu| interrupts(text, cpu);
        assert_eq!(of(10), BTreeMap::from([("0".into(), 3), ("LOC".into(), 2_000)]));
        assert_eq!(of(0).get("LOC"), Some(&1_000));
        assert_eq!(of(1), BTreeMap::new());
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal(stat, 1, 100), Some(Nanos(80_000_000)));
        assert_eq!(steal(stat, 0, 100), None);
    }

    #[test]
    fn only_what_rose_is_reported() {
        let counted = |loc, steal| Counted {
            interrupts: BTreeMap::from([("LOC".into(), loc), ("NMI".into(), 4)]),
            steal: Some(Nanos(steal)),
        };
        let mut report = Report::default();
        counted(12, 30).enter(&counted(2, 10), 3, &mut report);
        let want = [("interrupts_cpu3_LOC", 10), ("steal_ns_cpu3", 20)];
        assert_eq!(report.counters, want.map(|(name, n)| (name.to_owned(), n)).into());
    }

    #[test]
    fn gaps_are_found_to_the_nanosecond_and_a_step_back_is_taint_and_no_gap() {
        // Each reading takes 20, except the tenth and the twentieth.
        let (time, readings) = (Cell::new(1_000u64), Cell::new(0));
        let read = || {
            readings.set(readings.get() + 1);
            time.set(match readings.get() {
                10 => time.get() + 5_000,
                20 => time.get() - 300,
                _ => time.get() + 20,
            });
            time.get()
        };
        let (mut output, stop) = (output(), AtomicBool::new(false));
        let mut gaps =
            Gaps { series: 0, output: &mut output, stop: &stop, lost: Nanos(0), gaps: 0 };
        gaps.find(100, 10_000, read, Nanos);
        assert_eq!((gaps.gaps, gaps.lost), (1, Nanos(5_000)));
    }
}
