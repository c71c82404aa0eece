// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset explain`: shows where the time of single latencies went.

use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::explain;
use view::results::Explain;
use view::terminal::{self, Shown};

pub fn run(arguments: &arguments::Explain) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    // A run that cannot be made again is refused first: its samples do not matter then.
    named.subject(&bench)?;
    let samples = named.samples(arguments.latencies.series.as_ref(), arguments.choice.choice())?;
    let ended = ["explained", "not explained"];
    let seen = Shown::during(named.title(), ended, |progress| {
        explain(&bench, &named, &samples, progress)
    })?;
    if arguments.json {
        print_json(&Explain::of(named.run(), &seen))?;
    } else {
        print(&terminal::explanations(&named.title(), &seen.missing, &seen.explained))?;
    }
    Ok(Exit::Success)
}
