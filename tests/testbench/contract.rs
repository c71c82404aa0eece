// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset COMMAND --json` promises to scripts: docs/COMMAND.schema.json.

use serde_json::Value;
use std::path::Path;

fn schema(command: &str) -> jsonschema::Validator {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let text = std::fs::read(docs.join(format!("{command}.schema.json")))
        .expect("the schema is part of the repository");
    let schema = serde_json::from_slice(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is one")
}

/// Whether the schema takes what `onset run` printed.
pub fn is_as_promised(printed: &Value) -> bool {
    schema("run").is_valid(printed)
}

/// Asserts that the schema takes what `onset run` printed; shows what it does not take, and where.
#[track_caller]
pub fn assert_as_promised(printed: &Value) {
    assert_as_promised_by("run", printed);
}

/// The same of another command.
#[track_caller]
pub fn assert_as_promised_by(command: &str, printed: &Value) {
    let errors: Vec<String> = schema(command)
        .iter_errors(printed)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{printed:#}");
}
