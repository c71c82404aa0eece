// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset run --json` prints is what docs/run.schema.json promises to scripts.

use crate::modules::module;
use lab::{Lab, experiment, have_kernels};
use serde_json::Value;
use std::path::Path;

fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/run.schema.json");
    let text = std::fs::read(&path).expect("the schema is part of the repository");
    let schema = serde_json::from_slice(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

#[track_caller]
fn assert_valid(printed: &Value) {
    let errors: Vec<String> =
        schema().iter_errors(printed).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{printed:#}");
}

#[test]
fn the_json_of_a_run_is_as_the_schema_says() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let limits = "[limits]\nhardirq.max = \"50us\"\ntask.\"p99.9\" = \"1ms\"";
    let text = experiment(&["6.12 preempt=none"], &["idle"], 50, limits);
    let printed = lab.run(&text, &[]).exits(3).json();
    assert_eq!(printed["runs"][0]["findings"].as_array().map(Vec::len), Some(2));
    assert_eq!(printed["runs"][0]["warnings"][0]["code"], "too_few_samples");
    assert_valid(&printed);

    let mut altered = printed;
    altered["runs"][0]["speed"] = 1.into();
    assert!(!schema().is_valid(&altered), "the schema takes anything");
}

#[test]
fn the_json_of_an_unsound_run_is_as_the_schema_says() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    for name in ["test_panic", "test_deaf"] {
        let more = format!("guest.modules = [{:?}]", module(name));
        let text = experiment(&["6.12 preempt=none"], &["idle"], 800, &more);
        let printed = lab.run(&text, &[]).exits(3).json();
        assert_ne!(printed["runs"][0]["warnings"], Value::Array(Vec::new()));
        assert_valid(&printed);
    }
}
