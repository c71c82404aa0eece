// SPDX-License-Identifier: GPL-2.0-or-later
//! `[trigger]`: when the generator raises the line, how long the line stays high, and how long it waits for an answer.

mod arrivals;
mod events;

use super::diagnostic::Place;
use super::document::{Entry, Value};
use super::paths::Paths;
use super::read::{Found, Reader, Section};
use super::{COUNT_MAX, RUN_MAX};
use sample::{Disturbance, Nanos, Schedule};

/// The shortest time between two triggers. Triggers that are closer could not each make an edge that an interrupt
/// controller sees.
pub const TRIGGERS_APART: Nanos = Nanos::from_micros(1);
const GRACE: Nanos = Nanos::from_millis(1_000);
const DUTY: f64 = 0.5;
/// What `duty` is a share of where a single trigger has no neighbour.
const DISTANCE_OF_ONE: Nanos = Nanos::from_millis(1);

/// What asks the target for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// When the line is raised, since the beginning of measuring: at least once, instants at least 1 µs apart, a jitter
    /// below the period.
    pub schedule: Schedule,
    /// How long the line stays high; at least 1 ns and shorter than any two triggers are apart.
    pub high: Nanos,
    /// How long an answer is waited for after the last trigger.
    pub grace: Nanos,
    /// What disturbs meanwhile: rising, none after the time for the last answer.
    pub disturbances: Vec<Disturbance>,
}

/// Reads `[trigger]`; `None` when something about it was noted.
pub(super) fn read(
    reader: &mut Reader,
    section: &Section,
    seed: u64,
    paths: &Paths,
) -> Option<Trigger> {
    let schedule = match section.entry("times") {
        Some(times) => {
            for key in ["period", "jitter", "phase", "count", "arrivals", "burst", "apart"] {
                if let Some(entry) = section.entry(key) {
                    let message = format!("{key} and times cannot be set together");
                    let help = "times lists every trigger; leave out times, or the keys of periodic triggers";
                    reader.note(&entry.key_at, message, help);
                }
            }
            match times.node.value {
                Value::Text(_) => recorded(reader, times, paths),
                _ => reader.durations(times).and_then(|times| explicit(reader, &times)),
            }
        }
        None => periodic(reader, section, seed).and_then(|at| arrivals::read(reader, section, at)),
    };
    let grace = section.entry("grace").map(|e| reader.duration(e).map(|(d, _)| d));
    let disturbances = section.entry("disturbances").map(|e| disturbances(reader, e));
    let disturbances = disturbances.unwrap_or_else(|| Some(Vec::new()));
    let duty_entry = section.entry("duty");
    let duty = duty_entry.map_or(Some(DUTY), |e| reader.share(e));
    let (schedule, grace, duty) = (schedule?, grace.unwrap_or(Some(GRACE))?, duty?);
    let end = schedule.end().and_then(|end| end.checked_add(grace)).filter(|end| *end <= RUN_MAX);
    let Some(end) = end else {
        let message = format!("the last trigger and its grace end after {RUN_MAX}");
        reader.note(
            &section.at,
            message,
            "a run measures for 31 days at most; make several experiments",
        );
        return None;
    };
    let at = duty_entry.map_or(&section.at, |e| &e.node.at);
    let high = high(reader, &schedule, duty, at);
    let disturbances = disturbances?;
    if let Some((late, at)) = disturbances.iter().find(|(d, _)| d.at > end) {
        let message = format!("the run ends before the disturbance at {}", late.at);
        let help = "a disturbance has to come before the last trigger and its grace are over";
        reader.note(at, message, help);
        return None;
    }
    let disturbances = disturbances.into_iter().map(|(disturbance, _)| disturbance).collect();
    Some(Trigger { schedule, high: high?, grace, disturbances })
}

fn disturbances<'a>(reader: &mut Reader, entry: &'a Entry) -> Option<Vec<Found<'a, Disturbance>>> {
    let convert = |text: &str| match text.parse() {
        Ok(disturbance) => Ok(disturbance),
        Err(why) => Err((format!("{text:?} is no disturbance"), format!("{why}"))),
    };
    let found = reader.words(entry, "[\"2ms\", \"3ms 16 timers\"]", convert)?;
    let noted = reader.problems.len();
    for pair in found.windows(2) {
        let ((earlier, _), (later, at)): (&Found<Disturbance>, _) = (&pair[0], &pair[1]);
        if later.at <= earlier.at {
            let message = format!("disturbances have to rise: {later} does not follow {earlier}");
            reader.note(at, message, "list them in order, one at an instant");
        }
    }
    (reader.problems.len() == noted).then_some(found)
}

/// The events of the file that `entry` names.
fn recorded(reader: &mut Reader, entry: &Entry, paths: &Paths) -> Option<Schedule> {
    let (name, at) = reader.text(entry, "\"events.csv\"")?;
    match events::read(&paths.whole(name)) {
        Ok(times) => Some(Schedule::Explicit(times)),
        Err(events::Refused { message, help }) => {
            reader.note(at, message, help);
            None
        }
    }
}

fn periodic(reader: &mut Reader, section: &Section, seed: u64) -> Option<Schedule> {
    let period = reader.required(section, "period", "\"1ms\"").and_then(|e| {
        reader.duration_from(e, TRIGGERS_APART, "closer triggers could not each make an edge")
    });
    let count =
        reader.required(section, "count", "10000").and_then(|e| reader.integer(e, 1..=COUNT_MAX));
    let jitter = section.entry("jitter").map(|e| reader.duration(e));
    let phase = section.entry("phase").map(|e| reader.duration(e));
    let period = period?.0;
    if let Some((jitter, at)) = jitter.flatten().filter(|(jitter, _)| *jitter >= period) {
        let message = format!("a jitter of {jitter} is not below the period of {period}");
        reader.note(
            at,
            message,
            "triggers have to keep their order: make the jitter shorter than the period",
        );
        return None;
    }
    Some(Schedule::Periodic {
        phase: phase.map_or(Some(period), |found| found.map(|(d, _)| d))?,
        period,
        jitter: jitter.map_or(Some(Nanos(0)), |found| found.map(|(d, _)| d))?,
        seed,
        count: count?,
    })
}

fn explicit(reader: &mut Reader, times: &[Found<Nanos>]) -> Option<Schedule> {
    let noted = reader.problems.len();
    for pair in times.windows(2) {
        let ((earlier, _), (later, at)) = (pair[0], pair[1]);
        if later <= earlier {
            let message = format!("times have to rise: {later} does not follow {earlier}");
            reader.note(at, message, "list the instants in order, each once");
        } else if later - earlier < TRIGGERS_APART {
            let message = format!("these triggers are less than {TRIGGERS_APART} apart");
            reader.note(at, message, "closer triggers could not each make an edge");
        }
    }
    let instants = times.iter().map(|(instant, _)| *instant).collect();
    (reader.problems.len() == noted).then_some(Schedule::Explicit(instants))
}

/// The line must fall before it rises again, or the next trigger makes no edge.
fn high(reader: &mut Reader, schedule: &Schedule, duty: f64, at: &Place) -> Option<Nanos> {
    let distance = schedule.shortest_gap();
    let whole = match schedule {
        Schedule::Periodic { period, .. } => *period,
        Schedule::Explicit(_) => distance.unwrap_or(DISTANCE_OF_ONE),
    };
    let high = Nanos((duty * whole.0 as f64) as u64);
    if high.0 == 0 {
        reader.note(at, "the line would be high for less than 1 ns", "take a larger duty");
        return None;
    }
    if distance.is_some_and(|d| high >= d) {
        let message = format!(
            "the line is high for {high}, but with the jitter the next trigger may come after {}",
            distance.unwrap_or_default()
        );
        reader.note(at, message, "take a smaller duty or a smaller jitter");
        return None;
    }
    Some(high)
}
