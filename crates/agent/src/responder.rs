// SPDX-License-Identifier: GPL-2.0-or-later
//! The `task` responder: a process with SCHED_FIFO and locked memory that blocks in read() and answers
//! by ioctl(), as in the 2006 thesis (§5.5.2), or a program of the user with the same policy.

use agent::{PROGRAMS, TaskProcess};
use std::ffi::CString;
use std::fs;
use std::io::{Error, Read, Write, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wire::ports;

/// `ONSET_ANSWER` of driver/onset_wire.h.
const ANSWER: libc::Ioctl = ports::request(ports::ANSWER) as libc::Ioctl;
/// The priority of the process. It is above the priority 50 of interrupt threads, as it is for tasks that must answer
/// in practice, and below the kernel's own 99.
const PRIORITY: libc::c_int = 80;

/// How often init looks whether a program waits for triggers, and at most how often.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 2_000;

/// The user's program while it runs.
pub struct Running {
    command: String,
    child: Child,
}

impl Running {
    /// Checks that the program still runs. It has to answer until the guest ends.
    ///
    /// # Errors
    /// If it has ended. The text says how.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait().map_err(|e| format!("waitpid: {e}"))? {
            None => Ok(()),
            Some(status) => Err(format!(
                "the program {} ended with {status}; it has to answer until the guest ends (the guest's console has what it \
                 printed)",
                self.command
            )),
        }
    }
}

/// Whether a process has the driver's device open, and sleeps: the program, or one that it has started.
fn is_waited_for() -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).any(
        |process| {
            let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            let is_device = |path: PathBuf| path == Path::new(ports::DEVICE);
            let opened = files.filter_map(|file| fs::read_link(file.path()).ok()).any(is_device);
            // The state follows the name, which may itself have parentheses (proc_pid_stat(5)).
            let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            opened && stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
        },
    )
}

/// Starts the task, and waits until it is about to block. Returns the program, if it is one.
///
/// # Errors
/// If it cannot be started, or does not wait for a trigger in time.
pub fn start(task: &TaskProcess) -> Result<Option<Running>, String> {
    match task {
        TaskProcess::Agent => start_own().map(|()| None),
        TaskProcess::Program(command) => start_program(command).map(Some),
    }
}

fn start_program(command: &[String]) -> Result<Running, String> {
    let (program, arguments) = command.split_first().ok_or("the program has no name")?;
    let mut child = Command::new(program);
    child.args(arguments).stdin(Stdio::null());
    child.env_clear().env("PATH", PROGRAMS).env("HOME", "/tmp").env("LANG", "C");
    // SAFETY: plain system calls on plain data.
    unsafe {
        child.pre_exec(|| {
            let parameters = libc::sched_param { sched_priority: PRIORITY };
            match libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            }
        });
    }
    let child = child.spawn().map_err(|e| {
        format!("the program {program}: {e}; if it is a script, the guest needs its interpreter ([guest] programs)")
    })?;
    let mut running = Running { command: command.join(" "), child };
    for _ in 0..LOOKS_MAX {
        running.check()?;
        if is_waited_for() {
            return Ok(running);
        }
        std::thread::sleep(LOOK);
    }
    Err(format!(
        "the program {} does not wait for a trigger after {} s: it has to open {} and read it",
        running.command,
        (LOOK * LOOKS_MAX).as_secs(),
        ports::DEVICE
    ))
}

fn start_own() -> Result<(), String> {
    let (mut ready, mut tell) = pipe().map_err(|e| format!("pipe: {e}"))?;
    // SAFETY: init has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", Error::last_os_error())),
        0 => {
            drop(ready);
            let device = match prepare() {
                Ok(device) => device,
                Err(e) => {
                    let _ = tell.write_all(e.as_bytes());
                    std::process::exit(1);
                }
            };
            drop(tell);
            answer(device)
        }
        _ => {
            drop(tell);
            let mut complaint = String::new();
            ready.read_to_string(&mut complaint).map_err(|e| e.to_string())?;
            if complaint.is_empty() { Ok(()) } else { Err(complaint) }
        }
    }
}

fn prepare() -> Result<libc::c_int, String> {
    let failed = |what: &str| format!("task responder: {what}: {}", Error::last_os_error());
    let name = CString::new(ports::DEVICE).expect("a path without NUL");
    // SAFETY: these are plain system calls with valid arguments.
    unsafe {
        if libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) != 0 {
            return Err(failed("mlockall"));
        }
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) != 0 {
            return Err(failed("SCHED_FIFO"));
        }
        match libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) {
            -1 => Err(failed(ports::DEVICE)),
            device => Ok(device),
        }
    }
}

/// The measured path. One answer takes two system calls and nothing else.
fn answer(device: libc::c_int) -> ! {
    let mut taken = 0u64;
    loop {
        // SAFETY: the device is open, and there are eight bytes to write to.
        let read = unsafe { libc::read(device, (&raw mut taken).cast(), size_of::<u64>()) };
        if read == size_of::<u64>() as isize {
            // SAFETY: ONSET_ANSWER takes no argument.
            unsafe { libc::ioctl(device, ANSWER) };
        } else if Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            std::process::exit(1);
        }
    }
}
