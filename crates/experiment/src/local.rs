// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs an experiment that was written for the rig on this machine: `--set target=local`.
//!
//! Keys of the file that are only for guests do not apply on this machine. They are removed, and the user is told. Keys
//! of the command line are kept, and are refused if they make no sense. A file that has `target = "local"` itself is
//! read as it is.

use super::document::{Table, Value};
use probes::PROBES;

/// Keys of the file's root that concern the rig alone.
const OF_THE_RIG: [&str; 5] = ["flavours", "guest", "trigger", "responders", "driver"];

/// Takes out of the document what the file says of the rig alone, where the command line made this machine the target.
/// Returns what that was, as dotted keys.
pub(super) fn leave_out(root: &mut Table) -> Vec<String> {
    let is_local = root.get("target").is_some_and(|entry| {
        !entry.node.at.is_in_file()
            && matches!(&entry.node.value, Value::Text(name) if name == "local")
    });
    if !is_local {
        return Vec::new();
    }
    let mut left_out = Vec::new();
    // Triggers alone have nothing that could take their place; that is an error like any other.
    let measures = PROBES.iter().any(|probe| root.get(probe.name).is_some());
    for key in OF_THE_RIG.iter().filter(|key| measures || **key != "trigger") {
        take(root, key, &mut left_out);
    }
    if let Some(toggle) = root.0.iter_mut().find(|e| e.key == "toggle")
        && let Value::Table(toggle) = &mut toggle.node.value
        && toggle.get("line").is_some_and(|e| is_port(&e.node.value))
    {
        let mut line = Vec::new();
        take(toggle, "line", &mut line);
        left_out.extend(line.iter().map(|key| format!("toggle.{key}")));
    }
    left_out
}

/// The rig's port, which sees edges from outside. On a machine there may be anything at that address.
fn is_port(value: &Value) -> bool {
    matches!(value, Value::Text(line) if line.starts_with("parport:"))
}

/// Removes `key` as far as the file says it: of a table what the command line set stays.
fn take(table: &mut Table, key: &str, left_out: &mut Vec<String>) {
    let Some(index) = table.0.iter().position(|e| e.key == key) else { return };
    let entry = &mut table.0[index];
    match &mut entry.node.value {
        Value::Table(inner) => {
            let of_file = inner.0.iter().filter(|e| e.node.at.is_in_file());
            left_out.extend(of_file.map(|e| format!("{key}.{}", e.key)));
            inner.0.retain(|e| !e.node.at.is_in_file());
            if inner.0.is_empty() {
                table.0.remove(index);
            }
        }
        _ if entry.node.at.is_in_file() => {
            left_out.push(key.into());
            table.0.remove(index);
        }
        _ => {}
    }
}
