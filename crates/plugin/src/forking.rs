// SPDX-License-Identifier: GPL-2.0-or-later
//! Lets QEMU fork itself where the guest stands still. The child goes on with a copy of the guest, and with all code
//! that was translated.
//!
//! QEMU has three threads here: the vCPU's, the main loop's, and one that frees memory later. One more ends QEMU with
//! its host. A child has the vCPU's thread alone, which forked. It needs nothing of the main loop but what this does
//! for virtual time: while the vCPU is idle, it moves the clock to the next timer and runs the timers of the guest's
//! clock. It also runs those of the host's clocks. A thread of the child does this (QEMU 10.0 and 11.1:
//! `main_loop_wait`). Nobody answers the control connection in a child, and no memory is freed later. A child lives for
//! one trial, or stands still.
//!
//! The module cannot see whether the guest of a child is the one that a restored machine would have. The tests of the
//! rig compare them.

use crate::follow;
use crate::generator::{self, fail};
use crate::qemu::Qemu;
use crate::symbols::symbols;
use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use wire::{Arguments, REQUEST_BYTES, Start, WalkReply, WalkRequest};

/// How often a child looks whether its vCPU is idle and whether its host is there, once the vCPU is about to halt. The
/// time is chosen: an idle vCPU waits for it at each timer.
const LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
const AT_ONCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
/// The same while the vCPU executes, where only the host's clocks need it. Below: how long after it was about to halt
/// the vCPU may not be idle yet. Both are chosen: looks of [`LOOK`] took a sixth of a child's time.
const SELDOM: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
const HALTING: Duration = Duration::from_millis(1);

symbols! {
    /// The parts of QEMU's main loop that move virtual time.
    struct Symbols {
        all_cpu_threads_idle: fn() -> bool;
        icount_start_warp_timer: fn();
        qemu_clock_run_all_timers: fn() -> bool;
        qemu_clock_run_timers: fn(c_int) -> bool;
    }
}

/// The clocks of the host (include/qemu/timer.h, `QEMUClockType`: `REALTIME`, `HOST`, `VIRTUAL_RT`). A vCPU executes
/// nothing while a timer of the first of them is due.
const HOST_CLOCKS: [c_int; 3] = [0, 2, 3];

/// The files that the guest and QEMU write: the names in the directory.
const OUTPUTS: [&str; 2] = ["console", "wire"];

struct Forking {
    qemu: Qemu,
    symbols: Symbols,
    directory: PathBuf,
    /// The descriptors of [`OUTPUTS`].
    outputs: [RawFd; 2],
}

static FORKING: OnceLock<Forking> = OnceLock::new();
/// The socket of this process. A process that serves no requests only looks whether it is open.
static REQUESTS: Mutex<Option<UnixStream>> = Mutex::new(None);
/// Whether this process is a child.
static CHILD: OnceLock<()> = OnceLock::new();
/// How often the vCPU was about to halt, in a child.
static HALTS: AtomicU32 = AtomicU32::new(0);
/// Two operations of futex(2), each for this process alone.
const FUTEX_WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const FUTEX_WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

fn forking() -> &'static Forking {
    FORKING.get().expect("prepared before the machine runs")
}

fn requests() -> MutexGuard<'static, Option<UnixStream>> {
    REQUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes QEMU ready to fork. Call this once the machine is built: its memory is there, and its files are open.
///
/// # Errors
/// If QEMU lacks a function, or its files or its memory are not found.
pub fn prepare(qemu: Qemu, told: &wire::Forking) -> Result<(), String> {
    let symbols = Symbols::resolve().map_err(|failed| qemu.refusal(&failed))?;
    let directory = PathBuf::from(&told.directory);
    let mut outputs = [0; 2];
    for (fd, name) in outputs.iter_mut().zip(OUTPUTS) {
        *fd = descriptor_of(&directory.join(name))?;
    }
    copy_memory_to_children()?;
    // SAFETY: plain system calls on this process, whose main thread builds the machine. The kernel reaps each child as
    // it ends, and this process inherits the children of its children. It ends with its host, and no longer with the
    // thread of the host that started it: that one may have had work for a moment only.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, 0);
    }
    let host = told.requests_fd;
    // SAFETY: the parent left this descriptor open for the plugin alone.
    *requests() = Some(unsafe { UnixStream::from_raw_fd(host) });
    // While the machine is stopped the vCPU's thread reads no requests, and does not see that the host is gone.
    let spawned = std::thread::Builder::new().spawn(move || {
        while !is_gone(host, None) {}
        end()
    });
    spawned.map_err(|e| format!("a thread that waits for the end of the host: {e}"))?;
    let prepared = Forking { qemu, symbols, directory, outputs };
    FORKING.set(prepared).map_err(|_| "the plugin was loaded twice".into())
}

/// The descriptor of this process that is open for the file.
fn descriptor_of(path: &Path) -> Result<RawFd, String> {
    let failed = |e: std::io::Error| format!("/proc/self/fd: {e}");
    for entry in fs::read_dir("/proc/self/fd").map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            return number.ok_or_else(|| format!("{:?} is no descriptor", entry.file_name()));
        }
    }
    Err(format!("no descriptor is open for {}", path.display()))
}

/// QEMU keeps the guest's memory from children (MADV_DONTFORK). This undoes it.
fn copy_memory_to_children() -> Result<(), String> {
    let maps = fs::read_to_string("/proc/self/smaps").map_err(|e| format!("smaps: {e}"))?;
    for (start, length) in kept_from_children(&maps) {
        // SAFETY: the range is mapped, and the advice changes no content.
        let done = unsafe { libc::madvise(start as *mut _, length, libc::MADV_DOFORK) };
        if done != 0 {
            let why = std::io::Error::last_os_error();
            return Err(format!("the guest's memory cannot be copied to a child: {why}"));
        }
    }
    Ok(())
}

/// The ranges of a process's memory that its children do not get (proc(5), `VmFlags`), by start and length.
fn kept_from_children(smaps: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut range = None;
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        let bounds = first.split_once('-').and_then(|(start, end)| {
            let number = |digits| usize::from_str_radix(digits, 16).ok();
            Some((number(start)?, number(end)?))
        });
        range = bounds.or(range);
        let is_kept = first == "VmFlags:" && line.split(' ').any(|flag| flag == "dc");
        if let Some((start, end)) = range.filter(|_| is_kept) {
            ranges.push((start, end - start));
        }
    }
    ranges
}

/// Carries out requests. The vCPU's thread calls this between two instructions of the guest, with QEMU's big lock. It
/// returns where the guest is to go on.
pub extern "C" fn serve() {
    loop {
        reply(WalkReply::Stands { at: generator::stands_at() });
        loop {
            match next_request() {
                WalkRequest::Walk { until } => return generator::walk(until),
                WalkRequest::Stop => return generator::stop(),
                WalkRequest::Fork { slot } => {
                    generator::flush();
                    // SAFETY: this thread holds the big lock, without which the main loop changes nothing. A child
                    // waits for no lock of the thread that frees memory. The C library makes its own locks whole in a
                    // child (fork(2)).
                    match unsafe { libc::fork() } {
                        -1 => {
                            let errno = std::io::Error::last_os_error().raw_os_error();
                            let errno = errno.and_then(|n| u32::try_from(n).ok());
                            reply(WalkReply::Refused { errno: errno.unwrap_or_default() });
                        }
                        0 => match begin_as_child(slot) {
                            Start::Walk => break,
                            _ => return,
                        },
                        process => reply(WalkReply::Forked { process: process as u32 }),
                    }
                }
            }
        }
    }
}

/// Waits for the next request. A host that is gone, or that says something else, ends the process.
fn next_request() -> WalkRequest {
    let mut bytes = [0; REQUEST_BYTES];
    let read = requests().as_mut().map(|socket| socket.read_exact(&mut bytes));
    match (read, WalkRequest::decode(&bytes)) {
        (Some(Ok(())), Some(request)) => request,
        _ => end(),
    }
}

fn reply(reply: WalkReply) {
    // A host that is gone is noticed with the next request.
    let _ = requests().as_mut().map(|socket| socket.write_all(&reply.encode()));
}

/// Makes this process what the file of its slot says. Returns how it starts.
fn begin_as_child(slot: u32) -> Start {
    let Forking { qemu, symbols, directory, outputs } = forking();
    let _ = CHILD.set(());
    let begun = || -> Result<Start, String> {
        let path = directory.join(WalkRequest::file(slot));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let told = Arguments::parse(text.lines(), |path| fs::read(path));
        let told = told.map_err(|e| e.to_string())?;
        for (fd, name) in outputs.iter().zip(OUTPUTS) {
            own_file(*fd, &directory.join(format!("{name}-{slot}")))?;
        }
        let own = told.forking.as_ref().ok_or("a child without a socket")?.requests_fd;
        // SAFETY: the host left this descriptor open for this child alone.
        let before = requests().replace(unsafe { UnixStream::from_raw_fd(own) });
        // The parent's socket stays open here: a later child of this process may get it.
        before.map(UnixStream::into_raw_fd);
        // SAFETY: as above. The host says that nobody else writes events.
        let events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(told.ring_fd)) };
        let events = events.map_err(|e| format!("ring_fd: {e}"))?;
        let (qemu, symbols) = (*qemu, *symbols);
        let spawned = std::thread::Builder::new().spawn(move || move_time(qemu, symbols, own));
        spawned.map_err(|e| format!("a thread of a child: {e}"))?;
        let start = told.start;
        follow::aim_at(told.aim())?;
        generator::become_child(told, events);
        Ok(start)
    };
    begun().unwrap_or_else(|e| fail(&e))
}

/// Opens an empty file in the place of a descriptor.
fn own_file(fd: RawFd, path: &Path) -> Result<(), String> {
    let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
    // SAFETY: a plain system call on open descriptors.
    match unsafe { libc::dup2(file.as_raw_fd(), fd) } {
        -1 => Err(format!("{}: {}", path.display(), std::io::Error::last_os_error())),
        _ => Ok(()),
    }
}

/// Tells a child that its vCPU is about to halt.
pub fn halts() {
    if CHILD.get().is_some() {
        HALTS.fetch_add(1, Ordering::Release);
        // SAFETY: a plain system call on a word of this process (futex(2), FUTEX_WAKE).
        unsafe { libc::syscall(libc::SYS_futex, HALTS.as_ptr(), FUTEX_WAKE, 1) };
    }
}

/// Waits until the vCPU is about to halt once more than `halts` times, and no longer than [`SELDOM`].
fn wait_for_halt(halts: u32) {
    let patience = SELDOM;
    // SAFETY: a plain system call on a word of this process (futex(2), FUTEX_WAIT).
    unsafe {
        libc::syscall(libc::SYS_futex, HALTS.as_ptr(), FUTEX_WAIT, halts, &raw const patience)
    };
}

/// Whether the host at the other end of this socket is gone, after waiting for at most `patience`.
fn is_gone(host: RawFd, patience: Option<&libc::timespec>) -> bool {
    let mut hangs_up = libc::pollfd { fd: host, events: 0, revents: 0 };
    let patience = patience.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the structures live until the call returns. No event is asked for: only the end of the host counts.
    unsafe { libc::ppoll(&mut hangs_up, 1, patience, std::ptr::null()) > 0 }
}

/// Does for a child what QEMU's main loop does for virtual time, as long as the host is there.
fn move_time(qemu: Qemu, symbols: Symbols, host: RawFd) -> ! {
    // SAFETY: a plain system call. Without it the kernel may let this thread sleep for 50 µs more.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let (mut halts, mut halted) = (HALTS.load(Ordering::Acquire), Instant::now());
    loop {
        let is_executing = halted.elapsed() > HALTING;
        if is_executing {
            wait_for_halt(halts);
        }
        let patience = if is_executing { AT_ONCE } else { LOOK };
        if is_gone(host, Some(&patience)) {
            end()
        }
        let now = HALTS.load(Ordering::Acquire);
        // SAFETY: the main loop calls these with the big lock. A vCPU that executes runs its clock's timers itself,
        // and may be in the middle of what the plugin keeps.
        let is_idle = qemu.with_big_lock(|| unsafe {
            let is_idle = (symbols.all_cpu_threads_idle)();
            if is_idle {
                (symbols.icount_start_warp_timer)();
                (symbols.qemu_clock_run_all_timers)();
            } else {
                for clock in HOST_CLOCKS {
                    (symbols.qemu_clock_run_timers)(clock);
                }
            }
            is_idle
        });
        if is_idle || now != halts {
            (halts, halted) = (now, Instant::now());
        }
    }
}

/// Ends this process if it is a child: its trial is over, and nobody wants the guest any more.
pub fn end_child() {
    if CHILD.get().is_some() {
        end()
    }
}

/// Ends this process. A child shares QEMU's files, which `exit` would tidy up.
fn end() -> ! {
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_that_children_do_not_get_are_found() {
        let smaps = "7f10-7f30 rw-p 00000000 00:00 0 \nSize: 4 kB\nVmFlags: rd wr mr mw me dc ac \n\
                     7f40-7f50 rw-p 00000000 00:00 0 [heap]\nVmFlags: rd wr mr mw me ac \n\
                     8000-9000 rw-s 00000000 00:01 7 /memfd:dc (deleted)\nVmFlags: rd dc\n";
        assert_eq!(kept_from_children(smaps), [(0x7f10, 0x20), (0x8000, 0x1000)]);
        assert_eq!(kept_from_children("VmFlags: dc\n"), []);
    }

    #[test]
    fn a_host_is_gone_once_its_end_is_closed_and_not_when_it_asks_for_something() {
        let (mut host, own) = UnixStream::pair().expect("a socket");
        host.write_all(&[0; REQUEST_BYTES]).expect("room");
        assert!(!is_gone(own.as_raw_fd(), Some(&AT_ONCE)));
        drop(host);
        assert!(is_gone(own.as_raw_fd(), None));
    }

    #[test]
    fn a_files_descriptor_is_found_and_gives_way_to_a_childs_own() {
        let name = |what: &str| std::env::temp_dir().join(format!("{what}-{}", std::process::id()));
        let (first, second) = (name("onset-first"), name("onset-second"));
        let mut file = File::create(&first).expect("a file");
        let fd = descriptor_of(&first).expect("it is open");
        assert_eq!(fd, file.as_raw_fd());
        own_file(fd, &second).expect("a file");
        file.write_all(b"mine").expect("room");
        let read = |path| fs::read(path).expect("it is there");
        assert_eq!((read(&first), read(&second)), (Vec::new(), b"mine".to_vec()));
        let removed = [&first, &second].map(fs::remove_file);
        assert!(removed.iter().all(Result::is_ok));
        assert!(descriptor_of(&first).expect_err("it is gone").contains("no descriptor"));
    }
}
