// SPDX-License-Identifier: GPL-2.0-or-later
//! The formats of the output as JSON Schemas, generated from the types that the commands print: docs/*.schema.json. The
//! viewer's web/src/contract.ts is generated from the schema of the report. `make contract` writes all of them.

use crate::report::Report;
use crate::results::*;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The part of the description that all formats share.
const COMMON: &str = "The end of a key names the unit of its time. Integers may exceed 2^53: read them as 64-bit \
 integers. Nothing of this file changes within a schema number; a new key means a new number.";

/// Every schema, by the name of its file in docs/.
pub fn files() -> Vec<(String, String)> {
    let virtual_time = "All times are virtual.";
    let even_so = |when: &str| format!("The command prints it also when {when}. {virtual_time}");
    let run = "The command prints it also when it then exits with another status than 0. A command that ends before \
               any run begins (wrong usage, a wrong experiment, no kernel) prints nothing.";
    let report = "What `onset report` writes into its page for the viewer. The viewer draws it, and computes no statistics.";
    vec![
        printed::<Atlas>(
            "atlas",
            Atlas::SCHEMA,
            &format!("`atlas.json` in the atlas's directory holds the same. {virtual_time}"),
        ),
        printed::<Blame>("blame", Blame::SCHEMA, virtual_time),
        printed::<Bound>(
            "bound",
            Bound::SCHEMA,
            &even_so("an answer exceeds the bound and the command therefore exits with 1"),
        ),
        printed::<Census>("census", Census::SCHEMA, virtual_time),
        printed::<Compare>("compare", Compare::SCHEMA, ""),
        printed::<Doctor>("doctor", Doctor::SCHEMA, ""),
        printed::<Explain>("explain", Explain::SCHEMA, virtual_time),
        file::<ExplainCosts>(
            "explain-costs",
            ExplainCosts::SCHEMA,
            "Output of `onset explain --json` for a run of the probe cost",
            "What `onset explain --json` prints on stdout for a run of the probe cost: one object.",
        ),
        file::<History>(
            "history",
            History::SCHEMA,
            "Runs of an experiment over time",
            "What `onset serve` answers at `/api/history`.",
        ),
        printed::<Hunt>(
            "hunt",
            Hunt::SCHEMA,
            &format!("`hunt.json` in the hunt's directory holds the same. {virtual_time}"),
        ),
        printed::<Kernels>("kernels list", Kernels::SCHEMA, ""),
        printed::<Available>("kernels list --available", Kernels::SCHEMA, ""),
        printed::<List>("list", List::SCHEMA, ""),
        printed::<Live>("live", Live::SCHEMA, ""),
        printed::<Minimised>(
            "minimise",
            Minimised::SCHEMA,
            &even_so("the user asked to stop and the command therefore exits with 130"),
        ),
        printed::<PatchProof>("patch prove", PatchProof::SCHEMA, virtual_time),
        file::<Proof>(
            "prove",
            Proof::SCHEMA,
            "Output of `onset tune prove --json`",
            "What `onset tune prove --json` prints on stdout: one object.",
        ),
        printed::<Replay>(
            "replay",
            Replay::SCHEMA,
            &even_so(
                "the latency differs from the recorded one and the command therefore exits with 1",
            ),
        ),
        printed::<Runs>("run", Runs::SCHEMA, run),
        printed::<Tune>("tune", Tune::SCHEMA, ""),
        printed::<Windows>("windows", Windows::SCHEMA, virtual_time),
        file::<Report>("report", Report::SCHEMA, "Numbers of a report", report),
    ]
}

/// The schema of the output of a command.
fn printed<T: JsonSchema>(command: &str, number: u32, more: &str) -> (String, String) {
    let name = command.replace(" list", "").replace(" prove", "").replace(" --", "-");
    let title = format!("Output of `onset {command} --json`");
    let about = format!("What `onset {command} --json` prints on stdout: one object. {more}");
    file::<T>(&name, number, &title, about.trim_end())
}

fn file<T: JsonSchema>(name: &str, number: u32, title: &str, about: &str) -> (String, String) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(settle));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if let Some(own) = schema.pointer_mut("/properties/schema") {
        *own = json!({ "description": "Number of this format.", "const": number });
    }
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:onset:{name}:{number}"),
        "$comment": "SPDX-License-Identifier: GPL-2.0-or-later. @generated by `make contract`",
        "title": format!("{title}, schema {number}"),
        "description": format!("{about} {COMMON}"),
    });
    let object = whole.as_object_mut().expect("an object");
    for (key, value) in schema.as_object().expect("a struct's schema") {
        object.entry(key).or_insert(value.clone());
    }
    let text = serde_json::to_string_pretty(&whole).expect("plain data") + "\n";
    (format!("{name}.schema.json"), text)
}

/// Makes a schema describe exactly what onset writes: no further keys, and whole ranges. Also makes its descriptions
/// readable outside of the sources.
fn settle(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let is = |key: &str| object.contains_key(key);
    let closed = is("additionalProperties") || is("unevaluatedProperties");
    if object.get("type") == Some(&json!("object")) && is("properties") && !closed {
        object.insert("additionalProperties".into(), false.into());
    }
    write_no_null(object);
    // The output has every key. The words of an enum are in `oneOf`, each with its meaning.
    object.shift_remove("default");
    if object.contains_key("oneOf") {
        object.shift_remove("enum");
    }
    // Validators need not know `format`, so the ranges are written out.
    let range = match object.shift_remove("format").as_ref().and_then(Value::as_str) {
        Some("uint64" | "uint") => Some((0, u64::MAX)),
        Some("uint32") => Some((0, u64::from(u32::MAX))),
        Some("int64") => Some((i64::MIN, i64::MAX as u64)),
        _ => None,
    };
    if let Some((least, most)) = range {
        object.entry("minimum").or_insert(least.into());
        object.entry("maximum").or_insert(most.into());
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = prose(text);
    }
}

/// A key that may be absent is never null.
fn write_no_null(object: &mut Map<String, Value>) {
    let null = json!({ "type": "null" });
    let required = object.get("required").cloned().unwrap_or_default();
    let required = required.as_array().map_or(&[][..], Vec::as_slice);
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(&json!(name)))
    {
        let Some(property) = property.as_object_mut() else { continue };
        if let Some(Value::Array(types)) = property.get("type")
            && let [kind, _] = &types[..]
        {
            property.insert("type".into(), kind.clone());
        } else if let Some(Value::Array(kinds)) = property.get("anyOf")
            && let [Value::Object(kind), other] = &kinds[..]
            && *other == null
        {
            let kind = kind.clone();
            property.shift_remove("anyOf");
            property.extend(kind);
        }
    }
}

/// A documentation comment as the file shows it to a reader: without links, and one line for each paragraph.
fn prose(text: &str) -> String {
    let text = text.replace("[`", "`").replace("`]", "`");
    text.split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
