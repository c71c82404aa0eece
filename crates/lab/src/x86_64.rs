// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the lab knows of the processor's architecture, x86-64: the numbers of the system calls that it tells apart
//! (arch/x86/entry/syscalls/syscall_64.tbl).

pub(crate) const READ: u8 = 0;
pub(crate) const SETITIMER: u8 = 38;
pub(crate) const RT_SIGTIMEDWAIT: u8 = 128;
pub(crate) const TIMER_SETTIME: u8 = 223;
pub(crate) const CLOCK_NANOSLEEP: u8 = 230;
