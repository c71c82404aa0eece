// SPDX-License-Identifier: GPL-2.0-or-later
//! Times that were added up. A sum is not a stretch: it is never shown without the number of its stretches and the
//! length of the longest one.

use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Stretches added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sum {
    /// All of their time.
    #[serde(rename = "ns")]
    pub time: Nanos,
    /// How many they are; 0 where that is not known, as in what was written before it was counted.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub stretches: u64,
    /// The longest of them; 0 where that is not known.
    #[serde(rename = "longest_ns", default)]
    pub longest: Nanos,
}

impl Sum {
    /// The sum of one stretch.
    pub fn of(time: Nanos) -> Sum {
        Sum { time, stretches: 1, longest: time }
    }

    /// Adds other stretches. If one of both sums does not know its number of stretches, the result does not know it
    /// either.
    pub fn add(&mut self, other: Sum) {
        let is_empty = *self == Sum::default();
        let known = (is_empty || self.stretches > 0) && other.stretches > 0;
        self.time += other.time;
        self.stretches = if known { self.stretches + other.stretches } else { 0 };
        self.longest = if known { self.longest.max(other.longest) } else { Nanos(0) };
    }

    /// Adds up consecutive lengths by their keys. Consecutive lengths of one key are one stretch.
    pub fn by<K: Ord + Clone>(lengths: impl IntoIterator<Item = (K, Nanos)>) -> BTreeMap<K, Sum> {
        let mut sums = BTreeMap::<K, Sum>::new();
        let mut goes_on: Option<(K, Nanos)> = None;
        let mut end = |ended: Option<(K, Nanos)>| {
            if let Some((key, time)) = ended {
                sums.entry(key).or_default().add(Sum::of(time));
            }
        };
        for (key, time) in lengths {
            match &mut goes_on {
                Some((same, so_far)) if *same == key => *so_far += time,
                _ => end(goes_on.replace((key, time))),
            }
        }
        end(goes_on);
        sums
    }
}

impl FromIterator<Sum> for Sum {
    fn from_iter<I: IntoIterator<Item = Sum>>(sums: I) -> Sum {
        let mut all = Sum::default();
        sums.into_iter().for_each(|sum| all.add(sum));
        all
    }
}

/// The text of a sum: `106 µs`, or `1.28 ms in 12 stretches, longest 106 µs`.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sum { time, stretches, longest } = self;
        match stretches {
            0 if time.0 > 0 => write!(f, "{time} in stretches that were not counted"),
            0 | 1 => write!(f, "{time}"),
            _ => write!(f, "{time} in {stretches} stretches, longest {longest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_goes_on_is_one_stretch_and_what_comes_again_is_another() {
        let lengths = [('a', 3), ('a', 4), ('b', 1), ('a', 5)].map(|(k, ns)| (k, Nanos(ns)));
        let sums = Sum::by(lengths);
        assert_eq!(sums[&'a'], Sum { time: Nanos(12), stretches: 2, longest: Nanos(7) });
        assert_eq!(sums[&'b'], Sum::of(Nanos(1)));
    }

    #[test]
    fn a_sum_is_shown_with_its_parts_and_a_stretch_without() {
        let sum: Sum = (0..12).map(|n| Sum::of(Nanos(n * 1_000))).collect();
        assert_eq!(sum.to_string(), "66.0 µs in 12 stretches, longest 11.0 µs");
        assert_eq!(Sum::of(Nanos(106_000)).to_string(), "106 µs");
        assert_eq!(Sum::default().to_string(), "0 ns");
    }

    #[test]
    fn a_sum_of_an_older_file_does_not_pretend_to_be_one_stretch() {
        let old: Sum = serde_json::from_str(r#"{"ns": 5000}"#).unwrap();
        assert_eq!(old.to_string(), "5.00 µs in stretches that were not counted");
        let mixed: Sum = [Sum::of(Nanos(1)), old].into_iter().collect();
        assert_eq!((mixed.stretches, mixed.longest), (0, Nanos(0)));
    }

    proptest! {
        #[test]
        fn sums_keep_all_the_time_and_their_longest_is_no_longer(
            lengths in prop::collection::vec((0u8..3, 0u64..1_000), 0..50)
        ) {
            let whole: u64 = lengths.iter().map(|(_, ns)| ns).sum();
            let sums = Sum::by(lengths.iter().map(|(k, ns)| (*k, Nanos(*ns))));
            prop_assert_eq!(sums.values().map(|s| s.time).sum::<Nanos>(), Nanos(whole));
            for sum in sums.values() {
                prop_assert!(sum.stretches > 0 && sum.longest <= sum.time);
                prop_assert!(sum.longest * sum.stretches >= sum.time);
            }
        }
    }
}
