// SPDX-License-Identifier: GPL-2.0-or-later
//! `[task]` and the section of a probe: what the probe measures on the target itself.
//!
//! The definition of a probe says which keys it has, and which ranges. This module knows no single key.

use super::diagnostic::{Place, known_words};
use super::document::Entry;
use super::read::{Reader, Section};
use super::{COUNT_MAX, RUN_MAX};
use probes::{CPU_MAX, Definition, Key, Kind, Plan, Probe, TIME_MAX, Text};
use rt::Policy;
use sample::Nanos;
use serde_json::{Map, Value, json};

/// The shortest duration of a probe, which all its series share.
const WHOLE_MIN: Nanos = Nanos::from_millis(1);

/// Reads the plan from `[task]` and the probe's section; `None` when something about it was noted.
pub(super) fn read(
    reader: &mut Reader,
    task: &Section,
    section: &Section,
    probe: &Definition,
) -> Option<Plan> {
    let noted = reader.problems.len();
    let policy = task.entry("policy").map(|e| policy(reader, e));
    let cpus = task.entry("cpus").map_or(Some(vec![0]), |e| cpus(reader, e));
    let pm_qos = task.entry("pm_qos").map_or(Some(false), |e| reader.boolean(e));
    let probe = Keys { reader, section }.probe(probe);
    let policy = policy.unwrap_or_else(|| Some(probe.policy()));
    let plan = Plan { probe, policy: policy?, cpus: cpus?, pm_qos: pm_qos?, program: None };
    (reader.problems.len() == noted).then_some(plan)
}

fn policy(reader: &mut Reader, entry: &Entry) -> Option<Policy> {
    let (text, at) = reader.text(entry, "\"fifo:90\"")?;
    match text.parse() {
        Ok(policy) => Some(policy),
        Err(why) => {
            reader.note(at, format!("{text:?} is no scheduling policy"), format!("{why}"));
            None
        }
    }
}

/// A list of CPUs, without repetition, rising.
fn cpus(reader: &mut Reader, entry: &Entry) -> Option<Vec<u32>> {
    let mut cpus: Vec<u32> = reader
        .integers(entry, 0..=CPU_MAX.into(), "[0, 1]")?
        .into_iter()
        .map(|n| n as u32)
        .collect();
    let asked = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < asked {
        reader.note(&entry.node.at, "a CPU is in cpus twice", "name each once");
        return None;
    }
    Some(cpus)
}

/// The keys of a probe's section. What is faulty is noted and replaced by its default, so that all faults are
/// found; nothing is made of it.
struct Keys<'r, 'a> {
    reader: &'r mut Reader,
    section: &'r Section<'a>,
}

impl Keys<'_, '_> {
    fn probe(&mut self, definition: &Definition) -> Probe {
        let mut fields = definition.defaults();
        for key in definition.keys {
            let entry = self.section.entry(key.name);
            if let Some(value) = entry.and_then(|e| self.value(key, e)) {
                fields.insert(key.field(), value);
            }
        }
        let probe = made(definition, &fields);
        if let Some(unsound) = probe.unsound() {
            let at = self.section.entry(unsound.key).map_or(&self.section.at, |e| &e.node.at);
            self.reader.note(at, unsound.wrong, unsound.remedy);
        }
        let whole = if definition.is_counted() { self.whole() } else { None };
        whole.map_or(probe, |duration| {
            fields.insert("count".into(), json!(1));
            let count = duration / made(definition, &fields).duration().max(Nanos(1));
            fields.insert("count".into(), json!(count.clamp(1, COUNT_MAX)));
            made(definition, &fields)
        })
    }

    /// How long all series take together, where that is said instead of a count.
    fn whole(&mut self) -> Option<Nanos> {
        let entry = self.section.entry("duration")?;
        if self.section.entry("count").is_some() {
            let message = "both count and duration are set".to_owned();
            self.reader.note(&entry.node.at, message, "leave one of them out");
        }
        let (duration, at) = self.reader.duration(entry)?;
        if duration < WHOLE_MIN || duration > RUN_MAX {
            let help = format!("it is from {WHOLE_MIN} to {RUN_MAX}");
            self.reader.note(at, format!("duration cannot be {duration}"), help);
        }
        Some(duration)
    }

    /// The value as a plan has it.
    fn value(&mut self, key: &Key, entry: &Entry) -> Option<Value> {
        match &key.kind {
            Kind::Count => self.reader.integer(entry, 1..=COUNT_MAX).map(Value::from),
            Kind::Number(least, most) => {
                self.reader.integer(entry, (*least).into()..=(*most).into()).map(Value::from)
            }
            Kind::Time(least) => {
                let (duration, at) = self.reader.duration(entry)?;
                self.check_duration(key.name, duration, at, *least);
                Some(json!(duration))
            }
            Kind::Times(least) => self.durations(key.name, entry, *least),
            Kind::Word(words) => self.word(key.name, entry, words()),
            Kind::Words(words) => self.words(key.name, entry, words()),
            Kind::Flag => self.reader.boolean(entry).map(Value::from),
            Kind::Text(text) => self.text(entry, text),
        }
    }

    fn durations(&mut self, key: &str, entry: &Entry, least: Nanos) -> Option<Value> {
        let found = self.reader.durations(entry)?;
        for (i, (duration, at)) in found.iter().enumerate() {
            self.check_duration(key, *duration, at, least);
            if found[..i].iter().any(|(earlier, _)| earlier == duration) {
                let message = format!("{duration} is in {key} twice");
                self.reader.note(at, message, "leave one of them out");
            }
        }
        Some(found.into_iter().map(|(duration, _)| json!(duration)).collect())
    }

    fn check_duration(&mut self, key: &str, duration: Nanos, at: &Place, least: Nanos) {
        if duration < least || duration > TIME_MAX {
            let message = format!("{key} cannot be {duration}");
            self.reader.note(at, message, format!("it is from {least} to {TIME_MAX}"));
        }
    }

    fn word(&mut self, key: &str, entry: &Entry, words: &[&str]) -> Option<Value> {
        let (text, at) = self.reader.text(entry, &format!("{:?}", words[0]))?;
        if words.contains(&text) {
            return Some(json!(text));
        }
        let help = known_words(text, words.iter().copied());
        self.reader.note(at, format!("unknown {key} {text:?}"), help);
        None
    }

    fn words(&mut self, key: &str, entry: &Entry, words: &[&str]) -> Option<Value> {
        let convert = |text: &str| match words.contains(&text) {
            true => Ok(text.to_owned()),
            false => {
                let help = known_words(text, words.iter().copied());
                Err((format!("{text:?} is none of the {key}"), help))
            }
        };
        let found = self.reader.words(entry, &format!("[{:?}]", words[0]), convert)?;
        Some(found.into_iter().map(|(word, _)| word).collect())
    }

    fn text(&mut self, entry: &Entry, key: &Text) -> Option<Value> {
        let (text, at) = self.reader.text(entry, &format!("{:?}", key.example))?;
        let value = (key.read)(text);
        if value.is_none() {
            self.reader.note(at, format!("{text:?} is {}", key.wrong), key.help);
        }
        value
    }
}

/// The probe with these fields.
fn made(definition: &Definition, fields: &Map<String, Value>) -> Probe {
    let probe = json!({ definition.name: fields });
    serde_json::from_value(probe).expect("a definition's keys are what its probe is read from")
}
