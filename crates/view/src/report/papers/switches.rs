// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduler whose cost does not depend on the number of tasks: Morgan: Real-Time in Linux (2002), and Çayır (2006),
//! §4.3.3. The papers have no figures; onset measures a switch among 2 to 1,000 ready tasks, for each policy.

use super::claim::{Claim, Expects, Said, Scale};
use super::costs::cost;
use super::delay::ratio;
use super::runs::{Repetition, Runs, basis};
use super::{Row, Statistic, Table, Unit, Whose, time_cell};

const US: Unit = Unit::Micros;
const TASKS: [&str; 4] = ["2", "10", "100", "1000"];

/// The policies: the middle of the series' names, and what the rows say.
const POLICIES: [(&str, &str); 3] =
    [("fifo", "SCHED_FIFO"), ("other", "SCHED_OTHER"), ("deadline", "SCHED_DEADLINE")];

const FIFO: Said = Said {
    paper: "The overhead of the real-time scheduler is fixed (2002); it does not depend on the number of tasks, O(1) (2006, §4.3.3): × 1 for SCHED_FIFO.",
    what: "A switch among 1,000 ready tasks divided by one among 2, for the kernel farthest from 1",
    scale: Scale::Factor,
    expects: Expects::Same,
    effect: 1.1,
    needs: "a sound run with both rows",
};
const OTHER: Said = Said {
    paper: "The O(1) scheduler of 2.5 has it for usual tasks too: × 1 for SCHED_OTHER.",
    ..FIFO
};
const DEADLINE: Said = Said {
    paper: "The papers' schedulers have fixed cost for every real-time task, × 1. SCHED_DEADLINE came later (3.14).",
    ..FIFO
};

/// The table.
pub(super) fn table(runs: &Runs) -> Table {
    let groups = runs.groups();
    let mut rows = Vec::new();
    for (policy, name) in POLICIES {
        for group in &groups {
            let series = TASKS.map(|tasks| format!("switch_{policy}_{tasks}"));
            let Some(basis) = basis(group, series.iter().map(String::as_str)) else { continue };
            let cell = |series: &String| {
                let values: Vec<f64> = group.iter().filter_map(|run| cost(run, series)).collect();
                time_cell(&values, Statistic::Median, US)
            };
            rows.push(Row {
                label: format!("{name}, {}", group[0].flavour()),
                whose: Whose::Ours,
                cells: series.iter().map(cell).collect(),
                basis: Some(basis),
            });
        }
    }
    Table {
        id: "2002-scheduler",
        heading: "A switch, by how many tasks are ready",
        source: "Morgan 2002, Scheduler; Çayır 2006, §4.3.3",
        columns: ["2 tasks", "10", "100", "1,000"].map(|name| US.column(name)).into(),
        rows,
        absent: runs.absent(),
        note: format!(
            "{} The papers print no figures. The costs are those of docs/methods/costs.md: SCHED_FIFO and SCHED_OTHER by sched_yield, SCHED_DEADLINE by a token between two \
            tasks above the others. So read along a row, and do not compare SCHED_DEADLINE with the others.",
            runs.note()
        ),
        claims: claims(runs),
        picture: None,
    }
}

fn claims(runs: &Runs) -> Vec<Claim> {
    let grown = |policy: &str| {
        let of = |r: &Repetition| {
            let grown = |run: &super::runs::Run| {
                let cost = |tasks: &str| cost(run, &format!("switch_{policy}_{tasks}"));
                ratio(cost("1000"), cost("2"))
            };
            r.iter().filter_map(grown).max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
        };
        runs.each(of)
    };
    let seeds = runs.repetitions();
    vec![
        FIFO.told(&grown("fifo"), seeds),
        OTHER.told(&grown("other"), seeds),
        DEADLINE.told(&grown("deadline"), seeds),
    ]
}
