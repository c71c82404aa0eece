// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset explain`: where the time of single latencies went.

use super::{bench, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use crate::followed::{Explainer, Named, Ready};
use crate::terminal::{self, Shown};
use sample::{Insns, Nanos, Responder, Sample};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use trace::{CauseReport, Explanation, ExplanationReport, Reader, Symbols};

/// Version of the JSON that is printed (docs/explain.schema.json).
const SCHEMA: u32 = 1;
/// Stretches shorter than this get no stack. A tenth of what is worth a line of its own: the run ends with the answer, so
/// that the cost does not count.
pub const STACKS_FROM: Insns = Insns(100);

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    schema: u32,
    run: Option<&'a str>,
    missing: &'a [String],
    explanations: &'a [Explained],
}

/// One latency.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// Who answered.
    pub responder: &'static str,
    /// When the trigger was raised, since measuring began.
    pub at_ns: Nanos,
    /// Its parts.
    #[serde(flatten)]
    pub report: ExplanationReport,
    /// The parts by cause, the longest first.
    pub causes: Vec<CauseShare>,
    /// Of the latency, what is not understood.
    pub unexplained_ns: Nanos,
}

/// All parts of a latency that have one cause.
#[derive(Debug, Serialize)]
pub struct CauseShare {
    /// The cause.
    #[serde(flatten)]
    pub cause: CauseReport,
    /// Their time.
    pub ns: Nanos,
    /// Of the latency, 0 to 1.
    pub share: f64,
}

pub fn run(arguments: &arguments::Explain) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = Named::find(&arguments.latencies.run, &arguments.latencies.store.store)?;
    let samples = named.samples(arguments.latencies.responder, arguments.choice.choice())?;
    let shown = RefCell::new(Shown::of(vec![named.title()]));
    let progress = |p| shown.borrow_mut().progress(0, p);
    let ready = Ready::new(&bench, named.subject(&bench)?, &progress)?;
    let (map, follow) = ready.follow(STACKS_FROM, true)?;
    let wanted = samples.iter().map(|s| ((s.trigger, s.series), *s)).collect();
    let mut explanations = Vec::new();
    let responders = ready.responders();
    let mut explainer =
        Explainer::new(responders, wanted, |sample, explanation, _: &_, reader: &Reader| {
            let responder = responders[sample.series.index()];
            explanations.push(explained(responder, sample, explanation, reader, &map));
        });
    let ran = ready.run(Some(&follow), &mut explainer, &progress);
    let done = explainer.finish();
    shown.borrow_mut().end(0, if done.is_ok() { "explained" } else { "not explained" });
    // Why the run ended says more than what is missing of it.
    ran?;
    done?;
    explanations.sort_by_key(|e| (std::cmp::Reverse(e.report.latency_ns), e.report.trigger));
    let missing = &follow.missing;
    if arguments.json {
        let run = named.run();
        print_json(&Printed { schema: SCHEMA, run, missing, explanations: &explanations });
    } else {
        print(&terminal::explanations(&named.title(), missing, &explanations));
    }
    Ok(Exit::Success)
}

fn explained(
    responder: Responder,
    sample: &Sample,
    explanation: &Explanation,
    reader: &Reader,
    symbols: &dyn Symbols,
) -> Explained {
    let report = explanation.report(reader.tasks(), reader.stacks(), symbols);
    let mut sums: BTreeMap<(&str, &str, &[String]), Nanos> = BTreeMap::new();
    for part in &report.parts {
        let CauseReport { cause, who, stack } = &part.cause;
        sums.entry((cause, who, stack)).or_default().0 += part.ns.0;
    }
    let whole = report.latency_ns.0;
    let sum: u64 = sums.values().map(|ns| ns.0).sum();
    assert_eq!((sum, sample.latency), (whole, report.latency_ns), "the parts are the latency");
    let unexplained = sums.iter().filter(|((cause, ..), _)| *cause == "unexplained");
    let unexplained_ns = Nanos(unexplained.map(|(_, ns)| ns.0).sum());
    let cause = |((cause, who, stack), ns): (&(&str, &str, &[String]), &Nanos)| CauseShare {
        cause: CauseReport { cause: (*cause).into(), who: (*who).into(), stack: stack.to_vec() },
        ns: *ns,
        share: ns.0 as f64 / whole.max(1) as f64,
    };
    let mut causes: Vec<CauseShare> = sums.iter().map(cause).collect();
    causes.sort_by_key(|c| std::cmp::Reverse(c.ns));
    Explained { responder: responder.name(), at_ns: sample.at, causes, unexplained_ns, report }
}
