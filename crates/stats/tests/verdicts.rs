// SPDX-License-Identifier: GPL-2.0-or-later
//! Which verdict follows from limits, numbers and losses; and what a comparison says.

use sample::{Clock, Loss, Nanos, Responder, Sample, SeriesId};
use stats::{
    Finding, Limit, Mismatch, Reason, Series, Statistic, Summary, UnknownStatistic, Verdict,
    compare, judge,
};

/// `count` answers of 1, 2, 3 … ns, and losses.
fn rising(count: u64, losses: &[(Loss, u64)]) -> Summary {
    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    for trigger in 0..count {
        let (at, latency) = (Nanos(trigger * 1_000), Nanos(trigger + 1));
        series.record(&Sample { series: SeriesId(0), trigger, at, latency, path: None });
    }
    losses.iter().for_each(|(loss, n)| series.lose(*loss, *n));
    series.summary()
}

fn limit(statistic: &str, bound: u64) -> Limit {
    let statistic = statistic.parse().expect("a statistic");
    Limit::at_most(Responder::Task.into(), statistic, Nanos(bound))
}

fn one(statistic: &str, bound: u64, summary: &Summary) -> (Verdict, Reason) {
    let judgement = judge(&[limit(statistic, bound)], std::slice::from_ref(summary), &[], true);
    assert_eq!(judgement.verdict, judgement.findings[0].verdict());
    (judgement.verdict, judgement.findings[0].reason())
}

use Verdict::{Fail, Inconclusive, Invalid, Pass};

#[test]
fn a_bound_is_kept_up_to_and_including_itself() {
    let summary = rising(1_000, &[]);
    assert_eq!(one("max", 1_000, &summary), (Pass, Reason::Within));
    assert_eq!(one("max", 999, &summary), (Fail, Reason::Exceeded));
    assert_eq!(one("p99", 990, &summary), (Pass, Reason::Within));
    assert_eq!(one("p99", 989, &summary), (Fail, Reason::Exceeded));
    assert_eq!(one("mean", 501, &summary), (Pass, Reason::Within));
    assert_eq!(one("mean", 500, &summary), (Fail, Reason::Exceeded));
}

/// Values from 65,536 to 131,071 are known to 64 ns.
#[test]
fn a_quantile_whose_bucket_has_the_bound_in_it_is_left_open() {
    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    for trigger in 0..1_000 {
        let (at, latency) = (Nanos(trigger * 1_000), Nanos(100_000 + trigger / 995 * 500));
        series.record(&Sample { series: SeriesId(0), trigger, at, latency, path: None });
    }
    let summary = series.summary();
    assert_eq!(one("p99", 100_000, &summary), (Inconclusive, Reason::Resolution));
    assert_eq!(one("p99", 100_031, &summary), (Pass, Reason::Within));
    assert_eq!(one("p99", 99_967, &summary), (Fail, Reason::Exceeded));
    assert_eq!(one("max", 100_500, &summary), (Pass, Reason::Within));
}

#[test]
fn without_a_limit_there_is_no_pass() {
    assert_eq!(judge(&[], &[rising(10, &[])], &[], true).verdict, Inconclusive);
}

#[test]
fn an_unsound_run_is_invalid_whatever_it_measured() {
    let summary = [rising(10, &[])];
    assert_eq!(judge(&[limit("max", 5)], &summary, &[], false).verdict, Invalid);
    assert_eq!(judge(&[limit("max", 50)], &summary, &[], false).verdict, Invalid);
    assert_eq!(judge(&[], &summary, &[], false).verdict, Invalid);
}

#[test]
fn a_quantile_that_the_count_does_not_support_is_inconclusive() {
    assert_eq!(one("p99", 1_000, &rising(99, &[])), (Inconclusive, Reason::TooFewSamples));
}

#[test]
fn no_samples_are_inconclusive_whether_the_responder_is_there_or_not() {
    assert_eq!(one("max", 5, &rising(0, &[])), (Inconclusive, Reason::NoSamples));
    let absent = judge(&[limit("max", 5)], &[], &[], true);
    assert_eq!((absent.verdict, absent.findings[0].reason()), (Inconclusive, Reason::NoSamples));
}

#[test]
fn no_answer_is_later_than_any_bound() {
    let summary = rising(1_000, &[(Loss::Unanswered, 1)]);
    assert_eq!(one("max", u64::MAX, &summary), (Fail, Reason::Unanswered));
    assert_eq!(one("max", 5, &rising(0, &[(Loss::Unanswered, 1)])), (Fail, Reason::Unanswered));
    // One of a thousand does not decide about p99: at worst it is the rank above.
    assert_eq!(one("p99", 1_000, &summary), (Pass, Reason::Within));
    assert_eq!(one("p99", 990, &summary), (Inconclusive, Reason::Unanswered));
    assert_eq!(one("mean", 1_000, &summary), (Inconclusive, Reason::Unanswered));
    // Twenty of a thousand do.
    let many = rising(980, &[(Loss::Unanswered, 20)]);
    assert_eq!(one("p99", u64::MAX, &many), (Fail, Reason::Unanswered));
    assert_eq!(one("p90", 1_000, &many), (Pass, Reason::Within));
}

#[test]
fn superseded_triggers_cannot_make_a_quantile_look_better() {
    // A stall swallows 50 triggers: measured p90 is 900, but among all 1,050 it may be up to 945.
    let summary = rising(1_000, &[(Loss::Superseded, 50)]);
    assert_eq!(one("p90", 900, &summary), (Inconclusive, Reason::Superseded));
    // p99 of those measured (990) is known to be above it.
    assert_eq!(one("p90", 990, &summary), (Pass, Reason::Within));
    // They were answered no later than the maximum.
    assert_eq!(one("max", 1_000, &summary), (Pass, Reason::Within));
    assert_eq!(one("p99", 1_000, &summary), (Pass, Reason::Within));
    // Mean with all of them at the maximum: (500.5 × 1000 + 1000 × 50) ÷ 1050 = 524.3.
    assert_eq!(one("mean", 524, &summary), (Inconclusive, Reason::Superseded));
    assert_eq!(one("mean", 525, &summary), (Pass, Reason::Within));
}

#[test]
fn a_period_that_was_overrun_may_have_been_late_by_any_time() {
    let summary = rising(1_000, &[(Loss::Overrun, 1)]);
    // Unlike one that was never answered it is no proof of lateness; unlike a superseded one it is not
    // bounded by the maximum.
    assert_eq!(one("max", u64::MAX, &summary), (Inconclusive, Reason::Overrun));
    assert_eq!(one("mean", u64::MAX, &summary), (Inconclusive, Reason::Overrun));
    assert_eq!(one("max", 999, &summary), (Fail, Reason::Exceeded));
    // One of a thousand does not decide about p99, twenty do.
    assert_eq!(one("p99", 1_000, &summary), (Pass, Reason::Within));
    let many = rising(980, &[(Loss::Overrun, 20)]);
    assert_eq!(one("p99", u64::MAX, &many), (Inconclusive, Reason::Overrun));
    assert_eq!(one("p90", 1_000, &many), (Pass, Reason::Within));
}

#[test]
fn tainted_and_spurious_answers_forbid_a_pass_but_not_a_fail() {
    for loss in [Loss::Tainted, Loss::Spurious] {
        let summary = rising(100, &[(loss, 1)]);
        assert_eq!(one("max", 100, &summary), (Inconclusive, Reason::Unreliable));
        assert_eq!(one("max", 99, &summary), (Fail, Reason::Exceeded));
    }
}

#[test]
fn dropped_records_forbid_both_because_answers_may_be_matched_wrongly() {
    let mut summary = rising(100, &[]);
    summary.losses.dropped = 1;
    for bound in [99, 100] {
        assert_eq!(one("max", bound, &summary), (Inconclusive, Reason::Unreliable));
    }
}

#[test]
fn one_fail_wins_over_inconclusive_and_pass() {
    let limits = [limit("p99", 1_000), limit("max", 5), limit("mean", 50)];
    let judgement = judge(&limits, &[rising(20, &[])], &[], true);
    assert_eq!(judgement.verdict, Fail);
    let verdicts: Vec<_> = judgement.findings.iter().map(Finding::verdict).collect();
    assert_eq!(verdicts, [Inconclusive, Fail, Pass]);
    let measured = |n: usize| match &judgement.findings[n] {
        Finding::Statistic(finding) => finding.measured,
        Finding::Deadline(_) => panic!("no deadline was limited"),
    };
    assert_eq!((measured(1), measured(0)), (Some(20.0), None));
}

#[test]
fn limits_and_findings_name_statistic_and_unit_in_json() {
    let judgement = judge(&[limit("p99.9", 150_000)], &[rising(10, &[])], &[], true);
    let json = serde_json::to_value(&judgement.findings[0]).unwrap();
    let expected = serde_json::json!({
        "responder": "task", "statistic": "p99.9", "bound_ns": 150_000, "measured_ns": null,
        "verdict": "inconclusive", "reason": "too_few_samples",
    });
    assert_eq!(json, expected);
    assert_eq!("p95".parse::<Statistic>(), Err(UnknownStatistic));
}

#[test]
fn a_comparison_shows_differences_and_keeps_the_losses_beside_them() {
    let (before, after) = (rising(100, &[]), rising(200, &[(Loss::Unanswered, 7)]));
    let comparison = compare(&before, &after).unwrap();
    assert_eq!(comparison.count, (100, 200));
    assert_eq!(comparison.losses.1.unanswered, 7);
    let max = comparison.differences.last().unwrap();
    assert_eq!(max.statistic, Statistic::Max);
    assert_eq!((max.absolute(), max.relative()), (Some(100.0), Some(1.0)));
    let of = |name: &str| comparison.differences.iter().find(|d| d.statistic.name() == name);
    assert_eq!(of("p99.9").map(|d| d.absolute()), Some(None));
    assert_eq!(of("mean").and_then(|d| d.absolute()), Some(50.0));
}

#[test]
fn different_clocks_are_not_compared() {
    let real = Series::new(Responder::Task.into(), Clock::Tsc).summary();
    let refused = compare(&rising(1, &[]), &real).unwrap_err();
    assert_eq!(refused, Mismatch::Clock(Clock::Virtual, Clock::Tsc));
    assert!(refused.to_string().contains("virtual and tsc"));
}
