// SPDX-License-Identifier: GPL-2.0-or-later
//! What a follower takes at a place that it was told to watch: the `taken` of [`Event::Enter`](crate::Event::Enter).
//! And the word for it in the plan that the host writes and the plugin reads.

use core::fmt;
use core::str::FromStr;

/// What to take at a watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Nothing: 0.
    Nothing,
    /// The function's first argument (`rdi`; System V ABI for amd64, 3.2.3).
    First,
    /// Its second argument (`rsi`).
    Second,
    /// The lower half of that, which is all of it where it is an `int`.
    Count,
    /// The 64-bit word in memory this many bytes after where the first argument points.
    Word(u64),
    /// The word on top of the stack: the vector, in an interrupt's common entry.
    Top,
}

/// A word that says nothing of what to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATake;

impl fmt::Display for NotATake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is none of nothing, first, second, count, top, and no number of bytes")
    }
}

impl core::error::Error for NotATake {}

impl fmt::Display for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Take::Nothing => f.write_str("nothing"),
            Take::First => f.write_str("first"),
            Take::Second => f.write_str("second"),
            Take::Count => f.write_str("count"),
            Take::Word(offset) => offset.fmt(f),
            Take::Top => f.write_str("top"),
        }
    }
}

impl FromStr for Take {
    type Err = NotATake;

    fn from_str(word: &str) -> Result<Take, NotATake> {
        match word {
            "nothing" => Ok(Take::Nothing),
            "first" => Ok(Take::First),
            "second" => Ok(Take::Second),
            "count" => Ok(Take::Count),
            "top" => Ok(Take::Top),
            offset => offset.parse().map(Take::Word).map_err(|_| NotATake),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_taken_reads_back_from_its_word() {
        let all =
            [Take::Nothing, Take::First, Take::Second, Take::Count, Take::Word(24), Take::Top];
        for take in all {
            assert_eq!(take.to_string().parse(), Ok(take));
        }
        assert_eq!("third".parse::<Take>(), Err(NotATake));
    }
}
