// SPDX-License-Identifier: GPL-2.0-or-later
//! The command without QEMU: its words and exit statuses, and stores of bundles that no machine measured.

mod bundles;
mod installation;
mod refusals;
mod setup;
