// SPDX-License-Identifier: GPL-2.0-or-later
//! The edges of a run for the page's oscilloscope: those of the trigger's line, and those by which the pins answered.
//! For the probe `toggle`, the line is what was due, and the pin is what it made of it.
//!
//! A long run has more edges than a page can carry. Then the page has whole stretches of time at even distances, and
//! each stretch with the longest latency of a responder: no maximum is left out.

use crate::edges::{Edges, LINE, PINS_MAX};
use bundle::{Bundle, BundleError, Details, Manifest};
use sample::{Nanos, Sample};
use serde::Serialize;

/// The most samples of all runs of a page: about 6 MB of it.
pub const SAMPLES_MAX: u64 = 1 << 20;
/// In how many stretches a run is cut if only some of it is shown.
const STRETCHES: u64 = 4096;

/// A trigger's line is drawn as a needle where nobody says for how long it was high.
const UNKNOWN: Nanos = Nanos(1);

/// What an oscilloscope at the port saw of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scope {
    /// The names of the pins. The first is the trigger's line, or what was due of a probe's pulses.
    pins: Vec<String>,
    /// How many samples the edges stand for.
    samples: u64,
    /// How many samples the run has.
    samples_of_run: u64,
    /// Begin and end in ns of each stretch of time whose triggers are here, in rising order.
    stretches: Vec<[u64; 2]>,
    /// The edges in the order of time, as base64 of: the time since the edge before, in ns, seven bits a byte from the
    /// lowest on, with the top bit set in all bytes but the last; then a byte of twice the pin, plus one for high. A
    /// pin toggles with each answer, and its first edge is said to rise: a pin that lost edges may be the other way
    /// round.
    edges: String,
}

/// What a pin's edges are made of.
enum Kind {
    /// Each responder toggles a pin of its own; the trigger's line is high for so long.
    Triggers(Nanos),
    /// These two series are the rising and the falling edges of one pin.
    Pulses([usize; 2]),
}

fn kind(manifest: &Manifest) -> Option<Kind> {
    let place = |name| manifest.series.iter().position(|s| s.responder.as_str() == name);
    if let Some(trigger) = &manifest.about.experiment.trigger {
        return Some(Kind::Triggers(trigger.high));
    }
    if manifest.about.target == "generator" {
        return Some(Kind::Triggers(UNKNOWN));
    }
    Some(Kind::Pulses([place("rise")?, place("fall")?]))
}

/// The edges of at most about `samples_max` samples; none for a run in which no line triggered.
pub(super) fn scope(
    bundle: &Bundle,
    details: &[Details],
    samples_max: u64,
) -> Result<Option<Scope>, BundleError> {
    let manifest = bundle.manifest();
    let Some(kind) = kind(manifest).filter(|_| manifest.series.len() < PINS_MAX) else {
        return Ok(None);
    };
    let pins = match &kind {
        Kind::Triggers(_) => {
            let names = manifest.series.iter().map(|s| s.responder.as_str().to_owned());
            std::iter::once("trigger".to_owned()).chain(names).collect()
        }
        Kind::Pulses(_) => vec!["due".to_owned(), "pin".to_owned()],
    };
    let chosen = Chosen::of(manifest, details, samples_max);
    let mut seen = Seen { kind, edges: Edges::default(), answers: vec![0; manifest.series.len()] };
    let mut samples = 0;
    bundle.samples(|sample| {
        let is_shown = chosen.has(sample.at);
        samples += u64::from(seen.take(&sample, is_shown));
    })?;
    let (stretches, samples_of_run) = (chosen.stretches(), manifest.samples.count);
    Ok(Some(Scope { pins, samples, samples_of_run, stretches, edges: seen.edges.encode() }))
}

/// The edges of samples.
struct Seen {
    kind: Kind,
    edges: Edges,
    /// Answers of each series so far.
    answers: Vec<u64>,
}

impl Seen {
    /// Takes a sample, and its edges if it is shown. Says whether it has any.
    fn take(&mut self, sample: &Sample, is_shown: bool) -> bool {
        let (at, made) = (sample.at, sample.at.saturating_add(sample.latency));
        let index = sample.series.index();
        let (pin, is_high) = match self.kind {
            Kind::Triggers(_) => {
                self.answers[index] += 1;
                (index as u8 + 1, self.answers[index] % 2 == 1)
            }
            Kind::Pulses(edges) => match edges.iter().position(|e| *e == index) {
                Some(edge) => (1, edge == 0),
                None => return false,
            },
        };
        if !is_shown {
            return false;
        }
        self.edges.add(made, pin, is_high);
        match self.kind {
            Kind::Triggers(high) => {
                self.edges.add(at, LINE, true);
                self.edges.add(at.saturating_add(high), LINE, false);
            }
            Kind::Pulses(_) => self.edges.add(at, LINE, is_high),
        }
        true
    }
}

/// The stretches of time that are shown.
struct Chosen {
    /// How long each is.
    width: Nanos,
    shown: Vec<bool>,
}

impl Chosen {
    fn of(manifest: &Manifest, details: &[Details], samples_max: u64) -> Chosen {
        let until = manifest.samples.until.unwrap_or(Nanos(u64::MAX - 1));
        let every = manifest.samples.count.div_ceil(samples_max.max(1));
        if every <= 1 {
            return Chosen { width: until.saturating_add(Nanos(1)), shown: vec![true] };
        }
        let width = Nanos(until.0 / STRETCHES + 1);
        let mut shown: Vec<bool> = (0..STRETCHES).map(|n| n % every == 0).collect();
        for worst in details.iter().filter_map(|d| d.worst.first()) {
            shown[(worst.at.0 / width.0) as usize] = true;
        }
        Chosen { width, shown }
    }

    fn has(&self, at: Nanos) -> bool {
        self.shown.get((at.0 / self.width.0) as usize).is_some_and(|shown| *shown)
    }

    /// Begin and end of each, neighbours as one.
    fn stretches(&self) -> Vec<[u64; 2]> {
        let mut stretches: Vec<[u64; 2]> = Vec::new();
        for (n, _) in (0u64..).zip(&self.shown).filter(|(_, shown)| **shown) {
            let (begin, end) = (n * self.width.0, (n + 1) * self.width.0);
            match stretches.last_mut() {
                Some(last) if last[1] == begin => last[1] = end,
                _ => stretches.push([begin, end]),
            }
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, engine::general_purpose::STANDARD};
    use bundle::examples::{run_id, write_bundle};
    use std::collections::BTreeSet;

    /// Time and code of each edge.
    fn decoded(scope: &Scope) -> Vec<(u64, u8)> {
        let mut bytes = STANDARD.decode(&scope.edges).unwrap().into_iter();
        let (mut at, mut edges) = (0, Vec::new());
        while let Some(mut byte) = bytes.next() {
            let (mut since, mut shift) = (0, 0);
            loop {
                since |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
                byte = bytes.next().unwrap();
            }
            at += since;
            edges.push((at, bytes.next().unwrap()));
        }
        edges
    }

    fn scope_of(triggers: u64, samples_max: u64) -> (Scope, Vec<Sample>, Bundle) {
        let root = tempfile::tempdir().unwrap();
        let bundle = Bundle::open(&write_bundle(root.path(), &run_id(0), triggers)).unwrap();
        let mut samples = Vec::new();
        bundle.samples(|sample| samples.push(sample)).unwrap();
        let details = bundle.details().unwrap();
        (scope(&bundle, &details, samples_max).unwrap().unwrap(), samples, bundle)
    }

    #[test]
    fn a_short_run_has_each_edge_and_pins_rise_and_fall_in_turn() {
        let (scope, samples, _) = scope_of(50, 1_000);
        assert_eq!((scope.samples, scope.samples_of_run), (100, 100));
        let edges = decoded(&scope);
        let mut expected = BTreeSet::new();
        for sample in &samples {
            let is_high = sample.trigger % 2 == 0;
            let pin = sample.series.0 as u8 + 1;
            expected.insert((sample.at.0 + sample.latency.0, pin << 1 | u8::from(is_high)));
            expected.insert((sample.at.0, 1));
            expected.insert((sample.at.0 + 500_000, 0));
        }
        assert_eq!(edges, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(scope.stretches.len(), 1);
    }

    #[test]
    fn a_long_run_is_thinned_and_loses_no_maximum() {
        let (scope, samples, bundle) = scope_of(20_000, 1_000);
        assert!(scope.samples < 2_000, "{}", scope.samples);
        assert_eq!(scope.samples_of_run, 40_000);
        let edges: BTreeSet<(u64, u8)> = decoded(&scope).into_iter().collect();
        for (series, summary) in (0..).zip(&bundle.manifest().series) {
            let max = summary.max.unwrap();
            let of = |s: &&Sample| s.series.0 == series && s.latency == max;
            let worst = samples.iter().find(of).unwrap();
            let made = worst.at.0 + max.0;
            let is_there = |high| edges.contains(&(made, (series as u8 + 1) << 1 | high));
            assert!(is_there(0) || is_there(1), "{} lost its maximum", summary.responder);
            assert!(edges.contains(&(worst.at.0, 1)), "its trigger is lost");
        }
        let inside =
            |at: u64| scope.stretches.iter().any(|[begin, end]| (*begin..*end).contains(&at));
        let risen = edges.iter().filter(|(_, code)| *code == 1);
        assert!(risen.clone().count() > 400 && risen.clone().all(|(at, _)| inside(*at)));
    }
}
