// SPDX-License-Identifier: GPL-2.0-or-later
//! Wrong words, wrong experiments, missing and foreign programs: what failed, why, what to do next.

use lab::{Finished, Lab, experiment};

/// A `qemu-system-x86_64` that is nothing but its version.
fn fake_qemu(lab: &Lab, version: &str) {
    lab.script("qemu-system-x86_64", &format!("echo 'QEMU emulator version {version}'"));
}

/// Runs an experiment with a QEMU that is only asked for its version.
fn run(lab: &Lab, text: &str, words: &[&str]) -> Finished {
    fake_qemu(lab, "10.0.2");
    let path = lab.experiment(text);
    let words = [&["run", &path], words].concat();
    Finished::of(lab.command(&words).env("PATH", lab.with_bin()))
}

const SOUND: (&[&str], &[&str]) = (&["6.12"], &["idle"]);

#[test]
fn help_names_every_command_and_every_exit_status() {
    let lab = Lab::bare();
    let help = lab.onset(&["--help"]).exits(0).stdout;
    for command in ["doctor", "kernels", "run", "list", "show", "compare", "report"] {
        assert!(help.contains(command), "{help}");
        lab.onset(&[command, "--help"]).exits(0);
    }
    for status in ["0 ", "1 ", "2 ", "3 ", "69 ", "130 "] {
        assert!(help.contains(&format!("\n  {status}")), "{status:?} in {help}");
    }
}

#[test]
fn wrong_words_are_usage_errors() {
    let lab = Lab::bare();
    lab.onset(&[]).exits(2);
    lab.onset(&["measure"]).exits(2).says(&["measure"]);
    lab.onset(&["run"]).exits(2);
    lab.onset(&["run", "x.toml", "--jobs", "0"]).exits(2).says(&["--jobs"]);
    lab.onset(&["run", "x.toml", "--set", "seed"]).exits(2).says(&["KEY=VALUE"]);
    lab.onset(&["run", "missing.toml"]).exits(2).says(&["missing.toml", "No such file"]);
}

#[test]
fn an_unknown_key_is_shown_in_its_place_with_the_nearest() {
    let lab = Lab::bare();
    let text = experiment(SOUND.0, SOUND.1, 5, "gest.memory = \"256MiB\"");
    let line = text.lines().position(|l| l.starts_with("gest")).expect("written") + 1;
    run(&lab, &text, &[]).exits(2).says(&[&format!(".toml:{line}"), "gest", "guest"]);
    let sound = experiment(SOUND.0, SOUND.1, 5, "");
    run(&lab, &sound, &["--set", "trigger.cont=5"]).exits(2).says(&["trigger.cont", "count"]);
}

#[test]
fn unknown_flavour_load_and_responder_are_answered_with_those_that_exist() {
    let lab = Lab::bare();
    let text = experiment(SOUND.0, &["busy"], 5, "");
    run(&lab, &text, &[]).exits(2).says(&["unknown load \"busy\"", "idle", "mixed", "compile"]);
    let text = experiment(SOUND.0, SOUND.1, 5, "").replacen(
        "loads",
        "responders = [\"softirq\"]\nloads",
        1,
    );
    run(&lab, &text, &[]).exits(2).says(&["unknown responder \"softirq\"", "tasklet", "bh_work"]);
    let text = experiment(&[""], SOUND.1, 5, "");
    run(&lab, &text, &[]).exits(2).says(&["flavours"]);
    let text = experiment(SOUND.0, SOUND.1, 5, "limits.\"6.13\".task.max = \"1ms\"");
    run(&lab, &text, &[]).exits(2).says(&["6.13", "6.12"]);
}

#[test]
fn an_unknown_kernel_is_answered_with_those_in_the_cache_and_how_to_get_it() {
    let lab = Lab::bare();
    let text = experiment(&["9.9 preempt=none"], SOUND.1, 5, "");
    let finished = run(&lab, &text, &["--json"]).exits(2);
    let finished = finished.says(&["\"9.9\"", "is empty", "onset kernels fetch 9.9"]);
    assert_eq!(finished.stdout, "");
    lab.write("cache/onset/kernels/7.7/kernel.json", "{}");
    run(&lab, &text, &[]).exits(2).says(&["there are 7.7"]);
    assert!(lab.bundles().is_empty());
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    let lab = Lab::bare();
    let path = lab.experiment(&experiment(SOUND.0, SOUND.1, 5, ""));
    std::fs::create_dir(lab.path().join("bin")).expect("ours");
    let mut command = lab.command(&["run", &path]);
    let finished = Finished::of(command.env("PATH", lab.path().join("bin"))).exits(69);
    finished.says(&["qemu-system-x86_64", "apt-get install qemu-system-x86"]);
    let doctor =
        Finished::of(lab.command(&["doctor"]).env("PATH", lab.path().join("bin"))).exits(69);
    assert!(doctor.stdout.contains("qemu-system-x86"), "{}", doctor.stdout);
}

#[test]
fn a_qemu_of_another_version_is_refused_with_both_versions() {
    let lab = Lab::bare();
    let path = lab.experiment(&experiment(SOUND.0, SOUND.1, 5, ""));
    for version in ["7.2.22 (Debian 1:7.2+dfsg-7)", "10.1.0", "99.0.0"] {
        fake_qemu(&lab, version);
        let mut command = lab.command(&["run", &path]);
        Finished::of(command.env("PATH", lab.with_bin())).exits(69).says(&[version, "10.0"]);
        let mut doctor = lab.command(&["doctor", "--json"]);
        let doctor = Finished::of(doctor.env("PATH", lab.with_bin())).exits(69).json();
        assert_eq!(doctor["rig"], false);
    }
}

#[test]
fn a_broken_package_and_a_foreign_image_are_refused_and_leave_nothing() {
    let lab = Lab::bare();
    let deb = lab.write("linux-image-9.9.deb", "!<arch>\ndebian-binary   0");
    let deb = deb.to_string_lossy();
    lab.onset(&["kernels", "add-deb", &deb]).exits(69).says(&["linux-image-9.9.deb", "damaged"]);
    lab.onset(&["kernels", "add-deb", "none.deb"]).exits(69).says(&["none.deb", "No such file"]);

    std::fs::create_dir_all(lab.path().join("lib/modules/9.9/kernel")).expect("ours");
    lab.write("elf", "\x7fELF and no bzImage");
    let words =
        ["kernels", "add", "--name", "mine", "--image", "elf", "--modules", "lib/modules/9.9"];
    lab.onset(&words).exits(69).says(&["mine", "not a bzImage", "vmlinuz"]);
    let listed = lab.onset(&["kernels", "list", "--json"]).exits(0).json();
    assert_eq!(listed["kernels"], serde_json::Value::Array(Vec::new()));
    assert_eq!(Lab::names(&lab.cache().join("kernels")), [""; 0]);
}

#[test]
fn a_series_that_the_archive_does_not_have_says_how_to_look() {
    let lab = Lab::bare();
    lab.script("apt-cache", "exit 0");
    let mut command = lab.command(&["kernels", "fetch", "2.4"]);
    Finished::of(command.env("PATH", lab.with_bin())).exits(69).says(&["2.4", "apt-get update"]);
    lab.onset(&["kernels", "fetch", "linux"]).exits(69).says(&["6.12-rt", "onset kernels add"]);
}
