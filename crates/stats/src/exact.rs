// SPDX-License-Identifier: GPL-2.0-or-later
//! The numbers that are kept exactly beside the histogram, whose buckets are quantised: count, extremes and two integer
//! sums. Mean and standard deviation follow from the sums, and their rounding does not depend on the order of
//! recording.

/// Exact moments of a set of numbers, each at most [`Quantity::LARGEST`](sample::Quantity::LARGEST).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub count: u64,
    /// `u64::MAX` while empty, so that recording needs no branch; never shown.
    min: u64,
    max: u64,
    sum: u128,
    /// A number is below 2⁴⁸, its square below 2⁹⁶: 2³² samples of three days each fit.
    sum_squares: u128,
}

impl Exact {
    pub const EMPTY: Exact = Exact { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 };

    pub fn record(&mut self, number: u64) {
        self.count += 1;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.sum += u128::from(number);
        self.sum_squares += u128::from(number) * u128::from(number);
    }

    pub fn merge(&mut self, other: &Exact) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
    }

    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    pub fn mean(&self) -> Option<f64> {
        let n = u128::from(self.count);
        // Whole and fraction apart: a sum beyond 2⁵³ would lose digits before the division.
        (n > 0).then(|| (self.sum / n) as f64 + (self.sum % n) as f64 / n as f64)
    }

    /// Standard deviation of the population (divisor n, as HdrHistogram has it).
    pub fn stddev(&self) -> Option<f64> {
        let n = u128::from(self.count);
        if n == 0 {
            return None;
        }
        // With q = ⌊S/n⌋ and r = S mod n:  Σ(x−q)² = (Σx² − qS) − qr  and  Σ(x−mean)² = Σ(x−q)² − r²/n.
        // No step leaves u128: qS ≤ S²/n ≤ Σx² (Cauchy–Schwarz), and both differences are sums of squares.
        let (q, r) = (self.sum / n, self.sum % n);
        let about_q = self.sum_squares - q * self.sum - q * r;
        let n = n as f64;
        let r = r as f64;
        // Rounding may leave a tiny negative where all samples are equal up to one.
        Some(((about_q as f64 - r * r / n) / n).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Exact {
        let mut exact = Exact::EMPTY;
        values.iter().for_each(|v| exact.record(*v));
        exact
    }

    #[test]
    fn a_small_spread_on_a_huge_offset_keeps_its_deviation() {
        // In floats, Σx² − n·mean² would cancel to noise here.
        let exact = of(&[(1 << 47) + 1, (1 << 47) + 3]);
        assert_eq!(exact.mean(), Some(((1u64 << 47) + 2) as f64));
        assert_eq!(exact.stddev(), Some(1.0));
    }

    #[test]
    fn equal_samples_have_no_deviation_and_none_have_no_moments() {
        assert_eq!(of(&[7, 7, 7]).stddev(), Some(0.0));
        assert_eq!(of(&[]).mean(), None);
        assert_eq!(of(&[]).min(), None);
        assert_eq!(of(&[0]).max(), Some(0));
    }

    #[test]
    fn the_textbook_example_has_deviation_two() {
        let exact = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((exact.mean(), exact.stddev()), (Some(5.0), Some(2.0)));
    }
}
