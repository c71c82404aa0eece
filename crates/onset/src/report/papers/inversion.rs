// SPDX-License-Identifier: GPL-2.0-or-later
//! Rostedt, Hart: Internals of the RT Patch (2007), figures 1 and 2: unbounded and bounded priority inversion. The paper draws
//! them without numbers; here the high thread's wait is measured against the middle one's work.

use super::claim::Claim;
use super::runs::{Runs, row};
use super::{MAX, MEDIAN, Picture, Row, Table, Unit};
use crate::bundle::Manifest;
use sample::Nanos;
use serde::Serialize;
use stats::Verdict;

const MS: Unit = Unit::Millis;

/// Waits against work.
#[derive(Debug, Serialize)]
pub struct Chart {
    /// In the order of the report: for each run the plain mutex, then the one with priority inheritance.
    pub lines: Vec<Line>,
}

/// One mutex on one flavour.
#[derive(Debug, Serialize)]
pub struct Line {
    /// The flavour.
    pub flavour: String,
    /// With priority inheritance.
    pub inherits: bool,
    /// By rising work.
    pub points: Vec<Point>,
}

/// One length of the middle thread's work.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// How long it worked.
    #[serde(rename = "work_ns")]
    pub work: Nanos,
    /// How long the high one waited at the most.
    #[serde(rename = "wait_ns_max")]
    pub wait_max: Nanos,
}

/// Figures 1 and 2.
pub(super) fn table(runs: &Runs) -> Table {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for manifest in runs.manifests() {
        for inherits in [false, true] {
            rows.extend(rows_of(manifest, inherits));
            lines.push((manifest.conclusion.verdict, line(manifest, inherits)));
        }
    }
    let sound = lines.iter().filter(|(verdict, _)| *verdict != Verdict::Invalid).map(|(_, l)| l);
    let (alike, changed) = claims(&sound.collect::<Vec<_>>());
    let lines: Vec<Line> =
        lines.into_iter().map(|(_, l)| l).filter(|l| !l.points.is_empty()).collect();
    Table {
        id: "2007-inversion",
        heading: "Priority inversion, unbounded and bounded",
        source: "Rostedt, Hart 2007, figures 1 and 2",
        columns: vec![MS.column("median wait"), MS.column("max wait")],
        rows,
        absent: runs.absent(),
        note: format!(
            "{} Rows: kind of mutex and work of the middle thread. The paper draws both figures without numbers.",
            runs.note()
        ),
        alike,
        changed,
        picture: (!lines.is_empty()).then_some(Picture::Chart(Chart { lines })),
    }
}

/// Series of one mutex with the middle thread's work, by rising work. Their names hold it: `plain-1ms`.
fn series(manifest: &Manifest, inherits: bool) -> Vec<(Nanos, &str)> {
    let prefix = if inherits { "pi-" } else { "plain-" };
    let names = manifest.series.iter().map(|s| s.responder.as_str());
    let mut found: Vec<(Nanos, &str)> =
        names.filter_map(|n| Some((n.strip_prefix(prefix)?.parse().ok()?, n))).collect();
    found.sort();
    found
}

fn rows_of(manifest: &Manifest, inherits: bool) -> Vec<Row> {
    let mutex = if inherits { "inheriting" } else { "plain" };
    let row = |(work, name): (Nanos, &str)| {
        let label = format!("{}, {mutex}, {work}", manifest.about.flavour);
        row(manifest, label, MS, &[(name, MEDIAN), (name, MAX)])
    };
    series(manifest, inherits).into_iter().filter_map(row).collect()
}

fn line(manifest: &Manifest, inherits: bool) -> Line {
    let point = |(work, name)| {
        let wait_max = super::runs::summary(manifest, name)?.max?;
        Some(Point { work, wait_max })
    };
    let points = series(manifest, inherits).into_iter().filter_map(point).collect();
    Line { flavour: manifest.about.flavour.clone(), inherits, points }
}

/// How much the wait grows with the work: least squares; 1 is in full, 0 not at all. None with fewer than two lengths of work.
fn slope(points: &[Point]) -> Option<f64> {
    let pairs = || points.iter().map(|p| (p.work.0 as f64, p.wait_max.0 as f64));
    let n = points.len() as f64;
    let mean_x = pairs().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = pairs().map(|(_, y)| y).sum::<f64>() / n;
    let across: f64 = pairs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let along: f64 = pairs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (along > 0.0).then(|| across / along)
}

fn claims(lines: &[&Line]) -> (Claim, Claim) {
    let slopes = |inherits| -> Vec<f64> {
        lines.iter().filter(|l| l.inherits == inherits).filter_map(|l| slope(&l.points)).collect()
    };
    let plain = slopes(false).into_iter().reduce(f64::min);
    let bounded = slopes(true).into_iter().reduce(f64::max);
    let (Some(plain), Some(bounded)) = (plain, bounded) else {
        let why = "It takes both mutexes with two lengths of work at least.";
        return (Claim::unknown(why), Claim::unknown(why));
    };
    // Without a sign before a zero.
    let per_ms = |slope: f64| format!("{:.2}", (slope * 100.0).round() / 100.0 + 0.0);
    let text = format!(
        "What each ms of the middle thread's work adds to the high one's wait: all of it against nothing then, at least {} ms with \
         a plain mutex against at most {} ms with an inheriting one now.",
        per_ms(plain),
        per_ms(bounded),
    );
    // In full against hardly: between them lies a kernel that does something else.
    let alike = Claim::alike(plain > 0.9 && bounded < 0.1, text);
    let longest = |inherits| {
        lines
            .iter()
            .filter(|l| l.inherits == inherits)
            .flat_map(|l| &l.points)
            .map(|p| p.wait_max)
            .max()
    };
    let plain = longest(false).map_or(super::ABSENT.into(), |n| n.to_string());
    let inheriting = longest(true).map_or(super::ABSENT.into(), |n| n.to_string());
    let text = format!(
        "A drawing then, numbers now: the longest wait is {plain} with a plain mutex, {inheriting} with an inheriting one."
    );
    (alike, Claim { word: "changed", text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(inherits: bool, waits_ns: [u64; 3]) -> Line {
        let point = |(work, wait)| Point { work: Nanos(work), wait_max: Nanos(wait) };
        let points = [1_000_000, 2_000_000, 10_000_000].into_iter().zip(waits_ns).map(point);
        Line { flavour: "6.12".into(), inherits, points: points.collect() }
    }

    #[test]
    fn a_wait_that_grows_with_the_work_is_unbounded_and_one_that_does_not_is_bounded() {
        let grows = line(false, [1_500_000, 2_500_000, 10_500_000]);
        let stays = line(true, [500_000, 510_000, 505_000]);
        assert!((slope(&grows.points).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(claims(&[&grows, &stays]).0.word, "alike");
        // An inheritance that does not work must not be called bounded.
        let broken = Line { inherits: true, ..line(false, [1_500_000, 2_500_000, 10_500_000]) };
        assert_eq!(claims(&[&grows, &broken]).0.word, "not alike");
        assert_eq!(claims(&[&grows]).0.word, "not known");
    }
}
