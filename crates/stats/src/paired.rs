// SPDX-License-Identifier: GPL-2.0-or-later
//! Judges a change by pairs: a number without the change and the same number with it, each pair measured alike.

use serde::Serialize;

/// How often chance alone may call a change an effect: one of 20.
const CHANCE: f64 = 0.05;
/// The most pairs that are ever asked for.
const PAIRS_MAX: u32 = 10_000;

/// What pairs say of a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Effect {
    /// The number falls. Chance alone does this in less than one of 20 cases.
    Helps,
    /// The number rises. Chance alone does this in less than one of 20 cases.
    Harms,
    /// If there is an effect, it is smaller than the smallest one that counts.
    NoEffectSeen,
    /// Neither can be told.
    CannotTell {
        /// How many more pairs would tell, if these go on as those did; absent if they fall as often as they rise.
        more_pairs: Option<u32>,
    },
}

/// Pairs of a number, without a change and with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Paired {
    /// In how many pairs the number falls.
    pub fell: u32,
    /// In how many pairs it rises.
    pub rose: u32,
    /// In how many pairs it stays the same.
    pub same: u32,
    /// With the change, divided by without it: the median of the pairs.
    pub ratio_median: f64,
    /// The interval of this median, from the order of the pairs; the bounds are pairs. It covers the true median in
    /// more than 19 of 20 cases; absent if there are too few pairs.
    pub ratio_interval: Option<(f64, f64)>,
    /// What they say.
    pub effect: Effect,
}

impl Paired {
    /// Judges pairs `(without, with)`. `smallest` is the smallest effect that counts, as a share (0.05 for 5 %). None
    /// without pairs, or if a number is not above zero.
    ///
    /// A change helps or harms by the sign test (Dixon, Mood 1946), which knows nothing of how the numbers are spread:
    /// a maximum is spread like nothing else. The same sign in six of six pairs is enough, in five of five it is not.
    pub fn of(pairs: &[(f64, f64)], smallest: f64) -> Option<Paired> {
        let is_sound = |(a, b): &(f64, f64)| *a > 0.0 && *b > 0.0;
        if pairs.is_empty() || !pairs.iter().all(is_sound) {
            return None;
        }
        let count =
            |is: &dyn Fn(&(f64, f64)) -> bool| pairs.iter().filter(|p| is(p)).count() as u32;
        let (fell, rose) = (count(&|(a, b)| b < a), count(&|(a, b)| b > a));
        let mut ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio_interval = interval(&ratios);
        let is_small = |ratio: f64| (ratio - 1.0).abs() < smallest;
        let effect = match ratio_interval {
            _ if is_beyond_chance(fell, rose) && fell > rose => Effect::Helps,
            _ if is_beyond_chance(fell, rose) => Effect::Harms,
            Some((low, high)) if is_small(low) && is_small(high) => Effect::NoEffectSeen,
            _ => Effect::CannotTell { more_pairs: more(fell, rose, pairs.len() as u32) },
        };
        let same = pairs.len() as u32 - fell - rose;
        Some(Paired { fell, rose, same, ratio_median: median(&ratios), ratio_interval, effect })
    }

    /// Whether a screening keeps the change for a proof of its own: the number falls more often than it rises.
    pub fn may_help(&self) -> bool {
        self.fell > self.rose
    }
}

/// The median of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[half],
    }
}

/// The interval of the median of sorted numbers: from the k-th to the k-th from the end.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len() as u32;
    let outside = |k: u32| 2.0 * at_most(k - 1, n);
    let k = (1..=n / 2).take_while(|k| outside(*k) < CHANCE).last()? as usize;
    Some((sorted[k - 1], sorted[sorted.len() - k]))
}

/// Whether so uneven a split is rarer than [`CHANCE`] if both signs are as likely.
fn is_beyond_chance(fell: u32, rose: u32) -> bool {
    let n = fell + rose;
    n > 0 && 2.0 * at_most(fell.min(rose), n) < CHANCE
}

/// The chance of at most `k` heads in `n` throws of a coin.
fn at_most(k: u32, n: u32) -> f64 {
    // The terms of the binomial distribution, each from the one before, as logarithms: 2^-n is too small for n > 1000.
    let mut log_term = -f64::from(n) * std::f64::consts::LN_2;
    let mut sum = log_term.exp();
    for i in 1..=k {
        log_term += (f64::from(n - i + 1) / f64::from(i)).ln();
        sum += log_term.exp();
    }
    sum
}

/// How many more pairs are beyond chance, if they fall and rise in the same proportion.
fn more(fell: u32, rose: u32, pairs: u32) -> Option<u32> {
    if fell == rose {
        return None;
    }
    let share = f64::from(fell.min(rose)) / f64::from(pairs);
    let greater = f64::from(fell.max(rose)) / f64::from(pairs);
    let would = |n: &u32| {
        let of = |share: f64| (share * f64::from(*n)).round() as u32;
        is_beyond_chance(of(share), of(greater))
    };
    // Steps of 2 %: the proportion is not known better, and there are thousands of numbers of pairs.
    let next = |n: &u32| Some(n + (n / 50).max(1));
    let mut numbers = std::iter::successors(Some(pairs + 1), next).take_while(|n| *n <= PAIRS_MAX);
    numbers.find(would).map(|n| n - pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(pairs: &[(f64, f64)]) -> Effect {
        Paired::of(pairs, 0.05).expect("pairs").effect
    }

    #[test]
    fn the_same_sign_in_six_pairs_is_an_effect_and_in_five_it_is_not() {
        let lower = [(10.0, 7.0); 6];
        assert_eq!(effect(&lower), Effect::Helps);
        assert_eq!(effect(&lower.map(|(a, b)| (b, a))), Effect::Harms);
        assert_eq!(effect(&lower[..5]), Effect::CannotTell { more_pairs: Some(1) });
    }

    #[test]
    fn equal_numbers_have_no_effect_and_few_of_them_say_so_little() {
        assert_eq!(effect(&[(5.0, 5.0); 6]), Effect::NoEffectSeen);
        assert_eq!(effect(&[(5.0, 5.0); 5]), Effect::CannotTell { more_pairs: None });
    }

    #[test]
    fn a_small_effect_in_every_pair_is_an_effect() {
        let paired = Paired::of(&[(100.0, 99.0); 8], 0.05).unwrap();
        assert_eq!(
            (paired.effect, paired.fell, paired.rose, paired.same),
            (Effect::Helps, 8, 0, 0)
        );
        assert_eq!(paired.ratio_interval, Some((0.99, 0.99)));
    }

    #[test]
    fn pairs_that_fall_and_rise_alike_tell_nothing_if_they_are_far_apart() {
        let pairs = [(1.0, 2.0), (2.0, 1.0), (1.0, 3.0), (3.0, 1.0), (1.0, 2.0), (2.0, 1.0)];
        assert_eq!(effect(&pairs), Effect::CannotTell { more_pairs: None });
        let near = pairs.map(|(a, b)| (100.0 + a, 100.0 + b));
        assert_eq!(effect(&near), Effect::NoEffectSeen);
    }

    #[test]
    fn the_chances_are_those_of_a_coin() {
        assert!((at_most(0, 6) - 1.0 / 64.0).abs() < 1e-12);
        assert!((at_most(1, 6) - 7.0 / 64.0).abs() < 1e-12);
        assert!((at_most(6, 6) - 1.0).abs() < 1e-12);
        assert!((at_most(1000, 2001) - 0.5).abs() < 1e-9);
    }

    /// Of changes that do nothing, at most one of 20 is called an effect.
    #[test]
    fn chance_alone_is_seldom_called_an_effect() {
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Long tails, as maxima have.
            1.0 / (0.01 + (state >> 40) as f64 / (1u64 << 24) as f64)
        };
        let mut effects = 0;
        for _ in 0..4000 {
            let pairs: Vec<_> = (0..6).map(|_| (draw(), draw())).collect();
            effects += u32::from(matches!(effect(&pairs), Effect::Helps | Effect::Harms));
        }
        assert!((60..=200).contains(&effects), "{effects} of 4000; 125 are expected");
    }

    #[test]
    fn nothing_is_judged_by_no_pairs_or_by_zeros() {
        assert_eq!(Paired::of(&[], 0.05), None);
        assert_eq!(Paired::of(&[(0.0, 1.0)], 0.05), None);
    }
}
