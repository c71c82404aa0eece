// SPDX-License-Identifier: GPL-2.0-or-later
//! The random numbers of one trial. They follow from the hunt's seed and the trial's number alone.

/// The generator SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
pub(crate) struct Dice(u64);

/// The generator's step: 2⁶⁴ divided by the golden ratio, made odd (section 5 of the paper).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    /// The random numbers of trial `number` in a hunt with this seed.
    pub fn new(seed: u64, number: u64) -> Dice {
        let mut dice = Dice(seed);
        Dice(dice.next() ^ number.wrapping_mul(STEP))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end` − 1. `end` is small against 2⁶⁴, so the remainder is even enough.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
