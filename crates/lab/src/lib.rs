// SPDX-License-Identifier: GPL-2.0-or-later
//! The laboratory. It measures the cells of an experiment on a target, runs them again with the guest's kernel
//! followed, and says what was seen. It prints nothing and knows no command line, so a command and a server can use it
//! alike.

pub mod atlas;
pub mod bound;
pub mod breeding;
pub mod cells;
pub mod census;
pub mod costs;
pub mod edges;
mod error;
pub mod followed;
mod found;
pub mod generator;
pub mod hunting;
pub mod live;
pub mod loopback;
pub mod matrix;
pub mod minimise;
pub mod pieces;
pub mod shards;
pub mod target;
pub mod truth;
pub mod windows;
mod x86_64;

pub use error::Error;
pub use found::Found;
