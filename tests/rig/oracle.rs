// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces as others read them: Perfetto's by the schema that Perfetto publishes, value change dumps by sigrok, on which
//! PulseView is built.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbench::Finished;

/// Perfetto's schema as Python knows it.
const SCHEMA: &str = "perfetto==0.59.1";

/// A track of a Perfetto trace.
#[derive(Debug)]
pub struct Track {
    /// What fills it: from, to, name.
    pub slices: Vec<(u64, u64, String)>,
    /// What happens on it: at, name.
    pub instants: Vec<(u64, String)>,
}

/// The tracks of a Perfetto trace by name.
pub fn perfetto(trace: &Path) -> BTreeMap<String, Track> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rig/oracle/tracks.py");
    let printed = Finished::of(Command::new(python()).arg(script).arg(trace)).exits(0).json();
    let text = |v: &Value| v.as_str().expect("text").to_string();
    let number = |v: &Value| v.as_u64().expect("a number");
    let list = |v: &Value| v.as_array().expect("a list").clone();
    let track = |track: &Value| {
        let slices = list(&track["slices"]);
        let slices = slices.iter().map(|s| (number(&s[0]), number(&s[1]), text(&s[2])));
        let instants = list(&track["instants"]);
        let instants = instants.iter().map(|i| (number(&i[0]), text(&i[1])));
        Track { slices: slices.collect(), instants: instants.collect() }
    };
    list(&printed).iter().map(|t| (text(&t["name"]), track(t))).collect()
}

/// When each wire of a value change dump changes, in ns from its first time on: what sigrok writes again of what it has
/// read.
pub fn vcd(dump: &Path) -> BTreeMap<String, Vec<u64>> {
    let mut sigrok = Command::new("sigrok-cli");
    sigrok.args(["-I", "vcd", "-O", "vcd", "-i"]).arg(dump);
    let written = Finished::of(&mut sigrok).exits(0).stdout;
    assert!(written.contains("$timescale 1 ns $end"), "{written}");
    let (header, changes) = written.split_once("$enddefinitions $end").expect("a header");
    let wires = header.lines().filter_map(|line| line.strip_prefix("$var wire 1 "));
    let wire = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_string(), words.next()?.to_string()))
    };
    let names: BTreeMap<String, String> = wires.filter_map(wire).collect();
    let mut found: BTreeMap<String, Vec<u64>> =
        names.values().map(|name| (name.clone(), Vec::new())).collect();
    let mut at = 0;
    for word in changes.split_whitespace() {
        match word.strip_prefix('#') {
            Some(time) => at = time.parse().expect("a time"),
            // What is there at the first time is no change.
            None if at > 0 => {
                let name = &names[&word[1..]];
                found.get_mut(name).expect("a wire").push(at);
            }
            None => {}
        }
    }
    found
}

/// An interpreter that has the schema, in an environment of its own.
fn python() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = environment.join("bin/python3");
    let mut make = Command::new("/usr/bin/python3");
    Finished::of(make.args(["-m", "venv"]).arg(&environment)).exits(0);
    let mut install = Command::new(&python);
    Finished::of(install.args(["-m", "pip", "install", "--quiet", SCHEMA])).exits(0);
    python
}
