// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure`: makes an experiment of the options, and runs it. The experiment is kept in the bundle, so that what
//! was typed can be run again.

use crate::arguments::{How, Measure};
use crate::experiment::Experiment;
use crate::failure::{Exit, Failure};
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, Value, value};

pub fn run(probe: &Measure) -> Result<Exit, Failure> {
    let (text, how) = experiment(probe)?;
    let experiment = Experiment::parse(Path::new("onset measure"), &text)?;
    super::run::run_all(&[experiment], None, &how.outcome)
}

/// The experiment's text.
fn experiment(probe: &Measure) -> Result<(String, &How), Failure> {
    let (name, keys, how) = section(probe);
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
    if how.pm_qos {
        task["pm_qos"] = value(true);
    }
    if !task.is_empty() {
        root["task"] = Item::Table(task);
    }
    root[name] = Item::Table(Table::from_iter(keys));
    if !how.limits.is_empty() {
        root["limits"] = Item::Table(limits(&how.limits)?);
    }
    Ok((root.to_string(), how))
}

type Key = (&'static str, Item);

/// The probe's section: its name and the keys that were given.
fn section(probe: &Measure) -> (&'static str, Vec<Key>, &How) {
    let mut keys = Keys(Vec::new());
    match probe {
        Measure::Periodic { methods, periods, count, overrun, migrate, how } => {
            keys.list("methods", methods).list("periods", periods).count(*count);
            keys.text("overrun", overrun).flag("migrate", *migrate);
            ("periodic", keys.0, how)
        }
        Measure::Gtod { clocks, count, how } => {
            keys.list("clocks", clocks).count(*count);
            ("gtod", keys.0, how)
        }
        Measure::Async { mechanisms, placements, period, count, how } => {
            keys.list("mechanisms", mechanisms).list("placements", placements);
            keys.text("period", period).count(*count);
            ("async", keys.0, how)
        }
        Measure::Rhealstone { components, interfaces, count, how } => {
            keys.list("components", components).list("interfaces", interfaces).count(*count);
            ("rhealstone", keys.0, how)
        }
        Measure::Rtc { rate_hz, count, timerfd, how } => {
            keys.number("rate_hz", *rate_hz).count(*count).flag("timerfd", *timerfd);
            ("rtc", keys.0, how)
        }
        Measure::Noise { duration, threshold, how } => {
            keys.text("duration", duration).text("threshold", threshold);
            ("noise", keys.0, how)
        }
        Measure::Toggle { period, width, count, method, line, how } => {
            keys.text("period", period).text("width", width).count(*count);
            keys.text("method", method).text("line", line);
            ("toggle", keys.0, how)
        }
        Measure::Inversion { middle, held, count, how } => {
            keys.list("middle", middle).text("held", held).count(*count);
            ("inversion", keys.0, how)
        }
        Measure::Ladder { period, count, how } => {
            keys.text("period", period).count(*count);
            ("ladder", keys.0, how)
        }
        Measure::Cyclictest { methods, period, count, how } => {
            keys.list("methods", methods).text("period", period).count(*count);
            ("cyclictest", keys.0, how)
        }
    }
}

struct Keys(Vec<Key>);

impl Keys {
    fn list(&mut self, key: &'static str, texts: &[String]) -> &mut Self {
        if !texts.is_empty() {
            self.0.push((key, list(texts)));
        }
        self
    }

    fn text(&mut self, key: &'static str, text: &Option<String>) -> &mut Self {
        self.0.extend(text.as_ref().map(|text| (key, value(text))));
        self
    }

    fn number(&mut self, key: &'static str, number: Option<u64>) -> &mut Self {
        // TOML's integers are signed; a count beyond them would take longer than a clock can tell.
        let number = number.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        self.0.extend(number.map(|n| (key, value(n))));
        self
    }

    fn count(&mut self, count: Option<u64>) -> &mut Self {
        self.number("count", count)
    }

    fn flag(&mut self, key: &'static str, set: bool) -> &mut Self {
        self.0.extend(set.then(|| (key, value(true))));
        self
    }
}

fn list(texts: &[String]) -> Item {
    value(Array::from_iter(texts.iter().map(String::as_str)))
}

/// CPUs as the kernel writes them: `0-1,3`.
fn cpu_list(text: &str) -> Result<Array, Failure> {
    let wrong =
        || Failure::usage(format!("--cpus {text}: write CPUs as the kernel does, as in 0-1,3"));
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

/// `STATISTIC=TIME` holds for every series, `SERIES.STATISTIC=TIME` for one. Names of series hold dots, and so do
/// those of quantiles.
fn limits(texts: &[String]) -> Result<Table, Failure> {
    let mut limits = Table::new();
    for text in texts {
        let wrong = || {
            let how = "write STATISTIC=TIME, as in max=100us, or SERIES.STATISTIC=TIME";
            Failure::usage(format!("--limit {text}: {how}"))
        };
        let (what, bound) = text.split_once('=').ok_or_else(wrong)?;
        let known = |statistic: &str| statistic.parse::<stats::Statistic>().is_ok();
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
             --load mixed --limit max=100us --limit timerfd-3.25ms.p99.9=50us",
        );
        let expected = "\
title = \"measure periodic\"
target = \"local\"
loads = [\"mixed\"]

[task]
policy = \"fifo:80\"
cpus = [0, 1]

[periodic]
methods = [\"timerfd\", \"precise\"]
periods = [\"1ms\", \"3.25ms\"]
count = 5

[limits]

[limits.all]
max = \"100us\"

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
            assert!(failure.message.contains("as in"), "{}", failure.message);
        }
    }
}
