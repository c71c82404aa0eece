// SPDX-License-Identifier: GPL-2.0-or-later
//! The name of a run, and the time in the name. Pure: the caller reads the clock.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A point in calendar time, in whole seconds of UTC since 1970; years 1970 … 9999. Written as RFC 3339
/// (`2026-11-21T20:01:36Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct UtcTime(u64);

/// 9999-12-31T23:59:59Z, the last second with a four-digit year.
const LAST_SECOND: u64 = 253_402_300_799;

/// Days from 0000-03-01, where the counting of years begins, to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

impl UtcTime {
    /// The given number of seconds after 1970-01-01T00:00:00Z. `None` beyond the year 9999.
    pub fn from_unix_seconds(seconds: u64) -> Option<Self> {
        (seconds <= LAST_SECOND).then_some(UtcTime(seconds))
    }

    /// Year, month 1 … 12, day 1 … 31, hour, minute, second.
    ///
    /// The calendar is that of H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`. Years
    /// begin in March, so that the leap day is the last day of its year.
    fn fields(self) -> [u64; 6] {
        let days = self.0 / 86_400 + DAYS_TO_1970;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let seconds = self.0 % 86_400;
        [year, month, day, seconds / 3_600, seconds / 60 % 60, seconds % 60]
    }

    /// The inverse of [`UtcTime::fields`] (Hinnant's `days_from_civil`).
    fn from_fields([year, month, day, hour, minute, second]: [u64; 6]) -> Option<Self> {
        let year = if month <= 2 { year.checked_sub(1)? } else { year };
        let (era, year_of_era) = (year / 400, year % 400);
        let month_from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month_from_march + 2) / 5 + day.checked_sub(1)?;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = (era * 146_097 + day_of_era).checked_sub(DAYS_TO_1970)?;
        Self::from_unix_seconds(days * 86_400 + hour * 3_600 + minute * 60 + second)
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = self.fields();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The error that the text is not a time of the form `2026-11-21T20:01:36Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATime;

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a UTC time of the form 2026-11-21T20:01:36Z")
    }
}

impl std::error::Error for NotATime {}

impl FromStr for UtcTime {
    type Err = NotATime;
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let mut fields = [0u64; 6];
        let parts = text.strip_suffix('Z').ok_or(NotATime)?.split(['-', 'T', ':']);
        for (i, part) in parts.enumerate() {
            *fields.get_mut(i).ok_or(NotATime)? = part.parse::<u16>().map_err(|_| NotATime)?.into();
        }
        let time = Self::from_fields(fields).ok_or(NotATime)?;
        // A text in another form (30 February, a missing zero) comes out differently.
        if time.to_string() == text { Ok(time) } else { Err(NotATime) }
    }
}

impl TryFrom<String> for UtcTime {
    type Error = NotATime;
    fn try_from(text: String) -> Result<Self, NotATime> {
        text.parse()
    }
}

impl From<UtcTime> for String {
    fn from(time: UtcTime) -> String {
        time.to_string()
    }
}

/// Names a run: `20261121-200136-response-ladder-3fa9`, so that names sort by time. At most
/// 15 + 1 + 32 + 5 characters, of `a-z`, `0-9` and `-` only: safe in a path, a URL and a shell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend(
        "pattern" = "^[0-9]{8}-[0-9]{6}-[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{4}$",
        "maxLength" = 53
    ))
)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// The longest part of a title that goes into a name.
const SLUG_MAX: usize = 32;

impl RunId {
    /// The name of a run with this `title` that was created at `created`. `salt` tells runs of one second from each
    /// other, so it is best random.
    pub fn new(created: UtcTime, title: &str, salt: u16) -> Self {
        let [year, month, day, hour, minute, second] = created.fields();
        let slug = slug(title);
        RunId(format!(
            "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{slug}-{salt:04x}"
        ))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The letters and digits of the title in lower case. All other characters become single dashes between them.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.truncate(SLUG_MAX);
    match slug.trim_end_matches('-') {
        "" => "run".to_owned(),
        slug => slug.to_owned(),
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error that the text does not name a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARunId;

impl fmt::Display for NotARunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the name of a run (YYYYMMDD-HHMMSS-title-hhhh)")
    }
}

impl std::error::Error for NotARunId {}

impl FromStr for RunId {
    type Err = NotARunId;
    fn from_str(text: &str) -> Result<Self, NotARunId> {
        let mut parts = text.splitn(3, '-');
        let (date, time, rest) = (parts.next(), parts.next(), parts.next());
        let digits = |part: Option<&str>, n| {
            part.is_some_and(|p| p.len() == n && p.bytes().all(|b| b.is_ascii_digit()))
        };
        let (title, salt) = rest.and_then(|rest| rest.rsplit_once('-')).ok_or(NotARunId)?;
        let salted = salt.len() == 4
            && salt.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        let titled = title.len() <= SLUG_MAX && slug(title) == title;
        if digits(date, 8) && digits(time, 6) && salted && titled {
            Ok(RunId(text.to_owned()))
        } else {
            Err(NotARunId)
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = NotARunId;
    fn try_from(text: String) -> Result<Self, NotARunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> String {
        run.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_seconds_have_their_known_dates() {
        // Checked with `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_291_296, "2026-11-21T20:01:36Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (LAST_SECOND, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(UtcTime(seconds).to_string(), text);
            assert_eq!(text.parse(), Ok(UtcTime(seconds)));
        }
        assert_eq!(UtcTime::from_unix_seconds(LAST_SECOND + 1), None);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "Z", "2026-02-30T00:00:00Z", "2026-1-01T00:00:00Z", "2026-01-01T24:00:00Z"]
        {
            assert_eq!(text.parse::<UtcTime>(), Err(NotATime), "{text:?}");
        }
    }

    #[test]
    fn a_run_is_named_by_time_title_and_salt() {
        let created = UtcTime(1_795_291_296);
        let name = |title| RunId::new(created, title, 0x3fa).to_string();
        assert_eq!(name("Response ladder!"), "20261121-200136-response-ladder-03fa");
        assert_eq!(name("../../etc/µ"), "20261121-200136-etc-03fa");
        assert_eq!(name("—"), "20261121-200136-run-03fa");
        assert_eq!(name(&"ab ".repeat(40)).len(), 15 + 1 + 32 + 5);
    }

    #[test]
    fn names_that_could_leave_the_store_are_refused() {
        for text in ["", "..", "20261121-200136-..-03fa", "20261121-200136-a/b-03fa", "a-b-c-d"] {
            assert_eq!(text.parse::<RunId>(), Err(NotARunId), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_time_and_name_reads_back(seconds in 0..=LAST_SECOND, title in ".*", salt: u16) {
            let time = UtcTime(seconds);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let run = RunId::new(time, &title, salt);
            prop_assert_eq!(run.as_str().parse(), Ok(run.clone()));
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "[-0-9TZ:a-f]{0,40}") {
            let _ = (text.parse::<UtcTime>(), text.parse::<RunId>());
        }
    }
}
