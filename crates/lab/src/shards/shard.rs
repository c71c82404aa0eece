// SPDX-License-Identifier: GPL-2.0-or-later
//! Shards of a work: their numbers, and of how many.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The most shards of a work: those of an array of Slurm, unless its administrator allows more (slurm.conf,
/// MaxArraySize).
const MOST: u32 = 1_000;

/// A shard, written as in `3/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// From 1 up.
    number: u32,
    /// At least `number`.
    of: u32,
}

/// Shards that follow each other, written as in `3-7/64`. One shard is written as in `3/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRange {
    first: Shard,
    /// The number of the last one, at least that of the first.
    last: u32,
}

/// A text that names no shard, or a number of shards that a work cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write NUMBER/ALL as in 3/64, or FIRST-LAST/ALL as in 3-7/64, with numbers from 1 up and at most {MOST} in all"
)]
pub struct NotAShard;

impl Shard {
    /// All shards of a work that is divided into so many, in their order.
    ///
    /// # Errors
    /// If there are none, or too many.
    pub fn all(of: u32) -> Result<Vec<Shard>, NotAShard> {
        (1..=of.max(1)).map(|number| Shard::new(number, of)).collect()
    }

    fn new(number: u32, of: u32) -> Result<Shard, NotAShard> {
        let is_one = (1..=MOST).contains(&of) && (1..=of).contains(&number);
        is_one.then_some(Shard { number, of }).ok_or(NotAShard)
    }

    /// The shard's number, from 1 up.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many shards there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether the piece of work with this number is the shard's, where the pieces are dealt in turn.
    pub fn has(self, piece: usize) -> bool {
        piece % self.of as usize == (self.number - 1) as usize
    }

    /// The pieces that are the shard's, where each shard has as many that follow each other, or one more.
    pub fn range(self, pieces: usize) -> Range<usize> {
        let until =
            |shards: u32| (pieces as u128 * u128::from(shards) / u128::from(self.of)) as usize;
        until(self.number - 1)..until(self.number)
    }

    /// The seed of this shard of a work with a seed. No two shards have the same, and shards of other seeds have others
    /// as long as the works are divided alike.
    pub fn seed(self, seed: u64) -> u64 {
        seed.wrapping_mul(u64::from(self.of)).wrapping_add(u64::from(self.number - 1))
    }

    /// The shard's name in files: `3-of-64`.
    pub fn file_name(self) -> String {
        format!("{}-of-{}", self.number, self.of)
    }
}

impl ShardRange {
    /// The shards, in their order.
    pub fn shards(self) -> impl Iterator<Item = Shard> {
        let ShardRange { first: Shard { number, of }, last } = self;
        (number..=last).map(move |number| Shard { number, of })
    }

    /// How many shards the whole work has.
    pub fn of(self) -> u32 {
        self.first.of
    }
}

impl FromStr for ShardRange {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<ShardRange, NotAShard> {
        let (numbers, of) = text.split_once('/').ok_or(NotAShard)?;
        // The standard library takes a sign, too.
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let part = |text: &str| {
            let number = Some(text).filter(|text| is_number(text)).ok_or(NotAShard)?;
            number.parse().map_err(|_| NotAShard)
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let [first, last] = [first, last].map(|number| Shard::new(part(number)?, part(of)?));
        let (first, last) = (first?, last?.number);
        (first.number <= last).then_some(ShardRange { first, last }).ok_or(NotAShard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn shards_are_read_as_they_are_written_and_nothing_else_is_one() {
        let names = |text: &str| {
            let range: ShardRange = text.parse().unwrap();
            assert_eq!(range.of(), 64);
            range.shards().map(|shard| shard.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("3/64"), ["3/64"]);
        assert_eq!(names("3-3/64"), ["3/64"]);
        assert_eq!(names("62-64/64"), ["62/64", "63/64", "64/64"]);
        assert_eq!(Shard::new(3, 64).unwrap().file_name(), "3-of-64");
        let wrong = ["", "3", "0/4", "5/4", "1/0", "1/1001", "-1/4", "1/4/4", "x/4"];
        for wrong in
            wrong.into_iter().chain(["3-2/4", "0-2/4", "3-5/4", "1-2-3/4", "1-/4", "+1/4", "1/+4"])
        {
            assert_eq!(wrong.parse::<ShardRange>(), Err(NotAShard), "{wrong}");
        }
        assert_eq!((Shard::all(0), Shard::all(MOST + 1)), (Err(NotAShard), Err(NotAShard)));
    }

    #[test]
    fn each_piece_is_in_one_shard_however_pieces_are_dealt() {
        for (of, pieces) in [(1, 5), (3, 10), (7, 3), (64, 10_001)] {
            let shards = Shard::all(of).unwrap();
            let in_turn = |piece| shards.iter().filter(|shard| shard.has(piece)).count();
            assert!((0..pieces).all(|piece| in_turn(piece) == 1));
            let dealt: Vec<usize> = shards.iter().flat_map(|shard| shard.range(pieces)).collect();
            assert_eq!(dealt, (0..pieces).collect::<Vec<_>>());
            let lengths: BTreeSet<usize> = shards.iter().map(|s| s.range(pieces).len()).collect();
            assert!(lengths.last().unwrap() - lengths.first().unwrap() <= 1);
        }
    }

    #[test]
    fn shards_of_different_seeds_have_different_seeds() {
        let seeds =
            (0..20).flat_map(|seed| Shard::all(64).unwrap().into_iter().map(move |s| s.seed(seed)));
        assert_eq!(seeds.collect::<BTreeSet<u64>>().len(), 20 * 64);
        assert_eq!(Shard::new(1, 1).unwrap().seed(7), 7);
    }
}
