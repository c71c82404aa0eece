// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON of a summary, which scripts rely on.

use sample::{Clock, Insns, Loss, Nanos, Responder, Sample, SeriesId};
use serde_json::json;
use stats::{Series, Summary};

fn ten() -> Summary {
    let mut series = Series::new(Responder::ThreadedIrq.into(), Clock::Virtual);
    for trigger in 0..10 {
        let (at, latency) = (Nanos(trigger * 100), Nanos(trigger + 1));
        series.record(&Sample { series: SeriesId(0), trigger, at, latency, path: Some(Insns(1)) });
    }
    series.lose(Loss::Superseded, 3);
    series.summary()
}

#[test]
fn a_summary_is_written_with_units_in_its_keys() {
    let stddev_ns = 8.25f64.sqrt();
    let expected = json!({
        "responder": "threaded_irq", "clock": "virtual", "count": 10,
        "losses": {"unanswered": 0, "superseded": 3, "spurious": 0, "tainted": 0, "overrun": 0, "dropped": 0},
        "min_ns": 1, "mean_ns": 5.5, "stddev_ns": stddev_ns, "max_ns": 10,
        "quantiles": {"0.5": 5, "0.9": 9},
    });
    assert_eq!(serde_json::to_value(ten()).unwrap(), expected);
}

#[test]
fn a_summary_reads_back_as_it_was() {
    let text = serde_json::to_string(&ten()).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), ten());
}

#[test]
fn without_samples_there_are_no_numbers_but_losses() {
    let summary = Series::new(Responder::Task.into(), Clock::Tsc).summary();
    let value = serde_json::to_value(&summary).unwrap();
    for key in ["min_ns", "mean_ns", "stddev_ns", "max_ns"] {
        assert!(value[key].is_null(), "{key}");
    }
    assert_eq!(value["quantiles"], json!({}));
    assert_eq!(serde_json::from_value::<Summary>(value).unwrap(), summary);
}

#[test]
fn foreign_quantiles_and_keys_are_refused() {
    let read = |change: fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(ten()).unwrap();
        change(&mut value);
        serde_json::from_value::<Summary>(value).map_err(|e| e.to_string())
    };
    let quantile = read(|v| v["quantiles"]["0.95"] = json!(10)).unwrap_err();
    assert!(quantile.contains("0.95"), "{quantile}");
    let falling = read(|v| v["quantiles"] = json!({"0.5": 9, "0.9": 5})).unwrap_err();
    assert!(falling.contains("do not rise"), "{falling}");
    let key = read(|v| v["p50"] = json!(10)).unwrap_err();
    assert!(key.contains("p50"), "{key}");
}
