// SPDX-License-Identifier: GPL-2.0-or-later
//! Series against an independent oracle: the sorted samples themselves.

use core::num::NonZeroU8;
use proptest::prelude::*;
use sample::{Clock, Insns, Loss, Losses, Nanos, Responder, Sample, SeriesId};
use stats::{LATENCY_MAX, Mismatch, Quantile, Series, WORST_KEPT, Worst};

fn sample(trigger: u64, latency: u64) -> Sample {
    Sample {
        series: SeriesId(0),
        trigger,
        at: Nanos(trigger.wrapping_mul(1_000_003) >> 20),
        latency: Nanos(latency),
        path: Some(Insns(latency / 2)),
    }
}

fn series<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Series {
    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    samples.into_iter().for_each(|s| series.record(s));
    series
}

/// Latencies of every order of magnitude up to the longest, with many equal ones among the small.
fn samples(most: usize) -> impl Strategy<Value = Vec<Sample>> {
    let latency = (0..=LATENCY_MAX.0, 0u32..48).prop_map(|(ns, shift)| ns >> shift);
    prop::collection::vec((any::<u16>(), latency), 0..most).prop_map(|pairs| {
        pairs.into_iter().map(|(trigger, ns)| sample(u64::from(trigger), ns)).collect()
    })
}

fn sorted(samples: &[Sample]) -> Vec<u64> {
    let mut latencies: Vec<u64> = samples.iter().map(|s| s.latency.0).collect();
    latencies.sort_unstable();
    latencies
}

/// The share as the decimal fraction of its key, so that nothing of the code under test is asked.
fn nines(key: &str) -> (usize, usize) {
    let digits = key.strip_prefix("0.").expect("a fraction");
    (digits.parse().expect("digits"), 10usize.pow(digits.len() as u32))
}

proptest! {
    #[test]
    fn each_quantile_is_the_order_statistic_to_a_tenth_of_a_percent(samples in samples(3_000)) {
        let summary = series(&samples).summary();
        let sorted = sorted(&samples);
        for q in Quantile::ALL {
            let (numerator, denominator) = nines(q.key());
            let rank = (sorted.len() * numerator).div_ceil(denominator);
            if rank + 1 > sorted.len() {
                prop_assert_eq!(summary.quantile(q), None, "{} of {}", q, sorted.len());
                continue;
            }
            let (exact, got) = (sorted[rank - 1], summary.quantile(q).expect("supported").0);
            prop_assert!(exact <= got && got - exact <= exact / 1_000, "{q}: {got} for {exact}");
        }
    }

    #[test]
    fn extremes_mean_and_deviation_are_exact(samples in samples(500)) {
        let summary = series(&samples).summary();
        let sorted = sorted(&samples);
        prop_assert_eq!(summary.count, sorted.len() as u64);
        prop_assert_eq!(summary.min.map(|n| n.0), sorted.first().copied());
        prop_assert_eq!(summary.max.map(|n| n.0), sorted.last().copied());
        if sorted.is_empty() {
            prop_assert_eq!((summary.mean, summary.stddev), (None, None));
            return Ok(());
        }
        // Two passes over floats, as the textbook has it: another way than that of the code.
        let n = sorted.len() as f64;
        let mean = sorted.iter().map(|v| *v as f64 / n).sum::<f64>();
        let variance = sorted.iter().map(|v| (*v as f64 - mean).powi(2) / n).sum::<f64>();
        prop_assert!((summary.mean.unwrap() - mean).abs() <= mean * 1e-9);
        prop_assert!((summary.stddev.unwrap() - variance.sqrt()).abs() <= mean * 1e-6 + 1e-9);
    }

    #[test]
    fn the_worst_are_the_longest_in_a_fixed_order(samples in samples(200)) {
        let mut expected: Vec<Worst> = samples.iter().map(Worst::from).collect();
        expected.sort_by(|a, b| b.latency.cmp(&a.latency).then(a.trigger.cmp(&b.trigger)));
        expected.truncate(WORST_KEPT);
        let forwards = series(&samples);
        let backwards = series(samples.iter().rev());
        prop_assert_eq!(forwards.worst(), &expected[..]);
        prop_assert_eq!(backwards.worst(), &expected[..]);
    }

    #[test]
    fn merging_shards_equals_recording_all_in_one(
        samples in samples(400),
        cut in any::<prop::sample::Index>(),
        lost in 0u64..100,
    ) {
        let cut = if samples.is_empty() { 0 } else { cut.index(samples.len()) };
        let (mut a, mut b) = (series(&samples[..cut]), series(&samples[cut..]));
        a.lose(Loss::Unanswered, lost);
        b.lose(Loss::Unanswered, 1);
        b.add_dropped(lost);
        a.merge(&b).unwrap();

        let mut whole = series(&samples);
        whole.lose(Loss::Unanswered, lost + 1);
        whole.add_dropped(lost);
        prop_assert!(a == whole);
        prop_assert_eq!(a.summary(), whole.summary());
    }

    #[test]
    fn columns_adjoin_and_their_counts_add_up(samples in samples(400), per_octave in 1u8..=20) {
        let columns = series(&samples).columns(NonZeroU8::new(per_octave).unwrap());
        prop_assert_eq!(columns.iter().map(|c| c.count).sum::<u64>(), samples.len() as u64);
        prop_assert!(columns.iter().all(|c| c.low < c.high));
        prop_assert!(columns.windows(2).all(|pair| pair[0].high == pair[1].low));
        if let (Some(first), Some(last)) = (columns.first(), columns.last()) {
            prop_assert!(first.count > 0 && last.count > 0);
            // A bucket belongs to the column of its lower end, which is less than 0.1 % below.
            let sorted = sorted(&samples);
            let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
            prop_assert!(first.low.0 <= min && min <= first.high.0 + min / 1_000);
            prop_assert!(last.low.0 <= max && max <= last.high.0 + max / 1_000);
        }
    }

    #[test]
    fn the_percentile_curve_rises_from_minimum_to_maximum(samples in samples(2_000)) {
        let curve = series(&samples).percentile_curve();
        let sorted = sorted(&samples);
        prop_assert_eq!(curve.first().map(|p| p.latency.0), sorted.first().copied());
        prop_assert_eq!(curve.last().map(|p| p.latency.0), sorted.last().copied());
        prop_assert!(curve.len() < 400);
        for pair in curve.windows(2) {
            prop_assert!(pair[0].quantile < pair[1].quantile);
            prop_assert!(pair[0].latency <= pair[1].latency);
        }
        for point in curve.iter().skip(1) {
            let rank = (point.quantile * sorted.len() as f64).round() as usize;
            let exact = sorted[rank - 1];
            let got = point.latency.0;
            prop_assert!(exact <= got && got - exact <= exact / 1_000, "{got} for {exact}");
        }
    }
}

#[test]
fn the_tail_of_a_million_samples_is_found_among_sorted_ones() {
    // Latency = position, shuffled by a multiplication that is a bijection modulo 1,000,003 (a prime).
    let n = 1_000_002;
    let all: Vec<Sample> = (1..=n).map(|i| sample(i, i * 7_919 % 1_000_003)).collect();
    let summary = series(&all).summary();
    for (q, exact) in
        [(Quantile::P50, 500_001), (Quantile::P999, 999_002), (Quantile::P99999, 999_992)]
    {
        let got = summary.quantile(q).unwrap().0;
        assert!(exact <= got && got - exact <= exact / 1_000, "{q}: {got} for {exact}");
    }
    assert_eq!((summary.min, summary.max), (Some(Nanos(1)), Some(Nanos(n))));
}

#[test]
fn a_quantile_needs_one_sample_above_it() {
    let quantiles = |n: u64| {
        let all: Vec<Sample> = (1..=n).map(|i| sample(i, i)).collect();
        series(&all).summary().quantiles.iter().map(|(q, _)| q.name()).collect::<Vec<_>>()
    };
    assert_eq!(quantiles(1), [""; 0]);
    assert_eq!(quantiles(2), ["p50"]);
    assert_eq!(quantiles(9), ["p50"]);
    assert_eq!(quantiles(10), ["p50", "p90"]);
    assert_eq!(quantiles(99), ["p50", "p90"]);
    assert_eq!(quantiles(100), ["p50", "p90", "p99"]);
    assert_eq!(quantiles(999), ["p50", "p90", "p99"]);
    assert_eq!(quantiles(10_000), ["p50", "p90", "p99", "p99.9", "p99.99"]);
}

#[test]
fn a_latency_beyond_any_run_is_tainted_and_not_clamped() {
    let summary = series(&[sample(0, LATENCY_MAX.0), sample(1, LATENCY_MAX.0 + 1)]).summary();
    assert_eq!((summary.count, summary.max), (1, Some(LATENCY_MAX)));
    assert_eq!(summary.losses, Losses { tainted: 1, ..Losses::default() });
    let summary = series(&[sample(2, u64::MAX)]).summary();
    assert_eq!((summary.count, summary.losses.tainted), (0, 1));
}

#[test]
fn series_of_another_clock_or_responder_are_refused_and_nothing_is_added() {
    let mut mine = series(&[sample(0, 5)]);
    let before = mine.clone();
    let clock = Series::new(Responder::Task.into(), Clock::Tsc);
    let responder = Series::new(Responder::Work.into(), Clock::Virtual);
    assert_eq!(mine.merge(&clock), Err(Mismatch::Clock(Clock::Virtual, Clock::Tsc)));
    let other = Mismatch::Responder(Responder::Task.into(), Responder::Work.into());
    assert_eq!(mine.merge(&responder), Err(other));
    assert!(mine == before);
}
