// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks at everything inside a run, in one pass: its windows, the ledgers of its late answers, its worst answers with
//! explanations, and its bound.

use super::{
    Account, Choice, Explained, Explainer, Held, Ledgers, Ready, Stretches, Subject, Total, Wanted,
    Watcher, Which, bound_is_seen_in, samples_of,
};
use crate::Error;
use bundle::Bundle;
use rig::Bench;
use sample::{Nanos, Responder, Sample, SeriesId};
use stats::{Quantile, Summary};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{
    Bound, BoundMeter, BoundReport, Event, Explanation, Order, Reader, ReaderLosses, WindowKind,
    WindowsReport,
};
use work::Progress;

/// How many stacks of each kind of window are kept.
const WINDOWS_KEPT: usize = 12;
/// Ledgers are of the answers above this quantile, if a run has enough of them.
const ABOVE: Quantile = Quantile::P99;
/// How many answers of each responder are explained one by one.
const WORST_KEPT: usize = 5;

/// The things that were seen inside a run.
#[derive(Clone, Debug)]
pub struct Inside {
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// The losses of the follower's records.
    pub losses: ReaderLosses,
    /// How long the run was followed.
    pub virtual_ns: Nanos,
    /// The number of triggers in that time.
    pub triggers: u64,
    /// For each kind, all windows.
    pub totals: BTreeMap<WindowKind, Total>,
    /// The longest windows of each kind.
    pub windows: WindowsReport,
    /// For each responder, where the time of its late answers went.
    pub accounts: Vec<Account>,
    /// The worst answers of each responder, the longest first.
    pub worst: Vec<Explained>,
    /// The bound of the scheduling latency. Absent if too little can be seen in this kernel.
    pub bound: Option<BoundReport>,
    /// For each responder, the longest scheduling latency among its late and its worst answers. Absent if the bound
    /// speaks of none of them.
    pub scheduling: BTreeMap<&'static str, Nanos>,
    /// Those of these answers that exceed the bound. Each is a fault of the follower or of the analysis.
    pub exceeded: Vec<Held>,
}

impl Inside {
    /// Makes the run once more, and follows it from beginning to end.
    ///
    /// # Errors
    /// If the run cannot be made once more ([`Subject::of_bundle`]), came out otherwise, or has answers that cannot be
    /// explained from the last [`EVENTS_KEPT`](super::EVENTS_KEPT) events.
    pub fn of_run(
        bench: &Bench,
        bundle: &Bundle,
        progress: &dyn Fn(Progress),
    ) -> Result<Inside, Error> {
        let subject = Subject::of_bundle(bench, bundle)?;
        if subject.generator().is_none() {
            let run = &bundle.manifest().run;
            return Err(Error::Unfit(format!(
                "{run}: a probe measured it, and a look inside is of answers to triggers; `onset explain` and `onset blame` are for both"
            )));
        }
        let answered = bundle.manifest().series.iter().any(|summary| summary.count > 0);
        let (mut ledgers, mut wanted) =
            if answered { Ledgers::of(bundle, None, from)? } else { Default::default() };
        let worst = if answered { worst_of(bundle)? } else { Wanted::new() };
        wanted.extend(&worst);
        let ready = Ready::new(bench, subject, progress)?;
        let (map, follow) = ready.follow_closely()?;
        let (responders, names) = (ready.responders(), ready.series());
        let (mut explained, mut held) = (Vec::new(), Vec::new());
        let each = |sample: &Sample, explanation: &Explanation, reader: &Reader| {
            ledgers.add(sample, explanation, reader, &map);
            let (responder, name) =
                (responders[sample.series.index()], &names[sample.series.index()]);
            if let Ok(length) = trace::scheduling(explanation) {
                held.push(Held::of(responder, sample, length));
            }
            if worst.contains_key(&(sample.trigger, sample.series)) {
                explained.push(Explained::new(name, sample, explanation, reader, &map));
            }
        };
        let mut pass = Pass {
            stretches: Stretches::default(),
            meter: BoundMeter::new(),
            explainer: Explainer::new(&responders, wanted, each),
        };
        let ran = ready.run(Some(&follow), &mut pass, progress);
        let Pass { mut stretches, meter, explainer } = pass;
        // The reason why the run ended says more than the missing explanations.
        let done = explainer.finish();
        let reader = ran?;
        done?;
        stretches.finish();
        explained.sort_by_key(|e| order(e, &responders));
        let longest =
            Which { kinds: WindowKind::ALL.to_vec(), order: Order::Longest, top: WINDOWS_KEPT };
        let (windows, totals) = stretches.report(&longest, reader.stacks(), &map);
        let bound = bound_is_seen_in(&map, &follow).then(|| meter.bound());
        Ok(Inside {
            missing: follow.missing,
            losses: reader.losses(),
            virtual_ns: stretches.span(),
            triggers: stretches.triggers(),
            totals,
            windows,
            accounts: ledgers.accounts(names, &reader, &map),
            worst: explained,
            bound: bound.map(|bound| bound.report(reader.stacks(), &map)),
            scheduling: longest_of(&held),
            exceeded: exceeding(bound, &held),
        })
    }
}

/// The latency at which a responder's ledger begins.
fn from(summary: &Summary) -> Option<Nanos> {
    Some(summary.quantile(ABOVE).unwrap_or(Nanos(0)))
}

/// The longest answers of each series.
fn worst_of(bundle: &Bundle) -> Result<Wanted, Error> {
    Ok(first_of(samples_of(bundle, None, Choice::Worst(usize::MAX))?))
}

/// The first samples of each series, as many as are kept.
fn first_of(samples: Vec<Sample>) -> Wanted {
    let mut counts: BTreeMap<SeriesId, usize> = BTreeMap::new();
    let mut first = Wanted::new();
    for sample in samples {
        let count = counts.entry(sample.series).or_default();
        *count += 1;
        if *count <= WORST_KEPT {
            first.insert((sample.trigger, sample.series), sample);
        }
    }
    first
}

/// The order by responder, the longest answer first. Of equally long answers the first one comes first.
fn order(explained: &Explained, responders: &[Responder]) -> (Option<usize>, Reverse<Nanos>, u64) {
    let place = responders.iter().position(|r| r.name() == explained.responder);
    (place, Reverse(explained.report.latency_ns), explained.report.trigger)
}

fn longest_of(held: &[Held]) -> BTreeMap<&'static str, Nanos> {
    let mut longest: BTreeMap<&'static str, Nanos> = BTreeMap::new();
    for held in held {
        let known = longest.entry(held.responder).or_default();
        *known = (*known).max(held.scheduling_ns);
    }
    longest
}

/// The answers that exceed the bound. Without a visible bound there are none.
fn exceeding(bound: Option<Bound>, held: &[Held]) -> Vec<Held> {
    let exceeds = |held: &&Held| bound.is_some_and(|b| b.is_exceeded_by(held.scheduling_ns));
    held.iter().filter(exceeds).copied().collect()
}

/// Looks at everything in one pass.
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
        // Windows and the bound are those of the whole run. So the run goes on when everything is explained, but not if
        // nothing can be explained.
        let _ = self.explainer.answer(sample, reader);
        if self.explainer.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(trigger: u64, series: u16, latency: u64) -> Sample {
        let (at, path) = (Nanos(0), None);
        Sample { series: SeriesId(series), trigger, at, latency: Nanos(latency), path }
    }

    #[test]
    fn the_worst_of_each_series_are_explained_however_late_another_is() {
        let late = (0..2 * WORST_KEPT as u64).map(|trigger| sample(trigger, 0, 900 - trigger));
        let samples = late.chain([sample(7, 1, 5), sample(3, 1, 4)]).collect();
        let keys: Vec<_> = first_of(samples).into_keys().collect();
        let of = |series: u16| keys.iter().filter(move |key| key.1 == SeriesId(series));
        assert_eq!(of(0).map(|key| key.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(of(1).map(|key| key.0).collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn an_answer_that_is_later_than_the_bound_is_found_and_none_where_there_is_no_bound() {
        let held = [(1, 70), (2, 71), (3, 90)].map(|(trigger, scheduling)| {
            Held::of(Responder::Task, &sample(trigger, 0, 100), Nanos(scheduling))
        });
        let triggers = |bound: Option<Bound>| {
            exceeding(bound, &held).iter().map(|held| held.trigger).collect::<Vec<_>>()
        };
        let empty = BoundMeter::new().bound();
        let bound = |ns: Option<u64>| Bound { bound_ns: ns.map(Nanos), ..empty };
        assert_eq!(triggers(Some(bound(Some(70)))), [2, 3]);
        assert_eq!(triggers(Some(bound(Some(90)))), [0; 0]);
        assert_eq!(triggers(Some(bound(None))), [0; 0]);
        assert_eq!(triggers(None), [0; 0]);
        assert_eq!(longest_of(&held), BTreeMap::from([("task", Nanos(90))]));
    }
}
