// SPDX-License-Identifier: GPL-2.0-or-later
//! What knobs do, as a table for each kernel.

use super::count::several;
use super::table::{Align, Table};
use crate::results::{
    Hunted, HuntedWorst, KernelProof, MachineProof, Proof, ProofCost, ProofRow, QuietDifference,
    Reason,
};
use crate::screen::{Tone, toned};
use sample::Nanos;
use stats::{Effect, Paired};

/// The tables, and what the columns mean.
pub fn proof(proof: &Proof) -> String {
    let kernels: String = proof.kernels.iter().map(|kernel| table(proof, kernel)).collect();
    match &proof.machine {
        None => kernels + &untried(proof) + GUESTS + &chance(proof),
        Some(machine) => screening(proof, machine) + &kernels + &blocks(machine) + &chance(proof),
    }
}

/// How many verdicts may be chance, where many changes are judged. One of 40 that do nothing is said to help, and one
/// to harm: the sign test has 5 % for both (`stats::Paired`).
fn chance(proof: &Proof) -> String {
    let of = |kernel: &KernelProof| kernel.rows.iter().filter(|row| row.latency.is_some()).count();
    let judged: usize = proof.kernels.iter().map(of).sum();
    if judged < MANY {
        return String::new();
    }
    format!(
        "  {judged} changes were judged. Of {judged} that do nothing, up to {:.1} would be said to help by chance, and as many to harm: prove those that\n  \
         help once more, alone, with another seed.\n",
        judged as f64 / 40.0
    )
}

fn untried(proof: &Proof) -> String {
    match proof.untried.as_slice() {
        [] => String::new(),
        some => format!("  Not tried, since a guest has one CPU: {}\n\n", some.join(", ")),
    }
}

/// From how many changes on chance is worth a word. The number is chosen: of so many a tenth of one is said to help.
const MANY: usize = 5;

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
    let has_energy = kernel.rows.iter().any(|row| row.energy.is_some());
    if has_energy {
        columns.push(("energy", Align::Left));
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
        if has_energy {
            cells.push(row.energy.as_ref().map(ratio).unwrap_or_default());
        }
        table.row(cells);
    }
    for (number, group) in (1..).zip(&kernel.groups) {
        let name = format!("group {number}");
        table.row(std::iter::once(name).chain(cells(group, names.len()).into_iter().skip(1)));
    }
    let rows = || kernel.rows.iter().chain(&kernel.groups);
    let absent: String = rows()
        .flat_map(|row| row.absent.iter().map(|why| format!("  ! {}: {why}\n", row.change)))
        .collect();
    let groups: String = (1..)
        .zip(&kernel.groups)
        .map(|(number, group)| format!("  group {number}: {}\n", group.change))
        .collect();
    let below: String = kernel.rows.iter().map(quiet_and_reasons).collect();
    let hunted = kernel.hunted.as_ref().map(hunted).unwrap_or_default();
    let table = table.text();
    format!("{} · {}\n{table}{groups}{absent}{below}{hunted}\n", kernel.flavour, proof.load)
}

/// What a row has to say that its line has no room for.
fn quiet_and_reasons(row: &ProofRow) -> String {
    let differ = row.quiet.iter().flat_map(|quiet| &quiet.differ).map(|figure| {
        let QuietDifference { responder, without_ns: Nanos(a), with_ns: Nanos(b) } = figure;
        format!("{responder}'s median {a} → {b} ns")
    });
    let differ: Vec<String> = differ.collect();
    let mut text = match differ.as_slice() {
        [] => String::new(),
        some => format!("  {}, quiet: {}\n", row.change, some.join(", ")),
    };
    if !row.reasons.is_empty() {
        let reason = |Reason { cause, who, without_ns, with_ns }: &Reason| {
            let (a, b) = (Nanos(without_ns.round() as u64), Nanos(with_ns.round() as u64));
            let who = if who.is_empty() { String::new() } else { format!(" ({who})") };
            format!("{cause}{who} {a} → {b}")
        };
        let reasons: Vec<String> = row.reasons.iter().map(reason).collect();
        text += &format!("  {}, in a late answer: {}\n", row.change, reasons.join("; "));
    }
    text
}

fn hunted(Hunted { words, without, with }: &Hunted) -> String {
    let worst = |HuntedWorst { worst_ns, trials, .. }: &HuntedWorst| {
        let worst = worst_ns.map_or_else(|| "no answer".into(), |ns| ns.to_string());
        format!("{worst} ({})", several(*trials, "trial"))
    };
    format!(
        "  the latest answer that a hunt finds: {} without a change, {} with {words}\n",
        worst(without),
        worst(with)
    )
}

fn cells(row: &ProofRow, costs: usize) -> Vec<String> {
    let mut cells = vec![row.change.clone()];
    match &row.latency {
        None => cells.extend([unpaired(row), String::new(), String::new()]),
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

/// What stands for the effect of a change that has no pairs of its own.
fn unpaired(row: &ProofRow) -> String {
    match row.group {
        Some(group) => format!("the same when quiet; group {group}"),
        None => "not measured".into(),
    }
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
