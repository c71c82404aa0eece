// SPDX-License-Identifier: GPL-2.0-or-later
//! Hunts in guests. This module runs the trials that `hunt` chooses, keeps their results in a journal, and says at the
//! end what made the latest answers so late.
//!
//! The module chooses no instant, and prints nothing.

mod about;
mod corpus;
mod field;
mod finds;
mod grounds;
mod journal;
mod past;
mod search;
mod seen;
mod shards;
#[cfg(test)]
mod tests;
mod walkers;
mod workers;

pub use about::{About, AboutGuest};
pub use corpus::{digest, recipe};
pub use field::{Field, OTHERWISE, View};
pub use finds::{DeathFiles, Find, Interrupted, explain_finds};
pub use grounds::Grounds;
pub(crate) use journal::not_locked;
pub use journal::{Journal, Say};
pub use past::{CONCLUSION, Conclusion, JOURNAL, PastFind, PastHunt, find_file};
pub use search::{Run, SearchResult, search};
pub use shards::{keep_shard, missing_shards, whole, working_directory};
pub use walkers::{Blind, Walkers};
pub(crate) use workers::{at_once, lock};

use sample::{Insns, Nanos};

/// Stretches that are shorter than this get no stack, since they do not make an answer late.
pub const STACKS_FROM: Insns = Insns(5_000);
/// How long each trigger keeps the line high. The line falls before the next trigger may come, however close that is.
pub const HIGH: Nanos = Nanos::from_micros(1);
