// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure`: makes an experiment from the options, and runs it. The bundle keeps the experiment, so that the
//! user can run it again.

use crate::arguments::{Given, How, Measure};
use crate::failure::{Exit, Failure};
use experiment::Experiment;
use lab::Found;
use probes::PROBES;
use stats::{NotASubject, Subject};
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, Value, value};
use view::visible::tell;

pub fn run(probe: &Measure) -> Result<Exit, Failure> {
    let (text, how) = experiment(probe)?;
    // As an override, since no file may name a program that runs on this machine.
    let program = (!how.program.is_empty())
        .then(|| ("task.program".to_owned(), list(&how.program).to_string()));
    let experiment = Experiment::parse(Path::new("onset measure"), &text)?;
    let experiment = experiment.with_overrides(program.as_slice())?;
    if holds_awake(probe) && !how.pm_qos {
        tell!(
            "onset keeps the CPUs out of deep idle states while it measures; --no-pm-qos lets them enter these states"
        );
    }
    super::run::run_all(&[experiment], None, &Found::default(), &how.outcome)
}

/// The experiment's text.
fn experiment(probe: &Measure) -> Result<(String, &How), Failure> {
    let Measure { probe: name, keys, how } = probe;
    let mut root = DocumentMut::new();
    root["title"] = value(format!("measure {name}"));
    root["target"] = value(if how.flavours.is_empty() { "local" } else { "rig" });
    if !how.flavours.is_empty() {
        root["flavours"] = list(&how.flavours);
    }
    let loads = if how.loads.is_empty() { &["idle".to_owned()][..] } else { &how.loads };
    root["loads"] = list(loads);
    if let Some(warm_up) = &how.warm_up {
        root["warm_up"] = value(warm_up);
    }
    let mut load = Table::new();
    if how.load_on_measured_cpus {
        load["on_measured_cpus"] = value(true);
    }
    if let Some(disk) = &how.load_disk {
        let disk = std::path::absolute(disk).map_err(Failure::usage)?;
        load["disk"] = value(disk.to_string_lossy().into_owned());
    }
    if !load.is_empty() {
        root["load"] = Item::Table(load);
    }
    let mut task = Table::new();
    if let Some(policy) = &how.policy {
        task["policy"] = value(policy);
    }
    if let Some(cpus) = &how.cpus {
        task["cpus"] = value(cpu_list(cpus)?);
    }
    if how.pm_qos || holds_awake(probe) {
        task["pm_qos"] = value(true);
    }
    if !task.is_empty() {
        root["task"] = Item::Table(task);
    }
    let mut section = Table::from_iter(keys.iter().map(|(key, value)| (*key, given(value))));
    if let Some(duration) = &how.duration {
        section["duration"] = value(duration);
    }
    root[*name] = Item::Table(section);
    if !how.limits.is_empty() {
        root["limits"] = Item::Table(limits(&how.limits)?);
    }
    Ok((root.to_string(), how))
}

/// Whether onset keeps the CPUs out of deep idle states though the user did not ask for it. Whoever measures under a
/// real-time policy wants to learn about the kernel, as with cyclictest (rt-tests, `set_latency_target`). A guest of
/// the rig has no idle states.
fn holds_awake(Measure { probe, how, .. }: &Measure) -> bool {
    let is_real_time = match how.policy.as_deref() {
        Some(policy) => !policy.starts_with("other"),
        None => PROBES.iter().any(|known| known.name == *probe && known.is_real_time()),
    };
    is_real_time && !how.no_pm_qos && how.flavours.is_empty()
}

/// A value of the probe's section.
fn given(given: &Given) -> Item {
    match given {
        // TOML's integers are signed. A count beyond them would take longer than a clock can count.
        Given::Number(number) => value(i64::try_from(*number).unwrap_or(i64::MAX)),
        Given::One(text) => value(text),
        Given::Several(texts) => list(texts),
        Given::Set => value(true),
    }
}

fn list(texts: &[String]) -> Item {
    value(Array::from_iter(texts.iter().map(String::as_str)))
}

/// CPUs as the kernel writes them: `0-1,3`.
fn cpu_list(text: &str) -> Result<Array, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--cpus {text}: this is no list of CPUs; write it as the kernel does, for example 0-1,3"
        ))
    };
    let mut cpus = Array::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        (first..=last).for_each(|cpu| cpus.push(Value::from(i64::from(cpu))));
    }
    Ok(cpus)
}

/// `STATISTIC=TIME` holds for every series, `SERIES.STATISTIC=TIME` for one; so do limits on a deadline, as
/// `miss(100us)=0`. Names of series can have dots, and so can names of quantiles and deadlines.
pub(super) fn limits(texts: &[String]) -> Result<Table, Failure> {
    let mut limits = Table::new();
    for text in texts {
        let wrong = || {
            let how = "write STATISTIC=TIME, for example max=100us, or SERIES.STATISTIC=TIME; for a deadline \
                       'miss(100us)=0', 'miss(100us)=1 in 10000', 'consecutive(100us)=2' or 'firm(100us)=9 of 10'";
            Failure::usage(format!("--limit {text}: {how}"))
        };
        let (what, bound) = text.split_once('=').ok_or_else(wrong)?;
        // A deadline that is wrong is told of where the experiment is read.
        let known =
            |subject: &str| !matches!(subject.parse::<Subject>(), Err(NotASubject::Unknown));
        let (series, statistic) = if known(what) {
            ("all", what)
        } else {
            let dots = what.match_indices('.').map(|(at, _)| (&what[..at], &what[at + 1..]));
            dots.into_iter().find(|(_, statistic)| known(statistic)).ok_or_else(wrong)?
        };
        let scope = limits.entry(series).or_insert(Item::Table(Table::new()));
        scope[statistic] = value(bound);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;

    fn text(words: &str) -> Result<String, Failure> {
        let words = ["onset", "measure"].into_iter().chain(words.split_whitespace());
        let Command::Measure { probe } = Arguments::try_parse_from(words).unwrap().command else {
            panic!("not measure");
        };
        experiment(&probe).map(|(text, _)| text)
    }

    #[test]
    fn what_is_typed_becomes_an_experiment() {
        let text = text(
            "periodic --method timerfd,precise --period 1ms,3.25ms --count 5 --policy fifo:80 --cpus 0-1 \
             --load mixed --limit max=100us --limit timerfd-3.25ms.p99.9=50us --limit miss(1.5ms)=0",
        );
        let expected = "\
title = \"measure periodic\"
target = \"local\"
loads = [\"mixed\"]

[task]
policy = \"fifo:80\"
cpus = [0, 1]
pm_qos = true

[periodic]
methods = [\"timerfd\", \"precise\"]
periods = [\"1ms\", \"3.25ms\"]
count = 5

[limits]

[limits.all]
max = \"100us\"
\"miss(1.5ms)\" = \"0\"

[limits.\"timerfd-3.25ms\"]
\"p99.9\" = \"50us\"
";
        assert_eq!(text.unwrap(), expected);
    }

    #[test]
    fn a_flavour_takes_it_into_the_rig() {
        let words = ["onset", "measure", "gtod", "--flavour", "6.12 preempt=none"];
        let Command::Measure { probe } = Arguments::try_parse_from(words).unwrap().command else {
            panic!("not measure");
        };
        let (text, _) = experiment(&probe).unwrap();
        assert!(text.contains("target = \"rig\"\nflavours = [\"6.12 preempt=none\"]\n"), "{text}");
    }

    #[test]
    fn what_is_no_list_of_cpus_or_no_limit_is_refused_with_an_example() {
        for words in
            ["gtod --cpus 1-0", "gtod --cpus x", "gtod --limit 5us", "gtod --limit min=5us"]
        {
            let failure = text(words).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{words}");
            assert!(failure.message.contains("for example"), "{}", failure.message);
        }
    }
}
