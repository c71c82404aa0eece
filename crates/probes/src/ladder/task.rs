// SPDX-License-Identifier: GPL-2.0-or-later
//! The `task` responder on a machine: a thread that blocks in `read` and answers by `ioctl`, as the process of the
//! agent does in the rig (2006 thesis, §5.5.2).

use crate::{RunError, failure};
use rt::Policy;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;
use wire::ports::{self, DEVICE};

/// `ONSET_ANSWER` of driver/onset_wire.h.
const ANSWER: libc::Ioctl = ports::request(ports::ANSWER) as libc::Ioctl;

/// The open device, and the thread that answers through it.
pub struct Answering {
    device: File,
    thread: AtomicI32,
    ended: AtomicBool,
    left: AtomicBool,
}

impl Answering {
    /// Opens the device.
    ///
    /// # Errors
    /// If the driver is not loaded, or another process is its task.
    pub fn open() -> Result<Answering, RunError> {
        let device = File::open(DEVICE).map_err(|e| {
            failure::unavailable("task responder", format!(
                "{DEVICE}: {e}: the task responder answers through this device; load the module (driver/README.md), run as root, and end any other program that uses it (fuser {DEVICE})"
            ))
        })?;
        Ok(Answering {
            device,
            thread: AtomicI32::new(0),
            ended: AtomicBool::new(false),
            left: AtomicBool::new(false),
        })
    }

    /// Answers triggers until the answering is ended. One answer takes two system calls and nothing else.
    ///
    /// # Errors
    /// The kernel refuses the policy or the CPU.
    pub fn answer(&self, policy: Policy, cpu: u32) -> Result<(), RunError> {
        let placed = rt::pin(cpu).and_then(|()| rt::apply(policy));
        if placed.is_ok() {
            rt::prefault_stack();
            self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Release);
            let fd = self.device.as_raw_fd();
            let mut taken = 0u64;
            while !self.ended.load(Ordering::Relaxed) {
                // SAFETY: the device is open, and there are eight bytes to write to.
                let read = unsafe { libc::read(fd, (&raw mut taken).cast(), size_of::<u64>()) };
                if read == size_of::<u64>() as isize {
                    // SAFETY: ONSET_ANSWER takes no argument.
                    unsafe { libc::ioctl(fd, ANSWER) };
                }
            }
        }
        self.left.store(true, Ordering::Release);
        Ok(placed?)
    }

    /// Ends the answering. The thread may be about to block, so this function interrupts the thread until it has left.
    pub fn end(&self) {
        extern "C" fn interrupt(_: libc::c_int) {}
        let signal = libc::SIGRTMIN() + 5;
        // SAFETY: the structure is plain data. It has no flags, so that read() is not restarted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = interrupt as *const () as libc::sighandler_t;
        // SAFETY: the handler does nothing.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        self.ended.store(true, Ordering::Relaxed);
        while !self.left.load(Ordering::Acquire) {
            let thread = self.thread.load(Ordering::Acquire);
            if thread != 0 {
                // SAFETY: there are no pointers. For a thread that has just left, the call returns an error.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
