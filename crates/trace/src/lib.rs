// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes answers of what a follower of the guest's kernel saw: which stretches ran with interrupts or preemption off,
//! and where each nanosecond of a latency went.
//!
//! The follower sees the kernel from outside: events of masked interrupts, of the preemption count, of switches and of
//! calls of a few kernel functions ([`WATCHED`]), each with exact virtual time. Nothing here reads files or runs
//! programs. The names of addresses come through [`Symbols`]. There is one CPU, because the rig has one.

mod blame;
mod bound;
mod cpu;
mod entries;
mod excerpt;
mod functions;
mod ledger;
mod partition;
mod perfetto;
mod priority;
mod reader;
mod sum;
mod symbols;
mod vcd;
mod waits;
mod watched;
mod windows;
mod x86_64;

pub use blame::{
    Beginning, Blame, Cause, CauseReport, Disturbed, Explanation, ExplanationReport, FELT_FOR,
    History, LatencyKind, PartReport, Stage, Unexplainable,
};
pub use bound::{Bound, BoundMeter, BoundReport, Term, TermReport, Unbounded, scheduling};
pub use cpu::{Activity, Interrupt};
pub use entries::{is_interrupt_gate, without_place};
pub use excerpt::Excerpt;
pub use ledger::{Ledger, LedgerReport, LedgerRow};
pub use partition::{Backwards, Partition, Segment};
pub use perfetto::perfetto;
pub use reader::{Event, Place, Reader, ReaderLosses, Stacks, Task, Tasks, What};
pub use sample::At;
pub use sum::Sum;
pub use symbols::{Symbols, named};
pub use vcd::vcd;
pub use waits::{Wait, Waits};
pub use watched::{Edge, LAZY, Role, WATCHED, Watch, Watched, places};
pub use windows::{
    Cuts, Length, Longest, Order, Tally, TimeParts, WindowBucket, WindowKey, WindowKind, WindowRow,
    Windows, WindowsReport,
};
pub use wire::{StackId, TaskId};

/// Lists the words of an enum that is the key of a map, so that the map's schema has no other keys.
#[cfg(feature = "schema")]
pub fn words(schema: &mut schemars::Schema) {
    let kinds = schema.get("oneOf").and_then(|kinds| kinds.as_array()).into_iter().flatten();
    let words: Vec<_> = kinds.filter_map(|kind| kind.get("const").cloned()).collect();
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words.into());
}
