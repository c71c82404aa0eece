// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset serve` says of the runs of an experiment over time.

use bundle::{Bundle, Details, UtcTime};
use sample::{Clock, Losses, Nanos};
use serde::Serialize;
use stats::{Column, Quantile, Summary, Verdict};

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History<'a> {
    /// Number of this format.
    schema: u32,
    /// Whose numbers these are; null where no run has any.
    responder: Option<&'a str>,
    /// All responders of the runs, in the order of their first run.
    responders: Vec<&'a str>,
    /// The runs, the oldest first.
    runs: Vec<Past<'a>>,
    /// How many older runs there are, which are left out.
    omitted: usize,
    /// How many of the runs onset cannot read, which are left out, too.
    damaged: usize,
}

/// A run, and what the responder did in it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Past<'a> {
    /// The name of the run.
    run: &'a str,
    /// When it was started.
    created: UtcTime,
    /// The experiment's title.
    title: &'a str,
    /// Kernel and boot parameters.
    flavour: &'a str,
    /// The load's name.
    load: &'a str,
    /// What measured: `trigger`, or a probe's name.
    instrument: &'a str,
    /// The release of the kernel that ran; null where nobody knows it.
    kernel: Option<&'a str>,
    /// The clock of all times.
    clock: Clock,
    /// The outcome.
    verdict: Verdict,
    /// False for a run that was interrupted.
    complete: bool,
    /// The numbers of the responder; null where the run does not have it.
    numbers: Option<Numbers<'a>>,
}

/// What a responder did in a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Numbers<'a> {
    /// How many samples there are, without losses.
    count: u64,
    /// The losses; shown beside every maximum.
    losses: &'a Losses,
    /// The median; null where there are too few samples.
    p50_ns: Option<Nanos>,
    /// 99 %; null where there are too few samples.
    p99_ns: Option<Nanos>,
    /// Exact maximum; null without samples.
    max_ns: Option<Nanos>,
    /// The histogram, with logarithmic columns in rising order. Empty columns are absent.
    columns: Vec<Column>,
}

impl<'a> History<'a> {
    /// Version of the format (docs/history.schema.json).
    pub const SCHEMA: u32 = 1;

    /// The history of runs with their details, the oldest first. Without a responder that is asked for it is that of
    /// the last responder of the newest run: of the driver's, the task.
    pub fn of(
        runs: &'a [(Bundle, Vec<Details>)],
        asked: Option<&'a str>,
        (omitted, damaged): (usize, usize),
    ) -> Self {
        let mut responders: Vec<&str> = Vec::new();
        for summary in runs.iter().flat_map(|(bundle, _)| &bundle.manifest().series) {
            let name = summary.responder.as_str();
            if !responders.contains(&name) {
                responders.push(name);
            }
        }
        let newest = runs.last().and_then(|(bundle, _)| bundle.manifest().series.last());
        let responder = asked.or(newest.map(|summary| summary.responder.as_str()));
        let runs = runs.iter().map(|(bundle, details)| past(bundle, details, responder));
        let runs = runs.collect();
        History { schema: Self::SCHEMA, responder, responders, runs, omitted, damaged }
    }
}

fn past<'a>(bundle: &'a Bundle, details: &'a [Details], responder: Option<&str>) -> Past<'a> {
    let manifest = bundle.manifest();
    let about = &manifest.about;
    let is_asked = |name: &str| Some(name) == responder;
    let summary = manifest.series.iter().find(|summary| is_asked(summary.responder.as_str()));
    let details = details.iter().find(|details| is_asked(details.responder.as_str()));
    Past {
        run: manifest.run.as_str(),
        created: about.created,
        title: &about.title,
        flavour: &about.flavour,
        load: &about.load,
        instrument: about.instrument(),
        kernel: about.kernel.as_ref().map(|kernel| kernel.release.as_str()),
        clock: manifest.clock,
        verdict: manifest.conclusion.verdict,
        complete: manifest.complete,
        numbers: summary.map(|summary| numbers(summary, details)),
    }
}

fn numbers<'a>(summary: &'a Summary, details: Option<&Details>) -> Numbers<'a> {
    let columns = details.map_or(&[][..], |details| &details.columns);
    Numbers {
        count: summary.count,
        losses: &summary.losses,
        p50_ns: summary.quantile(Quantile::P50),
        p99_ns: summary.quantile(Quantile::P99),
        max_ns: summary.max,
        columns: columns.iter().filter(|column| column.count > 0).copied().collect(),
    }
}
