// SPDX-License-Identifier: GPL-2.0-or-later
//! Every byte that crosses a border: the events that the plugin and the probes report, the ring that carries them, what
//! the plugin is told (before the guest runs, and while it does), the ports of the guest, and what a host and a
//! generator of triggers say to each other. Each is written and read here and nowhere else.
//! `driver/onset_wire.h` has what C needs of it and is generated. `golden/` has the bytes of each.
//!
//! The crate cannot see who is at the other end. `sample` says what a number means for a measurement.
//!
//! The crate is `no_std` (except for the feature `channel`), because the same definitions run inside QEMU (the plugin),
//! in the host command and, later, in a generator on a microcontroller.

#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "channel"))]
extern crate std;

pub mod arguments;
#[cfg(feature = "channel")]
mod channel;
mod command;
#[cfg(target_has_atomic = "64")]
pub mod cycles;
mod encoding;
mod event;
mod function_starts;
pub mod generator;
pub mod header;
pub mod plan;
pub mod ports;
mod reading;
mod request;
// Processors without atomic words of 64 bits, as those of microcontrollers, have no ring.
#[cfg(target_has_atomic = "64")]
mod ring;
mod take;
mod x86_64;

pub use arguments::{Arguments, Forking, Start, Stimulus, Triggers, WrongArgument};
#[cfg(feature = "channel")]
pub use channel::{Channel, ChannelError, producer_of};
pub use command::{COMMAND_BYTES, Command, WrongCommand};
pub use encoding::Malformed;
pub use event::{Event, StackId, TaskId, WATCHES_MAX};
pub use function_starts::FunctionStarts;
pub use plan::Plan;
pub use ports::Mark;
pub use reading::Reading;
pub use request::{REQUEST_BYTES, WalkReply, WalkRequest};
#[cfg(target_has_atomic = "64")]
pub use ring::{Consumer, Producer, RING_BYTES_HEADER, RingError, ring_bytes, ring_init};
pub use take::{NotATake, Take};
