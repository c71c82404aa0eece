// SPDX-License-Identifier: GPL-2.0-or-later
//! The output of onset: tables in a terminal for people, JSON for scripts, and the HTML report. It also makes foreign
//! text safe before onset prints it.

#[cfg(feature = "schema")]
pub mod contract;
mod costs;
pub mod edges;
mod picture;
mod price;
pub mod report;
pub mod results;
pub mod screen;
pub mod terminal;
pub mod visible;

pub use picture::census_picture;
