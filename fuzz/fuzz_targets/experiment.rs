// SPDX-License-Identifier: GPL-2.0-or-later
//! Any text is an experiment that holds what it promises, or a list of problems that can be shown. What
//! follows a NUL character is an override, so that `--set` is reached too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onset::experiment::{Experiment, Schedule};
use sample::SeriesName;
use std::path::Path;

fuzz_target!(|text: &str| {
    let (file, said) = text.split_once('\0').unwrap_or((text, ""));
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
    let trigger = &experiment.trigger;
    match &trigger.schedule {
        Schedule::Periodic { period, jitter, count, .. } => {
            assert!(jitter < period && *count > 0 && trigger.high < *period);
        }
        Schedule::Explicit(times) => assert!(!times.is_empty() && times.is_sorted()),
    }
    assert!(trigger.high.0 > 0);
    assert!(experiment.responders.iter().next().is_some());
    let measured: Vec<SeriesName> = experiment.responders.iter().map(SeriesName::from).collect();
    assert!(experiment.cells().next().is_some());
    for cell in experiment.cells() {
        for limit in experiment.limits_for(cell) {
            assert!(measured.contains(&limit.responder));
        }
    }
}
