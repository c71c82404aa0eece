// SPDX-License-Identifier: GPL-2.0-or-later
//! The extreme-value estimate: a generalised Pareto distribution of what exceeds a threshold.
//!
//! It is fitted by probability-weighted moments: J. R. M. Hosking and J. R. Wallis, "Parameter and Quantile Estimation
//! for the Generalized Pareto Distribution", Technometrics 29(3), 1987, section 3. The estimate holds for independent
//! draws from one distribution. Latencies with several causes are none.

use sample::Nanos;

/// The fewest latencies above the threshold. Below 50 the estimates of the shape scatter widely (table 2 of the paper).
const EXCEEDING_MIN: usize = 50;

/// A generalised Pareto distribution above a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// The threshold.
    pub threshold: Nanos,
    /// The share of all latencies that exceed it, 0 … 1.
    pub share: f64,
    /// The scale (α in the paper), in nanoseconds.
    pub scale: f64,
    /// The shape (k in the paper). Above 0 there is a longest latency.
    pub shape: f64,
}

impl Pareto {
    /// The fit to those of `rising` that exceed the one at `threshold`. `None` if too few do, or if all that do are
    /// alike.
    pub fn fit(rising: &[Nanos], threshold: usize) -> Option<Pareto> {
        let at = *rising.get(threshold)?;
        let exceeding = &rising[rising.partition_point(|latency| *latency <= at)..];
        if exceeding.len() < EXCEEDING_MIN {
            return None;
        }
        let count = exceeding.len() as f64;
        let beyond = || exceeding.iter().map(|latency| (*latency - at).0 as f64);
        let mean = beyond().sum::<f64>() / count;
        let weighted = beyond().zip(1u32..).map(|(y, i)| (1.0 - (f64::from(i) - 0.35) / count) * y);
        let weighted = weighted.sum::<f64>() / count;
        let difference = mean - 2.0 * weighted;
        // Of equal excesses the moments are those of no such distribution.
        if difference <= mean * 1e-9 || exceeding[0] == exceeding[exceeding.len() - 1] {
            return None;
        }
        Some(Pareto {
            threshold: at,
            share: count / rising.len() as f64,
            scale: 2.0 * mean * weighted / difference,
            shape: mean / difference - 2.0,
        })
    }

    /// The latency that one of so many exceeds, by this estimate. The threshold, if more exceed even that.
    pub fn exceeded_once_in(&self, many: u64) -> Nanos {
        let ratio = 1.0 / (many.max(1) as f64 * self.share);
        if ratio >= 1.0 {
            return self.threshold;
        }
        let beyond = match self.shape.abs() < 1e-9 {
            true => -self.scale * ratio.ln(),
            false => self.scale / self.shape * (1.0 - ratio.powf(self.shape)),
        };
        self.threshold.saturating_add(Nanos(beyond.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies at the quantiles of a generalised Pareto distribution above 1 µs, of which a tenth exceeds 10 µs.
    fn latencies(scale: f64, shape: f64) -> Vec<Nanos> {
        let tail = (0..1_000).map(|n| {
            let above: f64 = 1.0 - (f64::from(n) + 0.5) / 1_000.0;
            let beyond = match shape == 0.0 {
                true => -scale * above.ln(),
                false => scale / shape * (1.0 - above.powf(shape)),
            };
            Nanos(10_001 + beyond.round() as u64)
        });
        let body = (0..9_000).map(|n| Nanos(1_000 + n));
        body.chain([Nanos(10_000)]).chain(tail).collect()
    }

    #[test]
    fn the_parameters_of_a_distribution_are_found_again() {
        for (scale, shape) in [(2_000.0, 0.0), (2_000.0, 0.3), (2_000.0, 1.0), (2_000.0, -0.2)] {
            let fit = Pareto::fit(&latencies(scale, shape), 9_000).expect("a fit");
            assert_eq!(fit.threshold, Nanos(10_000));
            assert!((fit.scale / scale - 1.0).abs() < 0.05, "{scale} {shape}: {fit:?}");
            assert!((fit.shape - shape).abs() < 0.05, "{scale} {shape}: {fit:?}");
        }
    }

    #[test]
    fn what_is_exceeded_once_in_so_many_is_that_of_the_distribution() {
        let fit = Pareto { threshold: Nanos(10_000), share: 0.1, scale: 2_000.0, shape: 0.0 };
        // A tenth exceeds the threshold, and of these one in e exceeds it by the scale.
        assert_eq!(fit.exceeded_once_in(27), Nanos(11_987));
        assert_eq!(fit.exceeded_once_in(10), Nanos(10_000));
        assert_eq!(fit.exceeded_once_in(1), Nanos(10_000));
        let ends = Pareto { shape: 1.0, ..fit };
        assert!(ends.exceeded_once_in(u64::MAX) <= Nanos(12_000));
        assert!(ends.exceeded_once_in(1_000_000) >= Nanos(11_999));
    }

    #[test]
    fn few_or_equal_excesses_have_no_fit() {
        let rising: Vec<Nanos> = (0..100).map(Nanos).collect();
        assert_eq!(Pareto::fit(&rising, 60), None);
        assert!(Pareto::fit(&rising, 40).is_some());
        let equal: Vec<Nanos> = (0..1_000).map(|n| Nanos(if n < 500 { 1 } else { 2 })).collect();
        assert_eq!(Pareto::fit(&equal, 400), None);
        assert_eq!(Pareto::fit(&[], 0), None);
    }
}
