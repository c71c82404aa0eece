// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::begin::FIRST_STAGE;
use crate::result::{Encounter, EnteredStretch, GuestDeath, LateAnswer, TrialResult};
use sample::Occurrence;
use std::collections::{BTreeMap, BTreeSet};

fn stretch(kind: Stretch, length: u64, at_ms: u64) -> ForeseenStretch {
    let occurrence = Occurrence { kind, key: at_ms, ordinal: at_ms as u32 };
    ForeseenStretch { occurrence, length_insns: Insns(length), at_ns: Nanos::from_millis(at_ms) }
}

/// A guest in which a stretch comes every 10 ms, a longer one after 5 s, and the longest after 11 s.
fn ahead(begin: Nanos, until: Nanos) -> Vec<ForeseenStretch> {
    let rare = [(5_000, 20_000), (11_000, 90_000)];
    let usual = (1..6_000).map(|n| (10 * n, 9_000 + n * 37 % 100));
    let all = usual.chain(rare).map(|(ms, length)| stretch(Stretch::Unscheduled, length, ms));
    let visible = all.filter(|f| (begin..begin + until).contains(&f.at_ns));
    visible.map(|f| ForeseenStretch { at_ns: f.at_ns - begin, ..f }).collect()
}

/// The number of a guest that is not the first.
const GUEST: usize = 3;

fn at(ms: u64) -> Begin {
    Begin { guest: GUEST, after: Nanos::from_millis(ms) }
}

const TASK: [Responder; 1] = [Responder::Task];

fn outlook(known: &Knowledge) -> Outlook<'_> {
    Outlook::new(known, GUEST, &TASK)
}

/// The outlook of a guest in which nothing is left to look at.
fn all_seen(known: &Knowledge) -> Outlook<'_> {
    let mut outlook = outlook(known);
    outlook.ahead.scouts = 10;
    assert_eq!(outlook.ahead.next(), None);
    outlook
}

/// The task answered a trigger that came into this stretch this late.
fn entered(stretch: ForeseenStretch, latency: u64) -> EnteredStretch {
    EnteredStretch { stretch, answered_insns: BTreeMap::from([("task".into(), Insns(latency))]) }
}

fn tried(begin: Begin, looked: Option<Nanos>) -> TrialResult {
    TrialResult {
        snapshot: String::new(),
        way_ns: Nanos(0),
        undisturbed_ns: Nanos(0),
        worked_insns: Insns(0),
        losses: BTreeMap::new(),
        number: 0,
        strategy: "foresight".parse().unwrap(),
        begin,
        triggers: 0,
        virtual_ns: looked.unwrap_or(Nanos(1)),
        disturbances: Vec::new(),
        instants: Vec::new(),
        late: BTreeMap::new(),
        seen: BTreeSet::new(),
        fired: BTreeSet::new(),
        scouted: looked.map(|until| ahead(begin.after, until)),
        coincidences: Vec::new(),
        entered: None,
        encounter: None,
        died: None,
        forked_otherwise: false,
    }
}

/// A find of random triggers.
fn lucky(latency: u64) -> TrialResult {
    let (latency_ns, latency_insns) = (Nanos(latency), Insns(latency));
    let late = LateAnswer { latency_ns, latency_insns, ..LateAnswer::default() };
    let late = BTreeMap::from([("task".into(), vec![late])]);
    TrialResult { late, strategy: "random".parse().unwrap(), ..tried(at(0), None) }
}

/// The next trials of foresight, with `each` of them in a round.
fn steps(each: usize, count: usize) -> Vec<Next> {
    let (mut known, mut steps) = (Knowledge::default(), Vec::new());
    while steps.len() < count {
        let mut outlook = outlook(&known);
        let each = if steps.is_empty() { 1 } else { each };
        let round: Vec<Next> = (0..each).map_while(|_| outlook.plan()).collect();
        for step in &round {
            known.take(&match step {
                Next::Scout(begin, until) => tried(*begin, Some(*until)),
                Next::Fire(begin, f) | Next::Enter(begin, f, 0) => TrialResult {
                    entered: Some(entered(*f, f.length_insns.0)),
                    ..tried(*begin, None)
                },
                Next::Enter(begin, f, way) => {
                    let instants = vec![f.at_ns + Nanos(f.length_insns.0 * *way as u64 / 10)];
                    TrialResult { instants, ..tried(*begin, None) }
                }
                Next::Meet(begin, _) => tried(*begin, None),
                Next::Blind => tried(at(0), None),
            });
        }
        steps.extend(round);
    }
    steps
}

#[test]
fn each_scout_looks_on_from_where_the_last_ended_with_trials_that_fire_in_between() {
    let scouted = |each| {
        let steps = steps(each, 1_000);
        let scouts = steps.iter().enumerate().filter_map(|(n, step)| match step {
            Next::Scout(begin, until) => Some((n, begin.after / FIRST_STAGE, *until / FIRST_STAGE)),
            _ => None,
        });
        scouts.collect::<Vec<_>>()
    };
    let one = scouted(1);
    assert_eq!(one[..5], [(0, 0, 1), (17, 1, 1), (34, 2, 2), (51, 4, 4), (68, 8, 8)]);
    assert_eq!(one.len(), 10, "{one:?}");
    assert_eq!(one[9].1 + one[9].2, 300, "a minute after the warm-up");
    let four = scouted(4);
    let numbers = four.iter().map(|(n, ..)| *n).collect::<Vec<_>>();
    assert_eq!(numbers[..5], [0, 2, 4, 6, 8], "one a round, once the longest is fired into");
    assert_eq!(four.len(), 10);
}

#[test]
fn what_is_rare_and_long_is_entered_from_the_stage_before_it_before_anybody_looks_on() {
    let steps = steps(4, 90);
    for (ms, stage, length) in [(5_000, 3_200, 20_000), (11_000, 6_400, 90_000)] {
        let rare = stretch(Stretch::Unscheduled, length, ms);
        let rare = ForeseenStretch { at_ns: rare.at_ns - at(stage).after, ..rare };
        let entered = |step: &Next| matches!(step, Next::Enter(_, f, _) if *f == rare);
        let ways = steps.iter().filter(|step| entered(step)).map(|step| match step {
            Next::Enter(begin, _, way) => (*begin, *way),
            other => panic!("{other:?}"),
        });
        assert_eq!(ways.collect::<Vec<_>>(), [0, 1, 2, 3].map(|way| (at(stage), way)));
        let scouts = |step: &Next| matches!(step, Next::Scout(begin, _) if *begin >= at(stage));
        let [seen, next, ..] = &positions(&steps, scouts)[..] else { panic!("{steps:?}") };
        let first = positions(&steps, entered)[0];
        assert!(seen < &first && &first < next, "{seen} {first} {next}");
    }
}

/// The places of those in a list.
fn positions(steps: &[Next], are: impl Fn(&Next) -> bool) -> Vec<usize> {
    steps.iter().enumerate().filter(|(_, step)| are(step)).map(|(n, _)| n).collect()
}

#[test]
fn what_could_make_no_answer_later_than_was_found_is_not_outstanding() {
    let mut known = Knowledge::default();
    [5_000, 19_000, 21_000].map(lucky).iter().for_each(|tried| known.take(tried));
    let seen = [(9_500, 100), (9_500, 3_000), (20_000, 5_000)];
    let seen = seen.map(|(length, ms)| stretch(Stretch::PreemptOff, length, ms)).to_vec();
    let [usual, _, longest] = seen[..] else { panic!("{seen:?}") };
    known.take(&TrialResult { scouted: Some(vec![usual]), ..tried(at(0), None) });
    known.take(&TrialResult { scouted: Some(seen), ..tried(at(200), None) });
    assert_eq!(outlook(&known).outstanding(at(200)), None);
    known.finds.get_mut("task").expect("finds").clear();
    assert_eq!(outlook(&known).outstanding(at(200)), Some((longest, 0)));
}

#[test]
fn an_outstanding_stretch_in_which_the_guest_dies_is_entered_in_each_way_once() {
    let mut known = Knowledge::default();
    let usual = stretch(Stretch::PreemptOff, 9_000, 100);
    let rare = stretch(Stretch::PreemptOff, 20_000, 5_000);
    known.take(&TrialResult { scouted: Some(vec![usual]), ..tried(at(0), None) });
    known.take(&TrialResult { scouted: Some(vec![rare]), ..tried(at(200), None) });
    for way in 0..ENTRIES {
        assert_eq!(outlook(&known).outstanding(at(200)), Some((rare, way)));
        let fired = rare.at_ns + Nanos(10 * way as u64);
        let died = GuestDeath { instants: vec![fired], ..GuestDeath::default() };
        known.take(&TrialResult { died: Some(died), ..tried(at(200), None) });
    }
    assert_eq!(outlook(&known).outstanding(at(200)), None);
}

#[test]
fn outstanding_is_what_is_longer_than_all_of_its_kind_near_the_others() {
    let mut known = Knowledge::default();
    let near = |lengths: [u64; 2]| {
        let kinds = [Stretch::IrqsOff, Stretch::PreemptOff];
        let each = |n: usize| stretch(kinds[n], lengths[n], 60 + n as u64);
        Some(vec![each(0), each(1)])
    };
    known.take(&TrialResult { scouted: near([9_000, 9_000]), ..tried(at(0), None) });
    assert_eq!(outlook(&known).outstanding(at(0)), None, "there is no other");
    known.take(&TrialResult { scouted: near([9_100, 30_000]), ..tried(at(800), None) });
    known.take(&TrialResult { scouted: near([9_100, 20_000]), ..tried(at(1_600), None) });
    let (longest, _) = outlook(&known).outstanding(at(800)).expect("one is");
    assert_eq!(longest.occurrence.kind, Stretch::PreemptOff);
    assert_eq!(outlook(&known).outstanding(at(0)), None, "another ground has longer ones");
    assert_eq!(outlook(&known).outstanding(at(1_600)), None, "one other has a longer one");
}

#[test]
fn nobody_looks_twice_alike_and_only_what_was_seen_is_fired_into() {
    let mut scouted = BTreeSet::new();
    let mut begins = BTreeSet::new();
    for step in steps(4, 200) {
        match step {
            Next::Scout(begin, until) => {
                assert!(scouted.insert((begin, until)), "{begin:?}");
                begins.insert(begin);
            }
            Next::Fire(begin, _) | Next::Enter(begin, ..) | Next::Meet(begin, _) => {
                assert!(begins.contains(&begin), "{begin:?}");
            }
            Next::Blind => panic!("something is known after the first round"),
        }
    }
}

#[test]
fn each_is_fired_into_first_once_and_the_longest_of_all_that_are_known_comes_first() {
    let mut known = Knowledge::default();
    for (ms, lengths) in [(0, [7_000, 9_000]), (200, [9_100, 8_000])] {
        let seen = [10, 20].into_iter().zip(lengths);
        let seen = seen.map(|(ms, length)| stretch(Stretch::Unscheduled, length, ms)).collect();
        known.take(&TrialResult { scouted: Some(seen), ..tried(at(ms), None) });
    }
    let mut outlook = all_seen(&known);
    let mut fire = || match outlook.plan() {
        Some(Next::Fire(begin, f)) => Some((begin, f.length_insns.0)),
        other => (other != Some(Next::Blind)).then(|| panic!("{other:?}")),
    };
    let fired = [(at(200), 9_100), (at(0), 9_000), (at(200), 8_000), (at(0), 7_000)];
    assert_eq!(fired.map(|_| fire()), fired.map(Some));
    assert_eq!(fire(), None, "there is no more");
}

#[test]
fn what_was_fired_into_first_in_an_earlier_round_is_not_again() {
    let mut known = Knowledge::default();
    let seen = [(20, 9_000), (30, 8_000)];
    let seen = seen.map(|(ms, length)| stretch(Stretch::Unscheduled, length, ms));
    known.take(&TrialResult { scouted: Some(seen.to_vec()), ..tried(at(0), None) });
    known.take(&TrialResult { entered: Some(entered(seen[0], 9_500)), ..tried(at(0), None) });
    assert_eq!(outlook(&known).plan(), Some(Next::Fire(at(0), seen[1])));
}

/// A guest with four stretches of each of these lengths, each with another opener. `answers` are the task's answers to
/// triggers in the first stretch of a kind, the second, and so on.
fn met(lengths: [(Stretch, u64); 3], answers: &[(Stretch, u64)]) -> Knowledge {
    let all = lengths.into_iter().flat_map(|(kind, length)| {
        // Each stretch has its own time.
        [0, 1, 2, 3].map(|n| stretch(kind, length - n, 10 + 10 * n + kind as u64))
    });
    let all: Vec<ForeseenStretch> = all.collect();
    let mut known = Knowledge::default();
    for (n, (kind, latency)) in answers.iter().enumerate() {
        let before = answers[..n].iter().filter(|(other, _)| other == kind).count();
        let mut own = all.iter().filter(|f| f.occurrence.kind == *kind);
        let f = own.nth(before).expect("it is in the list");
        known.take(&TrialResult { entered: Some(entered(*f, *latency)), ..tried(at(0), None) });
    }
    // The scout comes last, so that no other scout is due.
    known.take(&TrialResult { scouted: Some(all), ..tried(at(0), None) });
    known
}

const LENGTHS: [(Stretch, u64); 3] =
    [(Stretch::Unscheduled, 90_000), (Stretch::PreemptOff, 7_000), (Stretch::IrqsOff, 6_000)];

#[test]
fn it_is_looked_further_as_soon_as_nothing_known_promises_a_later_answer() {
    let longest = LENGTHS[0].1;
    let next = |found: u64| {
        let mut known = met(LENGTHS, &LENGTHS);
        known.take(&lucky(found));
        let mut outlook = outlook(&known);
        [(); 3].map(|()| outlook.plan())
    };
    let looks_on = Some(Next::Scout(at(200), FIRST_STAGE));
    let [first, second, third] = next(longest - 2);
    let fires = matches!(first, Some(Next::Fire(_, f)) if f.length_insns.0 == longest - 1);
    assert!(fires, "{first:?}");
    assert_eq!(second, looks_on, "nothing else is as long");
    assert_eq!(third, None, "what the scout sees is waited for");
    assert_eq!(next(longest - 1)[..2], [looks_on, None]);
}

#[test]
fn one_of_each_kind_is_tried_however_short_it_is() {
    let [(call, longest), (preempt, _), (irqs, _)] = LENGTHS;
    let mut known = met(LENGTHS, &[(call, longest)]);
    known.take(&lucky(2 * longest));
    let mut outlook = outlook(&known);
    for kind in [preempt, irqs] {
        let next = outlook.plan();
        let fires = matches!(next, Some(Next::Fire(_, f)) if f.occurrence.kind == kind);
        assert!(fires, "{next:?}");
    }
    assert!(matches!(outlook.plan(), Some(Next::Scout(..))));
}

#[test]
fn what_did_not_keep_the_responder_waiting_goes_behind_what_did() {
    let [(call, _), (preempt, _), (irqs, _)] = LENGTHS;
    let answers = [(call, 5_000), (call, 5_000), (preempt, 9_000), (irqs, 10_000)];
    let known = met(LENGTHS, &answers);
    let mut outlook = all_seen(&known);
    let mut next = || match outlook.plan() {
        Some(Next::Fire(_, f)) => (f.occurrence.kind, f.length_insns.0),
        other => panic!("{other:?}"),
    };
    let latest = [(irqs, 5_999), (irqs, 5_998), (irqs, 5_997)];
    assert_eq!(latest.map(|_| next()), latest);
    let then = [(preempt, 6_999), (preempt, 6_998), (preempt, 6_997)];
    assert_eq!(then.map(|_| next()), then);
    assert_eq!([next(), next()], [(call, 89_998), (call, 89_997)]);
}

#[test]
fn an_early_answer_speaks_against_its_opener_and_two_against_a_kind_that_made_nobody_late() {
    let [(call, _), (preempt, _), (irqs, _)] = LENGTHS;
    let of = |answers: &[(Stretch, u64)], opener| {
        let known = met(LENGTHS, answers);
        outlook(&known).ahead.expected(Responder::Task, &stretch(call, 80_000, opener)).0
    };
    let expected = |answers: &[(Stretch, u64)]| of(answers, 77);
    assert_eq!(expected(&[(irqs, 9_000), (preempt, 9_000)]), 80_000, "nobody knows");
    assert_eq!(expected(&[(call, 95_000)]), 85_000);
    let early = [(call, 95_000), (call, 4_000), (call, 3_000)];
    assert_eq!(expected(&early), 85_000);
    assert_eq!([10, 20, 30].map(|ms| of(&early, ms + call as u64)), [85_000, 4_000, 3_000]);
    assert_eq!(expected(&[(call, 4_000)]), 80_000);
    assert_eq!(expected(&[(call, 4_000), (call, 3_000)]), 4_000);
    assert_eq!(expected(&[(call, 4_000), (call, 3_000), (call, 93_998)]), 84_000);
    assert_eq!(expected(&[(call, 94_000), (call, 91_000)]), 84_000, "the most that was seen");
    assert_eq!(expected(&[(call, 50_000), (call, 50_000)]), 80_000, "most of it was waited for");
}

#[test]
fn responders_take_turns_and_each_has_what_makes_it_late() {
    let mut known = Knowledge::default();
    let kinds = [Stretch::IrqsOff, Stretch::Unscheduled, Stretch::PreemptOff];
    let each = kinds.into_iter().zip([7_000, 9_000, 8_000]);
    let all =
        each.flat_map(|(kind, length)| [10, 20].map(|ms| stretch(kind, length, ms + kind as u64)));
    known.take(&TrialResult { scouted: Some(all.collect()), ..tried(at(0), None) });
    let both = [Responder::Hardirq, Responder::Task];
    let outlook = Outlook::new(&known, GUEST, &both);
    let mut outlook = Outlook { scouted: Some((0, false)), ..outlook };
    let mut kind = || match outlook.plan() {
        Some(Next::Fire(_, f)) => Some(f.occurrence.kind),
        other => other.map(|next| panic!("{next:?}")),
    };
    let [irqs, call, preempt] = kinds.map(Some);
    assert_eq!([(); 4].map(|()| kind()), [call, irqs, preempt, None], "each kind once");
}

fn coincidence(at_ms: u64, masked: u64) -> Coincidence {
    let (at_ns, masked_insns) = (Nanos::from_millis(at_ms), Insns(masked));
    Coincidence { at_ns, masked_insns, interrupts: Vec::new() }
}

/// The task answered a trigger that met this coincidence this late.
fn encounter(coincidence: &Coincidence, latency: u64) -> Encounter {
    let answered_insns = BTreeMap::from([("task".into(), Insns(latency))]);
    Encounter { coincidence: coincidence.clone(), answered_insns }
}

#[test]
fn what_comes_together_takes_turns_with_long_stretches_and_is_met_once() {
    let stretches = [10, 20, 30].map(|ms| stretch(Stretch::Unscheduled, 90_000 - ms, ms));
    // The first coincidence is at a stretch that is fired into as it opens.
    let together = [(10, 9_000), (40, 7_000), (50, 8_000), (60, 1_000)];
    let together = together.map(|(ms, masked)| coincidence(ms, masked));
    let mut known = Knowledge::default();
    known.take(&TrialResult {
        scouted: Some(stretches.to_vec()),
        coincidences: together.to_vec(),
        ..tried(at(0), None)
    });
    known.take(&TrialResult { entered: Some(entered(stretches[0], 1_000)), ..tried(at(0), None) });
    known.take(&lucky(7_000));
    let mut outlook = all_seen(&known);
    let met = |n: usize| Some(Next::Meet(at(0), together[n].clone()));
    let fired = |n: usize| Some(Next::Fire(at(0), stretches[n]));
    let plan = [(); 4].map(|()| outlook.plan());
    assert_eq!(plan, [met(2), fired(1), met(1), fired(2)]);
    assert_eq!(outlook.plan(), Some(Next::Blind), "the last promises nothing later");
}

#[test]
fn how_late_an_answer_will_be_to_what_comes_together_is_known_from_three_of_four() {
    let mut known = Knowledge::default();
    let met = coincidence(10, 3_000);
    let expected = |known: &Knowledge| {
        let ahead = outlook(known).ahead;
        ahead.expected_of(Responder::Task, &coincidence(20, 2_000)).0
    };
    known.take(&TrialResult { encounter: Some(encounter(&met, 9_000)), ..tried(at(0), None) });
    assert_eq!(expected(&known), 2_000 + 6_000);
    for latency in [7_000, 7_500, 7_100] {
        known
            .take(&TrialResult { encounter: Some(encounter(&met, latency)), ..tried(at(0), None) });
    }
    assert_eq!(expected(&known), 2_000 + 6_000);
    known.take(&TrialResult { encounter: Some(encounter(&met, 7_200)), ..tried(at(0), None) });
    assert_eq!(expected(&known), 2_000 + 4_500);
}

#[test]
fn nobody_looks_further_where_the_guest_dies_by_itself() {
    let mut known = Knowledge::default();
    let died = GuestDeath { text: "oops".into(), ..Default::default() };
    known.take(&TrialResult { died: Some(died), ..tried(at(0), Some(FIRST_STAGE)) });
    for _ in 0..20 {
        known.take(&tried(at(0), None));
        assert!(matches!(outlook(&known).plan(), Some(Next::Fire(..))));
    }
}

#[test]
fn what_is_near_is_told_from_what_is_far_by_when_it_comes_after_where_the_scout_began() {
    let seen = [300, 800, 900, 1_500].map(|ms| stretch(Stretch::IrqsOff, 9_000, ms));
    let mut ground = Ground::default();
    ground.take(&TrialResult { scouted: Some(seen.to_vec()), ..tried(at(1_600), None) });
    assert_eq!((&ground.near[..], &ground.far[..]), (&seen[..2], &seen[2..]));
}
