// SPDX-License-Identifier: GPL-2.0-or-later
//! What a probe reports: a latency that it measured itself, or that it lost something.
//!
//! On the wire a [`Record`], so that rings, the rig's channel and their collectors carry both.

use crate::{Insns, Kind, Loss, Nanos, Observation, Record, Sample, SeriesId, Stamp};

/// A line of a probe's report. `series` is an index into the series of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A latency.
    Sample {
        /// Which series.
        series: u16,
        /// Number of the event in its series, from 0; lost events have numbers too.
        number: u64,
        /// When the event was due, since the beginning of measuring.
        at: Nanos,
        /// How late the answer was.
        latency: Nanos,
    },
    /// Events that gave no latency.
    Loss {
        /// Which series.
        series: u16,
        /// Why.
        loss: Loss,
        /// How many.
        count: u64,
    },
}

impl Reading {
    /// As a record.
    pub fn record(self) -> Record {
        match self {
            Reading::Sample { series, number, at, latency } => Record {
                kind: Kind::Sample,
                pins: 0,
                value: u32::from(series),
                number,
                at: Stamp::from_ns(at.0),
                insns: Insns(latency.0),
            },
            Reading::Loss { series, loss, count } => Record {
                kind: Kind::Loss,
                pins: loss as u8,
                value: u32::from(series),
                number: count,
                at: Stamp::from_ns(0),
                insns: Insns(0),
            },
        }
    }

    /// The reading in a record; `None` where it is a generator's record, or names no series or loss.
    pub fn of(record: &Record) -> Option<Reading> {
        let series = u16::try_from(record.value).ok()?;
        match record.kind {
            Kind::Sample => Some(Reading::Sample {
                series,
                number: record.number,
                at: Nanos(record.at.ns()),
                latency: Nanos(record.insns.0),
            }),
            Kind::Loss => {
                let loss = Loss::ALL.into_iter().find(|l| *l as u8 == record.pins)?;
                Some(Reading::Loss { series, loss, count: record.number })
            }
            _ => None,
        }
    }
}

/// What a probe read, as all that looks at runs takes it. Nobody counts instructions between event and answer.
impl From<Reading> for Observation {
    fn from(reading: Reading) -> Observation {
        match reading {
            Reading::Sample { series, number, at, latency } => Observation::Sample(Sample {
                series: SeriesId(series),
                trigger: number,
                at,
                latency,
                path: None,
            }),
            Reading::Loss { series, loss, count } => {
                Observation::Loss(SeriesId(series), loss, count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sample_survives_the_wire(series: u16, number: u64, at: u64, latency: u64) {
            let r = Reading::Sample { series, number, at: Nanos(at), latency: Nanos(latency) };
            prop_assert_eq!(Reading::of(&r.record()), Some(r));
        }

        #[test]
        fn a_loss_survives_the_wire(series: u16, kind in 0..Loss::ALL.len(), count: u64) {
            let r = Reading::Loss { series, loss: Loss::ALL[kind], count };
            prop_assert_eq!(Reading::of(&r.record()), Some(r));
        }
    }

    #[test]
    fn a_record_of_a_generator_or_of_no_series_is_no_reading() {
        let sample = Reading::Loss { series: 1, loss: Loss::Tainted, count: 2 }.record();
        assert_eq!(Reading::of(&Record { kind: Kind::Trigger, ..sample }), None);
        assert_eq!(Reading::of(&Record { value: 1 << 16, ..sample }), None);
        assert_eq!(Reading::of(&Record { pins: 200, ..sample }), None);
    }
}
