// SPDX-License-Identifier: GPL-2.0-or-later
//! Quantities with their unit in the type: no public signature takes a bare number for time.

use core::fmt;
use core::str::FromStr;

/// A length of time in nanoseconds; 0 … 2⁶⁴−1 ns (584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Nanos(pub u64);

/// A number of instructions that a vCPU completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Insns(pub u64);

impl Nanos {
    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }

    /// Whole microseconds in it.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds in it.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole seconds in it.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Nanoseconds beyond its whole seconds.
    pub const fn subsec_nanos(self) -> u64 {
        self.0 % 1_000_000_000
    }

    /// In seconds, to the digits that a float has.
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Three significant digits and the unit that keeps the number between 1 and 1000, as in `12.4 µs`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        if n < 1_000 {
            return f.pad(&alloc::format!("{n} ns"));
        }
        let (scale, unit) = match n {
            0..999_500 => (1e3, "µs"),
            999_500..999_500_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = n as f64 / scale;
        let digits = decimals(value);
        f.pad(&alloc::format!("{value:.digits$} {unit}"))
    }
}

/// How many decimals leave three significant digits of a value of 1 or more.
pub(crate) fn decimals(value: f64) -> usize {
    if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseDurationError {
    /// A number without a unit: which one was meant cannot be guessed.
    NoUnit,
    /// The unit is none of ns, us, µs, ms, s, min.
    UnknownUnit,
    /// The part before the unit is not a decimal number.
    NotANumber,
    /// Finer than one nanosecond, or beyond 2⁶⁴−1 ns.
    OutOfRange,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "a duration needs a unit: ns, us, ms, s or min (as in \"150us\")",
            Self::UnknownUnit => "unknown unit; known are ns, us, ms, s and min",
            Self::NotANumber => "not a decimal number before the unit",
            Self::OutOfRange => "not a whole number of nanoseconds below 2^64",
        })
    }
}

impl core::error::Error for ParseDurationError {}

/// `150us`, `1ms`, `3.25ms`, `1.5 s`, `5min`: a decimal number and a unit, exactly representable in ns.
impl FromStr for Nanos {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or(ParseDurationError::NoUnit)?;
        let (number, unit) = (&text[..split], text[split..].trim_start());
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            _ if number.is_empty() => return Err(ParseDurationError::NotANumber),
            _ => return Err(ParseDurationError::UnknownUnit),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) {
            return Err(ParseDurationError::NotANumber);
        }
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(ParseDurationError::NotANumber);
        }
        let whole: u64 = whole.parse().map_err(|_| ParseDurationError::OutOfRange)?;
        let mut total = whole.checked_mul(scale).ok_or(ParseDurationError::OutOfRange)?;
        let mut place = scale;
        for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
            // `place` may stop dividing by ten (60 s = 6·10¹⁰ always does until it reaches 6).
            if digit != 0 && !place.is_multiple_of(10) {
                return Err(ParseDurationError::OutOfRange);
            }
            place /= 10;
            total = total.checked_add(digit * place).ok_or(ParseDurationError::OutOfRange)?;
        }
        Ok(Nanos(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, ns) in [
            ("0ns", 0),
            ("150us", 150_000),
            ("3.25ms", 3_250_000),
            ("53.35 ms", 53_350_000),
            ("1.000000001s", 1_000_000_001),
            ("1.5min", 90_000_000_000),
            ("7µs", 7_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_reason() {
        use ParseDurationError::*;
        for (text, why) in [
            ("150", NoUnit),
            ("", NoUnit),
            ("ms", NotANumber),
            ("-1ms", NotANumber),
            (".5ms", NotANumber),
            ("1.ms", NotANumber),
            ("1.2.3ms", NotANumber),
            ("5 parsec", UnknownUnit),
            ("0.5ns", OutOfRange),
            ("18446744073709551616ns", OutOfRange),
            ("99999999999999s", OutOfRange),
        ] {
            assert_eq!(text.parse::<Nanos>(), Err(why), "{text:?}");
        }
        // A unit without a number names the number, whatever the unit.
        assert_eq!("x".parse::<Nanos>(), Err(NotANumber));
    }

    #[test]
    fn display_keeps_three_digits_and_changes_unit_when_it_rounds_up() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (99_960, "100 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (1_000_000_000, "1.00 s"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_whole_number_of_nanoseconds_round_trips(n: u64) {
            prop_assert_eq!(alloc::format!("{n}ns").parse(), Ok(Nanos(n)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<Nanos>();
        }
    }
}
