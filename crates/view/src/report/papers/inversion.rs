// SPDX-License-Identifier: GPL-2.0-or-later
//! Rostedt, Hart: Internals of the RT Patch (2007), figures 1 and 2: unbounded and bounded priority inversion. The
//! paper draws them without numbers. onset measures the wait of the high thread against the work of the middle one.

use super::claim::{Expects, Said, Scale};
use super::runs::{Repetition, Run, Runs, row, summary};
use super::{Picture, Row, Statistic, Table, Unit};
use bundle::Manifest;
use probes::{INVERSION_INSTANTS, Thread, instant_counter};
use sample::Nanos;
use serde::Serialize;
use std::rc::Rc;

const MS: Unit = Unit::Millis;

/// The waits of the high thread against the work of the middle one.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, title = "WaitChart"))]
pub struct Chart {
    /// The lines in the order of the report: for each run first the plain mutex, then the one with priority
    /// inheritance.
    pub lines: Vec<Line>,
    /// Who runs when, as both figures draw it: for each flavour first the plain mutex, then the one with priority
    /// inheritance, with the shortest work of the middle thread.
    pub courses: Vec<Course>,
}

/// The repetition with the longest wait: which thread ran when.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitCourse"))]
pub struct Course {
    /// The flavour.
    pub flavour: String,
    /// Whether the mutex has priority inheritance.
    pub inherits: bool,
    /// How long the middle thread works.
    #[serde(rename = "work_ns")]
    pub work: Nanos,
    /// The turns by time.
    pub turns: Vec<Turn>,
    /// When the high thread asked for the mutex.
    #[serde(rename = "asked_ns")]
    pub asked: Nanos,
    /// When the high thread had the mutex.
    #[serde(rename = "locked_ns")]
    pub locked: Nanos,
}

/// A stretch in which one thread runs. It ends where the next thread says that it runs, so the switch is in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitTurn"))]
pub struct Turn {
    /// Who runs.
    pub thread: Thread,
    /// Whether it holds the mutex.
    pub holds: bool,
    /// From when, since the low thread began.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// Until when.
    #[serde(rename = "to_ns")]
    pub to: Nanos,
}

/// One mutex on one flavour.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitLine"))]
pub struct Line {
    /// The flavour.
    pub flavour: String,
    /// Whether the mutex has priority inheritance.
    pub inherits: bool,
    /// The points by rising work.
    pub points: Vec<Point>,
}

/// One length of the middle thread's work.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WaitPoint"))]
pub struct Point {
    /// How long the middle thread worked.
    #[serde(rename = "work_ns")]
    pub work: Nanos,
    /// The longest wait of the high thread.
    #[serde(rename = "wait_ns_max")]
    pub wait_max: Nanos,
}

const PLAIN: Said = Said {
    paper: "Without priority inheritance the high thread waits for as long as the middle one works (figure 1): all work of the middle thread is \
 added to the wait of the high one.",
    what: "Share of the middle thread's work that is added to the longest wait of the high thread, plain mutex, for the kernel with the smallest share",
    scale: Scale::Share,
    expects: Expects::Exactly,
    effect: 0.9,
    needs: "sound runs with at least two lengths of the middle thread's work",
};
const INHERITING: Said = Said {
    paper: "With priority inheritance the wait is bounded (figure 2): no work of the middle thread is added to it.",
    what: "Share of the middle thread's work that is added to the longest wait of the high thread, inheriting mutex, for the kernel with the greatest share",
    expects: Expects::Same,
    effect: 0.1,
    ..PLAIN
};

/// Figures 1 and 2.
pub(super) fn table(runs: &Runs) -> Table {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    let mut courses = Vec::new();
    for group in runs.groups() {
        for inherits in [false, true] {
            rows.extend(rows_of(&group, inherits));
            let points = group.iter().map(|run| line(run.manifest(), inherits));
            lines.extend(points.reduce(longest));
            courses.extend(course(group[0].manifest(), inherits));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    let seeds = runs.repetitions();
    let slopes = |r: &Repetition, inherits: bool| -> Vec<f64> {
        let of = |run: &Run| slope(&line(run.manifest(), inherits).points);
        r.iter().filter_map(of).collect()
    };
    let claims = vec![
        PLAIN.told(&runs.each(|r| slopes(r, false).into_iter().reduce(f64::min)), seeds),
        INHERITING.told(&runs.each(|r| slopes(r, true).into_iter().reduce(f64::max)), seeds),
    ];
    Table {
        id: "2007-inversion",
        heading: "Priority inversion, unbounded and bounded",
        source: "Rostedt, Hart 2007, figures 1 and 2",
        columns: vec![MS.column("median wait"), MS.column("max wait")],
        rows,
        absent: runs.absent(),
        note: format!(
            "{} Each row names the kind of mutex and the work of the middle thread. The paper draws both figures without numbers.",
            runs.note()
        ),
        claims,
        picture: (!lines.is_empty()).then_some(Picture::Chart(Chart { lines, courses })),
    }
}

/// The line through the longer of the waits of two repetitions.
fn longest(a: Line, b: Line) -> Line {
    let longer = |p: &Point| {
        let other = b.points.iter().find(|q| q.work == p.work).map_or(p.wait_max, |q| q.wait_max);
        Point { work: p.work, wait_max: p.wait_max.max(other) }
    };
    Line { points: a.points.iter().map(longer).collect(), ..a }
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

fn rows_of(group: &[Rc<Run>], inherits: bool) -> Vec<Row> {
    let mutex = if inherits { "inheriting" } else { "plain" };
    let row = |(work, name): (Nanos, &str)| {
        let label = format!("{}, {mutex}, {work}", group[0].flavour());
        row(group, label, MS, &[(name, Statistic::Median), (name, Statistic::Max)])
    };
    series(group[0].manifest(), inherits).into_iter().filter_map(row).collect()
}

fn line(manifest: &Manifest, inherits: bool) -> Line {
    let point = |(work, name)| {
        let wait_max = summary(manifest, name)?.max?;
        Some(Point { work, wait_max })
    };
    let points = series(manifest, inherits).into_iter().filter_map(point).collect();
    Line { flavour: manifest.about.flavour.clone(), inherits, points }
}

/// Who runs when with the shortest work of the middle thread. None if the run does not say, as those of older versions.
fn course(manifest: &Manifest, inherits: bool) -> Option<Course> {
    let (work, name) = *series(manifest, inherits).first()?;
    let instant = |instant: &str| {
        manifest.about.probe_counters.get(&instant_counter(instant, name)).copied().map(Nanos)
    };
    let (asked, locked) = (instant("high_asked")?, instant("high_locked")?);
    let mut instants: Vec<(Nanos, Thread)> = INVERSION_INSTANTS
        .iter()
        .map(|(name, thread)| Some((instant(name)?, *thread)))
        .collect::<Option<_>>()?;
    instants.sort_by_key(|(at, _)| *at);
    let took = instant("low_locked")?;
    let holder = |at: Nanos| match () {
        () if at >= locked => Some(Thread::High),
        () if at >= took => Some(Thread::Low),
        () => None,
    };
    let turns = instants.windows(2).map(|two| {
        let ((from, who), (to, _)) = (two[0], two[1]);
        Turn { thread: who, holds: holder(from) == Some(who), from, to }
    });
    Some(Course {
        flavour: manifest.about.flavour.clone(),
        inherits,
        work,
        turns: joined(turns),
        asked,
        locked,
    })
}

/// Turns of one thread, one after the other, are one.
fn joined(turns: impl Iterator<Item = Turn>) -> Vec<Turn> {
    turns.fold(Vec::new(), |mut all: Vec<Turn>, turn| {
        match all.last_mut() {
            Some(last) if (last.thread, last.holds) == (turn.thread, turn.holds) => {
                last.to = turn.to
            }
            _ => all.push(turn),
        }
        all
    })
}

/// How much the wait grows with the work: least squares; 1 is in full, 0 not at all. None with fewer than two lengths
/// of work.
fn slope(points: &[Point]) -> Option<f64> {
    let pairs = || points.iter().map(|p| (p.work.0 as f64, p.wait_max.0 as f64));
    let n = points.len() as f64;
    let mean_x = pairs().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = pairs().map(|(_, y)| y).sum::<f64>() / n;
    let across: f64 = pairs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let along: f64 = pairs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (along > 0.0).then(|| across / along)
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
    fn what_is_added_to_the_wait_is_all_of_the_work_or_none_of_it() {
        let grows = line(false, [1_500_000, 2_500_000, 10_500_000]);
        let stays = line(true, [500_000, 510_000, 505_000]);
        assert!((slope(&grows.points).unwrap() - 1.0).abs() < 1e-9);
        assert!(slope(&stays.points).unwrap().abs() < 0.01);
        assert_eq!(slope(&grows.points[..1]), None);
    }

    #[test]
    fn of_several_repetitions_the_longest_waits_are_drawn() {
        let both = longest(line(true, [500, 900, 600]), line(true, [700, 800, 600]));
        assert_eq!(both.points.iter().map(|p| p.wait_max.0).collect::<Vec<_>>(), [700, 900, 600]);
    }

    /// What a run with a plain mutex counted: each thread's instants, 10 ns apart.
    fn counted() -> Manifest {
        let mut manifest = bundle::examples::manifest_of("6.12-rt", &["plain-1ms", "pi-1ms"]);
        for (n, (instant, _)) in INVERSION_INSTANTS.iter().enumerate() {
            let counter = instant_counter(instant, "plain-1ms");
            manifest.about.probe_counters.insert(counter, 10 * n as u64);
        }
        manifest
    }

    #[test]
    fn a_thread_runs_from_its_instant_until_that_of_another() {
        let course = course(&counted(), false).unwrap();
        assert_eq!(
            (course.work, course.asked, course.locked),
            (Nanos(1_000_000), Nanos(20), Nanos(80))
        );
        let turns = [
            (Thread::Low, false, 0, 10),
            (Thread::Low, true, 10, 20),
            (Thread::High, false, 20, 30),
            (Thread::Low, true, 30, 40),
            (Thread::Middle, false, 40, 60),
            (Thread::Low, true, 60, 80),
            (Thread::High, true, 80, 100),
        ];
        let turn =
            |(thread, holds, from, to)| Turn { thread, holds, from: Nanos(from), to: Nanos(to) };
        assert_eq!(course.turns, turns.map(turn));
    }

    #[test]
    fn a_run_that_does_not_say_who_ran_when_has_no_course() {
        let mut manifest = counted();
        assert_eq!(course(&manifest, true), None);
        manifest.about.probe_counters.remove("low_works_plain-1ms_ns");
        assert_eq!(course(&manifest, false), None);
    }
}
