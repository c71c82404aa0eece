// SPDX-License-Identifier: GPL-2.0-or-later
//! What preemption points of our own do, as tables.

use super::proof;
use super::table::{Align, Table};
use crate::results::{PatchProof, PatchedCost, PatchedKernel, PatchedRung, PatchedStretch};
use sample::Nanos;

/// The tables of each kernel with patches, and the pairs.
pub fn patches(patches: &PatchProof) -> String {
    let kernels: String = patches.kernels.iter().map(kernel).collect();
    kernels + &proof(&patches.proof)
}

fn kernel(kernel: &PatchedKernel) -> String {
    let PatchedKernel { change, stretches, rungs, costs, costs_measured } = kernel;
    let stretches = match stretches.is_empty() {
        true => "  no stretch with interrupts or preemption off is to be cut\n".to_owned(),
        false => stretch_table(stretches),
    };
    format!(
        "{change}\n{stretches}\n{}\n{}\n",
        rung_table(rungs),
        cost_table(costs, *costs_measured)
    )
}

fn stretch_table(stretches: &[PatchedStretch]) -> String {
    let columns = [
        ("longest stretch", Align::Left),
        ("off", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("cut by", Align::Right),
    ];
    let mut table = Table::new(&columns).indented(2);
    for PatchedStretch { kind, function, before_ns, after_ns } in stretches {
        let time = |ns: &Option<Nanos>| ns.map_or_else(|| "none".to_owned(), |ns| ns.to_string());
        let factor = match (before_ns, after_ns) {
            (Some(before), Some(after)) if after.0 > 0 => {
                format!("{:.1}", before.0 as f64 / after.0 as f64)
            }
            _ => String::new(),
        };
        let row = [function.clone(), kind.name().into(), time(before_ns), time(after_ns), factor];
        table.row(row.to_vec());
    }
    table.text()
}

fn rung_table(rungs: &[PatchedRung]) -> String {
    let names = ["median before", "after", "max before", "after"];
    let columns = names.map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("responder", Align::Left)], &columns[..]].concat()).indented(2);
    for PatchedRung { responder, median_ns, max_ns } in rungs {
        let times = [median_ns.0, median_ns.1, max_ns.0, max_ns.1];
        let times = times.map(|ns| Nanos(ns.round() as u64).to_string());
        table.row(std::iter::once(responder.clone()).chain(times));
    }
    table.text()
}

fn cost_table(costs: &[PatchedCost], measured: u32) -> String {
    let same = measured as usize - costs.len();
    let columns = [
        ("cost", Align::Left),
        ("instructions before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
    ];
    let mut table = Table::new(&columns).indented(2);
    for PatchedCost { cost, before, after } in costs {
        let change = format!("{:+.1} %", (after / before - 1.0) * 100.0);
        let row = [(*cost).to_owned(), format!("{before:.0}"), format!("{after:.0}"), change];
        table.row(row.to_vec());
    }
    let table = if costs.is_empty() { String::new() } else { table.text() };
    format!("{table}  {same} of {measured} costs differ by less than 1 %\n")
}
