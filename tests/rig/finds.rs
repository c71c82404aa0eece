// SPDX-License-Identifier: GPL-2.0-or-later
//! A run, and a find, are had again from any directory, by the guest that they were made with and no other.

use serde_json::Value;
use std::path::Path;
use testbench::{FIRST_AND_LAST, Finished, Lab, assert_as_promised_by, experiment, have_kernels};

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

/// One test, since all of it is of one guest, which takes longer to boot than all the rest.
#[test]
fn a_find_is_had_again_from_any_directory_refused_in_another_guest_and_found_out_where_it_is_wrong()
{
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = run(&lab);
    lab.onset(&["explain", &run, "--json"]).exits(0);
    let find = find(&lab, &run);
    relative_paths_lead_to_the_same_files(&lab, &run, &find);
    an_answer_that_is_another_is_no_replay(&lab, &find);
    each_thing_that_is_another_is_named(&lab, &find);
    what_is_another_since_is_named(&lab, &run);
}

fn relative_paths_lead_to_the_same_files(lab: &Lab, run: &str, find: &Value) {
    let words = lab.path().join("sub/words");
    assert_eq!(find["files"][0][0].as_str().map(Path::new), Some(&*words), "{find:#}");
    let find = lab.path().join("find.json").display().to_string();
    for what in [run, &find] {
        let mut elsewhere = lab.command(&["replay", what, "--json"]);
        let replayed = Finished::of(elsewhere.current_dir("/")).exits(0).json();
        assert_eq!(replayed["identical"], true, "{replayed:#}");
    }
}

fn an_answer_that_is_another_is_no_replay(lab: &Lab, find: &Value) {
    let [latency, insns] =
        ["latency_ns", "insns"].map(|key| find["answer"][key].as_u64().expect("a number"));
    for (key, value) in [("latency_ns", latency + 1), ("insns", insns - 1)] {
        let mut other = find.clone();
        other["answer"][key] = value.into();
        lab.write("other.json", &other.to_string());
        let words = ["replay", "other.json", "--times", "2", "--trace", "other.pftrace"];
        let printed = lab.onset(&[&words[..], &["--json"]].concat()).exits(1).json();
        assert_as_promised_by("replay", &printed);
        assert_eq!(printed["identical"], false, "{printed:#}");
        assert_eq!((&printed["times"], &printed["identical_times"]), (&2.into(), &0.into()));
        // What the guest does is what it did.
        assert_eq!(printed["latency_ns"], latency, "{printed:#}");
        assert_eq!(printed["insns"], insns, "{printed:#}");
        assert!(!lab.path().join("other.pftrace").exists(), "there is no trace of what is not it");
    }
    let said = lab.onset(&["replay", "other.json"]).exits(1).stdout;
    assert!(said.contains("0 of 1 times identical"), "{said}");
    assert!(
        said.contains(&format!("the first replay that differs: {latency} ns, {insns}")),
        "{said}"
    );
}

/// Each by itself, as on a machine that has another.
fn each_thing_that_is_another_is_named(lab: &Lab, find: &Value) {
    let image = "the kernel's image";
    for (path, said) in [
        (&["qemu"][..], &["QEMU is ", "was another then", "install that version"][..]),
        (&["plugin"], &["the plugin is ", "was another then", "build that version of onset"]),
        (&["release"], &["the kernel's release is ", "was another then", "fetch or add"]),
        (&["contents_blake3", image], &["guest is another", image, "bring that back"]),
        (&["snapshot"], &["snapshot is ", "was another then", "are the same, so the programs"]),
    ] {
        let mut other = find.clone();
        let key = path.iter().fold(&mut other, |value, key| &mut value[*key]);
        assert!(key.is_string(), "{path:?} in {find:#}");
        *key = "another".into();
        lab.write("other.json", &other.to_string());
        for command in ["replay", "explain", "minimise"] {
            lab.onset(&[command, "other.json"]).exits(69).says(said);
        }
    }
}

/// Before the guest is booted: the file is in its image.
fn what_is_another_since_is_named(lab: &Lab, run: &str) {
    lab.write("sub/words", "others\n");
    for what in [run, "find.json"] {
        let finished = lab.onset(&["replay", what]).exits(69);
        let finished = finished.says(&["guest is another", "sub/words;", "bring that back"]);
        assert!(!finished.stderr.contains("booting"), "{}", finished.stderr);
    }
}
