// SPDX-License-Identifier: GPL-2.0-or-later
//! What a flavour says is what ran: the mode of preemption, and that the kernel took each word.

use serde_json::Value;
use testbench::{Lab, Run, experiment, have_kernels};

/// What the guest said of itself.
fn reported(run: &Run, key: &str) -> Value {
    run.file("manifest.json")["about"]["kernel"]["reported"][key].clone()
}

fn limited(flavours: &[&str]) -> String {
    experiment(flavours, &["idle"], 100, "limits.hardirq.p50 = \"1s\"")
}

#[test]
fn the_mode_in_force_is_read_back_from_every_kernel() {
    if !have_kernels(&["6.1", "6.12", "6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let flavours = ["6.1 preempt=full", "6.12", "6.12 preempt=none", "6.12-rt"];
    let runs = lab.run(&limited(&flavours), &[]).exits(0).runs();
    let modes: Vec<Value> = runs.iter().map(|run| reported(run, "preemption")).collect();
    assert_eq!(modes, ["full", "voluntary", "none", "rt"]);
    assert_eq!(reported(&runs[1], "preemption_modes"), "none voluntary full");
}

#[test]
fn a_flavour_that_the_kernel_does_not_run_is_invalid_with_a_remedy_and_is_not_followed() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let flavours = ["6.12 preempt=fulll", "6.12 nosuch=1 usbcore.nosuch=1 highres=off"];
    let runs = lab.run(&limited(&flavours), &[]).exits(3).runs();
    assert!(runs.iter().all(|run| run.text("verdict") == "invalid"));
    let mode = runs[0].warning("preemption_differs");
    assert_eq!((&mode["asked"], &mode["found"]), (&"fulll".into(), &"voluntary".into()));
    assert!(mode["action"].as_str().is_some_and(|a| a.contains("ask for a mode")), "{mode}");
    assert_eq!(runs[0].codes().len(), 1, "{:?}", runs[0].codes());
    // Neither a word for a module nor one that was taken is among them.
    assert_eq!(
        runs[1].warning("boot_words_refused")["words"],
        serde_json::json!(["nosuch=1 (unknown)"])
    );
    let experiment = lab.experiment(&limited(&flavours[..1]));
    lab.onset(&["windows", &experiment]).exits(3).says(&["the flavour asks for preempt=fulll"]);
}

#[test]
fn since_7_0_none_is_refused_and_lazy_is_the_default() {
    if !have_kernels(&["7.3", "7.3-rt"]) {
        return;
    }
    let lab = Lab::new();
    let flavours = ["7.3", "7.3 preempt=none", "7.3 preempt=lazy", "7.3 preempt=full", "7.3-rt"];
    let runs = lab.run(&limited(&flavours), &[]).exits(3).runs();
    let verdicts: Vec<&str> = runs.iter().map(|run| run.text("verdict")).collect();
    assert_eq!(verdicts, ["pass", "invalid", "pass", "pass", "pass"]);
    let modes: Vec<Value> = runs.iter().map(|run| reported(run, "preemption")).collect();
    assert_eq!(modes, ["lazy", "lazy", "lazy", "full", "rt"]);
    let refused = runs[1].warning("preemption_differs");
    assert_eq!(refused["modes"], serde_json::json!(["full", "lazy"]));
}

#[test]
fn a_guest_is_given_knobs_by_words_and_says_which_it_lacks() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let taken = "knob.transparent_hugepage.enabled=always knob.priority.ksoftirqd=fifo:2 sysctl.kernel.printk=3";
    let given = format!("6.12 {taken} knob.scaling_governor=performance knob.ksm.ran=1");
    let runs = lab.run(&limited(&["6.12", &given]), &[]).exits(3).runs();
    assert_eq!(runs[0].text("verdict"), "pass");
    // A guest of little memory begins without huge pages.
    assert_eq!(reported(&runs[0], "thp"), "never");
    // The kernel's file says so, and not onset's word alone.
    assert_eq!(reported(&runs[1], "thp"), "always");
    assert_eq!(reported(&runs[1], "knob.priority.ksoftirqd"), "fifo:2");
    assert_eq!(runs[1].text("verdict"), "invalid");
    let refused = runs[1].warning("boot_words_refused");
    let refused: Vec<&str> =
        refused["words"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    let [governor, unknown] = refused[..] else { panic!("{refused:?}") };
    assert!(governor.starts_with("knob.scaling_governor=performance (not here: "), "{governor}");
    assert!(unknown.contains("the most similar name is \"ksm.run\""), "{unknown}");
}
