// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset blame`: all the time of a run's latencies, by cause.

use super::{bench, print, print_json};
use crate::arguments::{self, Above};
use crate::bundle::Bundle;
use crate::failure::{Exit, Failure};
use crate::followed::{Account, Explainer, Ledgers, Ready, Subject, Wanted, replay_of_answer};
use crate::terminal::{self, Shown};
use rig::{Bench, Progress};
use sample::{Nanos, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{LatencyKind, LedgerRow, Reader, Sum};

/// Version of the JSON that is printed (docs/blame.schema.json).
const SCHEMA: u32 = 3;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    run: &'a str,
    missing: &'a [String],
    ledgers: Vec<PrintedLedger<'a>>,
}

#[derive(Serialize)]
struct PrintedLedger<'a> {
    responder: &'a str,
    samples: u64,
    from_ns: Nanos,
    total_ns: Nanos,
    rows: Vec<PrintedRow<'a>>,
    kinds: &'a BTreeMap<LatencyKind, Sum>,
}

#[derive(Serialize)]
struct PrintedRow<'a> {
    #[serde(flatten)]
    row: &'a LedgerRow,
    replay: String,
}

impl<'a> PrintedLedger<'a> {
    fn of(bundle: &Bundle, Account { responder, report }: &'a Account) -> Self {
        let row = |row: &'a LedgerRow| {
            let replay = replay_of_answer(bundle.path(), responder, row.max_trigger);
            PrintedRow { row, replay }
        };
        PrintedLedger {
            responder,
            samples: report.samples,
            from_ns: report.from_ns,
            total_ns: report.total_ns,
            rows: report.rows.iter().map(row).collect(),
            kinds: &report.kinds,
        }
    }
}

pub fn run(arguments: &arguments::Blame) -> Result<Exit, Failure> {
    let bench = bench()?;
    let bundle = super::open(&arguments.run, &arguments.store.store)?;
    let about = &bundle.manifest().about;
    let title = format!("{} · {}", about.flavour, about.load);
    let subject = Subject::of_bundle(&bench, &bundle)?;
    let asked = ledgers(&bundle, arguments)?;
    let ended = ["accounted for", "not accounted for"];
    let (ledgers, missing) =
        Shown::during(title.clone(), ended, |progress| account(&bench, subject, asked, progress))?;
    let (run, missing) = (bundle.manifest().run.as_str(), &missing);
    if arguments.json {
        let ledgers = ledgers.iter().map(|account| PrintedLedger::of(&bundle, account)).collect();
        print_json(&Printed { schema: SCHEMA, run, missing, ledgers })?;
        return Ok(Exit::Success);
    }
    print(&format!("{title}\n{run}\n"))?;
    for missing in missing {
        print(&format!("  ! not seen: {missing}\n"))?;
    }
    for account in &ledgers {
        print(&format!("\n{}", terminal::ledger(bundle.path(), account)))?;
    }
    Ok(Exit::Success)
}

/// Runs it once more, up to the last answer that belongs in the ledgers; them, and what was not seen.
fn account(
    bench: &Bench,
    subject: Subject,
    (mut ledgers, wanted): (Ledgers, Wanted),
    progress: &dyn Fn(Progress),
) -> Result<(Vec<Account>, Vec<String>), Failure> {
    let ready = Ready::new(bench, subject, progress)?;
    let (map, follow) = ready.follow_closely()?;
    let mut explainer = Explainer::new(
        ready.responders(),
        wanted,
        |sample: &Sample, explanation: &_, reader: &Reader| {
            ledgers.add(sample, explanation, reader, &map);
        },
    );
    let ran = ready.run(Some(&follow), &mut explainer, progress);
    let done = explainer.finish();
    let reader = ran?;
    done?;
    Ok((ledgers.accounts(ready.responders(), &reader, &map), follow.missing))
}

/// The ledgers that are asked for, and the samples that belong in them.
fn ledgers(bundle: &Bundle, arguments: &arguments::Blame) -> Result<(Ledgers, Wanted), Failure> {
    // None where the run is too short for the quantile.
    let from = |summary: &stats::Summary| match arguments.above {
        Above::All => Some(Nanos(0)),
        Above::Latency(latency) => Some(latency),
        Above::Quantile(quantile) => summary.quantile(quantile),
    };
    let (ledgers, wanted) = Ledgers::of(bundle, arguments.responder, from)?;
    if wanted.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no latency of {} and more; lower --above",
            bundle.manifest().run,
            arguments.above
        )));
    }
    Ok((ledgers, wanted))
}
