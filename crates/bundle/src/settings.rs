// SPDX-License-Identifier: GPL-2.0-or-later
//! In which settings two runs differ that are compared, besides kernel, load and seed, which everybody sees. Who
//! compares numbers has to know: another period, another policy or another machine makes other numbers by itself.

use crate::Manifest;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many values of a list are shown.
const SHOWN: usize = 16;

/// A setting that two runs do not have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherSetting {
    /// Its place in the manifest, below `about`: `experiment.probe.policy`.
    pub setting: String,
    /// Its value in the earlier run, as JSON; null if it has none. A long list is its length and its hash.
    pub before: Value,
    /// Its value in the later run.
    pub after: Value,
}

/// The settings of the experiment and of the machine in which the runs differ, by their names.
pub fn differing(before: &Manifest, after: &Manifest) -> Vec<OtherSetting> {
    let [mut before, mut after] = [before, after].map(settings);
    let names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    let mut differing: Vec<OtherSetting> = Vec::new();
    for setting in names {
        let (then, now) = (before.remove(&setting), after.remove(&setting));
        if then != now {
            let [before, after] = [then, now].map(|value| short(value.unwrap_or_default()));
            differing.push(OtherSetting { setting, before, after });
        }
    }
    differing.sort_by(|a, b| a.setting.cmp(&b.setting));
    differing
}

/// How long an instruction takes in virtual time, in ns: 2^shift. `None` where time is no count of instructions.
pub fn ns_per_insn(manifest: &Manifest) -> Option<u64> {
    let shift = manifest.about.machine.as_ref()?.icount_shift?;
    Some(1 << shift.min(63))
}

/// What decides about numbers, by its place below `about`.
fn settings(manifest: &Manifest) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let about = &manifest.about;
    let mut add = |place: &str, value: Value| leaves(place.to_owned(), value, &mut all);
    add("target", about.target.clone().into());
    add("experiment.warm_up_ns", about.experiment.warm_up.0.into());
    add("experiment.trigger", json(&about.experiment.trigger));
    add("experiment.probe", json(&about.experiment.probe));
    if let Some(machine) = &about.machine {
        add("machine.accelerator", machine.accelerator.clone().into());
        add("machine.cpu", machine.cpu.clone().into());
        add("machine.memory_mib", machine.memory_mib.into());
    }
    all
}

/// A list that nobody would read as the number of its values, and the beginning of a hash by which two are told apart.
fn short(value: Value) -> Value {
    match value {
        Value::Array(list) if list.len() > SHOWN => {
            let count = list.len();
            let hash = blake3::hash(Value::Array(list).to_string().as_bytes()).to_hex();
            format!("{count} values ({}…)", &hash[..8]).into()
        }
        value => value,
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The values in a value, by their places. A list is one value.
fn leaves(place: String, value: Value, all: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            map.into_iter().for_each(|(key, value)| leaves(format!("{place}.{key}"), value, all));
        }
        // What is not there has no value, and is named by its parts if the other run has it.
        Value::Null => {}
        value => drop(all.insert(place, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::manifest_of;
    use sample::Nanos;

    #[test]
    fn what_differs_is_named_with_both_values_and_a_kernel_is_no_setting() {
        let one = manifest_of("6.1", &["task"]);
        let mut other = manifest_of("6.12", &["task"]);
        assert_eq!(differing(&one, &other), []);
        other.about.target = "another".into();
        other.about.experiment.warm_up = one.about.experiment.warm_up + Nanos(5);
        let names = |all: &[OtherSetting]| {
            all.iter().map(|one| one.setting.clone()).collect::<Vec<_>>().join(" ")
        };
        let differ = differing(&one, &other);
        assert_eq!(names(&differ), "experiment.warm_up_ns target");
        assert_eq!(differ[1].after, "another");
        other.about.experiment.trigger = None;
        let named = names(&differing(&one, &other));
        assert!(named.contains("experiment.trigger.") && !named.contains("trigger "), "{named}");
        assert_eq!(short(vec![1, 2].into()), Value::from(vec![1, 2]));
        let [long, other] = [vec![1; 100], vec![2; 100]].map(|list| short(list.into()));
        assert!(long != other && long.to_string().contains("100 values"), "{long} {other}");
    }

    #[test]
    fn an_instruction_takes_a_power_of_two() {
        let mut run = manifest_of("6.1", &["task"]);
        if let Some(machine) = &mut run.about.machine {
            machine.icount_shift = Some(3);
            assert_eq!(ns_per_insn(&run), Some(8));
        }
        run.about.machine = None;
        assert_eq!(ns_per_insn(&run), None);
    }
}
