// SPDX-License-Identifier: GPL-2.0-or-later
//! What an experiment puts into its guest, and what becomes of a guest that misbehaves.

use crate::modules::module;
use testbench::{Finished, Lab, experiment, have_kernels};

const NONE: &str = "6.12 preempt=none";

/// A run of an idle guest with a module and a limit that it keeps as long as it is sound.
fn with_module(lab: &Lab, name: &str, count: u64) -> Finished {
    let path = module(name);
    let more = format!("guest.modules = [{path:?}]\nlimits.hardirq.p50 = \"10us\"");
    lab.run(&experiment(&[NONE], &["idle"], count, &more), &[])
}

#[test]
fn a_panic_makes_the_run_invalid_and_shows_the_kernels_words() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = with_module(&lab, "test_panic", 3000).exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    assert_eq!(run.0["complete"], false);
    let text = run.warning("guest_panicked")["text"].as_str().expect("text");
    assert!(text.contains("Kernel panic - not syncing: planted by a test"), "{text}");
    let answered = run.series("hardirq")["count"].as_u64().expect("a count");
    assert!((1..3000).contains(&answered), "{answered} answers came before it");
}

#[test]
fn an_oops_makes_the_run_invalid_and_names_the_module() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = with_module(&lab, "test_oops", 3000).exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    let text = run.warning("guest_oops")["text"].as_str().expect("text");
    assert!(text.contains("Oops") && text.contains("[test_oops]"), "{text}");
}

#[test]
fn a_guest_out_of_memory_makes_the_run_invalid() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = with_module(&lab, "test_hog", 6000).exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    run.warning("guest_out_of_memory");
}

#[test]
fn a_guest_that_hangs_is_ended_and_its_triggers_are_counted() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = with_module(&lab, "test_hang", 1800).exits(3).run();
    assert_eq!(run.text("verdict"), "invalid");
    run.warning("guest_did_not_end");
    let hardirq = run.series("hardirq");
    let lost = hardirq["losses"]["unanswered"].as_u64().expect("a count");
    assert_eq!(hardirq["count"].as_u64().expect("a count") + lost, 1800);
    assert!(lost > 0);
}

#[test]
fn triggers_that_nobody_answers_are_losses_and_the_run_ends() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = with_module(&lab, "test_deaf", 50).exits(1).run();
    assert_eq!(run.0["complete"], true);
    for responder in run.responders() {
        let series = run.series(responder);
        assert_eq!((&series["count"], &series["losses"]["unanswered"]), (&0.into(), &50.into()));
    }
    assert_eq!(run.warning("unanswered")["triggers"], 50);
}

#[test]
fn a_planted_window_with_interrupts_off_is_measured() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let path = module("test_window");
    // Four periods are 5 us longer than the window's, so that 200 times four triggers come to within 5 us of
    // the beginning of one.
    let text = format!(
        "title = \"t\"\ntarget = \"rig\"\nflavours = [\"{NONE}\"]\nloads = [\"idle\"]\n\
         trigger = {{ period = \"1001250ns\", count = 900, grace = \"50ms\" }}\n\
         guest.modules = [{path:?}]\nlimits.hardirq.p50 = \"10us\"\n"
    );
    let run = lab.run(&text, &[]).exits(0).run();
    let max = run.max("hardirq");
    assert!((130_000..145_000).contains(&max), "{max} ns for a window of 137 us");
}

#[test]
fn programs_and_files_of_the_host_are_found_and_run_in_the_guest() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let (witness, one) = (module("test_witness"), lab.write("one", "the same\n"));
    for (content, status) in [("the same\n", 0), ("not the same\n", 256)] {
        let other = lab.write("other", content);
        let more = format!(
            "[guest]\nmodules = [{witness:?}]\nprograms = [\"/usr/bin/cmp\"]\n\
             files = [\"{}=/srv/one\", \"{}=/srv/other\"]",
            one.display(),
            other.display()
        );
        let run = lab.run(&experiment(&[NONE], &["idle"], 5, &more), &[]).exits(3).run();
        let console = run.boot_console(&lab.cache());
        let says = |line: &str| line.ends_with(&format!("cmp gave {status}"));
        assert!(console.lines().any(says), "{console}");
    }
}

#[test]
fn what_the_host_does_not_have_is_named_before_anything_boots() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    for (key, value) in
        [("modules", "missing/a.ko"), ("programs", "missing/b"), ("files", "missing/c=/srv/c")]
    {
        let more = format!("guest.{key} = [\"{value}\"]");
        let name = value.split('=').next().expect("a path");
        lab.run(&experiment(&[NONE], &["idle"], 5, &more), &[]).exits(69).says(&[name]);
    }
    assert!(Lab::names(&lab.cache().join("snapshots")).is_empty());
    assert!(lab.bundles().is_empty());
}
