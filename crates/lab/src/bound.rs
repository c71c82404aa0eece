// SPDX-License-Identifier: GPL-2.0-or-later
//! Computes how late a task could be scheduled if the longest stretches of a run came together, and compares the bound
//! with the latest task that was scheduled.

use crate::Error;
use crate::cells::FollowedCell;
use crate::followed::{EVENTS_KEPT, Held, Ready, Watcher, bound_is_seen_in};
use rig::Bench;
use sample::{Nanos, Responder, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{
    BoundMeter, BoundReport, Event, Explanation, History, Reader, ReaderLosses, Unbounded, What,
    scheduling,
};
use work::Progress;

/// The bound of a cell, and what was seen.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounded {
    /// Its flavour.
    pub flavour: String,
    /// Its load.
    pub load: String,
    /// Triggers.
    pub triggers: u64,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// What the follower's records lost.
    pub losses: ReaderLosses,
    /// The bound and its terms.
    #[serde(flatten)]
    pub bound: BoundReport,
    /// Whether nothing was seen that is longer; none where there is no bound, or no answer that it is about.
    pub holds: Option<bool>,
    /// By responder, in their order.
    pub responders: Vec<Answered>,
    /// Answers that are longer than the bound.
    pub exceeded: Vec<Held>,
}

/// The answers of one responder.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answered {
    /// Who answered.
    pub responder: &'static str,
    /// How often.
    pub answers: u64,
    /// How many were held against the bound.
    pub held: u64,
    /// The longest of those.
    pub longest: Option<Held>,
    /// How many the bound does not speak of, and why.
    pub unbounded: BTreeMap<Unbounded, u64>,
}

/// Runs a cell, and compares every answer with the bound that its longest stretches make.
///
/// # Errors
/// If the stretches cannot be seen in the kernel. Also the errors of [`Ready`].
pub fn bound(
    bench: &Bench,
    cell: FollowedCell,
    progress: &dyn Fn(Progress),
) -> Result<Bounded, Error> {
    if cell.subject.generator().is_none() {
        return Err(Error::Unfit(
            "the bound is held against answers to triggers, and a probe measured this run; take a run with [trigger], or look at the parts of the bound by `onset windows`".into(),
        ));
    }
    let ready = Ready::new(bench, cell.subject, progress)?;
    let (map, follow) = ready.follow_closely()?;
    if !bound_is_seen_in(&map, &follow) {
        return Err(Error::KernelUnseen(format!(
            "there is no bound for this kernel, in which these cannot be seen: {}; take a kernel with BTF and kallsyms, or look at `onset windows`, which shows the rest",
            follow.missing.join("; ")
        )));
    }
    let mut meter = Meter::new(&ready.responders());
    let reader = ready.run(Some(&follow), &mut meter, progress)?;
    if let Some(failure) = meter.failure {
        return Err(failure);
    }
    let bound = meter.meter.bound();
    let exceeds = |held: &&Held| bound.is_exceeded_by(held.scheduling_ns);
    let exceeded: Vec<Held> =
        meter.series.iter().flat_map(|s| &s.held).filter(exceeds).copied().collect();
    let is_compared = meter.series.iter().any(|series| !series.held.is_empty());
    Ok(Bounded {
        flavour: cell.flavour,
        load: cell.load,
        triggers: meter.triggers,
        missing: follow.missing,
        losses: reader.losses(),
        bound: bound.report(reader.stacks(), &map),
        // Where no answer was compared with it, nobody knows.
        holds: bound.bound_ns.filter(|_| is_compared).map(|_| exceeded.is_empty()),
        responders: meter.series.iter().map(Series::answered).collect(),
        exceeded,
    })
}

/// The answers of one responder.
struct Series {
    responder: Responder,
    answers: u64,
    held: Vec<Held>,
    unbounded: BTreeMap<Unbounded, u64>,
}

impl Series {
    fn new(responder: Responder) -> Series {
        Series { responder, answers: 0, held: Vec::new(), unbounded: BTreeMap::new() }
    }

    fn add(&mut self, sample: &Sample, explanation: &Explanation) {
        self.answers += 1;
        match scheduling(explanation) {
            Ok(length) => self.held.push(Held::of(self.responder, sample, length)),
            Err(why) => *self.unbounded.entry(why).or_default() += 1,
        }
    }

    fn answered(&self) -> Answered {
        // Of several equally long answers, the first one counts.
        let order = |held: &&Held| (held.scheduling_ns, std::cmp::Reverse(held.trigger));
        Answered {
            responder: self.responder.name(),
            answers: self.answers,
            held: self.held.len() as u64,
            longest: self.held.iter().max_by_key(order).copied(),
            unbounded: self.unbounded.clone(),
        }
    }
}

/// Keeps the longest stretches of a whole run, and explains each answer.
struct Meter {
    meter: BoundMeter,
    history: History,
    series: Vec<Series>,
    /// For each series, the first trigger that it may still answer.
    open: Vec<u64>,
    triggers: u64,
    failure: Option<Error>,
}

impl Meter {
    fn new(responders: &[Responder]) -> Meter {
        Meter {
            meter: BoundMeter::new(),
            history: History::new(EVENTS_KEPT),
            series: responders.iter().copied().map(Series::new).collect(),
            open: vec![0; responders.len()],
            triggers: 0,
            failure: None,
        }
    }
}

impl Watcher for Meter {
    fn event(&mut self, event: &Event, _: &Reader) {
        self.meter.event(event);
        self.history.push(*event);
        if let What::Trigger { number, .. } = event.what {
            self.triggers += 1;
            let oldest = self.open.iter().copied().min().unwrap_or(number);
            self.history.forget_before(oldest.min(number), Nanos(0));
        }
    }

    fn answer(&mut self, sample: &Sample, reader: &Reader) -> ControlFlow<()> {
        let series = &mut self.series[sample.series.index()];
        self.open[sample.series.index()] = sample.trigger + 1;
        match self.history.explain(sample.trigger, series.responder.pin(), reader.tasks()) {
            Ok(explanation) => {
                series.add(sample, &explanation);
                ControlFlow::Continue(())
            }
            Err(why) => {
                self.failure = Some(Error::Unexplained {
                    what: format!(
                        "the answer of {} to trigger {}",
                        series.responder, sample.trigger
                    ),
                    why: format!("it cannot be held against the bound: {why}"),
                });
                ControlFlow::Break(())
            }
        }
    }
}
