// SPDX-License-Identifier: GPL-2.0-or-later
//! Calls that move nothing (lmbench3: lat_syscall.c, lat_select.c, lat_sig.c), and calls that programs use since then.

use super::Suite::Syscalls;
use super::bench::{Each, Work, answered, each, moved};
use super::place::Place;
use super::row::Row;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

pub(super) static ROWS: [Row; 14] = [
    Row::time((Syscalls, "null_call"), "getppid", 1_000, null_call),
    Row::time((Syscalls, "null_read"), "read 1 byte of /dev/zero", 1_000, null_read),
    Row::time((Syscalls, "null_write"), "write 1 byte to /dev/null", 1_000, null_write),
    Row::time((Syscalls, "null_io"), "one of both, in turn", 1_000, null_io),
    Row::time((Syscalls, "stat"), "stat of a file", 1_000, stat),
    Row::time((Syscalls, "fstat"), "fstat of an open file", 1_000, fstat),
    Row::time((Syscalls, "open_close"), "open and close of a file", 500, open_close),
    Row::time((Syscalls, "select_10"), "select on 10 files", 500, |place| select(place, 10)),
    Row::time((Syscalls, "select_100"), "select on 100 files", 200, |place| select(place, 100)),
    Row::time((Syscalls, "signal_install"), "sigaction", 1_000, signal_install),
    Row::time((Syscalls, "signal_delivery"), "a signal caught, less one sent", 500, |_| {
        Ok(Box::new(Delivery))
    }),
    Row::time((Syscalls, "clock_gettime"), "clock_gettime of CLOCK_MONOTONIC", 5_000, clock),
    Row::time((Syscalls, "timer_arm_cancel"), "timerfd armed for 1 s and cancelled", 500, timer),
    Row::time((Syscalls, "sched_yield"), "sched_yield with nobody to yield to", 1_000, sched_yield),
];

fn null_call(_: &Place) -> io::Result<Box<dyn Work>> {
    each(|| {
        // SAFETY: this is a plain system call.
        black_box(unsafe { libc::getppid() });
        Ok(())
    })
}

fn open(path: &str, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = super::place::text(path.as_ref());
    // SAFETY: the path ends with a zero, and nobody else owns the descriptor.
    unsafe {
        let fd = answered(libc::open(path.as_ptr(), flags | libc::O_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

#[inline]
fn read_one(fd: &OwnedFd) -> io::Result<()> {
    moved(super::partner::read(fd, &mut [0]), 1)
}

#[inline]
fn write_one(fd: &OwnedFd) -> io::Result<()> {
    moved(super::partner::write(fd, &[0]), 1)
}

fn null_read(_: &Place) -> io::Result<Box<dyn Work>> {
    let zero = open("/dev/zero", libc::O_RDONLY)?;
    each(move || read_one(&zero))
}

fn null_write(_: &Place) -> io::Result<Box<dyn Work>> {
    let null = open("/dev/null", libc::O_WRONLY)?;
    each(move || write_one(&null))
}

/// LMbench's summary prints the mean of both.
fn null_io(_: &Place) -> io::Result<Box<dyn Work>> {
    let (zero, null) = (open("/dev/zero", libc::O_RDONLY)?, open("/dev/null", libc::O_WRONLY)?);
    let mut reads = false;
    each(move || {
        reads = !reads;
        if reads { read_one(&zero) } else { write_one(&null) }
    })
}

fn stat(place: &Place) -> io::Result<Box<dyn Work>> {
    place.file("small", 1)?;
    let path = place.text("small");
    each(move || {
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the path ends with a zero, and there is room for the answer.
        answered(unsafe { libc::stat(path.as_ptr(), found.as_mut_ptr()) }).map(drop)
    })
}

fn fstat(place: &Place) -> io::Result<Box<dyn Work>> {
    let file = File::open(place.file("small", 1)?)?;
    each(move || {
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: there is room for the answer.
        answered(unsafe { libc::fstat(file.as_raw_fd(), found.as_mut_ptr()) }).map(drop)
    })
}

fn open_close(place: &Place) -> io::Result<Box<dyn Work>> {
    place.file("small", 1)?;
    let path = place.text("small");
    each(move || {
        // SAFETY: the path ends with a zero, and the descriptor is this function's own.
        unsafe {
            let fd = answered(libc::open(path.as_ptr(), libc::O_RDONLY))?;
            answered(libc::close(fd as RawFd)).map(drop)
        }
    })
}

/// Asks at once which of `count` descriptors of one file can be written to. The set is copied each time.
fn select(place: &Place, count: usize) -> io::Result<Box<dyn Work>> {
    let file = File::open(place.file("small", 1)?)?;
    let files = (0..count).map(|_| file.try_clone()).collect::<io::Result<Vec<File>>>()?;
    select_of(files.into_iter().map(OwnedFd::from).collect())
}

/// The row's work on these descriptors.
pub(super) fn select_of(descriptors: Vec<OwnedFd>) -> io::Result<Box<dyn Work>> {
    let highest = descriptors.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(0);
    if highest as usize >= libc::FD_SETSIZE {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    // SAFETY: a set of zeroes is empty, and each descriptor is below its size.
    let set = unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        descriptors.iter().for_each(|fd| libc::FD_SET(fd.as_raw_fd(), &mut set));
        set
    };
    each(move || {
        let (mut asked, mut timeout) = (set, libc::timeval { tv_sec: 0, tv_usec: 0 });
        black_box(&descriptors);
        // SAFETY: the sets and the time are this function's own.
        let ready = unsafe {
            libc::select(highest + 1, ptr::null_mut(), &mut asked, ptr::null_mut(), &mut timeout)
        };
        answered(ready).map(drop)
    })
}

pub(super) extern "C" fn caught(_signal: libc::c_int) {}

/// Makes `handler` the one of `signal`.
pub(super) fn install(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: the action is initialised, and its handler does what a handler may.
    unsafe {
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
        action.sa_sigaction = handler;
        // A child that is only stopped has not ended; the flag means nothing for other signals.
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigemptyset(&mut action.sa_mask);
        answered(libc::sigaction(signal, &action, &mut before)).map(drop)
    }
}

fn signal_install(_: &Place) -> io::Result<Box<dyn Work>> {
    each(|| install(libc::SIGUSR1, caught as *const () as libc::sighandler_t))
}

/// Sends so many signals to this process. 0 asks only whether one could be sent.
pub(super) fn send(signal: libc::c_int, ops: u32) -> io::Result<()> {
    // SAFETY: this is a plain system call.
    let this = unsafe { libc::getpid() };
    // SAFETY: as above; the signal has a handler.
    Each(|| answered(unsafe { libc::kill(this, signal) }).map(drop)).stretch(0, ops)
}

/// Catches signals that this process sends to itself; what sending costs is taken away.
struct Delivery;

impl Work for Delivery {
    fn before(&mut self, _ops: u32) -> io::Result<()> {
        install(libc::SIGUSR1, caught as *const () as libc::sighandler_t)
    }

    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        send(if part == 0 { libc::SIGUSR1 } else { 0 }, ops)
    }
}

fn clock(_: &Place) -> io::Result<Box<dyn Work>> {
    each(|| {
        black_box(clock_gettime(ClockId::Monotonic));
        Ok(())
    })
}

fn timer(_: &Place) -> io::Result<Box<dyn Work>> {
    // SAFETY: nobody else owns the descriptor.
    let timer = unsafe {
        let fd = answered(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC))?;
        OwnedFd::from_raw_fd(fd as RawFd)
    };
    let at = |tv_sec| libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec { tv_sec, tv_nsec: 0 },
    };
    let (second, never) = (at(1), at(0));
    let set = move |when: &libc::itimerspec| {
        // SAFETY: the time is initialised, and nobody asks for the time before.
        answered(unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, when, ptr::null_mut()) })
    };
    each(move || {
        set(&second)?;
        set(&never).map(drop)
    })
}

fn sched_yield(_: &Place) -> io::Result<Box<dyn Work>> {
    // SAFETY: this is a plain system call.
    each(|| answered(unsafe { libc::sched_yield() }).map(drop))
}
