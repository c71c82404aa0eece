// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers that stand for a series, and how they are written.

use core::fmt;
use core::str::FromStr;
use sample::{Clock, Losses, Nanos, SeriesName};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A quantile that is reported. Fixed, so that every summary can be compared with every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantile {
    /// The median.
    P50,
    /// Nine of ten.
    P90,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
    /// 99.99 %.
    P9999,
    /// 99.999 %.
    P99999,
}

/// No quantile of this name is reported; [`Quantile::ALL`] lists those that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownQuantile;

impl fmt::Display for UnknownQuantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown quantile; known are")?;
        Quantile::ALL.iter().try_for_each(|q| write!(f, " {q}"))
    }
}

impl core::error::Error for UnknownQuantile {}

impl Quantile {
    /// All of them, rising.
    pub const ALL: [Quantile; 6] = [
        Quantile::P50,
        Quantile::P90,
        Quantile::P99,
        Quantile::P999,
        Quantile::P9999,
        Quantile::P99999,
    ];

    /// The share as a reduced fraction: exact, where 0.999 as a float is not.
    const fn fraction(self) -> (u128, u128) {
        match self {
            Quantile::P50 => (1, 2),
            Quantile::P90 => (9, 10),
            Quantile::P99 => (99, 100),
            Quantile::P999 => (999, 1_000),
            Quantile::P9999 => (9_999, 10_000),
            Quantile::P99999 => (99_999, 100_000),
        }
    }

    /// The key in JSON: the share as a decimal fraction.
    pub const fn key(self) -> &'static str {
        match self {
            Quantile::P50 => "0.5",
            Quantile::P90 => "0.9",
            Quantile::P99 => "0.99",
            Quantile::P999 => "0.999",
            Quantile::P9999 => "0.9999",
            Quantile::P99999 => "0.99999",
        }
    }

    /// The name in experiments and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Quantile::P50 => "p50",
            Quantile::P90 => "p90",
            Quantile::P99 => "p99",
            Quantile::P999 => "p99.9",
            Quantile::P9999 => "p99.99",
            Quantile::P99999 => "p99.999",
        }
    }

    /// Which of `count` sorted samples it is, from 1: ⌈q·count⌉.
    pub const fn rank(self, count: u64) -> u64 {
        let (numerator, denominator) = self.fraction();
        // At most `count`, so it fits.
        (numerator * count as u128).div_ceil(denominator) as u64
    }

    /// Whether at least one of `count` samples lies above it. Where none does, the number would only
    /// repeat the maximum under another name.
    pub const fn supported_by(self, count: u64) -> bool {
        count > self.rank(count)
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reads the name (`p99.9`).
impl FromStr for Quantile {
    type Err = UnknownQuantile;
    fn from_str(name: &str) -> Result<Self, UnknownQuantile> {
        Quantile::ALL.into_iter().find(|q| q.name() == name).ok_or(UnknownQuantile)
    }
}

/// The numbers that describe a series. Written to JSON, every number of time carries its unit in its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Whose answers.
    pub responder: SeriesName,
    /// The clock of every time below.
    pub clock: Clock,
    /// Answers measured.
    pub count: u64,
    /// What was not measured.
    pub losses: Losses,
    /// Exact minimum; absent without samples.
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    /// Mean in ns, from the exact sum; absent without samples.
    pub mean_ns: Option<f64>,
    /// Standard deviation of the population in ns, from exact sums; absent without samples.
    pub stddev_ns: Option<f64>,
    /// Exact maximum; absent without samples.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// Rising; each less than 0.1 % above the exact order statistic of rank ⌈q·count⌉. One that
    /// [the count does not support](Quantile::supported_by) is absent.
    #[serde(with = "by_key")]
    pub quantiles: Vec<(Quantile, Nanos)>,
}

impl Summary {
    /// The value of a quantile, where the count supports it.
    pub fn quantile(&self, wanted: Quantile) -> Option<Nanos> {
        self.quantiles.iter().find(|(q, _)| *q == wanted).map(|(_, value)| *value)
    }
}

/// `{"0.5": 120, "0.9": 131}`: a list of pairs as a JSON object in the order of the list.
mod by_key {
    use super::*;

    pub fn serialize<S: Serializer>(
        pairs: &[(Quantile, Nanos)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(pairs.len()))?;
        for (quantile, value) in pairs {
            map.serialize_entry(quantile.key(), value)?;
        }
        map.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Quantile, Nanos)>, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(Quantile, Nanos)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from quantile to nanoseconds")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs: Self::Value = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Nanos>()? {
                    let quantile = Quantile::ALL.into_iter().find(|q| q.key() == key);
                    let quantile =
                        quantile.ok_or_else(|| A::Error::custom(format!("no quantile {key:?}")))?;
                    if pairs.last().is_some_and(|(q, v)| *q >= quantile || *v > value) {
                        return Err(A::Error::custom("quantiles do not rise"));
                    }
                    pairs.push((quantile, value));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
