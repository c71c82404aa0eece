// SPDX-License-Identifier: GPL-2.0-or-later
//! The ledger of one responder: all its latencies above a bound, by cause.

use super::causes::{self, Item};
use super::count::several;
use super::explanation::kinds;
use crate::followed::{Account, replay_of_answer};
use sample::Nanos;
use std::path::Path;
use trace::LedgerReport;

/// The table; each cause that is shown has the command that replays the answer of which it took most.
pub fn ledger(bundle: &Path, Account { responder, report }: &Account) -> String {
    let LedgerReport { samples, from_ns, total_ns, rows, .. } = report;
    let from = match from_ns {
        Nanos(0) => String::new(),
        from => format!(" of {from} and more"),
    };
    let answers = several(*samples, "answer");
    let mut text = format!("{responder}: {answers}{from}, together {total_ns}\n");
    let items = rows.iter().map(|row| Item {
        cause: &row.cause,
        sum: row.all(),
        note: format!(
            "in {}, most in one {} in {}:\n{}",
            several(row.count, "answer"),
            row.max_ns,
            several(row.max_stretches, "stretch"),
            replay_of_answer(bundle, responder, row.max_trigger)
        ),
    });
    text += &causes::table(&items.collect::<Vec<_>>(), *total_ns);
    let sum: u64 = rows.iter().map(|row| row.total_ns.0).sum();
    text += &format!("  together {sum} ns, which is the sum of the latencies\n");
    text += &format!("  {}\n", kinds(&report.kinds, *total_ns));
    text
}
