// SPDX-License-Identifier: GPL-2.0-or-later
//! What a knob is on a machine now. Reads only.

use crate::boot::Parameters;
use crate::{Cpus, Knob, KnobKind, Spot, System, card};

/// A knob on a machine.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// The knob.
    pub knob: &'static Knob,
    /// The value that onset proposes on this machine, if it proposes one.
    pub proposed: Option<String>,
    /// What it is now.
    pub state: State,
}

/// What a knob is now.
#[derive(Clone, Debug)]
pub enum State {
    /// Its places, with their texts. A boot parameter has none.
    Here(Vec<Setting>),
    /// A boot parameter: its value on the command line. An empty text is a parameter without a value.
    Booted(Option<String>),
    /// This machine lacks it, and why.
    NotHere(String),
}

/// A place of a knob, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where.
    pub place: Spot,
    /// The text that it holds.
    pub text: String,
}

/// Looks at a knob.
pub fn look(system: &System, knob: &'static Knob, cpus: &Cpus) -> Sighting {
    let proposed = knob.proposes.as_ref().and_then(|value| cpus.fill(value));
    let state = match lacking(system, knob, cpus) {
        Some(why) => State::NotHere(why),
        None if knob.kind == KnobKind::Boot => {
            let line = system.text("/proc/cmdline").unwrap_or_default();
            State::Booted(Parameters::of(&line).value(&knob.name).map(str::to_owned))
        }
        None => spots(system, knob, cpus),
    };
    Sighting { knob, proposed, state }
}

impl Sighting {
    /// Whether it has this value everywhere already.
    pub fn is_already(&self, value: &str) -> bool {
        match &self.state {
            State::Booted(now) => now.as_deref() == Some(value),
            State::Here(spots) => {
                !spots.is_empty() && spots.iter().all(|s| self.knob.reads.is_same(&s.text, value))
            }
            State::NotHere(_) => false,
        }
    }

    /// Whether it is in effect: it stands on the command line, or has the proposed value. A knob without a proposal is
    /// in effect if it is anywhere neither 0 nor empty.
    pub fn is_in_effect(&self) -> bool {
        match (&self.state, &self.proposed) {
            (State::Booted(now), _) => now.is_some(),
            (_, Some(value)) => self.is_already(value),
            (State::Here(spots), None) => spots.iter().any(|spot| {
                let value = self.knob.reads.value(&spot.text);
                !value.is_empty() && !self.knob.reads.is_same(&value, "0")
            }),
            (State::NotHere(_), None) => false,
        }
    }

    /// The value now, for people: each value of several places, with the number of places that have it.
    pub fn now(&self) -> Option<String> {
        let spots = match &self.state {
            State::NotHere(_) => return None,
            State::Booted(None) => return Some("unset".into()),
            State::Booted(Some(value)) if value.is_empty() => return Some("set".into()),
            State::Booted(Some(value)) => return Some(value.clone()),
            State::Here(spots) => spots,
        };
        let mut counts: Vec<(String, usize)> = Vec::new();
        for value in spots.iter().map(|spot| self.knob.reads.value(&spot.text)) {
            match counts.iter_mut().find(|(known, _)| *known == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((value, 1)),
            }
        }
        match &counts[..] {
            [] => None,
            [(value, _)] => Some(value.clone()),
            _ => {
                let each = counts.iter().map(|(value, count)| format!("{value} ({count}×)"));
                Some(each.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Why this machine cannot have a knob, by its kernel and its number of CPUs.
fn lacking(system: &System, knob: &Knob, cpus: &Cpus) -> Option<String> {
    let series = system.series();
    if let (Some(from), Some(here)) = (knob.from, series)
        && here < from
    {
        return Some(format!("Linux {from} and later have it; this is {here}"));
    }
    if let (Some(until), Some(here)) = (knob.until, series)
        && here > until
    {
        return Some(format!("Linux {until} was the last to have it; this is {here}"));
    }
    if let Some(option) = &knob.option
        && system.lacks_option(option) == Some(true)
    {
        return Some(format!("the kernel was built without {option}"));
    }
    if let Some(option) = &knob.unless
        && system.lacks_option(option) == Some(false)
    {
        return Some(format!("the kernel was built with {option}, and always does that"));
    }
    let proposes = knob.proposes.as_deref().unwrap_or_default();
    (cpus.housekeeping.is_empty() && proposes.contains('{'))
        .then(|| "no CPU is left to keep house: all are measured".into())
}

fn spots(system: &System, knob: &Knob, cpus: &Cpus) -> State {
    let of_pattern = |pattern: &String| -> Vec<Spot> {
        let patterns = match pattern.contains("{measured}") {
            true => cpus
                .measured
                .iter()
                .map(|cpu| pattern.replace("{measured}", &cpu.to_string()))
                .collect(),
            false => vec![pattern.clone()],
        };
        let places = |pattern: &String| match knob.kind {
            KnobKind::Priority => system.threads(pattern),
            KnobKind::Ethtool => card::interfaces(system)
                .into_iter()
                .map(|interface| Spot::Card { interface, setting: pattern.clone() })
                .collect(),
            _ => system.matching(pattern).into_iter().map(Spot::Kernel).collect(),
        };
        patterns.iter().flat_map(places).collect()
    };
    let mut places: Vec<Spot> = knob.paths.iter().flat_map(of_pattern).collect();
    if knob.kind == KnobKind::Cgroup {
        places.push(Spot::Partition);
    }
    let (mut spots, mut unread) = (Vec::new(), None);
    for place in places {
        match system.read(&place) {
            Ok(Some(text)) => spots.push(Setting { place, text }),
            Ok(None) => {}
            // A file that cannot be read could not be given back.
            Err(e) => unread = Some(format!("{place} cannot be read: {e}")),
        }
    }
    match (spots.is_empty(), unread) {
        (_, Some(why)) if !knob.each || spots.is_empty() => State::NotHere(why),
        (true, _) if knob.kind == KnobKind::Told => State::Here(spots),
        (true, _) => State::NotHere(absent(system, knob)),
        (false, _) => State::Here(spots),
    }
}

fn absent(system: &System, knob: &Knob) -> String {
    let what = knob.paths.join(", ");
    match knob.kind {
        KnobKind::Debugfs if system.matching("/sys/kernel/debug/*").is_empty() => {
            "debugfs is not mounted: mount -t debugfs none /sys/kernel/debug".into()
        }
        KnobKind::Priority => format!("no kernel thread is called {what}"),
        KnobKind::Cgroup => {
            "/sys/fs/cgroup has no cgroups of version 2 with the controller cpuset".into()
        }
        KnobKind::Ethtool if !card::is_readable(system) => {
            "there is no ethtool: apt-get install ethtool".into()
        }
        KnobKind::Ethtool => format!("no network card has {what}"),
        _ => format!("there is no {what}"),
    }
}
