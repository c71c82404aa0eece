// SPDX-License-Identifier: GPL-2.0-or-later
//! What changed from one summary to another, number by number. It says how large a difference is, not
//! whether it would show up again.

use crate::{Mismatch, Quantile, Statistic, Summary};
use sample::Losses;

/// One statistic before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Which.
    pub statistic: Statistic,
    /// Before, in ns; absent where there were too few samples for it.
    pub before_ns: Option<f64>,
    /// After, in ns; absent where there were too few samples for it.
    pub after_ns: Option<f64>,
}

impl Difference {
    /// After minus before, in ns; positive is slower.
    pub fn absolute_ns(&self) -> Option<f64> {
        Some(self.after_ns? - self.before_ns?)
    }

    /// The absolute difference as a share of before: 0.1 is 10 % slower. Absent where before is 0.
    pub fn relative(&self) -> Option<f64> {
        let before = self.before_ns.filter(|ns| *ns != 0.0)?;
        Some(self.absolute_ns()? / before)
    }
}

/// Two summaries side by side, with the losses without which their maxima are no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Samples before and after.
    pub count: (u64, u64),
    /// Losses before and after.
    pub losses: (Losses, Losses),
    /// Mean, each quantile, maximum.
    pub differences: Vec<Difference>,
}

/// Compares two summaries, which may be of different responders.
///
/// # Errors
/// Numbers of different clocks do not share an axis: [`Mismatch::Clock`].
pub fn compare(before: &Summary, after: &Summary) -> Result<Comparison, Mismatch> {
    if before.clock != after.clock {
        return Err(Mismatch::Clock(before.clock, after.clock));
    }
    let quantiles = Quantile::ALL.into_iter().map(Statistic::Quantile);
    let statistics = [Statistic::Mean].into_iter().chain(quantiles).chain([Statistic::Max]);
    let differences = statistics.map(|statistic| Difference {
        statistic,
        before_ns: statistic.of(before),
        after_ns: statistic.of(after),
    });
    Ok(Comparison {
        count: (before.count, after.count),
        losses: (before.losses, after.losses),
        differences: differences.collect(),
    })
}
