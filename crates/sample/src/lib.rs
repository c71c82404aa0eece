// SPDX-License-Identifier: GPL-2.0-or-later
//! What a measurement *is*, before any statistics: units, clock domains, the fixed-size record that
//! a generator emits, the channel that carries it, and the rule that turns triggers and pin edges
//! into samples and losses.
//!
//! `no_std` and free of dependencies (but for the feature `channel`), because the same definitions run inside QEMU (the plugin), in
//! the host command and, later, in a generator on a microcontroller.

#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "channel"))]
extern crate std;

mod aim;
mod answers;
#[cfg(feature = "channel")]
mod channel;
mod clock;
mod disturbance;
mod reading;
mod record;
mod responder;
mod ring;
mod schedule;
mod series;
mod take;
mod units;

pub use aim::{AIMED, Aim, Occurrence, Rule, SCOUTED_FROM, Stretch, UnknownRule, When};
pub use answers::{Answers, Loss, Losses, Observation, Sample};
#[cfg(feature = "channel")]
pub use channel::{Channel, ChannelError, producer_of};
pub use clock::{Clock, Domain, Monotonic, Stamp, Tsc, Virtual};
pub use disturbance::{Disturbance, NotADisturbance};
pub use reading::Reading;
pub use record::{Kind, Malformed, Record};
pub use responder::{ALL_RESPONDERS, Responder, ResponderSet, UnknownResponder};
pub use ring::{Consumer, Producer, RING_BYTES_HEADER, RingError, ring_bytes, ring_init};
pub use schedule::Schedule;
pub use series::{NotASeriesName, SeriesId, SeriesName};
pub use take::{NotATake, Take};
pub use units::{Insns, Nanos, ParseDurationError};
