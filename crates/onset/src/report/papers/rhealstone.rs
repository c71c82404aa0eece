// SPDX-License-Identifier: GPL-2.0-or-later
//! Heursch, Rzehak: Rapid Reaction Linux (2001), tables 6 and 7: means of the Rhealstone components in µs, and beside them
//! those that the paper left out.

use super::claim::{Claim, Now};
use super::runs::{Runs, basis, ends, summary};
use super::{
    ABSENT, Cell, Column, MEAN, Printed, Row, Table, Unit, Whose, figure, printed, time_cell,
};
use crate::bundle::Manifest;

const US: Unit = Unit::Micros;

const TABLE_6: [Printed; 6] = [
    ("A Linux 2.2.13", &["1.5", "3.1", ABSENT, ABSENT]),
    ("B A + UTIME", &["1.6", "3.4", ABSENT, ABSENT]),
    ("C Linux 2.4.0-test6", &["1.1", "3.4", ABSENT, ABSENT]),
    ("G Linux 2.4.9", &["1.1", "3.4", ABSENT, ABSENT]),
    ("D C + Low Latency C4", &["1.1", "3.5", ABSENT, ABSENT]),
    ("E C + Rapid Reaction", &["1.2", "3.6", ABSENT, ABSENT]),
];
const TABLE_7: [Printed; 6] = [
    ("A Linux 2.2.13", &["5.6", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("B A + UTIME", &["5.2", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("C Linux 2.4.0-test6", &["6.8", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("G Linux 2.4.9", &["5.3", "3.5", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("D C + Low Latency C4", &["6.8", "3.6", ABSENT, ABSENT, ABSENT, ABSENT]),
    ("E C + Rapid Reaction", &["5.8", "3.6", ABSENT, ABSENT, ABSENT, ABSENT]),
];

const PREEMPTION: &str = "preemption";
const MESSAGE: &str = "message_passing-sysv";
const SHUFFLE: &str = "semaphore_shuffle-sysv";
const INTERRUPT: &str = "interrupt_latency";
const DEADLOCK: &str = "deadlock_breaking";

/// Table 6.
pub(super) fn preemption(runs: &Runs) -> Table {
    let runs = runs.under("idle");
    let alike = match ends(&runs.values(PREEMPTION, MEAN)) {
        Some((least, most)) => {
            let text = format!(
                "Preemption from the quickest to the slowest kernel: 1.1 to 1.6 µs then (× 1.45), {} to {} µs now (× {}).",
                figure(US.of_ns(least.ns)),
                figure(US.of_ns(most.ns)),
                figure(most.ns / least.ns),
            );
            Claim::alike(most.ns <= 2.0 * least.ns, text)
        }
        None => Claim::unknown("Preemption was not measured."),
    };
    let changed = match runs.first(MESSAGE, MEAN) {
        Some(now) => Claim::changed("A System V message", 3.4, "C", &now, US),
        None => Claim::unknown("Messages were not measured."),
    };
    let series = [PREEMPTION, MESSAGE, "task_switch", "message_passing-posix"];
    let ours = runs.rows(US, &series.map(|s| (s, MEAN)));
    Table {
        id: "2001-6",
        heading: "Rhealstone: preemption and message passing",
        source: "Heursch, Rzehak 2001, table 6",
        columns: ["preemption", "message, System V", "task switch", "message, POSIX"]
            .map(|n| US.column(n))
            .into(),
        rows: TABLE_6.iter().map(printed).chain(ours).collect(),
        absent: absent(&runs, &series),
        note: format!(
            "{} Ours holds the timer's interrupt that wakes the preempting task.",
            runs.note()
        ),
        alike,
        changed,
        picture: None,
    }
}

/// Table 7.
pub(super) fn semaphore(runs: &Runs) -> Table {
    let runs = runs.under("idle");
    let alike = match (runs.first(SHUFFLE, MEAN), runs.first(INTERRUPT, MEAN)) {
        (Some(shuffle), Some(interrupt)) => {
            let text = format!(
                "A semaphore's change of hands against an interrupt's response: 6.8 against 3.5 µs then (C), {} against {} µs now ({}).",
                figure(US.of_ns(shuffle.ns)),
                figure(US.of_ns(interrupt.ns)),
                shuffle.whose,
            );
            Claim::alike(shuffle.ns > interrupt.ns, text)
        }
        _ => Claim::unknown(
            "It takes both the semaphore and the interrupt; for the latter the driver must be loaded.",
        ),
    };
    let series = [SHUFFLE, INTERRUPT, "semaphore_shuffle-posix", DEADLOCK];
    let mut columns: Vec<Column> =
        ["semaphore, System V", "interrupt response", "semaphore, POSIX", "deadlock breaking"]
            .map(|n| US.column(n))
            .into();
    columns.extend(["all, System V", "all, POSIX"].map(|name| Column { name, unit: "1/s" }));
    let ours = runs.manifests().filter_map(|m| row_with_figures(m, &series));
    Table {
        id: "2001-7",
        heading: "Rhealstone: semaphore and interrupt",
        source: "Heursch, Rzehak 2001, table 7",
        columns,
        rows: TABLE_7.iter().map(printed).chain(ours).collect(),
        absent: absent(&runs, &series),
        note: format!(
            "{} The paper's interrupt went through a wire between two pins of the parallel port; ours is from the timer's due time to its hard handler. \
             “All” is Kar's figure in Rhealstones a second; where fewer than six components are in it, it says so.",
            runs.note()
        ),
        alike,
        changed: deadlock(runs.first(DEADLOCK, MEAN)),
        picture: None,
    }
}

/// The paper had to leave it out: its Linux had no priority inheritance.
fn deadlock(now: Option<Now>) -> Claim {
    match now {
        Some(now) => Claim {
            word: "changed",
            text: format!(
                "Breaking a deadlock by priority inheritance: not there to be measured then, {} µs now ({}).",
                figure(US.of_ns(now.ns)),
                now.whose
            ),
        },
        None => Claim::unknown(
            "Deadlock breaking was not measured; in 2001 Linux had no priority inheritance to do it with.",
        ),
    }
}

fn row_with_figures(manifest: &Manifest, series: &[&str]) -> Option<Row> {
    let mean = |name: &&str| time_cell(summary(manifest, name).and_then(MEAN), US);
    let mut cells: Vec<Cell> = series.iter().map(mean).collect();
    cells.extend(["sysv", "posix"].map(|interface| combined(manifest, interface)));
    let basis = basis(manifest, series.iter().copied())?;
    Some(Row {
        label: manifest.about.flavour.clone(),
        whose: Whose::Ours,
        cells,
        basis: Some(basis),
    })
}

/// The combined figure, with the number of its components where they are not six.
fn combined(manifest: &Manifest, interface: &str) -> Cell {
    let whole = format!("rhealstones_per_second_{interface}");
    let found = manifest.about.probe_counters.iter().find_map(|(key, n)| {
        let rest = key.strip_prefix(&whole)?;
        let parts = rest.strip_prefix("_of_").map_or(String::new(), |parts| format!(" of {parts}"));
        Some(format!("{n}{parts}"))
    });
    Cell { text: found.unwrap_or(ABSENT.into()), exact_ns: None }
}

fn absent(runs: &Runs, series: &[&str]) -> Vec<String> {
    let mut absent = runs.absent();
    for manifest in runs.manifests() {
        let missing = series.iter().filter(|s| summary(manifest, s).is_none_or(|s| s.count == 0));
        absent.extend(missing.map(|s| format!("{s} of {}", manifest.about.flavour)));
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlock_breaking_is_new_only_where_it_was_measured() {
        assert_eq!(deadlock(None).word, "not known");
        let now = Now { ns: 78_600.0, whose: "6.12".into() };
        assert!(deadlock(Some(now)).text.contains("78.6 µs now (6.12)"));
    }
}
