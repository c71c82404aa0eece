// SPDX-License-Identifier: GPL-2.0-or-later
//! What a measurement *is*, before any statistics: quantities, clock domains, samples and losses, and the rule that
//! turns triggers and pin edges into samples and losses. The crate `wire` says how any of these is written on a border.
//!
//! The crate is `no_std` and free of dependencies, because the same definitions run inside QEMU (the plugin), in the
//! host command and, later, in a generator on a microcontroller.

#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod aim;
mod answers;
mod arithmetic;
mod at;
mod clock;
mod disturbance;
mod quantity;
mod responder;
mod schedule;
mod series;
mod units;

pub use aim::{Aim, Occurrence, Rule, SCOUTED_FROM, Stretch, Stretches, UnknownRule, When};
pub use answers::{Answers, Loss, Losses, Observation, Observer, Sample};
pub use at::At;
pub use clock::{Clock, Domain, Monotonic, Stamp, Tsc, Virtual};
pub use disturbance::{Disturbance, NotADisturbance};
pub use quantity::{
    Bytes, BytesPerSecond, Count, ParseQuantityError, Quantity, QuantityKind, UnknownQuantity,
};
pub use responder::{ALL_RESPONDERS, Responder, ResponderSet, UnknownResponder};
pub use schedule::{Schedule, displacement};
pub use series::{NotASeriesName, SeriesId, SeriesName};
pub use units::{Insns, Nanos, ParseDurationError};
