// SPDX-License-Identifier: GPL-2.0-or-later
//! The virtual target: an unmodified kernel under QEMU in deterministic virtual time.
//!
//! The crate takes kernels into a cache and puts together the guest's image. It boots the guest once for each flavour
//! and load, up to the instruction at which measuring begins. It saves the machine there, and restores it for each run.
//! It hands over observations, and knows no statistics.

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
mod memory;
mod run;
mod session;
mod snapshot;
pub mod tool;
mod walker;
mod witness;
mod x86_64;

pub use boot::{FIRST_STAGE, key_after, stage_before};
pub use cache::{Cache, Parts};
pub use collect::Seer;
pub use console::Fault;
pub use error::{Error, Result};
pub use follow::{Calls, Follow};
pub use image::{Contents, check_programs};
#[cfg(fuzzing)]
pub use kernel::unpack_for_fuzzing;
pub use kernel::{
    Announce, Completeness, Existing, Given, Kernel, KernelRecord, Kernels, Modules, Offer,
    is_kernel_name, series_of,
};
pub use look::Look;
pub use machine::{
    CHOICE, Emulator, Generator, Machine, ProbeRun, Stimulus, is_tried, versions_tried,
};
pub use map::function_starts;
pub use memory::memory_available;
pub use run::{Bench, Ending, Following, Guest, Outcome};
pub use session::Session;
pub use snapshot::Snapshot;
pub use walker::{ForkedTrial, NoRoom, Sees, TRIALS_AT_ONCE, Walker};
pub use witness::{
    Batch, BatchId, ClockLine, ClockPoint, Functions, Level, Span, Spending, Wake, Witness,
};
pub use x86_64::{CPU, DEBIAN, PACKAGE as QEMU_PACKAGE, QEMU};
