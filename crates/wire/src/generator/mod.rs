// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator protocol: what a host and a generator of triggers say to each other over TCP or a serial line.
//! `docs/generator-protocol.md` says all of it, for whoever writes a generator from that page alone.
//! `golden/generator.txt` has bytes of each message, and `golden/generator-read.txt` what they say.
//!
//! The same bytes come from a session of the rig (virtual time) and from a microcontroller with a counter. Nothing
//! here allocates, so that both sides can use all of it. A generator takes [`Deframer`], [`Desk`] and [`Batcher`]; a
//! host takes [`Deframer`], [`Report::decode`] and [`Receipt`].
//!
//! A generator never waits for its reader. It throws away a batch that has no room and counts what was in it; each
//! batch says how many measurements were made before it, so that the host also counts what the line lost.

mod batch;
mod batcher;
mod desk;
mod encoding;
mod fields;
mod frame;
mod limits;
mod list;
mod message;
mod receipt;
mod units;

pub use batch::{Batch, Measurement, Tallies, Tally};
pub use batcher::Batcher;
pub use desk::{Deed, Desk};
pub use encoding::Unreadable;
pub use frame::{
    DELIMITER, Damaged, Deframer, FRAME_MAX, Frame, PAYLOAD_MAX, STUFFED_MAX, checksum,
};
pub use limits::{Held, Limits, Range, Setting, Settings};
pub use list::{Item, List, Misfit};
pub use message::{
    Accepted, Clock, Command, Ended, Identity, Kind, Refused, Report, Run, SelfTest, Started,
    Stopped, Timing, Train, Why, negotiate,
};
pub use receipt::{Inconsistent, Receipt};
pub use units::{Inexact, Tick, Ticks};

/// The version of the protocol that is spoken here.
pub const VERSION: u8 = 2;

/// The most measurements of a batch. Their tallies fit beside them, of however many responders.
pub const BATCH_MAX: usize = 22;

/// Pins of a generator, as many as bits of a set of responders: a generator with fewer says that nobody answers at the
/// others.
pub const PINS: usize = 16;

/// The most times of a train that one command carries.
pub const TRAIN_MAX: usize = 126;

/// A latency is below so many ticks. A longer one is tainted, and counted: at a tick of 1 ns that is 2.28 years.
pub const LATENCY_END: Ticks = Ticks(1 << 56);
