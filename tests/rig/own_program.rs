// SPDX-License-Identifier: GPL-2.0-or-later
//! The user's own program in the guest: it answers triggers in the place of onset's task, and has cycles of its own.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbench::{
    Finished, Lab, assert_as_promised_by, compiled, experiment, have_kernels, repository,
};

/// Triggers of the runs here.
const COUNT: u64 = 200;

fn example(name: &str) -> PathBuf {
    repository().join("examples").join(name)
}

/// An experiment whose responder task is the program, with further keys behind.
fn with(kernel: &str, load: &str, program: &str, more: &str) -> String {
    let more = format!("responders = [\"hardirq\", \"task\"]\n{more}\ntask.program = {program}");
    experiment(&[kernel], &[load], COUNT, &more)
}

/// The task's series of a run: how many answers, and the median in ns.
fn task(lab: &Lab, text: &str) -> (String, u64, u64) {
    let finished = lab.run(text, &[]).exits(3);
    let run = finished.run();
    let series = run.series("task");
    let number = |value: &Value| value.as_u64().expect("a number");
    (run.text("run").to_owned(), number(&series["count"]), number(&series["quantiles"]["0.5"]))
}

/// The program of an example, compiled by the compiler of its language.
fn c(lab: &Lab) -> String {
    format!("{:?}", compiled(lab, &example("answer.c"), &[]))
}

#[test]
fn a_program_answers_and_its_worst_lateness_is_explained_blamed_replayed_and_hunted() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = with("6.12 preempt=full", "mixed", &c(&lab), "");
    let (run, count, _) = task(&lab, &text);
    assert_eq!(count, COUNT);
    let explained = lab.onset(&["explain", &run, "--responder", "task", "--json"]).exits(0).json();
    assert_as_promised_by("explain", &explained);
    let worst = &explained["explanations"][0];
    assert_eq!(worst["task"], "answer RT 80", "{worst:#}");
    let causes = worst["causes"].as_array().expect("causes").iter();
    let sum: u64 = causes.map(|cause| cause["ns"].as_u64().expect("a number")).sum();
    assert_eq!(Some(sum), worst["latency_ns"].as_u64(), "{worst:#}");
    let blamed = lab.onset(&["blame", &run, "--responder", "task", "--json"]).exits(0).json();
    assert!(!blamed["ledgers"].as_array().expect("ledgers").is_empty());
    let words = ["replay", &run, "--responder", "task", "--times", "2", "--json"];
    let replayed = lab.onset(&words).exits(0).json();
    assert_eq!((&replayed["times"], &replayed["identical_times"]), (&2.into(), &2.into()));
    let file = lab.path().join("hunt.toml");
    fs::write(&file, &text).expect("writable");
    let words =
        ["hunt", file.to_str().expect("text"), "--budget", "6trials", "--seed", "3", "--json"];
    let hunted = lab.onset(&words).exits(0).json();
    let find = hunted["worst"][0]["find"].as_str().expect("a find").to_owned();
    let of_find: Value = serde_json::from_slice(&fs::read(&find).expect("there")).expect("JSON");
    assert_eq!(of_find["program"][0], "/usr/bin/answer");
    let replayed = lab.onset(&["replay", &find, "--json"]).exits(0).json();
    assert_as_promised_by("replay", &replayed);
    assert_eq!((&replayed["times"], &replayed["identical_times"]), (&1.into(), &1.into()));
}

#[test]
fn programs_in_c_rust_and_python_answer_and_only_the_program_makes_the_difference() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let kernel = "6.12 preempt=none";
    let own = task(
        &lab,
        &experiment(&[kernel], &["idle"], COUNT, "responders = [\"hardirq\", \"task\"]"),
    );
    let in_c = task(&lab, &with(kernel, "idle", &c(&lab), ""));
    let built = lab.path().join("answer-rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "--edition", "2024", "-o"]).arg(&built).arg(example("answer.rs"));
    Finished::of(&mut rustc).exits(0);
    let in_rust = task(&lab, &with(kernel, "idle", &format!("{built:?}"), ""));
    let python = format!("{:?}", example("answer.py"));
    let in_python = task(&lab, &with(kernel, "idle", &python, &python_of_the_guest()));
    for (_, count, _) in [&own, &in_c, &in_rust, &in_python] {
        assert_eq!(*count, COUNT);
    }
    // The kernel's part is the same for all; an interpreter takes thousands of instructions more than two system calls.
    let (own, compiled) = (own.2, [in_c.2, in_rust.2]);
    assert!(compiled.iter().all(|p50| p50.abs_diff(own) < 500), "{own} {compiled:?}");
    assert!(in_python.2 > own + 1_000, "{own} {}", in_python.2);
}

/// What a guest needs for Python, as docs/own-program.md tells: the interpreter, and the modules that it reads before
/// it runs a script.
fn python_of_the_guest() -> String {
    let print = "import encodings, os, sys; d = os.path.dirname(encodings.__file__); \
                 print(sys.executable); \
                 [print(d + '/' + n + '.py') for n in ('__init__', 'aliases', 'utf_8', 'ascii')]";
    let printed =
        Finished::of(Command::new("/usr/bin/python3").args(["-ISc", print])).exits(0).stdout;
    let mut lines = printed.lines();
    let interpreter = lines.next().expect("python3");
    let files: Vec<&str> = lines.collect();
    format!("guest.programs = [{interpreter:?}]\nguest.files = {files:?}")
}

/// A loop of 1 ms that works for 200 µs, and skips cycles 99 to 101, 199 to 201 and so on.
fn slow_loop(lab: &Lab) -> PathBuf {
    let source = fs::read_to_string(example("cycles.c")).expect("readable");
    let work = "for (uint64_t from = now(); now() - from < 200000;) {}\n";
    let source = source.replacen("/* The work comes here. */", work, 1);
    let skip = "release += period, number += number % 100 == 99 ? 3 : 0, release = first + (number + 1) * period";
    let source = source.replacen("number++, release += period", &format!("number++, {skip}"), 1);
    let source = source.replacen(
        "release = now() + period;;",
        "first = now(), release = first + period;;",
        1,
    );
    assert!(
        source.contains("first = now()") && source.contains("% 100") && source.contains("200000")
    );
    let file = lab.path().join("slow-loop.c");
    fs::write(&file, source).expect("writable");
    compiled(lab, &file, &[])
}

fn cycles(kernel: &str, program: &Path, count: u64) -> String {
    format!(
        "title = \"cycles\"\ntarget = \"rig\"\nflavours = [{kernel:?}]\nloads = [\"idle\"]\n\
         [task]\nprogram = [{program:?}]\n[cycles]\nperiod = \"1ms\"\ncount = {count}\n"
    )
}

#[test]
fn a_loop_of_its_own_is_judged_by_start_computation_and_response_and_skipped_cycles_count() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let text = cycles("6.12 preempt=none", &slow_loop(&lab), 309);
    let finished = lab.run(&text, &[]).exits(3);
    let run = finished.run();
    let number = |series: &str, key: &str| run.series(series)[key].as_u64().expect("a number");
    let median = |series: &str| run.series(series)["quantiles"]["0.5"].as_u64().expect("a number");
    for series in ["start", "computation", "response"] {
        // Of 309 cycles the program skips three before each hundredth.
        assert_eq!(number(series, "count"), 300, "{series}");
        assert_eq!(run.series(series)["losses"]["overrun"], 9, "{series}");
    }
    assert!((200_000..210_000).contains(&median("computation")));
    assert!((1_000..100_000).contains(&median("start")), "{}", median("start"));
    let least = number("response", "min_ns");
    assert!(least >= number("start", "min_ns") + number("computation", "min_ns"), "{least}");
    // The same guest has the same cycles, and one that does nothing has others.
    let again = lab.run(&text, &[]).exits(3);
    assert_eq!(again.run().series("start")["mean_ns"], run.series("start")["mean_ns"]);
    let plain = compiled(&lab, &example("cycles.c"), &[]);
    let plain = lab.run(&cycles("6.12 preempt=none", &plain, 300), &[]).exits(3);
    assert!(plain.run().series("computation")["max_ns"].as_u64().expect("a number") < 100_000);
}

#[test]
fn a_program_that_does_not_wait_or_ends_is_named_and_what_to_do() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let message = |program: &str| {
        lab.run(&with("6.12 preempt=none", "idle", program, ""), &[]).exits(69).stderr
    };
    let ended = message("[\"/usr/bin/false\"]");
    assert!(ended.contains("/usr/bin/false ended with exit status: 1"), "{ended}");
    let idle = message("[\"/usr/bin/sleep\", \"1000\"]");
    assert!(idle.contains("does not wait for a trigger") && idle.contains("/dev/onset"), "{idle}");
}

/// The command takes more memory than a guest has by itself.
const LARGE: &str = "guest.memory = \"1GiB\"";

/// The command itself in the guest, which has the driver: it answers, and starts a program that does.
#[test]
fn respond_answers_where_the_driver_is_and_starts_the_users_program() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let kernel = "6.12 preempt=none";
    let command = testbench::onset();
    let alone = task(&lab, &with(kernel, "idle", &format!("[{command:?}, \"respond\"]"), LARGE));
    let own = compiled(&lab, &example("answer.c"), &[]);
    let words = "[\"/usr/bin/sh\", \"-c\", \"onset respond -- /usr/bin/answer\"]";
    let more = format!("{LARGE}\nguest.programs = [{command:?}, {own:?}]");
    let started = task(&lab, &with(kernel, "idle", words, &more));
    let small =
        lab.run(&with(kernel, "idle", words, &more.replace(LARGE, "")), &[]).exits(69).stderr;
    assert!(
        small.contains("does not fit into its memory: give it more ([guest] memory)"),
        "{small}"
    );
    let plain = task(&lab, &with(kernel, "idle", &format!("{own:?}"), ""));
    for (_, count, p50) in [&alone, &started, &plain] {
        assert_eq!(*count, COUNT);
        assert!(p50.abs_diff(plain.2) < 500, "{p50} {}", plain.2);
    }
}
