// SPDX-License-Identifier: GPL-2.0-or-later
//! What each kernel gets and what it pays, as a table.

use super::table::{Align, Table};
use crate::price::Prices;
use crate::screen::{Tone, toned};
use bundle::Manifest;
use sample::Count;

/// The table of the kernels of which the runs have both. Empty if there are fewer than two.
pub fn price(runs: &[&Manifest]) -> String {
    let Some(prices) = Prices::of(runs) else { return String::new() };
    let mut columns = vec![
        ("kernel", Align::Left),
        ("longest answer of task", Align::Right),
        ("load", Align::Left),
        ("answers", Align::Right),
    ];
    columns.extend(prices.costs.iter().map(|name| (*name, Align::Right)));
    columns.push(("on the front", Align::Left));
    let mut table = Table::new(&columns).indented(2).sparing(&["answers", "load"]);
    for kernel in &prices.kernels {
        let mut row = vec![
            kernel.flavour.clone(),
            kernel.worst_ns.to_string(),
            kernel.load.clone(),
            kernel.answers.to_string(),
        ];
        row.extend(kernel.costs.iter().map(|cost| Count(cost.round() as u64).to_string()));
        row.push(if kernel.on_front { toned(Tone::Good, "yes") } else { "no".into() });
        table.row(row);
    }
    let unit = prices.unit;
    format!(
        "{}  Costs are {unit} of one operation of an idle system. A kernel is on the (Pareto) front if no other one is as good\n  in all columns and better in one.\n",
        table.text()
    )
}
