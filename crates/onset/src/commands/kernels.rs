// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset kernels`: the kernels that guests boot.

use super::{print, print_json};
use crate::arguments::Kernels;
use crate::failure::{Exit, Failure};
use crate::terminal::{Align, Table};
use rig::{Cache, Error, Existing, Given, KernelRecord};
use serde::Serialize;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    kernels: &'a [KernelRecord],
}

pub fn run(command: Kernels) -> Result<Exit, Failure> {
    let cache = Cache::of_user()?;
    let kernels = cache.kernels()?;
    match command {
        Kernels::List { json } => {
            let records = kernels.list()?;
            if json {
                print_json(&Printed { schema: SCHEMA, kernels: &records })?;
            } else {
                print(&listed(&records))?;
            }
        }
        Kernels::Fetch { names } => {
            for name in names {
                eprintln!("{name}: looking for the newest, fetching what is not here");
                print(&added(&kernels.fetch(&name)?))?;
            }
        }
        Kernels::AddDeb { debs, name, replace } => {
            let sources: Vec<String> = debs.iter().map(|d| d.display().to_string()).collect();
            let (name, source) = (name.as_deref(), sources.join(" "));
            let kernel = kernels.add_debs(&debs, name, &source, existing(replace));
            print(&added(&kernel.map_err(refused)?))?;
        }
        Kernels::Add { name, image, modules, headers, replace } => {
            let given = Given { name, image, modules, headers };
            print(&added(&kernels.add(&given, existing(replace)).map_err(refused)?))?;
        }
    }
    Ok(Exit::Success)
}

fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Keep }
}

/// A name that cannot be, or is taken, is wrong usage.
fn refused(e: Error) -> Failure {
    match e {
        Error::KernelName { .. } | Error::KernelExists { .. } => Failure::usage(e),
        other => other.into(),
    }
}

fn added(kernel: &rig::Kernel) -> String {
    format!("{}: {} ({})\n", kernel.record.name, kernel.record.release, kernel.record.source)
}

fn listed(records: &[KernelRecord]) -> String {
    if records.is_empty() {
        return "no kernels yet; get one with onset kernels fetch 6.12\n".into();
    }
    let columns = [
        ("name", Align::Left),
        ("release", Align::Left),
        ("driver", Align::Left),
        ("source", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for record in records {
        let driver = if record.headers.is_some() { "can be built" } else { "no headers" };
        table.row([
            record.name.clone(),
            record.release.clone(),
            driver.into(),
            record.source.clone(),
        ]);
    }
    table.lines().join("\n") + "\n"
}
