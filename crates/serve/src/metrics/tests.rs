// SPDX-License-Identifier: GPL-2.0-or-later
//! The text that other tools read, held against the rules of its format.

mod format;

use super::*;
use crate::live::example;

/// The exemplar of a line: its labels, and its value.
fn exemplar(line: &str) -> Option<(&str, f64)> {
    let (labels, value) = line.split_once(" # {")?.1.split_once("} ")?;
    Some((labels, value.parse().expect("a number")))
}

#[test]
fn buckets_rise_to_the_count_and_the_text_ends_as_the_format_says() {
    let text = text(&example());
    let buckets = text.lines().filter(|line| line.contains("_bucket{responder=\"task\""));
    let counts: Vec<u64> =
        buckets.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(counts.is_sorted() && counts.len() == BUCKETS.len() + 1, "{text}");
    assert_eq!(counts.last(), Some(&3));
    // The column of 5,000 ns ends at 5,003 ns.
    assert!(text.contains("le=\"5e-06\"} 0\n") && text.contains("le=\"1e-05\"} 2\n"), "{text}");
    assert!(text.contains("onset_latency_max_seconds{responder=\"task\"} 0.0009"), "{text}");
    assert!(text.contains("onset_lost_total{responder=\"task\",kind=\"superseded\"} 4"), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_recorded_run_is_named_by_exemplars_that_lie_in_their_buckets_and_no_other_is() {
    assert!(!text(&example()).contains(" # "));
    let run = "20261121-200000-live-0001".parse().expect("a run");
    let text = text(&Told { recorded: Some(run), ..example() });
    let mut found = Vec::new();
    let mut low = f64::NEG_INFINITY;
    for line in text.lines().filter(|line| line.contains("_bucket{")) {
        let end = line.split_once("le=\"").unwrap().1.split_once('"').unwrap().0;
        let high: f64 = end.parse().unwrap();
        if let Some((labels, value)) = exemplar(line) {
            assert!(low < value && value <= high, "{line}");
            // 128 characters of names and values are what a reader has to take.
            assert!(labels.len() <= 128, "{line}");
            found.push((labels, value));
        }
        low = high;
    }
    let label = |n| format!("run=\"20261121-200000-live-0001\",sample=\"{n}\"");
    let wanted = [(label(1), 6e-6), (label(2), 9e-4)];
    assert!(found.iter().copied().eq(wanted.iter().map(|(l, v)| (l.as_str(), *v))), "{found:?}");
}

#[test]
fn the_protobuf_format_is_for_who_asks_for_it_first() {
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let text = "application/openmetrics-text;version=1.0.0";
    assert!(prefers_protobuf(protobuf));
    assert!(prefers_protobuf(&format!("{protobuf};q=0.6,{text};q=0.5,*/*;q=0.1")));
    assert!(!prefers_protobuf(&format!("{protobuf};q=0.4,{text};q=0.5")));
    for other in ["", "*/*", text, &format!("{protobuf};q=0"), "application/vnd.google.protobuf"] {
        assert!(!prefers_protobuf(other), "{other}");
    }
}

#[test]
fn what_is_said_is_valid_openmetrics_also_where_nothing_was_measured() {
    let run = "20261121-200000-live-0001".parse().expect("a run");
    for told in [Told::default(), example(), Told { recorded: Some(run), ..example() }] {
        let text = text(&told);
        format::check(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    }
    let sound = text(&example());
    let bucket = "onset_latency_seconds_bucket{responder=\"task\",le=\"5e-06\"} 0";
    assert!(sound.contains(bucket));
    // What the check is for.
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF\n\n"),
        (bucket, "onset_latency_seconds_bucket{responder=\"task\",le=\"5e-06\"} 3"),
        (bucket, "onset_latency_seconds_bucket{responder=\"task\",le=\"5e-06\"} x"),
        (
            "onset_latency_seconds_count{responder=\"task\"} 3",
            "onset_latency_seconds_count{responder=\"task\"} 4",
        ),
        ("_lost_total{", "_lost{"),
        ("# UNIT onset_latency_seconds seconds", "# UNIT onset_latency_seconds ns"),
        ("# TYPE onset_lost counter", "# TYPE onset_latency_seconds counter"),
        ("responder=\"task\",kind", "kind=\"\",kind"),
        ("} 0.0009", "} 0.0009 # {run=\"r\"} 1"),
    ] {
        let wrong = sound.replace(from, to);
        assert!(wrong != sound && format::check(&wrong).is_err(), "{from} {to}");
    }
}
