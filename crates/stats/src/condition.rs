// SPDX-License-Identifier: GPL-2.0-or-later
//! Conditions under which a comparison of two runs fails: `task.p99 > +5%`, `hardirq.max > +2us`, `task.max > 100us`.

use crate::limits::exceeds;
use crate::{Mismatch, Statistic, Summary, compare};
use core::fmt;
use core::str::FromStr;
use sample::{Nanos, Quantity, SeriesName};

/// A number of the run after that must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition<Q = Nanos> {
    /// Whose.
    pub responder: SeriesName,
    /// Which number of it.
    pub statistic: Statistic,
    /// Beyond what it fails.
    pub bound: Threshold<Q>,
}

/// What a number must not exceed; where more is better, what it must not fall below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold<Q = Nanos> {
    /// The number before, and this share of it in the worse direction: 0.05 is 5 %.
    Share(f64),
    /// The number before, and so much in the worse direction: a time longer, or a throughput less.
    Worse(Q),
    /// This number.
    Value(Q),
}

/// What separates number and bound, and what begins a bound that is relative to the number before.
fn signs<Q: Quantity>() -> (char, char) {
    if Q::MORE_IS_BETTER { ('<', '-') } else { ('>', '+') }
}

/// What became of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionOutcome {
    /// The number is within its bound.
    Kept,
    /// It is beyond it.
    Exceeded,
    /// One of the runs has no such number: no such series, or too few samples.
    Undecided,
}

/// A text is no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotACondition(String);

impl fmt::Display for NotACondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; write RESPONDER.STATISTIC > BOUND, as task.p99 > +5%, task.max > +20us or hardirq.max > 100us",
            self.0
        )
    }
}

impl core::error::Error for NotACondition {}

/// `task.p99 > +5%`; where more is better `copy.p50 < -5%`.
impl<Q: Quantity<Err: fmt::Display>> FromStr for Condition<Q> {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Self, NotACondition> {
        let no = |why: String| NotACondition(why);
        let (beyond, worse) = signs::<Q>();
        let (number, bound) =
            text.split_once(beyond).ok_or_else(|| no(format!("{text:?} has no \"{beyond}\"")))?;
        let number = number.trim();
        // A name may have dots in it, and so may a statistic.
        let splits = number.match_indices('.').map(|(at, _)| (&number[..at], &number[at + 1..]));
        let mut named = splits.filter_map(|(name, rest)| Some((name, rest.parse().ok()?)));
        let (name, statistic): (&str, Statistic) = named.next().ok_or_else(|| {
            let last = number.split_once('.').map_or("", |(_, last)| last);
            let unknown = last.parse::<Statistic>().err();
            no(format!(
                "{number:?} names no statistic: {}",
                unknown.map_or(String::new(), |e| e.to_string())
            ))
        })?;
        let responder = name.parse().map_err(|e| no(format!("{name:?} is no name: {e}")))?;
        let bound = bound.trim();
        let value = |text: &str| {
            text.trim().parse::<Q>().map_err(|e| no(format!("{bound:?} is no bound: {e}")))
        };
        let bound = match (bound.strip_prefix(worse), bound.strip_suffix('%')) {
            (Some(share), Some(_)) => {
                let share = share.trim_end_matches('%').trim().parse::<f64>().ok();
                let share = share.filter(|share| share.is_finite() && *share >= 0.0);
                Threshold::Share(share.ok_or_else(|| no(format!("{bound:?} is no share")))? / 100.0)
            }
            (None, Some(_)) => {
                return Err(no(format!("{bound:?} is a share of what was before: {worse}{bound}")));
            }
            (Some(more), None) => Threshold::Worse(value(more)?),
            (None, None) => Threshold::Value(value(bound)?),
        };
        Ok(Condition { responder, statistic, bound })
    }
}

impl<Q: Quantity> fmt::Display for Condition<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beyond, worse) = signs::<Q>();
        write!(f, "{}.{} {beyond} ", self.responder, self.statistic)?;
        match self.bound {
            Threshold::Share(share) => write!(f, "{worse}{} %", share * 100.0),
            Threshold::Worse(by) => write!(f, "{worse}{by}"),
            Threshold::Value(value) => write!(f, "{value}"),
        }
    }
}

impl<Q: Quantity> Condition<Q> {
    /// Holds it against two runs.
    ///
    /// # Errors
    /// Numbers of different clocks do not share an axis: [`Mismatch::Clock`].
    pub fn judge(
        &self,
        before: &[Summary<Q>],
        after: &[Summary<Q>],
    ) -> Result<ConditionOutcome, Mismatch> {
        let of =
            |all: &'_ [Summary<Q>]| all.iter().find(|s| s.responder == self.responder).cloned();
        let Some(after) = of(after) else { return Ok(ConditionOutcome::Undecided) };
        let Some(now) = self.statistic.of(&after) else { return Ok(ConditionOutcome::Undecided) };
        let direction = if Q::MORE_IS_BETTER { -1.0 } else { 1.0 };
        let bound = match self.bound {
            Threshold::Value(value) => value.raw() as f64,
            Threshold::Share(_) | Threshold::Worse(_) => {
                let Some(before) = of(before) else { return Ok(ConditionOutcome::Undecided) };
                compare(&before, &after)?;
                let Some(then) = self.statistic.of(&before) else {
                    return Ok(ConditionOutcome::Undecided);
                };
                match self.bound {
                    Threshold::Share(share) => then * (1.0 + direction * share),
                    Threshold::Worse(by) | Threshold::Value(by) => {
                        then + direction * by.raw() as f64
                    }
                }
            }
        };
        Ok(if exceeds::<Q>(now, bound) {
            ConditionOutcome::Exceeded
        } else {
            ConditionOutcome::Kept
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;
    use sample::{Clock, Sample, SeriesId};

    fn summary(name: &str, clock: Clock, latencies: impl Iterator<Item = u64>) -> Summary {
        let mut series = Series::new(name.parse().unwrap(), clock);
        for (trigger, latency) in (0..).zip(latencies) {
            let (at, latency) = (Nanos(trigger), Nanos(latency));
            series.record(&Sample { series: SeriesId(0), trigger, at, latency, path: None });
        }
        series.summary()
    }

    #[test]
    fn conditions_are_read_and_shown() {
        for (text, shown) in [
            ("task.p99 > +5%", "task.p99 > +5 %"),
            ("nanosleep-3.25ms.p99.9>+20us", "nanosleep-3.25ms.p99.9 > +20.0 µs"),
            ("hardirq.max > 100us", "hardirq.max > 100 µs"),
            ("task.mean > +0.5 %", "task.mean > +0.5 %"),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), shown);
        }
        for (text, why) in [
            ("task.p99", "no \">\""),
            ("task > 5%", "names no statistic"),
            ("task.p98 > +5%", "known are max mean"),
            ("task.max > 5%", "+5%"),
            ("task.max > +5", "needs a unit"),
            ("task.max > +x%", "no share"),
            ("task.max > -5us", "no bound"),
            (".max > 1us", "no name"),
        ] {
            let refused = text.parse::<Condition>().unwrap_err().to_string();
            assert!(refused.contains(why) && refused.contains("task.p99 > +5%"), "{refused}");
        }
    }

    #[test]
    fn a_condition_is_exceeded_kept_or_undecided() {
        let before = [summary("task", Clock::Virtual, (0..2_000).map(|n| 1_000 + n % 100))];
        let after = [summary("task", Clock::Virtual, (0..2_000).map(|n| 1_050 + n % 100))];
        let judge = |text: &str| text.parse::<Condition>().unwrap().judge(&before, &after).unwrap();
        use ConditionOutcome::*;
        for (text, outcome) in [
            ("task.max > +4%", Exceeded),
            ("task.max > +5%", Kept),
            ("task.max > +49ns", Exceeded),
            ("task.max > +50ns", Kept),
            ("task.max > 1148ns", Exceeded),
            ("task.max > 1149ns", Kept),
            ("hardirq.max > 1ns", Undecided),
            ("task.p99.999 > +1%", Undecided),
        ] {
            assert_eq!(judge(text), outcome, "{text}");
        }
        let other = [summary("task", Clock::Tsc, 0..10)];
        let condition: Condition = "task.max > +1%".parse().unwrap();
        assert!(condition.judge(&before, &other).is_err());
    }
}
