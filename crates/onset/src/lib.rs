// SPDX-License-Identifier: GPL-2.0-or-later
//! The command `onset`: it parses arguments, carries out the commands and prints. All side effects begin here.

pub mod arguments;
pub mod commands;
pub mod failure;
pub mod installation;
mod x86_64;
