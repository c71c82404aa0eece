// SPDX-License-Identifier: GPL-2.0-or-later
//! A row: one cost, what is timed, and how often in a batch. `docs/methods/costs.md` has each with its source.

use super::bench::Work;
use super::partner::GONE;
use super::place::Place;
use super::{
    Suite, context, files, ipc, locks, memory, network, processes, ring, scheduler, syscalls,
};
use sample::{Bytes, BytesPerSecond, Nanos};
use std::io;

/// A cost.
pub struct Row {
    /// The name of its series.
    pub name: &'static str,
    /// The suite.
    pub suite: Suite,
    /// One operation, in words.
    pub about: &'static str,
    /// Operations in a batch. It is the same on every target, so that the rig counts what a machine times.
    pub ops: u32,
    /// What a figure says.
    pub counts: Counts,
    /// Whether the row ends with [`ops`](Self::ops) operations done, or is missing.
    pub(super) make: fn(&Place) -> io::Result<Box<dyn Work>>,
}

/// What the figure of a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The time of one operation. Less is better.
    Time,
    /// One operation moves so many bytes; the figure is bytes a second. More is better.
    Bytes(Bytes),
}

impl Row {
    pub(super) const fn time(
        (suite, name): (Suite, &'static str),
        about: &'static str,
        ops: u32,
        make: fn(&Place) -> io::Result<Box<dyn Work>>,
    ) -> Row {
        Row { name, suite, about, ops, counts: Counts::Time, make }
    }

    pub(super) const fn bytes(
        (suite, name): (Suite, &'static str),
        about: &'static str,
        (ops, bytes): (u32, u64),
        make: fn(&Place) -> io::Result<Box<dyn Work>>,
    ) -> Row {
        Row { name, suite, about, ops, counts: Counts::Bytes(Bytes(bytes)), make }
    }

    /// Whether the greater of two figures is the better one.
    pub fn more_is_better(&self) -> bool {
        matches!(self.counts, Counts::Bytes(_))
    }

    /// Bytes a second, where one operation that moves bytes takes `ps` picoseconds.
    pub fn bandwidth(&self, ps: u64) -> Option<BytesPerSecond> {
        match self.counts {
            Counts::Time => None,
            // An operation that moves bytes takes long, so nanoseconds are exact enough.
            Counts::Bytes(bytes) => bytes.per(Nanos(ps.div_ceil(1_000))),
        }
    }

    /// Why the row is missing, and what to do.
    pub(super) fn why(&self, e: &io::Error) -> String {
        if e.kind() == io::ErrorKind::PermissionDenied && e.raw_os_error().is_none() {
            // A refused policy names its remedy itself.
            return e.to_string();
        }
        let remedy = match e.raw_os_error() {
            Some(libc::ENOSYS) => "the kernel lacks the call",
            Some(libc::EPERM | libc::EACCES) => {
                "the kernel or a container forbids it; run with sudo, or outside of the container"
            }
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => {
                "there is no room for its files; make room, or set TMPDIR to another directory"
            }
            Some(libc::ENOMEM) => "there is too little memory",
            Some(libc::EMFILE) => "raise the limit on open files (ulimit -n)",
            Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL) => {
                "the loopback interface is down; ip link set lo up"
            }
            Some(GONE) => {
                "the process at the other end was killed; dmesg says whether the kernel did it, for lack of memory"
            }
            _ => "this is not expected; please report it",
        };
        format!("{e}; {remedy}")
    }
}

/// All rows, suite by suite.
pub(super) static ROWS: [&[Row]; 10] = [
    &syscalls::ROWS,
    &processes::ROWS,
    &context::ROWS,
    &ipc::ROWS,
    &locks::ROWS,
    &ring::ROWS,
    &files::ROWS,
    &memory::ROWS,
    &network::ROWS,
    &scheduler::ROWS,
];

/// The row of a series. `None` if there is no such row, as in a bundle of a later version.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().copied().flatten().find(|row| row.name == name)
}
