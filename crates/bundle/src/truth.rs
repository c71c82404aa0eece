// SPDX-License-Identifier: GPL-2.0-or-later
//! How accurate a probe is: each latency that the probe reported, minus the latency that the rig saw from outside
//! (`docs/truth.md`).

use sample::{Insns, Nanos, SeriesName};
use serde::{Deserialize, Serialize};
use stats::Quantile;

/// How accurate a series is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// The series.
    pub series: SeriesName,
    /// How many latencies the probe reported.
    pub samples: u64,
    /// For how many of them the rig saw the wake-up or the edge.
    pub matched: u64,
    /// The reported latency minus the true latency; null if no latency was matched.
    pub error: Option<Deviation>,
    /// By how much all errors may be wrong together, since it is only known roughly when the guest read its clock. All
    /// errors from one snapshot are wrong by the same amount, so they can be compared to the nanosecond.
    #[serde(rename = "uncertainty_ns")]
    pub uncertainty: Nanos,
    /// The cost of a sample: the median of instructions in user space from one wake-up to the next call. It counts
    /// everything that ran meanwhile, so on an idle guest it is the probe's own cost. Null if no thread slept twice,
    /// and for edges.
    #[serde(rename = "own_insns")]
    pub own: Option<Insns>,
}

/// Errors in ns of the guest's clock (in the rig, instructions × 2^shift). A positive error means that the probe
/// reported a longer latency than the true one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The least.
    pub min_ns: i64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: i64,
    /// 99 % are at most this.
    pub p99_ns: i64,
    /// The largest.
    pub max_ns: i64,
}

impl Deviation {
    /// The deviation of all errors in ns. `None` if there are none.
    pub fn of(mut errors: Vec<i64>) -> Option<Deviation> {
        errors.sort_unstable();
        let (min_ns, max_ns) = (*errors.first()?, *errors.last()?);
        let count = errors.len() as u64;
        let quantile = |q: Quantile| errors[q.rank(count) as usize - 1];
        let sum: i128 = errors.iter().map(|e| i128::from(*e)).sum();
        let (p50_ns, p99_ns) = (quantile(Quantile::P50), quantile(Quantile::P99));
        Some(Deviation { min_ns, mean_ns: sum as f64 / count as f64, p50_ns, p99_ns, max_ns })
    }
}
