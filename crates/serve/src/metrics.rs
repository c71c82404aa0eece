// SPDX-License-Identifier: GPL-2.0-or-later
//! `/metrics`: the live numbers for other tools, in OpenMetrics 1.0 (text format). Who asks for Prometheus' protobuf
//! format gets native histograms too ([`crate::native`]).

use crate::State;
use crate::live::{ChannelTold, Told};
use crate::native;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sample::Nanos;
use stats::{Series, Worst};
use std::collections::BTreeMap;
use std::fmt::Write;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Upper ends of the buckets, in ns: 1, 2 and 5 of each decade.
pub const BUCKETS: [u64; 19] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];

/// How often each latency came, for the buckets of others. A latency counts as beyond the end of a bucket where its own
/// column of the histogram, which is narrower than 0.1 % of it, lies across that end: nobody who counts what is beyond
/// a limit misses one.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// How many are in each of [`BUCKETS`] or below.
    pub below: [u64; BUCKETS.len()],
    /// How many are in each native bucket, by its index.
    pub native: BTreeMap<i32, u64>,
    /// How many are 0.
    pub zero: u64,
}

impl Counted {
    /// Of all latencies of a series.
    pub fn of(series: &Series) -> Counted {
        let mut counted = Counted::default();
        let histogram = series.histogram();
        for bucket in histogram.iter_recorded() {
            let count = bucket.count_at_value();
            let low = histogram.lowest_equivalent(bucket.value_iterated_to());
            let first = BUCKETS.partition_point(|end| *end < bucket.value_iterated_to());
            counted.below[first..].iter_mut().for_each(|below| *below += count);
            match low {
                0 => counted.zero += count,
                low => {
                    let index = native::index(seconds(Nanos(low)));
                    *counted.native.entry(index).or_default() += count;
                }
            }
        }
        counted
    }
}

/// Units of others are seconds.
pub fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// The sum of a responder's latencies in seconds.
pub fn sum(channel: &ChannelTold) -> f64 {
    channel.summary.mean.unwrap_or(0.0) * channel.summary.count as f64 / 1e9
}

/// The worst latency of each bucket, if any of the worst lies there: the bucket after the last is that without an end.
/// A latency whose column of the histogram reaches into the next bucket counts there and lies here: it is in neither.
/// Only of a run that is recorded: its name and the number of the trigger are what `onset export` and the report name.
pub fn exemplars(channel: &ChannelTold) -> [Option<Worst>; BUCKETS.len() + 1] {
    let mut of = [None; BUCKETS.len() + 1];
    // The worst come first.
    for worst in &channel.worst {
        let of_time = |time: u64| BUCKETS.partition_point(|end| *end < time);
        let counted = of_time(stats::bucket(worst.latency.0).1);
        if counted == of_time(worst.latency.0) {
            of[counted] = of[counted].or(Some(*worst));
        }
    }
    of
}

pub async fn metrics(shared: State, headers: HeaderMap) -> Response {
    let told = shared.live.told();
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match prefers_protobuf(accept) {
        true => ([(CONTENT_TYPE, native::TYPE)], native::families(&told)).into_response(),
        false => ([(CONTENT_TYPE, TYPE)], text(&told)).into_response(),
    }
}

/// Whether an `Accept` header asks for the protobuf format, at least as much as for text.
fn prefers_protobuf(accept: &str) -> bool {
    let (mut protobuf, mut other) = (0.0_f64, 0.0_f64);
    for range in accept.split(',') {
        let mut words = range.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let weight = words.iter().find_map(|word| word.strip_prefix("q=")).unwrap_or("1");
        let weight = weight.parse().unwrap_or(0.0);
        let is = |word: &str| words.iter().any(|said| said.replace('"', "") == word);
        if kind == "application/vnd.google.protobuf"
            && is("proto=io.prometheus.client.MetricFamily")
            && is("encoding=delimited")
        {
            protobuf = protobuf.max(weight);
        } else if ["application/openmetrics-text", "text/plain"].contains(&kind) {
            other = other.max(weight);
        }
    }
    protobuf > 0.0 && protobuf >= other
}

/// The text of a page's numbers.
fn text(told: &Told) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# TYPE onset_latency_seconds histogram\n# UNIT onset_latency_seconds seconds"
    );
    let _ = writeln!(text, "# HELP onset_latency_seconds From a trigger to the answer.");
    for channel in &told.channels {
        histogram(&mut text, told, channel);
    }
    let _ = writeln!(
        text,
        "# TYPE onset_latency_max_seconds gauge\n# UNIT onset_latency_max_seconds seconds"
    );
    for channel in &told.channels {
        if let Some(max) = channel.summary.max {
            let (name, max) = (channel.summary.responder.as_str(), seconds(max));
            let _ = writeln!(text, "onset_latency_max_seconds{{responder=\"{name}\"}} {max}");
        }
    }
    let _ = writeln!(
        text,
        "# TYPE onset_lost counter\n# HELP onset_lost What was not measured, by kind."
    );
    for channel in &told.channels {
        let name = channel.summary.responder.as_str();
        for (kind, n) in channel.summary.losses.named() {
            let _ = writeln!(text, "onset_lost_total{{responder=\"{name}\",kind=\"{kind}\"}} {n}");
        }
    }
    text += "# EOF\n";
    text
}

/// The end of a bucket as the format wants to have it: with an exponent of two digits below 0.0001.
fn canonical(end: f64) -> String {
    let text = format!("{end:e}");
    match text.split_once("e-") {
        Some((digits, power)) if end < 1e-4 => format!("{digits}e-{power:0>2}"),
        _ => end.to_string(),
    }
}

fn histogram(text: &mut String, told: &Told, channel: &ChannelTold) {
    let (name, count) = (channel.summary.responder.as_str(), channel.summary.count);
    let ends = BUCKETS.map(|end| canonical(seconds(Nanos(end)))).into_iter();
    let below = channel.counted.below.into_iter().chain([count]);
    for ((end, below), worst) in ends.chain(["+Inf".into()]).zip(below).zip(exemplars(channel)) {
        let _ = write!(
            text,
            "onset_latency_seconds_bucket{{responder=\"{name}\",le=\"{end}\"}} {below}"
        );
        if let (Some(run), Some(Worst { trigger, latency, .. })) = (&told.recorded, worst) {
            let latency = seconds(latency);
            let _ = write!(text, " # {{run=\"{run}\",sample=\"{trigger}\"}} {latency}");
        }
        text.push('\n');
    }
    let sum = sum(channel);
    let _ = writeln!(text, "onset_latency_seconds_sum{{responder=\"{name}\"}} {sum}");
    let _ = writeln!(text, "onset_latency_seconds_count{{responder=\"{name}\"}} {count}");
}

#[cfg(test)]
mod tests;
