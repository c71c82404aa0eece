// SPDX-License-Identifier: GPL-2.0-or-later
//! How a series of samples is known. While it is measured, its index in the run stands for it; in every file, table and
//! page its name does.

use crate::Responder;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// The index of a series in its run's list of series, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u16);

impl SeriesId {
    /// As an index into that list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of what answers in a series: a [`Responder`] of the driver, or the method of a probe
/// (`futex`, `nanosleep-3.25ms-cpu0`). 1 to 64 ASCII letters, digits, `_`, `.`, `+` and `-`; the first is no
/// dot. It is also the name of a file, `histograms/<name>.hdr`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,63}$")))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct SeriesName(Box<str>);

impl SeriesName {
    /// The most characters of a name.
    pub const LENGTH_MAX: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no [`SeriesName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotASeriesName {
    /// There is no character.
    Empty,
    /// More than [`SeriesName::LENGTH_MAX`] bytes.
    TooLong,
    /// It begins with a dot, as hidden files and `..` do.
    LeadingDot,
    /// A character other than those that are allowed.
    Character(char),
}

impl fmt::Display for NotASeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = SeriesName::LENGTH_MAX;
        match self {
            Self::Empty => write!(f, "empty; a name has 1 to {MAX} characters"),
            Self::TooLong => write!(f, "too long; a name has at most {MAX} characters"),
            Self::LeadingDot => f.write_str("a name must not begin with a dot"),
            Self::Character(c) => {
                write!(f, "{c:?} is not allowed in a name; use letters, digits, and any of _ . + -")
            }
        }
    }
}

impl core::error::Error for NotASeriesName {}

impl FromStr for SeriesName {
    type Err = NotASeriesName;

    fn from_str(text: &str) -> Result<Self, NotASeriesName> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        if text.is_empty() {
            return Err(NotASeriesName::Empty);
        }
        if text.len() > SeriesName::LENGTH_MAX {
            return Err(NotASeriesName::TooLong);
        }
        if text.starts_with('.') {
            return Err(NotASeriesName::LeadingDot);
        }
        match text.chars().find(|c| !allowed(*c)) {
            Some(c) => Err(NotASeriesName::Character(c)),
            None => Ok(SeriesName(text.to_owned().into_boxed_str())),
        }
    }
}

impl TryFrom<String> for SeriesName {
    type Error = NotASeriesName;
    fn try_from(text: String) -> Result<Self, NotASeriesName> {
        text.parse()
    }
}

impl From<SeriesName> for String {
    fn from(name: SeriesName) -> String {
        name.0.into_string()
    }
}

/// The names of the driver's responders are names of series.
impl From<Responder> for SeriesName {
    fn from(responder: Responder) -> Self {
        SeriesName(responder.name().into())
    }
}

impl fmt::Display for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL_RESPONDERS;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn methods_of_probes_and_responders_of_the_driver_are_names() {
        for text in ["futex", "nanosleep-3.25ms-cpu0", "c++", "A_1", &"x".repeat(64)] {
            assert_eq!(text.parse::<SeriesName>().map(|n| n.to_string()), Ok(text.to_owned()));
        }
        for responder in ALL_RESPONDERS {
            assert_eq!(responder.name().parse(), Ok(SeriesName::from(responder)));
        }
    }

    #[test]
    fn what_could_leave_its_directory_or_break_a_table_is_refused_with_its_reason() {
        use NotASeriesName::*;
        for (text, why) in [
            ("", Empty),
            (&*"x".repeat(65), TooLong),
            ("..", LeadingDot),
            (".hidden", LeadingDot),
            ("a/b", Character('/')),
            ("a b", Character(' ')),
            ("50µs", Character('µ')),
            ("a\n", Character('\n')),
        ] {
            assert_eq!(text.parse::<SeriesName>(), Err(why), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_is_a_plain_file_name(text in "\\PC{0,70}") {
            if let Ok(name) = text.parse::<SeriesName>() {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert!(text.is_ascii() && !text.contains(['/', '\0']) && !text.starts_with('.'));
            }
        }
    }
}
