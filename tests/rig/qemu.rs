// SPDX-License-Identifier: GPL-2.0-or-later
//! Other QEMUs than the machine's own. Those that are made up are scripts around it; a real one of another release is
//! what `ONSET_TEST_QEMU` names, as `ONSET_QEMU` would: its program, or the root directory of that release.

use rig::{CHOICE, QEMU};
use std::path::PathBuf;
use testbench::{Finished, Lab, Run, experiment, have_kernels, skip};

/// The second QEMU; where none is given the calling test is skipped.
fn second() -> Option<String> {
    let given = std::env::var("ONSET_TEST_QEMU").ok().filter(|given| !given.is_empty());
    if given.is_none() {
        skip("no second QEMU; name one by ONSET_TEST_QEMU (docs/rig.md, QEMU versions)");
    }
    given
}

/// Runs the command in a lab with this QEMU; with the machine's own, where it is empty.
fn with(lab: &Lab, qemu: &str, words: &[&str]) -> Finished {
    Finished::of(lab.command(words).env(CHOICE, qemu))
}

fn run(lab: &Lab, qemu: &str, text: &str) -> Run {
    let path = lab.experiment(text);
    with(lab, qemu, &["run", &path, "--json"]).exits(3).run()
}

/// The machine's own QEMU as a script that says another version of itself.
fn that_says(lab: &Lab, version: &str) -> PathBuf {
    let own = rig::tool::find(QEMU).expect("the rig has a QEMU");
    let body = format!(
        "[ \"$1\" = --version ] && {{ echo 'QEMU emulator version {version}'; exit; }}\nexec {} \"$@\"",
        own.display()
    );
    lab.script("other-qemu", &body)
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("a path that is text")
}

#[test]
fn an_untried_qemu_that_passes_the_checks_is_used_with_a_doubt_that_names_it() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let qemu = text(that_says(&lab, "10.9.7 (made up)"));
    let run = run(&lab, &qemu, &experiment(&["6.12 preempt=none"], &["idle"], 20, ""));
    assert_eq!(run.codes(), ["qemu_untried"]);
    assert_eq!(run.warning("qemu_untried")["version"], "10.9.7 (made up)");
    assert_eq!(run.file("manifest.json")["about"]["qemu"], "10.9.7 (made up)");
    let doctor = with(&lab, &qemu, &["doctor"]).exits(0).stdout;
    for said in ["10.9.7", "passes the plugin's first checks", "onset was not tried with it"] {
        assert!(doctor.contains(said), "{said:?} is not in:\n{doctor}");
    }
}

#[test]
fn a_qemu_that_does_not_pass_is_refused_with_the_check_before_anything_is_made() {
    let lab = Lab::new();
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], 20, ""));
    let says = |said: &str| {
        let script = format!(
            "[ \"$1\" = --version ] && {{ echo 'QEMU emulator version 19.0.1'; exit; }}\necho '{said}' >&2\nexit 1"
        );
        text(lab.script("strange-qemu", &script))
    };
    let refused = [
        ("Could not load plugin: this QEMU supports only a minimum version of 12", "`interface`"),
        ("onset plugin: this QEMU 19.0.1 is refused, the check `symbols` failed: x", "`symbols`"),
    ];
    for (said, check) in refused {
        let qemu = says(said);
        with(&lab, &qemu, &["run", &path]).exits(69).says(&["19.0.1", check, "is refused"]);
        let doctor = with(&lab, &qemu, &["doctor"]).exits(69).stdout;
        assert!(doctor.contains("19.0.1") && doctor.contains(check), "{doctor}");
    }
    with(&lab, "/no/such/qemu", &["run", &path]).exits(69).says(&["ONSET_QEMU", "/no/such/qemu"]);
    assert_eq!(lab.bundles(), [""; 0]);
}

/// Runs that are compared between two QEMUs.
const COUNT: u64 = 300;

#[test]
fn a_second_qemu_gives_the_same_samples_twice_and_is_as_late_as_the_first() {
    let Some(second) = second() else { return };
    for flavour in ["6.12 preempt=none", "6.12-rt"] {
        if !have_kernels(&[flavour.split(' ').next().expect("a kernel")]) {
            continue;
        }
        let lab = Lab::new();
        let busy = experiment(&[flavour], &["mixed"], COUNT, "");
        let [one, two] = [(), ()].map(|()| run(&lab, &second, &busy));
        assert_eq!(one.text("samples_blake3"), two.text("samples_blake3"), "{flavour}");
        let idle = experiment(&[flavour], &["idle"], COUNT, "");
        let [own, other] = ["", second.as_str()].map(|qemu| run(&lab, qemu, &idle));
        let version = |run: &Run| run.file("manifest.json")["about"]["qemu"].clone();
        assert_ne!(version(&own), version(&other), "ONSET_TEST_QEMU is to be of another version");
        for responder in own.responders() {
            let (a, b) = (own.median(responder), other.median(responder));
            println!("{flavour}, idle, {responder}, the median with either QEMU: {a} and {b} ns");
            assert!(a.abs_diff(b) <= 1_000, "{flavour}, {responder}: {a} and {b} ns");
        }
    }
}

#[test]
fn a_second_qemu_is_followed_to_the_same_windows_twice_and_the_guest_does_not_notice() {
    let Some(second) = second() else { return };
    for flavour in ["6.12 preempt=none", "6.12-rt"] {
        if !have_kernels(&[flavour.split(' ').next().expect("a kernel")]) {
            continue;
        }
        let lab = Lab::new();
        let run = run(&lab, &second, &experiment(&[flavour], &["mixed"], COUNT, ""));
        let bundle = text(run.bundle());
        // A bundle's samples are compared with those of the followed run.
        let [one, two] = [(), ()].map(|()| {
            with(&lab, &second, &["windows", &bundle, "--top", "50", "--json"]).exits(0).json()
        });
        assert_eq!(one["windows"], two["windows"], "{flavour}");
        assert!(one["windows"].as_array().is_some_and(|found| found.len() > 20), "{one:#}");
        with(&lab, &second, &["explain", &bundle, "--json"]).exits(0);
    }
}
