// SPDX-License-Identifier: GPL-2.0-or-later
//! What the plugin is told to follow of a guest's kernel: a [`Map`]'s facts, in the words of
//! `crates/plugin/src/follow/plan.rs`.

use std::fmt::Write;
use std::path::Path;
use vmlinux::Map;

/// Entries by which the kernel is called, besides the gates of the interrupt table (arch/x86/entry/entry_64*.S). All of
/// them mask interrupts.
const CALLS: [&str; 5] = [
    "entry_SYSCALL_64",
    "entry_SYSCALL_compat",
    "entry_SYSENTER_compat",
    "entry_INT80_compat",
    "asm_int80_emulation",
];
/// The gates of exceptions and of the interrupts that have an entry of their own.
const GATES: [&str; 2] = ["asm_exc_", "asm_sysvec_"];
/// The stubs of the other interrupts, one after the other, up to the first symbol behind them
/// (arch/x86/include/asm/idtentry.h).
const STUBS: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// A place to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Its address.
    pub address: u64,
    /// What to take there.
    pub take: Take,
    /// Whether to take the stack.
    pub stack: bool,
}

/// What to take at a watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Nothing.
    Nothing,
    /// The first argument.
    First,
    /// The second argument.
    Second,
    /// The word at this offset from where the first argument points to.
    Word(u64),
    /// The word on top of the stack.
    Top,
}

/// The plan of a follower: everything that `map` knows of, with `watches` in their order; stretches of fewer than
/// `stacks_from` instructions get no stack.
pub fn plan(map: &Map, path: &Path, watches: &[Watch], stacks_from: u64) -> String {
    let mut plan = format!("stacks_from {stacks_from}\n");
    let mut line = |words: std::fmt::Arguments| writeln!(plan, "{words}").expect("text takes all");
    if map.unwinds() {
        line(format_args!("map {}", path.display()));
    }
    let named = CALLS.iter().filter_map(|name| map.address(name));
    let prefixed = GATES.iter().flat_map(|prefix| map.with_prefix(prefix)).map(|(_, at)| at);
    for gate in named.chain(prefixed) {
        line(format_args!("gate {gate:#x} {:#x}", gate + 1));
    }
    for start in STUBS.iter().filter_map(|name| map.address(name)) {
        let end = map.symbols().map(|(_, at, _)| at).filter(|at| *at > start).min();
        line(format_args!("gate {start:#x} {:#x}", end.unwrap_or(start + 1)));
    }
    let layout = map.layout();
    if let Some(offset) = layout.preempt_count {
        line(format_args!("preempt {offset:#x}"));
    }
    if let (Some(current), Some(pid), Some(comm), Some(prio)) =
        (layout.current_task, layout.pid, layout.comm, layout.prio)
    {
        line(format_args!("current {current:#x}"));
        line(format_args!("task {pid} {comm} {prio}"));
    }
    for watch in watches {
        let take = match watch.take {
            Take::Nothing => "nothing".to_string(),
            Take::First => "first".to_string(),
            Take::Second => "second".to_string(),
            Take::Word(offset) => offset.to_string(),
            Take::Top => "top".to_string(),
        };
        let stack = if watch.stack { " stack" } else { "" };
        line(format_args!("watch {:#x} {take}{stack}", watch.address));
    }
    plan
}
