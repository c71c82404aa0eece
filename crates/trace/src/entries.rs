// SPDX-License-Identifier: GPL-2.0-or-later
//! Knows the kernel's entries for interrupts and softirqs by name, and which function each of them called. So a stack
//! says what runs in an interrupt or a softirq.
//!
//! The names are those of frames, `symbol+0x12 [module]`. An entry alone says little: the local timer's entry serves
//! the scheduler's tick and every other timer. A stack that was taken inside shows which function the entry called.

use crate::x86_64::{
    GATES, INTERRUPT_GATES, INTERRUPT_NAMES, INTERRUPTS, OWN_ENTRY, SHARED_ENTRY, TIMER_DISPATCHER,
};

/// Functions that call handlers which others registered. Each call of them is for one of these handlers
/// ([`TIMER_DISPATCHER`], kernel/irq/handle.c, kernel/time/hrtimer.c and timer.c, kernel/softirq.c, net/core/dev.c,
/// block/blk-mq.c, lib/irq_poll.c, kernel/irq_work.c, kernel/smp.c, kernel/rcu/tree.c).
const DISPATCHERS: [&str; 14] = [
    TIMER_DISPATCHER,
    "__handle_irq_event_percpu",
    "__hrtimer_run_queues",
    "call_timer_fn",
    "expire_timers",
    "handle_softirqs",
    "__do_softirq",
    "tasklet_action_common",
    "__napi_poll",
    "blk_complete_reqs",
    "irq_poll_softirq",
    "irq_work_single",
    "__flush_smp_call_function_queue",
    "rcu_do_batch",
];
/// The functions that serve softirqs. On PREEMPT_RT the threads that serve them disable bottom halves, and with them
/// migration, before they call the first two functions.
const SOFTIRQS: [&str; 4] = ["handle_softirqs", "__do_softirq", "run_ksoftirqd", "run_ktimerd"];

/// The names of the softirqs of these functions in /proc/softirqs (kernel/softirq.c, `softirq_to_name`).
const SOFTIRQ_NAMES: [(&str, &str); 11] = [
    ("tasklet_hi_action", "hi"),
    ("run_timer_softirq", "timer"),
    ("net_tx_action", "net_tx"),
    ("net_rx_action", "net_rx"),
    ("blk_done_softirq", "block"),
    ("irq_poll_softirq", "irq_poll"),
    ("tasklet_action", "tasklet"),
    ("run_rebalance_domains", "sched"),
    ("sched_balance_softirq", "sched"),
    ("hrtimer_run_softirq", "hrtimer"),
    ("rcu_core_si", "rcu"),
];

/// The part of a stack in which the callee is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The innermost interrupt.
    Interrupt,
    /// The innermost softirqs, without the code that they interrupted.
    Softirq,
}

/// The function that an entry called, in a stack that was taken inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callee<'a> {
    /// The frames from the innermost out to the entry; never empty.
    pub inside: &'a [String],
    /// The frame of the function that was called.
    at: usize,
    /// The number of dispatchers that called it, one through the other. The entry counts as one. A greater depth says
    /// more.
    pub depth: usize,
}

impl<'a> Callee<'a> {
    /// The callee in this stack, whose innermost frame is the first: the function that the innermost dispatcher called,
    /// or the entry itself. `None` for an empty stack, and for softirqs if the stack has no entry of theirs. A stack
    /// without an interrupt's entry counts as a stack inside one.
    pub fn of(of: Of, stack: &'a [String]) -> Option<Callee<'a>> {
        let inside = match of {
            Of::Softirq => {
                let served = stack.iter().position(|frame| serves_softirqs(frame))?;
                let nested = stack[..served].iter().rposition(|frame| is_interrupt(frame));
                &stack[nested.map_or(0, |entry| entry + 1)..=served]
            }
            Of::Interrupt => &stack[..interrupt(stack).map_or(stack.len(), |entry| entry + 1)],
        };
        let dispatches = |frame: &String| {
            is_one_of(frame, &DISPATCHERS) || is_interrupt(frame) || is_gate(frame)
        };
        let dispatchers = || inside.iter().enumerate().filter(|(_, frame)| dispatches(frame));
        let at = dispatchers().next().map_or(0, |(at, _)| at.saturating_sub(1));
        let depth = dispatchers().filter(|(dispatcher, _)| *dispatcher > at).count();
        (!inside.is_empty()).then_some(Callee { inside, at, depth })
    }

    /// The frames from the called function out to the entry.
    pub fn frames(&self) -> &'a [String] {
        &self.inside[self.at..]
    }

    /// The called function, without its module.
    pub fn function(&self) -> &'a str {
        function(&self.inside[self.at])
    }

    /// Whether another function than the entry called it. In this case it says more than the entry.
    pub fn is_handler(&self) -> bool {
        self.depth > 1
    }
}

/// The place of the innermost interrupt's entry in a stack.
pub(crate) fn interrupt(stack: &[String]) -> Option<usize> {
    stack.iter().position(|frame| is_interrupt(frame))
}

/// Whether a frame is in an interrupt's entry.
pub(crate) fn is_interrupt(frame: &str) -> bool {
    begins(frame, &INTERRUPTS)
}

/// Whether a frame is at the target of an interrupt's gate, and not of an exception's or a call's.
pub fn is_interrupt_gate(frame: &str) -> bool {
    begins(frame, &INTERRUPT_GATES)
}

/// Whether a frame is in the entry of an interrupt, an exception or a call. A stretch that such an entry began belongs
/// to it.
pub(crate) fn is_gate(frame: &str) -> bool {
    is_interrupt_gate(frame) || begins(frame, &GATES)
}

/// Whether a frame is in a function that serves softirqs.
pub(crate) fn serves_softirqs(frame: &str) -> bool {
    is_one_of(frame, &SOFTIRQS)
}

/// A stack up to the entry of the innermost interrupt. The interrupted code is no reason why something began in the
/// interrupt.
pub(crate) fn until_interrupt(mut stack: Vec<String>) -> Vec<String> {
    stack.truncate(interrupt(&stack).map_or(stack.len(), |entry| entry + 1));
    stack
}

/// The interrupted part of a stack that was taken in an interrupt. Any other stack stays as it is.
pub(crate) fn interrupted(mut stack: Vec<String>) -> Vec<String> {
    match stack.iter().rposition(|frame| is_interrupt(frame)) {
        Some(entry) if entry + 1 < stack.len() => stack.split_off(entry + 1),
        _ => stack,
    }
}

/// The usual name of the interrupt with this entry. Empty if several interrupts share the entry; the vector tells more.
pub(crate) fn interrupt_name(entry: &str) -> &str {
    let entry = function(entry);
    let known = INTERRUPT_NAMES.iter().find(|(prefix, _)| entry.starts_with(prefix));
    match known {
        Some((_, name)) => name,
        None if entry == SHARED_ENTRY => "",
        None => entry.strip_prefix(OWN_ENTRY).unwrap_or(entry),
    }
}

/// The usual name of the softirq whose action is this function.
pub(crate) fn softirq_name(action: &str) -> &str {
    let known = SOFTIRQ_NAMES.iter().find(|(name, _)| is_one_of(action, &[name]));
    known.map_or(function(action), |(_, name)| name)
}

/// The `function [module]` of a frame, without the place in the function.
pub fn without_place(frame: &str) -> String {
    let (symbol, module) = frame.split_at(frame.find(" [").unwrap_or(frame.len()));
    format!("{}{module}", function(symbol))
}

fn begins(frame: &str, names: &[&str]) -> bool {
    names.iter().any(|name| frame.starts_with(name))
}

/// Whether a frame is in one of these functions, or in a clone that the compiler made of one.
pub(crate) fn is_one_of(frame: &str, names: &[&str]) -> bool {
    let name = function(frame);
    names
        .iter()
        .any(|n| name.strip_prefix(n).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The function of a frame, without the place in the function.
fn function(frame: &str) -> &str {
    frame.split_once('+').map_or(frame, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn callee(of: Of, names: &[&str]) -> Option<(String, usize, usize)> {
        let stack = stack(names);
        let callee = Callee::of(of, &stack)?;
        Some((callee.function().into(), callee.frames().len(), callee.depth))
    }

    #[test]
    fn whom_an_interrupt_called_is_found_through_all_that_call_handlers() {
        let tick = [
            "update_curr+0x1",
            "tick_nohz_handler+0x9",
            "__hrtimer_run_queues+0x10f",
            "hrtimer_interrupt+0xf6",
            "__sysvec_apic_timer_interrupt+0x55",
            "sysvec_apic_timer_interrupt+0x6e",
            "asm_sysvec_apic_timer_interrupt+0x1a",
            "handle_softirqs+0x80",
        ];
        let of = |from: usize| callee(Of::Interrupt, &tick[from..]);
        assert_eq!(of(0), Some(("tick_nohz_handler".into(), 6, 3)));
        assert_eq!(of(1), of(0));
        // Stacks further out say less: the way to the handler and back.
        assert_eq!(of(3), Some(("hrtimer_interrupt".into(), 4, 2)));
        assert_eq!(of(6), Some(("asm_sysvec_apic_timer_interrupt".into(), 1, 0)));
        assert_eq!(callee(Of::Interrupt, &[]), None);
    }

    #[test]
    fn softirqs_are_looked_for_outside_of_what_interrupted_them() {
        let net = [
            "process_backlog+0x9",
            "__napi_poll+0x2b",
            "net_rx_action+0x2f",
            "handle_softirqs+0xd9",
        ];
        let found = Some(("process_backlog".into(), 4, 2));
        assert_eq!(callee(Of::Softirq, &net), found);
        let nested = [&["ktime_get+0x1", "asm_sysvec_x+0x1a", "ip_rcv+0x1"], &net[..]].concat();
        assert_eq!(callee(Of::Softirq, &nested), found);
        assert_eq!(callee(Of::Softirq, &net[..2]), None);
    }

    #[test]
    fn interrupts_and_softirqs_have_the_names_that_proc_has_for_them() {
        let interrupts = [
            ("asm_sysvec_apic_timer_interrupt+0x0", "local timer"),
            ("asm_sysvec_call_function_single+0x0", "function call"),
            ("asm_sysvec_x86_platform_ipi+0x0", "x86_platform_ipi"),
            ("asm_common_interrupt+0x0", ""),
            ("0xffffffff82000010", "0xffffffff82000010"),
        ];
        interrupts.iter().for_each(|(entry, name)| assert_eq!(interrupt_name(entry), *name));
        let softirqs = [
            ("net_rx_action+0x0", "net_rx"),
            ("tasklet_action+0x0", "tasklet"),
            ("tasklet_hi_action.constprop.0+0x0", "hi"),
            ("another_action+0x0", "another_action"),
        ];
        softirqs.iter().for_each(|(action, name)| assert_eq!(softirq_name(action), *name));
        for frame in ["test_softirq+0x9 [m]", "test_softirq [m]"] {
            assert_eq!(without_place(frame), "test_softirq [m]");
        }
        assert_eq!(without_place("0xffffffffc0000000"), "0xffffffffc0000000");
    }

    #[test]
    fn gates_of_interrupts_are_told_from_those_of_exceptions_and_calls() {
        let interrupts = ["irq_entries_start+0x90", "asm_sysvec_irq_work+0x0", "asm_exc_nmi+0x0"];
        let others = ["asm_exc_page_fault+0x0", "entry_SYSCALL_64+0x0", "asm_int80_emulation+0x0"];
        assert!(interrupts.iter().all(|gate| is_interrupt_gate(gate) && is_gate(gate)));
        assert!(others.iter().all(|gate| !is_interrupt_gate(gate) && is_gate(gate)));
        assert!(!is_gate("__schedule+0xb9"));
    }

    #[test]
    fn what_was_interrupted_is_what_the_task_did() {
        let cut = |names: &[&str]| interrupted(stack(names));
        let nested = [
            "try_to_wake_up+0x0",
            "asm_common_interrupt+0x26",
            "clear_page+0xb",
            "asm_exc_page_fault+0x26",
        ];
        assert_eq!(cut(&nested), ["clear_page+0xb", "asm_exc_page_fault+0x26"]);
        let twice = ["a", "asm_sysvec_x+0x1", "b", "asm_exc_nmi+0x26", "c"];
        assert_eq!(cut(&twice), ["c"]);
        assert_eq!(cut(&["a", "asm_spurious_interrupt+0x1", "b"]), ["b"]);
    }

    #[test]
    fn a_stack_without_an_interrupt_or_with_nothing_behind_it_stays() {
        let cut = |names: &[&str]| interrupted(stack(names));
        assert_eq!(cut(&["a", "asm_exc_page_fault+0x26"]), ["a", "asm_exc_page_fault+0x26"]);
        assert_eq!(cut(&["a", "asm_sysvec_x+0x1"]), ["a", "asm_sysvec_x+0x1"]);
        assert_eq!(cut(&[]), Vec::<String>::new());
    }
}
