// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes the command that measures in the rig what a probe measured on a machine.

use super::shell_word;
use crate::Error;
use experiment::Load;
use probes::{Key, Kind, PROBES, Plan};
use rig::Bench;
use rt::Policy;
use sample::Nanos;
use serde_json::Value;
use std::path::Path;

/// The policy of a measuring task without `--policy`.
const POLICY: Policy = Policy::Fifo(90);
/// The word for a kernel where the cache has none.
const KERNEL: &str = "KERNEL";

/// The command for a plan: with the last kernel of the cache, and without the CPUs of the machine. A guest has one.
///
/// # Errors
/// If the cache of kernels cannot be read.
pub fn command(bench: &Bench, plan: &Plan, load: &str) -> Result<String, Error> {
    let kernels = bench.cache().kernels()?.list()?;
    let kernel = kernels.last().map_or(KERNEL, |kernel| &kernel.name);
    Ok(of_plan(plan, kernel, load))
}

fn of_plan(plan: &Plan, kernel: &str, load: &str) -> String {
    let name = plan.probe.name();
    let fields = serde_json::to_value(&plan.probe).expect("plain data");
    let definition = PROBES.iter().find(|probe| probe.name == name).expect("a probe has one");
    let given = |key: &Key| option(key, &fields[name][key.field()]);
    let mut words = vec![format!("onset measure {name} --flavour {kernel}")];
    if load != Load::Idle.name() {
        words.push(format!("--load {load}"));
    }
    words.extend(definition.keys.iter().filter_map(given));
    if plan.policy != POLICY {
        words.push(format!("--policy {}", plan.policy));
    }
    if let Some(program) = &plan.program {
        words.push("--".into());
        words.extend(program.iter().map(|word| shell_word(Path::new(word))));
    }
    words.join(" ")
}

/// The option by which the key gets this value. `None` for the default, and for a text that names a part of the
/// machine.
fn option(key: &Key, value: &Value) -> Option<String> {
    if *value == key.default_value() {
        return None;
    }
    let time = |value: &Value| value.as_u64().map(|ns| probes::duration(Nanos(ns)));
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let list = |one: &dyn Fn(&Value) -> Option<String>| {
        let words: Option<Vec<String>> = value.as_array()?.iter().map(one).collect();
        words.map(|words| words.join(","))
    };
    let text = match key.kind {
        Kind::Count | Kind::Number(..) => value.as_u64()?.to_string(),
        Kind::Time(_) => time(value)?,
        Kind::Times(_) => list(&time)?,
        Kind::Word(_) => word(value)?,
        Kind::Words(_) => list(&word)?,
        Kind::Flag => return Some(format!("--{}", key.option().0)),
        Kind::Text(_) => return None,
    };
    Some(format!("--{} {text}", key.option().0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use probes::Probe;
    use probes::plan::{Cyclictest, Overrun, Periodic, SleepMethod};

    fn plan(probe: Probe) -> Plan {
        Plan { probe, policy: POLICY, cpus: vec![3], pm_qos: true, program: None }
    }

    #[test]
    fn the_command_has_what_differs_from_the_defaults_and_not_the_machines_cpus() {
        let methods = vec![SleepMethod::ClockNanosleep];
        let probe = Cyclictest { methods, period: Nanos::from_millis(1), count: 500 };
        let cyclictest = plan(Probe::Cyclictest(probe));
        let line = of_plan(&cyclictest, "6.12-rt", "disk");
        assert_eq!(line, "onset measure cyclictest --flavour 6.12-rt --load disk --count 500");
        let probe = Probe::Periodic(Periodic {
            methods: vec![SleepMethod::Nanosleep, SleepMethod::Timerfd],
            periods: vec![Nanos(250_000), Nanos::from_millis(2)],
            count: 10_000,
            overrun: Overrun::Skip,
            migrate: true,
            slack: Nanos(1),
        });
        let policy = Policy::RoundRobin(7);
        let program = Some(vec!["./my loop".into(), "--gain".into()]);
        let line = of_plan(&Plan { policy, program, ..plan(probe) }, "7.3", "idle");
        assert_eq!(
            line,
            "onset measure periodic --flavour 7.3 --method nanosleep,timerfd --period 250us,2ms --migrate --policy rr:7 -- './my loop' --gain"
        );
    }
}
