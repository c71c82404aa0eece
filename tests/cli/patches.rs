// SPDX-License-Identifier: GPL-2.0-or-later
//! Our own preemption points: whether each patch is whole and says what it is, and what `onset patch` makes of
//! them. No kernel is built: the sources are those that the patches themselves show, and make writes a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbench::{Finished, Lab};

/// What a patch may add and remove together: a preemption point is a few lines.
const LINES_MAX: usize = 16;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The patches by series and name, with their texts.
fn patches() -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for series in
        fs::read_dir(root().join("patches")).unwrap().flatten().filter(|s| s.path().is_dir())
    {
        for patch in fs::read_dir(series.path()).unwrap().flatten() {
            let name = patch.file_name().into_string().unwrap();
            let name =
                name.strip_suffix(".patch").expect("nothing but patches is in a series").to_owned();
            let series = series.file_name().into_string().unwrap();
            found.insert((series, name), fs::read_to_string(patch.path()).unwrap());
        }
    }
    assert!(!found.is_empty(), "no patches");
    found
}

/// The lines of a patch's hunks, by the file they change.
fn hunks(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut file = "";
    for line in text.lines() {
        match line.strip_prefix("+++ b/") {
            Some(name) => file = name,
            None if !file.is_empty() && !line.starts_with("--- ") => {
                files.entry(file).or_default().push(line)
            }
            None => {}
        }
    }
    files
}

/// The line at which a hunk begins in the old file: `@@ -12,6 +12,7 @@`.
fn begins_at(line: &str) -> Option<usize> {
    let old = line.strip_prefix("@@ -")?.split([',', ' ']).next()?;
    Some(old.parse().expect(line))
}

/// A file as the hunks show it before they are applied, with lines of dots where they say nothing of it.
fn before(hunks: &[&str]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in hunks {
        if let Some(at) = begins_at(line) {
            assert!(at > lines.len(), "hunks overlap or are out of order: {line}");
            lines.resize(at - 1, "...");
        } else if !line.starts_with('+') {
            lines.push(&line[1..]);
        }
    }
    lines.join("\n") + "\n"
}

/// Writes the files that patches change, as they are before. Several patches may change one file.
fn write_before(tree: &Path, texts: &[&String]) {
    let mut files: BTreeMap<&str, BTreeMap<usize, Vec<&str>>> = BTreeMap::new();
    for (file, lines) in texts.iter().flat_map(|text| hunks(text)) {
        let hunks = lines.chunk_by(|_, next| begins_at(next).is_none());
        for hunk in hunks {
            let at = begins_at(hunk[0]).expect("a hunk has its place");
            files.entry(file).or_default().insert(at, hunk.to_vec());
        }
    }
    for (file, hunks) in files {
        let hunks: Vec<&str> = hunks.into_values().flatten().collect();
        let path = tree.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, before(&hunks)).unwrap();
    }
}

fn apply(tree: &Path, patch: &Path) -> Finished {
    let mut command = Command::new("patch");
    command
        .args(["--strip", "1", "--fuzz", "0", "--directory"])
        .arg(tree)
        .arg("--input")
        .arg(patch);
    Finished::of(&mut command)
}

fn script(lab: &Lab, words: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    command.arg(root().join("patches/patches.sh")).args(words);
    command
        .env("PATH", lab.with_bin())
        .env("WORKSHOP", lab.path())
        .env("ONSET", "adds")
        .env("JOBS", "1");
    Finished::of(&mut command)
}

#[test]
fn every_patch_is_a_few_whole_lines_and_says_what_why_and_how_much() {
    for ((series, name), text) in patches() {
        let (header, _) = text.split_once("\n---\n").expect("a header");
        for key in ["Subject", "Cuts", "Correct", "Cost", "Measured"] {
            let line = header.lines().find_map(|l| l.strip_prefix(&format!("{key}: ")));
            assert!(
                line.is_some_and(|l| l.len() > 20),
                "{series}/{name} says nothing after {key}:"
            );
        }
        let changed =
            hunks(&text).into_values().flatten().filter(|l| l.starts_with(['+', '-'])).count();
        assert!((1..=LINES_MAX).contains(&changed), "{series}/{name} changes {changed} lines");
        let lab = Lab::bare();
        write_before(lab.path(), &[&text]);
        let patch = root().join(format!("patches/{series}/{name}.patch"));
        let applied = apply(lab.path(), &patch.canonicalize().unwrap()).exits(0);
        assert!(!applied.stdout.contains("offset"), "{series}/{name}: {}", applied.stdout);
    }
}

#[test]
fn every_patch_is_in_the_list_with_its_series() {
    let lab = Lab::bare();
    let listed = lab.onset(&["patch", "list"]).exits(0).stdout;
    assert_eq!(
        listed,
        script(&lab, &["list"]).exits(0).stdout,
        "the parts beside the command are old"
    );
    let listed: BTreeSet<&str> = listed.lines().filter(|l| !l.starts_with(' ')).collect();
    let known: Vec<String> =
        patches().into_keys().map(|(series, name)| format!("{series} {name}")).collect();
    assert_eq!(listed, known.iter().map(String::as_str).collect());
}

/// A tree of a kernel's sources, whose image is what make would compile, and programs that building one asks for.
fn workshop(lab: &Lab) {
    let series = |key: &(String, String)| ["6.12", "6.12-rt"].contains(&key.0.as_str());
    let texts: Vec<String> =
        patches().into_iter().filter(|(k, _)| series(k)).map(|(_, text)| text).collect();
    write_before(&lab.path().join("linux-6.12"), &texts.iter().collect::<Vec<_>>());
    let boot = "$(O)/arch/x86/boot";
    let makefile = format!(
        "allnoconfig: ; mkdir -p $(O); cp $(KCONFIG_ALLCONFIG) $(O)/.config\n\
         bzImage: ; mkdir -p {boot}; find $(CURDIR) -name '*.[ch]' | sort | xargs cat >{boot}/bzImage\n\
         modules: ;\nmodules_install: ; mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.12.9$(LOCALVERSION)\n\
         run-command: ; mkdir -p $(lastword $(KBUILD_RUN_COMMAND))\n"
    );
    fs::write(lab.path().join("linux-6.12/Makefile"), makefile).unwrap();
    for tool in ["flex", "bison", "bc", "pahole"] {
        lab.script(tool, "exit 1");
    }
    // The command's arguments are `kernels list` or: kernels add --name NAME --replace --image FILE --modules TREE
    // --headers TREE.
    let adds = "case $2 in list) cat LAB/kernels; exit ;; esac\n\
                [ -f \"${11}/.config\" ] && cp \"$7\" LAB/\"$4\".image && echo \"$4  ${9##*/} \" >>LAB/kernels";
    lab.script("adds", &adds.replace("LAB", &lab.path().display().to_string()));
    fs::write(lab.path().join("kernels"), "").unwrap();
}

/// Whether all lines that the patch adds are in the image.
fn added(text: &str, image: &str) -> bool {
    let lines: Vec<String> = hunks(text).into_values().flatten().map(str::to_owned).collect();
    let mut new = lines.iter().filter_map(|l| l.strip_prefix('+'));
    new.all(|line| image.lines().any(|l| l == line))
}

#[test]
fn both_kernels_are_of_one_configuration_and_differ_by_the_patches_that_were_named() {
    let lab = Lab::bare();
    workshop(&lab);
    let image = |name: &str| fs::read_to_string(lab.path().join(format!("{name}.image"))).unwrap();
    script(&lab, &["build", "6.12"]).exits(0);
    for ((_, name), text) in patches().iter().filter(|((series, _), _)| series == "6.12") {
        assert!(added(text, &image("6.12-onset")), "{name} is not in the kernel");
        assert!(!added(text, &image("6.12-onset-base")), "{name} is in the base");
    }
    // A second build starts from Debian's files again.
    let two = ["page-alloc-cap", "vmalloc-purge"];
    script(&lab, &[&["build", "6.12"], &two[..]].concat()).exits(0);
    let both = image("6.12-onset-page-alloc-cap+vmalloc-purge");
    for ((_, name), text) in patches().iter().filter(|((series, _), _)| series == "6.12") {
        assert_eq!(added(text, &both), two.contains(&name.as_str()), "{name}");
    }
    // A kernel that is there is not built again, until something that it is made of changes.
    let build = || script(&lab, &["build", "6.12"]).exits(0).stdout;
    assert!(build().contains("6.12-onset is in the cache"));
    fs::write(lab.path().join("kernels"), "6.12-onset  6.12.9-onset-01234567 \n").unwrap();
    assert!(!build().contains("is in the cache"));
}

#[test]
fn a_series_and_its_preempt_rt_share_the_sources_and_have_their_own_patches_and_configurations() {
    let lab = Lab::bare();
    workshop(&lab);
    let read = |path: &str| fs::read_to_string(lab.path().join(path)).unwrap();
    for built in ["6.12", "6.12-rt", "6.12"] {
        // The kernels of before are forgotten, so that each is built.
        fs::write(lab.path().join("kernels"), "").unwrap();
        script(&lab, &["build", built]).exits(0);
        let image = read(&format!("{built}-onset.image"));
        for ((series, name), text) in patches().iter().filter(|((s, _), _)| s.starts_with("6.12")) {
            assert_eq!(added(text, &image), series == built, "{series}/{name} in {built}");
        }
        let base = read(&format!("{built}-onset-base.image"));
        assert!(patches().values().all(|text| !added(text, &base)), "{built}");
    }
    let [plain, rt] = ["6.12", "6.12-rt"].map(|series| read(&format!("objects-{series}/.config")));
    let has = |config: &str, line: &str| config.lines().any(|l| l == line);
    let both = ["CONFIG_PREEMPT_RT=y", "CONFIG_PREEMPT_DYNAMIC=y", "CONFIG_HZ_250=y"];
    assert_eq!(both.map(|line| has(&plain, line)), [false, true, true]);
    assert_eq!(both.map(|line| has(&rt, line)), [true, false, true]);
}

#[test]
fn what_is_not_there_is_named() {
    let lab = Lab::bare();
    workshop(&lab);
    lab.onset(&["patch", "build", "9.9"]).exits(69).says(&["no patches of the series 9.9"]);
    lab.onset(&["patch", "prove", "9.9"]).exits(2).says(&["no patches of the series 9.9"]);
    let prove = |more: &[&str]| lab.onset(&[&["patch", "prove", "6.12"], more].concat()).exits(2);
    prove(&["nothing"]).says(&["6.12 has no patch nothing", "onset patch list"]);
    prove(&["--goal", "task"]).says(&["RESPONDER.STATISTIC"]);
    prove(&["--goal", "tsk.max"]).says(&["tsk"]);
    script(&lab, &["build", "9.9"]).exits(1).says(&["no patches of the series 9.9"]);
    script(&lab, &["build", "6.12", "nothing"]).exits(1).says(&["6.12 has no patch nothing"]);
    script(&lab, &["build"]).exits(1).says(&["usage: patches.sh"]);
    let file = lab.path().join("linux-6.12/mm/vmalloc.c");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("unlock", "release")).unwrap();
    script(&lab, &["build", "6.12"]).exits(1).says(&["vmalloc-purge.patch does not apply to 6.12"]);
}
