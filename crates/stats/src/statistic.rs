// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers of a summary that can be limited and compared.

use crate::{Quantile, Summary};
use core::fmt;
use core::str::FromStr;
use sample::Quantity;
use serde::{Deserialize, Serialize};

/// A number of a summary that can be limited and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// A quantile.
    Quantile(Quantile),
    /// The exact maximum.
    Max,
}

/// No statistic of this name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStatistic;

impl fmt::Display for UnknownStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown statistic; known are max mean")?;
        Quantile::ALL.iter().try_for_each(|q| write!(f, " {q}"))
    }
}

impl core::error::Error for UnknownStatistic {}

impl Statistic {
    /// The word used in experiments, JSON and tables: `mean`, `p99.9`, `max`.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Quantile(q) => q.name(),
            Statistic::Max => "max",
        }
    }

    /// Its value in the quantity's unit, where the summary has it.
    pub fn of<Q: Quantity>(self, summary: &Summary<Q>) -> Option<f64> {
        match self {
            Statistic::Mean => summary.mean,
            Statistic::Quantile(q) => summary.quantile(q).map(float),
            Statistic::Max => summary.max.map(float),
        }
    }
}

/// Exact, as no recorded number is beyond 2⁴⁸.
pub(crate) fn float<Q: Quantity>(value: Q) -> f64 {
    value.raw() as f64
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Statistic {
    type Err = UnknownStatistic;
    fn from_str(name: &str) -> Result<Self, UnknownStatistic> {
        match name {
            "mean" => Ok(Statistic::Mean),
            "max" => Ok(Statistic::Max),
            _ => name.parse().map(Statistic::Quantile).map_err(|_| UnknownStatistic),
        }
    }
}

impl Serialize for Statistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Statistic {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Statistic".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let quantiles = Quantile::ALL.map(Statistic::Quantile);
        let all = [&[Statistic::Mean], &quantiles[..], &[Statistic::Max]].concat();
        schemars::json_schema!({
            "description": "A number of a summary that can be limited and compared.",
            "type": "string",
            "enum": all
        })
    }
}

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}
