// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of the schema of a [`Warning`](super::Warning) that its type does not have: the texts, which follow from
//! the other fields, and the ranges of the fields.

use probes::CPU_MAX;
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

/// Turns the schema of the enum into the schema of what is written: all kinds side by side, with those of probes and of
/// the machine, and each with the texts.
pub(super) fn complete(schema: &mut Schema) {
    let mut kinds = Vec::new();
    flatten(&schema.clone().to_value(), &mut kinds);
    for kind in &mut kinds {
        // The texts stand beside a kind's fields, so the kind alone is no whole object.
        kind.as_object_mut().expect("a kind is an object").remove("type");
        let fields = kind.get_mut("properties").and_then(Value::as_object_mut);
        let fields = fields.expect("a kind has its code");
        let code = fields["code"]["const"].clone();
        fields.iter_mut().for_each(|(name, field)| narrow(&code, name, field));
    }
    let text = |what: &str| json!({ "type": "string", "description": what });
    *schema = json_schema!({
        "description": "A warning: a doubt about the run. `code` names its kind, which decides the further keys. A warning that invalidates makes the \
                        verdict `invalid`.",
        "type": "object",
        "properties": {
            "code": text("The kind of the warning."),
            "symptom": text("What onset saw, with numbers; for people."),
            "cause": text("The probable cause; for people."),
            "action": text("What to do next; for people."),
        },
        "required": ["code", "symptom", "cause", "action"],
        "oneOf": kinds,
        "unevaluatedProperties": false,
    });
}

/// Collects the kinds of an enum, and of the enums that are kinds of it.
fn flatten(of: &Value, kinds: &mut Vec<Value>) {
    let lists = ["oneOf", "anyOf"].map(|key| of.get(key).and_then(Value::as_array));
    match lists.into_iter().flatten().collect::<Vec<_>>()[..] {
        [] => kinds.push(of.clone()),
        ref lists => lists.iter().flat_map(|list| list.iter()).for_each(|of| flatten(of, kinds)),
    }
}

/// Adds the facts that a field's type does not say.
fn narrow(code: &Value, name: &str, field: &mut Value) {
    let more = match name {
        "count" if code == "maximum_of_few" => json!({ "minimum": 1 }),
        "records" | "triggers" | "edges" | "periods" | "faults" | "period_ns" | "stolen_ns" => {
            json!({ "minimum": 1 })
        }
        "words" | "irqs" | "options" | "tasks" => json!({ "minItems": 1 }),
        "cpu" | "sibling" => json!({ "maximum": CPU_MAX }),
        "cpus" | "isolated" => json!({
            "items": { "type": "integer", "minimum": 0, "maximum": CPU_MAX }, "minItems": 1, "uniqueItems": true,
        }),
        "quantile" => json!({ "enum": stats::Quantile::ALL.map(stats::Quantile::name) }),
        "series" => json!({ "$ref": "#/$defs/SeriesName" }),
        _ => return,
    };
    let more: Map<String, Value> = serde_json::from_value(more).expect("an object");
    field.as_object_mut().expect("a field is an object").extend(more);
}
