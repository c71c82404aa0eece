// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset windows`: the stretches in which a guest runs with interrupts or preemption off.

use super::{bench, print, print_json};
use crate::arguments;
use crate::experiment::Experiment;
use crate::failure::{Exit, Failure};
use crate::followed::{INSIDE_FROM, Ready, Stretches, Subject, Total, WINDOWS_FROM, narrow};
use crate::target::Rig;
use crate::terminal::{self, Shown};
use rig::{Bench, Calls, Progress};
use sample::Nanos;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use trace::{Order, ReaderLosses, WindowKind, WindowRow};

/// Version of the JSON that is printed (docs/windows.schema.json).
const SCHEMA: u32 = 2;

pub fn run(arguments: &arguments::Windows) -> Result<Exit, Failure> {
    let all = each_cell(&arguments.cells, |bench, cell, progress| {
        watch(bench, cell, arguments, progress)
    })?;
    if arguments.json {
        print_json(&Printed::new(&all))?;
    } else {
        for seen in &all {
            print(&(terminal::windows(seen) + "\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// A cell to watch.
pub(super) struct Cell {
    pub flavour: String,
    pub load: String,
    pub subject: Subject,
}

/// What `watch` sees of each cell that is meant, one after the other, with their progress.
pub(super) fn each_cell<T>(
    arguments: &arguments::Cells,
    watch: impl Fn(&Bench, Cell, &dyn Fn(Progress)) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let bench = bench()?;
    let cells = cells(&bench, arguments)?;
    let names = cells.iter().map(|c| format!("{} · {}", c.flavour, c.load)).collect();
    let shown = RefCell::new(Shown::of(names));
    let mut all = Vec::new();
    for (index, cell) in cells.into_iter().enumerate() {
        let seen = watch(&bench, cell, &|p| shown.borrow_mut().progress(index, p));
        shown.borrow_mut().end(index, if seen.is_ok() { "seen" } else { "failed" });
        all.push(seen?);
    }
    Ok(all)
}

/// The cells that are meant: those of an experiment, or a run's.
fn cells(bench: &Bench, arguments: &arguments::Cells) -> Result<Vec<Cell>, Failure> {
    let name = Path::new(&arguments.subject);
    if !name.is_file() {
        if arguments.flavour.is_some() || arguments.load.is_some() {
            return Err(Failure::usage(
                "a run has one flavour and one load; leave --flavour and --load out, or name its experiment's file",
            ));
        }
        let bundle = super::open(&arguments.subject, &arguments.store.store)?;
        let about = &bundle.manifest().about;
        let [flavour, load] = [&about.flavour, &about.load].map(String::clone);
        return Ok(vec![Cell { flavour, load, subject: Subject::of_bundle(bench, &bundle)? }]);
    }
    let mut experiment = Experiment::load(name)?;
    narrow(&mut experiment, arguments.flavour.as_deref(), arguments.load.as_slice())?;
    let rig = Rig::new(bench.clone(), &experiment)?;
    super::tell_missing(&rig, &experiment);
    let cell = |cell: crate::experiment::Cell| {
        let subject = Subject::of_cell(&rig, &experiment, cell)?;
        Some(Cell { flavour: cell.flavour.to_string(), load: cell.load.to_string(), subject })
    };
    Ok(experiment.cells().filter_map(cell).collect())
}

/// What was seen of a cell.
#[derive(Debug, Serialize)]
pub struct SeenWindows {
    /// Its flavour.
    pub flavour: String,
    /// Its load.
    pub load: String,
    /// How long it was watched.
    pub virtual_ns: Nanos,
    /// Triggers in that time.
    pub triggers: u64,
    /// The kinds that were asked for.
    pub kinds: Vec<WindowKind>,
    /// By kind, all windows.
    pub totals: BTreeMap<WindowKind, Total>,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// What the follower's records lost.
    pub losses: ReaderLosses,
    /// The longest, or those with the greatest sum, and by kind what has no length.
    #[serde(skip)]
    pub report: trace::WindowsReport,
}

fn watch(
    bench: &Bench,
    mut cell: Cell,
    arguments: &arguments::Windows,
    progress: &dyn Fn(Progress),
) -> Result<SeenWindows, Failure> {
    let kinds: Vec<WindowKind> = match arguments.kinds.as_slice() {
        [] => WindowKind::ALL.into(),
        some => some.iter().map(|k| WindowKind::from(*k)).collect(),
    };
    // The other two are told by calls of functions.
    let counted = [WindowKind::IrqsOff, WindowKind::PreemptOff];
    let is_counted = kinds.iter().all(|k| counted.contains(k));
    let calls = if is_counted { Calls::None } else { Calls::Stretches };
    let without = cell.subject.spare_driver();
    let ready = Ready::new(bench, cell.subject, progress)?;
    let (map, follow) = ready.follow(WINDOWS_FROM, calls)?;
    let follow = follow.looking_inside(INSIDE_FROM);
    let mut stretches = Stretches::default();
    let reader = ready.run(Some(&follow), &mut stretches, progress)?;
    stretches.finish();
    let which = (&kinds[..], Order::from(arguments.by), arguments.top.get());
    let (report, totals) = stretches.report(which, reader.stacks(), &map);
    Ok(SeenWindows {
        flavour: cell.flavour,
        load: cell.load,
        virtual_ns: stretches.span(),
        triggers: stretches.triggers(),
        kinds,
        totals,
        missing: without.into_iter().chain(follow.missing).collect(),
        losses: reader.losses(),
        report,
    })
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    windows: Vec<PrintedWindow<'a>>,
    cells: Vec<PrintedCell<'a>>,
}

#[derive(Serialize)]
struct PrintedWindow<'a> {
    flavour: &'a str,
    load: &'a str,
    #[serde(flatten)]
    row: &'a WindowRow,
}

#[derive(Serialize)]
struct PrintedCell<'a> {
    #[serde(flatten)]
    seen: &'a SeenWindows,
    cut: &'a BTreeMap<WindowKind, trace::Cuts>,
}

impl<'a> Printed<'a> {
    fn new(all: &'a [SeenWindows]) -> Self {
        let windows = all.iter().flat_map(|seen| {
            let row = |row| PrintedWindow { flavour: &seen.flavour, load: &seen.load, row };
            seen.report.windows.iter().map(row)
        });
        let cell = |seen: &'a SeenWindows| PrintedCell { seen, cut: &seen.report.cut };
        Printed {
            schema: SCHEMA,
            windows: windows.collect(),
            cells: all.iter().map(cell).collect(),
        }
    }
}
