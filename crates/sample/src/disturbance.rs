// SPDX-License-Identifier: GPL-2.0-or-later
//! Disturbances: events at planned instants, beside the triggers. They take the target's time, and nobody answers them.

use crate::{Nanos, ParseDurationError};
use core::fmt;
use core::str::FromStr;

/// An interrupt of the rig's second device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Disturbance {
    /// When its line is raised, since the beginning of measuring.
    #[cfg_attr(feature = "serde", serde(rename = "at_ns"))]
    pub at: Nanos,
    /// How many timers its handler starts, to expire all at once: 0 … [`Disturbance::TIMERS_MAX`].
    #[cfg_attr(feature = "schema", schemars(range(max = Disturbance::TIMERS_MAX)))]
    pub timers: u8,
}

impl Disturbance {
    /// As many timers as the driver has (`ONSET_DISTURBANCE_TIMERS` in driver/onset_wire.h).
    pub const TIMERS_MAX: u8 = 64;

    /// Whether these follow one another, no two at one instant: as whoever takes several wants them.
    pub fn rise(disturbances: &[Disturbance]) -> bool {
        disturbances.windows(2).all(|w| w[0].at < w[1].at)
    }
}

/// As [`FromStr`] reads it, to the nanosecond.
impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.timers {
            0 => write!(f, "{}ns", self.at.0),
            1 => write!(f, "{}ns 1 timer", self.at.0),
            timers => write!(f, "{}ns {timers} timers", self.at.0),
        }
    }
}

/// Why a text is no disturbance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotADisturbance {
    /// It does not begin with a duration, or something else than a number of timers follows.
    Time(ParseDurationError),
    /// The number of timers is missing, or none that there can be.
    Timers,
}

impl fmt::Display for NotADisturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotADisturbance::Time(why) => {
                write!(f, "{why}; write a duration, and timers after it: \"3ms 16 timers\"")
            }
            NotADisturbance::Timers => {
                write!(f, "there can be 0 to {} timers: \"3ms 16 timers\"", Disturbance::TIMERS_MAX)
            }
        }
    }
}

impl core::error::Error for NotADisturbance {}

/// `2ms`, `2.5ms 16 timers`, `3ms 1 timer`.
impl FromStr for Disturbance {
    type Err = NotADisturbance;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let with_number = text.strip_suffix("timers").or_else(|| text.strip_suffix("timer"));
        let (time, timers) = match with_number.map(str::trim_end) {
            None => (text, 0),
            Some(text) => {
                let time = text.trim_end_matches(|c: char| c.is_ascii_digit());
                let timers = text[time.len()..].parse().ok();
                let possible = timers.filter(|timers| *timers <= Self::TIMERS_MAX);
                (time, possible.ok_or(NotADisturbance::Timers)?)
            }
        };
        let at = time.parse().map_err(NotADisturbance::Time)?;
        Ok(Disturbance { at, timers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn a_disturbance_is_a_time_and_perhaps_a_number_of_timers() {
        let read = |text: &str| text.parse::<Disturbance>().map(|d| (d.at.0, d.timers));
        assert_eq!(read("2ms"), Ok((2_000_000, 0)));
        assert_eq!(read(" 1.5 s 16 timers "), Ok((1_500_000_000, 16)));
        assert_eq!(read("3us 1 timer"), Ok((3_000, 1)));
        assert_eq!(read("3us64timers"), Ok((3_000, 64)));
        for text in ["3us 65 timers", "3us timers", "3us 256 timers"] {
            assert_eq!(read(text), Err(NotADisturbance::Timers), "{text}");
        }
        let time = |why| Err(NotADisturbance::Time(why));
        assert_eq!(read("3ms 16"), time(ParseDurationError::UnknownUnit));
        assert_eq!(read("16 timers"), time(ParseDurationError::NoUnit));
        assert_eq!(read("3 16 timers"), time(ParseDurationError::NoUnit));
        assert_eq!(read(""), time(ParseDurationError::NoUnit));
    }

    proptest! {
        #[test]
        fn a_disturbance_survives_its_text(at: u64, timers in 0u8..=64) {
            let disturbance = Disturbance { at: Nanos(at), timers };
            prop_assert_eq!(disturbance.to_string().parse(), Ok(disturbance));
        }

        #[test]
        fn no_text_is_more_than_a_disturbance_or_an_error(text in "\\PC{0,24}|[0-9. ]{0,5}(ms|s|)[ 0-9]{0,5}timers?") {
            if let Ok(disturbance) = text.parse::<Disturbance>() {
                prop_assert!(disturbance.timers <= Disturbance::TIMERS_MAX);
            }
        }
    }
}
