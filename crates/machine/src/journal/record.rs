// SPDX-License-Identifier: GPL-2.0-or-later
//! The records of a journal, and their bytes. Pure.
//!
//! A record is a line: 16 hexadecimal digits, a space, and JSON. The digits are the beginning of the BLAKE3 hash of the
//! digits of the line before and of this line's JSON. So a record that was altered, removed or moved is seen.
//!
//! Each record is durable before the next one is written. A power cut therefore damages the last record alone, and
//! leaves it without the end of its line: the change that it announces had not begun. Any other damage is refused.

use crate::{Notation, Spot};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The version of the journal that this onset writes. It reads all until then: version 1 had no partition
/// and no card, version 2 no menu.
pub const VERSION: u32 = 3;
const DIGITS: usize = 16;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// The first record of each journal.
    Journal {
        /// The version of its form.
        version: u32,
    },
    /// A change that is about to be made.
    Change(Change),
    /// The value that the kernel gave back after a change, where it was another than the one that was written.
    ReadBack {
        /// Which change.
        number: u64,
        /// The text that was read.
        text: String,
    },
    /// A change that needs no undo any more.
    Settled {
        /// Which change.
        number: u64,
    },
}

/// A change: where, from which text, to which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its number. The first change of a journal has 1.
    pub number: u64,
    /// The knob that was changed.
    pub knob: String,
    /// Where.
    pub place: Spot,
    /// How its text is read.
    pub reads: Notation,
    /// The text before; none where there was no file.
    pub old: Option<String>,
    /// The text that is written.
    pub new: Option<String>,
    /// The boot in which it is written (/proc/sys/kernel/random/boot_id).
    pub boot: String,
    /// The machine on which it is written (/etc/machine-id).
    pub machine: String,
}

/// Why a journal cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// A record that is not the last one is damaged. Lines count from 1.
    Damaged {
        /// The line of the record.
        line: usize,
    },
    /// It is of a newer version than this onset knows.
    Newer {
        /// That version.
        version: u32,
    },
}

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Its whole records.
    pub records: Vec<Record>,
    /// How many bytes they have. What follows them is the beginning of a record.
    pub whole: usize,
    /// The digits of the last one.
    pub last: String,
}

/// The line of a record that follows the line with the digits `last`.
pub fn line(last: &str, record: &Record) -> String {
    let json = serde_json::to_string(record).expect("plain data");
    format!("{} {json}\n", digits(last, &json))
}

/// The digits of a line.
pub fn digits(last: &str, json: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(last.as_bytes()).update(json.as_bytes());
    hasher.finalize().to_hex()[..DIGITS].to_owned()
}

/// Reads a journal's bytes.
///
/// # Errors
/// If it is damaged before its end, or is of a newer version.
pub fn read(bytes: &[u8]) -> Result<Read, Unusable> {
    let mut read = Read::default();
    for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
        let damaged = Unusable::Damaged { line: number };
        let Some(inside) = line.strip_suffix(b"\n") else {
            // Half a record, as a power cut leaves it. A whole one whose line end is another byte was altered.
            let is_whole = line.split_last().and_then(|(_, l)| checked(&read.last, l)).is_some();
            return if is_whole { Err(damaged) } else { Ok(read) };
        };
        let (digits, json) = checked(&read.last, inside).ok_or(damaged.clone())?;
        let record = match (number, serde_json::from_str(json)) {
            (1, Ok(Record::Journal { version })) if (1..=VERSION).contains(&version) => {
                Record::Journal { version }
            }
            (1, _) => {
                return Err(version_of(json).map_or(damaged, |version| Unusable::Newer { version }));
            }
            (_, Ok(record)) => record,
            (_, Err(_)) => return Err(damaged),
        };
        read.records.push(record);
        read.whole += line.len();
        read.last = digits.to_owned();
    }
    Ok(read)
}

/// The digits and the JSON of a line without its end, if they belong together and follow `last`.
fn checked<'a>(last: &str, line: &'a [u8]) -> Option<(&'a str, &'a str)> {
    let (digits, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (digits == self::digits(last, json)).then_some((digits, json))
}

/// The version in the first record of a journal whose other keys nobody here knows.
fn version_of(json: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct First {
        journal: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
        #[serde(flatten)]
        _more: std::collections::BTreeMap<String, IgnoredAny>,
    }
    let version = serde_json::from_str::<First>(json).ok()?.journal.version;
    (version > VERSION).then_some(version)
}
