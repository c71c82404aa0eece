// SPDX-License-Identifier: GPL-2.0-or-later
//! What a follower of the guest's kernel saw, made into answers: which stretches ran with interrupts or preemption off,
//! and where each nanosecond of a latency went.
//!
//! The vantage point is outside: records of masked interrupts, of the preemption count, of switches and of calls of a few
//! kernel functions ([`WATCHED`]), each with exact virtual time. Nothing here reads files or runs programs; names of
//! addresses come through [`Symbols`]. One CPU: the rig has one.

mod blame;
mod bound;
mod cpu;
mod entries;
mod excerpt;
mod functions;
mod ledger;
mod partition;
mod perfetto;
mod reader;
mod sum;
mod symbols;
mod vcd;
mod watched;
mod windows;

pub use blame::{
    Blame, Cause, CauseReport, Disturbed, Explanation, ExplanationReport, FELT_FOR, History,
    LatencyKind, PartReport, Stage, Unexplainable,
};
pub use bound::{Bound, BoundMeter, BoundReport, Term, TermReport, Unbounded, scheduling};
pub use cpu::{Activity, Interrupt};
pub use entries::{is_interrupt_gate, without_place};
pub use excerpt::Excerpt;
pub use ledger::{Ledger, LedgerReport, LedgerRow};
pub use partition::{Backwards, Partition, Segment};
pub use perfetto::perfetto;
pub use reader::{
    At, Event, Place, Reader, ReaderLosses, StackId, Stacks, Task, TaskId, Tasks, What,
};
pub use sum::Sum;
pub use symbols::{Symbols, named};
pub use vcd::vcd;
pub use watched::{Edge, LAZY, Role, WATCHED, Watch, Watched, places};
pub use windows::{
    Bucket, Cuts, Key, Length, Longest, Order, Parts, Tally, WindowKind, WindowRow, Windows,
    WindowsReport,
};
