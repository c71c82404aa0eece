// SPDX-License-Identifier: GPL-2.0-or-later
//! Waits for periodic timers of the kernel: timerfd, POSIX timer, interval timer.
//!
//! The kernel arms these timers on a grid of its own, so a late task does not move the grid. A timerfd and a POSIX
//! timer say how many expirations the task missed. An interval timer keeps only its last expiration, and the clock
//! tells how many there were.

use super::wait::Wait;
use crate::plan::SleepMethod;
use crate::report::RunError;
use rt::Release;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use sample::{Monotonic, Nanos, Stamp};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::OwnedFd;

/// Checks that the timer can have this period.
pub(super) fn check(method: SleepMethod, period: Nanos) -> Result<(), RunError> {
    if method != SleepMethod::Itimer || period.0.is_multiple_of(1_000) {
        return Ok(());
    }
    let wrong = format!(
        "itimer counts whole microseconds, not {} ns; take the method posix_timer",
        period.0
    );
    Err(RunError::Plan { part: "periods_ns", wrong })
}

fn system(call: &'static str) -> impl Fn(Errno) -> RunError {
    move |errno| RunError::System { call, errno }
}

fn last_errno() -> Errno {
    // SAFETY: the pointer is to the errno of this thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

fn parts(time: Nanos) -> (i64, i64) {
    (time.as_secs() as i64, time.subsec_nanos() as i64)
}

/// A periodic timerfd (timerfd_create(2)), armed at an absolute time.
pub(super) struct Timerfd(OwnedFd);

impl Timerfd {
    /// Starts the timer. Returns it with the beginning of its first period.
    pub(super) fn start(period: Nanos) -> Result<(Timerfd, Stamp<Monotonic>), RunError> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .map_err(system("timerfd_create"))?;
        let start = rt::now();
        let spec = |time| {
            let (tv_sec, tv_nsec) = parts(time);
            Timespec { tv_sec, tv_nsec }
        };
        let times =
            Itimerspec { it_value: spec(Nanos(start.ns()) + period), it_interval: spec(period) };
        timerfd_settime(&fd, TimerfdTimerFlags::ABSTIME, &times)
            .map_err(system("timerfd_settime"))?;
        Ok((Timerfd(fd), start))
    }
}

impl Wait for Timerfd {
    #[inline]
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError> {
        if release.behind() > 0 {
            return Ok((rt::now(), release.behind() - 1));
        }
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.0, &mut expirations) {
                Ok(_) => {
                    let now = rt::now();
                    return Ok((now, u64::from_ne_bytes(expirations).saturating_sub(1)));
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(RunError::System { call: "read(timerfd)", errno }),
            }
        }
    }
}

/// Takes the next signal of `set`. This thread blocks these signals.
#[inline]
fn take(set: &libc::sigset_t) -> Result<libc::siginfo_t, RunError> {
    let mut info = MaybeUninit::uninit();
    loop {
        // SAFETY: the set is valid, and `info` has room for the result.
        if unsafe { libc::sigwaitinfo(set, info.as_mut_ptr()) } > 0 {
            // SAFETY: the successful call has written the value.
            return Ok(unsafe { info.assume_init() });
        }
        match last_errno() {
            Errno::INTR => {}
            errno => return Err(RunError::System { call: "sigwaitinfo", errno }),
        }
    }
}

/// Blocks `signal` in the calling thread. Returns the set of that signal, and the thread's mask before.
fn block(signal: libc::c_int) -> (libc::sigset_t, libc::sigset_t) {
    // SAFETY: sigemptyset makes the zeroed set valid, and none of the calls fails for a valid signal.
    unsafe {
        let (mut set, mut before) = (zeroed(), zeroed());
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
        (set, before)
    }
}

/// A periodic POSIX timer (timer_create(2)). Its signal goes to this thread alone.
pub(super) struct PosixTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
}

impl PosixTimer {
    /// Starts the timer. Returns it with the beginning of its first period.
    pub(super) fn start(period: Nanos) -> Result<(PosixTimer, Stamp<Monotonic>), RunError> {
        let signal = libc::SIGRTMIN();
        let (set, _) = block(signal);
        // SAFETY: the structures are valid, and the thread is this one. The timer is deleted on drop.
        let timer = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = MaybeUninit::uninit();
            match libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) {
                0 => PosixTimer { timer: timer.assume_init(), set },
                _ => return Err(system("timer_create")(last_errno())),
            }
        };
        let start = rt::now();
        let spec = |time| {
            let (tv_sec, tv_nsec) = parts(time);
            libc::timespec { tv_sec, tv_nsec }
        };
        let times = libc::itimerspec {
            it_value: spec(Nanos(start.ns()) + period),
            it_interval: spec(period),
        };
        let old = std::ptr::null_mut();
        // SAFETY: the timer exists, and the time is valid.
        match unsafe {
            libc::timer_settime(timer.timer, libc::TIMER_ABSTIME, &raw const times, old)
        } {
            0 => Ok((timer, start)),
            _ => Err(system("timer_settime")(last_errno())),
        }
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: `start` created the timer, and only this deletes it.
        unsafe { libc::timer_delete(self.timer) };
    }
}

impl Wait for PosixTimer {
    #[inline]
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError> {
        if release.behind() > 0 {
            return Ok((rt::now(), release.behind() - 1));
        }
        let info = take(&self.set)?;
        let now = rt::now();
        Ok((now, u64::try_from(overrun(&info)).unwrap_or(0)))
    }
}

/// `si_overrun` (sigaction(2)): the expirations beside the one for which the signal came.
fn overrun(info: &libc::siginfo_t) -> libc::c_int {
    /// The field `_sifields._timer` of asm-generic/siginfo.h, which begins at a multiple of a pointer's size.
    #[repr(C)]
    struct Timer {
        numbers: [libc::c_int; 3],
        fields: TimerFields,
    }
    #[repr(C)]
    struct TimerFields {
        _alignment: [usize; 0],
        id: libc::c_int,
        overrun: libc::c_int,
    }
    const _: () = assert!(size_of::<Timer>() <= size_of::<libc::siginfo_t>());
    // SAFETY: a siginfo_t with si_code SI_TIMER begins in this way.
    unsafe { (*std::ptr::from_ref(info).cast::<Timer>()).fields.overrun }
}

/// While this value lives, the thread that made it and the threads that it starts block `SIGALRM`. The signal of an
/// interval timer goes to any thread that does not block it, and then ends the process.
pub(super) struct BlockedAlarm {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl BlockedAlarm {
    /// # Errors
    /// [`RunError::Unavailable`] if another thread of this process would get the signal.
    pub(super) fn new() -> Result<BlockedAlarm, RunError> {
        let (set, before) = block(libc::SIGALRM);
        let alarm = BlockedAlarm { set, before };
        if threads().iter().all(|status| blocks_alarm(status)) {
            return Ok(alarm);
        }
        Err(RunError::Unavailable {
            what: "interval timer".into(),
            reason: "another thread of this process does not block SIGALRM, and the signal would end it; measure in a \
 process of its own, or take the method posix_timer"
                .into(),
        })
    }
}

/// /proc/PID/status of each thread of this process. A thread that ended meanwhile gives nothing.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok()).collect()
}

/// Whether the mask of blocked signals has `SIGALRM` (proc_pid_status(5): signal 1 is bit 0).
fn blocks_alarm(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| (mask >> (libc::SIGALRM - 1)) & 1 == 1)
}

impl Drop for BlockedAlarm {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the sets are valid. A last signal that nobody took is taken before the mask would let it through.
        unsafe {
            libc::sigtimedwait(&raw const self.set, std::ptr::null_mut(), &raw const at_once);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

/// An interval timer by `setitimer(ITIMER_REAL)`.
pub(super) struct Itimer {
    set: libc::sigset_t,
    early: u64,
}

impl Itimer {
    /// Starts the timer. Returns it with the beginning of its first period. The timer takes relative times, so the
    /// period begins at a reading of the clock right before the call. The latency contains the call itself.
    pub(super) fn start(period: Nanos) -> Result<(Itimer, Stamp<Monotonic>), RunError> {
        let (set, _) = block(libc::SIGALRM);
        let start = rt::now();
        arm(period)?;
        Ok((Itimer { set, early: 0 }, start))
    }

    /// The number of signals that came before the next event was due. A late task may read the clock after an event
    /// that the timer has yet to signal. The event is counted at that reading, and its signal answers nothing.
    pub(super) fn early(&self) -> u64 {
        self.early
    }
}

fn arm(period: Nanos) -> Result<(), RunError> {
    let (tv_sec, ns) = parts(period);
    let time = libc::timeval { tv_sec, tv_usec: ns / 1_000 };
    let times = libc::itimerval { it_value: time, it_interval: time };
    // SAFETY: the time is valid.
    match unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const times, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(system("setitimer")(last_errno())),
    }
}

impl Drop for Itimer {
    fn drop(&mut self) {
        // A time of 0 disarms the timer, and the kernel never refuses it.
        let _ = arm(Nanos(0));
    }
}

impl Wait for Itimer {
    #[inline]
    fn wait(&mut self, release: &Release) -> Result<(Stamp<Monotonic>, u64), RunError> {
        loop {
            if release.behind() == 0 {
                take(&self.set)?;
            }
            let now = rt::now();
            if now >= release.due() {
                return Ok((now, release.passed(now)));
            }
            self.early += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_timer_is_refused_where_its_signal_would_end_the_process() {
        assert!(blocks_alarm("Name:\tx\nSigBlk:\t0000000000002000\nSigIgn:\t0\n"));
        assert!(!blocks_alarm("SigBlk:\tffffffffffffdfff\n"));
        // A thread that does not block the signal. It starts no threads, since the C library blocks all signals then.
        let (ready, begun) = std::sync::mpsc::channel();
        let (done, end) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            ready.send(()).expect("somebody waits");
            let _ = end.recv();
        });
        begun.recv().expect("it begins");
        assert!(matches!(BlockedAlarm::new(), Err(RunError::Unavailable { .. })));
        drop(done);
        other.join().expect("it ends");
    }
}
