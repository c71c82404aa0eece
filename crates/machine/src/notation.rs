// SPDX-License-Identifier: GPL-2.0-or-later
//! How a setting is read back: what of a file's text is the value, and when two texts are the same value. Pure.

use crate::partition::Partition;
use probes::context::{chosen, cpu_list, cpu_mask};
use serde::{Deserialize, Serialize};

/// How the text of a file gives its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notation {
    /// The whole text. Spaces, tabs and line ends part words and mean nothing else.
    #[default]
    Words,
    /// Words of which the kernel takes the first ones alone, too: `3` and `3 4 1 7` are the same value.
    Leading,
    /// The word in brackets, as in `always [madvise] never`.
    Brackets,
    /// The word in parentheses, as in `none voluntary (full)`.
    Parentheses,
    /// A list of CPUs, as in `0-2,5`.
    Cpus,
    /// A mask of CPUs, as in `ff,ffffffff`.
    Mask,
    /// An isolated partition of CPUs: these CPUs, or a text that says how far it is made.
    Partition,
    /// Every byte counts.
    Exact,
}

impl Notation {
    /// The value in a text, as onset shows it.
    pub fn value(self, text: &str) -> String {
        let words = || text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Notation::Brackets => chosen(text, '[', ']').map_or_else(words, str::to_owned),
            Notation::Parentheses => chosen(text, '(', ')').map_or_else(words, str::to_owned),
            Notation::Partition => Partition::of(text).shown(),
            Notation::Exact => text.to_owned(),
            Notation::Words | Notation::Leading | Notation::Cpus | Notation::Mask => words(),
        }
    }

    /// Whether both texts are the same value, however the kernel writes it.
    pub fn is_same(self, a: &str, b: &str) -> bool {
        if self == Notation::Partition {
            return is_same_partition(&Partition::of(a), &Partition::of(b));
        }
        let (a, b) = (self.value(a), self.value(b));
        let alike = match self {
            Notation::Cpus => equal(cpu_list(&a), cpu_list(&b)),
            Notation::Mask => equal(cpu_mask(&a), cpu_mask(&b)),
            Notation::Words => equal(a.parse::<i128>().ok(), b.parse().ok()),
            Notation::Leading => Some(a.split(' ').zip(b.split(' ')).all(|(a, b)| a == b)),
            Notation::Brackets | Notation::Parentheses | Notation::Partition | Notation::Exact => {
                None
            }
        };
        alike.unwrap_or(a == b)
    }

    /// Whether `now` is a state on the way to `new`, of a setting that takes several steps.
    pub fn is_step(self, now: &str, new: &str) -> bool {
        self == Notation::Partition && Partition::of(now).is_on_the_way_to(&Partition::of(new))
    }

    /// What is written to give a file the value that this text of it had. The kernel takes a word alone where it shows
    /// all words; anything else is written as it was read.
    pub fn written(self, text: &str) -> String {
        match self {
            Notation::Brackets | Notation::Parentheses => self.value(text),
            _ => text.to_owned(),
        }
    }
}

fn is_same_partition(a: &Partition, b: &Partition) -> bool {
    (&a.kind, a.controller) == (&b.kind, b.controller) && a.has_cpus_of(b)
}

/// Whether both are equal, if both are known.
fn equal<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<bool> {
    Some(a? == b?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_what_the_kernel_marks_and_is_written_alone() {
        let thp = "always [madvise] never\n";
        assert_eq!(Notation::Brackets.value(thp), "madvise");
        assert_eq!(Notation::Brackets.written(thp), "madvise");
        assert_eq!(Notation::Parentheses.value("none voluntary (full)\n"), "full");
        assert_eq!(Notation::Words.value("4\t4\t1\t7\n"), "4 4 1 7");
        assert_eq!(Notation::Words.written("4\t4\t1\t7\n"), "4\t4\t1\t7\n");
    }

    #[test]
    fn one_value_has_many_texts_and_two_values_are_never_the_same() {
        for (reading, a, b, is_same) in [
            (Notation::Words, "10\n", "10", true),
            (Notation::Words, "010", "10", true),
            (Notation::Words, "10", "100", false),
            (Notation::Words, "4 4 1 7", "4\t4\t1\t7\n", true),
            (Notation::Leading, "3", "3\t4\t1\t7\n", true),
            (Notation::Leading, "3", "4\t4\t1\t7\n", false),
            (Notation::Leading, "4 5", "4\t4\t1\t7\n", false),
            (Notation::Cpus, "0,1,2", "0-2\n", true),
            (Notation::Cpus, "0-2", "0-1", false),
            (Notation::Mask, "3", "00000003\n", true),
            (Notation::Mask, "3", "00000001,00000003", false),
            (Notation::Brackets, "[always] never", "always", true),
            (Notation::Brackets, "[always] never", "never", false),
            (Notation::Exact, "a ", "a", false),
        ] {
            assert_eq!(reading.is_same(a, b), is_same, "{reading:?} {a:?} {b:?}");
        }
    }

    #[test]
    fn a_text_of_another_form_is_compared_as_it_stands() {
        assert!(Notation::Cpus.is_same("(null)", "(null)\n"));
        assert!(!Notation::Mask.is_same("xyz", "3"));
        assert_eq!(Notation::Brackets.value("madvise\n"), "madvise");
    }
}
