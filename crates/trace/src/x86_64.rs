// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the crate knows of the processor's architecture, x86-64: the names of the kernel's entries
//! (arch/x86/include/asm/idtentry.h) and the size of its stacks.

/// The entries of interrupts that share an entry.
pub(crate) const SHARED_ENTRIES: &[&str] = &[SHARED_ENTRY, "asm_spurious_interrupt"];
/// The shared entry of devices.
pub(crate) const SHARED_ENTRY: &str = "asm_common_interrupt";
/// The entries of interrupts that have their own.
pub(crate) const OWN_ENTRIES: &[&str] = &["asm_sysvec_*", "asm_exc_nmi"];
/// The beginning of the names of such entries.
pub(crate) const OWN_ENTRY: &str = "asm_sysvec_";
/// The entries of exceptions.
pub(crate) const EXCEPTION_ENTRIES: &[&str] = &["asm_exc_*"];
/// The code between two tasks.
pub(crate) const SWITCH: &[&str] = &["__switch_to_asm"];

/// The beginnings of the names of interrupts' entries. The code outside of such an entry was interrupted by chance. The
/// entries of exceptions are not here: they are part of a task's work.
pub(crate) const INTERRUPTS: [&str; 4] =
    [SHARED_ENTRY, "asm_spurious_interrupt", OWN_ENTRY, "asm_exc_nmi"];
/// The targets of the interrupt table for interrupts, which come whatever the CPU does.
pub(crate) const INTERRUPT_GATES: [&str; 4] =
    ["irq_entries_start", "spurious_entries_start", OWN_ENTRY, "asm_exc_nmi"];
/// The targets of the other gates: of exceptions and calls.
pub(crate) const GATES: [&str; 3] = ["asm_exc_", "asm_int80_emulation", "entry_"];
/// The function that calls the handler of the local timer (arch/x86/kernel/apic/apic.c).
pub(crate) const TIMER_DISPATCHER: &str = "__sysvec_apic_timer_interrupt";

/// The short names in /proc/interrupts of the interrupts that have an entry of their own (arch/x86/kernel/irq.c,
/// `arch_show_interrupts()`).
pub(crate) const INTERRUPT_NAMES: [(&str, &str); 8] = [
    ("asm_sysvec_apic_timer_interrupt", "local timer"),
    ("asm_sysvec_irq_work", "irq work"),
    ("asm_sysvec_reschedule_ipi", "rescheduling"),
    ("asm_sysvec_call_function", "function call"),
    ("asm_sysvec_error_interrupt", "APIC error"),
    ("asm_sysvec_spurious_apic_interrupt", "spurious"),
    ("asm_spurious_interrupt", "spurious"),
    ("asm_exc_nmi", "non-maskable"),
];

/// The logarithm to base 2 of a task's stack size. The stack is aligned to its size (THREAD_SIZE, 16 KiB;
/// arch/x86/include/asm/page_64_types.h).
pub(crate) const STACK_SHIFT: u32 = 14;
