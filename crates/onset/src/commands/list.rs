// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset list`: lists the runs of a store, newest first.

use super::{print, print_json, store};
use crate::failure::{Exit, Failure};
use bundle::store::Entry;
use std::path::Path;
use view::results::List;
use view::screen::{Tone, toned};
use view::terminal::{Align, Table, tone};

pub fn run(root: &Path, json: bool) -> Result<Exit, Failure> {
    let entries = store(root).list()?;
    if json {
        print_json(&List::of(&entries))?;
    } else if entries.is_empty() {
        print(&format!("there are no runs in {}; make one with onset run\n", root.display()))?;
    } else {
        print(&(table(&entries).text() + &damaged(&entries)))?;
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
    let mut table =
        Table::new(&columns).sparing(&["samples", "instrument", "seed", "load", "flavour"]);
    for entry in entries {
        let Ok(headline) = &entry.state else { continue };
        let partial = if headline.complete { "" } else { ", interrupted" };
        let verdict = format!("{}{partial}", headline.verdict.name());
        table.row([
            entry.run.to_string(),
            headline.flavour.clone(),
            headline.load.clone(),
            headline.instrument.clone(),
            headline.seed.to_string(),
            headline.samples.to_string(),
            toned(tone(headline.verdict), &verdict),
        ]);
    }
    table
}

/// Bundles that cannot be read. They stand below the table, since the reason is longer than any column.
fn damaged(entries: &[Entry]) -> String {
    let damaged =
        entries.iter().filter_map(|entry| Some((&entry.run, entry.state.as_ref().err()?)));
    damaged.map(|(run, why)| format!("{} {run}: damaged: {why}\n", toned(Tone::Bad, "✗"))).collect()
}
