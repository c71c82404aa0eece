// SPDX-License-Identifier: GPL-2.0-or-later
//! The command without QEMU: its words and exit statuses, stores of bundles that no machine measured, and probes on
//! this machine.

mod bundles;
mod costs;
mod deadlines;
mod finds;
mod gpio;
mod installation;
mod kernels;
mod live;
mod measure;
mod own_program;
mod patches;
mod prove;
mod refusals;
mod report;
mod setup;
mod tune;
mod warnings;

/// The commands that a help text lists, each at the beginning of its line. Only `help` has no help of its own.
fn listed(help: &str) -> Vec<&str> {
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let named = list.lines().take_while(|line| !line.is_empty());
    let named = named.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    named.filter(|name| !["", "help"].contains(name)).collect()
}

/// One test at a time changes settings of this machine: onset refuses two tunes at once, whatever their journals.
fn tuning_alone() -> std::sync::MutexGuard<'static, ()> {
    static MACHINE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
