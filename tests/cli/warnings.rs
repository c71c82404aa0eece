// SPDX-License-Identifier: GPL-2.0-or-later
//! Every doubt that a run can have: it survives a bundle, scripts are promised it, and the documentation explains it.

use bundle::Warning;
use probes::{Doubt, validity};
use sample::Nanos;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbench::{assert_as_promised, is_as_promised};

const SCHEMA: &str = include_str!("../../docs/run.schema.json");
const METHODS: [&str; 2] =
    [include_str!("../../docs/methods.md"), include_str!("../../docs/methods/machine.md")];

/// One of each kind.
fn all() -> Vec<Warning> {
    let text = || "text".to_owned();
    let responder = || "futex-same".parse().expect("a name");
    let mut all = vec![
        Warning::ChannelDropped { records: 1 },
        Warning::GuestPanicked { text: text() },
        Warning::GuestOops { text: text() },
        Warning::GuestLockup { text: text() },
        Warning::GuestOutOfMemory { text: text() },
        Warning::GuestWarned { text: text() },
        Warning::GuestDidNotEnd { text: text() },
        Warning::MachineDied { text: text() },
        Warning::QemuUntried { version: text() },
        Warning::Unanswered { responder: responder(), triggers: 1 },
        Warning::Superseded { responder: responder(), triggers: 1 },
        Warning::Spurious { responder: responder(), edges: 1 },
        Warning::Tainted { responder: responder(), edges: 1 },
        Warning::Overrun { responder: responder(), periods: 1 },
        Warning::LoadDidNoWork { counter: text() },
        Warning::Interrupted,
        Warning::Killed,
        Warning::Failed { text: text() },
        Warning::Imported { text: text() },
        Warning::FromOutside { name: text() },
        Warning::GeneratorClock { gain_ppb: -250_000, uncertainty_ppb: 1 },
        Warning::TooFewSamples { responder: responder(), quantile: "p99.9".into(), count: 0 },
        Warning::MaximumOfFew { responder: responder(), count: 1 },
        Warning::ResponderMissing { responder: responder(), release: text() },
    ];
    all.extend(of_probes().into_iter().map(Warning::Probe));
    all.extend(of_the_machine().into_iter().map(Warning::Validity));
    all
}

fn of_probes() -> Vec<Doubt> {
    let (series, reason) = (|| "futex-same".to_owned(), || "why".to_owned());
    vec![
        Doubt::MemoryNotLocked { reason: reason() },
        Doubt::PmQosRefused { reason: reason() },
        Doubt::TscNotInvariant,
        Doubt::PageFaults { faults: 1 },
        Doubt::Stopped { series: series() },
        Doubt::NotMeasured { series: series(), reason: reason() },
        Doubt::NotStable { spreads: vec!["null_call (7 %)".into()] },
    ]
}

fn of_the_machine() -> Vec<validity::Doubt> {
    use validity::Doubt::*;
    let (cpu, cpus) = (0, || vec![0, 1]);
    let words = || vec!["word".to_owned()];
    vec![
        CpuOffline { cpus: cpus() },
        CpuNotAllowed { cpus: cpus() },
        CpuNotUsed { cpus: cpus() },
        CpuNotAsked { cpus: cpus() },
        PreemptionDiffers { asked: "none".into(), found: "lazy".into(), modes: words() },
        BootWordsRefused { words: words() },
        MeasuredNotIsolated { cpus: vec![0], isolated: vec![1] },
        IrqOnIsolated { irqs: words() },
        DebugKernel { options: words() },
        RtThrottling { runtime: Nanos(950_000_000), period: Nanos(1_000_000_000) },
        RtThrottled,
        RealTimeRivals { tasks: words() },
        Clocksource { clocksource: "hpet".into() },
        SiblingBusy { cpu, sibling: 1, percent: 50 },
        Stolen { cpu, stolen: Nanos::from_millis(10) },
        ThermallyThrottled { cpu, core: 0, package: 1 },
        FrequencyChanged { cpu, before_khz: 3_000_000, after_khz: 2_000_000 },
        Governor { governor: "powersave".into(), cpus: cpus() },
        DeepIdle { state: "C6".into(), exit_latency: Nanos::from_micros(133) },
    ]
}

/// An output with one run that has these warnings.
fn printed(warnings: Value) -> Value {
    let run = json!({
        "run": "20261121-203911-t-idle-9591", "bundle": "/t", "complete": true, "flavour": "6.12",
        "load": "idle", "instrument": "async", "seed": 1, "clock": "monotonic",
        "evidence": { "samples_min": 0, "samples_max": 0, "measured_ns": null }, "samples_blake3": "0".repeat(64),
        "series": [{
            "responder": "futex-same", "clock": "monotonic", "count": 0,
            "losses": { "unanswered": 0, "superseded": 0, "spurious": 0, "tainted": 0, "overrun": 0, "dropped": 0 },
            "min_ns": null, "mean_ns": null, "stddev_ns": null, "max_ns": null, "quantiles": {}
        }],
        "warnings": warnings, "findings": [], "verdict": "inconclusive"
    });
    json!({ "schema": 1, "runs": [run], "unequal": [], "errors": [] })
}

#[test]
fn every_doubt_is_read_back_from_a_bundle_as_it_was() {
    for warning in all() {
        let text = serde_json::to_string(&warning).expect("plain data");
        let read: Warning = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(read, warning);
    }
}

#[test]
fn every_doubt_is_promised_to_scripts_with_its_fields_and_no_other() {
    let all = serde_json::to_value(all()).expect("plain data");
    assert_as_promised(&printed(all.clone()));
    for mut warning in all.as_array().expect("a list").clone() {
        warning["further"] = 1.into();
        assert!(!is_as_promised(&printed(json!([warning.clone()]))), "{warning}");
    }
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let promised = schema["$defs"]["Warning"]["oneOf"].as_array().expect("kinds").iter();
    let promised = promised.filter_map(|kind| kind["properties"]["code"]["const"].as_str());
    let promised: BTreeSet<&str> = promised.collect();
    let raised = all.as_array().expect("a list").iter();
    let raised: BTreeSet<&str> = raised.filter_map(|w| w["code"].as_str()).collect();
    assert_eq!(promised, raised);
}

#[test]
fn every_doubt_has_its_row_in_the_documentation_with_whether_it_invalidates() {
    let rows: Vec<Vec<&str>> = METHODS
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    for warning in all() {
        let code = format!("`{}`", warning.code());
        let invalidates = if warning.invalidates() { "yes" } else { "no" };
        let found = rows.iter().any(|row| row[1].contains(&code) && row[2] == invalidates);
        assert!(found, "no row of {code} | {invalidates}");
    }
}
