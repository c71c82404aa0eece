// SPDX-License-Identifier: GPL-2.0-or-later
//! Whole experiments, good and bad.

mod limits;
mod probes;
mod trigger;

use super::*;
use proptest::prelude::*;
use sample::{Disturbance, Responder, Schedule};
use stats::{Demand, Statistic};

const LADDER: &str = include_str!("../../../experiments/ladder.toml");
/// What a hunt has to beat: it waits, and judges nothing.
const HUNT: &str = include_str!("../../../experiments/hunt.toml");
const SHIPPED: [&str; 4] = [
    LADDER,
    include_str!("../../../experiments/ladder-loads.toml"),
    include_str!("../../../experiments/smoke.toml"),
    HUNT,
];

const MINIMAL: &str = r#"title = "t"
target = "rig"
flavours = ["6.12 preempt=none", "6.12-rt"]
loads = ["idle", "mixed"]
[trigger]
period = "1ms"
count = 10
"#;

/// That of an experiment with triggers.
fn generator(experiment: &Experiment) -> &Generator {
    let [Instrument::Generator(generator)] = &experiment.instruments[..] else {
        panic!("not one generator");
    };
    generator
}

fn parse(text: &str) -> Result<Experiment, Problems> {
    Experiment::parse(Path::new("lab/x.toml"), text)
}

/// What is said about `MINIMAL` with one stretch replaced; it must be refused.
fn refused(old: &str, new: &str) -> String {
    assert!(MINIMAL.contains(old), "{old}");
    refusal(&MINIMAL.replace(old, new))
}

/// Each row is a stretch of `MINIMAL`, what stands in its place, and what the refusal says: the fault and the remedy.
fn assert_refused(rows: &[(&str, &str, &str, &str)]) {
    for (old, new, what, remedy) in rows {
        let shown = refused(old, new);
        assert!(shown.contains(what) && shown.contains(remedy), "{new}:\n{shown}");
    }
}

fn refusal(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn set(experiment: &Experiment, words: &[(&str, &str)]) -> Result<Experiment, Problems> {
    let owned: Vec<_> = words.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    experiment.with_overrides(&owned)
}

#[test]
fn every_shipped_experiment_is_sound_and_limited_in_every_cell_but_what_a_hunt_has_to_beat() {
    for text in SHIPPED {
        let experiment = parse(text).unwrap_or_else(|problems| panic!("{problems}"));
        for cell in experiment.cells() {
            let is_limited = !experiment.limits_for(cell).is_empty();
            assert_eq!(is_limited, text != HUNT, "{}: {cell:?}", experiment.title);
        }
    }
    let ladder = parse(LADDER).unwrap();
    let cells: Vec<_> =
        ladder.cells().map(|c| format!("{}/{}", c.flavour, c.load.name())).collect();
    assert_eq!(
        cells,
        [
            "6.12 preempt=none/idle",
            "6.12 preempt=none/mixed",
            "6.12-rt/idle",
            "6.12-rt/mixed",
            "7.3 preempt=lazy/idle",
            "7.3 preempt=lazy/mixed",
            "7.3 preempt=full/idle",
            "7.3 preempt=full/mixed",
            "7.3-rt/idle",
            "7.3-rt/mixed",
        ]
    );
    assert_eq!(generator(&ladder).trigger.schedule.count(), 10_000);
    let loads = parse(SHIPPED[1]).unwrap();
    assert_eq!(loads.loads, ALL_LOADS);
    let hunt = parse(HUNT).unwrap();
    let names: Vec<_> = hunt.cells().map(|c| c.flavour.to_string()).collect();
    assert_eq!(
        names,
        ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt", "7.3 preempt=lazy", "7.3-rt"]
    );
    let generator = generator(&hunt);
    let responders: Vec<_> = generator.responders.iter().map(|r| r.name()).collect();
    assert_eq!(responders, ["hardirq", "task"]);
    assert_eq!(generator.trigger.schedule.count(), 60_000, "a virtual minute");
}

#[test]
fn what_is_left_out_has_its_documented_default() {
    let experiment = parse(MINIMAL).unwrap();
    assert_eq!(experiment.seed, 1);
    assert_eq!(experiment.warm_up, Nanos::from_millis(200));
    assert_eq!(generator(&experiment).responders.mask(), 0xff);
    assert_eq!(generator(&experiment).driver, Driver { threaded: false, wiring: Wiring::Port });
    let guest = Guest {
        memory: None,
        shift: 0,
        seed: 1,
        modules: Vec::new(),
        programs: Vec::new(),
        files: Vec::new(),
        witness: false,
        begin_after: Nanos(0),
    };
    assert_eq!(experiment.guest, guest);
    assert!(experiment.limits.is_empty());
    let (period, count) = (Nanos::from_millis(1), 10);
    let schedule = Schedule::Periodic { phase: period, period, jitter: Nanos(0), seed: 1, count };
    let (high, grace) = (Nanos::from_micros(500), Nanos::from_millis(1_000));
    let disturbances = Vec::new();
    assert_eq!(generator(&experiment).trigger, Trigger { schedule, high, grace, disturbances });
}

#[test]
fn everything_that_is_said_arrives() {
    let text = r#"
title = "all"
target = "rig"
seed = 9
flavours = ["  6.1   a=b "]
loads = ["net"]
warm_up = "1s"
responders = ["task", "hardirq"]
trigger = { times = ["1ms", "1.5ms", "3ms"], duty = 0.1, grace = "2s", disturbances = ["2ms", "3ms 16 timers"] }
driver = { threaded = true, wiring = "gpio" }
[guest]
memory = "1GiB"
shift = 3
seed = 7
begin_after = "8.2s"
modules = ["slow.ko"]
programs = ["/usr/bin/env"]
files = ["/etc/services", "data=/srv/data"]
"#;
    let experiment = parse(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((experiment.seed, experiment.warm_up), (9, Nanos::from_millis(1_000)));
    assert_eq!(experiment.flavours[0].to_string(), "6.1 a=b");
    assert_eq!(generator(&experiment).responders.mask(), 0x81);
    let times = [1_000, 1_500, 3_000].map(Nanos::from_micros).to_vec();
    let (high, grace) = (Nanos::from_micros(50), Nanos::from_millis(2_000));
    let disturbance = |(at, timers)| Disturbance { at: Nanos::from_millis(at), timers };
    let disturbances = [(2, 0), (3, 16)].map(disturbance).to_vec();
    assert_eq!(
        generator(&experiment).trigger,
        Trigger { schedule: Schedule::Explicit(times), high, grace, disturbances }
    );
    assert_eq!(generator(&experiment).driver, Driver { threaded: true, wiring: Wiring::Gpio });
    let guest = &experiment.guest;
    assert_eq!((guest.memory, guest.shift, guest.seed), (Some(Mebibytes(1024)), 3, 7));
    assert_eq!(guest.begin_after, Nanos::from_millis(8_200));
    let lab = std::env::current_dir().unwrap().join("lab");
    assert_eq!((&experiment.directory, experiment.has_relative_paths), (&lab, true));
    assert_eq!(guest.modules, [lab.join("slow.ko")]);
    assert_eq!(guest.programs, [Path::new("/usr/bin/env")]);
    assert_eq!(guest.files[0].host, Path::new("/etc/services"));
    assert_eq!(guest.files[1].host, lab.join("data"));
    assert_eq!(guest.files[1].guest, Path::new("/srv/data"));
}

#[test]
fn an_unknown_key_is_shown_where_it_stands_with_the_nearest_known_one() {
    let expected = "\
error: unknown key \"perod\" in [trigger]
 --> lab/x.toml:8:1
  |
8 | perod = \"2ms\"
  | ^^^^^
  = help: did you mean \"period\"? known are period, jitter, phase, count, arrivals, burst, apart, times, duty, grace, disturbances
";
    assert_eq!(refusal(&format!("{MINIMAL}perod = \"2ms\"\n")), expected);
    let misplaced = refusal(&format!("{MINIMAL}warm_up = \"2ms\"\n"));
    assert!(misplaced.contains("warm_up belongs at the top level"), "{misplaced}");
}

#[test]
fn all_problems_of_a_file_are_reported_in_its_order() {
    let text = MINIMAL
        .replace("\"rig\"", "\"moon\"")
        .replace("\"mixed\"", "\"mixd\", \"idle\"")
        .replace("count = 10", "count = 0\njitter = \"1\"");
    let problems = parse(&text).unwrap_err();
    assert_eq!(problems.count(), 5);
    let shown = problems.to_string();
    let order = [":2:10\n", ":4:18\n", ":4:26\n", ":7:9\n", ":8:10\n"];
    let found: Vec<_> = order.iter().map(|place| shown.find(place)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{shown}");
}

#[test]
fn each_mistake_is_named_with_its_remedy() {
    assert_refused(&[
        ("title = \"t\"", "", "title is missing at the top level", "title = \""),
        ("\"t\"", "\" \"", "one line of text", "say what"),
        ("\"t\"", "7", "has to be a text in quotes, not a whole number", "title = \""),
        ("\"rig\"", "\"rigg\"", "unknown target \"rigg\"", "did you mean \"rig\"?"),
        ("\"mixed\"", "\"mixd\"", "unknown load \"mixd\"", "did you mean \"mixed\"?"),
        ("\"mixed\"", "\"idle\"", "\"idle\" is in loads twice", "leave one"),
        ("\"mixed\"", "5", "loads has to be a list of texts", "quotes"),
        ("\"6.12-rt\"", "\"6.12  preempt=none\"", "is in flavours twice", "leave one"),
        ("\"6.12-rt\"", "\"../x\"", "\"../x\": the name of a kernel", "write the name of a kernel"),
        ("[\"idle\", \"mixed\"]", "[]", "loads is an empty list", "at least one"),
        ("[\"idle\", \"mixed\"]", "\"idle\"", "loads has to be a list, not a text", "loads = ["),
        ("target", "seed = -1\ntarget", "seed cannot be -1", "of at least 0"),
        ("target", "seed = 1979-05-27\ntarget", "a whole number, not a date", "seed = 0"),
        ("target", "responders = [\"tsk\"]\ntarget", "unknown responder", "mean \"task\"?"),
        ("target", "warm_up = 5\ntarget", "a duration in quotes, with its unit", "\"1ms\""),
        ("count = 10", "", "count is missing in [trigger]", "count = 10000"),
        ("count = 10", "count = 0", "count cannot be 0", "from 1 to"),
        ("count = 10", "count = 1000000000000", "count cannot be", "from 1 to 1000000000"),
        ("target", "warm_up = \"90000s\"\ntarget", "a warm-up cannot take", "a day"),
        ("count = 10", "count = 1.5", "not a number with a fraction", "count = 1"),
        ("\"1ms\"", "\"1\"", "period: \"1\" is no duration", "needs a unit"),
        ("\"1ms\"", "\"999ns\"", "period of 999 ns is below 1.00 µs", "edge"),
        ("count", "jitter = \"1ms\"\ncount", "not below the period", "shorter than the period"),
        ("count", "jitter = \"500us\"\ncount", "the line is high for 500 µs", "smaller duty"),
        ("count", "duty = 1\ncount", "duty cannot be 1", "below 1"),
        ("count", "duty = nan\ncount", "duty cannot be NaN", "below 1"),
        ("count", "duty = 1e-9\ncount", "less than 1 ns", "larger duty"),
        ("count", "phase = \"18446744073709551615ns\"\ncount", "its grace end after", "31 days"),
        ("target", "disturbances = [\"3ms\"]\ntarget", "unknown key", "belongs in [trigger]"),
        ("[trigger]", "[[trigger]]", "trigger has to be a table, not a list", "[trigger]"),
        ("[trigger]", "[tirgger]", "unknown key \"tirgger\"", "did you mean \"trigger\"?"),
        ("[trigger]", "driver = true\n[trigger]", "driver has to be a table", "[driver]"),
        ("[trigger]", "driver.threaded = 1\n[trigger]", "has to be true or false", "true"),
        ("[trigger]", "guest.memory = \"256\"\n[trigger]", "\"256\" is no size", "MiB"),
        ("[trigger]", "guest.memory = \"1MiB\"\n[trigger]", "memory cannot be 1MiB", "64MiB"),
        ("[trigger]", "guest.begin_after = \"7200s\"\n[trigger]", "cannot be", "at most"),
        ("[trigger]", "guest.shift = 11\n[trigger]", "shift cannot be 11", "from 0 to 10"),
        ("[trigger]", "guest.modules = [\"\"]\n[trigger]", "cannot be empty", "name a file"),
        ("[trigger]", "guest.files = [\"x\"]\n[trigger]", "does not say where", "=/guest/path"),
        (
            "[trigger]",
            "guest.files = [\"a=/x\", \"b=/x\"]\n[trigger]",
            "two files at /x",
            "a place of its own",
        ),
        (
            "[trigger]",
            "guest.witness = true\n[trigger]",
            "no witness can judge [trigger]",
            "[cyclictest], and [periodic] except its method busy",
        ),
        ("count = 10", "count = = 10", "error: ", "x.toml:7:9"),
    ]);
}

#[test]
fn disturbances_are_refused_where_nobody_triggers() {
    let local = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n";
    let trigger = "[trigger]\nperiod = \"1ms\"\ncount = 9\n";
    let shown = refusal(&format!("{local}{trigger}disturbances = [\"2ms\"]\n"));
    assert!(shown.contains("[trigger] needs target = \"rig\""), "{shown}");
    let shown = refusal(&format!("{local}[periodic]\ndisturbances = [\"2ms\"]\n"));
    assert!(shown.contains("disturbances belongs in [trigger]"), "{shown}");
}

#[test]
fn a_witness_is_refused_where_nothing_can_be_seen_or_judged() {
    let local = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\nguest.witness = true\n";
    let shown = refusal(&format!("{local}[periodic]\n"));
    assert!(shown.contains("from outside") && shown.contains("target = \"rig\""), "{shown}");
    let rig = local.replace("\"local\"", "\"rig\"\nflavours = [\"6.12\"]");
    let shown = refusal(&format!("{rig}[periodic]\n[gtod]\n"));
    assert!(shown.contains("no witness can judge [gtod]"), "{shown}");
    assert!(parse(&format!("{rig}[periodic]\n[cyclictest]\n")).unwrap().guest.witness);
}

#[test]
fn an_override_replaces_what_the_file_says() {
    let ladder = parse(LADDER).unwrap();
    let changed = set(
        &ladder,
        &[
            ("trigger.count", "100000"),
            ("trigger.period", "2ms"),
            ("guest.shift", "2"),
            ("title", "quick look"),
            ("limits.task.\"p99.9\"", "1ms"),
            ("seed", "5"),
            ("seed", "6"),
        ],
    );
    let changed = changed.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(generator(&changed).trigger.schedule.count(), 100_000);
    assert_eq!(generator(&changed).trigger.high, Nanos::from_millis(1));
    assert_eq!((changed.guest.shift, changed.seed), (2, 6));
    assert_eq!(changed.title, "quick look");
    assert_eq!(changed.limits.len(), ladder.limits.len() + 1);
    assert_eq!(changed.source, ladder.source);
    // Overrides add up, and an experiment says with which ones it can be made again.
    let again = set(&changed, &[("seed", "7")]).unwrap();
    assert_eq!((again.seed, generator(&again).trigger.schedule.count()), (7, 100_000));
    assert_ne!(
        generator(&again).trigger,
        generator(&changed).trigger,
        "the jitter follows the seed"
    );
    assert_eq!(set(&ladder, &[]).unwrap(), ladder);
}

#[test]
fn an_override_that_is_wrong_is_shown_as_it_was_typed() {
    let ladder = parse(LADDER).unwrap();
    let expected = "\
error: count cannot be 0
 --> --set trigger.count=0
                         ^
  = help: it is a whole number from 1 to 1000000000
";
    assert_eq!(set(&ladder, &[("trigger.count", "0")]).unwrap_err().to_string(), expected);
    for (key, value, what) in [
        ("trigger.cuont", "5", "did you mean \"count\"?"),
        ("loads", "[\"idle\", \"mixd\"]", "did you mean \"mixed\"?"),
        ("loads", "idle", "loads = [\"idle\", \"mixed\"]"),
        ("trigger.count.x", "5", "\"count\" holds no keys"),
        ("trigger.times", "[\"1ms\"]", "times cannot be set together"),
        ("trigger..count", "5", "not a key"),
        ("seed", "1\n2", "a value is one line"),
        ("loads", "[\"idle\"", "error: "),
    ] {
        let shown = set(&ladder, &[(key, value)]).unwrap_err().to_string();
        assert!(shown.contains(what), "{key}={value}:\n{shown}");
    }
}

#[test]
fn a_part_of_the_matrix_can_be_chosen_without_touching_the_limits_of_the_rest() {
    let ladder = parse(LADDER).unwrap();
    let part = set(
        &ladder,
        &[
            ("flavours", "[\"6.12-rt\", \"6.1-rt\"]"),
            ("loads", "[\"mixed\"]"),
            ("responders", "[\"task\"]"),
        ],
    );
    let part = part.unwrap_or_else(|problems| panic!("{problems}"));
    let cells: Vec<_> = part.cells().collect();
    assert_eq!(cells.len(), 2);
    let limits = part.limits_for(cells[0]);
    assert_eq!(limits.len(), 1, "a limit for hardirq, which is not measured, is not judged");
    let demand = Demand::Statistic { statistic: Statistic::Max, bound: Nanos::from_millis(1) };
    assert_eq!((limits[0].responder.as_str(), limits[0].demand), ("task", demand));
    assert!(set(&part, &[("seed", "2")]).is_ok());
}

#[test]
fn a_file_that_cannot_be_an_experiment_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    let says = |path: &Path| Experiment::load(path).unwrap_err().to_string();
    assert!(says(&path).contains("cannot read the experiment"));
    std::fs::write(&path, b"title = \"\xff\"").unwrap();
    assert!(says(&path).contains("byte 9 is not UTF-8"));
    std::fs::File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    assert!(says(&path).contains("larger than 16 MiB"));
    std::fs::write(&path, LADDER).unwrap();
    assert_eq!(Experiment::load(&path).unwrap().path, path);
}

/// A text with a stretch replaced by other text.
fn mutated() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,8}",
        "[\\[\\]{}\"'=.,#\n0-9a-z_]{0,8}",
        Just("[limits]\n".to_owned()),
        Just("\"6.12-rt\"".to_owned()),
    ];
    let edit = (any::<prop::sample::Index>(), 0usize..40, piece);
    (0..SHIPPED.len(), prop::collection::vec(edit, 1..6)).prop_map(|(which, edits)| {
        let mut text: Vec<char> = SHIPPED[which].chars().collect();
        for (at, length, piece) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

/// Either an experiment, or problems that can be shown.
fn survives(text: &str) {
    match parse(text) {
        Ok(experiment) => {
            let cells = experiment.flavours.len() * experiment.loads.len();
            assert!(cells > 0 && experiment.cells().count() == cells);
            assert_eq!(experiment.with_overrides(&[]).unwrap(), experiment);
        }
        Err(problems) => assert!(problems.to_string().starts_with("error: ")),
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(\\PC|\n|\t){0,200}") {
        survives(&text);
    }

    #[test]
    fn no_change_to_a_shipped_file_makes_the_parser_panic(text in mutated()) {
        survives(&text);
    }

    #[test]
    fn no_override_makes_the_parser_panic(
        key in "([a-z.\"]|\\PC){0,20}|trigger\\.(count|jitter|times|duty)|limits.task.max",
        value in "(\\PC|\n){0,20}|[0-9]{1,20}(ms|us)?|\\[\"[0-9]{1,20}ns\"\\]",
    ) {
        let experiment = parse(LADDER).unwrap();
        if let Err(problems) = experiment.with_overrides(&[(key, value)]) {
            prop_assert!(problems.to_string().starts_with("error: "));
        }
    }
}
