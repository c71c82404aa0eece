// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrivals that are not periodic: at random, as events that know nothing of one another come, and in bursts. Both
//! become a list of instants, which the manifest keeps.

use super::TRIGGERS_APART;
use crate::document::Entry;
use crate::read::{Reader, Section};
use sample::{Nanos, Schedule, displacement};

/// The most instants that an experiment draws. A list is kept in the manifest of each run, and a run of more triggers
/// is a file of tens of megabytes.
pub const DRAWN_MAX: u64 = 1_000_000;

/// `count` arrivals, whose mean distance is `period`.
///
/// They are those of a Poisson process whose distances are [`TRIGGERS_APART`] longer, and whose rate is raised by as
/// much that the mean stays: closer triggers could not each make an edge. A distance is drawn by inversion, −m·ln u
/// with u in (0, 1] (Devroye, Non-Uniform Random Variate Generation, 1986, section II.2).
fn poisson(period: Nanos, count: u64, seed: u64) -> Vec<Nanos> {
    let mean = (period - TRIGGERS_APART).0 as f64;
    let mut at = Nanos(0);
    let next = |n| {
        // Evenly from 1 … 2⁵³, so that the logarithm is never of 0.
        let drawn = displacement(seed, n, Nanos((1 << 53) - 1)).0 + 1;
        let distance = -mean * (drawn as f64 / (1u64 << 53) as f64).ln();
        at = at.saturating_add(TRIGGERS_APART).saturating_add(Nanos(distance.round() as u64));
        at
    };
    (0..count).map(next).collect()
}

/// Each instant of `schedule` with as many more behind it that there are `burst`, each `apart` from the one before.
fn bursts(schedule: &Schedule, burst: u64, apart: Nanos) -> Vec<Nanos> {
    let begins = (0..schedule.count()).map_while(|n| schedule.due(n));
    begins.flat_map(|at| (0..burst).map(move |n| at + apart * n)).collect()
}

/// The schedule that `[trigger]` asks for, made from its periodic one. `None` when something about it was noted.
pub(super) fn read(reader: &mut Reader, section: &Section, periodic: Schedule) -> Option<Schedule> {
    let drawn = section.entry("arrivals");
    let burst = section.entry("burst");
    let apart = section.entry("apart");
    if let (Some(entry), None) = (apart, burst) {
        reader.note(
            &entry.key_at,
            "apart without burst",
            "say how many triggers a burst has: burst = 4",
        );
        return None;
    }
    let schedule = match drawn {
        Some(entry) => at_random(reader, section, entry, &periodic)?,
        None => periodic,
    };
    match burst {
        Some(entry) => in_bursts(reader, section, entry, &schedule),
        None => Some(schedule),
    }
}

fn at_random(
    reader: &mut Reader,
    section: &Section,
    entry: &Entry,
    periodic: &Schedule,
) -> Option<Schedule> {
    let (word, at) = reader.text(entry, "\"poisson\"")?;
    if word != "poisson" {
        let message = format!("unknown arrivals {word:?}");
        reader.note(at, message, "known is poisson; leave the key out for periodic triggers");
        return None;
    }
    for key in ["jitter", "phase"] {
        if let Some(entry) = section.entry(key) {
            let message = format!("{key} and arrivals cannot be set together");
            let help = "arrivals at random have no instants that they could be off from; leave one of them out";
            reader.note(&entry.key_at, message, help);
            return None;
        }
    }
    let Schedule::Periodic { period, seed, count, .. } = *periodic else { return None };
    is_few(reader, section, count)?;
    Some(Schedule::Explicit(poisson(period, count, seed)))
}

fn in_bursts(
    reader: &mut Reader,
    section: &Section,
    entry: &Entry,
    schedule: &Schedule,
) -> Option<Schedule> {
    let burst = reader.integer(entry, 2..=DRAWN_MAX)?;
    let apart = reader.required(section, "apart", "\"20us\"")?;
    let (apart, at) = reader.duration_from(
        apart,
        TRIGGERS_APART,
        "closer triggers could not each make an edge",
    )?;
    is_few(reader, section, schedule.count().saturating_mul(burst))?;
    let length = apart.checked_mul(burst - 1).and_then(|l| l.checked_add(TRIGGERS_APART));
    if length.is_none_or(|length| schedule.shortest_gap().is_some_and(|gap| length > gap)) {
        let message = format!("a burst of {burst} that are {apart} apart runs into the next one");
        reader.note(at, message, "make bursts shorter, or the time between them longer");
        return None;
    }
    Some(Schedule::Explicit(bursts(schedule, burst, apart)))
}

fn is_few(reader: &mut Reader, section: &Section, count: u64) -> Option<()> {
    if count <= DRAWN_MAX {
        return Some(());
    }
    let message = format!("{count} triggers are more than a list can have");
    reader.note(&section.at, message, format!("take at most {DRAWN_MAX}, or periodic triggers"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_at_random_have_the_mean_the_spread_and_the_seed_that_were_asked_for() {
        let times = poisson(Nanos::from_millis(1), 20_000, 3);
        assert_eq!(times, poisson(Nanos::from_millis(1), 20_000, 3));
        assert_ne!(times, poisson(Nanos::from_millis(1), 20_000, 4));
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]).0 as f64).collect();
        assert!(gaps.iter().all(|gap| *gap >= TRIGGERS_APART.0 as f64));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The standard error of the mean is 1 ms / √20,000 = 7 µs; of the share, 0.0034.
        assert!((mean - 1e6).abs() < 35e3, "{mean}");
        let longer = gaps.iter().filter(|gap| **gap > 1e6).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0f64).exp()).abs() < 0.017, "{longer}: of an exponential it is 1/e");
    }

    #[test]
    fn a_burst_begins_at_each_instant() {
        let schedule = Schedule::Explicit(vec![Nanos(5_000), Nanos(90_000)]);
        let times = bursts(&schedule, 3, Nanos(2_000));
        assert!(times.iter().map(|at| at.0).eq([5_000, 7_000, 9_000, 90_000, 92_000, 94_000]));
    }
}
