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

/// QEMU's function that executes `pause`.
pub const PAUSE: &str = "helper_pause";
/// The entry of that function in QEMU's table of such functions.
pub const PAUSE_INFO: &str = "helper_info_pause";

/// The number of general registers.
pub const GENERAL: usize = 16;
/// GDB's names of the general registers, in the order of their numbers in instructions.
pub const GENERAL_NAMES: [&CStr; GENERAL] = [
    c"rax", c"rcx", c"rdx", c"rbx", c"rsp", c"rbp", c"rsi", c"rdi", c"r8", c"r9", c"r10", c"r11",
    c"r12", c"r13", c"r14", c"r15",
];

/// A general register by its content, with its number in instructions (System V ABI for amd64, 3.2 and A.2).
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

/// GDB's names of the code segment and of the flags.
pub const STATE_NAMES: [&CStr; 2] = [c"cs", c"eflags"];
/// GDB's names of the base of a CPU's variables: in the mode that runs, and in the other mode (`swapgs`).
pub const BASE_NAMES: [&CStr; 2] = [c"gs_base", c"k_gs_base"];
/// GDB's names of the registers that the witness reads: the number of a system call; its first, second and third
/// argument; the stack pointer; the thread's own storage; the table of the address space.
pub const CALL_NAMES: [&CStr; 7] = [c"rax", c"rdi", c"rsi", c"rdx", c"rsp", c"fs_base", c"cr3"];

/// The interrupt flag in the flags register (SDM volume 1, 3.4.3).
const INTERRUPT_FLAG: u64 = 1 << 9;

/// Whether these flags mask interrupts.
#[inline]
pub fn masks(flags: u64) -> bool {
    flags & INTERRUPT_FLAG == 0
}

/// Whether this code segment belongs to user space: its lowest bits are the privilege level.
#[inline]
pub fn is_user(code_segment: u64) -> bool {
    code_segment & 3 == 3
}

/// Whether this code segment belongs to the kernel.
#[inline]
pub fn is_kernel(code_segment: u64) -> bool {
    code_segment & 3 == 0
}

/// The words on the stack where an interrupt returns: the address to return to, the code segment and the flags.
pub type InterruptFrame = [u64; 3];

/// The words on the stack where the kernel enters after a page fault: the error code, and the address of the
/// instruction that faulted (SDM volume 3, 6.14.2).
pub type FaultFrame = [u64; 2];

/// Whether the instruction could not be fetched, by the error code of a page fault (SDM volume 3, 4.7). It was then not
/// begun.
#[inline]
pub fn is_fetch(error_code: u64) -> bool {
    error_code & 1 << 4 != 0
}

/// The lowest address of the kernel, which has the upper half of the addresses.
pub const KERNEL: u64 = 1 << 63;
/// The end of user space, which has the lower half of the addresses.
pub const USER_END: u64 = 1 << 47;
/// The addresses of the code of the kernel and of its modules (Documentation/arch/x86/x86_64/mm.rst).
pub const CODE: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000;
/// The size of a page in bytes.
pub const PAGE: u64 = 4096;
/// The size of a kernel stack, which is aligned to it (THREAD_SIZE, 16 KiB; arch/x86/include/asm/page_64_types.h).
pub const STACK_BYTES: u64 = 16 << 10;

/// The bits of CR3 that tell address spaces apart. They are not the flags and the identifier in the lower 12 bits, and
/// not the bit of the kernel's and the user's table (arch/x86/include/asm/pgtable.h, PTI_PGTABLE_SWITCH_BIT).
pub const SPACE: u64 = ((1 << 52) - 1) & !0x1fff;

/// The bit of a 32-bit preemption count that says that no reschedule is needed (PREEMPT_NEED_RESCHED,
/// arch/x86/include/asm/preempt.h).
const NO_RESCHED: u32 = 1 << 31;

/// A preemption count in the form of records: 8 bits for preemption off, 8 for bottom halves, 4 for interrupts and 4
/// for NMIs (include/linux/preempt.h before 7.2). The kernel stores these bits and [`NO_RESCHED`]. A stored count that
/// `counts_irqs` has 64 bits: 8 bits for disabled interrupts are between the second and the third group, and the
/// highest bit says that no reschedule is needed. Records have those 8 bits as the highest ones, because they keep
/// preemption off, too.
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
/// clock_nanosleep. Also the calls that arm the timer for which they wait: setitimer, timer_settime
/// (arch/x86/entry/syscalls/syscall_64.tbl). timerfd_settime has no number in 8 bits, and only our own probe uses it.
pub const WATCHED: [u8; 9] = [0, 24, 34, 35, 38, 128, 202, TIMER_SETTIME, CLOCK_NANOSLEEP];
/// The number of `getpid`, by which the probe `cost` marks its batches.
pub const GETPID: u64 = 39;
/// The number of `timer_settime`.
pub const TIMER_SETTIME: u8 = 223;
/// The number of `clock_nanosleep`.
pub const CLOCK_NANOSLEEP: u8 = 230;

/// The name of the interrupt controller's type in QEMU.
pub const INTERRUPT_CONTROLLER: &CStr = c"ioapic";
/// The name of the interrupt controller in messages.
pub const INTERRUPT_CONTROLLER_NAME: &str = "I/O APIC";
/// The message for a machine without this controller.
pub const NO_INTERRUPT_CONTROLLER: &str =
    "the machine has no I/O APIC; use an x86 machine with one";

/// The beginning of the RAM that is read directly. Below it are holes.
pub const RAM_FROM: u64 = 1 << 20;
/// The lowest address at which a PC may have a device that is no RAM (hw/i386/pc_piix.c, `lowmem`). Reading a device
/// has consequences.
pub const DEVICES_FROM: u64 = 0xc000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_count_is_the_same_in_both_forms() {
        // Preemption is off once, bottom halves three times, in an interrupt and an NMI. A reschedule is needed or not.
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
