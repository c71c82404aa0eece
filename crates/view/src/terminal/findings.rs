// SPDX-License-Identifier: GPL-2.0-or-later
//! What became of each limit, as a line.

use super::ladder::tone;
use crate::screen::toned;
use sample::Nanos;
use stats::{DeadlineFinding, Finding, StatisticFinding, Tolerance, Verdict};

/// `✓ task.max at most 150 µs: 12.3 µs (kept)`.
pub(super) fn line(finding: &Finding) -> String {
    let verdict = finding.verdict();
    let sign = match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::Inconclusive | Verdict::Invalid => "?",
    };
    let sign = toned(tone(verdict), sign);
    let (said, needed) = match finding {
        Finding::Statistic(finding) => (of_statistic(finding), 0),
        Finding::Deadline(finding) => (of_deadline(finding), finding.needed),
    };
    let reason = finding.reason();
    let needed = if needed > 0 { format!(": {needed} more") } else { String::new() };
    format!("  {sign} {}.{said} ({reason}{needed})\n", finding.responder())
}

fn of_statistic(finding: &StatisticFinding) -> String {
    let StatisticFinding { statistic, bound, measured, .. } = finding;
    let Some(ns) = *measured else { return format!("{statistic} at most {bound}: nothing") };
    let shown = Nanos(ns.round() as u64).to_string();
    // Two numbers that look alike and are not.
    if shown == bound.to_string() && ns != bound.0 as f64 {
        return format!("{statistic} at most {bound}: {ns} ns");
    }
    format!("{statistic} at most {bound}: {shown}")
}

/// `miss(100 µs) at most 0: 3 of 5000 missed, first trigger 812, latest 141 µs at trigger 900`.
fn of_deadline(finding: &DeadlineFinding) -> String {
    let DeadlineFinding { deadline, tolerance, events, missed, open, first, worst, latest, .. } =
        finding;
    let mut said = format!("{}({deadline}) {tolerance}: ", tolerance.constraint().name());
    said += &match (tolerance, worst) {
        (Tolerance::Consecutive { .. }, Some(worst)) => {
            format!("{} in a row from trigger {}, ", worst.missed, worst.from)
        }
        (Tolerance::Firm { of, .. }, Some(worst)) => {
            format!("{} of {of} from trigger {}, ", of.saturating_sub(worst.missed), worst.from)
        }
        _ => String::new(),
    };
    said += &format!("{missed} of {events} missed");
    if *open > 0 {
        said += &format!(" ({open} of them lost, how late is unknown)");
    }
    if let Some(first) = first {
        said += &format!(", first trigger {first}");
    }
    if let Some(latest) = latest {
        said += &format!(", latest {} at trigger {}", latest.latency, latest.trigger);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::shown;
    use sample::{Clock, Loss, Sample, SeriesId, SeriesName};
    use stats::{Constraint, Deadline, Demand, Limit, MissCounter, Series, judge};

    fn said(kind: Constraint, bound: &str, late: &[u64], superseded: u64) -> String {
        let responder: SeriesName = "task".parse().unwrap();
        let deadline = Deadline { time: Nanos(100_000), tolerance: kind.tolerance(bound).unwrap() };
        let (mut watch, mut series) =
            (MissCounter::new(deadline), Series::new(responder.clone(), Clock::Virtual));
        for trigger in 0..20 {
            let latency = Nanos(if late.contains(&trigger) { 110_000 + trigger } else { 50 });
            let at = Nanos(trigger);
            let sample = Sample { series: SeriesId(0), trigger, at, latency, path: None };
            watch.record(&sample);
            series.record(&sample);
        }
        series.lose(Loss::Superseded, superseded);
        let summary = series.summary();
        let tally = watch.tally(&responder, &summary.losses);
        let limit = Limit { responder, demand: Demand::Deadline(deadline) };
        shown(&line(&judge(&[limit], &[summary], &[tally], true).findings[0]))
    }

    #[test]
    fn a_deadline_says_how_many_missed_it_which_first_which_worst_and_how_far() {
        for (kind, bound, late, superseded, expected) in [
            (
                Constraint::Miss,
                "0",
                &[][..],
                0,
                "✓ task.miss(100 µs) at most 0: 0 of 20 missed (kept)",
            ),
            (
                Constraint::Miss,
                "1",
                &[3, 9],
                0,
                "✗ task.miss(100 µs) at most 1: 2 of 20 missed, first trigger 3, latest 110 µs at trigger 9 (exceeded)",
            ),
            (
                Constraint::Miss,
                "1 in 50",
                &[],
                0,
                "? task.miss(100 µs) at most 1 in 50: 0 of 20 missed (too few samples: 30 more)",
            ),
            (
                Constraint::Miss,
                "1",
                &[19],
                2,
                "? task.miss(100 µs) at most 1: 3 of 22 missed (2 of them lost, how late is unknown), first trigger \
                 19, latest 110 µs at trigger 19 (superseded triggers leave it open)",
            ),
            (
                Constraint::Consecutive,
                "1",
                &[3, 8, 9],
                0,
                "✗ task.consecutive(100 µs) at most 1: 2 in a row from trigger 8, 3 of 20 missed, first trigger 3, \
                 latest 110 µs at trigger 9 (exceeded)",
            ),
            (
                Constraint::Firm,
                "9 of 10",
                &[3, 12],
                0,
                "✗ task.firm(100 µs) at least 9 of 10: 8 of 10 from trigger 3, 2 of 20 missed, first trigger 3, \
                 latest 110 µs at trigger 12 (exceeded)",
            ),
            (
                Constraint::Firm,
                "9 of 25",
                &[],
                0,
                "? task.firm(100 µs) at least 9 of 25: 0 of 20 missed (too few samples: 5 more)",
            ),
        ] {
            let text = said(kind, bound, late, superseded);
            assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        }
    }
}
