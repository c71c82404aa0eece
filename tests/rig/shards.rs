// SPDX-License-Identifier: GPL-2.0-or-later
//! Works that several machines share come out as on one machine, whoever makes which shard, and in which order. The
//! Slurm here is a few scripts; tests/slow/cluster.sh has a real one, with nodes that die.

use std::fs;
use std::path::{Path, PathBuf};
use testbench::{FIRST_AND_LAST, Finished, Lab, experiment, have_kernels};

const HUNT: [&str; 9] = [
    "hunt",
    "--flavour",
    "6.12 preempt=none",
    "--load",
    "idle",
    "--responder",
    "hardirq",
    "--budget",
    "3trials",
];

/// A Slurm of one node with one processor, whose array has ended when sbatch returns. Each word of `dying` is a shard
/// whose task is killed at its first try.
fn slurm(lab: &Lab, dying: &str) {
    lab.script(
        "sinfo",
        "case \"$*\" in *%P*) echo 'main*' ;; *%C*) echo 0/1/0/1 ;; *) echo n1 ;; esac",
    );
    lab.script("srun", "while [ \"$1\" != sh ]; do shift; done\nSLURMD_NODENAME=n1 exec \"$@\"");
    lab.script("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1");
    lab.script("scancel", "exit 0");
    let body = format!(
        r#"for word; do
	case $word in --array=*) list=${{word#--array=}} ;; --output=*) out=${{word#--output=}} ;; esac
done
echo "$list" >>"$OUR_LAB/arrays"
for part in $(echo "${{list%%%*}}" | tr , ' '); do
	for task in $(seq ${{part%-*}} ${{part#*-}}); do
		case " {dying} " in *" $task "*) [ -e "$OUR_LAB/died.$task" ] || {{ : >"$OUR_LAB/died.$task"; continue; }} ;; esac
		SLURM_ARRAY_TASK_ID=$task sh "$word" >>"${{out%?a.log}}$task.log" 2>&1
	done
done
echo 7"#
    );
    lab.script("sbatch", &body);
}

fn on_slurm(lab: &Lab, words: &[&str]) -> Finished {
    let mut command = lab.command(words);
    Finished::of(command.env("PATH", lab.with_bin()).env("OUR_LAB", lab.path()))
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    let path: PathBuf = directory.join(name);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_hunt_in_shards_finds_the_same_on_one_machine_on_several_and_on_slurm() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let hunt = |more: &[&str]| lab.onset(&[&HUNT[..], more].concat());
    hunt(&["--shards", "3", "--directory", "one"]).exits(0);
    // Two machines, which make their shards in any order; one makes a shard that the other has made.
    for (shard, machine) in [("3/3", "a"), ("1/3", "a"), ("2-3/3", "b")] {
        hunt(&["--shard", shard, "--directory", machine]).exits(0);
    }
    let merged = lab.onset(&["merge", "a", "b", "--into", "both"]).exits(0);
    merged.says(&["2 results are new, 0 were there", "1 results are new, 1 were there"]);
    hunt(&["--shards", "3", "--directory", "both"]).exits(0);
    slurm(&lab, "2 3");
    let words = ["--on", "slurm", "--shards", "3", "--tasks", "2", "--directory", "cluster"];
    on_slurm(&lab, &[&HUNT[..], &words].concat()).exits(0);
    // The tasks that were killed were made again, and no others.
    assert_eq!(fs::read_to_string(lab.path().join("arrays")).unwrap(), "1-3%2\n2-3%2\n");
    for other in ["both", "cluster"] {
        for file in ["trials.jsonl", "hardirq.find.json"] {
            let [one, other] = ["one", other].map(|place| read(&lab.path().join(place), file));
            assert!(one == other, "{file}");
        }
    }
    // Each shard is another hunt.
    let [first, second] =
        [1, 2].map(|k| read(&lab.path().join("one/shards"), &format!("{k}-of-3.jsonl")));
    let trials = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    assert_ne!(trials(&first), trials(&second));
    // A hunt that is not divided stays as it is.
    hunt(&["--directory", "plain"]).exits(0);
    let plain = read(&lab.path().join("plain"), "trials.jsonl");
    let divided = hunt(&["--shards", "3", "--directory", "plain"]).exits(2);
    divided.says(&["its number of shards is 1, not 3"]);
    assert_eq!(read(&lab.path().join("plain"), "trials.jsonl"), plain);
    // A report shows the whole, and the hunt cannot be gone on with as if it were not divided.
    lab.onset(&["report", "one", "--output", "r.html"]).exits(0);
    hunt(&["--directory", "one"]).exits(2).says(&["its number of shards is 3, not 1"]);
    hunt(&["--shards", "4", "--directory", "one"]).exits(69).says(&["into 3 shards, not 4"]);
    // Another hunt is refused also by who makes one shard, and so is the longer one that a shard's file would hide.
    let other = ["--seed", "2", "--shard", "1/3", "--directory", "one"];
    hunt(&other).exits(69).says(&["the seed of the work there is 1, not 2"]);
    let words =
        [&HUNT[..HUNT.len() - 1], &["4trials", "--shards", "3", "--directory", "one"]].concat();
    lab.onset(&words).exits(69).says(&["the budget of the work there is 3trials, not 4trials"]);
    hunt(&["--seed", "2", "--shard", "1/3", "--directory", "c"]).exits(0);
    let mixed = lab.onset(&["merge", "c", "--into", "both"]).exits(69);
    mixed.says(&["the seed of the work there is 1, not 2"]);
}

#[test]
fn a_census_an_atlas_and_runs_in_shards_are_the_same_as_undivided() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    slurm(&lab, "1");
    let text = experiment(&["6.12 preempt=none"], &["idle", "disk"], 4, FIRST_AND_LAST);
    let path = lab.experiment(&text);
    let shared = ["run", &path, "--json", "--on", "slurm", "--store", "shared"];
    let shared = on_slurm(&lab, &shared).runs();
    let alone = lab.run(&text, &[]).runs();
    let hashes = |runs: &[testbench::Run], store: &str| -> Vec<String> {
        let manifest = |run: &testbench::Run| {
            let path = lab.path().join(store).join(run.text("run"));
            let json: serde_json::Value =
                serde_json::from_slice(&read(&path, "manifest.json")).expect("JSON");
            json["samples"]["blake3"].as_str().expect("a hash").to_owned()
        };
        runs.iter().map(manifest).collect()
    };
    assert_eq!((shared.len(), alone.len()), (2, 2));
    assert_eq!(hashes(&shared, "shared"), hashes(&alone, "store"));

    // Machines without a common directory.
    for shard in ["1/2", "2/2"] {
        let store = format!("store-{}", &shard[..1]);
        let made = lab.onset(&["run", &path, "--shard", shard, "--store", &store]).exits(0);
        made.says(&["to show the whole: onset run", "--shards 2", "--store /"]);
    }
    let merge = ["merge", "store-1", "store-2", "--into", "both"];
    lab.onset(&merge).exits(0).says(&["1 results are new, 0 were there", "onset run"]);
    lab.onset(&merge).exits(0).says(&["0 results are new, 1 were there"]);
    let both = lab.onset(&["run", &path, "--json", "--shards", "2", "--store", "both"]).runs();
    assert_eq!(hashes(&both, "both"), hashes(&alone, "store"));
    let bundles = Lab::names(&lab.path().join("both"));
    assert_eq!(bundles.iter().filter(|name| name.starts_with("20")).count(), 2, "{bundles:?}");
    lab.onset(&["merge", "bin", "--into", "both"]).exits(2).says(&["has no results"]);
    lab.onset(&["merge", "bin", "--into", "nothing"]).exits(2).says(&["has no results"]);
    assert!(!lab.path().join("nothing").exists());

    let run = alone[0].text("run").to_owned();
    let census = ["census", &run, "--responder", "task", "--sample", "2", "--json"];
    let census = [&census[..], &["--around", "40us", "--every", "4us", "--jobs", "1"]].concat();
    let whole = lab.onset(&census).exits(0).json();
    let divided = lab.onset(&[&census[..], &["--shards", "3"]].concat()).exits(0).json();
    assert_eq!((&divided, whole["triggers"].as_u64()), (&whole, Some(11)));
    // A task makes several shards.
    let words = ["--on", "slurm", "--shards", "11", "--directory", "dealt"];
    let dealt = on_slurm(&lab, &[&census[..], &words].concat()).exits(0);
    assert_eq!(dealt.says(&["makes 11 shards in 6 tasks"]).json(), whole);
    let arrays = fs::read_to_string(lab.path().join("arrays")).expect("a file");
    assert_eq!(arrays.lines().last(), Some("1,3,5,7,9,11"));

    let atlas = ["atlas", "--flavour", "6.12 preempt=none", "--duration", "20ms", "--json"];
    let atlas = [&atlas[..], &["--stressor", "brk", "--stressor", "pipe"]].concat();
    lab.onset(&[&atlas[..], &["--output", "whole"]].concat()).exits(0);
    let words = ["--on", "slurm", "-o", "divided"];
    on_slurm(&lab, &[&atlas[..], &words].concat()).exits(0);
    for file in ["atlas.json", "stressors/brk.json", "stressors/pipe.json"] {
        let [whole, divided] = ["whole", "divided"].map(|at| read(&lab.path().join(at), file));
        assert!(whole == divided, "{file}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name_before_anything_runs() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    slurm(&lab, "");
    let words = ["--on", "slurm", "--shards", "2", "--directory", "d"];
    let hunt = |more: &[&str]| on_slurm(&lab, &[&HUNT[..], &words, more].concat());
    let shard = ["--shard", "1/2"];
    lab.onset(&[&HUNT[..], &shard].concat()).exits(2).says(&["--shard needs --directory"]);
    hunt(&["--partition", "none"]).exits(2).says(&["no partition none", "main"]);
    // Nodes that see another directory, and that have another onset.
    lab.script("srun", "echo '@n1: onset: d/work.json is not here: the directory is not shared'");
    hunt(&[]).exits(69).says(&["1 of 1 nodes cannot make shards", "n1", "not shared"]);
    assert!(!lab.path().join("d").exists(), "a hunt that was refused leaves nothing");
    assert!(!lab.path().join("arrays").exists());
    // Shards that end without a result.
    slurm(&lab, "");
    lab.script("sbatch", "echo \"$*\" >>\"$OUR_LAB/arrays\"; echo 7");
    hunt(&[]).exits(69).says(&["2 of 2 shards are not done after 3 tries"]);
    let arrays = read(lab.path(), "arrays");
    // Nodes that have an own directory of the same name, with the same work.
    let other = lab.path().join("other");
    fs::create_dir_all(other.join("d/shards")).expect("room");
    let work = lab.path().join("d/shards/work.json");
    fs::copy(&work, other.join("d/shards/work.json")).expect("readable");
    let body = format!(
        "while [ \"$1\" != sh ]; do shift; done\nscript=$(echo \"$3\" | sed 's#{}/d/#{}/d/#')\nSLURMD_NODENAME=n1 exec sh -c \"$script\"",
        lab.path().display(),
        other.display()
    );
    lab.script("srun", &body);
    hunt(&[]).exits(69).says(&["1 of 1 nodes cannot make shards", "n1", "not shared with this"]);
    // The one that asks puts a sign there for a moment.
    let left = Lab::names(&lab.path().join("d/shards"));
    assert!(!left.iter().any(|name| name.starts_with("sign.")), "{left:?}");
    let text = fs::read_to_string(&work).expect("a file");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["parts"]["qemu"] = "9.9".into();
    fs::write(&work, json.to_string()).expect("writable");
    let checked = lab.onset(&["doctor", "--shards", "d"]).exits(69);
    checked.says(&["QEMU is", "and the work has 9.9"]);
    hunt(&[]).exits(69).says(&["the work has 9.9"]);
    assert!(read(lab.path(), "arrays") == arrays, "something ran");
    fs::write(&work, text).expect("writable");
    lab.script("sinfo", "exit 1");
    hunt(&[]).exits(2).says(&["Slurm does not answer", "--shard"]);
    let local = lab.experiment("title = \"t\"\ntarget = \"local\"\nloads = [\"idle\"]\n[gtod]\n");
    let shared = lab.onset(&["run", &local, "--shards", "2"]).exits(2);
    shared.says(&["on this machine cannot be shared"]);
}
