// SPDX-License-Identifier: GPL-2.0-or-later
//! What becomes of a limit on a deadline.
//!
//! A lost event counts as missed, so that no loss makes a limit look kept. It makes a limit fail only where it
//! certainly missed: an event that was never answered is later than any deadline. One that was superseded was answered
//! together with an older one and waited less, so it met the deadline if that one did. Of one that was overrun nobody
//! knows.
//!
//! A limit on a share needs as many events as leave room for one miss: with 100 events, 1 in 10,000 cannot be told from
//! none at all. This holds for quantiles too, of which p99.99 needs 10,000 samples. It is no measure of confidence.

use crate::keyed::{key, keyed};
use crate::watch::Passage;
use crate::{Deadline, FIRM_MAX, MissTally, Reason, Summary, Tolerance, Verdict, Worst};
use sample::{Losses, Nanos, Quantity, SeriesName};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// What became of a limit on a deadline.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "DeadlineFinding",
        deny_unknown_fields,
        transform = crate::limits::verdicts,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct DeadlineFinding<Q = Nanos> {
    /// Whose limit.
    pub responder: SeriesName,
    /// The deadline. An answer that takes as long meets it.
    #[cfg_attr(feature = "schema", schemars(rename = "deadline_ns", extend("minimum" = 1)))]
    pub deadline: Q,
    /// How often it may be missed.
    pub tolerance: Tolerance,
    /// Triggers or events, answered or lost.
    pub events: u64,
    /// Those that count as missed: late answers, and lost events that nobody knows to have met the deadline.
    pub missed: u64,
    /// Those of them that were answered, too late.
    pub late: u64,
    /// Those of them that may have met it: lost, and nobody knows how late they would have been.
    pub open: u64,
    /// The number of the first event that counts as missed; none if there is none.
    #[cfg_attr(feature = "schema", schemars(rename = "first"))]
    pub first: Option<u64>,
    /// The longest row of consecutive events that count as missed, the first of these; for an (m,k)-firm deadline the
    /// `k` events with the most misses. None if none missed, or if there are too few events.
    pub worst: Option<Passage>,
    /// The latest of the late answers; none if no answer was late.
    pub latest: Option<Worst<Q>>,
    /// How many more events it takes to judge this limit; 0 if it can be judged.
    pub needed: u64,
    /// Pass, fail or inconclusive.
    pub verdict: Verdict,
    /// Why. A reason has one verdict, except `unanswered`, which is a failure or leaves it open.
    pub reason: Reason,
}

keyed!(DeadlineFinding {
    responder: "responder";
    deadline: key::<Q>("deadline");
    tolerance: "tolerance";
    events: "events";
    missed: "missed";
    late: "late";
    open: "open";
    first: "first";
    worst: "worst";
    latest: "latest";
    needed: "needed";
    verdict: "verdict";
    reason: "reason";
});

impl<Q: Quantity> DeadlineFinding<Q> {
    /// Judges by what was counted; by nothing where the responder was not measured.
    pub(crate) fn of(
        responder: &SeriesName,
        Deadline { time, tolerance }: Deadline<Q>,
        counted: Option<(&Summary<Q>, &MissTally<Q>)>,
    ) -> Self {
        let tally = counted.map(|(_, tally)| tally);
        let events = tally.map_or(0, |tally| tally.at_worst.events);
        let needed = events_for(tolerance).saturating_sub(events);
        let (verdict, reason) = match counted {
            None => (Verdict::Inconclusive, Reason::NoSamples),
            Some((summary, tally)) => weigh(tolerance, &summary.losses, tally, needed),
        };
        let is_short = matches!(tolerance, Tolerance::Firm { .. }) && needed > 0;
        let worst = tally.and_then(|tally| tally.at_worst.worst);
        let missed = tally.map_or(0, |tally| tally.at_worst.missed);
        DeadlineFinding {
            responder: responder.clone(),
            deadline: time,
            tolerance,
            events,
            missed,
            late: tally.map_or(0, |tally| tally.late.missed),
            open: missed - tally.map_or(0, |tally| tally.at_best.missed.min(missed)),
            first: tally.and_then(|tally| tally.first),
            worst: worst.filter(|_| !is_short),
            latest: tally.and_then(|tally| tally.latest),
            needed: if reason == Reason::TooFewSamples { needed } else { 0 },
            verdict,
            reason,
        }
    }
}

/// How many events it takes to judge.
fn events_for(tolerance: Tolerance) -> u64 {
    match tolerance {
        Tolerance::Misses { .. } | Tolerance::Consecutive { .. } => 1,
        Tolerance::Share { most, of } => of.div_ceil(most.max(1)),
        Tolerance::Firm { of, .. } => of,
    }
}

fn weigh<Q: Quantity>(
    tolerance: Tolerance,
    losses: &Losses,
    tally: &MissTally<Q>,
    needed: u64,
) -> (Verdict, Reason) {
    let events = tally.at_worst.events;
    // No experiment asks for so long rows, and nobody counted in such ones: a damaged bundle names them.
    if matches!(tolerance, Tolerance::Firm { of, .. } if of > FIRM_MAX) {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    let too_few = (Verdict::Inconclusive, Reason::TooFewSamples);
    // Where records are missing, answers may have been matched to the wrong triggers.
    if losses.dropped > 0 || !tally.is_ordered {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    if matches!(tolerance, Tolerance::Firm { .. }) && needed > 0 && events > 0 {
        return too_few;
    }
    if tally.late.exceed(tolerance, events) {
        return (Verdict::Fail, Reason::Exceeded);
    }
    if tally.at_best.exceed(tolerance, events) {
        return (Verdict::Fail, Reason::Unanswered);
    }
    if tally.answered == 0 {
        return (Verdict::Inconclusive, Reason::NoSamples);
    }
    if needed > 0 {
        return too_few;
    }
    // An answer without a trigger may be the late one to a trigger that was taken for answered.
    if losses.spurious > 0 || losses.tainted > 0 {
        return (Verdict::Inconclusive, Reason::Unreliable);
    }
    let reason = match () {
        () if !tally.at_worst.exceed(tolerance, events) => return (Verdict::Pass, Reason::Within),
        () if losses.unanswered > 0 => Reason::Unanswered,
        () if losses.overrun > 0 => Reason::Overrun,
        () => Reason::Superseded,
    };
    (Verdict::Inconclusive, reason)
}
