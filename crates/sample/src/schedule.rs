// SPDX-License-Identifier: GPL-2.0-or-later
//! When the line is raised. A schedule is a pure function of the configuration, so the same seed gives the same
//! instants on every machine.

use crate::Nanos;
use alloc::vec::Vec;

/// The instants of triggers, since the beginning of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Trigger n at `phase + n·period + jitter(n)`, jitter drawn evenly from 0 … `jitter`.
    Periodic {
        /// From the beginning of measuring to the first trigger (before its jitter).
        phase: Nanos,
        /// Distance of the undisturbed instants; above 0.
        period: Nanos,
        /// Largest displacement; below the period, so that triggers keep their order.
        jitter: Nanos,
        /// Seed of the displacements.
        seed: u64,
        /// How many triggers.
        count: u64,
    },
    /// Exactly these instants since the beginning of measuring, rising.
    Explicit(Vec<Nanos>),
}

impl Schedule {
    /// How many triggers there will be.
    pub fn count(&self) -> u64 {
        match self {
            Schedule::Periodic { count, .. } => *count,
            Schedule::Explicit(times) => times.len() as u64,
        }
    }

    /// The shortest time between two triggers that the schedule allows; `None` for a single one.
    pub fn shortest_gap(&self) -> Option<Nanos> {
        match self {
            Schedule::Periodic { count: 0 | 1, .. } => None,
            Schedule::Periodic { period, jitter, .. } => Some(*period - *jitter),
            Schedule::Explicit(times) => times.windows(2).map(|w| w[1] - w[0]).min(),
        }
    }

    /// When the last trigger comes at the latest; `None` where there is none, or beyond 2⁶⁴−1 ns.
    pub fn end(&self) -> Option<Nanos> {
        match self {
            Schedule::Periodic { phase, period, jitter, count, .. } => {
                let periods = period.checked_mul(count.checked_sub(1)?)?;
                phase.checked_add(periods)?.checked_add(*jitter)
            }
            Schedule::Explicit(times) => times.last().copied(),
        }
    }

    /// No two triggers, nor the beginning and the first, are further apart than this.
    pub fn longest_gap(&self) -> Nanos {
        match self {
            Schedule::Periodic { phase, period, jitter, .. } => {
                (*phase).max(*period).saturating_add(*jitter)
            }
            Schedule::Explicit(times) => {
                let first = times.first().copied().unwrap_or_default();
                times.windows(2).map(|w| w[1] - w[0]).max().unwrap_or_default().max(first)
            }
        }
    }

    /// When trigger `n` is due, since the beginning of measuring; `None` after the last one or where
    /// the time does not fit 64 bits.
    pub fn due(&self, n: u64) -> Option<Nanos> {
        match self {
            Schedule::Periodic { phase, period, jitter, seed, count } => {
                if n >= *count {
                    return None;
                }
                let base = phase.checked_add(period.checked_mul(n)?)?;
                base.checked_add(displacement(*seed, n, *jitter))
            }
            Schedule::Explicit(times) => times.get(usize::try_from(n).ok()?).copied(),
        }
    }
}

/// Evenly distributed over 0 … `max`, from a counter-based generator: no state to save or restore.
pub fn displacement(seed: u64, n: u64, max: Nanos) -> Nanos {
    let random = splitmix64(seed ^ splitmix64(n));
    // Multiply-shift instead of modulo: even to within 2⁻⁶⁴·max.
    Nanos(((u128::from(random) * (u128::from(max.0) + 1)) >> 64) as u64)
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn periodic(jitter: u64, seed: u64) -> Schedule {
        Schedule::Periodic {
            phase: Nanos(500),
            period: Nanos(1_000),
            jitter: Nanos(jitter),
            seed,
            count: 1_000,
        }
    }

    fn times(schedule: &Schedule) -> Vec<u64> {
        (0..).map_while(|n| schedule.due(n)).map(|t| t.0).collect()
    }

    #[test]
    fn without_jitter_the_instants_are_the_period_apart() {
        let times = times(&periodic(0, 7));
        assert_eq!(times.len(), 1_000);
        assert_eq!(times[0], 500);
        assert!(times.windows(2).all(|w| w[1] - w[0] == 1_000));
    }

    #[test]
    fn a_seed_repeats_its_instants_and_another_seed_has_others() {
        assert_eq!(times(&periodic(200, 1)), times(&periodic(200, 1)));
        assert_ne!(times(&periodic(200, 1)), times(&periodic(200, 2)));
    }

    #[test]
    fn jitter_covers_its_range_evenly() {
        let offsets: Vec<u64> = times(&periodic(99, 3))
            .iter()
            .enumerate()
            .map(|(n, t)| t - 500 - 1_000 * n as u64)
            .collect();
        assert!(offsets.iter().all(|&o| o <= 99));
        let mean = offsets.iter().sum::<u64>() as f64 / offsets.len() as f64;
        // 1000 draws from 0…99: the mean's standard error is 0.9.
        assert!((mean - 49.5).abs() < 4.0, "mean {mean}");
    }

    #[test]
    fn no_gap_is_longer_than_the_longest() {
        for schedule in
            [periodic(200, 5), Schedule::Explicit(vec![Nanos(70), Nanos(90), Nanos(95)])]
        {
            let times = times(&schedule);
            let gaps = times.iter().zip(std::iter::once(&0).chain(&times)).map(|(b, a)| b - a);
            assert!(gaps.max().unwrap() <= schedule.longest_gap().0, "{schedule:?}");
        }
    }

    #[test]
    fn an_explicit_list_is_kept_to_the_nanosecond() {
        let schedule = Schedule::Explicit(vec![Nanos(3), Nanos(1_000_007)]);
        assert_eq!(schedule.count(), 2);
        assert_eq!(times(&schedule), [3, 1_000_007]);
    }

    proptest! {
        #[test]
        fn triggers_keep_their_order(period in 1u64..1 << 30, seed: u64, share in 0.0..1.0) {
            let jitter = ((period as f64 * share) as u64).min(period - 1);
            let schedule = Schedule::Periodic {
                phase: Nanos(0), period: Nanos(period), jitter: Nanos(jitter), seed, count: 50,
            };
            let times = times(&schedule);
            prop_assert!(times.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
