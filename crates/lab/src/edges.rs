// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures pulses as the port saw them. In the rig the samples of `toggle` are made of the edges that the rig's port
//! recorded. These edges judge what the probe said.
//!
//! The vantage point is the device's side of the bus, in virtual time. The guest's CLOCK_MONOTONIC says how much later
//! than due an edge is, through the line of [`rig::ClockLine`]. The module cannot see an edge that the probe wrote to
//! anything but the rig's port.

use bundle::{Deviation, Truth};
use probes::Probe;
use probes::plan::Line;
use rig::{ClockLine, Level, Witness};
use sample::{Loss, Monotonic, Nanos, Observation, Sample, SeriesId, SeriesName, Stamp};
use std::collections::BTreeMap;
use wire::ports::PARALLEL;

/// The pin that the probe toggles (crates/probes/src/toggle/line.rs).
const D7: u16 = 0x80;
/// The series of `toggle`, by their numbers.
const RISE: SeriesId = SeriesId(0);
const FALL: SeriesId = SeriesId(1);
const WIDTH: SeriesId = SeriesId(2);
const SERIES: usize = 3;

/// The length of the pulses that the rig's port sees. `None` if the probe makes none there.
pub fn width(probe: &Probe) -> Option<Nanos> {
    match probe {
        Probe::Toggle(toggle) if toggle.line == Line::ParallelPort(PARALLEL) => Some(toggle.width),
        _ => None,
    }
}

/// The true pulses of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The samples by the edges, in the order of the reports. Also the run's losses, and the edges and reports without
    /// a partner.
    pub observations: Vec<Observation>,
    /// The reported values minus the true ones, for each series.
    pub truths: Vec<Truth>,
}

/// Replaces the probe's observations `reported` of the series `names` by the edges of the port. Times count from
/// `origin`. A pulse is `width` long by the plan.
///
/// An edge belongs to a report that was made after it and before the next edge of its kind. A report without an edge is
/// *unanswered*, an edge without a report is *spurious*, and an edge before it was due is *tainted*. If the guest died
/// before it reported its clock, or if the probe did not report its origin, nothing relates the edges to the times that
/// were due. Then every report is *dropped*.
pub fn judge(
    names: &[SeriesName],
    width: Nanos,
    reported: &[Observation],
    origin: Option<Stamp<Monotonic>>,
    witness: &Witness,
) -> Seen {
    let (Some(line), Some(origin)) = (witness.clock_line(), origin) else {
        return Seen { observations: reported.iter().map(unrelated).collect(), truths: Vec::new() };
    };
    let [rises, falls] = [D7, 0].map(|level| Edges::to(level, origin, &witness.levels, &line));
    let (edges, rose) = ([rises, falls], BTreeMap::new());
    let mut pulses = Pulses { origin, width, edges, rose, judged: Default::default() };
    let mut observations: Vec<Observation> = reported.iter().map(|o| pulses.seen(*o)).collect();
    let surplus = [RISE, FALL].into_iter().zip(pulses.edges.iter().map(Edges::surplus));
    let spurious = |(id, n)| (n > 0).then_some(Observation::Loss(id, Loss::Spurious, n));
    observations.extend(surplus.filter_map(spurious));
    let truths = names.iter().zip(pulses.judged).zip(0..);
    let truths = truths.map(|((name, judged), id)| Truth {
        series: name.clone(),
        samples: judged.samples,
        matched: judged.errors.len() as u64,
        error: Deviation::of(judged.errors),
        // From one edge to another the offset of the guest's clock does not matter.
        uncertainty: if SeriesId(id) == WIDTH { Nanos(1) } else { line.uncertainty() },
        own: None,
    });
    Seen { observations, truths: truths.collect() }
}

/// The loss in place of a report that nothing relates to an edge.
fn unrelated(reported: &Observation) -> Observation {
    match *reported {
        Observation::Sample(sample) => Observation::Loss(sample.series, Loss::Dropped, 1),
        loss => loss,
    }
}

/// The edges of one kind, by the guest's clock.
struct Edges {
    at: Vec<Stamp<Monotonic>>,
    next: usize,
    matched: u64,
    uncertainty: Nanos,
}

impl Edges {
    /// The edges by which D7 gets this level, from `origin` on. Before that the probe makes the pin low.
    fn to(level: u16, origin: Stamp<Monotonic>, levels: &[Level], line: &ClockLine) -> Edges {
        let changed = levels.windows(2).filter(|pair| (pair[0].pins ^ pair[1].pins) & D7 != 0);
        let to_level = changed.filter(|pair| pair[1].pins & D7 == level);
        let at = to_level.filter_map(|pair| line.to_monotonic(pair[1].at));
        Edges {
            at: at.filter(|at| *at >= origin).collect(),
            next: 0,
            matched: 0,
            uncertainty: line.uncertainty(),
        }
    }

    /// The last edge that was not taken before, up to the instant at which the probe says that it had made the edge.
    fn take(&mut self, made: Stamp<Monotonic>) -> Option<Stamp<Monotonic>> {
        let until = made.saturating_add(self.uncertainty);
        let before = self.at[self.next..].iter().take_while(|at| **at <= until).count();
        self.next += before;
        self.matched += u64::from(before > 0);
        (before > 0).then(|| self.at[self.next - 1])
    }

    /// The number of edges that nobody reported.
    fn surplus(&self) -> u64 {
        self.at.len() as u64 - self.matched
    }
}

/// What the probe said of a series, and by how much each value was too large.
#[derive(Default)]
struct Judged {
    samples: u64,
    errors: Vec<i64>,
}

struct Pulses {
    origin: Stamp<Monotonic>,
    width: Nanos,
    edges: [Edges; 2],
    /// The rising and the falling edge of each pulse that is being reported, by the pulse's number.
    rose: BTreeMap<u64, [Option<Stamp<Monotonic>>; 2]>,
    judged: [Judged; SERIES],
}

impl Pulses {
    /// The true observation for a report.
    fn seen(&mut self, reported: Observation) -> Observation {
        let Observation::Sample(sample) = reported else { return reported };
        let index = sample.series.index();
        self.judged[index].samples += 1;
        let latency = match sample.series {
            WIDTH => self.differs(sample.trigger),
            _ => self.late(&sample),
        };
        match latency {
            Ok(latency) => {
                // No time of a run is beyond 292 years.
                self.judged[index].errors.push(sample.latency.0 as i64 - latency.0 as i64);
                Observation::Sample(Sample { latency, ..sample })
            }
            Err(loss) => Observation::Loss(sample.series, loss, 1),
        }
    }

    /// How late an edge was.
    fn late(&mut self, sample: &Sample) -> Result<Nanos, Loss> {
        let index = sample.series.index();
        let due = self.origin.saturating_add(sample.at);
        let made = due.saturating_add(sample.latency);
        let edge = self.edges[index].take(made);
        self.rose.entry(sample.trigger).or_default()[index] = edge;
        let edge = edge.ok_or(Loss::Unanswered)?;
        edge.since(due).ok_or(Loss::Tainted)
    }

    /// By how much the length of a pulse differed from the wanted length.
    fn differs(&mut self, number: u64) -> Result<Nanos, Loss> {
        let Some([Some(rise), Some(fall)]) = self.rose.remove(&number) else {
            return Err(Loss::Unanswered);
        };
        let length = fall.since(rise).ok_or(Loss::Tainted)?;
        Ok(length.abs_diff(self.width))
    }
}

#[cfg(test)]
mod tests;
