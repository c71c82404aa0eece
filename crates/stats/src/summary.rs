// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers that stand for a series, and how they are written.

use crate::keyed::{key, keyed};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::str::FromStr;
use sample::{Clock, Losses, Nanos, Quantity, SeriesName};
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
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend(
        "if" = {"properties": {"count": {"const": 0}}},
        "then" = {"properties": {
            "min_ns": {"type": "null"}, "mean_ns": {"type": "null"}, "stddev_ns": {"type": "null"},
            "max_ns": {"type": "null"}, "quantiles": {"maxProperties": 0}
        }},
        "else" = {"properties": {
            "min_ns": {"type": "integer"}, "mean_ns": {"type": "number"}, "stddev_ns": {"type": "number"},
            "max_ns": {"type": "integer"}
        }}
    ))
)]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "Summary",
        deny_unknown_fields,
        transform = crate::keyed::units::<Q>,
        bound = "Q: Quantity + schemars::JsonSchema"
    )
)]
pub struct Summary<Q = Nanos> {
    /// Whose answers.
    pub responder: SeriesName,
    /// The clock of every time below.
    pub clock: Clock,
    /// Answers measured.
    pub count: u64,
    /// What was not measured.
    pub losses: Losses,
    /// Exact minimum; none without samples.
    #[cfg_attr(feature = "schema", schemars(rename = "min_ns", extend("maximum" = crate::LATENCY_MAX)))]
    pub min: Option<Q>,
    /// Mean in ns, from the exact sum; none without samples.
    #[cfg_attr(feature = "schema", schemars(rename = "mean_ns", range(min = 0)))]
    pub mean: Option<f64>,
    /// Standard deviation of the population in ns, from exact sums; none without samples.
    #[cfg_attr(feature = "schema", schemars(rename = "stddev_ns", range(min = 0)))]
    pub stddev: Option<f64>,
    /// Exact maximum; none without samples.
    #[cfg_attr(feature = "schema", schemars(rename = "max_ns", extend("maximum" = crate::LATENCY_MAX)))]
    pub max: Option<Q>,
    /// Latency by quantile, rising: the upper end of the histogram's bucket (less than 0.1 % above the truth) that
    /// holds the sample of rank ⌈q·count⌉. A quantile that no sample lies above is absent.
    pub quantiles: Quantiles<Q>,
}

keyed!(Summary {
    responder: "responder";
    clock: "clock";
    count: "count";
    losses: "losses";
    min: key::<Q>("min");
    mean: key::<Q>("mean");
    stddev: key::<Q>("stddev");
    max: key::<Q>("max");
    quantiles: "quantiles";
});

impl<Q: Quantity> Summary<Q> {
    /// The value of a quantile, where the count supports it.
    pub fn quantile(&self, wanted: Quantile) -> Option<Q> {
        self.quantiles.iter().find(|(q, _)| *q == wanted).map(|(_, value)| *value)
    }
}

/// Numbers by quantile, rising. In JSON an object in that order: `{"0.5": 120, "0.9": 131}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantiles<Q = Nanos>(Vec<(Quantile, Q)>);

impl<Q> Deref for Quantiles<Q> {
    type Target = [(Quantile, Q)];
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<Q> FromIterator<(Quantile, Q)> for Quantiles<Q> {
    fn from_iter<I: IntoIterator<Item = (Quantile, Q)>>(pairs: I) -> Self {
        Quantiles(pairs.into_iter().collect())
    }
}

#[cfg(feature = "schema")]
impl<Q: Quantity + schemars::JsonSchema> schemars::JsonSchema for Quantiles<Q> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantiles".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut number = generator.subschema_for::<Q>();
        number.insert("maximum".into(), Q::LARGEST.into());
        schemars::json_schema!({
            "type": "object",
            "propertyNames": { "enum": Quantile::ALL.map(Quantile::key) },
            "additionalProperties": number,
            "dependentRequired": {
                "0.9": ["0.5"], "0.99": ["0.9"], "0.999": ["0.99"], "0.9999": ["0.999"], "0.99999": ["0.9999"]
            }
        })
    }
}

impl<Q: Serialize> Serialize for Quantiles<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(quantile, value)| (quantile.key(), value)))
    }
}

impl<'de, Q: Quantity + Deserialize<'de>> Deserialize<'de> for Quantiles<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<Q>(PhantomData<Q>);
        impl<'de, Q: Quantity + Deserialize<'de>> Visitor<'de> for Pairs<Q> {
            type Value = Quantiles<Q>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object from quantile to {}", Q::KIND)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs: Vec<(Quantile, Q)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Q>()? {
                    let quantile = Quantile::ALL.into_iter().find(|q| q.key() == key);
                    let quantile =
                        quantile.ok_or_else(|| A::Error::custom(format!("no quantile {key:?}")))?;
                    if pairs.last().is_some_and(|(q, v)| *q >= quantile || *v > value) {
                        return Err(A::Error::custom("quantiles do not rise"));
                    }
                    pairs.push((quantile, value));
                }
                Ok(Quantiles(pairs))
            }
        }
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}
