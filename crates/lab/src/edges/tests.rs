// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use rig::ClockPoint;
use sample::Insns;

/// How far the guest's clock is ahead of virtual time.
const AHEAD: u64 = 7_000;
const ORIGIN: u64 = 10_000_000;
const PERIOD: u64 = 1_000_000;
const LENGTH: u64 = 50_000;

/// A witness of levels, at times by the guest's clock.
fn witness(levels: &[(u64, u16)]) -> Witness {
    let seen_at = |guest_ns: u64| Stamp::from_ns(guest_ns - AHEAD);
    let point = |read: u64| ClockPoint {
        begun: seen_at(read - 50),
        insns: Insns(0),
        width: Nanos(100),
        read: Stamp::from_ns(read),
    };
    // The pin was left high, and is made low before the first pulse.
    let before = [(ORIGIN - 5_000, D7), (ORIGIN - 2_000, 0)];
    let level = |(at, pins): &(u64, u16)| Level { at: seen_at(*at), pins: *pins };
    let levels = before.iter().chain(levels).map(level).collect();
    let mut witness = Witness::default();
    (witness.clock, witness.levels) = (vec![point(5_000_000), point(90_000_000)], levels);
    witness
}

fn due(number: u64) -> u64 {
    ORIGIN + (number + 1) * PERIOD
}

fn sample(series: SeriesId, number: u64, latency: u64) -> Observation {
    let late = if series == FALL { LENGTH } else { 0 };
    let at = Nanos(due(number) + late - ORIGIN);
    Observation::Sample(Sample { series, trigger: number, at, latency: Nanos(latency), path: None })
}

/// The reports of a pulse whose edges came this late, as the probe says.
fn pulse(number: u64, rise: u64, fall: u64) -> [Observation; 3] {
    let differs = rise.abs_diff(fall);
    [sample(RISE, number, rise), sample(FALL, number, fall), sample(WIDTH, number, differs)]
}

fn seen(reported: &[Observation], witness: &Witness) -> Seen {
    let names = ["rise", "fall", "width"].map(|name| name.parse().unwrap());
    judge(&names, Nanos(LENGTH), reported, Some(Stamp::from_ns(ORIGIN)), witness)
}

#[test]
fn samples_are_made_of_the_edges_and_what_was_said_is_judged_by_them() {
    let levels = [
        (due(0) + 3_000, D7),
        // A change of other pins, or the same level again, is no edge.
        (due(0) + 4_000, D7 | 1),
        (due(0) + LENGTH + 2_000, 0),
        (due(1) + 9_000, D7),
        (due(1) + LENGTH + 2_500, 1),
        (due(1) + LENGTH + 2_600, 0),
    ];
    let reported = [pulse(0, 3_060, 2_050), pulse(1, 9_900, 2_540)].concat();
    let Seen { observations, truths } = seen(&reported, &witness(&levels));
    let expected = [
        [sample(RISE, 0, 3_000), sample(FALL, 0, 2_000), sample(WIDTH, 0, 1_000)],
        [sample(RISE, 1, 9_000), sample(FALL, 1, 2_500), sample(WIDTH, 1, 6_500)],
    ];
    assert_eq!(observations, expected.concat());
    let errors: Vec<_> = truths.iter().map(|t| t.error.map(|e| (e.min_ns, e.max_ns))).collect();
    assert_eq!(errors, [Some((60, 900)), Some((40, 50)), Some((10, 860))]);
    assert!(truths.iter().all(|t| (t.samples, t.matched, t.own) == (2, 2, None)));
    assert_eq!(truths.iter().map(|t| t.uncertainty.0).collect::<Vec<_>>(), [51, 51, 1]);
}

#[test]
fn an_edge_that_was_not_reported_and_a_report_without_an_edge_are_counted_losses() {
    let levels = [
        (due(0) + 1_000, D7),
        (due(0) + 20_000, 0),
        (due(0) + 30_000, D7),
        (due(0) + LENGTH + 100, 0),
    ];
    // One pulse lasts half the time, another one comes in its place, and then there is none where one is reported.
    let reported = [pulse(0, 31_000, 200), pulse(1, 1_000, 1_000)].concat();
    let Seen { observations, truths } = seen(&reported, &witness(&levels));
    let lost = |series, loss| Observation::Loss(series, loss, 1);
    let expected = [
        sample(RISE, 0, 30_000),
        sample(FALL, 0, 100),
        sample(WIDTH, 0, 29_900),
        lost(RISE, Loss::Unanswered),
        lost(FALL, Loss::Unanswered),
        lost(WIDTH, Loss::Unanswered),
        lost(RISE, Loss::Spurious),
        lost(FALL, Loss::Spurious),
    ];
    assert_eq!(observations, expected);
    assert!(truths.iter().all(|t| (t.samples, t.matched) == (2, 1)));
}

#[test]
fn an_edge_before_it_was_due_is_tainted_and_losses_are_passed_on() {
    let levels = [(due(0) - 10, D7), (due(0) + LENGTH + 5, 0)];
    let skipped = Observation::Loss(RISE, Loss::Superseded, 4);
    let reported = [&pulse(0, 20, 20)[..], &[skipped]].concat();
    let observations = seen(&reported, &witness(&levels)).observations;
    assert_eq!(observations[0], Observation::Loss(RISE, Loss::Tainted, 1));
    assert_eq!(observations[2..], [sample(WIDTH, 0, 15), skipped]);
}

#[test]
fn without_the_guests_clock_or_the_probes_origin_nothing_is_measured() {
    let reported = pulse(0, 1, 1);
    let dropped = [RISE, FALL, WIDTH].map(|id| Observation::Loss(id, Loss::Dropped, 1));
    let mut nowhere = witness(&[(due(0), D7)]);
    nowhere.clock.clear();
    assert_eq!(seen(&reported, &nowhere).observations, dropped);
    assert_eq!(judge(&[], Nanos(LENGTH), &reported, None, &witness(&[])).observations, dropped);
}
