// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset run --json` promises to scripts: docs/run.schema.json.

use serde_json::Value;
use std::path::Path;

fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/run.schema.json");
    let text = std::fs::read(&path).expect("the schema is part of the repository");
    let schema = serde_json::from_slice(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

/// Whether the schema takes what was printed.
pub fn is_as_promised(printed: &Value) -> bool {
    schema().is_valid(printed)
}

/// Asserts that the schema takes what was printed; shows what it does not take, and where.
#[track_caller]
pub fn assert_as_promised(printed: &Value) {
    let errors: Vec<String> =
        schema().iter_errors(printed).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{printed:#}");
}
