// SPDX-License-Identifier: GPL-2.0-or-later
//! What host and guest agree on: the plan that the host puts into the guest's image, the words that the
//! guest sends back, and the loads, in the guest and on a machine.

pub mod confinement;
pub mod load;
mod plan;

pub use load::{ALL_LOADS, Load, UnknownLoad};
pub use plan::{
    COUNTERS_DIR, COUNTERS_VARIABLE, LOAD_SCRIPT, Module, PLAN_PATH, PLAY_PATH, PROGRAMS, Plan,
    REPEAT_PATH, TaskProcess, Word, Work, Worked, counter_value,
};
