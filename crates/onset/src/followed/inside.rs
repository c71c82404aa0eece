// SPDX-License-Identifier: GPL-2.0-or-later
//! All that can be seen inside a run, in one pass: its windows, the ledgers of its late answers, its worst answers
//! explained, and its bound.

use super::{
    Account, Explained, Explainer, Ledgers, Ready, Stretches, Subject, Total, Wanted, Watcher,
};
use crate::bundle::Bundle;
use crate::failure::Failure;
use rig::{Bench, Progress};
use sample::{Nanos, Sample, SeriesId};
use stats::{Quantile, Summary};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{
    BoundMeter, BoundReport, Event, Explanation, Order, Reader, ReaderLosses, WindowKind,
    WindowsReport,
};

/// Stacks of each kind of window.
const WINDOWS_KEPT: usize = 12;
/// Ledgers are of the answers above this, where a run has enough of them.
const ABOVE: Quantile = Quantile::P99;

/// What was seen inside a run.
#[derive(Clone, Debug)]
pub struct Inside {
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// What the follower's records lost.
    pub losses: ReaderLosses,
    /// How long was followed.
    pub virtual_ns: Nanos,
    /// Triggers in that time.
    pub triggers: u64,
    /// By kind, all windows.
    pub totals: BTreeMap<WindowKind, Total>,
    /// The longest windows of each kind.
    pub windows: WindowsReport,
    /// For each responder, where the time of its late answers went.
    pub accounts: Vec<Account>,
    /// The worst answer of each responder.
    pub worst: Vec<Explained>,
    /// The bound of the scheduling latency.
    pub bound: BoundReport,
    /// By responder, the longest scheduling latency among the answers in its ledger; absent where the bound speaks of none.
    pub scheduling: BTreeMap<&'static str, Nanos>,
}

impl Inside {
    /// Runs it once more, followed from begin to end.
    ///
    /// # Errors
    /// A run that cannot be run once more ([`Subject::of_bundle`]), that came out otherwise, or whose answers cannot be explained
    /// from the last [`EVENTS_KEPT`](super::EVENTS_KEPT) events.
    pub fn of_run(
        bench: &Bench,
        bundle: &Bundle,
        progress: &dyn Fn(Progress),
    ) -> Result<Inside, Failure> {
        let subject = Subject::of_bundle(bench, bundle)?;
        let answered = bundle.manifest().series.iter().any(|summary| summary.count > 0);
        let (mut ledgers, wanted) =
            if answered { Ledgers::of(bundle, None, from)? } else { Default::default() };
        let ready = Ready::new(bench, subject, progress)?;
        let (map, follow) = ready.follow_closely()?;
        let responders = ready.responders();
        let latest = latest(&wanted);
        let mut worst = Vec::new();
        let mut scheduling: BTreeMap<&'static str, Nanos> = BTreeMap::new();
        let each = |sample: &Sample, explanation: &Explanation, reader: &Reader| {
            ledgers.add(sample, explanation, reader, &map);
            let responder = responders[sample.series.index()];
            if let Ok(length) = trace::scheduling(explanation) {
                let longest = scheduling.entry(responder.name()).or_default();
                *longest = (*longest).max(length);
            }
            if latest.get(&sample.series).is_some_and(|w| w.trigger == sample.trigger) {
                worst.push(Explained::new(responder, sample, explanation, reader, &map));
            }
        };
        let mut pass = Pass {
            stretches: Stretches::default(),
            meter: BoundMeter::new(),
            explainer: Explainer::new(responders, wanted, each),
        };
        let ran = ready.run(Some(&follow), &mut pass, progress);
        let Pass { mut stretches, meter, explainer } = pass;
        // Why the run ended says more than what is missing of it.
        let done = explainer.finish();
        let reader = ran?;
        done?;
        stretches.finish();
        worst.sort_by_key(|e| responders.iter().position(|r| r.name() == e.responder));
        let longest = (&WindowKind::ALL[..], Order::Longest, WINDOWS_KEPT);
        let (windows, totals) = stretches.report(longest, reader.stacks(), &map);
        Ok(Inside {
            missing: follow.missing,
            losses: reader.losses(),
            virtual_ns: stretches.span(),
            triggers: stretches.triggers(),
            totals,
            windows,
            accounts: ledgers.accounts(responders, &reader, &map),
            worst,
            bound: meter.bound().report(reader.stacks(), &map),
            scheduling,
        })
    }
}

/// Where a responder's ledger begins.
fn from(summary: &Summary) -> Option<Nanos> {
    Some(summary.quantile(ABOVE).unwrap_or(Nanos(0)))
}

/// The longest answer of each series, the first of them where several are alike.
fn latest(wanted: &Wanted) -> BTreeMap<SeriesId, Sample> {
    let mut latest: BTreeMap<SeriesId, Sample> = BTreeMap::new();
    for sample in wanted.values() {
        let known = latest.entry(sample.series).or_insert(*sample);
        if sample.latency > known.latency {
            *known = *sample;
        }
    }
    latest
}

/// One look at everything.
struct Pass<F> {
    stretches: Stretches,
    meter: BoundMeter,
    explainer: Explainer<F>,
}

impl<F: FnMut(&Sample, &Explanation, &Reader)> Watcher for Pass<F> {
    fn event(&mut self, event: &Event, reader: &Reader) {
        self.stretches.event(event, reader);
        self.meter.event(event);
        self.explainer.event(event, reader);
    }

    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()> {
        // Windows and the bound are those of the whole run: it goes on when everything is explained, but not when nothing can be.
        let _ = self.explainer.answer(sample, reader);
        if self.explainer.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_longest_answers_of_each_series_is_explained() {
        let sample = |trigger, series, latency| Sample {
            series: SeriesId(series),
            trigger,
            at: Nanos(0),
            latency: Nanos(latency),
            path: None,
        };
        let samples = [sample(1, 0, 5), sample(2, 0, 9), sample(3, 0, 9), sample(1, 1, 7)];
        let wanted = samples.iter().map(|s| ((s.trigger, s.series), *s)).collect();
        let triggers = latest(&wanted).values().map(|s| s.trigger).collect::<Vec<_>>();
        assert_eq!(triggers, [2, 1]);
    }
}
