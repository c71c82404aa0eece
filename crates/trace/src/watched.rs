// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists the functions of the kernel that are watched, what is taken there, and what it means.
//!
//! The list is data. Two users share it: one translates the names to addresses, the other reads the events. [`places`]
//! gives the addresses to watch in their order, and an event names an address by its place in that order.
//!
//! The names were checked against the symbols of Debian's 6.1.0-56, 6.1.0-56-rt, 6.12.117 and 6.12.117-rt for amd64.
//! Where versions differ, each name says so. A function that the compiler cloned has a suffix (`.isra.0`,
//! `.constprop.0`), which the names here leave out; see [`Watched::matches`].

use crate::WindowKind;
use crate::x86_64::{EXCEPTION_ENTRIES, OWN_ENTRIES, SHARED_ENTRIES, SWITCH};
use wire::{Take, WATCHES_MAX};

/// The meaning of a watch's event for the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The first instruction of the entry of the interrupts that share one. The value that is taken is what their stub
    /// pushed: the vector, sign-extended.
    CommonInterrupt,
    /// The first instruction of the entry of an interrupt that has its own.
    Interrupt,
    /// The first instruction of an exception's entry.
    Exception,
    /// The hard handler of our driver.
    Handler,
    /// Somebody wakes the task that is taken.
    WakeUp,
    /// Somebody asks to replace the current task. The value is [`LAZY`] if the request is not urgent, and otherwise 0.
    NeedResched,
    /// The CPU enters the scheduler.
    Schedule,
    /// The scheduler begins to switch to the task that is taken.
    SwitchTo,
    /// The tail of a switch, on the new task's stack.
    SwitchDone,
    /// The CPU begins to serve softirqs.
    Softirq,
    /// One kind of softirq begins.
    SoftirqAction,
    /// A tick: the kernel looks which of its timers are due, and leaves them to a softirq.
    Tick,
    /// The current task did not get a sleeping lock at once. The value is the lock's owner, whose lowest bits are
    /// flags, or 0 if the owner is not known.
    LockOwner,
    /// The current task queues for a sleeping lock, and will sleep. The value is the owner as in `LockOwner`.
    LockWait,
    /// The current task goes to sleep on the sleeping lock that it waited for last.
    LockSleep,
    /// The current task disables migration.
    MigrateDisable,
    /// The current task enables migration again.
    MigrateEnable,
    /// The current task disables bottom halves (only on PREEMPT_RT: elsewhere the preemption count tells). The value is
    /// by how much.
    BhDisable,
    /// The current task enables bottom halves again. The value is by how much.
    BhEnable,
}

/// An end of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The stretch opens, unless it is open.
    Opens,
    /// The stretch closes, if it has then been closed as often as it was opened.
    Closes,
}

impl Role {
    /// The stretches of a task that begin and end with such calls.
    pub const fn edge(self) -> Option<(WindowKind, Edge)> {
        match self {
            Role::MigrateDisable => Some((WindowKind::MigrationOff, Edge::Opens)),
            Role::MigrateEnable => Some((WindowKind::MigrationOff, Edge::Closes)),
            Role::BhDisable => Some((WindowKind::BhOff, Edge::Opens)),
            Role::BhEnable => Some((WindowKind::BhOff, Edge::Closes)),
            _ => None,
        }
    }
}

/// One row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The function's names. Every symbol that matches any of them is watched. A name that ends in `*` is a prefix.
    pub names: &'static [&'static str],
    /// The value to take there.
    pub take: Take,
    /// Whether to take the stack as well, which costs time.
    pub stack: bool,
    /// The meaning of the place.
    pub role: Role,
}

/// The urgency of a request to leave when the task next goes to user space, or at the next tick, and not sooner
/// (`TIF_NEED_RESCHED_LAZY`, since 6.12-rt and 6.13). The kernel asks ordinary tasks that are to share the CPU in this
/// way. For a woken real-time task, the request is urgent.
pub const LAZY: u64 = 1;

/// The offset of `owner` in `struct rt_mutex_base` (include/linux/rtmutex.h): `raw_spinlock_t` of 4 bytes, padding, and
/// `struct rb_root_cached` of 16 come before it. It is the same in 6.1 and 6.12 without lock debugging.
const RT_MUTEX_OWNER: u64 = 24;

const fn watch(names: &'static [&'static str], take: Take, stack: bool, role: Role) -> Watched {
    Watched { names, take, stack, role }
}

/// The list of all watched functions.
pub static WATCHED: &[Watched] = &[
    watch(SHARED_ENTRIES, Take::Top, false, Role::CommonInterrupt),
    watch(OWN_ENTRIES, Take::Nothing, false, Role::Interrupt),
    // The NMI is not one of them: the row above has it, and the first matching row counts.
    watch(EXCEPTION_ENTRIES, Take::Nothing, false, Role::Exception),
    watch(&["onset_run_hardirq"], Take::Nothing, true, Role::Handler),
    watch(&["try_to_wake_up"], Take::First, true, Role::WakeUp),
    watch(&["resched_curr"], Take::Nothing, false, Role::NeedResched),
    // 6.12-rt has both: this one has the flag to set, which tells a lazy request. In other kernels it is inlined or
    // does not exist.
    watch(&["__resched_curr"], Take::Second, false, Role::NeedResched),
    watch(&["__schedule"], Take::Nothing, true, Role::Schedule),
    watch(SWITCH, Take::Second, false, Role::SwitchTo),
    watch(&["finish_task_switch"], Take::Nothing, false, Role::SwitchDone),
    // In each of the four kernels `__do_softirq` only calls this function.
    watch(&["handle_softirqs"], Take::Nothing, false, Role::Softirq),
    watch(
        &[
            "tasklet_action",
            "tasklet_hi_action",
            "net_rx_action",
            "net_tx_action",
            "run_timer_softirq",
            "hrtimer_run_softirq",
            "run_rebalance_domains",
            "sched_balance_softirq",
            "rcu_core_si",
            "blk_done_softirq",
            "irq_poll_softirq",
        ],
        Take::Nothing,
        false,
        Role::SoftirqAction,
    ),
    watch(&["update_process_times"], Take::Nothing, false, Role::Tick),
    // The slow path of PREEMPT_RT's spinlocks. The compiler may inline the next function into it.
    watch(&["rtlock_slowlock_locked"], Take::Word(RT_MUTEX_OWNER), true, Role::LockOwner),
    watch(&["task_blocks_on_rt_mutex"], Take::Word(RT_MUTEX_OWNER), true, Role::LockWait),
    // On PREEMPT_RT a writer takes the lock of writers and then waits for readers, who are not known. So the previous
    // owner of the writers' lock is not the task that this one waits for.
    watch(
        &["rt_write_lock", "down_write", "down_write_killable", "down_write_nested"],
        Take::Nothing,
        false,
        Role::LockOwner,
    ),
    // `rt_mutex_schedule` exists since 6.6.
    watch(&["schedule_rtlock", "rt_mutex_schedule"], Take::Nothing, false, Role::LockSleep),
    watch(&["migrate_disable"], Take::Nothing, true, Role::MigrateDisable),
    watch(&["migrate_enable"], Take::Nothing, true, Role::MigrateEnable),
    watch(&["__local_bh_disable_ip"], Take::Count, true, Role::BhDisable),
    watch(&["__local_bh_enable_ip"], Take::Count, true, Role::BhEnable),
];

impl Watched {
    /// Whether a symbol of the kernel is this function, or a clone that the compiler made of it. `.isra.N`
    /// (interprocedural scalar replacement) and `.constprop.N` (constant propagation) are whole functions. `.part.N`
    /// and `.cold` are only parts of one.
    pub fn matches(&self, symbol: &str) -> bool {
        self.names.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => symbol.starts_with(prefix),
            None => symbol.strip_prefix(name).is_some_and(is_clone_suffix),
        })
    }
}

fn is_clone_suffix(mut suffix: &str) -> bool {
    while !suffix.is_empty() {
        let Some(rest) = [".isra.", ".constprop."].iter().find_map(|k| suffix.strip_prefix(k))
        else {
            return false;
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return false;
        }
        suffix = &rest[digits..];
    }
    true
}

/// One address to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watch {
    /// The index into [`WATCHED`].
    pub index: u8,
    /// The address of the function's first instruction.
    pub address: u64,
}

/// The addresses to watch in a kernel with these symbols, at most [`WATCHES_MAX`]. Also the indices whose meaning none
/// of these addresses tells. Views that need these are missing.
pub fn places<'a>(symbols: impl IntoIterator<Item = (&'a str, u64)>) -> (Vec<Watch>, Vec<u8>) {
    let mut found = Vec::new();
    for (symbol, address) in symbols {
        let index = (0..).zip(WATCHED).find(|(_, w)| w.matches(symbol)).map(|(i, _)| i);
        if let Some(index) = index {
            found.push(Watch { index, address });
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(WATCHES_MAX);
    // An index is not missing if another function tells the same.
    let told = |role: Role| found.iter().any(|w| WATCHED[usize::from(w.index)].role == role);
    let missing = (0..).zip(WATCHED).filter(|(_, w)| !told(w.role)).map(|(i, _)| i);
    let missing = missing.collect();
    (found, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(role: Role) -> &'static Watched {
        WATCHED.iter().find(|w| w.role == role).expect("every role is in the list")
    }

    #[test]
    fn a_clone_is_the_function_and_a_part_of_one_is_not() {
        let done = watched(Role::SwitchDone);
        assert!(done.matches("finish_task_switch.isra.0"));
        assert!(done.matches("finish_task_switch.constprop.0.isra.12"));
        assert!(!done.matches("finish_task_switch.cold"));
        assert!(!done.matches("finish_task_switch.isra.0.cold"));
        assert!(!done.matches("finish_task_switch_rcu"));
        assert!(!done.matches("finish_task_switch.isra."));
    }

    #[test]
    fn each_symbol_has_one_watch_and_missing_ones_are_named() {
        let symbols =
            [("asm_exc_nmi", 1), ("asm_exc_page_fault", 2), ("__schedule", 3), ("printk", 4)];
        let (found, missing) = places(symbols);
        let meaning = |w: &Watch| (WATCHED[usize::from(w.index)].role, w.address);
        let roles: Vec<_> = found.iter().map(meaning).collect();
        assert_eq!(roles, [(Role::Interrupt, 1), (Role::Exception, 2), (Role::Schedule, 3),]);
        assert_eq!(missing.len(), WATCHED.len() - 3);
        let (_, missing) = places([("resched_curr", 1)]);
        assert_eq!(missing.len(), WATCHED.len() - 2, "one of two that tell the same is enough");
    }
}
