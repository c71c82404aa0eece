// SPDX-License-Identifier: GPL-2.0-or-later
//! What a person reads in a terminal.

mod axis;
mod comparison;
mod hunt;
mod ladder;
mod progress;
mod stack;
mod table;
mod truth;
mod windows;

pub use comparison::comparison;
pub use hunt::{hunted, progress as hunt_progress};
pub use ladder::{configuration, ladders};
pub use progress::Shown;
pub use table::{Align, Table};
pub use windows::windows;
