// SPDX-License-Identifier: GPL-2.0-or-later
//! A run, and a find, are had again from any directory.

use lab::{FIRST_AND_LAST, Lab, experiment, have_kernels};
use serde_json::Value;
use std::path::Path;

/// A run of `sub/e.toml`, which puts `sub/words` into the guest by a relative path.
fn run(lab: &Lab) -> String {
    let more = format!("{FIRST_AND_LAST}\nguest.files = [\"words=/srv/words\"]");
    lab.write("sub/words", "some\n");
    lab.write("sub/e.toml", &experiment(&["6.12 preempt=full"], &["idle"], 5, &more));
    lab.onset(&["run", "sub/e.toml", "--json"]).exits(3).run().text("run").to_string()
}

/// Writes the find of an answer of `task` in the run to `find.json`.
fn find(lab: &Lab, run: &str) -> Value {
    let words = ["minimise", run, "--responder", "task", "--sample", "2", "-o", "find.json"];
    lab.onset(&words).exits(0);
    let text = std::fs::read_to_string(lab.path().join("find.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn relative_paths_of_an_experiment_lead_to_the_same_files_wherever_its_run_and_find_are_had_again()
{
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab);
    lab.onset(&["explain", &run, "--json"]).exits(0);
    let find = find(&lab, &run);
    let words = lab.path().join("sub/words");
    assert_eq!(find["files"][0][0].as_str().map(Path::new), Some(&*words), "{find:#}");
    let find = lab.path().join("find.json").display().to_string();
    for what in [&run, &find] {
        let mut elsewhere = lab.command(&["replay", what, "--json"]);
        let replayed = lab::Finished::of(elsewhere.current_dir("/")).exits(0).json();
        assert_eq!(replayed["identical"], true, "{replayed:#}");
    }
}
