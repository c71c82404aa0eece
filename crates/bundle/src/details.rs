// SPDX-License-Identifier: GPL-2.0-or-later
//! `series.json`: the data that a report draws. With this file, a report never has to read the samples.

use sample::SeriesName;
use serde::{Deserialize, Serialize};
use stats::{COLUMNS_PER_OCTAVE, Column, CurvePoint, Series, Slice, Worst};

/// The distribution of one responder's latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Details {
    /// The responder.
    pub responder: SeriesName,
    /// The histogram, with a logarithmic axis.
    pub columns: Vec<Column>,
    /// The percentile plot.
    pub curve: Vec<CurvePoint>,
    /// The latency over the time of the run.
    pub timeline: Vec<Slice>,
    /// The worst samples, longest first.
    pub worst: Vec<Worst>,
}

impl Details {
    /// The distribution of a series.
    pub fn of(series: &Series) -> Self {
        Details {
            responder: series.responder().clone(),
            columns: series.columns(COLUMNS_PER_OCTAVE),
            curve: series.percentile_curve(),
            timeline: series.timeline().buckets(),
            worst: series.worst().to_vec(),
        }
    }
}
