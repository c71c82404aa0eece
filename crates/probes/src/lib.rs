// SPDX-License-Identifier: GPL-2.0-or-later
//! Probes: measurements that run on the target itself.
//!
//! One process, `onset-agent probe`, runs a [`Plan`], on a real machine as inside the rig's guest. So whatever the rig
//! proves of a probe holds for the same program elsewhere. The samples leave through one ring per measuring thread
//! ([`Output`]); this crate does not care who reads the rings. [`run()`] starts a plan. Everything that it finds beside
//! the samples is in the [`Report`].
//!
//! A probe is one file, with its [`Definition`] and its [`Measure`], and one line in the list below.

#[macro_use]
mod registry;

mod chip;
pub mod context;
mod definition;
mod failure;
mod gate;
mod output;
mod overhead;
mod pace;
pub mod plan;
mod priorities;
mod program;
mod pthread;
mod recorder;
mod report;
mod run;
mod series;
mod sleeper;
mod threads;
pub mod validity;
mod x86_64;

probes! {
    periodic: Periodic,
    gtod: Gtod,
    async_handler: Async,
    rhealstone: Rhealstone,
    rtc: Rtc,
    noise: Noise,
    toggle: Toggle,
    inversion: Inversion,
    ladder: Ladder,
    cyclictest: Cyclictest,
    cycles: Cycles,
    cost: Cost,
}

pub use chip::Chip;
pub use cost::{Counts, Figure, Figures, Row, row};
pub use cyclictest::passed as cyclictest_passed;
pub use definition::{Definition, Key, Kind, Measure, Sampled, TIME_MAX, Text, Unsound};
pub use inversion::{INSTANTS as INVERSION_INSTANTS, Thread, instant_counter};
pub use ladder::Answering;
pub use output::Output;
pub use plan::Plan;
pub use program::RunningProgram;
pub use report::{Doubt, Report, RunError};
pub use rhealstone::figures as rhealstone_figures;
pub use run::{RAN_ON, run};
pub use series::duration;
pub use x86_64::CPU_MAX;
