// SPDX-License-Identifier: GPL-2.0-or-later
//! The user's own program on this machine: its cycles are measured, and no file makes onset run it.

use std::fs;
use std::path::Path;
use std::process::Command;
use testbench::{Finished, Lab, compiled, repository};

fn measure(lab: &Lab, program: &[&str]) -> Finished {
    let how = ["--policy", "other", "--count", "50", "--json"];
    lab.onset(&[&["measure", "cycles"], &how[..], &["--"], program].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn cycles_in_c_rust_and_python_are_measured_here() {
    let lab = Lab::bare();
    let examples = repository().join("examples");
    let in_c = compiled(&lab, &examples.join("cycles.c"), &[]);
    let in_rust = lab.path().join("cycles-rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "--edition", "2024", "-o"]).arg(&in_rust).arg(examples.join("cycles.rs"));
    Finished::of(&mut rustc).exits(0);
    for program in [in_c, in_rust, examples.join("cycles.py")] {
        let finished = measure(&lab, &[text(&program)]).exits(3);
        let run = finished.run();
        for series in ["start", "computation", "response"] {
            let series = run.series(series);
            assert_eq!(series["count"], 50, "{program:?}: {series:#}");
            assert_eq!(series["losses"]["tainted"], 0, "{program:?}: {series:#}");
        }
        let least = |series: &str| run.series(series)["min_ns"].as_u64().expect("a number");
        assert!(least("response") >= least("start") + least("computation"), "{program:?}");
        lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
    }
}

#[test]
fn a_program_that_fails_or_says_nothing_is_told_with_how_it_ended() {
    let lab = Lab::bare();
    let failed = measure(&lab, &["/bin/sh", "-c", "exit 7"]).exits(69).stderr;
    assert!(failed.contains("/bin/sh: it ended with exit status: 7 after 0 cycles"), "{failed}");
    let missing = measure(&lab, &["/no/such/program"]).exits(69).stderr;
    assert!(missing.contains("/no/such/program: No such file"), "{missing}");
}

#[test]
fn a_file_cannot_make_onset_run_a_program_here() {
    let lab = Lab::bare();
    let mark = lab.path().join("mark");
    let file = lab.path().join("theirs.toml");
    let program = format!("[\"/usr/bin/touch\", {mark:?}]");
    let write = |task: &str| {
        let text = format!(
            "title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n{task}\n[cycles]\ncount = 5\n"
        );
        fs::write(&file, text).expect("writable");
    };
    write(&format!("[task]\nprogram = {program}"));
    let refused = lab.onset(&["run", text(&file)]).exits(2).stderr;
    assert!(refused.contains("the file names a program to run on this machine"), "{refused}");
    assert!(refused.contains("--set 'task.program="), "{refused}");
    assert!(!mark.exists());
    write("");
    let none = lab.onset(&["run", text(&file)]).exits(2).stderr;
    assert!(none.contains("name it on the command line"), "{none}");
    // The same program from the command line runs, so that the mark could have been made above.
    let set = format!("task.program={program}");
    lab.onset(&["run", text(&file), "--set", &set, "--set", "task.policy=other"]).exits(69);
    assert!(mark.exists());
}

#[test]
fn a_program_that_nothing_measures_is_refused() {
    let lab = Lab::bare();
    let words = ["measure", "gtod", "--count", "10", "--", "/bin/true"];
    let refused = lab.onset(&words).exits(2).stderr;
    assert!(refused.contains("nothing measures the program"), "{refused}");
}

#[test]
fn without_the_driver_nobody_answers_and_the_remedy_is_named() {
    let lab = Lab::bare();
    for words in [&["respond", "--policy", "other"][..], &["respond", "--", "/bin/true"]] {
        let refused = lab.onset(words).exits(69).stderr;
        assert!(
            refused.contains("/dev/onset") && refused.contains("driver/README.md"),
            "{refused}"
        );
    }
}
