// SPDX-License-Identifier: GPL-2.0-or-later
//! The text that onset prints in a terminal.

mod atlas;
mod axis;
mod bound;
mod causes;
mod company;
mod comparison;
mod costs;
mod count;
mod explanation;
mod findings;
mod generator;
mod hunt;
mod ladder;
mod ledger;
mod live;
mod minimised;
mod next;
mod papers;
mod paths;
mod price;
mod progress;
mod spending;
mod stack;
mod table;
mod truth;
mod windows;

pub use atlas::{atlas, stressor};
pub use bound::bound;
pub use company::company;
pub use comparison::comparison;
pub use explanation::explanations;
pub use generator::{started, stopped};
pub use hunt::{hunted, progress as hunt_progress};
pub use ladder::{configuration, ladders, tone};
pub use ledger::ledger;
pub use live::{Key, Screen, live, marked};
pub use minimised::{kept, minimised};
pub use next::next_steps;
pub use papers::papers;
pub use paths::paths;
pub use price::price;
pub use progress::Shown;
pub use spending::spending;
pub use table::{Align, Table};
pub use windows::windows;
