// SPDX-License-Identifier: GPL-2.0-or-later
//! What recording costs. Prints figures; asserts none.

use core::hint::black_box;
use sample::{Clock, Insns, Nanos, Responder, Sample, SeriesId};
use stats::Series;
use std::time::Instant;

const SAMPLES: u64 = 10_000_000;

/// Latencies from 128 ns to 8 ms with a long tail, from a linear congruential generator (Knuth's MMIX).
fn sample(trigger: u64, state: &mut u64) -> Sample {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let octave = (*state >> 60).min((*state >> 56) & 15);
    let latency = Nanos((128 + ((*state >> 32) & 127)) << octave);
    let at = Nanos(trigger * 1_000_000);
    Sample { series: SeriesId(0), trigger, at, latency, path: Some(Insns(latency.0)) }
}

fn main() {
    let mut state = 1;
    let started = Instant::now();
    for trigger in 0..SAMPLES {
        black_box(sample(trigger, &mut state));
    }
    let making = started.elapsed();

    let mut series = Series::new(Responder::Task.into(), Clock::Virtual);
    let started = Instant::now();
    for trigger in 0..SAMPLES {
        series.record(black_box(&sample(trigger, &mut state)));
    }
    let recording = started.elapsed().saturating_sub(making);
    let started = Instant::now();
    let summary = black_box(series.summary());
    let summarising = started.elapsed();
    println!(
        "recording {:.1} ns a sample; {} samples recorded and summarised in {:.3} s",
        recording.as_nanos() as f64 / SAMPLES as f64,
        summary.count,
        (recording + summarising).as_secs_f64(),
    );
}
