// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits on deadlines: the streaming counters against counting in a list, and the verdicts.

use proptest::prelude::*;
use sample::{Clock, Loss, Losses, Nanos, Responder, Sample, SeriesId};
use stats::{
    Constraint, Deadline, DeadlineFinding, Demand, EARLY_MAX, Finding, Limit, MissCounter,
    MissTally, Reason, Series, Summary, Tolerance, Verdict, judge,
};

const DEADLINE: Nanos = Nanos(100);

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Answered(u64),
    /// With how late it was in truth, which nobody sees.
    Lost(Loss, u64),
}

use Event::{Answered, Lost};

impl Event {
    fn is_missed(self) -> bool {
        match self {
            Answered(latency) | Lost(_, latency) => latency > DEADLINE.0,
        }
    }
}

/// The samples of the events, and their losses.
fn measured(events: &[Event]) -> (Vec<Sample>, Losses) {
    let (mut samples, mut losses) = (Vec::new(), Losses::default());
    for (trigger, event) in (0..).zip(events) {
        match *event {
            Answered(latency) => samples.push(sample(trigger, latency)),
            Lost(loss, _) => losses.count(loss, 1),
        }
    }
    (samples, losses)
}

fn sample(trigger: u64, latency: u64) -> Sample {
    let (at, latency) = (Nanos(trigger.saturating_mul(1_000)), Nanos(latency));
    Sample { series: SeriesId(0), trigger, at, latency, path: None }
}

fn tally(tolerance: Tolerance, samples: &[Sample], losses: &Losses) -> MissTally {
    let mut watch = MissCounter::new(Deadline { time: DEADLINE, tolerance });
    samples.iter().for_each(|sample| watch.record(sample));
    watch.tally(&Responder::Task.into(), losses)
}

/// The judgement of one limit on what these events gave.
fn judged(kind: Constraint, bound: &str, events: &[Event]) -> DeadlineFinding {
    let (samples, losses) = measured(events);
    let tolerance = kind.tolerance(bound).expect("a bound");
    let (summary, tally) = (summary(&samples, &losses), tally(tolerance, &samples, &losses));
    let demand = Demand::Deadline(Deadline { time: DEADLINE, tolerance });
    let limit = Limit { responder: Responder::Task.into(), demand };
    let judgement = judge(&[limit], &[summary], &[tally], true);
    match &judgement.findings[..] {
        [Finding::Deadline(finding)] => {
            assert_eq!(judgement.verdict, finding.verdict);
            finding.clone()
        }
        other => panic!("{other:?}"),
    }
}

fn summary(samples: &[Sample], losses: &Losses) -> Summary {
    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    samples.iter().for_each(|sample| series.record(sample));
    Loss::ALL.into_iter().zip(losses.of_all()).for_each(|(loss, n)| series.lose(loss, n));
    series.summary()
}

/// The longest row of misses, and the most among `k` consecutive events; counted one by one.
fn longest(missed: &[bool]) -> u64 {
    missed.split(|missed| !missed).map(<[bool]>::len).max().unwrap_or(0) as u64
}

fn most_of(missed: &[bool], k: usize) -> u64 {
    let misses = |window: &[bool]| window.iter().filter(|missed| **missed).count() as u64;
    missed.windows(k).map(misses).max().unwrap_or(0)
}

fn worst(tally: &stats::MissCounts) -> u64 {
    tally.worst.map_or(0, |worst| worst.missed)
}

/// What a generator of triggers yields: answers, each with younger triggers that it answered too, and at the end
/// triggers that were never answered.
fn answers() -> impl Strategy<Value = Vec<Event>> {
    let answer = (0u64..200, prop::collection::vec(0u64..200, 0..3), any::<bool>());
    let batch = answer.prop_map(|(latency, younger, alone)| {
        let waited_less = |less: u64| Lost(Loss::Superseded, latency.saturating_sub(less));
        let younger = younger.into_iter().filter(|_| !alone).map(waited_less);
        [Answered(latency)].into_iter().chain(younger).collect::<Vec<Event>>()
    });
    let never = prop::collection::vec(Just(Lost(Loss::Unanswered, u64::MAX)), 0..4);
    (prop::collection::vec(batch, 0..40), never)
        .prop_map(|(batches, never)| [batches.concat(), never].concat())
}

/// Events of which any may have been lost, as a probe has them.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0u64..200).prop_map(Answered),
        1 => (0u64..200).prop_map(|late| Lost(Loss::Overrun, late)),
    ];
    prop::collection::vec(event, 0..100)
}

proptest! {
    #[test]
    fn what_happened_lies_between_the_best_and_the_worst_that_is_counted(
        events in prop_oneof![answers(), events()],
        k in 1usize..12,
    ) {
        let (samples, losses) = measured(&events);
        let missed: Vec<bool> = events.iter().map(|event| event.is_missed()).collect();
        let misses = missed.iter().filter(|missed| **missed).count() as u64;
        let row = tally(Tolerance::Consecutive { most: 0 }, &samples, &losses);
        prop_assert!(row.is_ordered);
        prop_assert_eq!(row.at_worst.events, events.len() as u64);
        prop_assert!(row.late.missed <= row.at_best.missed);
        prop_assert!((row.at_best.missed..=row.at_worst.missed).contains(&misses));
        prop_assert!((worst(&row.at_best)..=worst(&row.at_worst)).contains(&longest(&missed)));
        if events.len() >= k {
            let firm = tally(Tolerance::Firm { least: 1, of: k as u64 }, &samples, &losses);
            let most = most_of(&missed, k);
            prop_assert!((worst(&firm.at_best)..=worst(&firm.at_worst)).contains(&most));
        }
    }

    #[test]
    fn without_losses_that_leave_it_open_every_count_is_that_of_a_list(
        latencies in prop::collection::vec(0u64..200, 1..200),
        unanswered in 0usize..4,
        k in 1usize..12,
    ) {
        let mut events: Vec<Event> = latencies.into_iter().map(Answered).collect();
        events.extend(std::iter::repeat_n(Lost(Loss::Unanswered, u64::MAX), unanswered));
        let (samples, losses) = measured(&events);
        let missed: Vec<bool> = events.iter().map(|event| event.is_missed()).collect();
        let row = tally(Tolerance::Consecutive { most: 0 }, &samples, &losses);
        prop_assert_eq!(&row.at_best, &row.at_worst);
        prop_assert_eq!(row.at_best.missed as usize, missed.iter().filter(|m| **m).count());
        prop_assert_eq!(row.first.map(|n| n as usize), missed.iter().position(|m| *m));
        prop_assert_eq!(worst(&row.at_best), longest(&missed));
        if let Some(stretch) = row.at_best.worst {
            let from = stretch.from as usize;
            prop_assert!(missed[from..][..stretch.missed as usize].iter().all(|m| *m));
        }
        let firm = tally(Tolerance::Firm { least: 1, of: k as u64 }, &samples, &losses);
        if missed.len() >= k {
            prop_assert_eq!(worst(&firm.at_worst), most_of(&missed, k));
        }
        if let Some(stretch) = firm.at_worst.worst {
            let window = missed[stretch.from as usize..].iter().take(k);
            prop_assert_eq!(window.filter(|m| **m).count() as u64, stretch.missed);
        }
        let late = samples.iter().filter(|s| s.latency > DEADLINE);
        let latest = late.max_by_key(|s| (s.latency, std::cmp::Reverse(s.trigger)));
        prop_assert_eq!(row.latest.map(|l| l.trigger), latest.map(|s| s.trigger));
    }

    #[test]
    fn the_order_of_arrival_changes_nothing(
        events in prop_oneof![answers(), events()],
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
        k in 1u64..12,
    ) {
        let (samples, losses) = measured(&events);
        let mut shuffled = samples.clone();
        for (i, place) in places.iter().enumerate().take(shuffled.len()) {
            let other = place.index(shuffled.len());
            shuffled.swap(i, other);
        }
        for tolerance in [Tolerance::Consecutive { most: 0 }, Tolerance::Firm { least: 1, of: k }] {
            prop_assert_eq!(tally(tolerance, &samples, &losses), tally(tolerance, &shuffled, &losses));
        }
    }
}

const MET: Event = Answered(100);
const LATE: Event = Answered(101);
const SUPERSEDED: Event = Lost(Loss::Superseded, 0);
const UNANSWERED: Event = Lost(Loss::Unanswered, u64::MAX);
const OVERRUN: Event = Lost(Loss::Overrun, 0);

fn verdict(kind: Constraint, bound: &str, events: &[Event]) -> (Verdict, Reason) {
    let finding = judged(kind, bound, events);
    (finding.verdict, finding.reason)
}

use Verdict::{Fail, Inconclusive, Pass};

#[test]
fn a_number_of_misses_is_kept_up_to_and_including_itself() {
    let events = [MET, LATE, MET, LATE];
    assert_eq!(verdict(Constraint::Miss, "2", &events), (Pass, Reason::Within));
    assert_eq!(verdict(Constraint::Miss, "1", &events), (Fail, Reason::Exceeded));
    let finding = judged(Constraint::Miss, "0", &events);
    assert_eq!((finding.events, finding.missed, finding.late, finding.open), (4, 2, 2, 0));
    assert_eq!(
        (finding.first, finding.latest.map(|l| (l.trigger, l.latency.0))),
        (Some(1), Some((1, 101)))
    );
}

#[test]
fn an_event_that_was_never_answered_misses_every_deadline() {
    assert_eq!(verdict(Constraint::Miss, "0", &[MET, UNANSWERED]), (Fail, Reason::Unanswered));
    assert_eq!(verdict(Constraint::Miss, "1", &[MET, UNANSWERED]), (Pass, Reason::Within));
    assert_eq!(verdict(Constraint::Miss, "0", &[UNANSWERED]), (Fail, Reason::Unanswered));
    let row = [MET, LATE, UNANSWERED, UNANSWERED];
    assert_eq!(verdict(Constraint::Consecutive, "3", &row), (Pass, Reason::Within));
    assert_eq!(verdict(Constraint::Consecutive, "2", &row), (Fail, Reason::Unanswered));
    assert_eq!(verdict(Constraint::Firm, "2 of 4", &row), (Fail, Reason::Unanswered));
    // Also where others were superseded before: their number is certain, and so are the places of some.
    let few = [MET, SUPERSEDED, SUPERSEDED, MET, UNANSWERED];
    assert_eq!(verdict(Constraint::Miss, "0", &few), (Fail, Reason::Unanswered));
    assert_eq!(verdict(Constraint::Consecutive, "0", &few), (Inconclusive, Reason::Unanswered));
    let mixed = [MET, SUPERSEDED, MET, UNANSWERED, UNANSWERED, UNANSWERED];
    assert_eq!(verdict(Constraint::Consecutive, "1", &mixed), (Fail, Reason::Unanswered));
}

#[test]
fn an_event_answered_together_with_one_that_met_the_deadline_met_it_and_with_a_late_one_is_open() {
    assert_eq!(verdict(Constraint::Miss, "0", &[MET, SUPERSEDED, MET]), (Pass, Reason::Within));
    let open = [LATE, SUPERSEDED, SUPERSEDED, MET];
    assert_eq!(verdict(Constraint::Miss, "3", &open), (Pass, Reason::Within));
    assert_eq!(verdict(Constraint::Miss, "2", &open), (Inconclusive, Reason::Superseded));
    assert_eq!(verdict(Constraint::Miss, "0", &open), (Fail, Reason::Exceeded));
    let finding = judged(Constraint::Consecutive, "2", &open);
    assert_eq!((finding.verdict, finding.reason), (Inconclusive, Reason::Superseded));
    assert_eq!((finding.missed, finding.late, finding.open), (3, 1, 2));
}

#[test]
fn an_event_that_was_overrun_counts_as_missed_and_proves_nothing() {
    assert_eq!(verdict(Constraint::Miss, "1", &[MET, OVERRUN, MET]), (Pass, Reason::Within));
    assert_eq!(
        verdict(Constraint::Miss, "0", &[MET, OVERRUN, MET]),
        (Inconclusive, Reason::Overrun)
    );
    assert_eq!(
        verdict(Constraint::Firm, "2 of 2", &[MET, OVERRUN]),
        (Inconclusive, Reason::Overrun)
    );
}

#[test]
fn a_share_needs_room_for_one_miss_and_says_how_many_events_that_takes() {
    let met = |n: usize| vec![MET; n];
    let short = judged(Constraint::Miss, "1 in 10000", &met(100));
    assert_eq!(
        (short.verdict, short.reason, short.needed),
        (Inconclusive, Reason::TooFewSamples, 9_900)
    );
    assert_eq!(judged(Constraint::Miss, "3 in 10000", &met(100)).needed, 3_334 - 100);
    assert_eq!(verdict(Constraint::Miss, "1 in 100", &met(100)), (Pass, Reason::Within));
    // What was measured is beyond the share already.
    assert_eq!(verdict(Constraint::Miss, "1 in 10000", &[MET, LATE]), (Fail, Reason::Exceeded));
    let one = [met(99), vec![LATE]].concat();
    assert_eq!(verdict(Constraint::Miss, "1 in 100", &one), (Pass, Reason::Within));
    assert_eq!(verdict(Constraint::Miss, "1 in 101", &one), (Fail, Reason::Exceeded));
}

#[test]
fn a_row_shorter_than_k_cannot_be_judged() {
    let short = judged(Constraint::Firm, "1 of 5", &[LATE, MET, MET, MET]);
    assert_eq!(
        (short.verdict, short.reason, short.needed),
        (Inconclusive, Reason::TooFewSamples, 1)
    );
    assert_eq!(short.worst, None);
    assert_eq!(
        verdict(Constraint::Firm, "4 of 5", &[LATE, MET, MET, MET, MET]),
        (Pass, Reason::Within)
    );
    let two = [MET, LATE, MET, LATE, MET, MET];
    let broken = judged(Constraint::Firm, "3 of 4", &two);
    assert_eq!((broken.verdict, broken.reason), (Fail, Reason::Exceeded));
    assert_eq!(broken.worst.map(|w| (w.from, w.missed)), Some((0, 2)));
    assert_eq!(verdict(Constraint::Firm, "2 of 4", &two), (Pass, Reason::Within));
}

#[test]
fn what_cannot_be_placed_or_is_doubted_never_passes() {
    for loss in [Loss::Spurious, Loss::Tainted, Loss::Dropped] {
        let events = [MET, MET, Lost(loss, 0)];
        assert_eq!(
            verdict(Constraint::Miss, "5", &events),
            (Inconclusive, Reason::Unreliable),
            "{loss:?}"
        );
    }
    let limit = |events: &[Sample]| {
        let none = Losses::default();
        tally(Tolerance::Consecutive { most: 9 }, events, &none).is_ordered
    };
    assert!(limit(&[sample(0, 1), sample(1, 1)]));
    // A number twice, and one that is missing though nothing was lost.
    assert!(!limit(&[sample(0, 1), sample(0, 1)]));
    assert!(!limit(&[sample(0, 1), sample(2, 1)]));
    // One that comes too late.
    let far = EARLY_MAX as u64 + 2;
    let mut late: Vec<Sample> = (1..far).map(|trigger| sample(trigger, 1)).collect();
    late.push(sample(0, 1));
    assert!(!limit(&late));
    late.swap(0, far as usize - 1);
    assert!(limit(&late));
}

#[test]
fn numbers_that_no_run_has_are_counted_in_no_time() {
    let losses = Losses { superseded: u64::MAX, ..Losses::default() };
    for tolerance in [Tolerance::Firm { least: 1, of: 65_536 }, Tolerance::Consecutive { most: 1 }]
    {
        let counted = tally(tolerance, &[sample(0, 101), sample(u64::MAX - 1, 101)], &losses);
        assert_eq!(counted.at_worst.missed, u64::MAX);
        let most = if let Tolerance::Firm { of, .. } = tolerance { of } else { u64::MAX };
        assert_eq!(counted.at_worst.worst.map(|w| (w.from, w.missed)), Some((0, most)));
    }
    assert!(
        tally(Tolerance::Misses { most: 0 }, &[sample(u64::MAX, 1)], &losses).at_worst.events > 0
    );
}

#[test]
fn a_limit_and_its_finding_are_written_with_their_deadline_and_read_again() {
    let text =
        r#"{"responder":"task","deadline_ns":100,"tolerance":{"kind":"share","most":1,"of":3}}"#;
    let limit: Limit = serde_json::from_str(text).unwrap();
    let tolerance = Tolerance::Share { most: 1, of: 3 };
    assert_eq!(limit.deadline(), Some(Deadline { time: Nanos(100), tolerance }));
    assert_eq!(serde_json::to_string(&limit).unwrap(), text);
    let wrong = text.replace("tolerance\":", "tolerances\":");
    assert!(serde_json::from_str::<Limit>(&wrong).is_err());
    let finding = Finding::Deadline(judged(Constraint::Miss, "1 in 3", &[MET, LATE, SUPERSEDED]));
    let json = serde_json::to_value(&finding).unwrap();
    let expected = serde_json::json!({
        "responder": "task", "deadline_ns": 100, "tolerance": {"kind": "share", "most": 1, "of": 3},
        "events": 3, "missed": 2, "late": 1, "open": 1, "first": 1, "worst": {"from": 1, "missed": 2},
        "latest": {"trigger": 1, "at_ns": 1_000, "latency_ns": 101}, "needed": 0,
        "verdict": "inconclusive", "reason": "superseded",
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
}

#[test]
fn a_responder_that_was_not_measured_has_kept_nothing() {
    let deadline = Deadline { time: DEADLINE, tolerance: Tolerance::Misses { most: 5 } };
    let limit = Limit { responder: Responder::Task.into(), demand: Demand::Deadline(deadline) };
    let finding = &judge(&[limit], &[], &[], true).findings[0];
    assert_eq!((finding.verdict(), finding.reason()), (Inconclusive, Reason::NoSamples));
}
