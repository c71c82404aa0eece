// SPDX-License-Identifier: GPL-2.0-or-later
//! Being a real-time task under Linux.

mod policy;

pub use policy::{ParsePolicyError, Policy};
