// SPDX-License-Identifier: GPL-2.0-or-later
//! The driver on GPIO lines that ACPI describes: the guest's firmware has the table that is shipped
//! (`examples/gpio-lines.asl`), with the rig's chip and its lines in the place of the board's. The driver is loaded
//! without a chip and without numbers, so it finds its lines by the table or not at all. The plugin triggers and sees
//! the answers.

use rig::{CHOICE, QEMU};
use std::process::Command;
use testbench::{
    Finished, Lab, RESPONDERS, Run, compiled, experiment, repository, skip, those_here,
};
use wire::ports::CHIP_TRIGGER;

/// The rig's chip as a device of ACPI: `driver/rig/onset_rig_gpio.c` looks for the identifier.
const CHIP: &str = "DefinitionBlock (\"\", \"SSDT\", 2, \"ONSET\", \"CHIP\", 1)
{
    Device (\\_SB.GPO0)
    {
        Name (_HID, \"ONST0001\")
    }
}
";
/// Triggers of the runs here.
const COUNT: u64 = 100;

/// What a table says of the lines.
struct Lines<'a> {
    /// Which of the two resources of ACPI the trigger's line is: an input, or an interrupt.
    trigger: &'a str,
    /// The lines of the chip that answer, in the order of the responders.
    answers: &'a [usize],
    /// Of these the ones that are active when low.
    active_low: &'a [usize],
}

const INPUT: &str = "GpioIo (Exclusive, PullNone, 0, 0, IoRestrictionInputOnly, ";
const INTERRUPT: &str = "GpioInt (Edge, ActiveHigh, Exclusive, PullNone, 0, ";

/// `text` with `new` in the place of `old`, which it has once.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} in {text}");
    text.replace(old, new)
}

/// The table that is shipped, with these lines.
fn table(lines: &Lines) -> String {
    let path = repository().join("examples/gpio-lines.asl");
    let shipped = std::fs::read_to_string(path).expect("readable");
    let text = replaced(&shipped, INPUT, lines.trigger);
    let text = replaced(&text, "{ 17 }", &format!("{{ {CHIP_TRIGGER} }}"));
    let numbers: Vec<String> = lines.answers.iter().map(ToString::to_string).collect();
    let text = replaced(&text, "{ 27, 22 }", &format!("{{ {} }}", numbers.join(", ")));
    let place = |(place, line)| {
        let is_low = usize::from(lines.active_low.contains(line));
        format!("^ONST, 1, {place}, {is_low}")
    };
    let places: Vec<String> = lines.answers.iter().enumerate().map(place).collect();
    replaced(&text, "^ONST, 1, 0, 0, ^ONST, 1, 1, 0", &places.join(", "))
}

/// The machine's own QEMU as a script that adds these tables to the guest's firmware.
fn qemu_with(lab: &Lab, tables: &[&str]) -> String {
    let own = rig::tool::find(QEMU).expect("the rig has a QEMU");
    let mut body = format!("exec {}", own.display());
    for (number, text) in tables.iter().enumerate() {
        let source = lab.write(&format!("table{number}.asl"), text);
        let compiled = Finished::of(
            Command::new("iasl").arg("-p").args([&source.with_extension(""), &source]),
        );
        let said = compiled.exits(0).stdout;
        assert!(said.contains("0 Errors, 0 Warnings"), "{said}");
        body += &format!(" -acpitable file={}", source.with_extension("aml").display());
    }
    let script = lab.script("qemu-with-tables", &format!("{body} \"$@\""));
    script.into_os_string().into_string().expect("a path that is text")
}

/// An experiment on the rig's chip, whose lines the driver takes by numbers.
fn by_numbers(kernel: &str, responders: &[&str]) -> String {
    let more = format!("responders = {responders:?}\ndriver.wiring = \"gpio\"");
    experiment(&[kernel], &["idle"], COUNT, &more).replace("\"1ms\"", "\"10ms\"")
}

/// The same, whose task loads the driver anew, with the same responders and without lines, and then answers.
fn by_firmware(lab: &Lab, kernel: &str, responders: &[&str]) -> String {
    let own = compiled(lab, &repository().join("examples/answer.c"), &[]);
    let script = "read names </sys/module/onset_port/parameters/responders && rmmod onset_port && \
                  insmod /onset/modules/onset_port.ko trigger=gpio responders=$names && exec answer";
    format!(
        "{}task.program = [\"/usr/bin/sh\", \"-c\", {script:?}]\n\
         guest.programs = [{own:?}, \"/sbin/rmmod\", \"/sbin/insmod\"]\n",
        by_numbers(kernel, responders)
    )
}

/// Runs the experiment with these tables. A snapshot's key does not have them, so the cache is the lab's own.
fn run(tables: &[&str], kernel: &str, responders: &[&str]) -> Finished {
    let lab = Lab::private();
    let qemu = qemu_with(&lab, tables);
    let path = lab.experiment(&by_firmware(&lab, kernel, responders));
    Finished::of(lab.command(&["run", &path, "--json"]).env(CHOICE, qemu))
}

/// The number of samples of a responder, and of all its losses.
fn outcome(run: &Run, responder: &str) -> (u64, u64) {
    let series = run.series(responder);
    let losses = series["losses"].as_object().expect("losses").values();
    let lost = losses.filter_map(|n| n.as_u64()).sum();
    (series["count"].as_u64().expect("a number"), lost)
}

/// Whether the compiler of tables is there; else the calling test is skipped.
fn have_compiler() -> bool {
    let is_here = rig::tool::find("iasl").is_some();
    if !is_here {
        skip("no iasl; install acpica-tools");
    }
    is_here
}

#[test]
fn all_responders_answer_each_trigger_on_the_lines_of_an_acpi_table() {
    if !have_compiler() {
        return;
    }
    let kernels = ["6.1", "6.1-rt", "6.12", "6.12-rt", "7.3", "7.3-rt"];
    for (number, kernel) in those_here(&kernels).iter().enumerate() {
        let lacks = |name: &str| name == "bh_work" && ["6.1", "6.1-rt"].contains(kernel);
        let here = RESPONDERS.into_iter().enumerate().filter(|(_, name)| !lacks(name));
        let (answers, responders): (Vec<usize>, Vec<&str>) = here.unzip();
        let trigger = [INPUT, INTERRUPT][number % 2];
        let lines = table(&Lines { trigger, answers: &answers, active_low: &[2, 7] });
        let by_table = run(&[CHIP, &lines], kernel, &responders).exits(3).run();
        for responder in &responders {
            assert_eq!(outcome(&by_table, responder), (COUNT, 0), "{kernel} {responder}");
        }
        // The lines are those of the same chip, so the same code answers, whoever named the lines.
        let by_numbers = Lab::new().run(&by_numbers(kernel, &responders), &[]).exits(3).run();
        for responder in ["hardirq", "threaded_irq", "tasklet", "task"] {
            let [table, numbers] = [&by_table, &by_numbers].map(|run| run.median(responder));
            assert!(table.abs_diff(numbers) < 500, "{kernel} {responder}: {table} {numbers}");
        }
    }
}

#[test]
fn a_table_with_a_wrong_line_or_without_the_chip_gives_no_answers_there() {
    let kernels = those_here(&["6.12"]);
    if !have_compiler() || kernels.is_empty() {
        return;
    }
    let both = ["hardirq", "task"];
    let elsewhere = table(&Lines { trigger: INPUT, answers: &[0, 6], active_low: &[] });
    let elsewhere = run(&[CHIP, &elsewhere], "6.12", &both).exits(3).run();
    assert_eq!(outcome(&elsewhere, "hardirq"), (COUNT, 0));
    assert_eq!(outcome(&elsewhere, "task"), (0, COUNT));
    let right = table(&Lines { trigger: INPUT, answers: &[0, 7], active_low: &[] });
    run(&[&right], "6.12", &both).exits(69).says(&["its chip is none of the firmware"]);
    // Named as the trigger, a line that is an output only.
    let reversed = right.replace(&format!("{{ {CHIP_TRIGGER} }}"), "{ 3 }");
    run(&[CHIP, &reversed], "6.12", &both).exits(69).says(&["it cannot have that direction"]);
}
