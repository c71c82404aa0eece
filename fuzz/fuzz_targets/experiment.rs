// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is an experiment that holds what it promises, or a list of problems that can be shown. What
//! follows a NUL character is an override, so that `--set` is reached too, and any other word of the command line.
#![no_main]

use agent::Load;
use libfuzzer_sys::fuzz_target;
use bundle::{RunId, UtcTime};
use experiment::{Experiment, Flavour, Instrument, Mebibytes};
use hunt::{Budget, StrategyName};
use sample::{Disturbance, Nanos, Responder, Schedule, SeriesName};
use stats::{Condition, Constraint, Limit, Statistic, Subject};
use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

fuzz_target!(|text: &str| {
    let (file, said) = text.split_once('\0').unwrap_or((text, ""));
    words(said);
    let experiment = match Experiment::parse(Path::new("fuzz/x.toml"), file) {
        Ok(experiment) => experiment,
        Err(problems) => {
            assert!(problems.count() > 0 && problems.to_string().starts_with("error: "));
            return;
        }
    };
    check(&experiment);
    let Some((key, value)) = said.split_once('=') else { return };
    match experiment.with_overrides(&[(key.into(), value.into())]) {
        Ok(experiment) => check(&experiment),
        Err(problems) => assert!(problems.to_string().starts_with("error: ")),
    }
});

/// What everyone above relies on.
fn check(experiment: &Experiment) {
    for instrument in &experiment.instruments {
        let Instrument::Generator(generator) = instrument else { continue };
        let trigger = &generator.trigger;
        match &trigger.schedule {
            Schedule::Periodic { period, jitter, count, .. } => {
                assert!(jitter < period && *count > 0 && trigger.high < *period);
            }
            Schedule::Explicit(times) => assert!(!times.is_empty() && times.is_sorted()),
        }
        assert!(trigger.high.0 > 0);
        assert!(generator.responders.iter().next().is_some());
    }
    assert!(experiment.cells().next().is_some());
    for cell in experiment.cells().take(64) {
        let measured: Vec<SeriesName> = cell.instrument.series();
        for limit in experiment.limits_for(cell) {
            assert!(measured.contains(&limit.responder));
        }
    }
    if experiment.repeats <= 4 {
        assert!(experiment.repetitions().is_ok());
    }
}

/// What the command line takes. What is read and written again is the same.
fn words(said: &str) {
    same::<Load>(said);
    same::<Flavour>(said);
    same::<StrategyName>(said);
    same::<Responder>(said);
    same::<SeriesName>(said);
    same::<Statistic>(said);
    same::<RunId>(said);
    same::<UtcTime>(said);
    let _ = said.parse::<Subject>().map_err(|why| why.to_string());
    for kind in Constraint::ALL {
        let _ = kind.tolerance(said).map_err(|why| why.to_string());
    }
    let _ = said.parse::<Condition>().map(|condition| condition.to_string());
    let _ = said.parse::<Nanos>().map(|time| time.to_string());
    let _ = (said.parse::<Budget>().is_ok(), said.parse::<Mebibytes>().is_ok());
    let _ = (said.parse::<Disturbance>().is_ok(), said.parse::<wire::Take>().is_ok());
    if let Ok(limit) = serde_json::from_str::<Limit>(said) {
        let again = serde_json::to_string(&limit).expect("plain data");
        assert_eq!(serde_json::from_str::<Limit>(&again).ok(), Some(limit));
    }
}

fn same<T: FromStr + Display + PartialEq + Debug>(said: &str) {
    if let Ok(read) = said.parse::<T>() {
        assert_eq!(read.to_string().parse::<T>().ok(), Some(read));
    }
}
