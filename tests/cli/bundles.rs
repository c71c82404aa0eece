// SPDX-License-Identifier: GPL-2.0-or-later
//! list, show, compare and report on stores with sound, damaged and foreign bundles.

use bundle::{
    About, Begun, BundleWriter, Conclusion, Experiment, Kernel, Machine, RunId, SCHEMA, Schedule,
    Tool, Trigger, UtcTime,
};
use sample::{Clock, Insns, Nanos, Observation, Sample, SeriesId, SeriesName};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use testbench::Lab;

/// The `n`th second of the 21st of November 2026.
fn time(n: u64) -> UtcTime {
    UtcTime::from_unix_seconds(1_795_219_200 + n).expect("before the year 9999")
}

fn about(created: UtcTime) -> About {
    let word = str::to_owned;
    About {
        title: word("Made by a test"),
        created,
        tool: Tool { version: word("0.1.0"), revision: word("unknown") },
        target: word("rig"),
        flavour: word("6.12 preempt=none"),
        load: word("idle"),
        seed: 7,
        kernel: Some(Kernel {
            name: word("6.12"),
            release: word("6.12.0-amd64"),
            build: word("#1 SMP"),
            command_line: word("preempt=none"),
            reported: BTreeMap::new(),
        }),
        machine: Some(Machine {
            accelerator: word("tcg"),
            cpu: word("max"),
            memory_mib: 256,
            icount_shift: Some(0),
            snapshot: None,
            contents_blake3: BTreeMap::new(),
        }),
        qemu: Some(word("10.0.2")),
        plugin: Some(word("0.1.0")),
        experiment: Experiment {
            source: word("title = \"Made by a test\"\n"),
            directory: None,
            overrides: Vec::new(),
            paper: None,
            warm_up: Nanos(0),
            probe: None,
            trigger: Some(Trigger {
                schedule: Schedule::Periodic {
                    period: Nanos::from_millis(1),
                    jitter: Nanos(0),
                    phase: Nanos::from_millis(1),
                    count: 100,
                },
                high: Nanos(500_000),
                grace: Nanos::from_millis(50),
                disturbances: Vec::new(),
            }),
        },
        load_counters: BTreeMap::new(),
        probe_counters: BTreeMap::new(),
        truth: None,
    }
}

/// Writes the `n`th run: a hundred answers of hardirq and task, each `slower` ns later than in a run with 0.
fn write(lab: &Lab, n: u64, clock: Clock, slower: u64) -> PathBuf {
    let created = time(n);
    let run = RunId::new(created, "test", 0xbeef);
    let names: [SeriesName; 2] = ["hardirq", "task"].map(|n| n.parse().expect("a name"));
    let begun = Begun {
        schema: SCHEMA,
        run,
        clock,
        responders: names.into(),
        about: about(created),
        limits: Vec::new(),
        warnings: Vec::new(),
    };
    let mut writer = BundleWriter::create(&lab.store(), &begun).expect("writable");
    for trigger in 0..100 {
        for (series, base) in [(SeriesId(0), 400), (SeriesId(1), 70_400)] {
            let latency = Nanos(base + trigger + slower);
            let at = Nanos(trigger * 1_000_000);
            // Nobody counts instructions on a real clock.
            let path = (clock == Clock::Virtual).then_some(Insns(latency.0));
            let sample = Sample { series, trigger, at, latency, path };
            writer.observe(&Observation::Sample(sample)).expect("room");
        }
    }
    let conclusion = Conclusion::of(&writer.summaries(), &writer.tallies(), Vec::new(), Vec::new());
    writer.finish(about(created), conclusion, true).expect("room")
}

fn name(bundle: &Path) -> String {
    bundle.file_name().expect("a run").to_string_lossy().into_owned()
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("ours");
}

/// Flips a bit where nobody sees it without reading the file: its length, inode and time of change stay.
fn flip_unseen(path: &Path) {
    let changed = fs::metadata(path).and_then(|file| file.modified()).expect("a file");
    flip(path);
    let file = fs::File::options().write(true).open(path).expect("ours");
    file.set_modified(changed).expect("ours");
}

fn cut(path: &Path) {
    let bytes = fs::read(path).expect("a file");
    fs::write(path, &bytes[..bytes.len() / 2]).expect("ours");
}

#[test]
fn a_list_shows_the_newest_first_and_names_what_is_damaged() {
    let lab = Lab::bare();
    let runs: Vec<_> = (0..3).map(|n| write(&lab, n, Clock::Virtual, 0)).collect();
    cut(&runs[1].join("manifest.json"));
    fs::create_dir(lab.store().join("something-else")).expect("ours");
    let list = || {
        let listed = lab.onset(&["list", "--json"]).exits(0).json();
        let listed = listed["runs"].as_array().expect("runs");
        let names: Vec<_> = listed.iter().map(|r| r["run"].as_str().expect("a name")).collect();
        assert_eq!(names, [name(&runs[2]), name(&runs[1]), name(&runs[0])]);
        assert_eq!(listed[0]["samples"], 200);
        assert_eq!((&listed[0]["damaged"], &listed[2]["damaged"]), (&Value::Null, &Value::Null));
        let why = listed[1]["damaged"].as_str().expect("a reason");
        assert!(why.contains("manifest.json is damaged"), "{why}");
    };
    list();
    // The second list is answered from the index, which knows what stood in this manifest.
    flip_unseen(&runs[0].join("manifest.json"));
    list();
    lab.onset(&["show", &name(&runs[0])]).exits(69).says(&["manifest.json is damaged"]);
    let table = lab.onset(&["list"]).exits(0).stdout;
    assert!(table.contains("damaged") && table.contains("6.12 preempt=none"), "{table}");
}

#[test]
fn a_damaged_index_is_made_anew() {
    let lab = Lab::bare();
    write(&lab, 0, Clock::Virtual, 0);
    let index = lab.store().join("index.sqlite");
    let length = || fs::metadata(&index).expect("an index").len();
    let first = lab.onset(&["list", "--json"]).exits(0).stdout;
    let whole = length();
    cut(&index);
    assert_eq!(lab.onset(&["list", "--json"]).exits(0).stdout, first);
    assert_eq!(length(), whole, "half an index stayed");
}

#[test]
fn an_empty_store_says_how_to_fill_it() {
    let lab = Lab::bare();
    assert!(lab.onset(&["list"]).exits(0).stdout.contains("onset run"));
    let listed = lab.onset(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["runs"], Value::Array(Vec::new()));
    lab.onset(&["show", "latest"]).exits(2).says(&["onset run"]);
}

#[test]
fn a_run_is_shown_by_the_beginning_of_its_name_or_its_path() {
    let lab = Lab::bare();
    let runs = [0, 1].map(|n| write(&lab, n, Clock::Virtual, 0));
    let path = runs[0].to_string_lossy().into_owned();
    for (wanted, expected) in [("latest", 1), (&name(&runs[0]) as &str, 0), (&path, 0)] {
        let shown = lab.onset(&["show", wanted, "--json"]).exits(0).json();
        assert_eq!(shown["run"], name(&runs[expected]), "{wanted}");
    }
    let text = lab.onset(&["show", "latest"]).exits(0).stdout;
    for word in ["hardirq", "task", "6.12 preempt=none", "lost", "inconclusive"] {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    let both = name(&runs[0])[..10].to_string();
    lab.onset(&["show", &both]).exits(2).says(&["2 runs", &name(&runs[0]), &name(&runs[1])]);
    lab.onset(&["show", "1999"]).exits(2).says(&["no run begins with", &name(&runs[1])]);
}

#[test]
fn verifying_finds_a_flipped_bit_in_every_file_of_a_bundle() {
    let lab = Lab::bare();
    let run = write(&lab, 0, Clock::Virtual, 0);
    let verified = lab.onset(&["show", "latest", "--verify"]).exits(0).stdout;
    for words in ["every byte of 5 files", "all numbers, histograms", "only by hash"] {
        assert!(verified.contains(words), "{verified}");
    }
    for file in ["samples.parquet", "series.json", "histograms/hardirq.hdr", "histograms/task.hdr"]
    {
        let path = run.join(file);
        let sound = fs::read(&path).expect("a file");
        flip(&path);
        let damaged = format!("{file} is damaged");
        lab.onset(&["show", "latest", "--verify"]).exits(69).says(&[&damaged, "restore"]);
        cut(&path);
        lab.onset(&["show", "latest"]).exits(69).says(&[&damaged]);
        fs::remove_file(&path).expect("ours");
        lab.onset(&["show", "latest"]).exits(69).says(&[&damaged]);
        fs::write(&path, sound).expect("ours");
    }
    let manifest = run.join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(&manifest, text.replacen("\"max_ns\": 499", "\"max_ns\": 498", 1)).expect("ours");
    lab.onset(&["show", "latest"]).exits(69).says(&["manifest.json is damaged", "its seal"]);
    fs::write(&manifest, text.replacen("\"schema\": 4", "\"schema\": 5", 1)).expect("ours");
    lab.onset(&["show", "latest"])
        .exits(69)
        .says(&["schema 5", "use the version of onset that wrote it"]);
}

#[test]
fn a_comparison_gives_the_difference_of_each_statistic() {
    /// More than a bucket of a histogram is wide.
    const SLOWER: u64 = 5_000;
    let lab = Lab::bare();
    let [before, after] =
        [(0, 0), (1, SLOWER)].map(|(n, slower)| write(&lab, n, Clock::Virtual, slower));
    let words = ["compare", &name(&before), &name(&after)];
    let compared = lab.onset(&[&words[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(compared["identical_samples"], false);
    let responders = compared["responders"].as_array().expect("responders");
    let names: Vec<_> = responders.iter().map(|of| of["responder"].as_str()).collect();
    assert_eq!(names, [Some("hardirq"), Some("task")]);
    for responder in responders {
        let max = |of: &Value| of["statistic"] == "max" && of["difference_ns"] == SLOWER as f64;
        assert!(responder["statistics"].as_array().is_some_and(|all| all.iter().any(max)));
        for statistic in responder["statistics"].as_array().expect("statistics") {
            // A hundred answers do not support the higher quantiles, of which there is then nothing.
            let Some(before) = statistic["before_ns"].as_f64() else {
                assert_eq!(statistic["difference_ns"], Value::Null, "{statistic:#}");
                continue;
            };
            let difference = statistic["difference_ns"].as_f64().expect("a number");
            // A quantile is that of a bucket of three digits.
            let slower = SLOWER as f64;
            let width = 1.0 + (before + slower) / 1000.0;
            assert!((difference - slower).abs() <= width, "{statistic:#}");
        }
    }
    let text = lab.onset(&words).exits(0).stdout;
    assert!(text.contains("hardirq") && text.contains("p99"), "{text}");
    let same = lab.onset(&["compare", "latest", "latest", "--json"]).exits(0).json();
    assert_eq!(same["identical_samples"], true);
}

#[test]
fn a_comparison_fails_where_a_condition_holds_and_is_undecided_where_nothing_can_be_told() {
    let lab = Lab::bare();
    let [before, after] =
        [(0, 0), (1, 50)].map(|(n, slower)| write(&lab, n, Clock::Virtual, slower));
    let compare = |conditions: &[&str]| {
        let mut words = vec!["compare".to_owned(), name(&before), name(&after)];
        words.extend(conditions.iter().flat_map(|c| ["--fail-if".to_owned(), (*c).to_owned()]));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        lab.onset(&words)
    };
    // Each answer is 50 ns later: a tenth of the worst of hardirq, a thousandth of that of task.
    for (conditions, status) in [
        (&["task.p99 > +5%"][..], 0),
        (&["hardirq.max > +5%"], 1),
        (&["task.p99 > +5%", "hardirq.max > +49ns"], 1),
        (&["hardirq.max > 1us"], 0),
        (&["hardirq.max > 500ns"], 1),
        (&["nobody.max > 1us"], 3),
        (&["task.p99.99 > +5%"], 3),
        (&["nobody.max > 1us", "hardirq.max > +5%"], 1),
    ] {
        compare(conditions).exits(status);
    }
    let told = compare(&["hardirq.max > +5%"]).stdout;
    assert!(
        told.starts_with("The largest increase from the earlier to the later run is in hardirq."),
        "{told}"
    );
    assert!(told.contains("✗ hardirq.max > +5 %: yes"), "{told}");
    compare(&["hardirq.max"]).exits(2).says(&["no \">\"", "task.p99 > +5%"]);
}

#[test]
fn runs_of_different_clocks_share_neither_comparison_nor_report() {
    let lab = Lab::bare();
    let [one, other] =
        [(0, Clock::Virtual), (1, Clock::Tsc)].map(|(n, clock)| write(&lab, n, clock, 0));
    let (one, other) = (name(&one), name(&other));
    for words in [
        vec!["compare", &one, &other],
        vec!["compare", &other, &one, "--json"],
        vec!["report", &one, &other, "-o", "r.html"],
    ] {
        let finished = lab.onset(&words).exits(2).says(&["virtual", "tsc"]);
        assert_eq!(finished.stdout, "", "{words:?}");
    }
    assert!(!lab.path().join("r.html").exists());
}

#[test]
fn a_report_is_one_file_that_holds_the_numbers_and_no_address() {
    let lab = Lab::bare();
    let runs = [(0, 0), (1, 50)].map(|(n, slower)| write(&lab, n, Clock::Virtual, slower));
    let finished = lab.onset(&["report", &name(&runs[0]), "latest", "-o", "r.html"]).exits(0);
    assert!(finished.stdout.contains("r.html"), "{}", finished.stdout);
    let page = fs::read_to_string(lab.path().join("r.html")).expect("a page");
    for word in [&name(&runs[0]) as &str, &name(&runs[1]), "Made by a test", "\"max_ns\":499"] {
        assert!(page.contains(word), "{word:?} is not in the page");
    }
    for reference in ["src=\"http", "href=\"http", "@import", "__ONSET_REPORT__"] {
        assert!(!page.contains(reference), "{reference:?} is in the page");
    }
    cut(&runs[0].join("series.json"));
    lab.onset(&["report", &name(&runs[0])]).exits(69).says(&["series.json is damaged"]);
    lab.onset(&["report", "latest", "-o", "no/such/directory/r.html"])
        .exits(69)
        .says(&["no/such/directory/r.html", "choose another file"]);
}
