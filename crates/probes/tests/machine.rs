// SPDX-License-Identifier: GPL-2.0-or-later
//! `gtod`, `noise` and `toggle` on the machine that runs the tests.

#[allow(dead_code)] // Not all of what the other tests use.
mod collect;

use collect::notes::skip;
use collect::{measured, policy};
use probes::plan::{Gtod, Line, Noise, ReadClock, SleepMethod, Toggle};
use probes::{Doubt, Plan, Probe, RunError};
use rt::Policy;
use sample::Nanos;

fn plan(probe: Probe, policy: Policy) -> Plan {
    Plan { probe, policy, cpus: rt::allowed_cpus().unwrap(), pm_qos: false, program: None }
}

#[test]
fn every_pair_of_readings_of_every_clock_is_a_sample_or_tainted() {
    let clocks = vec![
        ReadClock::Monotonic,
        ReadClock::Raw,
        ReadClock::Realtime,
        ReadClock::Coarse,
        ReadClock::Boottime,
        ReadClock::Tsc,
    ];
    let gtod = Gtod { clocks, count: 5_000 };
    let (all, report) = match measured(&plan(Probe::Gtod(gtod), policy())) {
        Err(RunError::Unavailable { what, reason }) => {
            return skip(&format!("no {what}: {reason}"));
        }
        other => other.unwrap(),
    };
    let names: Vec<_> = all.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["monotonic", "raw", "realtime", "coarse", "boottime", "tsc"]);
    for series in &all {
        assert_eq!(series.events(), 5_000, "{}", series.name);
        assert!(series.samples.is_sorted_by_key(|(_, at, _)| *at), "{}", series.name);
    }
    // Its resolution is a tick, so that nearly all pairs are alike.
    assert_eq!(all[3].latency_median(), Nanos(0));
    // Two clocks of one source differ by their arithmetic alone.
    let (monotonic, raw) = (all[0].latency_median(), all[1].latency_median());
    assert!(monotonic.0 < 10 * raw.0 + 100 && raw.0 < 10 * monotonic.0 + 100);
    println!("{:?} {report:?}", all.iter().map(|s| s.latency_median()).collect::<Vec<_>>());
}

#[test]
fn the_gaps_of_a_busy_cpu_are_samples_and_add_up_to_the_time_that_is_lost() {
    // OTHER, so that the machine stays usable; long enough for a tick of any kernel.
    let noise = Noise { duration: Nanos::from_millis(100), threshold: Nanos(1_000) };
    let plan = plan(Probe::Noise(noise), Policy::Other(0));
    let (all, report) = measured(&plan).unwrap();
    assert_eq!(all.len(), plan.cpus.len());
    for (series, cpu) in all.iter().zip(&plan.cpus) {
        let lost: u64 = series.samples.iter().map(|(_, _, gap)| gap.0).sum();
        assert_eq!(report.counters[&format!("lost_ns_cpu{cpu}")], lost);
        assert_eq!(report.counters[&format!("gaps_cpu{cpu}")], series.samples.len() as u64);
        assert!(series.samples.iter().all(|(_, at, gap)| gap.0 >= 1_000 && at.0 <= 100_000_000));
        assert!(!series.samples.is_empty(), "no tick in 100 ms");
    }
    println!("{report:?}");
}

#[test]
fn a_threshold_within_the_loops_own_time_is_refused() {
    let noise = Noise { duration: Nanos::from_millis(1), threshold: Nanos(1) };
    match measured(&plan(Probe::Noise(noise), Policy::Other(0))) {
        Err(RunError::Plan { part: "threshold_ns", wrong }) => {
            assert!(wrong.contains("the loop itself takes"))
        }
        other => panic!("{other:?}"),
    }
}

fn toggle(method: SleepMethod, line: Line) -> Toggle {
    let (period, width) = (Nanos::from_millis(1), Nanos::from_micros(50));
    Toggle { period, width, count: 100, method, line }
}

#[test]
fn every_pulse_has_two_edges_and_a_width_that_are_samples_or_counted_losses() {
    for method in [SleepMethod::ClockNanosleep, SleepMethod::Precise] {
        let plan = plan(Probe::Toggle(toggle(method, Line::Memory)), policy());
        let (all, report) = measured(&plan).unwrap();
        let [rise, fall, width] = &all[..] else { panic!("three series") };
        assert_eq!([rise, fall, width].map(|s| s.name.as_str()), ["rise", "fall", "width"]);
        assert_eq!([rise, fall, width].map(|s| s.events()), [100; 3]);
        assert_eq!((&rise.losses, &rise.losses), (&fall.losses, &width.losses));
        for ((n, up, _), (m, down, _)) in rise.samples.iter().zip(&fall.samples) {
            assert_eq!((n, down.0 - up.0), (m, 50_000));
        }
        // The same readings of the clock, the one less the other.
        for ((_, _, up), ((_, _, down), (_, _, differs))) in
            rise.samples.iter().zip(fall.samples.iter().zip(&width.samples))
        {
            assert_eq!(differs.0, up.0.abs_diff(down.0));
        }
        if !report.doubts.iter().any(|d| matches!(d, Doubt::MemoryNotLocked { .. })) {
            assert_eq!(report.counters["page_faults"], 0);
        }
        println!("{method:?}: rise {} fall {}", rise.latency_median(), fall.latency_median());
    }
}

#[test]
fn lines_that_do_not_exist_and_pulses_that_cannot_be_are_refused() {
    let gpio = toggle(SleepMethod::ClockNanosleep, Line::Gpio("/dev/gpiochip999".into(), 0));
    let refused = measured(&plan(Probe::Toggle(gpio), Policy::Other(0)));
    assert!(matches!(refused, Err(RunError::Unavailable { .. })), "{refused:?}");
    let good = toggle(SleepMethod::ClockNanosleep, Line::Memory);
    for (bad, wanted) in [
        (Toggle { width: good.period, ..good.clone() }, "width_ns"),
        (Toggle { width: Nanos(0), ..good.clone() }, "width_ns"),
        (Toggle { count: 0, ..good.clone() }, "count"),
        (Toggle { method: SleepMethod::Itimer, ..good.clone() }, "method"),
    ] {
        match measured(&plan(Probe::Toggle(bad), Policy::Other(0))) {
            Err(RunError::Plan { part, .. }) => assert_eq!(part, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
}
