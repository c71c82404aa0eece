// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset explain`: where the time of single latencies went.

use super::{bench, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use crate::followed::{Explained, Explanations, Named, explain};
use crate::terminal::{self, Shown};
use serde::Serialize;

/// Version of the JSON that is printed (docs/explain.schema.json).
const SCHEMA: u32 = 3;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    schema: u32,
    run: Option<&'a str>,
    missing: &'a [String],
    explanations: &'a [Explained],
}

pub fn run(arguments: &arguments::Explain) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = Named::find(&arguments.latencies.run, &arguments.latencies.store.store)?;
    let samples = named.samples(arguments.latencies.responder, arguments.choice.choice())?;
    let ended = ["explained", "not explained"];
    let Explanations { missing, explained } = Shown::during(named.title(), ended, |progress| {
        explain(&bench, &named, &samples, progress)
    })?;
    if arguments.json {
        let run = named.run();
        let (missing, explanations) = (&missing[..], &explained[..]);
        print_json(&Printed { schema: SCHEMA, run, missing, explanations })?;
    } else {
        print(&terminal::explanations(&named.title(), &missing, &explained))?;
    }
    Ok(Exit::Success)
}
