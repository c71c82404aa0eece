// SPDX-License-Identifier: GPL-2.0-or-later
//! What knobs do, as a table for each kernel.

use super::table::{Align, Table};
use crate::results::{KernelProof, Proof, ProofCost, ProofRow};
use crate::screen::{Tone, toned};
use stats::{Effect, Paired};

/// The tables, and what the columns mean.
pub fn proof(proof: &Proof) -> String {
    let kernels: String = proof.kernels.iter().map(|kernel| table(proof, kernel)).collect();
    format!(
        "{kernels}  A pair is a guest without the change and one with it, under the same load, seed and triggers. Numbers are with the change, divided\n  \
         by without it: the median of the pairs, and its interval. The control is a word that means nothing to the kernel: it moves the guest's\n  \
         history, as every change does. Costs are instructions of one operation of an idle system.\n"
    )
}

fn table(proof: &Proof, kernel: &KernelProof) -> String {
    let latency = format!("{}.{}", proof.responder, proof.statistic);
    let mut columns = vec![
        ("change", Align::Left),
        ("effect", Align::Left),
        (latency.as_str(), Align::Left),
        ("fell, rose, same", Align::Right),
        ("load's time", Align::Left),
    ];
    let costs = kernel.rows.iter().map(|row| &row.costs).find(|costs| !costs.is_empty());
    let names: Vec<&str> = costs.into_iter().flatten().map(|cost| cost.cost).collect();
    columns.extend(names.iter().map(|name| (*name, Align::Right)));
    let mut table = Table::new(&columns).indented(2).sparing(&names);
    for row in &kernel.rows {
        table.row(cells(row, names.len()));
    }
    let absent: String = kernel
        .rows
        .iter()
        .flat_map(|row| row.absent.iter().map(|why| format!("  ! {}: {why}\n", row.change)))
        .collect();
    format!("{} · {}\n{}{absent}\n", kernel.flavour, proof.load, table.text())
}

fn cells(row: &ProofRow, costs: usize) -> Vec<String> {
    let mut cells = vec![row.change.clone()];
    match &row.latency {
        None => cells.extend(["not measured".into(), String::new(), String::new()]),
        Some(latency) => {
            let same = match row.identical {
                0 => String::new(),
                n => format!(", {n} to the nanosecond"),
            };
            let Paired { fell, rose, same: equal, .. } = latency;
            cells.extend([
                effect(latency.effect),
                ratio(latency),
                format!("{fell}, {rose}, {equal}{same}"),
            ]);
        }
    }
    cells.push(row.load_time.as_ref().map(ratio).unwrap_or_default());
    let cost = |cost: &ProofCost| match (cost.with - cost.without).round() {
        0.0 => "0".into(),
        more => format!("{more:+}"),
    };
    cells.extend(row.costs.iter().map(cost));
    cells.resize(5 + costs, String::new());
    cells
}

fn effect(effect: Effect) -> String {
    match effect {
        Effect::Helps => toned(Tone::Good, "helps"),
        Effect::Harms => toned(Tone::Bad, "harms"),
        Effect::NoEffectSeen => "no effect seen".into(),
        Effect::CannotTell { more_pairs: Some(n) } => format!("cannot tell; {n} more pairs would"),
        Effect::CannotTell { more_pairs: None } => "cannot tell".into(),
    }
}

fn ratio(paired: &Paired) -> String {
    match paired.ratio_interval {
        Some((low, high)) => format!("× {:.3} ({low:.3} … {high:.3})", paired.ratio_median),
        None => format!("× {:.3}", paired.ratio_median),
    }
}
