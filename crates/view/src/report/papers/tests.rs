// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of fixture bundles: what becomes of each claim follows from the numbers of several repetitions.

use super::claim::Outcome;
use super::*;
use bundle::examples::{about, run_id};
use bundle::{About, Begun, BundleWriter, Conclusion, Warning};
use sample::{Clock, Nanos, Observation, Sample, SeriesId};
use std::path::Path;

const DELAY: &str = include_str!("../../../../../experiments/papers/2001-tables-1-2.toml");

/// A run of a paper's experiment in a guest of some seed whose series hold these latencies.
struct One<'a> {
    paper: Paper,
    flavour: &'a str,
    load: &'a str,
    seed: u32,
    series: &'a [(&'a str, &'a [u64])],
}

/// Where fixture bundles are, each under a name of its own.
struct Store {
    root: tempfile::TempDir,
    made: u64,
}

impl Store {
    fn new() -> Store {
        Store { root: tempfile::tempdir().unwrap(), made: 0 }
    }

    fn run(&mut self, one: One) -> Bundle {
        let mut about = about();
        (about.flavour, about.load) = (one.flavour.into(), one.load.into());
        about.experiment.paper = Some(one.paper.name().into());
        about.experiment.source = DELAY.into();
        about.experiment.trigger = None;
        about.experiment.overrides = vec![("guest.seed".into(), one.seed.to_string())];
        if let Some(kernel) = &mut about.kernel {
            kernel.reported.insert("hz".into(), "250".into());
        }
        self.finished(about, one.series, Vec::new())
    }

    fn finished(
        &mut self,
        about: About,
        series: &[(&str, &[u64])],
        warnings: Vec<Warning>,
    ) -> Bundle {
        self.made += 1;
        finished(self.root.path(), self.made, about, series, warnings)
    }

    /// Runs of three seeds, whose latencies `of` gives by the seed.
    fn three(
        &mut self,
        (paper, flavour, load): (Paper, &str, &str),
        series: &str,
        of: impl Fn(u64) -> Vec<u64>,
    ) -> Vec<Bundle> {
        let run = |seed: u32| {
            let latencies = of(seed.into());
            let series: &[(&str, &[u64])] = &[(series, &latencies)];
            self.run(One { paper, flavour, load, seed, series })
        };
        [1, 2, 3].map(run).into()
    }
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
        schema: bundle::SCHEMA,
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
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), Vec::new(), warnings);
    Bundle::open(&writer.finish(about, conclusion, true).unwrap()).unwrap()
}

fn table(bundles: &[Bundle], id: &str) -> Table {
    tables(bundles).unwrap().into_iter().find(|t| t.id == id).expect("the table")
}

/// The claim whose sentence about the paper begins so.
fn claim<'t>(table: &'t Table, begins: &str) -> &'t Claim {
    table.claims.iter().find(|c| c.paper.starts_with(begins)).expect("the claim")
}

const TICKING: &str = "6.12 preempt=none highres=off nohz=off";
const PRECISE: &str = "6.12 preempt=none";
const FIFTY: &str = "nanosleep-50ms";

fn texts(row: &Row) -> Vec<String> {
    row.cells.iter().map(|c| c.text.clone()).collect()
}

#[test]
fn our_rows_follow_the_papers_hold_all_seeds_and_lead_to_the_first_run() {
    let mut store = Store::new();
    let cell = (Paper::Delay2001, TICKING, "disk");
    let bundles =
        store.three(cell, FIFTY, |seed| vec![400_000 * seed, 1_900_000, 2_000_000 + 50_000 * seed]);
    let table = table(&bundles, "2001-1");
    assert_eq!(table.rows.len(), 7);
    assert_eq!(texts(&table.rows[0]), ["—", "0.2", "11.2", "119.6"]);
    let ours = &table.rows[6];
    assert_eq!((ours.label.as_str(), ours.whose), (TICKING, Whose::Ours));
    // The first period has a column of its own; the least, the middle one's mean, the worst.
    assert_eq!(texts(ours), ["0.400", "0.400", "1.60", "2.15"]);
    assert_eq!(ours.cells[0].spread.as_deref(), Some("0.400 … 1.20"));
    assert_eq!(ours.cells[3].exact_ns, Some(2_150_000.0));
    assert!(table.note.contains("A tick is 4.00 ms; the paper's tick was 10 ms"), "{}", table.note);
    let basis = ours.basis.as_ref().unwrap();
    assert_eq!((basis.run.as_str(), basis.repetitions), (bundles[0].manifest().run.as_str(), 3));
    assert_eq!((basis.count, basis.lost), (9, 0));
}

#[test]
fn rows_and_seeds_that_the_experiment_would_give_are_said_to_be_absent() {
    let mut store = Store::new();
    let one = |load| One {
        paper: Paper::Delay2001,
        flavour: PRECISE,
        load,
        seed: 1,
        series: &[(FIFTY, &[30_000])],
    };
    let bundles = [store.run(one("disk"))];
    let disk = table(&bundles, "2001-1");
    assert_eq!(disk.absent.len(), 6);
    assert!(disk.absent.contains(&"6.12-rt under disk".into()), "{:?}", disk.absent);
    assert!(disk.absent.contains(&format!("{PRECISE} under disk: 2 of 3 seeds")));
    assert_eq!(table(&bundles, "2001-2").absent.len(), 6);
}

#[test]
fn a_claim_is_alike_only_while_every_seed_says_so() {
    let word = |ticking: [u64; 3], precise: u64| {
        let mut store = Store::new();
        let mut bundles = store.three((Paper::Delay2001, TICKING, "disk"), FIFTY, |seed| {
            vec![ticking[seed as usize - 1]]
        });
        bundles.extend(store.three((Paper::Delay2001, PRECISE, "disk"), FIFTY, |_| vec![precise]));
        claim(&table(&bundles, "2001-1"), "Timers that only").outcome
    };
    assert_eq!(word([2_000_000, 2_100_000, 1_900_000], 56_000), Outcome::Alike);
    assert_eq!(word([2_000_000, 57_000, 1_900_000], 56_000), Outcome::NoDifference);
    assert_eq!(word([20_000, 21_000, 22_000], 56_000), Outcome::Changed);
}

#[test]
fn one_seed_decides_nothing() {
    let mut store = Store::new();
    let mut one = |flavour, latency: u64| {
        let series: &[(&str, &[u64])] = &[(FIFTY, &[latency])];
        store.run(One { paper: Paper::Delay2001, flavour, load: "disk", seed: 1, series })
    };
    let bundles = [one(TICKING, 2_000_000), one(PRECISE, 56_000)];
    let table = table(&bundles, "2001-1");
    let claim = claim(&table, "Timers that only");
    assert_eq!(claim.outcome, Outcome::CannotBeTold);
    assert!(claim.here.contains("× 35.7") && claim.here.contains("1 of the 3 seeds"), "{claim:?}");
}

#[test]
fn runs_of_one_seed_are_one_repetition_however_often_it_was_run() {
    let mut store = Store::new();
    let mut again = || {
        let series: &[(&str, &[u64])] = &[(FIFTY, &[2_000_000])];
        store.run(One { paper: Paper::Delay2001, flavour: TICKING, load: "disk", seed: 4, series })
    };
    let bundles = [again(), again(), again()];
    let table = table(&bundles, "2001-1");
    let basis = table.rows[6].basis.as_ref().unwrap();
    assert_eq!((table.rows.len(), basis.repetitions, basis.count), (7, 1, 1));
}

#[test]
fn nothing_is_concluded_from_an_invalid_run_though_its_row_is_shown() {
    let mut store = Store::new();
    let mut bundles = store.three((Paper::Delay2001, TICKING, "disk"), FIFTY, |_| vec![2_000_000]);
    let precise = store.three((Paper::Delay2001, PRECISE, "disk"), FIFTY, |_| vec![30_000]);
    let (about, doubt) =
        (precise[2].manifest().about.clone(), vec![Warning::GuestOops { text: "BUG".into() }]);
    bundles.extend(precise.into_iter().take(2));
    bundles.push(store.finished(about, &[(FIFTY, &[30_000])], doubt));
    let table = table(&bundles, "2001-1");
    assert_eq!(table.rows.len(), 9);
    let claim = claim(&table, "Timers that only");
    assert_eq!(claim.outcome, Outcome::CannotBeTold);
    assert!(claim.here.contains("2 of the 3 seeds"), "{}", claim.here);
}

#[test]
fn no_line_divides_then_by_now() {
    let mut store = Store::new();
    let mut bundles = Vec::new();
    for flavour in [TICKING, PRECISE] {
        for load in ["disk", "net", "idle"] {
            let cell = (Paper::Delay2001, flavour, load);
            bundles.extend(store.three(cell, FIFTY, |seed| vec![7_000_000 * seed, 700_000]));
        }
    }
    for table in tables(&bundles).unwrap() {
        let json = serde_json::to_string(&table).unwrap();
        assert!(!json.contains(" now (") && !json.contains("÷"), "{json}");
        for claim in &table.claims {
            let here = format!("{}{:?}", claim.here, claim.spread);
            assert!(!here.contains("then") && !here.contains(" ms"), "{here}");
        }
    }
}

#[test]
fn the_first_period_is_told_from_the_others_in_ticks() {
    let word = |first: u64| {
        let mut store = Store::new();
        let cell = (Paper::Delay2001, TICKING, "disk");
        let bundles = store.three(cell, FIFTY, |_| [vec![first], vec![2_000_000; 99]].concat());
        claim(&table(&bundles, "2001-1"), "Problem 2").outcome
    };
    assert_eq!(word(300_000), Outcome::Alike);
    assert_eq!(word(3_700_000), Outcome::Alike);
    assert_eq!(word(2_000_000), Outcome::Changed);
}

#[test]
fn an_event_between_threads_of_one_processor_tells_nothing_of_the_paper() {
    let mut store = Store::new();
    let mut bundles = Vec::new();
    for flavour in [PRECISE, "6.12-rt"] {
        for load in ["idle", "compile"] {
            let cell = (Paper::Async2007, flavour, load);
            bundles.extend(store.three(cell, "condvar-same", |_| vec![4_000, 4_020, 4_040]));
        }
    }
    let table = table(&bundles, "2007-async");
    assert_eq!(table.claims[0].outcome, Outcome::CannotBeTold);
    assert!(table.claims[0].here.contains("× 1.00 to × 1.00 of that without load"), "{table:?}");
    // Another processor, on which the load does reach the waiting thread.
    let mut across = Vec::new();
    for (flavour, spread) in [(PRECISE, 900), ("6.12-rt", 100)] {
        for (load, times) in [("idle", 1), ("compile", 3)] {
            let cell = (Paper::Async2007, flavour, load);
            across.extend(
                store.three(cell, "condvar-across", |seed| {
                    vec![4_000, 4_000 + spread * times + seed]
                }),
            );
        }
    }
    assert_eq!(self::table(&across, "2007-async").claims[0].outcome, Outcome::Alike);
}

#[test]
fn a_load_that_does_not_reach_what_is_measured_is_no_evidence() {
    let word = |at_rest: u64| {
        let mut store = Store::new();
        let mut bundles = Vec::new();
        for (flavour, worst) in [(PRECISE, 900_000), ("6.12-rt", 100_000)] {
            for (load, worst) in [("idle", at_rest), ("compile", worst)] {
                let cell = (Paper::Toggle2007, flavour, load);
                bundles.extend(store.three(cell, "rise", |_| vec![10_000, worst]));
            }
        }
        claim(&table(&bundles, "2007-toggle"), "PREEMPT_RT keeps").clone()
    };
    assert_eq!(word(20_000).outcome, Outcome::Alike);
    let untold = word(890_000);
    assert_eq!(untold.outcome, Outcome::CannotBeTold);
    assert!(untold.here.contains("does not reach the pulse"), "{untold:?}");
}

#[test]
fn the_clock_that_nobody_else_disturbs_tells_nothing_of_the_paper() {
    let mut store = Store::new();
    let mut bundles = store.three((Paper::Gtod2007, PRECISE, "idle"), "realtime", |_| vec![9_000]);
    bundles.extend(store.three((Paper::Gtod2007, "6.12-rt", "idle"), "realtime", |_| vec![90]));
    let table = table(&bundles, "2007-gtod");
    assert_eq!(table.claims[0].outcome, Outcome::CannotBeTold);
    assert!(table.claims[0].here.contains("one processor"), "{table:?}");
}

#[test]
fn a_tick_more_than_rounding_up_is_alike_and_none_is_changed() {
    let word = |more: [u64; 2]| {
        let mut store = Store::new();
        let periods = ["3.25ms", "4ms", "13.35ms", "27.5ms", "38.75ms", "50ms", "53.35ms"];
        let run = |seed: u32| {
            let latencies: Vec<(String, Vec<u64>)> = periods
                .iter()
                .map(|period| {
                    let ns = period.parse::<Nanos>().unwrap().0;
                    let up = ns.next_multiple_of(4_000_000) - ns;
                    // Of periods that are multiples of the tick, and of others.
                    let more = more[usize::from(up > 0)];
                    (format!("nanosleep-{period}"), vec![up + 30_000 + 4_000_000 * more])
                })
                .collect();
            let series: Vec<(&str, &[u64])> =
                latencies.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
            store.run(One {
                paper: Paper::Periods2001,
                flavour: TICKING,
                load: "idle",
                seed,
                series: &series,
            })
        };
        let bundles: Vec<Bundle> = [1, 2, 3].map(run).into();
        let table = table(&bundles, "2001-4");
        (claim(&table, "With timers of the tick").outcome, claim(&table, "And to that").outcome)
    };
    assert_eq!(word([1, 1]), (Outcome::Alike, Outcome::Alike));
    assert_eq!(word([0, 0]), (Outcome::Alike, Outcome::Changed));
    // The paper has it with every period.
    assert_eq!(word([1, 0]), (Outcome::Alike, Outcome::Changed));
}

#[test]
fn timers_that_cost_nothing_are_alike_and_dear_ones_are_changed() {
    let word = |factor: u64| {
        let mut store = Store::new();
        let mut bundles = Vec::new();
        for (flavour, mean) in [(TICKING, 100_000), (PRECISE, 1_000 * factor)] {
            let cell = (Paper::Rhealstone2001, flavour, "idle");
            bundles.extend(store.three(cell, "preemption", |_| vec![mean]));
        }
        claim(&table(&bundles, "2001-6"), "Timers of microseconds").outcome
    };
    assert_eq!(word(104), Outcome::Alike);
    assert_eq!(word(140), Outcome::Changed);
}

#[test]
fn an_inheritance_that_does_not_bound_the_wait_is_not_called_alike() {
    let words = |pi: [u64; 2]| {
        let mut store = Store::new();
        let run = |seed: u32| {
            let (a, b) = ([pi[0]], [pi[1]]);
            let series: &[(&str, &[u64])] = &[
                ("plain-1ms", &[1_500_000]),
                ("plain-10ms", &[10_500_000]),
                ("pi-1ms", &a),
                ("pi-10ms", &b),
            ];
            store.run(One {
                paper: Paper::Inversion2007,
                flavour: "6.12-rt",
                load: "idle",
                seed,
                series,
            })
        };
        let bundles: Vec<Bundle> = [1, 2, 3].map(run).into();
        table(&bundles, "2007-inversion").claims.iter().map(|c| c.outcome).collect::<Vec<_>>()
    };
    assert_eq!(words([510_000, 505_000]), [Outcome::Alike, Outcome::Alike]);
    assert_eq!(words([1_510_000, 10_505_000]), [Outcome::Alike, Outcome::Changed]);
}

#[test]
fn the_screen_shows_each_edge_where_it_was_and_counts_those_beyond() {
    let mut store = Store::new();
    let edges: &[(&str, &[u64])] =
        &[("rise", &[10_000, 10_000, 900_000]), ("fall", &[5_000, 5_000, 0])];
    let bundles = [store.run(One {
        paper: Paper::Toggle2007,
        flavour: "6.12-rt",
        load: "fs",
        seed: 1,
        series: edges,
    })];
    let table = table(&bundles, "2007-toggle");
    let Some(Picture::Screens(screens)) = &table.picture else { panic!("no picture") };
    assert_eq!((screens.division, screens.width), (Nanos(50_000), Nanos(50_000)));
    let [screen] = &screens.screens[..] else { panic!("one flavour and load") };
    // A place is 1 µs and the rise is due at place 50. The rise that was 900 µs late is beyond.
    assert_eq!(screen.edges.iter().map(|l| l.place).collect::<Vec<_>>(), [60, 100, 105]);
    assert_eq!((screen.beyond, screen.latest), (1, Some(Nanos(900_000))));
    assert_eq!((screen.high, screen.low), ([60, 105], [500, 100]));
    assert_eq!(texts(table.rows.last().unwrap()), ["fs", "890", "900", "—", "—"]);
}

#[test]
fn every_paper_gives_its_tables_even_from_runs_without_any_series_of_it() {
    let mut store = Store::new();
    let mut ids = Vec::new();
    let mut claims = Vec::new();
    for paper in Paper::ALL {
        let series: &[(&str, &[u64])] = &[("other", &[1])];
        let bundles = [store.run(One { paper, flavour: PRECISE, load: "idle", seed: 1, series })];
        for table in tables(&bundles).unwrap() {
            let id = table.id;
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()), "{id}");
            assert!(!table.claims.is_empty(), "{id}");
            for claim in &table.claims {
                assert_eq!(claim.outcome, Outcome::CannotBeTold, "{id}");
                assert!(claim.here.ends_with('.'), "{id}: {}", claim.here);
                claims.push((id, claim.paper.clone()));
            }
            ids.push(id);
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 24);
    for entry in entries::ENTRIES {
        let entries::Made::Experiment { table, lead, theirs, .. } = entry.made else { continue };
        let leads = |(id, said): &&(&str, String)| *id == table && said.contains(lead);
        let (_, said) = claims.iter().find(leads).unwrap_or_else(|| panic!("{table}: {lead}"));
        assert!(said.contains(theirs), "{theirs} is not in: {said}");
    }
}

#[test]
fn figures_have_three_digits_and_those_of_the_papers_are_read_as_printed() {
    for (value, text) in [
        (10.912, "10.9"),
        (119.6, "120"),
        (0.0312, "0.0312"),
        (-9.8, "-9.80"),
        (0.0, "0"),
        (0.000_003, "0"),
        (3000.4, "3000"),
    ] {
        assert_eq!(figure(value), text);
    }
    assert_eq!(
        (number("190*"), number("≈ 3000"), number(ABSENT)),
        (Some(190.0), Some(3000.0), None)
    );
}
