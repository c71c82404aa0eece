// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of fixture bundles: what their lines say follows from the numbers.

use super::*;
use crate::bundle::tests::{about, run_id};
use crate::bundle::{About, Begun, BundleWriter, Conclusion, Warning};
use sample::{Clock, Nanos, Observation, Sample, SeriesId};
use std::path::Path;

const DELAY: &str = include_str!("../../../../../experiments/papers/2001-tables-1-2.toml");

/// A run of a paper's experiment whose series hold these latencies.
fn run(
    root: &Path,
    n: u64,
    paper: Paper,
    flavour: &str,
    load: &str,
    series: &[(&str, &[u64])],
) -> Bundle {
    let mut about = About { flavour: flavour.into(), load: load.into(), ..about() };
    about.experiment.paper = Some(paper.name().into());
    about.experiment.source = DELAY.into();
    about.experiment.trigger = None;
    finished(root, n, about, series, Vec::new())
}

fn finished(
    root: &Path,
    n: u64,
    about: About,
    series: &[(&str, &[u64])],
    warnings: Vec<Warning>,
) -> Bundle {
    let responders = series.iter().map(|(name, _)| name.parse().unwrap()).collect();
    let begun = Begun {
        schema: crate::bundle::SCHEMA,
        run: run_id(n),
        clock: Clock::Virtual,
        responders,
        about: about.clone(),
        limits: Vec::new(),
        warnings: Vec::new(),
    };
    let mut writer = BundleWriter::create(root, &begun).unwrap();
    for ((_, latencies), id) in series.iter().zip(0..) {
        for (latency, trigger) in latencies.iter().zip(0..) {
            let sample = Sample {
                series: SeriesId(id),
                trigger,
                at: Nanos(trigger * 1_000_000),
                latency: Nanos(*latency),
                path: None,
            };
            writer.observe(&Observation::Sample(sample)).unwrap();
        }
    }
    let conclusion = Conclusion::of(&writer.summaries(), Vec::new(), warnings);
    Bundle::open(&writer.finish(about, conclusion, true).unwrap()).unwrap()
}

fn table(bundles: &[Bundle], id: &str) -> Table {
    tables(bundles).unwrap().into_iter().find(|t| t.id == id).expect("the table")
}

const TICKING: &str = "6.12 preempt=none highres=off nohz=off";
const PRECISE: &str = "6.12 preempt=none";

#[test]
fn our_rows_follow_the_papers_with_its_unit_and_lead_to_their_run() {
    let root = tempfile::tempdir().unwrap();
    let slept: &[(&str, &[u64])] = &[("nanosleep-50ms", &[1_900_000, 2_000_000, 2_100_000])];
    let bundles = [run(root.path(), 0, Paper::Delay2001, TICKING, "disk", slept)];
    let table = table(&bundles, "2001-1");
    assert_eq!(table.rows.len(), 7);
    let texts = |row: &Row| row.cells.iter().map(|c| c.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&table.rows[0]), ["0.2", "11.2", "119.6"]);
    let ours = &table.rows[6];
    assert_eq!((ours.label.as_str(), ours.whose), (TICKING, Whose::Ours));
    assert_eq!(texts(ours), ["1.90", "2.00", "2.10"]);
    assert_eq!(ours.cells[2].exact_ns, Some(2_100_000.0));
    let basis = ours.basis.as_ref().unwrap();
    assert_eq!((basis.run.as_str(), basis.count, basis.lost), (run_id(0).as_str(), 3, 0));
}

#[test]
fn rows_that_the_experiment_would_give_are_said_to_be_absent() {
    let root = tempfile::tempdir().unwrap();
    let bundles =
        [run(root.path(), 0, Paper::Delay2001, PRECISE, "disk", &[("nanosleep-50ms", &[30_000])])];
    let disk = table(&bundles, "2001-1");
    assert_eq!(disk.absent.len(), 7);
    assert!(disk.absent.contains(&"6.12-rt under disk".into()), "{:?}", disk.absent);
    assert_eq!(table(&bundles, "2001-2").absent.len(), 8);
}

#[test]
fn a_line_says_alike_only_while_the_numbers_do() {
    let root = tempfile::tempdir().unwrap();
    let mut n = 0;
    let mut word = |ticking: u64, precise: u64| {
        let mut one = |flavour, latency| {
            n += 1;
            run(
                root.path(),
                n,
                Paper::Delay2001,
                flavour,
                "disk",
                &[("nanosleep-50ms", &[latency])],
            )
        };
        let bundles = [one(TICKING, ticking), one(PRECISE, precise)];
        let table = table(&bundles, "2001-1");
        (table.alike.word, table.changed.word)
    };
    assert_eq!(word(2_000_000, 56_000), ("alike", "changed"));
    assert_eq!(word(57_000, 56_000).0, "not alike");
    assert_eq!(word(104_000_000, 56_000), ("alike", "hardly changed"));
}

#[test]
fn nothing_is_concluded_from_an_invalid_run_though_its_row_is_shown() {
    let root = tempfile::tempdir().unwrap();
    let sound =
        run(root.path(), 0, Paper::Delay2001, TICKING, "disk", &[("nanosleep-50ms", &[2_000_000])]);
    let mut about = sound.manifest().about.clone();
    about.flavour = PRECISE.into();
    let doubt = vec![Warning::GuestOops { text: "BUG".into() }];
    let unsound = finished(root.path(), 1, about, &[("nanosleep-50ms", &[30_000])], doubt);
    let table = table(&[sound, unsound], "2001-1");
    assert_eq!(table.rows.len(), 8);
    assert_eq!(table.alike.word, "not known");
}

#[test]
fn the_screen_shows_each_edge_where_it_was_and_counts_those_beyond() {
    let root = tempfile::tempdir().unwrap();
    let edges: &[(&str, &[u64])] =
        &[("rise", &[10_000, 10_000, 900_000]), ("fall", &[5_000, 5_000, 0])];
    let bundles = [run(root.path(), 0, Paper::Toggle2007, "6.12-rt", "fs", edges)];
    let table = table(&bundles, "2007-toggle");
    let Some(Picture::Screens(screens)) = &table.picture else { panic!("no picture") };
    assert_eq!((screens.division, screens.width), (Nanos(50_000), Nanos(50_000)));
    let [screen] = &screens.screens[..] else { panic!("one run") };
    // A place is 1 µs and the rise is due at place 50. The rise that was 900 µs late is beyond.
    assert_eq!(screen.edges.iter().map(|l| l.place).collect::<Vec<_>>(), [60, 100, 105]);
    assert_eq!((screen.beyond, screen.latest), (1, Some(Nanos(900_000))));
    assert_eq!((screen.high, screen.low), ([60, 105], [500, 100]));
    let ours = table.rows.last().unwrap();
    assert_eq!(
        ours.cells.iter().map(|c| &*c.text).collect::<Vec<_>>(),
        ["fs", "890", "900", "—", "—"]
    );
}

#[test]
fn every_paper_gives_its_tables_even_from_runs_without_any_series_of_it() {
    let root = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for (paper, n) in Paper::ALL.into_iter().zip(0..) {
        let bundles = [run(root.path(), n, paper, PRECISE, "idle", &[("other", &[1])])];
        for table in tables(&bundles).unwrap() {
            assert!(
                table.rows.iter().all(|row| row.cells.len() == table.columns.len()),
                "{}",
                table.id
            );
            assert_eq!(table.alike.word, "not known", "{}", table.id);
            ids.push(table.id);
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12);
}

#[test]
fn figures_have_three_digits_and_those_of_the_papers_are_read_as_printed() {
    for (value, text) in [
        (10.912, "10.9"),
        (119.6, "120"),
        (0.0312, "0.0312"),
        (-9.8, "-9.80"),
        (0.0, "0"),
        (3000.4, "3000"),
    ] {
        assert_eq!(figure(value), text);
    }
    assert_eq!(
        (number("190*"), number("≈ 3000"), number(ABSENT)),
        (Some(190.0), Some(3000.0), None)
    );
}
