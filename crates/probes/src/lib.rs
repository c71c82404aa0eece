// SPDX-License-Identifier: GPL-2.0-or-later
//! Measurements that run on the target itself.
//!
//! One process, `onset-agent probe`, runs a [`Plan`] on a real machine as inside the rig's guest, so that what the
//! rig proves of a probe holds for the very program that measures elsewhere. What it measures leaves through one ring
//! per measuring thread ([`Output`]); who reads the rings is not its concern. [`run()`] is the way in; what it finds
//! beside the samples is the [`Report`].

mod async_handler;
pub mod context;
mod cyclictest;
mod failure;
mod gate;
mod gtod;
mod inversion;
mod ladder;
mod noise;
mod output;
mod overhead;
mod pace;
mod periodic;
pub mod plan;
mod priorities;
mod pthread;
mod recorder;
mod report;
mod rhealstone;
mod rtc;
mod run;
mod series;
mod sleeper;
mod threads;
mod toggle;
mod tsc;
pub mod validity;

pub use output::Output;
pub use plan::{Plan, Probe};
pub use report::{Doubt, Report, RunError};
pub use rhealstone::figures as rhealstone_figures;
pub use run::{RAN_ON, run};
