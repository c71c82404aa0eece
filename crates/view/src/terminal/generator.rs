// SPDX-License-Identifier: GPL-2.0-or-later
//! What a generator tells of its runs, a line each.

use super::count::{named, several};
use sample::{Losses, Nanos};
use wire::generator::{Ended, Setting, Started, Stopped, Timing};

/// `run 1 started: 1.00 kHz, the line is high for 100 µs, until it is stopped`. The settings are in nanoseconds.
pub fn started(started: &Started) -> String {
    let of = |setting| started.settings.get(setting);
    let when = match started.timing {
        Timing::Periodic => hertz(Nanos(of(Setting::Period))),
        Timing::Train => "a train of given times".into(),
    };
    let until = match (started.timing, of(Setting::Count)) {
        (Timing::Train, _) => String::new(),
        (Timing::Periodic, u64::MAX) => ", until it is stopped".into(),
        (Timing::Periodic, count) => format!(", {}", several(count, "trigger")),
    };
    let high = Nanos(of(Setting::High));
    format!("run {} started: {when}, the line is high for {high}{until}", started.run.0)
}

/// `run 1 ended as the host asked, after 5000 triggers; task: 4000 answers, 1000 superseded`.
pub fn stopped(stopped: &Stopped) -> String {
    let why = match stopped.ended {
        Ended::Asked => "ended as the host asked",
        Ended::Complete => "is complete",
        Ended::Fault(_) => "ended, because the generator failed",
        Ended::ClockEnds => "ended, because the next trigger would come beyond the last tick",
    };
    let mut text =
        format!("run {} {why}, after {}", stopped.run.0, several(stopped.triggers, "trigger"));
    for (responder, tally) in stopped.tallies.iter() {
        let measured = several(tally.measured, "answer");
        text += &format!("; {responder}: {measured}{}", lost(&tally.losses));
    }
    text
}

/// `, 3 unanswered, 1 superseded`; nothing where nothing was lost.
pub(super) fn lost(losses: &Losses) -> String {
    named(losses).map_or_else(String::new, |losses| format!(", {losses}"))
}

/// The frequency of a period: `16.0 Hz`, `1.00 kHz`.
pub(super) fn hertz(period: Nanos) -> String {
    let hertz = 1e9 / period.0 as f64;
    let (value, unit) = match hertz {
        0.0..999.5 => (hertz, "Hz"),
        0.0..999_500.0 => (hertz / 1e3, "kHz"),
        _ => (hertz / 1e6, "MHz"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_has_three_digits_and_its_unit() {
        for (period, text) in [
            (62_500_000, "16.0 Hz"),
            (1_000_000, "1.00 kHz"),
            (2_000, "500 kHz"),
            (1_000, "1.00 MHz"),
            (10_000_000_000, "0.10 Hz"),
        ] {
            assert_eq!(hertz(Nanos(period)), text);
        }
    }
}
