// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be measured. A quantity is a number with its unit in the type; statistics work over any of them. Most are
//! times; a cost can also be a number of instructions, and a throughput is bytes a second.

use core::fmt;
use core::hash::Hash;
use core::str::FromStr;

use crate::{Insns, Nanos};

/// A number with its unit. Its JSON is the bare number, so a key that holds one ends with [`SUFFIX`](Quantity::SUFFIX).
pub trait Quantity:
    Copy + Ord + Default + Hash + fmt::Debug + fmt::Display + FromStr + Send + Sync + 'static
{
    /// Which it is.
    const KIND: QuantityKind;

    /// What ends the keys of files and JSON: `ns` in `min_ns`.
    const SUFFIX: &'static str = Self::KIND.name();

    /// The key of one measured number, before the suffix.
    const MEASURED: &'static str = Self::KIND.measured();

    /// Whether the greater of two numbers is the better one.
    const MORE_IS_BETTER: bool = Self::KIND.more_is_better();

    /// The greatest number that is taken for real, 2⁴⁸−1: 3.26 days in nanoseconds, 281 terabytes a second. A JSON
    /// number would not hold much more exactly, and exact sums of squares stay in 128 bits.
    const LARGEST: u64 = (1 << 48) - 1;

    /// The number `raw` of the quantity's unit.
    fn from_raw(raw: u64) -> Self;

    /// The number of the quantity's unit.
    fn raw(self) -> u64;
}

/// The quantities, for what says in a file or a table which one it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum QuantityKind {
    /// [`Nanos`]: a time.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "ns"))]
    Nanos,
    /// [`Insns`]: instructions.
    #[cfg_attr(feature = "serde", serde(rename = "insns"))]
    Insns,
    /// [`Bytes`]: an amount of data.
    Bytes,
    /// [`BytesPerSecond`]: a throughput.
    #[cfg_attr(feature = "serde", serde(rename = "bytes_per_s"))]
    BytesPerSecond,
    /// [`Count`]: how many of something.
    Count,
}

impl QuantityKind {
    /// All of them.
    pub const ALL: [QuantityKind; 5] = [
        QuantityKind::Nanos,
        QuantityKind::Insns,
        QuantityKind::Bytes,
        QuantityKind::BytesPerSecond,
        QuantityKind::Count,
    ];

    /// The word in files, JSON and tables, which is also the suffix of keys.
    pub const fn name(self) -> &'static str {
        match self {
            QuantityKind::Nanos => "ns",
            QuantityKind::Insns => "insns",
            QuantityKind::Bytes => "bytes",
            QuantityKind::BytesPerSecond => "bytes_per_s",
            QuantityKind::Count => "count",
        }
    }

    /// What one measured number is called in keys.
    const fn measured(self) -> &'static str {
        match self {
            QuantityKind::Nanos => "latency",
            _ => "value",
        }
    }

    /// Whether the greater of two numbers is the better one.
    pub const fn more_is_better(self) -> bool {
        matches!(self, QuantityKind::BytesPerSecond)
    }

    /// The number `raw` of this quantity, with its unit.
    pub fn show(self, raw: u64) -> alloc::string::String {
        use alloc::string::ToString;
        match self {
            QuantityKind::Nanos => Nanos(raw).to_string(),
            QuantityKind::Insns => Insns(raw).to_string(),
            QuantityKind::Bytes => Bytes(raw).to_string(),
            QuantityKind::BytesPerSecond => BytesPerSecond(raw).to_string(),
            QuantityKind::Count => Count(raw).to_string(),
        }
    }
}

impl fmt::Display for QuantityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No quantity has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownQuantity;

impl fmt::Display for UnknownQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown quantity; known are")?;
        QuantityKind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
    }
}

impl core::error::Error for UnknownQuantity {}

impl FromStr for QuantityKind {
    type Err = UnknownQuantity;
    fn from_str(name: &str) -> Result<Self, UnknownQuantity> {
        QuantityKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownQuantity)
    }
}

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(pub u64);

/// A throughput in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct BytesPerSecond(pub u64);

/// How many of something that has no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Count(pub u64);

impl Bytes {
    /// The throughput of so much data in this time; none where no time passed, or where it does not fit 64 bits.
    pub fn per(self, time: Nanos) -> Option<BytesPerSecond> {
        let rate = (u128::from(self.0) * 1_000_000_000).checked_div(u128::from(time.0))?;
        u64::try_from(rate).ok().map(BytesPerSecond)
    }
}

macro_rules! quantities {
    ($($unit:ident),*) => {$(
        impl Quantity for $unit {
            const KIND: QuantityKind = QuantityKind::$unit;

            #[inline]
            fn from_raw(raw: u64) -> $unit {
                $unit(raw)
            }

            #[inline]
            fn raw(self) -> u64 {
                self.0
            }
        }
    )*};
}
quantities!(Nanos, Insns, Bytes, BytesPerSecond, Count);

impl fmt::Display for Insns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(self.0, "instruction", f)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&grouped(self.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(self.0, "", f)
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(self.0, "/s", f)
    }
}

/// Why a text is not a number of a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    units: &'static [(&'static str, u64)],
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a whole number below 2^64 with a unit of")?;
        self.units.iter().try_for_each(|(unit, _)| match *unit {
            "" => write!(f, " (none)"),
            unit => write!(f, " {unit}"),
        })
    }
}

impl core::error::Error for ParseQuantityError {}

const INSNS: &[(&str, u64)] = &[("", 1), ("instruction", 1), ("instructions", 1)];
const COUNT: &[(&str, u64)] = &[("", 1)];
const BYTES: &[(&str, u64)] = &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
const BYTES_PER_SECOND: &[(&str, u64)] =
    &[("B/s", 1), ("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)];

macro_rules! parsed {
    ($($unit:ident: $units:ident),*) => {$(
        impl FromStr for $unit {
            type Err = ParseQuantityError;
            fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
                parse(text, $units).map($unit).ok_or(ParseQuantityError { units: $units })
            }
        }
    )*};
}
parsed!(Insns: INSNS, Bytes: BYTES, BytesPerSecond: BYTES_PER_SECOND, Count: COUNT);

/// `12.3 MB`, `1,234 instructions`: a decimal number and one of the units, if that is exactly a whole number.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let ends =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let (number, unit) = (text[..ends].replace(',', ""), text[ends..].trim_start());
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
    let digits = fraction.trim_end_matches('0');
    let place = 10u64.checked_pow(digits.len().try_into().ok()?)?;
    if fraction.is_empty() || fraction.contains('.') || !scale.is_multiple_of(place) {
        return None;
    }
    let part = if digits.is_empty() { 0 } else { digits.parse::<u64>().ok()? * (scale / place) };
    whole.parse::<u64>().ok()?.checked_mul(*scale)?.checked_add(part)
}

/// The digits in groups of three.
fn grouped(n: u64) -> alloc::string::String {
    let digits = alloc::format!("{n}");
    let mut text = alloc::string::String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,234 instructions`.
fn whole(n: u64, unit: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let many = if n == 1 { "" } else { "s" };
    f.pad(&alloc::format!("{} {unit}{many}", grouped(n)))
}

/// Three significant digits and the power of 1000 that keeps the number between 1 and 1000: `12.3 MB/s`.
fn scaled(n: u64, per: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if n < 1_000 {
        return f.pad(&alloc::format!("{n} B{per}"));
    }
    let (scale, unit) = match n {
        0..999_500 => (1e3, "kB"),
        999_500..999_500_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let digits = crate::units::decimals(n as f64 / scale);
    f.pad(&alloc::format!("{:.digits$} {unit}{per}", n as f64 / scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn each_quantity_is_found_by_its_name_and_shown_with_its_unit() {
        for kind in QuantityKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let unknown = "ms".parse::<QuantityKind>().unwrap_err().to_string();
        assert_eq!(unknown, "unknown quantity; known are ns insns bytes bytes_per_s count");
        let shown = QuantityKind::ALL.map(|kind| kind.show(12_345));
        assert_eq!(shown, ["12.3 µs", "12,345 instructions", "12.3 kB", "12.3 kB/s", "12,345"]);
    }

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        assert_eq!(
            (Insns(1).to_string(), Count(0).to_string()),
            ("1 instruction".into(), "0".into())
        );
        for (n, text) in [
            (0, "0 B/s"),
            (999, "999 B/s"),
            (999_499, "999 kB/s"),
            (999_500, "1.00 MB/s"),
            (12_345_678, "12.3 MB/s"),
            (12_345_678_901_234, "12346 GB/s"),
        ] {
            assert_eq!(BytesPerSecond(n).to_string(), text);
        }
    }

    #[test]
    fn numbers_are_read_exactly_or_not_at_all() {
        assert_eq!("12.3 MB/s".parse(), Ok(BytesPerSecond(12_300_000)));
        assert_eq!("1,234 instructions".parse(), Ok(Insns(1_234)));
        assert_eq!(("1.50kB".parse(), "7".parse()), (Ok(Bytes(1_500)), Ok(Count(7))));
        for text in
            ["", "7", "MB", "-1 MB", "1. MB", "1.2.3 MB", "0.1 B", "1 MB/s", "99999999999 GB"]
        {
            let refused = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(refused.ends_with("a unit of B kB MB GB"), "{refused}");
        }
    }

    #[test]
    fn data_in_a_time_is_a_throughput() {
        assert_eq!(Bytes(4_096).per(Nanos(1_000)), Some(BytesPerSecond(4_096_000_000)));
        assert_eq!((Bytes(1).per(Nanos(0)), Bytes(u64::MAX).per(Nanos(1))), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_shown_in_full_reads_back(n: u64) {
            prop_assert_eq!(Insns(n).to_string().parse(), Ok(Insns(n)));
            prop_assert_eq!(Count(n).to_string().parse(), Ok(Count(n)));
            prop_assert_eq!(alloc::format!("{n} B").parse(), Ok(Bytes(n)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*") {
            let _ = (text.parse::<Insns>(), text.parse::<Bytes>());
        }
    }
}
