// SPDX-License-Identifier: GPL-2.0-or-later
//! What the windows of one row have in common: the stack that opened them, as far as it says why they were open. If
//! this stack says too little, also the handler that ran inside.

use crate::entries::{Callee, Of, interrupt, is_gate, serves_softirqs};

/// What the windows of one row share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// The opener, innermost first, up to an interrupt's entry.
    pub stack: Vec<String>,
    /// The handler, if interrupts or softirqs opened the windows.
    pub handler: Option<String>,
}

impl Origin {
    /// The origin of a window with these stacks, whose innermost frame is the first. Empty stacks are unknown ones.
    pub fn of(mut stack: Vec<String>, inside: &[String]) -> Origin {
        let by_gate = stack.first().is_some_and(|frame| is_gate(frame));
        let entry = if by_gate { Some(0) } else { interrupt(&stack) };
        stack.truncate(entry.map_or(stack.len(), |entry| entry + 1));
        let serves = stack.iter().any(|frame| serves_softirqs(frame));
        let handler = (entry.is_some() || serves).then(|| handler(inside, serves)).flatten();
        Origin { stack, handler }
    }
}

/// The function that the softirqs, or the interrupt, called.
fn handler(inside: &[String], serves: bool) -> Option<String> {
    let softirq = Callee::of(Of::Softirq, inside).filter(|_| serves);
    softirq.or_else(|| Callee::of(Of::Interrupt, inside)).map(|callee| callee.function().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stack: &[&str], inside: &[&str]) -> Origin {
        let inside: Vec<String> = inside.iter().map(|frame| frame.to_string()).collect();
        Origin::of(stack.iter().map(|frame| frame.to_string()).collect(), &inside)
    }

    #[test]
    fn what_an_interrupt_interrupted_is_no_part_of_why_a_window_opened() {
        let [one, other] = ["clear_page+0xb", "vfs_read+0x7"].map(|interrupted| {
            of(&["asm_sysvec_apic_timer_interrupt+0x0", interrupted, "do_syscall_64+0x1"], &[])
        });
        assert_eq!(one.stack, ["asm_sysvec_apic_timer_interrupt+0x0"]);
        assert_eq!(one, other);
        let inner =
            of(&["irq_enter_rcu+0x5", "sysvec_x+0x9", "asm_sysvec_x+0x1a", "clear_page+0xb"], &[]);
        assert_eq!(inner.stack, ["irq_enter_rcu+0x5", "sysvec_x+0x9", "asm_sysvec_x+0x1a"]);
        // A page fault is part of the task's work, but not of the entry's.
        let fault =
            ["__raw_spin_lock+0x1", "exc_page_fault+0x9", "asm_exc_page_fault+0x22", "read+0x1"];
        assert_eq!(of(&fault, &[]).stack, fault);
        assert_eq!(
            of(&["asm_exc_page_fault+0x0", "read+0x1"], &[]).stack,
            ["asm_exc_page_fault+0x0"]
        );
    }

    #[test]
    fn handlers_of_one_entry_are_told_apart_by_who_was_called_and_not_by_what_it_called() {
        let entry = ["asm_sysvec_apic_timer_interrupt+0x0", "vfs_read+0x7"];
        let inside = |called: &[&'static str]| {
            let around = [
                "__hrtimer_run_queues+0x10f",
                "sysvec_x+0x6e",
                "asm_sysvec_apic_timer_interrupt+0x1a",
            ];
            let interrupted = ["tasklet_action_common+0x1", "handle_softirqs+0xd9"];
            of(&entry, &[called, &around, &interrupted].concat())
        };
        let tick = inside(&["update_curr+0x1", "tick_nohz_handler+0x9"]);
        assert_eq!(tick, inside(&["ktime_get+0x1", "tick_nohz_handler+0x20"]));
        assert_eq!(tick.handler.as_deref(), Some("tick_nohz_handler"));
        assert_ne!(tick, inside(&["other_timer+0x1 [module]"]));
        assert_eq!(inside(&[]).handler.as_deref(), Some("__hrtimer_run_queues"));
    }

    #[test]
    fn softirqs_are_told_apart_and_other_windows_are_not() {
        let served = ["handle_softirqs+0x40", "run_ksoftirqd+0x2a"];
        let inside =
            ["test_softirq+0x9 [m]", "tasklet_action_common.isra.0+0xb9", "handle_softirqs+0xd9"];
        assert_eq!(of(&served, &inside).handler.as_deref(), Some("test_softirq"));
        let nested = [&["ktime_get+0x1", "asm_sysvec_x+0x1a"][..], &inside].concat();
        assert_eq!(of(&served, &nested).handler.as_deref(), Some("test_softirq"));
        let thread = ["migrate_disable+0x0", "__local_bh_disable_ip+0x72", "run_ksoftirqd+0x17"];
        assert_eq!(of(&thread, &inside).handler.as_deref(), Some("test_softirq"));
        let locked = ["_raw_spin_lock_irqsave+0x9", "f+0x1"];
        assert_eq!(of(&locked, &["g+0x1", "f+0x3"]), of(&locked, &["h+0x1", "f+0x5"]));
        assert_eq!(of(&[], &["g+0x1"]).handler, None);
    }
}
