// SPDX-License-Identifier: GPL-2.0-or-later
//! Triggers that are not periodic.

use super::{assert_refused, generator, parse};
use sample::{Nanos, Schedule};

/// The schedule of an experiment with these keys in `[trigger]`.
fn scheduled(keys: &str) -> Schedule {
    let text = format!(
        "title = \"t\"\ntarget = \"rig\"\nflavours = [\"6.12\"]\nloads = [\"idle\"]\n[trigger]\nduty = 0.01\n{keys}"
    );
    generator(&parse(&text).unwrap_or_else(|problems| panic!("{problems}")))
        .trigger
        .schedule
        .clone()
}

#[test]
fn triggers_come_in_bursts_at_random_and_as_a_file_says() {
    let micros = |times: &[u64]| {
        Schedule::Explicit(times.iter().map(|time| Nanos::from_micros(*time)).collect())
    };
    let bursts = scheduled("period = \"1ms\"\ncount = 2\nburst = 3\napart = \"20us\"");
    assert_eq!(bursts, micros(&[1_000, 1_020, 1_040, 2_000, 2_020, 2_040]));
    let random = "period = \"1ms\"\ncount = 50\narrivals = \"poisson\"";
    assert_eq!(scheduled(random).count(), 50);
    assert_eq!(scheduled(random), scheduled(random), "the seed decides");
    let Schedule::Explicit(both) = scheduled(
        "period = \"1ms\"\ncount = 1\narrivals = \"poisson\"\nburst = 2\napart = \"3us\"",
    ) else {
        panic!("a list is drawn")
    };
    assert_eq!((both[1] - both[0], both.len()), (Nanos::from_micros(3), 2));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("events.csv");
    std::fs::write(&file, "time,what\n1ms,brake\n1.25ms,gas\n").unwrap();
    assert_eq!(
        scheduled(&format!("times = {:?}", file.display().to_string())),
        micros(&[1_000, 1_250])
    );
}

#[test]
fn what_cannot_be_triggered_is_named_with_its_remedy() {
    assert_refused(&[
        (
            "count",
            "arrivals = \"normal\"\ncount",
            "unknown arrivals \"normal\"",
            "known is poisson",
        ),
        (
            "count",
            "arrivals = \"poisson\"\njitter = \"1us\"\ncount",
            "jitter and arrivals",
            "one of them",
        ),
        ("count = 10", "arrivals = \"poisson\"\ncount = 1000001", "more than a list", "1000000"),
        ("count", "apart = \"5us\"\ncount", "apart without burst", "burst = 4"),
        ("count", "burst = 4\ncount", "apart is missing in [trigger]", "20us"),
        ("count", "burst = 1\napart = \"5us\"\ncount", "burst cannot be 1", "from 2 to"),
        ("count", "burst = 4\napart = \"500us\"\ncount", "runs into the next one", "shorter"),
        ("count = 10", "burst = 4\napart = \"5us\"\ncount = 300000", "more than a list", "1000000"),
        (
            "period = \"1ms\"\ncount = 10",
            "times = \"none.csv\"",
            "cannot read",
            "a time in each line",
        ),
        ("count", "times = [\"1ms\"]\ncount", "count and times cannot be set together", "leave"),
        ("period = \"1ms\"\ncount = 10", "times = [\"2ms\", \"1ms\"]", "have to rise", "in order"),
        ("period = \"1ms\"\ncount = 10", "times = [\"1ns\", \"2ns\"]", "1.00 µs apart", "edge"),
        ("count", "disturbances = [\"3\"]\ncount", "\"3\" is no disturbance", "needs a unit"),
        ("count", "disturbances = [\"3ms 65 timers\"]\ncount", "is no disturbance", "0 to 64"),
        ("count", "disturbances = [\"3ms 2\"]\ncount", "is no disturbance", "timers after it"),
        ("count", "disturbances = \"3ms\"\ncount", "has to be a list", "16 timers"),
        ("count", "disturbances = [3]\ncount", "a list of texts", "in quotes"),
        ("count", "disturbances = [\"3ms\", \"2ms\"]\ncount", "have to rise", "in order"),
        ("count", "disturbances = [\"3ms\", \"3ms 1 timer\"]\ncount", "have to rise", "one at an"),
        ("count", "disturbances = [\"1011ms\"]\ncount", "run ends before", "before the last"),
    ]);
}
