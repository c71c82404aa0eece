// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine itself as a target.

pub mod load;
