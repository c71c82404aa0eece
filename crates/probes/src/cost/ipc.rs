// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages between two processes of one machine (lmbench3: lat_pipe.c, lat_unix.c, bw_pipe.c, bw_unix.c), and events
//! that a process tells itself.

use super::Suite::Ipc;
use super::bench::{Work, answered, each, moved};
use super::partner::{Partner, drain, echo, pipe, pour, read, socketpair, write};
use super::place::Place;
use super::row::Row;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes of a read and of a write where a bandwidth is measured (lmbench3, bench.h: XFERSIZE).
pub(super) const CHUNK: usize = 64 * 1024;
/// Bytes that one operation of such a row moves.
pub(super) const MOVED: usize = 1 << 20;

pub(super) static ROWS: [Row; 6] = [
    Row::time((Ipc, "pipe_round_trip"), "1 byte there and back by two pipes", 200, pipes),
    Row::time((Ipc, "unix_round_trip"), "1 byte there and back by AF_UNIX", 200, unix),
    Row::time((Ipc, "eventfd"), "eventfd written and read", 500, eventfd),
    Row::time((Ipc, "epoll_wait"), "epoll_wait with one of 10 descriptors ready", 500, epoll),
    Row::bytes((Ipc, "pipe_bandwidth"), "1 MiB read from a pipe", (2, MOVED as u64), |_| {
        let (from, to) = pipe()?;
        Drain::start(from, to)
    }),
    Row::bytes(
        (Ipc, "unix_bandwidth"),
        "1 MiB read from an AF_UNIX socket",
        (2, MOVED as u64),
        |_| {
            let (from, to) = socketpair()?;
            Drain::start(from, to)
        },
    ),
];

/// The work of a message of `bytes` bytes, out by `to` and back by `from`. `partner` answers.
pub(super) fn round_trip(
    (from, to): (impl AsRawFd + 'static, impl AsRawFd + 'static),
    bytes: usize,
    partner: Partner,
) -> io::Result<Box<dyn Work>> {
    let mut message = vec![1; bytes];
    each(move || {
        // The partner lives as long as its messages.
        let _ = &partner;
        moved(write(&to, &message), bytes)?;
        moved(read(&from, &mut message), bytes)
    })
}

fn pipes(_: &Place) -> io::Result<Box<dyn Work>> {
    let ((there, to), (from, back)) = (pipe()?, pipe()?);
    let partner = Partner::start(|| echo(&there, &back, 1))?;
    round_trip((from, to), 1, partner)
}

fn unix(_: &Place) -> io::Result<Box<dyn Work>> {
    let (own, other) = socketpair()?;
    let partner = Partner::start(|| echo(&other, &other, 1))?;
    round_trip((own.try_clone()?, own), 1, partner)
}

/// Reads what a partner pours.
pub(super) struct Drain {
    from: OwnedFd,
    buffer: Vec<u8>,
    _partner: Partner,
}

impl Drain {
    fn start(from: OwnedFd, to: OwnedFd) -> io::Result<Box<dyn Work>> {
        let partner = Partner::start(|| pour(&to, CHUNK))?;
        Ok(Drain::of(from, partner))
    }

    /// Reads from a descriptor that `partner` writes to.
    pub(super) fn of(from: OwnedFd, partner: Partner) -> Box<dyn Work> {
        Box::new(Drain { from, buffer: vec![0; CHUNK], _partner: partner })
    }
}

impl Work for Drain {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        if part > 0 {
            super::bench::empty(ops);
            return Ok(());
        }
        let Drain { from, buffer, .. } = self;
        (0..ops).try_for_each(|_| drain(from, MOVED, buffer))
    }
}

/// An eventfd of this process alone.
pub(super) fn new_eventfd() -> io::Result<OwnedFd> {
    // SAFETY: nobody else owns the descriptor.
    unsafe {
        let fd = answered(libc::eventfd(0, libc::EFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

fn eventfd(_: &Place) -> io::Result<Box<dyn Work>> {
    let event = new_eventfd()?;
    let one = 1u64.to_ne_bytes();
    each(move || {
        moved(write(&event, &one), one.len())?;
        moved(read(&event, &mut [0; 8]), one.len())
    })
}

fn epoll(_: &Place) -> io::Result<Box<dyn Work>> {
    // SAFETY: nobody else owns the descriptor.
    let epoll = unsafe {
        let fd = answered(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
        OwnedFd::from_raw_fd(fd as RawFd)
    };
    let events = (0..10).map(|_| new_eventfd()).collect::<io::Result<Vec<OwnedFd>>>()?;
    for (number, event) in (0..).zip(&events) {
        let mut wanted = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let (epoll, event) = (epoll.as_raw_fd(), event.as_raw_fd());
        // SAFETY: the event is initialised, and both descriptors are open.
        answered(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, event, &mut wanted) })?;
    }
    moved(write(&events[0], &1u64.to_ne_bytes()), 8)?;
    each(move || {
        let _ = &events;
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; 10];
        // SAFETY: there is room for ten events.
        let n = unsafe { libc::epoll_wait(epoll.as_raw_fd(), ready.as_mut_ptr(), 10, 0) };
        match answered(n)? {
            1 => Ok(()),
            n => Err(io::Error::other(format!("{n} descriptors are ready instead of one"))),
        }
    })
}
