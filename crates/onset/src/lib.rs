// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`; owns every side effect.

pub mod arguments;
pub mod bundle;
pub mod commands;
pub mod company;
pub mod edges;
pub mod experiment;
pub mod failure;
pub mod followed;
pub mod hunt;
pub mod installation;
pub mod matrix;
pub mod report;
pub mod store;
pub mod target;
pub mod terminal;
pub mod truth;
pub mod visible;
