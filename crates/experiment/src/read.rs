// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads typed values from the document, and collects all mistakes.
//!
//! A reader returns `None` both for an absent value and for a faulty one. It notes each fault, and a document with a
//! noted fault becomes no experiment. So callers may go on with a default to find further faults.

use super::diagnostic::{Place, Problem, known_words};
use super::document::{Entry, Node, Table, Value};
use super::paths::Paths;
use probes::{Definition, Kind, PROBES};
use sample::Nanos;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Every key that exists, by table, but those of probes; the keys of `limits` are names of responders and flavours and
/// are read in `limits.rs`.
const KEYS: [(&str, &[&str]); 6] = [
    (
        "",
        &[
            "title",
            "paper",
            "target",
            "seed",
            "repeats",
            "flavours",
            "loads",
            "warm_up",
            "responders",
            "trigger",
            "driver",
            "guest",
            "limits",
            "task",
            "load",
        ],
    ),
    (
        "trigger",
        &[
            "period",
            "jitter",
            "phase",
            "count",
            "arrivals",
            "burst",
            "apart",
            "times",
            "duty",
            "grace",
            "disturbances",
        ],
    ),
    ("driver", &["threaded", "wiring"]),
    ("load", &["on_measured_cpus", "disk"]),
    ("task", &["policy", "cpus", "pm_qos", "program"]),
    (
        "guest",
        &["memory", "shift", "seed", "modules", "programs", "files", "witness", "begin_after"],
    ),
];

/// The sections with their keys. Those of probes, and the names of their sections, are from their definitions; a count
/// can be said as a duration.
pub(super) fn keys() -> Vec<(&'static str, Vec<&'static str>)> {
    let of = |probe: &Definition| {
        let names = probe.keys.iter().flat_map(|key| match key.kind {
            Kind::Count => vec![key.name, "duration"],
            _ => vec![key.name],
        });
        (probe.name, names.collect())
    };
    let mut all: Vec<_> = KEYS.map(|(section, keys)| (section, keys.to_vec())).into();
    all[0].1.extend(PROBES.map(|probe| probe.name));
    let guest = all.len() - 1;
    all.splice(guest..guest, PROBES.map(of));
    all
}

/// A value and where it stands.
pub(super) type Found<'a, T> = (T, &'a Place);

/// A table of the document by name; `""` is the top level.
pub(super) struct Section<'a> {
    pub name: &'static str,
    table: Option<&'a Table>,
    /// The table's header; where the table is absent, the file.
    pub at: Place,
}

impl<'a> Section<'a> {
    /// The entry `key`, if it is there.
    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table?.get(key)
    }

    fn title(&self) -> String {
        match self.name {
            "" => "at the top level".into(),
            name => format!("in [{name}]"),
        }
    }
}

/// Collects the problems.
#[derive(Default)]
pub(super) struct Reader {
    pub problems: Vec<Problem>,
}

impl Reader {
    pub fn note(&mut self, at: &Place, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), Some(help.into()));
        self.problems.push(Problem { at: at.clone(), message, help });
    }

    /// The top level, with its unknown keys noted.
    pub fn root<'a>(&mut self, table: &'a Table) -> Section<'a> {
        let at = Place::new(0, None);
        self.check_keys("", table);
        Section { name: "", table: Some(table), at }
    }

    /// The table `name`, with its unknown keys noted.
    pub fn section<'a>(&mut self, root: &Section<'a>, name: &'static str) -> Section<'a> {
        let Some(entry) = root.table.and_then(|t| t.get(name)) else {
            return Section { name, table: None, at: Place::new(0, None) };
        };
        let table = self.table(entry);
        if let Some(table) = table {
            self.check_keys(name, table);
        }
        Section { name, table, at: entry.key_at.clone() }
    }

    fn check_keys(&mut self, name: &str, table: &Table) {
        let keys = keys();
        let known = keys.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, keys)| keys);
        let place =
            if name.is_empty() { "at the top level".into() } else { format!("in [{name}]") };
        for entry in table.0.iter().filter(|e| !known.contains(&e.key.as_str())) {
            let key = &entry.key;
            let elsewhere =
                keys.iter().find(|(n, keys)| *n != name && keys.contains(&key.as_str()));
            let help = match elsewhere {
                Some(("", _)) => format!("{key} belongs at the top level, above the first [table]"),
                Some((section, _)) => format!("{key} belongs in [{section}]"),
                None => known_words(key, known.iter().copied()),
            };
            self.note(&entry.key_at, format!("unknown key {key:?} {place}"), help);
        }
    }

    /// The entry `key`, noted if it is not there.
    pub fn required<'a>(
        &mut self,
        section: &Section<'a>,
        key: &str,
        example: &str,
    ) -> Option<&'a Entry> {
        let entry = section.entry(key);
        // A section that is no table has been noted as such.
        if entry.is_none() && (section.table.is_some() || section.at.span.is_none()) {
            let message = format!("{key} is missing {}", section.title());
            self.note(&section.at, message, format!("write for example {key} = {example}"));
        }
        entry
    }

    fn mismatch(&mut self, key: &str, node: &Node, expected: &str, example: &str) {
        let message = format!("{key} has to be {expected}, not {}", node.value.kind());
        self.note(&node.at, message, format!("write for example {key} = {example}"));
    }

    pub fn table<'a>(&mut self, entry: &'a Entry) -> Option<&'a Table> {
        let Value::Table(table) = &entry.node.value else {
            let key = &entry.key;
            let message = format!("{key} has to be a table, not {}", entry.node.value.kind());
            self.note(&entry.node.at, message, format!("write [{key}] and its keys below"));
            return None;
        };
        Some(table)
    }

    pub fn text<'a>(&mut self, entry: &'a Entry, example: &str) -> Option<Found<'a, &'a str>> {
        let Value::Text(text) = &entry.node.value else {
            self.mismatch(&entry.key, &entry.node, "a text in quotes", example);
            return None;
        };
        Some((text, &entry.node.at))
    }

    pub fn boolean(&mut self, entry: &Entry) -> Option<bool> {
        let Value::Boolean(value) = entry.node.value else {
            self.mismatch(&entry.key, &entry.node, "true or false", "true");
            return None;
        };
        Some(value)
    }

    pub fn integer(&mut self, entry: &Entry, range: RangeInclusive<u64>) -> Option<u64> {
        let Value::Integer(n) = entry.node.value else {
            let example = range.start().to_string();
            self.mismatch(&entry.key, &entry.node, "a whole number", &example);
            return None;
        };
        let value = u64::try_from(n).ok().filter(|n| range.contains(n));
        if value.is_none() {
            let message = format!("{} cannot be {n}", entry.key);
            let help = match (range.start(), range.end()) {
                (low, &u64::MAX) => format!("it is a whole number of at least {low}"),
                (low, high) => format!("it is a whole number from {low} to {high}"),
            };
            self.note(&entry.node.at, message, help);
        }
        value
    }

    /// A number strictly between 0 and 1.
    pub fn share(&mut self, entry: &Entry) -> Option<f64> {
        let value = match entry.node.value {
            Value::Float(value) => value,
            Value::Integer(n) => n as f64,
            _ => {
                self.mismatch(&entry.key, &entry.node, "a number between 0 and 1", "0.5");
                return None;
            }
        };
        if value > 0.0 && value < 1.0 {
            return Some(value);
        }
        let message = format!("{} cannot be {value}", entry.key);
        self.note(&entry.node.at, message, "it is a share above 0 and below 1, as 0.5");
        None
    }

    pub fn duration<'a>(&mut self, entry: &'a Entry) -> Option<Found<'a, Nanos>> {
        self.duration_at(&entry.key, &entry.node)
    }

    fn duration_at<'a>(&mut self, key: &str, node: &'a Node) -> Option<Found<'a, Nanos>> {
        let Value::Text(text) = &node.value else {
            self.mismatch(key, node, "a duration in quotes, with its unit", "\"1ms\"");
            return None;
        };
        match text.parse() {
            Ok(duration) => Some((duration, &node.at)),
            Err(why) => {
                self.note(&node.at, format!("{key}: {text:?} is no duration"), why.to_string());
                None
            }
        }
    }

    /// A duration of at least `least`.
    pub fn duration_from<'a>(
        &mut self,
        entry: &'a Entry,
        least: Nanos,
        why: &str,
    ) -> Option<Found<'a, Nanos>> {
        let (duration, at) = self.duration(entry)?;
        if duration >= least {
            return Some((duration, at));
        }
        let message = format!("{} of {duration} is below {least}", entry.key);
        self.note(at, message, why);
        None
    }

    fn list<'a>(&mut self, entry: &'a Entry, example: &str) -> Option<&'a [Node]> {
        let Value::List(list) = &entry.node.value else {
            self.mismatch(&entry.key, &entry.node, "a list", example);
            return None;
        };
        if list.is_empty() {
            let message = format!("{} is an empty list", entry.key);
            self.note(&entry.node.at, message, "name at least one, or leave the key out");
            return None;
        }
        Some(list)
    }

    /// A list of whole numbers.
    pub fn integers(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<u64>,
        example: &str,
    ) -> Option<Vec<u64>> {
        let list = self.list(entry, example)?;
        let (low, high) = (range.start(), range.end());
        let read: Vec<_> = list
            .iter()
            .map(|node| {
                let Value::Integer(n) = node.value else {
                    self.mismatch(&entry.key, node, "a list of whole numbers", example);
                    return None;
                };
                let value = u64::try_from(n).ok().filter(|n| range.contains(n));
                if value.is_none() {
                    let message = format!("{} cannot hold {n}", entry.key);
                    self.note(&node.at, message, format!("it takes numbers from {low} to {high}"));
                }
                value
            })
            .collect();
        read.into_iter().collect()
    }

    pub fn durations<'a>(&mut self, entry: &'a Entry) -> Option<Vec<Found<'a, Nanos>>> {
        let list = self.list(entry, "[\"1ms\", \"2.5ms\"]")?;
        // The whole list, also after a fault: all faults are noted.
        let read: Vec<_> = list.iter().map(|node| self.duration_at(&entry.key, node)).collect();
        read.into_iter().collect()
    }

    /// A list of texts, each converted; what `convert` refuses (message and help), and what is there
    /// twice, is noted.
    pub fn words<'a, T: Ord + Clone>(
        &mut self,
        entry: &'a Entry,
        example: &str,
        convert: impl Fn(&str) -> Result<T, (String, String)>,
    ) -> Option<Vec<Found<'a, T>>> {
        let list = self.list(entry, example)?;
        let noted = self.problems.len();
        let (mut words, mut seen) = (Vec::new(), BTreeSet::new());
        for node in list {
            let Value::Text(text) = &node.value else {
                let of = format!("a list of texts; this one is {}", node.value.kind());
                self.note(&node.at, format!("{} has to be {of}", entry.key), "put it in quotes");
                continue;
            };
            match convert(text) {
                Err((message, help)) => self.note(&node.at, message, help),
                Ok(word) if !seen.insert(word.clone()) => {
                    let message = format!("{text:?} is in {} twice", entry.key);
                    self.note(&node.at, message, "leave one of them out");
                }
                Ok(word) => words.push((word, &node.at)),
            }
        }
        (self.problems.len() == noted).then_some(words)
    }

    /// A list of the host's paths; relative ones begin where `paths` says.
    pub fn paths(&mut self, entry: &Entry, paths: &Paths, example: &str) -> Vec<PathBuf> {
        let convert = |text: &str| match text {
            "" => Err(("a path cannot be empty".into(), "name a file".into())),
            text if text.contains('\0') => {
                Err((format!("{text:?} is no path"), "leave the NUL character out".into()))
            }
            text => Ok(paths.whole(text)),
        };
        let found = self.words(entry, example, convert).unwrap_or_default();
        found.into_iter().map(|(path, _)| path).collect()
    }
}
