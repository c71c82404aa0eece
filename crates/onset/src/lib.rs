// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`; owns every side effect.

pub mod bundle;
pub mod experiment;
pub mod store;
