// SPDX-License-Identifier: GPL-2.0-or-later
//! The ledger of one responder: all its latencies from a certain length on, by cause.

use super::causes::{self, Item};
use super::count::several;
use super::explanation::kinds;
use lab::followed::{Account, replay_of_answer};
use sample::Nanos;
use std::path::Path;
use trace::LedgerReport;

/// The table. Each cause has the command that replays the answer in which the cause took most time.
pub fn ledger(bundle: &Path, Account { responder, report }: &Account) -> String {
    let LedgerReport { samples, from_ns, total_ns, rows, .. } = report;
    let from = match from_ns {
        Nanos(0) => String::new(),
        from => format!(" of {from} or more"),
    };
    let answers = several(*samples, "answer");
    let mut text = format!("{responder}: {answers}{from}, together {total_ns}\n");
    let items = rows.iter().map(|row| Item {
        cause: &row.cause,
        sum: row.all(),
        note: format!(
            "in {}; the most in one answer is {} in {}:\n{}",
            several(row.count, "answer"),
            row.max_ns,
            several(row.max_stretches, "stretch"),
            replay_of_answer(bundle, responder, row.max_trigger)
        ),
    });
    text += &causes::table(&items.collect::<Vec<_>>(), *total_ns);
    let Nanos(sum) = rows.iter().map(|row| row.total_ns).sum();
    text += &format!("  the causes add up to {sum} ns, which is the sum of the latencies\n");
    text += &format!("  {}\n", kinds(&report.kinds, *total_ns));
    text
}
