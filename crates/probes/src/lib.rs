// SPDX-License-Identifier: GPL-2.0-or-later
//! Measurements that run on the target itself.
//!
//! One process, `onset-agent probe`, runs a [`Plan`] on a real machine as inside the rig's guest, so that what the
//! rig proves of a probe holds for the very program that measures elsewhere. What it measures leaves through one ring
//! per measuring thread ([`Output`]); who reads the rings is not its concern. [`run()`] is the way in; what it finds
//! beside the samples is the [`Report`].

pub mod context;
mod gtod;
mod noise;
mod output;
mod overhead;
mod periodic;
pub mod plan;
mod report;
mod run;
mod series;
mod threads;
mod toggle;
mod tsc;
pub mod validity;

pub use output::Output;
pub use plan::{Plan, Probe};
pub use report::{Doubt, Report, RunError};
pub use run::run;
