// SPDX-License-Identifier: GPL-2.0-or-later
//! By lot, from a seed: which block of a pair comes first, and which changes a block of a screening has.
//!
//! Chance alone decides the order, for each pair anew. So a change that does nothing makes the number fall in one half
//! of the pairs and rise in the other, however the machine drifts and however its blocks depend on each other: the sign
//! test of [`Paired`](crate::Paired) needs nothing else.

use sample::{Nanos, displacement};

/// Whether pair `number` of a proof begins with the block that has the change.
pub fn is_changed_first(seed: u64, number: u64) -> bool {
    displacement(seed, number, Nanos(1)) == Nanos(1)
}

/// Which of `changes` the one block of pair `number` of a screening has: half of them, drawn by lot. The other block
/// has all others. If the number of changes is odd, the one block has one less.
pub fn half(seed: u64, number: u64, changes: usize) -> Vec<bool> {
    // Fisher and Yates' shuffle, with draws of their own for each pair.
    let seed = displacement(seed, number, Nanos(u64::MAX)).0;
    let mut order: Vec<usize> = (0..changes).collect();
    for last in (1..changes).rev() {
        order.swap(last, displacement(seed, last as u64, Nanos(last as u64)).0 as usize);
    }
    let mut is_in = vec![false; changes];
    order[..changes / 2].iter().for_each(|change| is_in[*change] = true);
    is_in
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_block_is_first_in_half_of_the_pairs() {
        let first = (0..10_000).filter(|number| is_changed_first(7, *number)).count();
        assert!((4_800..=5_200).contains(&first), "{first}");
        let differ = |seed| (0..64).any(|n| is_changed_first(seed, n) != is_changed_first(7, n));
        assert!(differ(8) && !differ(7));
    }

    #[test]
    fn a_half_has_each_change_and_each_two_changes_as_often_as_others() {
        let halves: Vec<_> = (0..12_000).map(|number| half(3, number, 5)).collect();
        assert!(halves.iter().all(|half| half.iter().filter(|is| **is).count() == 2));
        for a in 0..5 {
            let with = halves.iter().filter(|half| half[a]).count();
            assert!((4_600..=5_000).contains(&with), "{a}: {with} of 12,000; 4,800 are expected");
            for b in 0..a {
                let both = halves.iter().filter(|half| half[a] && half[b]).count();
                assert!((1_100..=1_300).contains(&both), "{a}, {b}: {both}; 1,200 are expected");
            }
        }
        assert_eq!((half(3, 0, 1), half(3, 0, 0)), (vec![false], vec![]));
    }
}
