// SPDX-License-Identifier: GPL-2.0-or-later
//! Process 1 of the guest: prepares it, starts the load, marks the phases, reports, and ends the machine.

use crate::measure::Measurement;
use crate::responder;
use crate::work;
use crate::x86_64::{EARLY_CLOCK, Ports, WIRE};
use agent::{
    COUNTERS_DIR, LOAD_SCRIPT, Module, PLAN_PATH, PROGRAMS, Plan, Word, Work, counter_value,
};
use machine::{Cpus, KnobWord, System};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use wire::Mark;

type Counters = BTreeMap<String, u64>;

/// Runs the guest from its beginning to its end, and ends the machine, also when something fails.
pub fn run() -> ! {
    if let Err(reason) = rig() {
        eprintln!("onset: {reason}");
        if let Ok(mut wire) = open_wire() {
            say(&mut wire, &Word::Failed(reason));
        }
    }
    rustix::fs::sync();
    // The host started the machine with -no-reboot, so a restart is the fastest way to end it.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::Restart);
    std::process::exit(1);
}

/// The run of the guest: one line for each phase.
fn rig() -> Result<(), String> {
    mount_all()?;
    let mut wire = open_wire()?;
    let ports = Ports::open()?;
    let plan = read_plan()?;
    for module in &plan.modules {
        load_module(module)?;
    }
    let mut program = plan.task.as_ref().map_or(Ok(None), responder::start)?;
    let cpus = Cpus { measured: vec![0], housekeeping: Vec::new() };
    let (system, given) = give_knobs(&cpus);
    settle()?;
    start_load()?;
    ports.set(Mark::WarmUp);
    std::thread::sleep(Duration::from_nanos(plan.warm_up_ns));
    let mut context: BTreeMap<_, _> = probes::context::read(&[0]).into();
    context.extend(given.iter().map(|knob| knob.read_back(&system, &cpus)));
    say(&mut wire, &Word::Context(context));
    let before = counters();
    ports.set(Mark::Measuring);
    // Only now does init learn what is measured. So one saved guest serves every probe.
    match ports.plan() {
        Some(bytes) => match serde_json::from_slice::<Work>(&bytes) {
            Ok(work) => {
                say(&mut wire, &Word::Worked(work::run(&work, &ports)?));
                Ok(())
            }
            Err(_) => run_probe(bytes, &ports, &mut wire, &before),
        },
        None => {
            wait_until_done(&mut wire, plan.ends_after_ns)?;
            program.as_mut().map_or(Ok(()), responder::Running::check)?;
            say(&mut wire, &Word::Counters(difference(&counters(), &before)));
            Ok(())
        }
    }
}

/// Runs a probe and hands its records over, also if the probe failed.
fn run_probe(
    plan: Vec<u8>,
    ports: &Ports,
    wire: &mut File,
    before: &Counters,
) -> Result<(), String> {
    let measurement = Measurement::prepare(plan)?;
    tell_clock(ports);
    let words = measurement.run(wire);
    let counters = difference(&counters(), before);
    tell_clock(ports);
    let dropped = measurement.hand_over(ports)?;
    for word in words? {
        say(wire, &word);
    }
    if dropped > 0 {
        say(wire, &Word::Dropped(dropped));
    }
    say(wire, &Word::Counters(counters));
    ports.set(Mark::Done);
    Ok(())
}

/// Tells the rig the time of the guest's clock, so often that some readings have no interrupt in them.
fn tell_clock(ports: &Ports) {
    const READINGS: usize = 16;
    (0..READINGS).for_each(|_| ports.tell_clock());
}

fn mount_all() -> Result<(), String> {
    for (kind, at) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
    ] {
        fs::create_dir_all(at).map_err(|e| format!("{at}: {e}"))?;
        rustix::mount::mount(kind, at, kind, MountFlags::empty(), None)
            .map_err(|e| format!("mount {at}: {e}"))?;
    }
    // Here the kernel says how it may be preempted. A kernel that was built without debugfs says less, and runs.
    let _ =
        rustix::mount::mount("debugfs", "/sys/kernel/debug", "debugfs", MountFlags::empty(), None);
    fs::create_dir_all("/dev/shm").map_err(|e| format!("/dev/shm: {e}"))?;
    fs::create_dir_all(COUNTERS_DIR).map_err(|e| format!("{COUNTERS_DIR}: {e}"))
}

/// Opens the second serial line in raw mode. Words go to the host, and one byte (or a break) may come from it.
fn open_wire() -> Result<File, String> {
    let path = WIRE;
    let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())
        .map_err(|e| format!("{path}: {e}"))?;
    let mut attributes = rustix::termios::tcgetattr(&fd).map_err(|e| format!("{path}: {e}"))?;
    attributes.make_raw();
    rustix::termios::tcsetattr(&fd, rustix::termios::OptionalActions::Now, &attributes)
        .map_err(|e| format!("{path}: {e}"))?;
    Ok(File::from(fd))
}

fn say(wire: &mut File, word: &Word) {
    let line = word.line() + "\n";
    // If a line cannot be written, the host has an unfinished run and reports it.
    let _ = wire.write_all(line.as_bytes());
    let _ = rustix::termios::tcdrain(&*wire);
}

fn read_plan() -> Result<Plan, String> {
    let text = fs::read(PLAN_PATH).map_err(|e| format!("{PLAN_PATH}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{PLAN_PATH}: {e}"))
}

fn load_module(module: &Module) -> Result<(), String> {
    let Module { path, parameters } = module;
    let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let arguments = std::ffi::CString::new(parameters.as_str())
        .map_err(|_| format!("{path}: parameters contain a NUL"))?;
    match rustix::system::finit_module(&file, &arguments, 0) {
        // The module is built in, or the kernel loaded it by itself. The image has no two modules of one name.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(e) => Err(format!("loading {path} {parameters}: {e}; the guest's console says more")),
    }
}

/// Carries out the knobs on the command line.
fn give_knobs(cpus: &Cpus) -> (System, Vec<KnobWord>) {
    let system = System::below("/");
    let mut given = KnobWord::all(&fs::read_to_string("/proc/cmdline").unwrap_or_default());
    given.iter_mut().for_each(|knob| knob.give(&system, cpus));
    (system, given)
}

/// Waits until the kernel has finished what booting left behind, because every load would else be measured with that
/// beside it. (On Debian's kernels the self-tests of the crypto algorithms go on for virtual seconds.) Waits also until
/// the kernel has calibrated the time-stamp counter for good, because its clock would else change its rate while a
/// probe measures with it.
fn settle() -> Result<(), String> {
    const WINDOW: Duration = Duration::from_millis(100);
    const QUIET_MS: u64 = 90;
    const QUIET_WINDOWS: u32 = 3;
    const WINDOWS_MAX: u32 = 600;
    let idle_ms = || counters().get("kernel.idle_ms").copied().unwrap_or(0);
    let (mut before, mut quiet) = (idle_ms(), 0);
    for _ in 0..WINDOWS_MAX {
        std::thread::sleep(WINDOW);
        let now = idle_ms();
        let idle = now.saturating_sub(before) >= QUIET_MS;
        quiet = if idle && !is_clock_provisional() { quiet + 1 } else { 0 };
        if quiet == QUIET_WINDOWS {
            return Ok(());
        }
        before = now;
    }
    Err(format!("the guest was not idle, or its clock not settled, after {} s", WINDOWS_MAX / 10))
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether the kernel's clock is a counter whose calibration the kernel has yet to refine.
fn is_clock_provisional() -> bool {
    fs::read_to_string(CLOCKSOURCE).is_ok_and(|name| name.trim() == EARLY_CLOCK)
}

fn start_load() -> Result<(), String> {
    if fs::metadata(LOAD_SCRIPT).is_err() {
        return Ok(());
    }
    let status = Command::new("/bin/sh")
        .arg(LOAD_SCRIPT)
        .env_clear()
        .env("PATH", PROGRAMS)
        .env("HOME", "/tmp")
        .env("LANG", "C")
        .stdin(Stdio::null())
        .status()
        .map_err(|e| format!("{LOAD_SCRIPT}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the load's set-up failed: {status}")) }
}

/// The load's own counters, and the kernel's accounts that show whether the guest was busy.
fn counters() -> Counters {
    let mut counters = Counters::new();
    for entry in fs::read_dir(COUNTERS_DIR).into_iter().flatten().flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_default();
        counters.insert(entry.file_name().to_string_lossy().into_owned(), counter_value(&bytes));
    }
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let values: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
        match (name, values.as_slice()) {
            // The fields are user nice system idle iowait irq softirq …, in ticks of 10 ms (proc_stat(5)).
            ("cpu", [user, nice, system, idle, iowait, irq, softirq, ..]) => {
                let busy = user + nice + system + irq + softirq;
                counters.insert("kernel.busy_ms".into(), busy * 10);
                counters.insert("kernel.idle_ms".into(), (idle + iowait) * 10);
            }
            ("ctxt", [n, ..]) => {
                counters.insert("kernel.context_switches".into(), *n);
            }
            ("processes", [n, ..]) => {
                counters.insert("kernel.forks".into(), *n);
            }
            _ => {}
        }
    }
    counters
}

fn difference(after: &Counters, before: &Counters) -> Counters {
    after
        .iter()
        .map(|(name, n)| (name.clone(), n.saturating_sub(before.get(name).copied().unwrap_or(0))))
        .collect()
}

fn wait_until_done(wire: &mut File, ends_after_ns: Option<u64>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("waiting for the end: {e}");
    if let Some(ns) = ends_after_ns {
        let limit =
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        let mut wire = [PollFd::new(&*wire, PollFlags::IN)];
        poll(&mut wire, Some(&limit)).map_err(|e| failed(e.into()))?;
        return Ok(());
    }
    wire.read_exact(&mut [0]).map_err(failed)
}
