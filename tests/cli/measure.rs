// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure` on this machine, for real: what it measures, what it refuses, what it leaves.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testbench::{
    Finished, Lab, Run, Started, assert_as_promised, is_alive, onset, skip, started_with, wait_for,
};

/// Nobody, on Debian as elsewhere.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::geteuid() == 0 }
}

/// What this user may ask for.
fn policy() -> &'static str {
    if is_root() { "fifo:80" } else { "other" }
}

/// Measures with further words.
fn measure(lab: &Lab, words: &str) -> Finished {
    let words: Vec<&str> = words.split_whitespace().collect();
    lab.onset(&[&["measure"], &words[..], &["--policy", policy(), "--json"]].concat())
}

/// Asserts that the bundle is sound, and that what was printed is what scripts are promised.
#[track_caller]
fn assert_sound(lab: &Lab, finished: &Finished) {
    assert_as_promised(&finished.json());
    for run in finished.runs() {
        lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
        let manifest = run.file("manifest.json");
        assert_eq!(manifest["about"]["target"], "local");
        assert_eq!(manifest["clock"], "monotonic");
        assert_eq!(manifest["about"]["experiment"]["trigger"], Value::Null);
        assert!(manifest["about"]["kernel"]["reported"]["clocksource"].is_string(), "{manifest}");
    }
}

/// Samples and losses of a series.
fn events(run: &Run, series: &str) -> u64 {
    let series = run.series(series);
    let losses = series["losses"].as_object().expect("losses").values();
    let lost: u64 = losses.map(|n| n.as_u64().expect("a number")).sum();
    series["count"].as_u64().expect("a number") + lost
}

/// Measures, and asserts that there are these series, each with `count` events.
#[track_caller]
fn assert_measures(words: &str, series: &[&str], count: u64) {
    let lab = Lab::bare();
    // Without a limit nothing can pass.
    let finished = measure(&lab, words).exits(3);
    assert_sound(&lab, &finished);
    let run = finished.run();
    assert_eq!(run.responders(), series);
    for name in series {
        assert_eq!(events(&run, name), count, "{name}: {}", run.0);
    }
}

#[test]
fn every_output_names_the_instrument_of_each_run() {
    let lab = Lab::bare();
    let text = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n[task]\npolicy = \"other\"\n[gtod]\ncount = 100\n\
                [noise]\nduration = \"10ms\"\n";
    let named = |printed: &Value| {
        let runs = printed["runs"].as_array().expect("runs").iter();
        runs.map(|run| run["instrument"].as_str().expect("a word").to_owned()).collect::<Vec<_>>()
    };
    let finished = lab.run(text, &[]).exits(3);
    assert_as_promised(&finished.json());
    assert_eq!(named(&finished.json()), ["gtod", "noise"]);
    let mut listed = named(&lab.onset(&["list", "--json"]).exits(0).json());
    listed.sort();
    assert_eq!(listed, ["gtod", "noise"]);
    for run in finished.runs() {
        let shown = lab.onset(&["show", run.text("run"), "--json"]).exits(0).json();
        assert_eq!(shown["instrument"], run.0["instrument"]);
        assert_eq!(shown["run"], run.0["run"]);
    }
}

#[test]
fn periodic_measures_every_way_to_sleep() {
    let mut methods =
        vec!["nanosleep", "clock_nanosleep", "timerfd", "posix_timer", "itimer", "precise"];
    if is_root() {
        // Not even a resource limit gives an ordinary user SCHED_DEADLINE.
        methods.push("deadline");
    }
    let series: Vec<String> = methods.iter().map(|m| format!("{m}-1.5ms")).collect();
    let series: Vec<&str> = series.iter().map(String::as_str).collect();
    let words = format!("periodic --method {} --period 1.5ms --count 100", methods.join(","));
    assert_measures(&words, &series, 100);
}

#[test]
fn gtod_measures_every_clock() {
    let series = ["monotonic", "raw", "realtime", "coarse", "boottime", "tsc"];
    assert_measures(&format!("gtod --clock {} --count 2000", series.join(",")), &series, 2_000);
}

#[test]
fn toggle_measures_both_edges() {
    assert_measures("toggle --count 500", &["rise", "fall", "width"], 500);
}

#[test]
fn async_measures_every_mechanism() {
    let mechanisms = [
        "condvar",
        "futex",
        "eventfd",
        "pipe",
        "posix_semaphore",
        "sysv_semaphore",
        "posix_queue",
        "sysv_queue",
        "signal",
        "sigwait",
    ];
    let series: Vec<String> = mechanisms.iter().map(|m| format!("{m}-same")).collect();
    let series: Vec<&str> = series.iter().map(String::as_str).collect();
    let words = format!("async --mechanism {} --count 100", mechanisms.join(","));
    assert_measures(&words, &series, 100);
}

#[test]
fn rtc_measures_its_stand_in_where_it_is_asked_to() {
    assert_measures(
        "rtc --rate 1024 --timerfd --count 500",
        &["timerfd-1024hz", "interval-1024hz"],
        500,
    );
}

#[test]
fn an_experiment_of_a_paper_runs_on_this_machine_as_it_is_and_says_what_it_leaves_out() {
    let lab = Lab::bare();
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/papers");
    let path = papers.join("2001-tables-3-4.toml");
    let policy = format!("task.policy={}", policy());
    let shorter =
        ["--set", "repeats=2", "--set", "periodic.count=3", "--set", "periodic.periods=[\"2ms\"]"];
    let words = ["run", path.to_str().expect("text"), "--json", "--set", "target=local"];
    let finished = lab.onset(&[&words, &shorter[..], &["--set", &policy]].concat()).exits(3);
    let finished = finished.says(&[
        "onset ignores these keys on this machine, since only the rig has them: ",
        "flavours, guest.shift",
    ]);
    assert_sound(&lab, &finished);
    let runs = finished.runs();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert_eq!(run.responders(), ["nanosleep-2ms", "busy-2ms"]);
        assert_eq!(events(run, "busy-2ms"), 3);
    }
    // Who names a kernel for a machine is told that it runs the one that it runs.
    let named = ["--set", "flavours=[\"6.12\"]"];
    lab.onset(&[&words, &named[..]].concat()).exits(2).says(&["flavours with target"]);
}

#[test]
fn rhealstone_and_inversion_measure_what_strict_priorities_define() {
    let components = [
        "task_switch",
        "preemption",
        "semaphore_shuffle-sysv",
        "semaphore_shuffle-posix",
        "deadlock_breaking",
        "message_passing-sysv",
        "message_passing-posix",
    ];
    let inversion = ["plain-1ms", "pi-1ms", "plain-3ms", "pi-3ms"];
    let asked = "task_switch,preemption,semaphore_shuffle,deadlock_breaking,message_passing";
    let rhealstone = format!("rhealstone --component {asked} --count 300");
    let middle = "inversion --middle 1ms,3ms --count 10";
    if is_root() {
        assert_measures(&rhealstone, &components, 300);
        assert_measures(middle, &inversion, 10);
        assert_who_ran_when("inversion --middle 1ms --count 3");
    } else {
        let lab = Lab::bare();
        for words in [&rhealstone, middle] {
            measure(&lab, words).exits(69).says(&["strict priorities", "CAP_SYS_NICE"]);
        }
    }
}

/// The instants of the longest wait are in the order that the mutex brings about: with inheritance the middle thread
/// comes last.
fn assert_who_ran_when(words: &str) {
    let lab = Lab::bare();
    let run = measure(&lab, words).exits(3).run();
    let counters = run.file("manifest.json")["about"]["probe_counters"].clone();
    let order = |series: &str, instants: [&str; 6]| {
        let at = |i: &str| counters[format!("{i}_{series}_ns")].as_u64().expect("an instant");
        assert!(instants.map(at).is_sorted(), "{series}: {instants:?} {counters}");
        assert_eq!(run.max(series), at("high_locked") - at("high_asked"), "{series}");
    };
    order(
        "plain-1ms",
        ["low_locked", "high_asked", "middle_began", "middle_ended", "low_works", "high_locked"],
    );
    order(
        "pi-1ms",
        ["low_locked", "high_asked", "low_works", "low_worked", "high_locked", "middle_began"],
    );
}

#[test]
fn a_component_that_this_machine_lacks_is_named_and_the_others_are_measured() {
    if !is_root() {
        return skip("rhealstone needs real-time priorities");
    }
    let lab = Lab::bare();
    let words = "rhealstone --component task_switch,interrupt_latency --count 50";
    let finished = measure(&lab, words).exits(3);
    assert_sound(&lab, &finished);
    let run = finished.run();
    assert_eq!(run.responders(), ["task_switch", "interrupt_latency"]);
    assert_eq!(events(&run, "task_switch"), 50);
    if Path::new("/dev/onset-samples").exists() {
        assert_eq!(events(&run, "interrupt_latency"), 50);
    } else {
        assert_eq!(events(&run, "interrupt_latency"), 0);
        let doubt = run.warning("not_measured");
        assert_eq!(doubt["series"], "interrupt_latency");
        assert!(doubt["reason"].as_str().is_some_and(|why| why.contains("driver")), "{doubt}");
    }
}

#[test]
fn cyclictest_is_run_and_read_where_it_is_installed() {
    let found = Command::new("cyclictest").arg("--help").output();
    if found.is_err() {
        return skip("no cyclictest; install it: apt-get install rt-tests");
    }
    let method = if is_root() { "clock_nanosleep" } else { "nanosleep" };
    let lab = Lab::bare();
    let run = measure(&lab, &format!("cyclictest --method {method} --count 300")).exits(3).run();
    let name = format!("cyclictest-{method}-1ms");
    // Periods that passed while it was late are no loops.
    let passed = run.series(&name)["losses"]["superseded"].as_u64().expect("a count");
    assert_eq!(events(&run, &name) - passed, 300, "{}", run.0);
}

#[test]
fn costs_are_measured_by_their_names_with_their_figures_and_an_unknown_suite_is_refused() {
    let lab = Lab::bare();
    let words = "cost --suite syscalls,files,network --count 2 --repetitions 2";
    let words: Vec<&str> = words.split_whitespace().collect();
    let finished = lab.onset(&[&["measure"], &words[..], &["--json"]].concat()).exits(3);
    assert_sound(&lab, &finished);
    let run = finished.run();
    let counters = run.file("manifest.json")["about"]["probe_counters"].clone();
    for row in ["null_call", "signal_delivery", "page_fault", "file_reread", "tcp_round_trip"] {
        assert_eq!(events(&run, row), 4, "{row}");
        for figure in ["ops", "median_ps", "least_median_ps", "most_median_ps"] {
            assert!(counters[format!("{figure}_{row}")].as_u64().is_some_and(|n| n > 0), "{row}");
        }
    }
    assert!(!run.responders().contains(&"memory_read"));
    let shown = lab.onset(&["show", run.text("run")]).exits(0);
    // A bandwidth is bytes a second; a call takes a time.
    for (row, unit) in [("file_reread", "B/s"), ("null_call", "ns")] {
        let line = shown.stdout.lines().find(|l| l.trim_start().starts_with(row));
        assert!(line.is_some_and(|line| line.contains(unit)), "{row}: {}", shown.stdout);
    }
    let refused = lab.onset(&["measure", "cost", "--suite", "disks"]).exits(2);
    refused.says(&["\"disks\" is none of the suites"]);
}

#[test]
fn a_cost_whose_files_have_no_room_is_named_and_the_others_are_measured() {
    let lab = Lab::bare();
    let mut command =
        lab.command(&["measure", "cost", "--suite", "files", "--count", "1", "--json"]);
    // A file may be no longer than 5 MiB, and the signal that says so is ignored.
    let limit = libc::rlimit { rlim_cur: 5 << 20, rlim_max: 5 << 20 };
    // SAFETY: both are plain system calls.
    unsafe {
        command.pre_exec(move || {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let run = Finished::of(&mut command).exits(3).run();
    let warnings = run.0["warnings"].as_array().expect("warnings");
    let missing = warnings.iter().filter(|w| w["code"] == "not_measured");
    let missing: Vec<&str> = missing.filter_map(|w| w["series"].as_str()).collect();
    assert_eq!(missing, ["file_reread", "mmap_reread"], "the files of 8 MiB");
    assert_eq!((events(&run, "file_create_10k"), events(&run, "file_reread")), (5, 0));
}

#[test]
fn noise_says_beside_the_gaps_what_was_counted() {
    let lab = Lab::bare();
    let finished = measure(&lab, "noise --duration 500ms --threshold 2us").exits(3);
    assert_sound(&lab, &finished);
    let run = finished.run();
    assert_eq!(run.responders(), ["noise"]);
    let counters = run.file("manifest.json")["about"]["probe_counters"].clone();
    assert_eq!(counters["gaps_cpu0"], run.series("noise")["count"], "{counters}");
    assert!(counters["overhead_ns"].as_u64().is_some_and(|n| n > 0), "{counters}");
}

#[test]
fn a_limit_passes_fails_or_is_left_open_and_the_status_says_which() {
    for (limit, status, reason) in [
        ("max=60s", 0, "within"),
        ("clock_nanosleep-1ms.max=1ns", 1, "exceeded"),
        ("p99.999=1s", 3, "too_few_samples"),
        ("miss(60s)=0", 0, "within"),
        ("clock_nanosleep-1ms.consecutive(1ns)=2", 1, "exceeded"),
        ("firm(60s)=200 of 201", 3, "too_few_samples"),
        ("miss(60s)=1 in 201", 3, "too_few_samples"),
    ] {
        let lab = Lab::bare();
        let words = ["measure", "periodic", "--count", "200", "--limit", limit, "--json"];
        let words = [&words[..], &["--policy", policy()]].concat();
        let finished = lab.onset(&words).exits(status);
        assert_sound(&lab, &finished);
        assert_eq!(finished.run().0["findings"][0]["reason"], reason, "{limit}");
    }
}

#[test]
fn runs_of_one_moment_do_not_meet() {
    let lab = Lab::bare();
    let text = "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n[task]\npolicy = \"other\"\n\
                [gtod]\ncount = 100\n[toggle]\ncount = 10\n[noise]\nduration = \"10ms\"\n";
    let finished = lab.run(text, &[]).exits(3);
    assert_sound(&lab, &finished);
    let series: Vec<Vec<String>> = finished
        .runs()
        .iter()
        .map(|run| run.responders().into_iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(series, [vec!["monotonic"], vec!["noise"], vec!["rise", "fall", "width"]]);
}

#[test]
fn a_load_of_this_machine_works_beside_the_probe_and_ends_with_it() {
    let lab = Lab::bare();
    let words = "measure periodic --count 2000 --load fork --load-on-measured-cpus --warm-up 10ms";
    let words: Vec<&str> = words.split(' ').chain(["--policy", policy(), "--json"]).collect();
    let started = Started::of(&mut lab.command(&words));
    let ours = || started_with(&lab.store());
    wait_for("the load", || ours().iter().any(|line| line.contains("fork.storm")).then_some(()));
    let finished = started.wait().exits(3);
    assert_eq!(ours(), [""; 0]);
    assert_sound(&lab, &finished);
    let run = finished.run();
    assert_eq!(run.text("load"), "fork");
    let counters = run.counters();
    assert!(counters.get("fork.storm").is_some_and(|n| *n > 0), "{counters:?}");
    let reported = run.file("manifest.json")["about"]["kernel"]["reported"].clone();
    let held = reported["load_confinement"].as_str().unwrap_or_default();
    assert!(held.starts_with("affinity"), "{reported}");
}

#[test]
fn an_interruption_keeps_what_was_measured_and_marks_it() {
    let lab = Lab::bare();
    let count = 20_000;
    let words = ["measure", "periodic", "--count", "20000", "--policy", policy(), "--json"];
    let mut started = Started::of(&mut lab.command(&words));
    started.wait_until_it_says("measuring, 10 %");
    let probe = started.wait_for_child("onset-agent");
    started.signal(libc::SIGINT);
    let finished = started.wait().exits(130).says(&["interrupted"]);
    assert!(!is_alive(probe));
    assert_sound(&lab, &finished);
    let run = finished.run();
    assert_eq!((&run.0["complete"], run.text("verdict")), (&Value::Bool(false), "invalid"));
    run.warning("interrupted");
    let events = events(&run, "clock_nanosleep-1ms");
    assert!(events > 0 && events < count, "{events}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_remedy() {
    let lab = Lab::bare();
    for (words, status, said) in [
        ("periodic --period 0ms", 2, ["periods cannot be 0 ns", "from 20.0 µs"]),
        ("periodic --period 1", 2, ["\"1\" is no duration", "needs a unit"]),
        ("periodic --period -1ms", 2, ["\"-1ms\" is no duration", "decimal number"]),
        ("periodic --period 61min", 2, ["periods cannot be 3660 s", "3600 s"]),
        ("periodic --method nanoslep", 2, ["\"nanoslep\"", "did you mean \"nanosleep\"?"]),
        ("periodic --overrun later", 2, ["\"later\"", "skip, catch_up, stop"]),
        ("periodic --count 0", 2, ["count cannot be 0", "from 1 to"]),
        ("periodic --count x", 2, ["'x'", "--count"]),
        ("periodic --cpus 8191", 69, ["there is no CPU 8191", "this machine has 0"]),
        ("periodic --cpus 8192", 2, ["cpus cannot hold 8192", "from 0 to 8191"]),
        ("periodic --cpus 0,0", 2, ["a CPU is in cpus twice", "name each once"]),
        ("periodic --cpus 1-0", 2, ["--cpus 1-0", "0-1,3"]),
        ("periodic --load busy", 2, ["unknown load \"busy\"", "mixed"]),
        ("periodic --warm-up 0", 2, ["\"0\" is no duration", "needs a unit"]),
        ("periodic --limit max", 2, ["--limit max", "max=100us"]),
        ("periodic --limit nanosleep-1ms.max=1ms", 2, ["nanosleep-1ms", "clock_nanosleep-1ms"]),
        ("noise --duration 0s", 2, ["duration cannot be 0 ns", "from 1.00 ms"]),
        ("toggle --width 1ms", 2, ["does not fit", "shorter than the period"]),
        ("toggle --line lpt1", 2, ["\"lpt1\" is no line", "parport:0x378"]),
        ("toggle --line gpio:/dev/none:1 --count 1", 69, ["/dev/none", "No such file"]),
        ("rtc --rate 100", 2, ["rate_hz cannot be 100", "divides by two"]),
        ("ladder --count 1", 69, ["/dev/onset-samples", "make -C driver"]),
        ("periodc", 2, ["periodc", "periodic"]),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let finished = lab
            .onset(&[&["measure"], &words[..], &["--policy", policy()]].concat())
            .exits(status)
            .says(&said);
        assert_eq!(finished.stdout, "", "{words:?}");
    }
    let fifo = lab.onset(&["measure", "periodic", "--policy", "fifo:100"]).exits(2);
    fifo.says(&["\"fifo:100\" is no scheduling policy", "1 … 99", "write other"]);
    assert_eq!(lab.bundles(), [""; 0]);
}

/// The command as a user without privileges runs it: as nobody where we are root, and in any case without leave to use
/// real-time priorities.
fn as_ordinary_user(lab: &Lab, words: &[&str]) -> Finished {
    let mut command = if is_root() {
        let mut command = Command::new(install_for_all(lab));
        let home = lab.path().join("home");
        fs::create_dir_all(&home).expect("ours");
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("we are root");
        command.uid(NOBODY).gid(NOBODY).current_dir(&home).env("ONSET_STORE", home.join("runs"));
        command
    } else {
        lab.command(&[])
    };
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: setrlimit is async-signal-safe.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_RTPRIO, &none) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    Finished::of(command.args(words))
}

/// A copy of the command and its parts that every user can run: a build tree may be in a home that nobody else may
/// enter.
fn install_for_all(lab: &Lab) -> std::path::PathBuf {
    let (bin, parts) = (lab.path().join("all/bin"), lab.path().join("all/lib/onset"));
    let command = bin.join("onset");
    if !command.exists() {
        fs::create_dir_all(&bin).expect("ours");
        fs::create_dir_all(&parts).expect("ours");
        let onset = onset();
        let built = onset.ancestors().skip(2).map(|d| d.join("lib/onset"));
        let built = built.take(2).find(|d| d.is_dir()).expect("built");
        let agent = parts.join("onset-agent");
        for (from, to) in [(&onset, &command), (&built.join("onset-agent"), &agent)] {
            install(from, to);
        }
        fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    command
}

/// By another process: a child of another test could hold our descriptor, and who has one open for writing keeps a
/// program from being run.
fn install(from: &Path, to: &Path) {
    let done = Command::new("install").args(["-m", "755"]).arg(from).arg(to).status();
    assert!(done.expect("install is of coreutils").success());
}

#[test]
fn an_ordinary_user_is_told_the_remedy_and_can_measure_without_priority() {
    let lab = Lab::bare();
    let refused = as_ordinary_user(&lab, &["measure", "periodic", "--count", "100", "--json"]);
    refused.exits(69).says(&["fifo:90 is not permitted", "RLIMIT_RTPRIO is 0", "--policy other"]);
    let words = ["measure", "periodic", "--count", "100", "--policy", "other", "--json"];
    let finished = as_ordinary_user(&lab, &words).exits(3);
    assert_as_promised(&finished.json());
    assert_eq!(events(&finished.run(), "clock_nanosleep-1ms"), 100);
}
