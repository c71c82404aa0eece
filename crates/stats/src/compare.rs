// SPDX-License-Identifier: GPL-2.0-or-later
//! What changed from one summary to another, number by number. A comparison says how large a difference is. It does not
//! say whether the difference would show up again.

use crate::{Mismatch, Quantile, Statistic, Summary};
use sample::{Losses, Quantity, QuantityKind};

/// One statistic before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Which.
    pub statistic: Statistic,
    /// Of what.
    pub quantity: QuantityKind,
    /// Before, in the quantity's unit; absent where there were too few samples for it.
    pub before: Option<f64>,
    /// After, in the quantity's unit; absent where there were too few samples for it.
    pub after: Option<f64>,
}

impl Difference {
    /// After minus before, in the quantity's unit; positive is slower where it is a time.
    pub fn absolute(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }

    /// The absolute difference as a share of before: 0.1 is 10 % slower where it is a time. Absent where before is 0.
    pub fn relative(&self) -> Option<f64> {
        let before = self.before.filter(|number| *number != 0.0)?;
        Some(self.absolute()? / before)
    }

    /// Whether it is worse after than before: longer, for a time; less, for a throughput.
    pub fn is_worse(&self) -> Option<bool> {
        let more = self.absolute()?;
        Some(if self.quantity.more_is_better() { more < 0.0 } else { more > 0.0 })
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
pub fn compare<Q: Quantity>(
    before: &Summary<Q>,
    after: &Summary<Q>,
) -> Result<Comparison, Mismatch> {
    if before.clock != after.clock {
        return Err(Mismatch::Clock(before.clock, after.clock));
    }
    let quantiles = Quantile::ALL.into_iter().map(Statistic::Quantile);
    let statistics = [Statistic::Mean].into_iter().chain(quantiles).chain([Statistic::Max]);
    let differences = statistics.map(|statistic| Difference {
        statistic,
        quantity: Q::KIND,
        before: statistic.of(before),
        after: statistic.of(after),
    });
    Ok(Comparison {
        count: (before.count, after.count),
        losses: (before.losses, after.losses),
        differences: differences.collect(),
    })
}
