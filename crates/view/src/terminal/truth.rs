// SPDX-License-Identifier: GPL-2.0-or-later
//! How accurate each series of a probe is, as a table.

use super::table::{Align, Table};
use bundle::Truth;

/// The table, indented like the table of the numbers that it judges.
pub(super) fn table(truths: &[Truth]) -> String {
    let mut columns = vec![("reported less true, ns", Align::Left)];
    let numbers = ["min", "mean", "p50", "p99", "max", "± all alike", "matched", "own insns"];
    columns.extend(numbers.map(|name| (name, Align::Right)));
    let spare = ["own insns", "matched", "mean", "min"];
    let mut table = Table::new(&columns).indented(2).sparing(&spare);
    for truth in truths {
        let mut row = vec![truth.series.to_string()];
        row.extend(match &truth.error {
            None => ["–"; 5].map(String::from),
            Some(e) => [
                e.min_ns.to_string(),
                format!("{:.1}", e.mean_ns),
                e.p50_ns.to_string(),
                e.p99_ns.to_string(),
                e.max_ns.to_string(),
            ],
        });
        row.push(truth.uncertainty.0.to_string());
        row.push(format!("{}/{}", truth.matched, truth.samples));
        row.push(truth.own.map_or_else(|| "–".into(), |own| own.0.to_string()));
        table.row(row);
    }
    table.text()
}
