// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset list`: the runs of a store, newest first.

use super::{print, print_json, store};
use crate::failure::{Exit, Failure};
use crate::store::{Entry, Headline};
use crate::terminal::{Align, Table};
use serde::Serialize;
use std::path::Path;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    runs: Vec<PrintedRun<'a>>,
}

#[derive(Serialize)]
struct PrintedRun<'a> {
    run: &'a str,
    #[serde(flatten)]
    headline: Option<&'a Headline>,
    damaged: Option<&'a str>,
}

pub fn run(root: &Path, json: bool) -> Result<Exit, Failure> {
    let entries = store(root).list()?;
    if json {
        let runs = entries.iter().map(|e| PrintedRun {
            run: e.run.as_str(),
            headline: e.state.as_ref().ok(),
            damaged: e.state.as_ref().err().map(String::as_str),
        });
        print_json(&Printed { schema: SCHEMA, runs: runs.collect() })?;
    } else if entries.is_empty() {
        print(&format!("no runs in {}; make one with onset run\n", root.display()))?;
    } else {
        print(&(table(&entries).lines().join("\n") + "\n"))?;
    }
    Ok(Exit::Success)
}

fn table(entries: &[Entry]) -> Table {
    let columns = [
        ("run", Align::Left),
        ("flavour", Align::Left),
        ("load", Align::Left),
        ("instrument", Align::Left),
        ("seed", Align::Right),
        ("samples", Align::Right),
        ("verdict", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for entry in entries {
        let run = entry.run.to_string();
        match &entry.state {
            Ok(h) => {
                let partial = if h.complete { "" } else { ", interrupted" };
                let verdict = format!("{}{partial}", h.verdict.name());
                table.row([
                    run,
                    h.flavour.clone(),
                    h.load.clone(),
                    h.instrument.clone(),
                    h.seed.to_string(),
                    h.samples.to_string(),
                    verdict,
                ]);
            }
            Err(why) => table.row(
                [run, format!("damaged: {why}")].into_iter().chain([const { String::new() }; 5]),
            ),
        }
    }
    table
}
