// SPDX-License-Identifier: GPL-2.0-or-later
//! What knobs do, as a table for each kernel.

use super::table::{Align, Table};
use crate::results::{KernelProof, MachineProof, Proof, ProofCost, ProofRow};
use crate::screen::{Tone, toned};
use sample::Nanos;
use stats::{Effect, Paired};

/// The tables, and what the columns mean.
pub fn proof(proof: &Proof) -> String {
    let kernels: String = proof.kernels.iter().map(|kernel| table(proof, kernel)).collect();
    match &proof.machine {
        None => kernels + GUESTS,
        Some(machine) => screening(proof, machine) + &kernels + &blocks(machine),
    }
}

const GUESTS: &str = "  A pair is a guest without the change and one with it, under the same load, seed and triggers. Numbers are with the change, divided\n  \
     by without it: the median of the pairs, and its interval. The control is a word that means nothing to the kernel: it moves the guest's\n  \
     history, as every change does. Costs are instructions of one operation of an idle system.\n";

fn blocks(machine: &MachineProof) -> String {
    let chosen = match machine.chosen.is_empty() {
        true => "  Nothing is shown to help.".to_owned(),
        false => format!("  These help: {}.", machine.chosen.join(", ")),
    };
    format!(
        "{chosen} Every change is taken back.\n  A pair is two blocks of {} on CPU {}, one without the change and one with it, in an order that is drawn (seed {}). Numbers are\n  \
         with the change, divided by without it: the median of the pairs, and its interval. The control changes nothing.\n",
        machine.block, machine.cpus, machine.seed
    )
}

/// The table of the screening, if there was one.
fn screening(proof: &Proof, machine: &MachineProof) -> String {
    if machine.screening.is_empty() {
        return String::new();
    }
    let number = format!("{}.{}", proof.responder, proof.statistic);
    let columns =
        [("screening", Align::Left), ("kept", Align::Left), (number.as_str(), Align::Left)];
    let columns = [&columns[..], &[("fell, rose, same", Align::Right)]].concat();
    let mut table = Table::new(&columns).indented(2);
    for row in &machine.screening {
        let mut cells = vec![row.change.clone()];
        cells.extend(match &row.latency {
            None => ["no".into(), "not measured".into(), String::new()],
            Some(latency) => {
                let kept = if latency.may_help() { "yes" } else { "no" };
                let Paired { fell, rose, same, .. } = latency;
                [kept.into(), ratio(latency), format!("{fell}, {rose}, {same}")]
            }
        });
        table.row(cells);
    }
    format!(
        "{}  In a screening each block has half of the changes. Those after which the number fell more often than it rose go on.\n\n",
        table.text()
    )
}

fn table(proof: &Proof, kernel: &KernelProof) -> String {
    let latency = format!("{}.{}", proof.responder, proof.statistic);
    let is_machine = proof.machine.is_some();
    let mut columns = vec![
        ("change", Align::Left),
        ("effect", Align::Left),
        (latency.as_str(), Align::Left),
        ("fell, rose, same", Align::Right),
        ("load's time", Align::Left),
    ];
    if is_machine {
        let times = ["without", "with"].map(|name| (name, Align::Right));
        columns.splice(2..2, times);
        columns.push(("task switches", Align::Left));
    }
    let costs = kernel.rows.iter().map(|row| &row.costs).find(|costs| !costs.is_empty());
    let names: Vec<&str> = costs.into_iter().flatten().map(|cost| cost.cost).collect();
    columns.extend(names.iter().map(|name| (*name, Align::Right)));
    let mut table = Table::new(&columns).indented(2).sparing(&names);
    for row in &kernel.rows {
        let mut cells = cells(row, names.len());
        if is_machine {
            let time = |ns: Option<f64>| ns.map(|ns| Nanos(ns.round() as u64).to_string());
            let times = [row.without_ns, row.with_ns].map(|ns| time(ns).unwrap_or_default());
            cells.splice(2..2, times);
            cells.push(row.context_switches.as_ref().map(ratio).unwrap_or_default());
        }
        table.row(cells);
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
