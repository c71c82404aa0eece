// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset blame`: all the time of a run's latencies, by cause.

use super::{bench, print, print_json};
use crate::arguments::{self, Above};
use crate::bundle::{Bundle, Manifest};
use crate::failure::{Exit, Failure};
use crate::followed::{Choice, Explainer, Ready, Subject, Wanted, samples_of};
use crate::terminal::{self, Shown};
use sample::{Nanos, Sample, SeriesId};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use trace::{Ledger, LedgerReport, Reader};

/// Version of the JSON that is printed (docs/blame.schema.json).
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    run: &'a str,
    missing: &'a [String],
    ledgers: &'a [Account],
}

/// The ledger of one responder.
#[derive(Serialize)]
struct Account {
    responder: &'static str,
    #[serde(flatten)]
    report: LedgerReport,
}

pub fn run(arguments: &arguments::Blame) -> Result<Exit, Failure> {
    let bench = bench()?;
    let bundle = super::open(&arguments.run, &arguments.store.store)?;
    let about = &bundle.manifest().about;
    let title = format!("{} · {}", about.flavour, about.load);
    let subject = Subject::of_bundle(&bench, &bundle)?;
    let (wanted, from) = wanted(&bundle, arguments)?;
    let shown = RefCell::new(Shown::of(vec![title.clone()]));
    let progress = |p| shown.borrow_mut().progress(0, p);
    let ready = Ready::new(&bench, subject, &progress)?;
    let (map, follow) = ready.follow(super::explain::STACKS_FROM, true)?;
    let mut ledgers: BTreeMap<SeriesId, Ledger> =
        from.iter().map(|(series, from)| (*series, Ledger::new(*from))).collect();
    let mut explainer = Explainer::new(
        ready.responders(),
        wanted,
        |sample: &Sample, explanation: &_, _: &_, reader: &Reader| {
            if let Some(ledger) = ledgers.get_mut(&sample.series) {
                ledger.add(explanation, reader.tasks());
            }
        },
    );
    let ran = ready.run(Some(&follow), &mut explainer, &progress);
    let done = explainer.finish();
    shown.borrow_mut().end(0, if done.is_ok() { "accounted for" } else { "not accounted for" });
    let reader = ran?;
    done?;
    let account = |(series, ledger): (&SeriesId, &Ledger)| Account {
        responder: ready.responders()[series.index()].name(),
        report: ledger.report(reader.stacks(), &map),
    };
    let ledgers: Vec<Account> = ledgers.iter().map(account).collect();
    let (run, missing) = (bundle.manifest().run.as_str(), &follow.missing);
    if arguments.json {
        print_json(&Printed { schema: SCHEMA, run, missing, ledgers: &ledgers });
        return Ok(Exit::Success);
    }
    print(&format!("{title}\n{run}\n"));
    for missing in missing {
        print(&format!("  ! not seen: {missing}\n"));
    }
    for Account { responder, report } in &ledgers {
        print(&format!("\n{}", terminal::ledger(responder, report)));
    }
    Ok(Exit::Success)
}

/// The samples that are accounted for, and the shortest of each series.
fn wanted(
    bundle: &Bundle,
    arguments: &arguments::Blame,
) -> Result<(Wanted, BTreeMap<SeriesId, Nanos>), Failure> {
    let from = from(bundle.manifest(), arguments);
    let samples = samples_of(bundle, arguments.responder, Choice::Worst(usize::MAX))?;
    let above = |s: &&Sample| from.get(&s.series).is_some_and(|from| s.latency >= *from);
    let wanted: Wanted =
        samples.iter().filter(above).map(|s| ((s.trigger, s.series), *s)).collect();
    if wanted.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no latency of {} and more; lower --above",
            bundle.manifest().run,
            arguments.above
        )));
    }
    Ok((wanted, from))
}

/// From which latency on a series is accounted for; none where the run is too short for the quantile.
fn from(manifest: &Manifest, arguments: &arguments::Blame) -> BTreeMap<SeriesId, Nanos> {
    let of = |r: &stats::Summary| match arguments.above {
        Above::All => Some(Nanos(0)),
        Above::Latency(latency) => Some(latency),
        Above::Quantile(quantile) => r.quantile(quantile),
    };
    let asked =
        |s: &stats::Summary| arguments.responder.is_none_or(|r| s.responder.as_str() == r.name());
    let series = (0..).zip(&manifest.series).filter(|(_, summary)| asked(summary));
    series.filter_map(|(id, summary)| Some((SeriesId(id), of(summary)?))).collect()
}
