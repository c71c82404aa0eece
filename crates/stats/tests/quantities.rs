// SPDX-License-Identifier: GPL-2.0-or-later
//! Statistics of quantities other than time, and times beside them: what holds for one holds for all.

use proptest::prelude::*;
use sample::{
    Bytes, BytesPerSecond, Clock, Count, Insns, Loss, Nanos, Quantity, QuantityKind, Sample,
    SeriesId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stats::{
    Condition, ConditionOutcome, Limit, Mismatch, Quantile, Reason, Series, Statistic, Summary,
    Verdict, WORST_KEPT, Worst, compare, judge,
};

fn series<Q: Quantity>(numbers: &[u64]) -> Series<Q> {
    let mut series = Series::of("copy".parse().unwrap(), Clock::Monotonic);
    for (trigger, number) in (0..).zip(numbers) {
        let (at, latency) = (Nanos(trigger * 1_000), Nanos(*number));
        let sample = Sample { series: SeriesId(0), trigger, at, latency, path: None };
        series.record(&sample.measuring::<Q>());
    }
    series
}

/// Numbers of every order of magnitude, the greatest among them.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let number = (0..=Nanos::LARGEST, 0u32..48).prop_map(|(number, shift)| number >> shift);
    prop::collection::vec(number, 1..400)
}

fn suits<Q: Quantity + Serialize + DeserializeOwned>(numbers: &[u64], cut: usize) {
    let whole = series::<Q>(numbers);
    let summary = whole.summary();
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    assert_eq!(summary.count, sorted.len() as u64);
    assert_eq!(summary.min.map(Q::raw), sorted.first().copied());
    assert_eq!(summary.max.map(Q::raw), sorted.last().copied());
    for (quantile, value) in summary.quantiles.iter() {
        let exact = sorted[quantile.rank(summary.count) as usize - 1];
        assert!(
            exact <= value.raw() && value.raw() - exact <= exact / 1_000,
            "{value} for {exact}"
        );
    }
    // The worst are at one end, which the quantity says.
    let worst: Vec<u64> = whole.worst().iter().map(|w| w.latency.raw()).collect();
    if Q::MORE_IS_BETTER {
        assert_eq!(worst, sorted[..sorted.len().min(WORST_KEPT)]);
    } else {
        assert!(worst.iter().eq(sorted.iter().rev().take(WORST_KEPT)));
    }
    let mut merged = series::<Q>(&numbers[..cut]);
    merged.merge(&series(&numbers[cut..])).unwrap();
    assert_eq!(merged.summary(), summary);
    let text = serde_json::to_string(&summary).unwrap();
    for key in ["min", "mean", "stddev", "max"] {
        assert!(text.contains(&format!("\"{key}_{}\":", Q::SUFFIX)), "{text}");
    }
    // serde_json reads a float to within its last digit.
    let read = serde_json::from_str::<Summary<Q>>(&text).unwrap();
    let close =
        |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() <= a.unwrap() * 1e-15;
    assert!(close(summary.mean, read.mean) && close(summary.stddev, read.stddev), "{text}");
    assert_eq!(Summary { mean: summary.mean, stddev: summary.stddev, ..read }, summary);
    for worst in whole.worst() {
        let text = serde_json::to_string(worst).unwrap();
        assert_eq!(serde_json::from_str::<Worst<Q>>(&text).unwrap(), *worst);
    }
}

proptest! {
    #[test]
    fn what_holds_for_times_holds_for_every_quantity(
        numbers in numbers(), cut in any::<prop::sample::Index>()
    ) {
        let cut = cut.index(numbers.len());
        suits::<Nanos>(&numbers, cut);
        suits::<Insns>(&numbers, cut);
        suits::<Bytes>(&numbers, cut);
        suits::<BytesPerSecond>(&numbers, cut);
        suits::<Count>(&numbers, cut);
    }

    #[test]
    fn a_longer_time_is_worse_and_a_greater_throughput_is_better(
        before in 1..Nanos::LARGEST, after in 1..Nanos::LARGEST
    ) {
        fn max<Q: Quantity>(before: u64, after: u64) -> Option<bool> {
            let [before, after] = [before, after].map(|n| series::<Q>(&[n]).summary());
            compare(&before, &after).unwrap().differences.last().unwrap().is_worse()
        }
        prop_assert_eq!(max::<Nanos>(before, after), Some(after > before));
        prop_assert_eq!(max::<Insns>(before, after), Some(after > before));
        prop_assert_eq!(max::<BytesPerSecond>(before, after), Some(after < before));
    }
}

#[test]
fn the_json_of_times_is_byte_for_byte_what_it_was() {
    let mut times = series::<Nanos>(&[5, 7, 12, 1_000]);
    times.lose(Loss::Overrun, 2);
    let summary = concat!(
        r#"{"responder":"copy","clock":"monotonic","count":4,"losses":{"unanswered":0,"superseded":0,"#,
        r#""spurious":0,"tainted":0,"overrun":2,"dropped":0},"min_ns":5,"mean_ns":256.0,"#,
        r#""stddev_ns":429.5514,"max_ns":1000,"quantiles":{"0.5":7}}"#
    );
    let mut written = times.summary();
    written.stddev = Some(429.5514);
    assert_eq!(serde_json::to_string(&written).unwrap(), summary);
    let worst = r#"{"trigger":3,"at_ns":3000,"latency_ns":1000}"#;
    assert_eq!(serde_json::to_string(&times.worst()[0]).unwrap(), worst);
    let slice = r#"{"at_ns":0,"width_ns":1024,"min_ns":5,"max_ns":7,"count":2}"#;
    assert_eq!(serde_json::to_string(&times.timeline().buckets()[0]).unwrap(), slice);
    let columns = times.columns(1.try_into().unwrap());
    assert_eq!(
        serde_json::to_string(&columns[0]).unwrap(),
        r#"{"low_ns":4,"high_ns":8,"count":2}"#
    );
    let point = serde_json::to_string(&times.percentile_curve()[0]).unwrap();
    assert_eq!(point, r#"{"quantile":0.0,"latency_ns":5}"#);
    let limit = Limit::at_most("copy".parse().unwrap(), Statistic::Max, Nanos(9));
    let text = serde_json::to_string(&limit).unwrap();
    assert_eq!(text, r#"{"responder":"copy","statistic":"max","bound_ns":9}"#);
    let finding = &judge(&[limit], &[times.summary()], &[], true).findings[0];
    let text = serde_json::to_string(finding).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"responder":"copy","statistic":"max","bound_ns":9,"measured_ns":1000.0,"#,
            r#""verdict":"fail","reason":"exceeded"}"#
        )
    );
}

#[test]
fn keys_of_another_quantity_end_with_its_unit() {
    let rates = series::<BytesPerSecond>(&[3_000, 4_000]);
    let summary = serde_json::to_value(rates.summary()).unwrap();
    assert_eq!(
        (&summary["min_bytes_per_s"], &summary["max_bytes_per_s"]),
        (&json!(3_000), &json!(4_000))
    );
    let worst = serde_json::to_value(rates.worst()[0]).unwrap();
    assert_eq!(worst, json!({"trigger": 0, "at_ns": 0, "value_bytes_per_s": 3_000}));
    let refused = serde_json::from_value::<Summary<Insns>>(summary).unwrap_err().to_string();
    assert!(refused.contains("unknown field `m"), "{refused}");
}

#[test]
fn absent_foreign_and_repeated_keys_are_told_from_those_that_may_be_absent() {
    let read = |text: &str| serde_json::from_str::<Worst>(text).map_err(|e| e.to_string());
    assert_eq!(read(r#"{"trigger":1,"at_ns":2,"latency_ns":3}"#).unwrap().path, None);
    let path = read(r#"{"trigger":1,"at_ns":2,"latency_ns":3,"path_insns":4}"#).unwrap().path;
    assert_eq!(path, Some(Insns(4)));
    let refused = |text: &str| read(text).unwrap_err();
    assert!(refused(r#"{"trigger":1,"at_ns":2}"#).contains("missing field `latency_ns`"));
    assert!(
        refused(r#"{"latency_insns":1}"#)
            .contains("unknown field `latency_insns`, expected one of `trigger`")
    );
    assert!(refused(r#"{"trigger":1,"trigger":1}"#).contains("duplicate field `trigger`"));
    let mut summary = serde_json::to_value(series::<Nanos>(&[1]).summary()).unwrap();
    summary.as_object_mut().unwrap().retain(|key, _| key != "stddev_ns");
    assert_eq!(serde_json::from_value::<Summary>(summary.clone()).unwrap().stddev, None);
    summary["quantiles"] = Value::Null;
    assert!(serde_json::from_value::<Summary>(summary).is_err());
}

#[test]
fn a_throughput_has_to_reach_its_limit_and_a_loss_leaves_it_open() {
    let limit = |bound| Limit::at_most("copy".parse().unwrap(), Statistic::Mean, bound);
    let mut rates = series(&[3_000, 5_000]);
    let judged = |rates: &Series<BytesPerSecond>, bound| {
        let judgement = judge(&[limit(BytesPerSecond(bound))], &[rates.summary()], &[], true);
        (judgement.verdict, judgement.findings[0].reason())
    };
    assert_eq!(judged(&rates, 4_000), (Verdict::Pass, Reason::Within));
    assert_eq!(judged(&rates, 4_001), (Verdict::Fail, Reason::Exceeded));
    rates.lose(Loss::Overrun, 1);
    assert_eq!(judged(&rates, 4_000), (Verdict::Inconclusive, Reason::Overrun));
}

#[test]
fn a_condition_on_a_throughput_is_on_what_is_less() {
    let [before, after] = [1_000_000, 940_000].map(|n| [series::<BytesPerSecond>(&[n]).summary()]);
    for (text, outcome) in [
        ("copy.mean < -5%", ConditionOutcome::Exceeded),
        ("copy.mean < -7 %", ConditionOutcome::Kept),
        ("copy.mean < -59.9 kB/s", ConditionOutcome::Exceeded),
        ("copy.mean < 940 kB/s", ConditionOutcome::Kept),
    ] {
        let condition: Condition<BytesPerSecond> = text.parse().unwrap();
        assert_eq!(condition.judge(&before, &after, false), Ok(outcome), "{condition}");
        assert_eq!(condition.to_string().parse(), Ok(condition));
    }
    assert!("copy.mean > +5%".parse::<Condition<BytesPerSecond>>().is_err());
}

#[test]
fn what_is_beyond_the_greatest_number_is_tainted_for_each_quantity() {
    let summary = series::<Count>(&[Count::LARGEST, Count::LARGEST + 1]).summary();
    assert_eq!((summary.count, summary.losses.tainted), (1, 1));
    assert_eq!(summary.quantile(Quantile::P50), None);
    let mut other = Series::<Count>::of("scale".parse().unwrap(), Clock::Monotonic);
    assert!(matches!(other.merge(&series(&[1])), Err(Mismatch::Responder(..))));
    assert_eq!(Count::KIND, QuantityKind::Count);
}
