// SPDX-License-Identifier: GPL-2.0-or-later
//! The longest stretches of a kernel under all stressors, by rank.

use super::count::several;
use super::stack;
use super::table::{Align, Table};
use super::windows::{inside, title};
use lab::atlas::{Atlas, Became, Idle, KINDS, Kind, Place, Tried, Worker};
use sample::Nanos;
use trace::WindowKind;

/// One table for each kind, then who worked and who did not.
pub fn atlas(atlas: &Atlas) -> String {
    let about = &atlas.about;
    let mut text = format!(
        "{}   atlas of {} ({} each, seed {}), Linux {}, stress-ng {}\n",
        about.flavour,
        several(atlas.worked.len() as u64, "stressor"),
        about.duration_ns,
        about.seed,
        about.release,
        about.stress_ng
    );
    for missing in &atlas.missing {
        text += &format!("  ! not seen: {missing}\n");
    }
    for kind in KINDS {
        text += &of_kind(atlas, kind);
    }
    let with = |ops| atlas.worked.iter().filter(move |worker: &&Worker| worker.ops == ops);
    text += &listed("came to no end of a unit of work in this time", with(Some(0)));
    text += &listed("worked, and stress-ng did not say how much", with(None));
    text += &idle("could not work in this guest", &atlas.refused);
    text += &idle("not tried", &atlas.left_out);
    text
}

/// What became of one stressor, in one line.
pub fn stressor(tried: &Tried) -> String {
    match &tried.became {
        Became::Refused { why } => format!("cannot work here: {why}"),
        Became::Worked { longest, .. } => {
            let of = |kind: Kind| {
                let longest = longest.iter().filter(|long| long.kind == kind).map(|long| long.ns);
                let longest = longest.max().map_or("–".into(), |ns| ns.to_string());
                format!("{} {longest}", kind.name())
            };
            KINDS.map(of).join(", ")
        }
    }
}

fn of_kind(atlas: &Atlas, kind: Kind) -> String {
    let places: Vec<&Place> = atlas.places.iter().filter(|p| p.longest.kind == kind).collect();
    let all = atlas.totals.get(&kind).copied().unwrap_or_default();
    let mut text = format!("  {}: {}\n", heading(kind), several(all as u64, "place"));
    let lines = table(&places).lines();
    let (columns, lines) = lines.split_first().expect("a table has a heading");
    if !places.is_empty() {
        text += &format!("{columns}\n");
    }
    for (line, place) in lines.iter().zip(&places) {
        text += &format!("{line}\n");
        for frames in stack::lines(&place.longest.opened_by, 8) {
            text += &format!("{frames}\n");
        }
        text += &inside(&place.longest.inside, &place.longest.opened_by);
        text += &closed(&place.longest.closed_by);
    }
    text
}

fn table(places: &[&Place]) -> Table {
    let columns = [
        ("rank", Align::Right),
        ("longest", Align::Right),
        ("instructions", Align::Right),
        ("hardirqs", Align::Right),
        ("softirqs", Align::Right),
        ("stressors", Align::Right),
        ("stressor", Align::Left),
    ];
    let mut table = Table::new(&columns).indented(4).sparing(&["softirqs", "hardirqs"]);
    for place in places {
        table.row([
            place.rank.to_string(),
            place.longest.ns.to_string(),
            place.longest.insns.0.to_string(),
            part(place.longest.hardirq_ns),
            part(place.longest.softirq_ns),
            place.stressors.to_string(),
            place.stressor.clone(),
        ]);
    }
    table
}

fn part(time: Option<Nanos>) -> String {
    time.map_or("–".into(), |time| time.to_string())
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::IrqsOff => title(WindowKind::IrqsOff),
        Kind::PreemptOff => title(WindowKind::PreemptOff),
        Kind::Unscheduled => "another task is asked for, until the scheduler (unscheduled)",
    }
}

/// The innermost frames of the code that closed the stretch.
fn closed(stack: &[String]) -> String {
    const FRAMES: usize = 4;
    if stack.is_empty() {
        return String::new();
    }
    format!("        closed by {}\n", stack[..stack.len().min(FRAMES)].join(" < "))
}

/// The names of these stressors in one line. Empty if there are none.
fn listed<'a>(how: &str, workers: impl Iterator<Item = &'a Worker>) -> String {
    let names: Vec<&str> = workers.map(|worker| &*worker.stressor).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("  {} {how}: {}\n", several(names.len() as u64, "stressor"), names.join(", "))
}

fn idle(how: &str, stressors: &[Idle]) -> String {
    if stressors.is_empty() {
        return String::new();
    }
    let mut text = format!("  {} {how}:\n", several(stressors.len() as u64, "stressor"));
    for Idle { stressor, why } in stressors {
        text += &format!("    {stressor}: {why}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use trace::ReaderLosses;

    #[test]
    fn stressors_without_work_are_one_line_and_none_are_no_line() {
        let worker = |name: &str| Worker {
            stressor: name.into(),
            ops: Some(0),
            virtual_ns: Nanos(1),
            cut: BTreeMap::new(),
            losses: ReaderLosses::default(),
            longest_ns: BTreeMap::new(),
        };
        let workers = ["tree", "vm"].map(worker);
        assert_eq!(listed("rested", workers.iter()), "  2 stressors rested: tree, vm\n");
        assert_eq!(listed("rested", [].iter()), "");
    }

    #[test]
    fn a_stressor_that_worked_has_its_longest_stretch_of_each_kind() {
        let why = "no device".to_owned();
        let refused = Tried { stressor: "rtc".into(), became: Became::Refused { why } };
        assert_eq!(stressor(&refused), "cannot work here: no device");
        let worked = Became::Worked {
            ops: None,
            virtual_ns: Nanos(1),
            cut: BTreeMap::new(),
            losses: ReaderLosses::default(),
            longest: Vec::new(),
        };
        let text = stressor(&Tried { stressor: "tree".into(), became: worked });
        assert_eq!(text, "irqs_off –, preempt_off –, unscheduled –");
    }
}
