// SPDX-License-Identifier: GPL-2.0-or-later
//! Explains single latencies. For each latency its run is made once more.

use super::spans::Spans;
use super::{Explainer, Named, Ready, Wanted};
use crate::Error;
use rig::{Bench, Follow, Stimulus};
use sample::{Insns, Nanos, Sample, SeriesName};
use serde::{Deserialize, Serialize};
use trace::{CauseReport, Explanation, ExplanationReport, Reader, Sum, Symbols};
use work::Progress;

/// Stretches shorter than this get no stack. This is a tenth of a stretch that is worth a line of its own.
pub const STACKS_FROM: Insns = Insns(100);

/// The length of an interrupt or a softirq at the first look inside. Shorter ones that wake nobody only have their
/// entry's name. A latency of ten thousand instructions has such ones.
pub const LOOKS_FROM: Insns = Insns(500);

/// One latency.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// Who answered; of a probe, the series.
    pub responder: String,
    /// When the trigger was raised, or the task was due, since measuring began.
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseShare {
    /// The cause.
    #[serde(flatten)]
    pub cause: CauseReport,
    /// Their time, of how many stretches it is, and the longest.
    #[serde(flatten)]
    pub sum: Sum,
    /// Of the latency, 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub share: f64,
}

impl Explained {
    /// An explanation with names, in the words of the reader that saw it.
    pub fn new(
        series: &SeriesName,
        sample: &Sample,
        explanation: &Explanation,
        reader: &Reader,
        symbols: &dyn Symbols,
    ) -> Explained {
        let report = explanation.report(reader, symbols);
        let parts = report.parts.iter().map(|part| {
            let CauseReport { cause, who, stack } = &part.cause;
            ((cause.as_str(), who.as_str(), stack.as_slice()), part.ns)
        });
        let sums = Sum::by(parts);
        let whole = report.latency_ns;
        let sum: Nanos = sums.values().map(|sum| sum.time).sum();
        assert_eq!((sum, sample.latency), (whole, report.latency_ns), "the parts are the latency");
        let unexplained = sums.iter().filter(|((cause, ..), _)| *cause == "unexplained");
        let unexplained_ns = unexplained.map(|(_, sum)| sum.time).sum();
        let cause = |((cause, who, stack), sum): (&(&str, &str, &[String]), &Sum)| CauseShare {
            cause: CauseReport {
                cause: (*cause).into(),
                who: (*who).into(),
                stack: stack.to_vec(),
            },
            sum: *sum,
            share: sum.time.share_of(whole),
        };
        let mut causes: Vec<CauseShare> = sums.iter().map(cause).collect();
        causes.sort_by_key(|c| std::cmp::Reverse(c.sum.time));
        let responder = series.to_string();
        Explained { responder, at_ns: sample.at, causes, unexplained_ns, report }
    }
}

/// The result of a followed run that explains its latencies.
#[derive(Clone, Debug)]
pub struct Explanations {
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// The latencies, the longest first.
    pub explained: Vec<Explained>,
}

/// Makes the run of `ready` once more, followed, and hands each of the `wanted` samples with its explanation to `each`.
/// Returns what the reader knows at the end.
///
/// # Errors
/// The errors of running it again. Also a sample that came otherwise than before, or that cannot be explained.
pub fn explain_each(
    ready: &Ready,
    follow: &Follow,
    wanted: Wanted,
    each: impl FnMut(&Sample, &Explanation, &Reader),
    progress: &dyn Fn(Progress),
) -> Result<Reader, Error> {
    let (ran, done) = match ready.stimulus() {
        Stimulus::Triggers(_) | Stimulus::Work(_) => {
            let mut explainer = Explainer::new(&ready.responders(), wanted, each);
            let ran = ready.run(Some(follow), &mut explainer, progress);
            (ran, explainer.finish())
        }
        Stimulus::Probe(run) => {
            let mut spans = Spans::find(ready, run, &wanted, progress)?.explained_by(each);
            let ran = ready.run(Some(follow), &mut spans, progress);
            (ran, spans.finish())
        }
    };
    // The reason why the run ended says more than the missing explanations.
    let reader = ran?;
    done?;
    Ok(reader)
}

/// Makes the named run once more, up to the last of `samples`, and explains these.
///
/// # Errors
/// The errors of running it again. Also an answer that came otherwise than before, or that cannot be explained.
pub fn explain(
    bench: &Bench,
    named: &Named,
    samples: &[Sample],
    progress: &dyn Fn(Progress),
) -> Result<Explanations, Error> {
    let ready = Ready::new(bench, named.subject(bench)?, progress)?;
    let (map, follow) = ready.follow_closely()?;
    let wanted = samples.iter().map(|s| ((s.trigger, s.series), *s)).collect();
    let mut explained = Vec::new();
    let each = |sample: &Sample, explanation: &Explanation, reader: &Reader| {
        let series = &ready.series()[sample.series.index()];
        explained.push(Explained::new(series, sample, explanation, reader, &map));
    };
    explain_each(&ready, &follow, wanted, each, progress)?;
    explained.sort_by_key(|e| (std::cmp::Reverse(e.report.latency_ns), e.report.trigger));
    Ok(Explanations { missing: follow.missing, explained })
}
