// SPDX-License-Identifier: GPL-2.0-or-later
//! Arthur, Emde, Mc Guire: Assessment of the Realtime Preemption Patches (2007), figure 25: when a thread of PREEMPT_RT
//! runs that asked for 50 µs, on machines of three speeds. A file has one speed of the rig; several belong together.

use super::claim::{Claim, untold};
use super::runs::{Run, Runs, basis, summary};
use super::toggle::width;
use super::{
    ABSENT, Cell, Column, Printed, Row, Statistic, Table, Unit, Whose, figure, printed, time_cell,
};
use std::collections::BTreeSet;
use std::rc::Rc;

const US: Unit = Unit::Micros;

const PAPER: [Printed; 3] = [
    ("P4 2.8 GHz", &[ABSENT, ABSENT, "55–60", ABSENT, ABSENT]),
    ("VIA C3 1 GHz", &[ABSENT, ABSENT, "70", ABSENT, ABSENT]),
    ("VIA C3 600 MHz", &[ABSENT, ABSENT, "80", ABSENT, ABSENT]),
];

/// Figure 25.
pub(super) fn table(runs: &Runs) -> Table {
    let shifts: BTreeSet<u8> = runs.runs.iter().filter_map(|run| shift(run)).collect();
    let mut rows: Vec<Row> = PAPER.iter().map(printed).collect();
    let mut absent = Vec::new();
    for shift in &shifts {
        let runs = runs.kept(|run| self::shift(run) == Some(*shift));
        let speed = speed(*shift);
        rows.extend(runs.groups().iter().filter_map(|group| row(group, &speed)));
        absent.extend(runs.absent().into_iter().map(|cell| format!("{speed}, {cell}")));
    }
    // A machine has no shift.
    let machine = runs.kept(|run| shift(run).is_none());
    rows.extend(machine.groups().iter().filter_map(|group| row(group, "this machine")));
    Table {
        id: "2007-width",
        heading: "A thread that asked for 50 µs, by the machine's speed",
        source: "Arthur, Emde, Mc Guire 2007, figure 25",
        columns: vec![
            Column { name: "load", unit: "" },
            US.column("ran after, average"),
            US.column("ran after, at worst"),
            US.column("delivered width, average"),
            US.column("width off by, at worst"),
        ],
        rows,
        absent,
        note: format!(
            "{} Ran after: from the instant when the pulse was due to begin until its falling edge, for which the thread asked for 50 µs. Delivered width: from the rising to \
            the falling edge. The paper does not say whether its numbers are averages; they stand where its words, about 55 to 60 µs, fit.",
            runs.note()
        ),
        claims: vec![claim(runs, &shifts)],
        picture: None,
    }
}

fn shift(run: &Run) -> Option<u8> {
    run.manifest().about.machine.as_ref()?.icount_shift
}

fn speed(shift: u8) -> String {
    match shift {
        0 => "1 GHz".into(),
        n => format!("{} MHz", 1000_u32.checked_shr(n.into()).unwrap_or(0)),
    }
}

/// From the due begin of the pulse to its end, on the average and at worst, and the width on the average, in ns.
struct Pulse {
    ran: f64,
    worst: f64,
    delivered: f64,
}

fn pulse(run: &Run) -> Option<Pulse> {
    let asked = width(run.manifest()).0 as f64;
    let (rise, fall) = (summary(run.manifest(), "rise")?, summary(run.manifest(), "fall")?);
    Some(Pulse {
        ran: asked + fall.mean?,
        worst: asked + fall.max?.0 as f64,
        delivered: asked + fall.mean? - rise.mean?,
    })
}

fn row(group: &[Rc<Run>], speed: &str) -> Option<Row> {
    let basis = basis(group, ["rise", "fall", "width"])?;
    let cell = |of: &dyn Fn(&Run) -> Option<f64>, statistic| {
        let values: Vec<f64> = group.iter().filter_map(|run| of(run)).collect();
        time_cell(&values, statistic, US)
    };
    let cells = vec![
        Cell::word(group[0].load()),
        cell(&|run| Some(pulse(run)?.ran), Statistic::Mean),
        cell(&|run| Some(pulse(run)?.worst), Statistic::Max),
        cell(&|run| Some(pulse(run)?.delivered), Statistic::Mean),
        cell(&|run| run.value("width", Statistic::Max), Statistic::Max),
    ];
    let label = format!("{speed}, {}", group[0].flavour());
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

/// What a slower machine is in the rig, no run can decide.
fn claim(runs: &Runs, shifts: &BTreeSet<u8>) -> Claim {
    const PAPER: &str = "The faster the processor, the better: a thread that asked for 50 µs runs after 55 to 60 µs at 2.8 GHz, after 70 µs at 1 GHz, after 80 µs at 600 MHz.";
    let later = |shift: u8| {
        let of = runs.kept(|run| self::shift(run) == Some(shift) && run.is_sound());
        let late = |run: &Rc<Run>| Some(pulse(run)?.ran - width(run.manifest()).0 as f64);
        let all: Vec<f64> = of.runs.iter().filter_map(late).collect();
        Statistic::Mean
            .pooled(&all)
            .map(|ns| format!("{} µs late at {}", figure(US.of_ns(ns)), speed(shift)))
    };
    let measured: Vec<String> = shifts.iter().filter_map(|shift| later(*shift)).collect();
    let why = "In the rig a slower machine is one whose every instruction takes longer, so it cannot come out otherwise. A machine has one speed";
    match measured.is_empty() {
        true => untold(PAPER, format!("{why}.")),
        false => untold(PAPER, format!("{why}. On the average: {}.", measured.join(", "))),
    }
}
