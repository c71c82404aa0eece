// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset windows`: finds the stretches in which a guest runs with interrupts or preemption off, and ranks them.

use super::{bench, open, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use experiment::Experiment;
use lab::cells::FollowedCell;
use lab::windows::{Which, windows};
use rig::Bench;
use std::cell::RefCell;
use std::path::Path;
use trace::{Order, WindowKind};
use view::results;
use view::terminal::{self, Shown};
use work::Progress;

pub fn run(arguments: &arguments::Windows) -> Result<Exit, Failure> {
    let kinds = match arguments.kinds.as_slice() {
        [] => WindowKind::ALL.into(),
        some => some.iter().map(|k| WindowKind::from(*k)).collect(),
    };
    let (order, top) = (Order::from(arguments.by), arguments.top.get());
    let which = Which { kinds, order, top };
    let all = each_cell(&arguments.cells, |bench, cell, progress| {
        windows(bench, cell, which.clone(), progress)
    })?;
    if arguments.json {
        print_json(&results::Windows::of(&all))?;
    } else {
        for seen in &all {
            print(&(terminal::windows(seen) + "\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// Watches each cell that the user means, one after the other, and shows the progress.
pub(super) fn each_cell<T>(
    arguments: &arguments::Cells,
    watch: impl Fn(&Bench, FollowedCell, &dyn Fn(Progress)) -> Result<T, lab::Error>,
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

/// The cells that the user means: all cells of an experiment, or the cell of a run.
fn cells(bench: &Bench, arguments: &arguments::Cells) -> Result<Vec<FollowedCell>, Failure> {
    let name = Path::new(&arguments.subject);
    if !name.is_file() {
        if arguments.flavour.is_some() || arguments.load.is_some() {
            return Err(Failure::usage(
                "a run has only one flavour and one load; leave --flavour and --load out, or give the file of its experiment",
            ));
        }
        let bundle = open(&arguments.subject, &arguments.store.store)?;
        return Ok(vec![FollowedCell::of_run(bench, &bundle)?]);
    }
    let experiment = Experiment::load(name)?;
    let flavour = arguments.flavour.as_deref();
    let (cells, rig, experiment) =
        FollowedCell::of_experiment(bench, experiment, flavour, arguments.load)?;
    super::tell_missing(&rig, &experiment);
    Ok(cells)
}
