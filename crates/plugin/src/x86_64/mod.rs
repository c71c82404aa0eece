// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the plugin knows of the processor's architecture, x86-64, and of the PC that is built around it.
//!
//! The module holds the registers, the flags, the order of words in an interrupt's frame, the address space, the
//! system calls, the interrupt controller and where a PC has RAM. [`code`] reads instructions. Every other module of
//! the plugin uses the names that are given here.

pub mod code;

use std::ffi::CStr;
use std::ops::Range;

/// The longest instruction, in bytes.
pub const INSTRUCTION_BYTES_MAX: usize = 15;

/// How many general registers there are.
pub const GENERAL: usize = 16;
/// The names that GDB has for them, in the order of their numbers in instructions.
pub const GENERAL_NAMES: [&CStr; GENERAL] = [
    c"rax", c"rcx", c"rdx", c"rbx", c"rsp", c"rbp", c"rsi", c"rdi", c"r8", c"r9", c"r10", c"r11",
    c"r12", c"r13", c"r14", c"r15",
];

/// A general register by what it holds, with its number in instructions (System V ABI for amd64, 3.2 and A.2).
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum General {
    /// The number of a system call (`rax`).
    Call = 0,
    /// The stack pointer (`rsp`).
    Stack = 4,
    /// The frame pointer (`rbp`).
    Frame = 5,
    /// The second argument of a function (`rsi`).
    Second = 6,
    /// The first argument of a function (`rdi`).
    First = 7,
    /// The flags of the program that made a system call (`r11`).
    CallFlags = 11,
}

/// The names that GDB has for the code segment and the flags.
pub const STATE_NAMES: [&CStr; 2] = [c"cs", c"eflags"];
/// The names that GDB has for the base of a CPU's variables: in the mode that runs, and in the other one (`swapgs`).
pub const BASE_NAMES: [&CStr; 2] = [c"gs_base", c"k_gs_base"];
/// The names that GDB has for what the witness reads: the number of a system call; its first, second and third
/// argument; the stack pointer; the thread's own storage; the table of the address space.
pub const CALL_NAMES: [&CStr; 7] = [c"rax", c"rdi", c"rsi", c"rdx", c"rsp", c"fs_base", c"cr3"];

/// The interrupt flag in the flags register (SDM volume 1, 3.4.3).
const INTERRUPT_FLAG: u64 = 1 << 9;

/// Whether these flags mask interrupts.
#[inline]
pub fn masks(flags: u64) -> bool {
    flags & INTERRUPT_FLAG == 0
}

/// Whether this code segment is user space's: its lowest bits are the privilege level.
#[inline]
pub fn is_user(code_segment: u64) -> bool {
    code_segment & 3 == 3
}

/// Whether this code segment is the kernel's.
#[inline]
pub fn is_kernel(code_segment: u64) -> bool {
    code_segment & 3 == 0
}

/// What lies on the stack where an interrupt returns: the address that it returns to, the code segment and the flags.
pub type InterruptFrame = [u64; 3];

/// The kernel is the upper half of the addresses.
pub const KERNEL: u64 = 1 << 63;
/// User space is the lower half of the addresses.
pub const USER_END: u64 = 1 << 47;
/// Where the code of the kernel and of its modules lies (Documentation/arch/x86/x86_64/mm.rst).
pub const CODE: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of a kernel stack, which is aligned to its size (THREAD_SIZE, 16 KiB; arch/x86/include/asm/page_64_types.h).
pub const STACK_BYTES: u64 = 16 << 10;

/// CR3 without the bits that do not tell address spaces apart: the flags and the identifier in its lower 12 bits, and
/// the bit that tells the kernel's table from the user's (arch/x86/include/asm/pgtable.h, PTI_PGTABLE_SWITCH_BIT).
pub const SPACE: u64 = ((1 << 52) - 1) & !0x1fff;

/// The bit of a preemption count of 32 bits that says whether no reschedule is needed (PREEMPT_NEED_RESCHED,
/// arch/x86/include/asm/preempt.h).
const NO_RESCHED: u32 = 1 << 31;

/// A preemption count as records have it: 8 bits of preemption that is off, 8 of bottom halves, 4 of interrupts, 4 of
/// NMIs (include/linux/preempt.h before 7.2). The kernel stores this and [`NO_RESCHED`]. Where the stored count
/// `counts_irqs`, it has 64 bits: 8 bits of interrupts that are disabled lie between the second and the third group,
/// and the highest bit says whether no reschedule is needed. Records have those 8 bits as the highest ones, because
/// they keep preemption off, too.
#[inline]
pub fn preempt_count(stored: u64, counts_irqs: bool) -> u32 {
    let count = stored as u32;
    if counts_irqs {
        count & 0xffff | count >> 24 << 16 | (count >> 16 & 0xff) << 24
    } else {
        count & !NO_RESCHED
    }
}

/// The system calls in which probes and their peers wait: read, sched_yield, pause, nanosleep, rt_sigtimedwait, futex,
/// clock_nanosleep; and the calls that arm the timer for which they wait: setitimer, timer_settime
/// (arch/x86/entry/syscalls/syscall_64.tbl). timerfd_settime has no number in 8 bits, and only our own probe uses it.
pub const WATCHED: [u8; 9] = [0, 24, 34, 35, 38, 128, 202, TIMER_SETTIME, CLOCK_NANOSLEEP];
/// `timer_settime`.
pub const TIMER_SETTIME: u8 = 223;
/// `clock_nanosleep`.
pub const CLOCK_NANOSLEEP: u8 = 230;

/// QEMU's type of the interrupt controller.
pub const INTERRUPT_CONTROLLER: &CStr = c"ioapic";
/// What people call it.
pub const INTERRUPT_CONTROLLER_NAME: &str = "I/O APIC";
/// What is said of a machine that has none.
pub const NO_INTERRUPT_CONTROLLER: &str =
    "the machine has no I/O APIC; use an x86 machine with one";

/// Where the RAM begins that is read directly: below are holes.
pub const RAM_FROM: u64 = 1 << 20;
/// Where on a PC the first device may be that is no RAM (hw/i386/pc_piix.c, `lowmem`): to read a device has
/// consequences.
pub const DEVICES_FROM: u64 = 0xc000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_count_is_the_same_in_both_forms() {
        // Preemption off once, bottom halves three times, in an interrupt, in an NMI; a reschedule needed and not.
        let recorded = 1 | 3 << 9 | 1 << 16 | 1 << 20;
        let short = |needed: u64| u64::from(recorded) | needed << 31;
        let long = |needed: u64, disabled: u64| {
            1 | 3 << 9 | disabled << 16 | 1 << 24 | 1 << 28 | needed << 63
        };
        for needed in [0, 1] {
            assert_eq!(preempt_count(short(needed), false), recorded);
            assert_eq!(preempt_count(long(needed, 0), true), recorded);
            assert_eq!(preempt_count(long(needed, 2), true), recorded | 2 << 24);
        }
        assert_eq!(preempt_count(1 << 63, true), 0);
    }
}
