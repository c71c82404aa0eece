// SPDX-License-Identifier: GPL-2.0-or-later
//! Probe `cyclictest`: runs Debian's cyclictest (package rt-tests) with the options of the method, and reads its output
//! line by line.
//!
//! With `--verbose` the measuring threads of cyclictest leave each latency in an array of 16,384 entries. Its main
//! thread prints this array every 10 ms (rt-tests 2.4, `print_stat`). So no latency is lost at periods of 1 µs or more,
//! unless the main thread cannot run for that long. Then later latencies stand in the place of lost ones, with the
//! numbers of these. `--json=-` has it say its maximum at the end: if none of the lines had that one, latencies are
//! lost.
//!
//! cyclictest counts loops, not periods. It leaves out the periods that passed while it was late (rt-tests 2.4,
//! `timerthread`: the next period is the first one to come; timer_getoverrun(2)), but for those of `--relative`, which
//! come later. The probe numbers the periods, as our own probe does, and counts those that passed as superseded: the
//! loop before them was later than each of them ([`passed`]). cyclictest does not say when its first loop began. The
//! probe takes the start of the program instead, which is some milliseconds earlier.

mod loops;

pub use loops::passed;

use crate::definition::{Definition, Key, Measure, Sampled, events, times, word};
use crate::ladder::aside;
use crate::plan::{Plan, SleepMethod};
use crate::run::check_count;
use crate::series::duration;
use crate::{Output, Report, RunError, RunningProgram, failure};
use loops::Loops;
use rt::{Policy, Usage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const PROGRAM: &str = "cyclictest";
/// The time between two looks at the memory of cyclictest, and the number of looks that is enough.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const LOOKS_MAX: u32 = 20;

pub(crate) const DEFINITION: Definition = Definition {
    name: "cyclictest",
    about: "How late a sleeping task runs, as Debian's cyclictest measures it",
    keys: &[
        Key::words::<SleepMethod>(
            "methods",
            "clock_nanosleep",
            "How the task sleeps: clock_nanosleep, nanosleep, posix_timer.",
        ),
        Key::period("The interval of cyclictest."),
        Key::count("Number of loops in each series."),
    ],
    examples: [
        "onset measure cyclictest --duration 30s",
        "onset measure cyclictest --period 200us --policy fifo:80 --cpus 1",
    ],
};

/// The probe's part of a plan: one series for each method, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cyclictest {
    /// The methods, of those that both this program and cyclictest have.
    pub methods: Vec<SleepMethod>,
    /// The interval of cyclictest.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// The number of loops of cyclictest.
    pub count: u64,
}

impl Measure for Cyclictest {
    /// The names of the series, such as `cyclictest-clock_nanosleep-1ms`.
    fn series(&self, _plan: &Plan) -> Vec<String> {
        let name =
            |method: &SleepMethod| format!("cyclictest-{}-{}", word(method), duration(self.period));
        self.methods.iter().map(name).collect()
    }

    fn sampled(&self, _series: &str) -> Sampled {
        Sampled::WakeUps
    }

    fn duration(&self) -> Nanos {
        times(self.period, self.count, self.methods.len())
    }

    fn events(&self) -> u64 {
        events(self.count, self.methods.len())
    }

    fn shortest_gap(&self) -> Option<Nanos> {
        Some(self.period)
    }

    fn programs(&self) -> &'static [&'static str] {
        &[PROGRAM]
    }

    /// Starts one thread without real-time priority. The thread reads what cyclictest writes.
    ///
    /// # Errors
    /// If cyclictest is not installed, lacks a method, interval or policy, or fails.
    fn run(
        &self,
        plan: &Plan,
        outputs: &mut [Output],
        stop: &AtomicBool,
    ) -> Result<Report, RunError> {
        let output = &mut outputs[0];
        check_count(self.count)?;
        let beside = beside(plan)?;
        let arguments = |method: &SleepMethod| arguments(plan, self, *method, &beside);
        let each: Vec<_> = self.methods.iter().map(arguments).collect::<Result<_, _>>()?;
        let (origin, mut report) = (rt::now(), Report::default());
        report.add("origin_ns", origin.ns());
        std::thread::scope(|threads| {
            let apart = threads.spawn(|| {
                // cyclictest inherits policy, CPUs and timer slack. It sets those of its measuring thread itself.
                aside()?;
                for (series, (arguments, method)) in (0..).zip(each.iter().zip(&self.methods)) {
                    let before = Usage::of_children();
                    let (mut running, stdout) = Running::start(arguments)?;
                    let mut loops = Loops::of(series, self, *method, origin);
                    if let Some(stdout) = stdout {
                        running.read(stdout, &mut loops, output, stop)?;
                    }
                    if !stop.load(Ordering::Relaxed) {
                        loops.end(output);
                    }
                    running.end(stop, &before, &mut report)?;
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                Ok(report)
            });
            apart.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The CPUs that are not measured, of those that this process may use.
fn beside(plan: &Plan) -> Result<Vec<String>, RunError> {
    let others = rt::allowed_cpus()?.into_iter().filter(|cpu| !plan.cpus.contains(cpu));
    Ok(others.map(|cpu| cpu.to_string()).collect())
}

/// The command line of cyclictest. Its main thread stays on the CPUs `beside`, if there are any.
fn arguments(
    plan: &Plan,
    probe: &Cyclictest,
    method: SleepMethod,
    beside: &[String],
) -> Result<Vec<String>, RunError> {
    let method: &[&str] = match method {
        SleepMethod::ClockNanosleep => &[],
        SleepMethod::Nanosleep => &["--relative"],
        SleepMethod::PosixTimer => &["--posix_timers"],
        // The manual page has interval timers (-s -x), but rt-tests 2.4 warns and sleeps by nanosleep(2) instead.
        SleepMethod::Itimer
        | SleepMethod::Timerfd
        | SleepMethod::Deadline
        | SleepMethod::Precise
        | SleepMethod::Busy => {
            return Err(failure::plan(
                "methods",
                "cyclictest has no such method; it has clock_nanosleep, nanosleep and posix_timer",
            ));
        }
    };
    let (name, priority) = match plan.policy {
        Policy::Fifo(priority) => ("fifo", priority),
        Policy::RoundRobin(priority) => ("rr", priority),
        Policy::Other(0) => ("other", 0),
        Policy::Other(_) | Policy::Deadline { .. } => {
            return Err(failure::plan(
                "policy",
                format!(
                    "cyclictest cannot run with {}; give it fifo:PRIORITY, rr:PRIORITY or other",
                    plan.policy
                ),
            ));
        }
    };
    if probe.period.0 == 0 || !probe.period.0.is_multiple_of(1_000) {
        return Err(failure::plan(
            "period_ns",
            format!(
                "{} ns: cyclictest's interval is a whole number of microseconds above 0",
                probe.period.0
            ),
        ));
    }
    let mut arguments: Vec<String> =
        ["--nsecs", "--verbose", "--json=-", "--mlockall", "--threads=1", "--distance=0"]
            .map(String::from)
            .to_vec();
    arguments.extend(method.iter().map(|option| option.to_string()));
    arguments.push(format!("--policy={name}"));
    arguments.push(format!("--priority={priority}"));
    arguments.push(format!("--interval={}", probe.period.as_micros()));
    arguments.push(format!("--loops={}", probe.count));
    arguments.extend(plan.cpus.first().map(|cpu| format!("--affinity={cpu}")));
    if !beside.is_empty() {
        // The main thread's printing keeps its CPU awake. With the main thread on the measured CPU the least latencies
        // were 7–13 µs. Nobody else finds less than 13 µs, and neither does cyclictest elsewhere.
        arguments.push(format!("--mainaffinity={}", beside.join(",")));
    }
    if !plan.pm_qos {
        // Without this option cyclictest holds /dev/cpu_dma_latency at 0, as this program does with `pm_qos`.
        arguments.push("--default-system".into());
    }
    Ok(arguments)
}

/// The value of `VmHWM` (proc_pid_status(5)).
fn memory_peak_kib(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The process of cyclictest.
struct Running {
    program: RunningProgram,
    complaints: Option<ChildStderr>,
    memory_peak_kib: u64,
    looks: u32,
}

impl Running {
    fn start(arguments: &[String]) -> Result<(Running, Option<ChildStdout>), RunError> {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let cpus = rt::allowed_cpus()?;
        let remedy = (PROGRAM, "on Debian: apt install rt-tests");
        let mut program = RunningProgram::start(&mut command, Policy::Other(0), &cpus, remedy)?;
        let (stdout, complaints) = program.pipes();
        Ok((Running { program, complaints, memory_peak_kib: 0, looks: 0 }, stdout))
    }

    fn read(
        &mut self,
        stdout: ChildStdout,
        loops: &mut Loops,
        output: &mut Output,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        let mut stdout = BufReader::with_capacity(1 << 16, stdout);
        let mut line = String::new();
        loop {
            line.clear();
            if stdout.buffer().is_empty() {
                self.wait_for(stdout.get_ref(), stop)?;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            match stdout.read_line(&mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => loops.take(&line, output),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failure::system("reading cyclictest")(e)),
            }
        }
    }

    /// Waits until the process has written something or ended. Meanwhile it looks at the process's memory and `stop`.
    fn wait_for(&mut self, stdout: &ChildStdout, stop: &AtomicBool) -> Result<(), RunError> {
        while !stop.load(Ordering::Relaxed) {
            match poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) => self.look_at_memory(),
                Err(Errno::INTR) => {}
                Err(e) => return Err(failure::system("poll")(e.into())),
                Ok(_) => break,
            }
        }
        Ok(())
    }

    /// Reads the peak memory so far, since an ended process cannot be asked. Locked memory reaches its full size early.
    fn look_at_memory(&mut self) {
        if self.looks == LOOKS_MAX {
            return;
        }
        self.looks += 1;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id()));
        let peak = status.ok().and_then(|text| memory_peak_kib(&text)).unwrap_or(0);
        self.memory_peak_kib = self.memory_peak_kib.max(peak);
    }

    /// Waits for the end of the process, and adds the resources that it used. `before` is what the children before it
    /// used.
    fn end(
        mut self,
        stop: &AtomicBool,
        before: &Usage,
        report: &mut Report,
    ) -> Result<(), RunError> {
        if stop.load(Ordering::Relaxed) {
            self.program.ask_to_end();
        }
        let mut complaint = String::new();
        if let Some(mut stderr) = self.complaints.take() {
            let _ = stderr.read_to_string(&mut complaint);
        }
        let status = self.program.wait().map_err(failure::system("waiting for cyclictest"))?;
        if !status.success() && !stop.load(Ordering::Relaxed) {
            return Err(failure::unavailable("result of cyclictest", complaint.trim()));
        }
        report.add("cpu_time_ns", Usage::of_children().since(before).cpu_time.0);
        // Not ru_maxrss: it begins with the memory that this process had when cyclictest began (Linux, exec_mmap()).
        report.largest("memory_peak_kib", self.memory_peak_kib);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probe;

    fn plan(policy: &str, method: SleepMethod, period: Nanos) -> (Plan, Cyclictest) {
        let probe = Cyclictest { methods: vec![method], period, count: 10 };
        let policy = policy.parse().unwrap();
        let whole = Plan {
            probe: Probe::Cyclictest(probe.clone()),
            policy,
            cpus: vec![1],
            pm_qos: false,
            program: None,
        };
        (whole, probe)
    }

    fn command(policy: &str, method: SleepMethod, period: Nanos) -> Result<String, RunError> {
        let (plan, probe) = plan(policy, method, period);
        arguments(&plan, &probe, method, &["0".into(), "2".into()]).map(|words| words.join(" "))
    }

    #[test]
    fn its_peak_of_memory_is_read_from_its_status() {
        let status = "Name:\tcyclictest\nVmPeak:\t   99 kB\nVmHWM:\t    5120 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(memory_peak_kib(status), Some(5120));
        assert_eq!(memory_peak_kib("Name:\tzombie\n"), None);
    }

    #[test]
    fn it_is_told_the_method_the_policy_and_the_cpu_of_the_plan() {
        let ms = Nanos::from_millis(1);
        let line = command("fifo:80", SleepMethod::Nanosleep, ms).unwrap();
        for option in [
            "--relative",
            "--policy=fifo",
            "--priority=80",
            "--interval=1000",
            "--affinity=1",
            "--mainaffinity=0,2",
        ] {
            assert!(line.contains(option), "{option} in {line}");
        }
        assert!(line.contains("--default-system"));
        let timer = command("other", SleepMethod::PosixTimer, ms).unwrap();
        assert!(timer.contains("--posix_timers") && timer.contains("--policy=other"));
    }

    #[test]
    fn what_it_cannot_do_is_refused_before_it_is_started() {
        let ms = Nanos::from_millis(1);
        for (policy, method, period, part) in [
            ("fifo:80", SleepMethod::Precise, ms, "methods"),
            ("fifo:80", SleepMethod::Itimer, ms, "methods"),
            ("deadline:100us,1ms,1ms", SleepMethod::ClockNanosleep, ms, "policy"),
            ("other:5", SleepMethod::ClockNanosleep, ms, "policy"),
            ("fifo:80", SleepMethod::ClockNanosleep, Nanos(1_500), "period_ns"),
            ("fifo:80", SleepMethod::ClockNanosleep, Nanos(0), "period_ns"),
        ] {
            let refused = command(policy, method, period).unwrap_err();
            assert!(matches!(&refused, RunError::Plan { part: p, .. } if *p == part), "{refused}");
        }
    }
}
