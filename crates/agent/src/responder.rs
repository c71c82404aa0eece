// SPDX-License-Identifier: GPL-2.0-or-later
//! The `task` responder: a process with SCHED_FIFO and locked memory that blocks in read() and answers
//! by ioctl(), as in the 2006 thesis (§5.5.2).

use std::ffi::CString;
use std::io::{Error, Read, Write, pipe};
use wire::ports;

/// `ONSET_ANSWER` of driver/onset_wire.h.
const ANSWER: libc::Ioctl = ports::request(ports::ANSWER) as libc::Ioctl;
/// The priority of the process. It is above the priority 50 of interrupt threads, as it is for tasks that must answer
/// in practice, and below the kernel's own 99.
const PRIORITY: libc::c_int = 80;

/// Starts the process, and waits until it is about to block.
pub fn start() -> Result<(), String> {
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
