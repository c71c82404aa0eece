// SPDX-License-Identifier: GPL-2.0-or-later
//! What windows have in common that are one row: the stack that opened them, as far as it says why they were open, and
//! where it says too little, the handler that ran inside.

/// The entries of interrupts (arch/x86/include/asm/idtentry.h): what is outside of one was interrupted by chance.
const INTERRUPTS: [&str; 4] =
    ["asm_common_interrupt", "asm_spurious_interrupt", "asm_sysvec_", "asm_exc_nmi"];
/// All gates: a window that one of them opened is the interrupt's, exception's or call's.
const GATES: [&str; 6] = [
    "irq_entries_start",
    "spurious_entries_start",
    "asm_sysvec_",
    "asm_exc_",
    "asm_int80_emulation",
    "entry_",
];
/// Functions that call handlers that others registered, for one of which they are entered (kernel/irq/handle.c,
/// kernel/time/hrtimer.c and timer.c, kernel/softirq.c, net/core/dev.c, kernel/irq_work.c, kernel/smp.c,
/// kernel/rcu/tree.c).
const DISPATCHERS: [&str; 11] = [
    "__handle_irq_event_percpu",
    "__hrtimer_run_queues",
    "call_timer_fn",
    "expire_timers",
    "handle_softirqs",
    "__do_softirq",
    "tasklet_action_common",
    "__napi_poll",
    "irq_work_single",
    "__flush_smp_call_function_queue",
    "rcu_do_batch",
];
/// What serves softirqs, whose windows say nothing of which. On PREEMPT_RT the threads that do so disable bottom halves, and
/// with them migration, before they call the first two.
const SOFTIRQS: [&str; 4] = ["handle_softirqs", "__do_softirq", "run_ksoftirqd", "run_ktimerd"];

/// What one row's windows share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// Who opened them, innermost first, up to an interrupt's entry.
    pub stack: Vec<String>,
    /// Of those that interrupts and softirqs open, the handler.
    handler: Option<String>,
}

impl Origin {
    /// Of a window with these stacks, innermost frame first; empty where there are none.
    pub fn of(mut stack: Vec<String>, inside: &[String]) -> Origin {
        let by_gate = stack.first().is_some_and(|frame| begins(frame, &GATES));
        let entry = if by_gate { Some(0) } else { entry(&stack) };
        stack.truncate(entry.map_or(stack.len(), |entry| entry + 1));
        let serves = stack.iter().any(|frame| is_one_of(frame, &SOFTIRQS));
        let handler = (entry.is_some() || serves).then(|| handler(inside, serves)).flatten();
        Origin { stack, handler }
    }
}

/// The function that the innermost dispatcher called, or the interrupt's entry; of the innermost interrupt, or of the
/// softirqs, in which case what interrupted them is left out.
fn handler(inside: &[String], serves: bool) -> Option<String> {
    let served = inside.iter().position(|frame| serves && is_one_of(frame, &SOFTIRQS));
    let inside = match served {
        Some(served) => {
            let nested = inside[..served].iter().rposition(|frame| begins(frame, &INTERRUPTS));
            &inside[nested.map_or(0, |entry| entry + 1)..=served]
        }
        None => &inside[..entry(inside).map_or(inside.len(), |entry| entry + 1)],
    };
    let dispatches = |frame: &String| {
        is_one_of(frame, &DISPATCHERS) || begins(frame, &INTERRUPTS) || begins(frame, &GATES)
    };
    let called = inside.iter().position(dispatches).map_or(0, |at| at.saturating_sub(1));
    inside.get(called).map(|frame| function(frame).into())
}

/// The innermost interrupt's entry.
fn entry(stack: &[String]) -> Option<usize> {
    stack.iter().position(|frame| begins(frame, &INTERRUPTS))
}

fn begins(frame: &str, names: &[&str]) -> bool {
    names.iter().any(|name| frame.starts_with(name))
}

/// Whether a frame is in one of these functions, or in a clone that the compiler made of it.
fn is_one_of(frame: &str, names: &[&str]) -> bool {
    let name = function(frame);
    names
        .iter()
        .any(|n| name.strip_prefix(n).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The function of a frame, without the place in it.
fn function(frame: &str) -> &str {
    frame.split_once('+').map_or(frame, |(name, _)| name)
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
        // A page fault is part of what the task does, but not of what the entry does.
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
