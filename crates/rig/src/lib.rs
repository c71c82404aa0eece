// SPDX-License-Identifier: GPL-2.0-or-later
//! The virtual target: an unmodified kernel under QEMU in deterministic virtual time.
//!
//! Takes kernels into a cache, puts together the guest's image, boots it once per flavour and load up to
//! the instruction where measuring begins, saves the machine there, and restores it for each run. What
//! comes out are observations; this crate knows no statistics.

mod boot;
mod cache;
mod collect;
mod console;
mod error;
mod follow;
mod image;
mod intact;
mod kernel;
mod look;
mod machine;
mod map;
mod run;
mod snapshot;
pub mod tool;
mod witness;

pub use boot::{FIRST_STAGE, stage_before};
pub use cache::{Cache, Parts};
pub use collect::{Observer, Seer};
pub use console::Fault;
pub use error::{Error, Result};
pub use follow::{Calls, Follow};
pub use image::{Contents, check_programs};
pub use kernel::{
    Announce, Completeness, Existing, Given, Kernel, KernelRecord, Kernels, Modules, Offer,
    is_kernel_name, series_of,
};
pub use look::Look;
pub use machine::{
    CHOICE, CPU, Emulator, Generator, Machine, ProbeRun, QEMU, Stimulus, is_tried, versions_tried,
};
pub use run::{Bench, Ending, Following, Guest, Outcome, Progress};
pub use snapshot::Snapshot;
pub use witness::{ClockLine, ClockPoint, Level, Wake, Witness};
