// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset explain`: shows where the time of single latencies went, and of costs where their instructions went.

use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::Error;
use lab::followed::{Named, Spending, explain, spend};
use rig::Bench;
use view::results::{Explain, ExplainCosts};
use view::terminal::{self, Shown};

const ENDED: [&str; 2] = ["explained", "not explained"];

pub fn run(arguments: &arguments::Explain) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    if named.measured_costs() {
        return costs(&bench, &named, arguments);
    }
    if arguments.against.is_some() {
        return Err(only_costs(&named).into());
    }
    // A run that cannot be made again is refused first: its samples do not matter then.
    named.subject(&bench)?;
    let samples = named.samples(arguments.latencies.series.as_ref(), arguments.choice.choice())?;
    let seen = Shown::during(named.title(), ENDED, |progress| {
        explain(&bench, &named, &samples, progress)
    })?;
    if arguments.json {
        print_json(&Explain::of(named.run(), &seen))?;
    } else {
        print(&terminal::explanations(&named.title(), &seen.missing, &seen.explained))?;
    }
    Ok(Exit::Success)
}

/// Where the instructions of the costs of a run went, and against another run.
fn costs(bench: &Bench, named: &Named, arguments: &arguments::Explain) -> Result<Exit, Failure> {
    if arguments.choice.choice().is_some() {
        return Err(Error::Unfit(
            "a cost is explained by the batch that makes its figure: leave --sample and --worst out, and name a cost by --series".into(),
        )
        .into());
    }
    let latencies = &arguments.latencies;
    let other = match &arguments.against {
        None => None,
        Some(run) => Some(Named::find(run, || super::store(&latencies.store.store))?),
    };
    if let Some(other) = other.as_ref().filter(|other| !other.measured_costs()) {
        return Err(only_costs(other).into());
    }
    let spent = |named: &Named| -> Result<Vec<Spending>, Error> {
        Shown::during(named.title(), ENDED, |progress| {
            spend(bench, named, latencies.series.as_ref(), progress)
        })
    };
    let own = spent(named)?;
    let others = other.as_ref().map(spent).transpose()?;
    let run = (named.title(), own.as_slice());
    let against = other.as_ref().map(Named::title).zip(others.as_deref());
    if arguments.json {
        let names = (named.run(), other.as_ref().and_then(Named::run));
        print_json(&ExplainCosts::of(names, &own, others.as_deref()))?;
    } else {
        print(&terminal::spending(
            (&run.0, run.1),
            against.as_ref().map(|(t, s)| (t.as_str(), *s)),
        ))?;
    }
    Ok(Exit::Success)
}

fn only_costs(named: &Named) -> Error {
    let what = named.run().unwrap_or("a find");
    Error::Unfit(format!(
        "{what}: it did not measure costs, which alone can be shown against another run; `onset compare` compares latencies"
    ))
}
