// SPDX-License-Identifier: GPL-2.0-or-later
//! The settings of a machine on which latencies depend (*knobs*): what they are now, how to change them, and how to
//! take every change back.
//!
//! The knobs are data: knobs/*.toml. A change is written to a [`journal`] and made durable there before it is made, so
//! that the next `undo` takes it back however the process, or the machine, ended. All reads and writes are below a root
//! directory: `/` in use, a directory of prepared files in tests.
//!
//! A guest of the rig gets knobs by words of its command line ([`KnobWord`]), and needs no journal.
//!
//! Nothing here measures. Whether a change helps is told by a measurement before it and one after it.

mod boot;
mod card;
mod cpus;
pub mod journal;
mod knob;
mod lock;
mod look;
mod notation;
mod partition;
mod plan;
mod system;
mod thread;
mod tuning;
mod undo;
mod words;

pub use cpus::Cpus;
pub use knob::{KernelSeries, Knob, KnobKind, find, knobs};
pub use look::{Setting, Sighting, State, look};
pub use notation::Notation;
pub use plan::{Change, Plan, PlanError};
pub use system::{Spot, System};
pub use tuning::{Applied, Fate, TuneError, Tuning, entry, status};
pub use undo::{End, Ended, Undone};
pub use words::KnobWord;

#[cfg(test)]
mod tests;
