// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user demands of a deadline: how many events may miss it, which share, how many one after the other, and how
//! many of each `k` consecutive ones have to meet it.
//!
//! The last of these is an (m,k)-firm deadline: "a stream is said to have (m,k)-firm deadlines if at least m out of any
//! k consecutive customers must meet their deadlines" (Hamdaoui and Ramanathan, A Dynamic Priority Assignment Technique
//! for Streams with (m,k)-Firm Deadlines, IEEE Transactions on Computers 44(12), 1995). Limits on consecutive misses
//! and on misses among consecutive events are the weakly hard constraints of Bernat, Burns and Llamosí (Weakly Hard
//! Real-Time Systems, IEEE Transactions on Computers 50(4), 2001).

use crate::Statistic;
use core::fmt;
use core::str::FromStr;
use sample::{Nanos, Quantity};
use serde::{Deserialize, Serialize};

/// The longest row of events for which an (m,k)-firm deadline can be stated. Its counter keeps the misses among the
/// last `k` events.
pub const FIRM_MAX: u64 = 1 << 16;

/// Which number of an answer must not be beyond what, and how often it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline<Q = Nanos> {
    /// An event is met if its number is not beyond this one.
    pub time: Q,
    /// How often it may be missed.
    pub tolerance: Tolerance,
}

/// How often a deadline may be missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "snake_case")]
pub enum Tolerance {
    /// So many events of a run may miss it.
    Misses {
        /// The greatest number of misses.
        most: u64,
    },
    /// That share of the events may miss it.
    Share {
        /// The greatest number of misses, below `of`.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        most: u64,
        /// Among so many events.
        of: u64,
    },
    /// So many events may miss it one after the other.
    Consecutive {
        /// The greatest number of consecutive misses.
        most: u64,
    },
    /// Of any `of` consecutive events so many have to meet it: an (m,k)-firm deadline.
    Firm {
        /// The least number of events that meet it (m).
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        least: u64,
        /// The length of the row (k).
        #[cfg_attr(feature = "schema", schemars(range(max = FIRM_MAX)))]
        of: u64,
    },
}

/// `at most 1 in 10000`.
impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Misses { most } | Tolerance::Consecutive { most } => {
                write!(f, "at most {most}")
            }
            Tolerance::Share { most, of } => write!(f, "at most {most} in {of}"),
            Tolerance::Firm { least, of } => write!(f, "at least {least} of {of}"),
        }
    }
}

impl Tolerance {
    /// What it is about.
    pub const fn constraint(self) -> Constraint {
        match self {
            Tolerance::Misses { .. } | Tolerance::Share { .. } => Constraint::Miss,
            Tolerance::Consecutive { .. } => Constraint::Consecutive,
            Tolerance::Firm { .. } => Constraint::Firm,
        }
    }
}

/// What of a deadline is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constraint {
    /// The misses, by number or by share.
    Miss,
    /// The misses one after the other.
    Consecutive,
    /// The events that meet it, of any so many consecutive ones.
    Firm,
}

impl Constraint {
    /// All of them.
    pub const ALL: [Constraint; 3] = [Constraint::Miss, Constraint::Consecutive, Constraint::Firm];

    /// The word in experiments and tables, before the deadline in parentheses.
    pub const fn name(self) -> &'static str {
        match self {
            Constraint::Miss => "miss",
            Constraint::Consecutive => "consecutive",
            Constraint::Firm => "firm",
        }
    }

    /// How its bound is written.
    const fn help(self) -> &'static str {
        match self {
            Constraint::Miss => {
                "write how many events may miss the deadline, as 0, or which share, as \"1 in 10000\""
            }
            Constraint::Consecutive => {
                "write how many events may miss the deadline one after the other, as 2"
            }
            Constraint::Firm => {
                "write how many of each so many consecutive events have to meet the deadline, as \"9 of 10\""
            }
        }
    }

    /// Reads a bound: `0`, `1 in 10000`, `9 of 10`.
    ///
    /// # Errors
    /// [`NotABound`] says how it is written.
    pub fn tolerance(self, text: &str) -> Result<Tolerance, NotABound> {
        let no = |why: String, help| NotABound { message: format!("{text:?} {why}"), help };
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| {
            let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
            word.parse::<u64>().ok().filter(|_| digits)
        };
        let two = |word: &str| match words[..] {
            [a, between, b] if between == word => Some((number(a)?, number(b)?)),
            _ => None,
        };
        let one = || words.first().filter(|_| words.len() == 1).and_then(|word| number(word));
        let tolerance = match self {
            Constraint::Miss => match (one(), two("in")) {
                (Some(most), _) => Some(Tolerance::Misses { most }),
                (None, Some((most, of))) => Some(Tolerance::Share { most, of }),
                (None, None) => None,
            },
            Constraint::Consecutive => one().map(|most| Tolerance::Consecutive { most }),
            Constraint::Firm => two("of").map(|(least, of)| Tolerance::Firm { least, of }),
        };
        match tolerance.ok_or_else(|| no(format!("is no bound of {}", self.name()), self.help()))? {
            Tolerance::Share { most: 0, .. } => Err(no("allows no miss at all".into(), "write 0")),
            Tolerance::Share { most, of } if most >= of => Err(no(
                "lets every event miss the deadline".into(),
                "the first number has to be below the second",
            )),
            Tolerance::Firm { least: 0, .. } => {
                Err(no("demands nothing".into(), "demand at least 1, or leave the limit out"))
            }
            Tolerance::Firm { least, of } if least > of => Err(no(
                format!("demands {least} of {of}"),
                "the first number is how many have to meet the deadline, and not above the second",
            )),
            Tolerance::Firm { of, .. } if of > FIRM_MAX => Err(no(
                "is about too many events".into(),
                "a row has at most 65536 events; limit the share by miss(…) instead",
            )),
            tolerance => Ok(tolerance),
        }
    }
}

/// A text is no bound of a limit on a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotABound {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: &'static str,
}

impl fmt::Display for NotABound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl core::error::Error for NotABound {}

/// What a limit is on: `max`, `p99.9`, `miss(100us)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<Q = Nanos> {
    /// A number of a summary.
    Statistic(Statistic),
    /// A deadline.
    Deadline(Constraint, Q),
}

/// A text names nothing that can be limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotASubject {
    /// Neither a statistic nor a word for what of a deadline is limited.
    Unknown,
    /// The word of the second text has no deadline in parentheses.
    NoDeadline(&'static str),
    /// What stands in the parentheses is no deadline.
    Deadline(String),
}

impl fmt::Display for NotASubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "it is neither a statistic nor a deadline; deadlines are miss(100us), consecutive(100us) and firm(100us)",
            ),
            Self::NoDeadline(word) => write!(f, "it has no deadline; write \"{word}(100us)\""),
            Self::Deadline(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for NotASubject {}

impl<Q: Quantity<Err: fmt::Display>> FromStr for Subject<Q> {
    type Err = NotASubject;

    fn from_str(text: &str) -> Result<Self, NotASubject> {
        if let Ok(statistic) = text.parse() {
            return Ok(Subject::Statistic(statistic));
        }
        let (word, rest) = text.split_once('(').map_or((text, None), |(word, r)| (word, Some(r)));
        let kind = Constraint::ALL.into_iter().find(|kind| kind.name() == word);
        let kind = kind.ok_or(NotASubject::Unknown)?;
        let inside = rest.and_then(|rest| rest.strip_suffix(')'));
        let inside = inside.ok_or(NotASubject::NoDeadline(kind.name()))?;
        let wrong =
            |why: String| NotASubject::Deadline(format!("{inside:?} is no deadline: {why}"));
        let time = inside.parse::<Q>().map_err(|e| wrong(e.to_string()))?;
        if time.raw() == 0 {
            return Err(wrong("every answer takes time".into()));
        }
        Ok(Subject::Deadline(kind, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_limit_is_on_is_read() {
        let read = |text: &str| text.parse::<Subject>();
        assert_eq!(read("p99.9"), Ok(Subject::Statistic("p99.9".parse().unwrap())));
        for (text, kind, ns) in [
            ("miss(100us)", Constraint::Miss, 100_000),
            ("consecutive(1.5ms)", Constraint::Consecutive, 1_500_000),
            ("firm(2 s)", Constraint::Firm, 2_000_000_000),
        ] {
            assert_eq!(read(text), Ok(Subject::Deadline(kind, Nanos(ns))));
        }
        for (text, why) in [
            ("late(1us)", "neither a statistic nor a deadline"),
            ("p98", "neither a statistic nor a deadline"),
            ("miss", "write \"miss(100us)\""),
            ("firm(1us", "write \"firm(100us)\""),
            ("miss(100)", "needs a unit"),
            ("miss(-1us)", "not a decimal number"),
            ("miss(0ns)", "every answer takes time"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn bounds_are_read_and_those_that_demand_nothing_or_the_impossible_are_refused_with_a_remedy() {
        for (kind, text, tolerance) in [
            (Constraint::Miss, "0", Tolerance::Misses { most: 0 }),
            (Constraint::Miss, "1 in 10000", Tolerance::Share { most: 1, of: 10_000 }),
            (Constraint::Consecutive, "3", Tolerance::Consecutive { most: 3 }),
            (Constraint::Firm, "9 of 10", Tolerance::Firm { least: 9, of: 10 }),
            (Constraint::Firm, "10 of 10", Tolerance::Firm { least: 10, of: 10 }),
        ] {
            assert_eq!(kind.tolerance(text), Ok(tolerance), "{text}");
        }
        for (kind, text, why) in [
            (Constraint::Miss, "9 of 10", "\"1 in 10000\""),
            (Constraint::Miss, "-1", "as 0"),
            (Constraint::Miss, "+1", "as 0"),
            (Constraint::Miss, "", "as 0"),
            (Constraint::Miss, "100us", "as 0"),
            (Constraint::Miss, "0 in 10", "write 0"),
            (Constraint::Miss, "3 in 3", "below the second"),
            (Constraint::Consecutive, "1 in 10", "one after the other"),
            (Constraint::Firm, "3", "\"9 of 10\""),
            (Constraint::Firm, "1 in 10", "\"9 of 10\""),
            (Constraint::Firm, "0 of 10", "leave the limit out"),
            (Constraint::Firm, "10 of 9", "not above the second"),
            (Constraint::Firm, "1 of 65537", "at most 65536"),
        ] {
            let refused = kind.tolerance(text).unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
