// SPDX-License-Identifier: GPL-2.0-or-later
//! Conditions under which a comparison of two runs fails: `task.p99 > +5%`, `hardirq.max > +2us`, `task.max > 100us`.

use crate::limits::{at_worst, ends, exceeds, unanswered_exceed, weigh};
use crate::statistic::float;
use crate::{Mismatch, Statistic, Summary, Verdict, compare};
use core::fmt;
use core::str::FromStr;
use sample::{Losses, Nanos, Quantity, SeriesName};

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
    /// The number before, and this share of it in the worse direction, in percent.
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
    /// One of the runs has no such number (no such series, or too few samples), or what was lost could lift it beyond
    /// the bound, or the number is known less exactly than that: of a quantile only its bucket is.
    Undecided,
}

/// A text is no condition, and how one is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotACondition(String, &'static str);

const CONDITION: &str =
    "RESPONDER.STATISTIC > BOUND, as task.p99 > +5%, task.max > +20us or hardirq.max > 100us";
const GOAL: &str = "RESPONDER.STATISTIC < BOUND, as task.max < 100us or periodic.p99 < 50us";

impl fmt::Display for NotACondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; write {}", self.0, self.1)
    }
}

impl core::error::Error for NotACondition {}

/// `task.p99 > +5%`; where more is better `copy.p50 < -5%`.
impl<Q: Quantity<Err: fmt::Display>> FromStr for Condition<Q> {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Self, NotACondition> {
        let (beyond, worse) = signs::<Q>();
        Self::parsed(text, beyond, worse).map_err(|why| NotACondition(why, CONDITION))
    }
}

impl<Q: Quantity<Err: fmt::Display>> Condition<Q> {
    /// A goal, `task.max < 100us`, as the condition under which it is missed. Where more is better, `copy.p50 > …`.
    ///
    /// # Errors
    /// If the text is none. The bound of a goal is a number: what was before is not known where a goal is named.
    pub fn goal(text: &str) -> Result<Self, NotACondition> {
        let (beyond, worse) = signs::<Q>();
        let within = if beyond == '>' { '<' } else { '>' };
        let no = |why: String| NotACondition(why, GOAL);
        if text.contains(beyond) && !text.contains(within) {
            return Err(no(format!("{text:?} says {beyond:?}, and a goal says {within:?}")));
        }
        let goal = Self::parsed(text, within, worse).map_err(no)?;
        match goal.bound {
            Threshold::Value(_) => Ok(goal),
            Threshold::Share(_) | Threshold::Worse(_) => {
                Err(no(format!("{text:?} has a bound that is relative to another number")))
            }
        }
    }

    /// `NUMBER BEYOND BOUND`, with the sign before a bound that is relative.
    fn parsed(text: &str, beyond: char, worse: char) -> Result<Self, String> {
        let (number, bound) =
            text.split_once(beyond).ok_or_else(|| format!("{text:?} has no \"{beyond}\""))?;
        let number = number.trim();
        // A name may have dots in it, and so may a statistic.
        let splits = number.match_indices('.').map(|(at, _)| (&number[..at], &number[at + 1..]));
        let mut named = splits.filter_map(|(name, rest)| Some((name, rest.parse().ok()?)));
        let (name, statistic): (&str, Statistic) = named.next().ok_or_else(|| {
            let last = number.split_once('.').map_or("", |(_, last)| last);
            let unknown = last.parse::<Statistic>().err();
            let unknown = unknown.map_or(String::new(), |e| e.to_string());
            format!("{number:?} names no statistic: {unknown}")
        })?;
        let responder = name.parse().map_err(|e| format!("{name:?} is no name: {e}"))?;
        let bound = bound.trim();
        let value = |text: &str| {
            text.trim().parse::<Q>().map_err(|e| format!("{bound:?} is no bound: {e}"))
        };
        let bound = match (bound.strip_prefix(worse), bound.strip_suffix('%')) {
            (Some(share), Some(_)) => {
                let share = percent(share).ok_or_else(|| format!("{bound:?} is no share"))?;
                Threshold::Share(share)
            }
            (None, Some(_)) => {
                return Err(format!("{bound:?} is a share of what was before: {worse}{bound}"));
            }
            (Some(more), None) => Threshold::Worse(value(more)?),
            (None, None) => Threshold::Value(value(bound)?),
        };
        Ok(Condition { responder, statistic, bound })
    }
}

/// A percentage: 5 of `5%`.
fn percent(text: &str) -> Option<f64> {
    let share = text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()?;
    (share.is_finite() && share >= 0.0).then_some(share)
}

/// How much throughput a change may cost, from `throughput > -5%`, as a share: 0.05.
///
/// # Errors
/// If the text is another one, with what is expected.
pub fn cost(text: &str) -> Result<f64, String> {
    let share = text.split_once('>').and_then(|(name, bound)| {
        (name.trim() == "throughput").then_some(())?;
        percent(bound.trim().strip_prefix('-')?)
    });
    let share = share.map(|percent| percent / 100.0);
    share.ok_or_else(|| {
        format!("{text:?} is no cost; write 'throughput > -5%': so much less may the load do")
    })
}

impl<Q: Quantity> fmt::Display for Condition<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beyond, worse) = signs::<Q>();
        write!(f, "{}.{} {beyond} ", self.responder, self.statistic)?;
        match self.bound {
            Threshold::Share(percent) => write!(f, "{worse}{percent} %"),
            Threshold::Worse(by) => write!(f, "{worse}{}", exactly(by)),
            Threshold::Value(value) => f.write_str(&exactly(value)),
        }
    }
}

/// A number as it is written for people, if that says it exactly; otherwise in the quantity's own unit.
fn exactly<Q: Quantity>(value: Q) -> String {
    let shown = value.to_string();
    match shown.parse::<Q>() {
        Ok(read) if read == value => shown,
        _ => format!("{} {}", value.raw(), Q::SUFFIX),
    }
}

impl<Q: Quantity> Condition<Q> {
    /// Holds it against two runs. What the run after lost counts as late as it may have been, and what the run before
    /// lost does not count. `are_identical` says that both runs have the same samples: then what one lost the other
    /// lost, too.
    ///
    /// # Errors
    /// Numbers of different clocks do not share an axis: [`Mismatch::Clock`].
    pub fn judge(
        &self,
        before: &[Summary<Q>],
        after: &[Summary<Q>],
        are_identical: bool,
    ) -> Result<ConditionOutcome, Mismatch> {
        let of =
            |all: &'_ [Summary<Q>]| all.iter().find(|s| s.responder == self.responder).cloned();
        use ConditionOutcome::{Exceeded, Kept, Undecided};
        let Some(after) = of(after) else { return Ok(Undecided) };
        let measured = self.statistic.of(&after);
        if measured.is_none() {
            return Ok(Undecided);
        }
        if let Threshold::Value(bound) = self.bound {
            return Ok(match weigh(self.statistic, bound, &after, measured).0 {
                Verdict::Pass => Kept,
                Verdict::Fail => Exceeded,
                Verdict::Inconclusive | Verdict::Invalid => Undecided,
            });
        }
        let Some(before) = of(before) else { return Ok(Undecided) };
        compare(&before, &after)?;
        let Some(then) = ends(self.statistic, &before) else { return Ok(Undecided) };
        let Some(now) = ends(self.statistic, &after) else { return Ok(Undecided) };
        // The better end and the worse one.
        let by_worth =
            |(lower, upper)| if Q::MORE_IS_BETTER { (upper, lower) } else { (lower, upper) };
        let ((best_then, worst_then), (best_now, worst_now)) = (by_worth(then), by_worth(now));
        // Without losses, the end of the bucket in `now` is what `at_worst` says, or is worse.
        let lost = at_worst(self.statistic, &after);
        let bound = self.bound_after(best_then);
        let may_be_beyond =
            exceeds::<Q>(worst_now, bound) || lost.is_none_or(|worst| exceeds::<Q>(worst, bound));
        let is_beyond = exceeds::<Q>(best_now, self.bound_after(worst_then));
        let is_unknown = |of: &Summary<Q>| {
            let Losses { dropped, spurious, tainted, .. } = of.losses;
            dropped + spurious + tainted > 0
        };
        let [hung, hangs] = [&before, &after].map(|of| unanswered_exceed(self.statistic, of));
        Ok(match () {
            () if after.losses.dropped > 0 || is_unknown(&before) => Undecided,
            () if is_beyond || (hangs && !hung) => Exceeded,
            () if is_unknown(&after) || hangs => Undecided,
            () if are_identical || !may_be_beyond => Kept,
            () => Undecided,
        })
    }

    /// The bound, if the number before is this one.
    fn bound_after(&self, before: f64) -> f64 {
        let direction = if Q::MORE_IS_BETTER { -1.0 } else { 1.0 };
        match self.bound {
            // Percent are whole numbers most often, and then this is exact.
            Threshold::Share(percent) => before * (100.0 + direction * percent) / 100.0,
            Threshold::Worse(by) => before + direction * float(by),
            Threshold::Value(value) => float(value),
        }
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
            ("task.max > 100499ns", "task.max > 100499 ns"),
            ("task.p50 > +7%", "task.p50 > +7 %"),
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
    fn a_goal_is_the_condition_that_must_not_hold() {
        let goal = Condition::<Nanos>::goal("periodic.p99 < 100us").unwrap();
        assert_eq!(goal, "periodic.p99 > 100us".parse().unwrap());
        for (text, why) in [
            ("task.max > 100us", "a goal says '<'"),
            ("task.max", "has no \"<\""),
            ("task.p98 < 1us", "known are max mean"),
            ("task.max < 100", "needs a unit"),
            ("task.max < +5%", "relative"),
            ("task.max < +5us", "relative"),
            (".max < 1us", "no name"),
        ] {
            let refused = Condition::<Nanos>::goal(text).unwrap_err().to_string();
            assert!(refused.contains(why) && refused.contains("task.max < 100us"), "{refused}");
        }
    }

    #[test]
    fn a_cost_is_a_share_of_throughput() {
        assert_eq!(cost("throughput > -5%"), Ok(0.05));
        assert_eq!(cost("throughput>-0.5 %"), Ok(0.005));
        for text in ["throughput > 5%", "throughput < -5%", "power > -5%", "throughput > -5", ""] {
            assert!(cost(text).unwrap_err().contains("write 'throughput > -5%'"), "{text}");
        }
    }

    #[test]
    fn a_condition_is_exceeded_kept_or_undecided() {
        let before = [summary("task", Clock::Virtual, (0..2_000).map(|n| 1_000 + n % 100))];
        let after = [summary("task", Clock::Virtual, (0..2_000).map(|n| 1_050 + n % 100))];
        let judge =
            |text: &str| text.parse::<Condition>().unwrap().judge(&before, &after, false).unwrap();
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
        // A share of whole percent is exact.
        let hundred = [summary("task", Clock::Virtual, [100].into_iter())];
        let more = [summary("task", Clock::Virtual, [115].into_iter())];
        let of = |text: &str| text.parse::<Condition>().unwrap();
        assert_eq!(of("task.max > +15%").judge(&hundred, &more, false).unwrap(), Kept);
        // What was lost may have been late, and a trigger that was never answered is later than any bound.
        let lost = |count: fn(&mut Losses)| {
            let mut lost = after.clone();
            count(&mut lost[0].losses);
            lost
        };
        let judge = |text: &str, before: &[Summary], after: &[Summary]| {
            of(text).judge(before, after, false).unwrap()
        };
        let late = lost(|losses| losses.superseded = 40);
        assert_eq!(judge("task.p99 > 1148ns", &before, &after), Kept);
        assert_eq!(judge("task.p99 > 1148ns", &before, &late), Undecided);
        assert_eq!(judge("task.max > 1149ns", &before, &late), Kept);
        assert_eq!(judge("task.p99 > +0%", &after, &late), Undecided);
        assert_eq!(judge("task.p99 > +0%", &late, &late), Undecided);
        assert_eq!(of("task.p99 > +0%").judge(&late, &late, true).unwrap(), Kept);
        let hung = lost(|losses| losses.unanswered = 1);
        assert_eq!(judge("task.max > 1s", &before, &hung), Exceeded);
        assert_eq!(judge("task.max > +5%", &hung, &hung), Undecided);
        for unknown in [
            lost(|losses| losses.dropped = 1),
            lost(|losses| losses.spurious = 1),
            lost(|losses| losses.tainted = 1),
        ] {
            assert_eq!(judge("task.max > 1s", &before, &unknown), Undecided);
            assert_eq!(judge("task.max > +50%", &unknown, &after), Undecided);
        }
        // The bucket of 100,000 ns ends at 100,031 ns.
        let near =
            [summary("task", Clock::Virtual, (0..2_000).map(|n| 99_999 + n / 1_500 * 9_000))];
        assert_eq!(judge("task.p50 > 100us", &before, &near), Undecided);
        assert_eq!(judge("task.p50 > 101us", &before, &near), Kept);
        assert_eq!(judge("task.p50 > 99us", &before, &near), Exceeded);
        // One more ns, in the next bucket; and 63 ns more, in the same one.
        let around = |at| [99_000, at, at, at, 200_000].into_iter();
        let [first, last, next] =
            [99_968, 100_031, 100_032].map(|at| [summary("task", Clock::Virtual, around(at))]);
        assert_eq!(judge("task.p50 > +20ns", &last, &next), Undecided);
        assert_eq!(judge("task.p50 > +20ns", &first, &last), Undecided);
        assert_eq!(judge("task.p50 > +1us", &first, &next), Kept);
        assert_eq!(of("task.p50 > +0%").judge(&last, &last, true).unwrap(), Kept);
        let other = [summary("task", Clock::Tsc, 0..10)];
        let condition: Condition = "task.max > +1%".parse().unwrap();
        assert!(condition.judge(&before, &other, false).is_err());
    }
}
