// SPDX-License-Identifier: GPL-2.0-or-later
//! The driver on GPIO lines: triggers come through gpiolib, and answers go through it. In the rig the lines are the
//! pins of the same parallel port, so the same instrument measures both ways.

use crate::programs::{boot, kernel_of_tests, program};
use std::fs;
use testbench::{
    FIRST_AND_LAST, Lab, Run, assert_as_promised_by, compiled, experiment, have_kernels,
    repository, those_here,
};

/// Plain and real-time builds of the oldest and the newest kernel of the ladder.
const KERNELS: [&str; 4] = ["6.12", "6.12-rt", "7.3", "7.3-rt"];
/// Triggers of the runs here.
const COUNT: u64 = 200;

fn number(run: &Run, responder: &str, key: &str) -> u64 {
    run.series(responder)[key].as_u64().expect("a number")
}

#[test]
fn all_responders_answer_each_trigger_on_gpio_lines_and_gpiolib_costs_instructions() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let run = |wiring: &str| {
            let more = format!("driver.wiring = {wiring:?}");
            lab.run(&experiment(&[kernel], &["idle"], COUNT, &more), &[]).exits(3).run()
        };
        let (port, gpio, again) = (run("port"), run("gpio"), run("gpio"));
        assert_eq!(gpio.responders(), port.responders(), "{kernel}");
        for responder in gpio.responders() {
            assert_eq!(number(&gpio, responder, "count"), COUNT, "{kernel} {responder}");
            let losses = gpio.series(responder)["losses"].as_object().expect("losses").values();
            assert_eq!(losses.filter_map(|n| n.as_u64()).sum::<u64>(), 0, "{kernel} {responder}");
        }
        assert_eq!(gpio.codes(), [""; 0], "{kernel}");
        let hash = "samples_blake3";
        assert_eq!(gpio.text(hash), again.text(hash), "{kernel}");
        // One write to a register became calls of gpiolib and of the chip's driver: some more, and not some hundreds
        // more, or something else would be measured.
        let [port, gpio] = [&port, &gpio].map(|run| run.median("hardirq"));
        assert!(gpio > port && gpio < port + 1_000, "{kernel}: {port} by the port, {gpio} by GPIO");
    }
}

#[test]
fn an_answer_on_a_gpio_line_is_explained_and_replayed() {
    let kernels = those_here(&["6.12", "7.3-rt"]);
    let lab = Lab::new();
    for kernel in kernels {
        let more = format!("driver.wiring = \"gpio\"\n{FIRST_AND_LAST}");
        let text = experiment(&[kernel], &["mixed"], COUNT, &more);
        let run = lab.run(&text, &[]).exits(3).run().text("run").to_owned();
        for responder in ["hardirq", "task"] {
            let words = ["explain", &run, "--responder", responder, "--json"];
            let explained = lab.onset(&words).exits(0).json();
            assert_as_promised_by("explain", &explained);
            let worst = &explained["explanations"][0];
            let ns = |part: &serde_json::Value| part["ns"].as_u64().expect("a number");
            let stages = worst["parts"].as_array().expect("stages");
            assert_eq!(Some(stages.iter().map(ns).sum()), worst["latency_ns"].as_u64(), "{kernel}");
            assert!(stages.len() > 1, "{kernel}: {worst:#}");
        }
        let words = ["replay", &run, "--responder", "task", "--times", "2", "--json"];
        let replayed = lab.onset(&words).exits(0).json();
        assert_eq!(replayed["identical_times"], 2, "{kernel}: {replayed:#}");
        let file = lab.experiment(&text);
        let hunted = ["hunt", &file, "--budget", "2trials", "--seed", "3", "--json"];
        let hunted = lab.onset(&hunted).exits(0).json();
        let find = hunted["worst"][0]["find"].as_str().expect("a find").to_owned();
        let of_find = fs::read_to_string(&find).expect("written");
        assert!(of_find.contains("chip=onset-rig"), "{of_find}");
        let replayed = lab.onset(&["replay", &find, "--json"]).exits(0).json();
        assert_as_promised_by("replay", &replayed);
        assert_eq!((&replayed["times"], &replayed["identical_times"]), (&1.into(), &1.into()));
    }
}

#[test]
fn a_few_responders_do_with_a_few_lines_and_answer_on_their_own_pins() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let more =
        "driver = { wiring = \"gpio\", threaded = true }\nresponders = [\"kthread\", \"tasklet\"]";
    let run = lab.run(&experiment(&["6.12-rt"], &["idle"], COUNT, more), &[]).exits(3).run();
    assert_eq!(run.responders(), ["tasklet", "kthread"]);
    for responder in ["tasklet", "kthread"] {
        assert_eq!(number(&run, responder, "count"), COUNT);
    }
}

/// A guest that loads the driver with lines of all kinds.
fn console(kernel: &str, has_nodes: bool) -> String {
    let lab = Lab::new();
    let kernel = kernel_of_tests(&lab, kernel);
    let mut files = vec![
        ("init", program(&lab, "gpio.c", &["-static"])),
        ("onset_port.ko", kernel.driver().expect("it builds")),
        ("onset_rig_gpio.ko", kernel.chip().expect("it builds")),
    ];
    if has_nodes {
        let node = kernel.modules_of(&repository().join("examples/software-node"));
        files.push(("onset_lines.ko", node.expect("it builds")[0].clone()));
    }
    boot(&lab, &kernel, &files).0
}

/// What is refused, in the order of `programs/gpio.c`: what the driver says, and what the system call gives.
const REFUSED: [(&str, &str); 11] = [
    ("no device has lines: name them with chip=", "No such device"),
    ("trigger line 0 cannot be had (error -517): its chip is not there", "No such device"),
    ("answer line 0 sleeps", "Operation not supported"),
    ("answer line 1 cannot be had (error -22): the chip has no such line", "Invalid argument"),
    ("trigger line 0 cannot be had (error -22): the chip has no such line", "Invalid argument"),
    ("or it cannot have that direction", "Invalid argument"),
    ("line 11 is named twice", "Invalid argument"),
    ("line 5 is named twice", "Invalid argument"),
    ("answer line 1 cannot be had (error -2): it is not named", "Invalid argument"),
    ("chip= without answer_lines=", "Invalid argument"),
    ("its chip is not there", "No such device"),
];

/// What the guest says of the lines then. Those of the node only where gpiolib knows software nodes.
const LINES: [&str; 4] = [
    "lines after a refusal: 7 a program, no more",
    "lines after loading: 2 onset task, 6 onset hardirq, 11 onset trigger, no more",
    "the chip under the driver: Resource temporarily unavailable",
    "lines after unloading: no more",
];
const LINES_OF_THE_NODE: [&str; 5] = [
    "lines after the node: 0 onset hardirq, 7 onset task, 11 onset trigger, no more",
    "lines after the driver went: no more",
    "lines after the node again: 0 onset task, 11 onset trigger, no more",
    "lines after the node went: no more",
    "lines after both: 3 onset hardirq, 4 onset task, 11 onset trigger, no more",
];

/// Asserts that the console has these texts in this order.
#[track_caller]
fn assert_in_order<'a>(console: &str, kernel: &str, texts: impl IntoIterator<Item = &'a str>) {
    let mut rest = console;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("{kernel}: {text:?} is not in the rest:\n{rest}\nof:\n{console}")
        };
        rest = after;
    }
}

#[track_caller]
fn assert_console(console: &str, kernel: &str, has_nodes: bool) {
    // The driver and the guest's program each speak in their order. A real-time kernel prints some time later.
    let reasons = REFUSED.iter().map(|(reason, _)| *reason);
    let in_use = "answer line 1 cannot be had (error -16): it is in use";
    assert_in_order(console, kernel, reasons.chain([in_use]));
    let errors = REFUSED.iter().flat_map(|(_, error)| ["load ", *error]);
    let of_nodes = LINES_OF_THE_NODE.into_iter().filter(|_| has_nodes);
    let last = ["load ", "Device or resource busy"].into_iter().chain(LINES).chain(of_nodes);
    assert_in_order(console, kernel, errors.chain(last).chain(["all done"]));
    for trouble in ["\nfailed: ", "WARNING", "BUG", "Call Trace"] {
        assert!(!console.contains(trouble), "{kernel}: {trouble}: {console}");
    }
}

#[test]
fn lines_that_cannot_be_had_are_refused_with_the_remedy_and_unloading_leaves_them_free() {
    for kernel in those_here(&KERNELS) {
        assert_console(&console(kernel, true), kernel, true);
    }
}

#[test]
fn named_lines_work_on_a_kernel_whose_gpiolib_knows_no_software_nodes() {
    for kernel in those_here(&["6.1", "6.1-rt"]) {
        assert_console(&console(kernel, false), kernel, false);
    }
}

/// The command needs more memory than a guest has by itself.
const LARGE: &str = "[guest]\nmemory = \"1GiB\"";

/// An experiment whose task is what a script starts, after it has unloaded the driver: the command loads it anew.
fn responding(lab: &Lab, wiring: &str, words: &str) -> String {
    let script = format!("rmmod onset_port && {words}");
    let own = compiled(lab, &repository().join("examples/answer.c"), &[]);
    let more = format!(
        "responders = [\"hardirq\", \"task\"]\ndriver.wiring = {wiring:?}\n\
         task.program = [\"/usr/bin/sh\", \"-c\", {script:?}]\n{LARGE}\n\
         programs = [{:?}, {own:?}, \"/sbin/rmmod\", \"/sbin/insmod\"]",
        testbench::onset()
    );
    experiment(&["6.12 preempt=none"], &["idle"], COUNT, &more)
}

const MODULE: &str = "--module /onset/modules/onset_port.ko";

#[test]
fn respond_loads_the_driver_for_a_gpio_line_or_a_parallel_port_and_answers_as_before() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let on_lines =
        "onset respond --port gpiochip0:11 --answer 7,0 --responder task --responder hardirq";
    let ports = [
        ("gpio", format!("{on_lines} {MODULE} -- /usr/bin/answer")),
        ("gpio", format!("{on_lines} {MODULE}")),
        (
            "port",
            format!("onset respond --port parport0 --responder hardirq --responder task {MODULE}"),
        ),
    ];
    for (wiring, words) in ports {
        let plain =
            format!("responders = [\"hardirq\", \"task\"]\ndriver.wiring = {wiring:?}\n{LARGE}");
        let plain = experiment(&["6.12 preempt=none"], &["idle"], COUNT, &plain);
        let plain = lab.run(&plain, &[]).exits(3).run();
        let run = lab.run(&responding(&lab, wiring, &words), &[]).exits(3).run();
        for responder in ["hardirq", "task"] {
            assert_eq!(number(&run, responder, "count"), COUNT, "{words}: {responder}");
            let [own, other] = [&plain, &run].map(|run| run.median(responder));
            assert!(own.abs_diff(other) < 500, "{words}: {responder}: {own} {other}");
        }
    }
}

#[test]
fn respond_names_a_line_that_is_not_there_or_in_use_and_says_what_the_driver_refuses() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    // One guest tries all of these, one after the other. A run that failed shows the last lines of its console.
    let fail = |unload: bool, commands: &[(&str, &[&str])]| {
        let words: Vec<String> =
            commands.iter().map(|(words, _)| format!("onset respond {words} {MODULE}")).collect();
        let text = responding(&lab, "gpio", &format!("{{ {}; }}", words.join("; ")));
        let text = if unload { text } else { text.replacen("rmmod onset_port && ", "", 1) };
        // Two names of the same failure: the command's, in the guest's console, and the run's.
        let stderr = lab.run(&text, &[]).exits(69).stderr;
        for (words, says) in commands {
            for word in *says {
                assert!(stderr.contains(word), "{words}: {word:?} is not in {stderr}");
            }
        }
    };
    fail(
        true,
        &[
            ("--port gpiochip0:11 --answer 99", &["line 99 of", "has the lines 0 to 11"]),
            ("--port gpiochip5:11 --answer 0", &["/dev/gpiochip5", "No such file"]),
            ("--port gpiochip0:11 --answer 11", &["line 11 is named twice"]),
        ],
    );
    fail(
        true,
        &[
            ("--port gpiochip0:3 --answer 0", &["cannot have that direction"]),
            ("--port parport0", &["I/O ports 0x378-0x37a are not free"]),
        ],
    );
    fail(
        false,
        &[
            ("--port gpiochip0:11 --answer 0", &["in use by \"onset trigger\""]),
            ("--port parport0", &["the driver is loaded already", "rmmod onset_port"]),
        ],
    );
}
