// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments with probes, those that are shipped and those of the documentation.

use super::*;
use ::probes::plan::{Line, Overrun, Periodic, Probe, SleepMethod, Toggle};
use ::probes::{Definition, PROBES};
use rt::Policy;
use std::fs;

const DOCUMENTATION: &str = include_str!("../../../../docs/experiments.md");
const METHODS: &str = include_str!("../../../../docs/methods/probes.md");
const SCHEMA: &str = include_str!("../../../../docs/run.schema.json");

const LOCAL: &str = r#"title = "t"
target = "local"
loads = ["idle"]
[task]
policy = "fifo:80"
[periodic]
periods = ["1ms"]
"#;

/// The one plan of an experiment.
fn plan(experiment: &Experiment) -> &Plan {
    let [Instrument::Probe(plan)] = &experiment.instruments[..] else {
        panic!("not one probe: {:?}", experiment.instruments);
    };
    plan
}

fn names(experiment: &Experiment) -> Vec<String> {
    experiment.series().iter().map(SeriesName::to_string).collect()
}

/// What is said about `LOCAL` with one stretch replaced; it must be refused.
fn refused_locally(old: &str, new: &str) -> String {
    assert!(LOCAL.contains(old), "{old}");
    refusal(&LOCAL.replace(old, new))
}

/// What is said about a section of a probe; it must be refused.
fn refused_section(section: &str) -> String {
    let before = LOCAL.split("[periodic]").next().unwrap();
    refusal(&format!("{before}{section}\n"))
}

#[test]
fn every_experiment_in_the_tree_is_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut read = 0;
    for directory in [root.clone(), root.join("papers")] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let experiment = Experiment::load(&path).unwrap_or_else(|e| panic!("{e}"));
            assert!(experiment.cells().count() > 0, "{}", path.display());
            let paper = path.parent().unwrap().ends_with("papers");
            assert_eq!(experiment.paper.is_some(), paper, "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 13, "only {read} were found");
}

#[test]
fn every_whole_experiment_in_the_documentation_is_sound() {
    let blocks = DOCUMENTATION.split("```toml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let whole: Vec<_> = blocks.filter(|block| block.starts_with("title")).collect();
    assert!(whole.len() >= 3, "{whole:?}");
    for text in whole {
        parse(text).unwrap_or_else(|problems| panic!("{problems}"));
    }
}

#[test]
fn every_key_of_every_section_is_in_the_documentation() {
    for (section, keys) in read::keys() {
        let heading = format!("## `[{section}]`");
        let text = match section {
            "" => DOCUMENTATION,
            _ => DOCUMENTATION.split(&heading).nth(1).unwrap_or_else(|| panic!("no {heading}")),
        };
        let text = if section.is_empty() { text } else { text.split("\n##").next().unwrap() };
        for key in keys {
            let named = [format!("`{key}`"), format!("[{key}]")];
            assert!(named.iter().any(|n| text.contains(n)), "{key} of [{section}]");
        }
    }
}

#[test]
fn every_probe_has_its_place_in_the_documentation_and_every_key_its_default() {
    for Definition { name, keys, .. } in PROBES {
        assert!(METHODS.contains(&format!("\n| [`{name}`](#")), "no row of {name}");
        let headings = [format!("\n### {name}\n"), format!("\n### `{name}`: ")];
        assert!(headings.iter().any(|h| METHODS.contains(h)), "no heading of {name}");
        assert!(SCHEMA.contains(&format!("            \"{name}\",\n")), "{name} in the schema");
        let section = DOCUMENTATION.split(&format!("\n### `[{name}]`")).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section of {name}"));
        for key in *keys {
            let begin = format!("| `{}` |", key.name);
            let row = section.lines().find(|line| line.starts_with(&begin)).expect(key.name);
            let default = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
            let parts = key.default.split(',');
            assert!(parts.into_iter().all(|part| default.contains(part)), "{name}: {row}");
        }
    }
}

#[test]
fn what_a_probe_leaves_out_has_its_documented_default() {
    let bare = |section: &str| {
        format!("title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n[{section}]\n")
    };
    let experiment = parse(&bare("periodic")).unwrap_or_else(|problems| panic!("{problems}"));
    let plan_found = plan(&experiment);
    assert_eq!(
        (plan_found.policy, &plan_found.cpus[..], plan_found.pm_qos),
        (Policy::Fifo(90), &[0][..], false)
    );
    let periodic = Periodic {
        methods: vec![SleepMethod::ClockNanosleep],
        periods: vec![Nanos::from_millis(1)],
        count: 10_000,
        overrun: Overrun::Skip,
        migrate: false,
        slack: Nanos(1),
    };
    assert_eq!(plan_found.probe, Probe::Periodic(periodic));
    assert_eq!(names(&experiment), ["clock_nanosleep-1ms"]);
    assert_eq!(experiment.flavours, [Flavour::local()]);
    let toggle = parse(&bare("toggle")).unwrap();
    let expected = Toggle {
        period: Nanos::from_millis(1),
        width: Nanos::from_micros(50),
        count: 10_000,
        method: SleepMethod::Precise,
        line: Line::Memory,
    };
    assert_eq!(plan(&toggle).probe, Probe::Toggle(expected));
    for section in PROBES.map(|probe| probe.name) {
        let experiment = parse(&bare(section)).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(experiment.instruments[0].name(), section);
    }
}

#[test]
fn everything_that_is_said_about_a_probe_arrives() {
    let text = r#"
title = "all"
target = "local"
loads = ["disk"]
[task]
policy = "deadline:100us,1ms,1ms"
cpus = [3, 1]
pm_qos = true
[load]
on_measured_cpus = true
disk = "there"
[periodic]
methods = ["timerfd", "itimer"]
periods = ["3.25ms", "50us"]
count = 7
overrun = "catch_up"
migrate = true
[limits]
all.max = "1ms"
[limits.timerfd-50us]
"p99.9" = "30us"
"#;
    let experiment = parse(text).unwrap_or_else(|problems| panic!("{problems}"));
    let found = plan(&experiment);
    let [runtime, period] = [100, 1000].map(Nanos::from_micros);
    assert_eq!(found.policy, Policy::Deadline { runtime, deadline: period, period });
    assert_eq!((&found.cpus[..], found.pm_qos), (&[1, 3][..], true));
    let Probe::Periodic(periodic) = &found.probe else { panic!("{:?}", found.probe) };
    assert_eq!(periodic.periods, [3_250, 50].map(Nanos::from_micros));
    assert_eq!((periodic.count, periodic.overrun, periodic.migrate), (7, Overrun::CatchUp, true));
    let there = std::env::current_dir().unwrap().join("lab/there");
    let place = LoadPlace { on_measured_cpus: true, disk: Some(there) };
    assert_eq!(experiment.load, place);
    let cell = experiment.cells().next().unwrap();
    let limits = experiment.limits_for(cell);
    assert_eq!(limits.len(), experiment.series().len() + 1);
    for (text, line) in [
        ("memory", Line::Memory),
        ("parport:0x378", Line::ParallelPort(0x378)),
        ("gpio:/dev/gpiochip0:17", Line::Gpio("/dev/gpiochip0".into(), 17)),
    ] {
        let text =
            LOCAL.replace("[periodic]\nperiods = [\"1ms\"]", &format!("[toggle]\nline = {text:?}"));
        let experiment = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
        let Probe::Toggle(toggle) = &plan(&experiment).probe else { panic!("{text}") };
        assert_eq!(toggle.line, line);
    }
}

#[test]
fn series_are_told_apart_by_cpu_where_there_are_several() {
    let two = LOCAL.replace("[periodic]", "cpus = [0, 2]\n[periodic]");
    let experiment = parse(&two).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(names(&experiment), ["clock_nanosleep-1ms-cpu0", "clock_nanosleep-1ms-cpu2"]);
}

#[test]
fn several_probes_are_measured_one_after_the_other() {
    let both = format!("{LOCAL}[noise]\nduration = \"1s\"\n[limits]\nnoise.max = \"1ms\"\n");
    let experiment = parse(&both).unwrap_or_else(|problems| panic!("{problems}"));
    let measured: Vec<_> = experiment.cells().map(|c| c.instrument.name()).collect();
    assert_eq!(measured, ["periodic", "noise"]);
    let limits: Vec<_> = experiment.cells().map(|c| experiment.limits_for(c).len()).collect();
    assert_eq!(limits, [0, 1], "a limit holds where its series is measured");
}

#[test]
fn each_mistake_about_a_probe_is_named_with_its_remedy() {
    for (old, new, what, remedy) in [
        ("\"1ms\"", "\"0ms\"", "periods cannot be 0 ns", "from 20.0 µs to 3600 s"),
        ("\"1ms\"", "\"19us\"", "periods cannot be 19.0 µs", "from 20.0 µs"),
        ("\"1ms\"", "\"1\"", "periods: \"1\" is no duration", "needs a unit"),
        ("\"1ms\"", "1", "has to be a duration in quotes, with its unit", "\"1ms\""),
        ("\"1ms\"", "\"61min\"", "periods cannot be 3660 s", "to 3600 s"),
        ("\"1ms\"", "\"99999999999999999999s\"", "is no duration", "help"),
        ("\"1ms\"", "\"-1ms\"", "\"-1ms\" is no duration", "decimal number"),
        ("\"1ms\"", "\"1ms\", \"1000us\"", "1.00 ms is in periods twice", "leave one"),
        ("periods", "perods", "unknown key \"perods\" in [periodic]", "mean \"periods\"?"),
        ("periods", "period", "unknown key \"period\" in [periodic]", "belongs in"),
        ("periods", "count = 0\nperiods", "count cannot be 0", "from 1 to"),
        (
            "periods",
            "methods = [\"nanoslep\"]\nperiods",
            "none of the methods",
            "mean \"nanosleep\"?",
        ),
        ("periods", "methods = []\nperiods", "methods is an empty list", "at least one"),
        ("periods", "overrun = \"later\"\nperiods", "unknown overrun", "skip, catch_up, stop"),
        ("periods", "migrate = 1\nperiods", "has to be true or false", "true"),
        ("fifo:80", "fifo:100", "\"fifo:100\" is no scheduling policy", "1 … 99"),
        ("fifo:80", "batch", "\"batch\" is no scheduling policy", "write other"),
        ("\"fifo:80\"", "90", "a text in quotes", "\"fifo:90\""),
        ("policy", "cpus = [0, 1, 0]\npolicy", "a CPU is in cpus twice", "each once"),
        ("policy", "cpus = []\npolicy", "cpus is an empty list", "at least one"),
        ("policy", "cpus = [-1]\npolicy", "cpus cannot hold -1", "from 0 to 8191"),
        ("policy", "cpus = \"0-1\"\npolicy", "cpus has to be a list, not a text", "[0, 1]"),
        (
            "loads",
            "flavours = [\"6.12\"]\nloads",
            "flavours with target = \"local\"",
            "leave flavours out",
        ),
        (
            "loads",
            "responders = [\"task\"]\nloads",
            "responders without [trigger]",
            "add [trigger]",
        ),
        ("loads", "paper = \"2001-dely\"\nloads", "\"2001-dely\"", "mean \"2001-delay\"?"),
        (
            "[task]",
            "[trigger]\nperiod = \"1ms\"\ncount = 1\n[task]",
            "no generator triggers this machine",
            "[periodic]",
        ),
        ("[task]", "[load]\non_measured_cpus = 1\n[task]", "has to be true or false", "true"),
        (
            "[task]",
            "[limits]\nnanosleep-1ms.max = \"1ms\"\n[task]",
            "\"nanosleep-1ms\" is no responder",
            "clock_nanosleep-1ms",
        ),
        (
            "[task]",
            "[limits]\ntask.max = \"1ms\"\n[task]",
            "a limit for task, which the experiment does not measure",
            "leave the limit out",
        ),
        (
            "[task]",
            "[limits]\nall.max = \"1ms\"\nclock_nanosleep-1ms.max = \"1ms\"\n[task]",
            "a second limit",
            "leave one",
        ),
    ] {
        let shown = refused_locally(old, new);
        assert!(shown.contains(what) && shown.contains(remedy), "{new}:\n{shown}");
    }
}

#[test]
fn each_mistake_in_the_section_of_a_probe_is_named_with_its_remedy() {
    for (section, what, remedy) in [
        ("", "no generator triggers this machine", "write one of [periodic]"),
        (
            "[periodic]\nmethods = [\"busy\"]\nperiods = [\"1ms\", \"500ms\"]",
            "busy for whole periods of 500 ms",
            "at most 400 ms",
        ),
        ("[gtod]\nclocks = [\"tcs\"]", "\"tcs\" is none of the clocks", "mean \"tsc\"?"),
        ("[async]\nmechanisms = [\"futx\"]", "none of the mechanisms", "mean \"futex\"?"),
        ("[async]\nplacements = [\"far\"]", "none of the placements", "same, across"),
        ("[rhealstone]\ncomponents = [\"preemtion\"]", "none of the", "mean \"preemption\"?"),
        ("[rhealstone]\ninterfaces = [\"bsd\"]", "none of the interfaces", "sysv, posix"),
        ("[rtc]\nrate_hz = 100", "rate_hz cannot be 100", "divides by two"),
        ("[rtc]\nrate_hz = 16384", "rate_hz cannot be 16384", "from 2 to 8192"),
        ("[noise]\nduration = \"0s\"", "duration cannot be 0 ns", "from 1.00 ms"),
        ("[noise]\nthreshold = \"1ns\"", "threshold cannot be 1 ns", "from 100 ns"),
        ("[toggle]\nwidth = \"1ms\"", "a pulse of 1.00 ms does not fit", "shorter than the period"),
        (
            "[toggle]\nperiod = \"20us\"",
            "a pulse of 50.0 µs does not fit",
            "shorter than the period",
        ),
        ("[toggle]\nline = \"lpt1\"", "\"lpt1\" is no line to toggle", "parport:0x378"),
        ("[toggle]\nline = \"gpio:gpiochip0:1\"", "is no line to toggle", "gpio:/dev/gpiochip0:17"),
        ("[inversion]\nmiddle = [\"1us\"]", "middle cannot be 1.00 µs", "from 20.0 µs"),
        ("[inversion]\nheld = \"2min\"\nmiddel = 1", "unknown key \"middel\"", "mean \"middle\"?"),
        ("[ladder]\nperiod = \"0s\"", "period cannot be 0 ns", "from 20.0 µs"),
        ("[cyclictest]\nperiod = \"-5us\"", "is no duration", "decimal number"),
    ] {
        let shown = refused_section(section);
        assert!(shown.contains(what) && shown.contains(remedy), "{section}:\n{shown}");
    }
}

/// An experiment of the rig with all that a machine cannot have.
const RIGGED: &str = r#"title = "t"
target = "rig"
flavours = ["6.12 preempt=none", "6.12-rt"]
loads = ["idle"]
repeats = 3
responders = ["task"]
[guest]
shift = 3
seed = 7
[trigger]
period = "1ms"
count = 10
[toggle]
line = "parport:0x378"
count = 50
[limits."6.12-rt"]
all.max = "1ms"
"#;

#[test]
fn an_experiment_of_the_rig_runs_on_this_machine_without_what_only_the_rig_has_and_says_what_that_is()
 {
    let local =
        set(&parse(RIGGED).unwrap(), &[("target", "local")]).unwrap_or_else(|p| panic!("{p}"));
    let left_out = [
        "flavours",
        "guest.shift",
        "guest.seed",
        "trigger.period",
        "trigger.count",
        "responders",
        "toggle.line",
    ];
    assert_eq!(local.left_out, left_out);
    assert_eq!((local.target, &local.flavours[..]), (Target::Local, &[Flavour::local()][..]));
    let Probe::Toggle(toggle) = &plan(&local).probe else { panic!("the toggle") };
    assert_eq!((&toggle.line, toggle.count), (&Line::Memory, 50));
    // What the command line says is kept, or refused.
    let asked = [("target", "local"), ("toggle.line", "parport:0x3bc")];
    let asked = set(&parse(RIGGED).unwrap(), &asked).unwrap_or_else(|p| panic!("{p}"));
    let Probe::Toggle(toggle) = &plan(&asked).probe else { panic!("the toggle") };
    assert_eq!(toggle.line, Line::ParallelPort(0x3bc));
    let wrong = [("target", "local"), ("flavours", "[\"6.12\"]")];
    let wrong = set(&parse(RIGGED).unwrap(), &wrong).unwrap_err().to_string();
    assert!(wrong.contains("flavours with target = \"local\""), "{wrong}");
    // In the rig nothing is left out, and a file that says local itself is read as it stands.
    assert!(parse(RIGGED).unwrap().left_out.is_empty());
    assert!(refusal(&RIGGED.replace("\"rig\"", "\"local\"")).contains("flavours with target"));
}

#[test]
fn triggers_alone_cannot_become_an_experiment_of_this_machine() {
    let triggers = RIGGED.split("[toggle]").next().unwrap();
    let refused = set(&parse(triggers).unwrap(), &[("target", "local")]).unwrap_err().to_string();
    assert!(refused.contains("no generator triggers this machine"), "{refused}");
}

#[test]
fn every_experiment_of_the_papers_runs_in_three_guests_and_each_probe_on_this_machine() {
    let mut triggers = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/papers");
    for entry in fs::read_dir(root).unwrap() {
        let experiment = Experiment::load(&entry.unwrap().path()).unwrap_or_else(|e| panic!("{e}"));
        let seeds = |of: &Experiment| {
            of.repetitions().unwrap().iter().map(|e| e.guest.seed).collect::<Vec<_>>()
        };
        assert_eq!(seeds(&experiment), [1, 2, 3], "{}", experiment.title);
        let local = set(&experiment, &[("target", "local")]);
        if experiment.instruments.iter().all(|i| matches!(i, Instrument::Generator(_))) {
            let refused = local.unwrap_err().to_string();
            assert!(refused.contains("no generator triggers this machine"), "{refused}");
            triggers += 1;
            continue;
        }
        let local = local.unwrap_or_else(|p| panic!("{p}"));
        assert_eq!(seeds(&local).len(), 3, "{}", experiment.title);
        assert!(local.left_out.contains(&"flavours".to_string()), "{}", experiment.title);
    }
    // The three frequencies of the thesis' generator.
    assert_eq!(triggers, 3);
}

#[test]
fn a_repetition_is_the_next_seed_of_the_guest_and_of_a_machine_the_same_again() {
    let rig = parse(RIGGED).unwrap().repetitions().unwrap();
    assert_eq!(rig.iter().map(|e| e.guest.seed).collect::<Vec<_>>(), [7, 8, 9]);
    assert_eq!(rig[2].overrides, [("guest.seed".to_string(), "9".to_string())]);
    let once = set(&parse(RIGGED).unwrap(), &[("repeats", "1")]).unwrap();
    assert_eq!(once.repetitions().unwrap().len(), 1);
    let refused = set(&once, &[("repeats", "0")]).unwrap_err().to_string();
    assert!(refused.contains("repeats cannot be 0"), "{refused}");
}

proptest! {
    #[test]
    fn no_value_of_a_probe_makes_the_parser_panic(
        which in 1..read::keys().len(),
        key in any::<prop::sample::Index>(),
        value in "-?[0-9]{1,20}|\"-?[0-9.]{1,20}(ns|us|ms|s|min)?\"|\\[\\]|\\[\"(\\PC){0,4}\"\\]|\\[-?[0-9]{1,5}\\]|true|\\{\\}",
    ) {
        let (section, keys) = read::keys().swap_remove(which);
        let key = keys[key.index(keys.len())];
        let measured = if PROBES.iter().any(|probe| probe.name == section) { "" } else { "[noise]\n" };
        let head = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n";
        survives(&format!("{head}[{section}]\n{key} = {value}\n{measured}"));
    }
}

#[test]
fn a_duration_stands_for_the_count_that_takes_as_long() {
    let with = |keys: &str| LOCAL.replace("periods = [\"1ms\"]", keys);
    let count = |keys: &str| match plan(&parse(&with(keys)).unwrap_or_else(|p| panic!("{p}"))).probe
    {
        Probe::Periodic(Periodic { count, .. }) => count,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(count("duration = \"2s\""), 2_000);
    // Two methods and two periods, one after the other.
    assert_eq!(
        count(
            "methods = [\"nanosleep\", \"timerfd\"]\nperiods = [\"1ms\", \"4ms\"]\nduration = \"1s\""
        ),
        100
    );
    assert_eq!(count("duration = \"1ms\"\nperiods = [\"1s\"]"), 1);
    let both = refusal(&with("duration = \"2s\"\ncount = 5"));
    assert!(both.contains("both count and duration"), "{both}");
    let long = refusal(&with("duration = \"60000min\""));
    assert!(long.contains("duration cannot be"), "{long}");
}
