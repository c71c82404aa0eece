// SPDX-License-Identifier: GPL-2.0-or-later
//! The live numbers in the protobuf format of Prometheus (`io/prometheus/client/metrics.proto`, package
//! `io.prometheus.client`), in which a histogram has native buckets beside the others: eight for each doubling.

use crate::live::{ChannelTold, Told};
use crate::metrics::{BUCKETS, exemplars, seconds, sum};
use prost::Message;
use sample::Nanos;
use stats::Worst;

pub const TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
/// Buckets for each doubling are 2 to the power of this.
const SCHEMA: i32 = 3;

/// The index of the native bucket of a number above 0: bucket `n` ends with 2^(n/8), which belongs to it.
pub fn index(number: f64) -> i32 {
    (number.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, required, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Label>,
    #[prost(double, required, tag = "2")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, required, tag = "1")]
    cumulative_count: u64,
    #[prost(double, required, tag = "2")]
    upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<Exemplar>,
}

/// Neighbouring buckets: how far after the end of the span before, or for the first after bucket 0; and how many.
#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(sint32, required, tag = "1")]
    offset: i32,
    #[prost(uint32, required, tag = "2")]
    length: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, required, tag = "1")]
    sample_count: u64,
    #[prost(double, required, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, required, tag = "5")]
    schema: i32,
    #[prost(double, required, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, required, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    /// Each is how many more are in a bucket than in the one before it.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Family {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(int32, required, tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

/// The kinds of families.
const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
const HISTOGRAM: i32 = 4;

/// All families, one after the other, each with its length before it.
pub fn families(told: &Told) -> Vec<u8> {
    let label = |name: &str, value: &str| Label { name: name.into(), value: value.into() };
    let of = |channel: &ChannelTold| vec![label("responder", channel.summary.responder.as_str())];
    let channels = told.channels.iter();
    let latencies = channels.clone().map(|channel| Metric {
        label: of(channel),
        histogram: Some(histogram(told, channel)),
        ..Metric::default()
    });
    let longest = channels.clone().filter_map(|channel| {
        let gauge = Some(Number { value: seconds(channel.summary.max?) });
        Some(Metric { label: of(channel), gauge, ..Metric::default() })
    });
    let lost = channels.flat_map(|channel| {
        channel.summary.losses.named().map(|(kind, n)| Metric {
            label: [of(channel), vec![label("kind", kind)]].concat(),
            counter: Some(Number { value: n as f64 }),
            ..Metric::default()
        })
    });
    let family = |name: &str, help: &str, kind, metric: Vec<Metric>| Family {
        name: name.into(),
        help: help.into(),
        kind,
        metric,
    };
    let all = [
        family(
            "onset_latency_seconds",
            "From a trigger to the answer.",
            HISTOGRAM,
            latencies.collect(),
        ),
        family("onset_latency_max_seconds", "The longest.", GAUGE, longest.collect()),
        family("onset_lost_total", "What was not measured, by kind.", COUNTER, lost.collect()),
    ];
    // A family without a metric is none.
    all.iter()
        .filter(|family| !family.metric.is_empty())
        .flat_map(Message::encode_length_delimited_to_vec)
        .collect()
}

fn histogram(told: &Told, channel: &ChannelTold) -> Histogram {
    let count = channel.summary.count;
    let ends = BUCKETS.map(|end| seconds(Nanos(end))).into_iter().chain([f64::INFINITY]);
    let below = channel.counted.below.into_iter().chain([count]);
    let bucket =
        ends.zip(below).zip(exemplars(channel)).map(|((upper_bound, below), worst)| Bucket {
            cumulative_count: below,
            upper_bound,
            exemplar: worst.and_then(|worst| exemplar(told, &worst)),
        });
    let (mut positive_span, mut positive_delta) = (Vec::<Span>::new(), Vec::new());
    let (mut next, mut before) = (0, 0_i64);
    for (index, count) in &channel.counted.native {
        match positive_span.last_mut() {
            Some(span) if *index == next => span.length += 1,
            _ => positive_span.push(Span { offset: *index - next, length: 1 }),
        }
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        positive_delta.push(count - before);
        (next, before) = (*index + 1, count);
    }
    Histogram {
        sample_count: count,
        sample_sum: sum(channel),
        bucket: bucket.collect(),
        schema: SCHEMA,
        zero_threshold: 0.0,
        zero_count: channel.counted.zero,
        positive_span,
        positive_delta,
    }
}

fn exemplar(told: &Told, worst: &Worst) -> Option<Exemplar> {
    let run = told.recorded.as_ref()?;
    let label = |name: &str, value: String| Label { name: name.into(), value };
    let label = vec![label("run", run.to_string()), label("sample", worst.trigger.to_string())];
    Some(Exemplar { label, value: seconds(worst.latency) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::example;

    fn decoded(mut bytes: &[u8]) -> Vec<Family> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            all.push(Family::decode_length_delimited(&mut bytes).expect("a family"));
        }
        all
    }

    #[test]
    fn native_buckets_hold_their_latencies_and_add_up_to_the_count() {
        let families = decoded(&families(&example()));
        let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
        assert_eq!(
            names,
            ["onset_latency_seconds", "onset_latency_max_seconds", "onset_lost_total"]
        );
        let histogram = families[0].metric[0].histogram.as_ref().expect("a histogram");
        // What a reader of the format does: spans and deltas to indices and counts.
        let (mut counts, mut deltas) = (Vec::new(), histogram.positive_delta.iter());
        let (mut next, mut count) = (0, 0);
        for span in &histogram.positive_span {
            next += span.offset;
            for _ in 0..span.length {
                count += deltas.next().expect("a delta for each bucket");
                counts.push((next, count));
                next += 1;
            }
        }
        assert!(deltas.next().is_none());
        assert_eq!(counts.iter().map(|(_, n)| n).sum::<i64>() as u64, histogram.sample_count);
        for latency in [5e-6_f64, 6e-6, 9e-4] {
            let end = |n: i32| (f64::from(n) / 8.0).exp2();
            let holds = |n: i32| end(n - 1) < latency && latency * 0.999 <= end(n);
            assert!(
                counts.iter().any(|(n, count)| *count == 1 && holds(*n)),
                "{latency}: {counts:?}"
            );
        }
        assert_eq!(
            histogram.bucket.last().map(|b| (b.cumulative_count, b.upper_bound)),
            Some((3, f64::INFINITY))
        );
        assert_eq!(
            families[2]
                .metric
                .iter()
                .filter_map(|m| m.counter.as_ref())
                .map(|c| c.value)
                .sum::<f64>(),
            4.0
        );
    }

    #[test]
    fn a_recorded_run_has_exemplars_and_nothing_at_all_is_no_family() {
        let run = "20261121-200000-live-0001".parse().expect("a run");
        let families = decoded(&super::families(&Told { recorded: Some(run), ..example() }));
        let histogram = families[0].metric[0].histogram.as_ref().expect("a histogram");
        let told: Vec<f64> =
            histogram.bucket.iter().filter_map(|b| Some(b.exemplar.as_ref()?.value)).collect();
        assert_eq!(told, [6e-6, 9e-4], "a bucket has one");
        assert!(super::families(&Told::default()).is_empty());
    }
}
