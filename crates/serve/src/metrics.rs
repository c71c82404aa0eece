// SPDX-License-Identifier: GPL-2.0-or-later
//! `/metrics`: the live numbers for other tools, in OpenMetrics 1.0 (text format).

use crate::State;
use crate::live::Told;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Upper ends of the buckets, in ns: 1, 2 and 5 of each decade.
const BUCKETS: [u64; 19] = [
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

pub async fn metrics(shared: State) -> Response {
    let text = text(&shared.live.told());
    ([(CONTENT_TYPE, TYPE)], text).into_response()
}

/// The text of a page's numbers. Buckets are those of the drawing: a latency may lie in the next one where a column of
/// the drawing lies across its end.
fn text(told: &Told) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# TYPE onset_latency_seconds histogram\n# UNIT onset_latency_seconds seconds"
    );
    let _ = writeln!(text, "# HELP onset_latency_seconds From a trigger to the answer.");
    for channel in &told.channels {
        let name = channel.summary.responder.as_str();
        for end in BUCKETS {
            let below = channel.columns.iter().filter(|column| column.high.0 <= end);
            let below: u64 = below.map(|column| column.count).sum();
            let _ = writeln!(
                text,
                "onset_latency_seconds_bucket{{responder=\"{name}\",le=\"{}\"}} {below}",
                end as f64 / 1e9
            );
        }
        let count = channel.summary.count;
        let sum = channel.summary.mean.unwrap_or(0.0) * count as f64 / 1e9;
        let _ = writeln!(
            text,
            "onset_latency_seconds_bucket{{responder=\"{name}\",le=\"+Inf\"}} {count}"
        );
        let _ = writeln!(text, "onset_latency_seconds_sum{{responder=\"{name}\"}} {sum}");
        let _ = writeln!(text, "onset_latency_seconds_count{{responder=\"{name}\"}} {count}");
    }
    let _ = writeln!(
        text,
        "# TYPE onset_latency_max_seconds gauge\n# UNIT onset_latency_max_seconds seconds"
    );
    for channel in &told.channels {
        if let Some(max) = channel.summary.max {
            let name = channel.summary.responder.as_str();
            let _ = writeln!(
                text,
                "onset_latency_max_seconds{{responder=\"{name}\"}} {}",
                max.0 as f64 / 1e9
            );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::example;

    #[test]
    fn buckets_rise_to_the_count_and_the_text_ends_as_the_format_says() {
        let text = text(&example());
        let buckets = text.lines().filter(|line| line.contains("_bucket{responder=\"task\""));
        let counts: Vec<u64> =
            buckets.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert!(counts.is_sorted() && counts.len() == BUCKETS.len() + 1, "{text}");
        assert_eq!(counts.last(), Some(&3));
        assert!(text.contains("onset_latency_max_seconds{responder=\"task\"} 0.0009"), "{text}");
        assert!(
            text.contains("onset_lost_total{responder=\"task\",kind=\"superseded\"} 4"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }
}
