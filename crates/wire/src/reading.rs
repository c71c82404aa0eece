// SPDX-License-Identifier: GPL-2.0-or-later
//! What a probe or the driver reports: a latency that it measured itself, or that it lost something.

use sample::{Loss, Monotonic, Nanos, Observation, Sample, SeriesId, Stamp};

/// A line of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A latency.
    Sample {
        /// Which series: an index into those of the probe's plan. From the driver: the responder's pin.
        series: u16,
        /// Number of the event in its series, from 0; lost events have numbers too.
        number: u64,
        /// When the event was due, since the beginning of measuring. From the driver: on CLOCK_MONOTONIC itself.
        at: Stamp<Monotonic>,
        /// How late the answer was.
        latency: Nanos,
    },
    /// Events that gave no latency.
    Loss {
        /// As of a sample.
        series: u16,
        /// Why.
        loss: Loss,
        /// How many.
        count: u64,
    },
}

/// What a probe read, in the form that everything that looks at runs takes. Nobody counts instructions between event
/// and answer.
impl From<Reading> for Observation {
    fn from(reading: Reading) -> Observation {
        match reading {
            Reading::Sample { series, number, at, latency } => Observation::Sample(Sample {
                series: SeriesId(series),
                trigger: number,
                at: Nanos(at.ns()),
                latency,
                path: None,
            }),
            Reading::Loss { series, loss, count } => {
                Observation::Loss(SeriesId(series), loss, count)
            }
        }
    }
}
