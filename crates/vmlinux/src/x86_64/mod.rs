// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the crate knows of the processor's architecture, x86-64.
//!
//! [`payload`](mod@payload) finds the kernel in a `bzImage`. [`orc`] reads the unwind table that only x86 kernels have
//! in this form, and [`unwind`](mod@unwind) follows stacks by it. `thunks` adds to the table what it leaves open, and
//! `instructions` reads a function's code. This file has the addresses and the names.

#[cfg(feature = "image")]
pub(crate) mod instructions;
pub(crate) mod orc;
#[cfg(feature = "image")]
pub(crate) mod payload;
#[cfg(feature = "image")]
pub(crate) mod thunks;
pub(crate) mod unwind;

/// The `e_machine` of x86-64 in an ELF file.
#[cfg(feature = "image")]
pub(crate) const ELF_MACHINE: u16 = 62;
/// The name of what an ELF file of another machine is not, for messages.
pub(crate) const KERNEL_IMAGE: &str = "x86-64 kernel";
/// The path of the bootable image in a kernel's build tree.
pub(crate) const IMAGE_OF_A_BUILD: &str = "arch/x86/boot/bzImage";

/// The address at which the kernel is linked (`__START_KERNEL_map`).
#[cfg(feature = "image")]
pub(crate) const LINKED_FROM: u64 = 0xffff_ffff_8000_0000;
/// The upper half of every address of code: kernel and modules lie in the last 2 GiB
/// (Documentation/arch/x86/x86_64/mm.rst).
pub(crate) const UPPER: u64 = 0xffff_ffff;
/// The lowest address of the kernel. User space is below it (Documentation/arch/x86/x86_64/mm.rst).
const KERNEL: u64 = 1 << 63;
/// The bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The function in which a new task begins. Since 6.6 its assembler part has another name than the C function it calls.
#[cfg(feature = "image")]
pub(crate) const NEW_TASK: [&str; 2] = ["ret_from_fork_asm", "ret_from_fork"];

/// The structure in which 6.2 … 6.14 keep a CPU's most used variables.
#[cfg(feature = "image")]
pub(crate) const HOT: &str = "pcpu_hot";
/// The preemption count: the name of the CPU's variable, and its name in [`HOT`].
#[cfg(feature = "image")]
pub(crate) const PREEMPT_COUNT: [&str; 2] = ["__preempt_count", "preempt_count"];
/// The running task: the name of the CPU's variable, and its name in [`HOT`].
#[cfg(feature = "image")]
pub(crate) const CURRENT_TASK: [&str; 2] = ["current_task", "current_task"];
