// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset blame`: replays a run, and shows how much time each cause took in all its latencies.

use super::{bench, print, print_json};
use crate::arguments::{self, Above};
use crate::failure::{Exit, Failure};
use bundle::{About, Bundle};
use lab::followed::{Account, Ledgers, Ready, Subject, Wanted, explain_each};
use rig::Bench;
use sample::{Nanos, Sample};
use trace::Reader;
use view::results::Blame;
use view::terminal::{self, Shown};
use work::Progress;

pub fn run(arguments: &arguments::Blame) -> Result<Exit, Failure> {
    let bench = bench()?;
    let bundle = super::open(&arguments.run, &arguments.store.store)?;
    let about = &bundle.manifest().about;
    let title = title(about);
    let subject = Subject::of_bundle(&bench, &bundle)?;
    let asked = ledgers(&bundle, arguments)?;
    let (ledgers, missing) = accounted(&bench, &bundle, subject, asked)?;
    if arguments.json {
        print_json(&Blame::of(&bundle, &ledgers, &missing))?;
        return Ok(Exit::Success);
    }
    print(&format!("{title}\n{}\n", bundle.manifest().run))?;
    for missing in &missing {
        print(&format!("  ! not seen: {missing}\n"))?;
    }
    for account in &ledgers {
        print(&format!("\n{}", terminal::ledger(bundle.path(), account)))?;
    }
    Ok(Exit::Success)
}

fn title(about: &About) -> String {
    format!("{} · {}", about.flavour, about.load)
}

/// Fills the ledgers of a run, and shows how far it is. Returns them, and what this kernel hides.
pub(super) fn accounted(
    bench: &Bench,
    bundle: &Bundle,
    subject: Subject,
    asked: (Ledgers, Wanted),
) -> Result<(Vec<Account>, Vec<String>), Failure> {
    let ended = ["accounted for", "not accounted for"];
    let title = title(&bundle.manifest().about);
    Shown::during(title, ended, |progress| account(bench, subject, asked, progress))
}

/// Replays the run up to the last answer that belongs in the ledgers. Returns the ledgers, and what this kernel hides.
fn account(
    bench: &Bench,
    subject: Subject,
    (mut ledgers, wanted): (Ledgers, Wanted),
    progress: &dyn Fn(Progress),
) -> Result<(Vec<Account>, Vec<String>), Failure> {
    let ready = Ready::new(bench, subject, progress)?;
    let (map, follow) = ready.follow_closely()?;
    let each = |sample: &Sample, explanation: &_, reader: &Reader| {
        ledgers.add(sample, explanation, reader, &map);
    };
    let reader = explain_each(&ready, &follow, wanted, each, progress)?;
    Ok((ledgers.accounts(ready.series(), &reader, &map), follow.missing))
}

/// The ledgers that the user asked for, and the samples that belong in them.
fn ledgers(bundle: &Bundle, arguments: &arguments::Blame) -> Result<(Ledgers, Wanted), Failure> {
    // There is none if the run is too short for the quantile.
    let from = |summary: &stats::Summary| match arguments.above {
        Above::All => Some(Nanos(0)),
        Above::Latency(latency) => Some(latency),
        Above::Quantile(quantile) => summary.quantile(quantile),
    };
    let (ledgers, wanted) = Ledgers::of(bundle, arguments.series.as_ref(), from)?;
    if wanted.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no latency of {} or more; give a smaller --above",
            bundle.manifest().run,
            arguments.above
        )));
    }
    Ok((ledgers, wanted))
}
