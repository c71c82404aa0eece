// SPDX-License-Identifier: GPL-2.0-or-later
//! Limits on statistics and on deadlines, good and bad.

use super::*;
use stats::{Quantile, Subject, Tolerance};

#[test]
fn each_mistake_in_a_limit_is_named_with_its_remedy() {
    for (limits, what, remedy) in [
        ("tsk.max = \"1ms\"", "\"tsk\" is no responder", "did you mean \"task\"?"),
        ("task = \"1ms\"", "task has to name the statistic that it limits", "task.max = \"150us\""),
        ("task.maximum = \"1ms\"", "unknown statistic \"maximum\"", "known are max, mean, p50"),
        ("task.p99.9 = \"1ms\"", "p99 has to be a duration", "needs quotes: \"p99.9\""),
        ("task.max = \"0ns\"", "max of 0 ns is below", "every answer takes time"),
        ("task.max = 150", "in quotes, with its unit", "\"1ms\""),
        ("[limits.6.12-rt]\ntask.max = \"1ms\"", "\"6\" is no responder", "quotes: \"6.12-rt\""),
        ("[limits.\"6.12-rt/disk\"]\ntask.max = \"1ms\"", "is no responder", "\"6.12-rt/idle\""),
        ("[limits.\"6.12-tr\"]\ntask.max = \"1ms\"", "is no responder", "mean \"6.12-rt\"?"),
        ("\"6.12-rt\".tsak.max = \"1ms\"", "unknown responder \"tsak\"", "mean \"task\"?"),
        ("\"6.12-rt\" = \"1ms\"", "has to be a table, not a text", "[6.12-rt]"),
        (
            "\"6.12-rt\".task.max = \"1ms\"\n\" 6.12-rt\".task.max = \"2ms\"",
            "a second limit for task.max",
            "leave one",
        ),
    ] {
        let shown = refusal(&format!("{MINIMAL}[limits]\n{limits}\n"));
        assert!(shown.contains(what) && shown.contains(remedy), "{limits}:\n{shown}");
    }
    let unmeasured = MINIMAL.replace("loads", "responders = [\"task\"]\nloads");
    let shown = refusal(&format!("{unmeasured}[limits]\nwork.max = \"1ms\"\n"));
    assert!(shown.contains("a limit for work, which the experiment does not measure"), "{shown}");
}

#[test]
fn limits_are_checked_although_a_list_that_they_name_is_faulty() {
    let text = MINIMAL.replace("\"6.12-rt\"", "7").replace("\"mixed\"", "\"mixd\"");
    let limits = "[limits]\ntask.max = 5\n\"6.12-rt/mixed\".task.max = \"1ms\"\n";
    let problems = parse(&format!("{text}{limits}")).unwrap_err();
    assert_eq!(problems.count(), 3, "{problems}");
    assert!(problems.to_string().contains("max has to be a duration"), "{problems}");
}

#[test]
fn the_narrowest_of_several_limits_counts() {
    let text = format!(
        "{MINIMAL}[limits]\ntask.max = \"3ms\"\nhardirq.\"p99.9\" = \"9us\"\n\
         [limits.\"6.12-rt/mixed\"]\ntask.max = \"1ms\"\n\
         [limits.\"6.12-rt\"]\ntask.max = \"2ms\"\ntask.mean = \"1us\"\n"
    );
    let experiment = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let bounds = |flavour: usize, load| {
        let cell = Cell {
            flavour: &experiment.flavours[flavour],
            load,
            instrument: &experiment.instruments[0],
        };
        let limits = experiment.limits_for(cell);
        let max = limits.iter().find_map(|l| match l.demand {
            Demand::Statistic { statistic: Statistic::Max, bound } => Some(bound),
            _ => None,
        });
        (limits.len(), max)
    };
    assert_eq!(bounds(0, Load::Mixed), (2, Some(Nanos::from_millis(3))));
    assert_eq!(bounds(1, Load::Idle), (3, Some(Nanos::from_millis(2))));
    assert_eq!(bounds(1, Load::Mixed), (3, Some(Nanos::from_millis(1))));
    let quantile =
        experiment.limits.iter().find(|l| l.limit.responder == Responder::Hardirq.into());
    let subject = quantile.unwrap().limit.demand.subject();
    assert_eq!(subject, Subject::Statistic(Statistic::Quantile(Quantile::P999)));
}

#[test]
fn limits_on_deadlines_are_read_and_hold_beside_those_on_statistics() {
    let text = format!(
        "{MINIMAL}[limits]\ntask.max = \"3ms\"\ntask.\"miss(100us)\" = 0\n\
         task.\"miss(1ms)\" = \"1 in 10000\"\nall.\"consecutive(1ms)\" = 2\n\
         [limits.\"6.12-rt\"]\ntask.\"miss(100 us)\" = \"3\"\nhardirq.\"firm(50us)\" = \"9 of 10\"\n"
    );
    let experiment = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let of = |flavour: usize, responder: Responder| {
        let cell = Cell {
            flavour: &experiment.flavours[flavour],
            load: Load::Idle,
            instrument: &experiment.instruments[0],
        };
        let limits = experiment.limits_for(cell);
        let own = limits.iter().filter(|l| l.responder == responder.into());
        let deadlines = own.filter_map(Limit::deadline).map(|d| (d.time.0, d.tolerance));
        deadlines.collect::<Vec<_>>()
    };
    let share = (1_000_000, Tolerance::Share { most: 1, of: 10_000 });
    let row = (1_000_000, Tolerance::Consecutive { most: 2 });
    let misses = |most| (100_000, Tolerance::Misses { most });
    assert_eq!(of(0, Responder::Task), [misses(0), share, row]);
    assert_eq!(of(1, Responder::Task), [misses(3), share, row]);
    assert_eq!(of(0, Responder::Hardirq), [row]);
    assert_eq!(of(1, Responder::Hardirq), [row, (50_000, Tolerance::Firm { least: 9, of: 10 })]);
}

#[test]
fn each_mistake_in_a_limit_on_a_deadline_is_named_with_its_remedy() {
    for (limits, what, remedy) in [
        ("task.\"late(1ms)\" = 0", "unknown statistic \"late(1ms)\"", "miss(TIME)"),
        ("task.miss = 0", "unknown limit \"miss\"", "write \"miss(100us)\""),
        ("task.\"firm(100)\" = \"9 of 10\"", "unknown limit", "needs a unit"),
        ("task.\"miss(0us)\" = 0", "unknown limit", "every answer takes time"),
        ("task.\"miss(1us)\" = \"100us\"", "no bound of miss", "as \"1 in 10000\""),
        ("task.\"miss(1us)\" = -1", "no bound of miss", "how many events may miss the deadline"),
        ("task.\"miss(1us)\" = 0.01", "no bound of miss", "which share"),
        ("task.\"miss(1us)\" = \"9 of 10\"", "no bound of miss", "1 in 10000"),
        ("task.\"consecutive(1us)\" = \"1 in 9\"", "no bound of consecutive", "as 2"),
        ("task.\"firm(1us)\" = 3", "no bound of firm", "as \"9 of 10\""),
        ("task.\"firm(1us)\" = \"10 of 9\"", "demands 10 of 9", "not above the second"),
        ("task.\"firm(1us)\" = \"0 of 9\"", "demands nothing", "leave the limit out"),
        ("task.miss(1us) = 0", "name with parentheses", "\"miss(100us)\""),
        (
            "task.\"miss(1ms)\" = 0\ntask.\"miss(1000us)\" = 1",
            "a second limit for task.miss(1000us)",
            "leave one",
        ),
    ] {
        let shown = refusal(&format!("{MINIMAL}[limits]\n{limits}\n"));
        assert!(shown.contains(what) && shown.contains(remedy), "{limits}:\n{shown}");
    }
}

#[test]
fn a_bandwidth_has_no_deadline() {
    let cost = |limit: &str| {
        let text = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n[cost]\nsuites = [\"ipc\"]\n[limits]\n";
        parse(&format!("{text}{limit}\n"))
    };
    let series = cost("").unwrap().series();
    let bandwidth =
        |name: &&SeriesName| ::probes::row(name.as_str()).is_some_and(|row| row.more_is_better());
    let (bandwidths, times): (Vec<_>, Vec<_>) = series.iter().partition(bandwidth);
    let refused =
        cost(&format!("\"{}\".\"miss(1ms)\" = 0", bandwidths[0])).unwrap_err().to_string();
    assert!(refused.contains("it is a bandwidth, of which more is better"), "{refused}");
    assert!(cost("all.\"miss(1ms)\" = 0").unwrap_err().to_string().contains("has no deadline"));
    assert!(cost(&format!("\"{}\".\"miss(1ms)\" = 0", times[0])).is_ok());
}
