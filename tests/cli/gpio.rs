// SPDX-License-Identifier: GPL-2.0-or-later
//! GPIO lines without QEMU: what `onset respond` refuses before it loads anything, and the descriptions of lines in
//! `examples/`.

use std::process::Command;
use testbench::{Finished, Lab, repository, skip};

#[test]
fn respond_refuses_a_port_or_lines_that_do_not_fit_together_and_says_what_to_write() {
    let lab = Lab::bare();
    let refuses = |words: &[&str], status: i32, says: &[&str]| {
        lab.onset(&[&["respond"], words].concat()).exits(status).says(says);
    };
    refuses(&["--port", "gpio17"], 2, &["gpiochip0:17", "parport0"]);
    refuses(&["--answer", "27"], 2, &["--port"]);
    refuses(&["--responder", "task"], 2, &["--port"]);
    let gpio = ["--port", "gpiochip98765:17"];
    let with = |more: &[&'static str]| [&gpio[..], more].concat();
    refuses(&with(&[]), 2, &["1 responders (task) and 0 lines", "--answer"]);
    refuses(&with(&["--answer", "27,22"]), 2, &["and 2 lines", "--responder"]);
    refuses(&with(&["--answer", "27", "--responder", "work"]), 2, &["--responder task"]);
    refuses(&with(&["--answer", "27"]), 69, &["/dev/gpiochip98765", "ls -l /dev/gpiochip*"]);
    refuses(&["--port", "parport0", "--answer", "27"], 2, &["--answer names GPIO lines"]);
    refuses(&["--port", "parport98765"], 69, &["parport98765", "parport:0x378:7"]);
    // The driver is not where it would be installed, or the user may not load it.
    let missing = ["--port", "parport:0x10:7", "--module", "no/such/driver.ko"];
    refuses(&missing, 69, &["the driver is not loaded"]);
}

fn run(program: &str, words: &[&str], lab: &Lab) -> Option<Finished> {
    let mut command = Command::new(program);
    command.args(words).current_dir(lab.path());
    match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            skip(&format!("there is no {program}; setup/debian.sh test installs it"));
            None
        }
        output => Some(Finished::from(output.expect("it runs"))),
    }
}

/// A board's tree with a chip, as far as an overlay needs one.
const BOARD: &str =
    "/dts-v1/;\n/ {\n\tgpio: gpio {\n\t\tgpio-controller;\n\t\t#gpio-cells = <2>;\n\t};\n};\n";

#[test]
fn the_overlay_of_a_device_tree_gives_a_board_the_lines_that_the_driver_looks_for() {
    let lab = Lab::bare();
    lab.write("board.dts", BOARD);
    let overlay = repository().join("examples/gpio-lines.dts");
    let overlay = overlay.to_str().expect("text");
    for (from, to) in [("board.dts", "board.dtb"), (overlay, "lines.dtbo")] {
        let words = ["-@", "-I", "dts", "-O", "dtb", "-o", to, from];
        let Some(made) = run("dtc", &words, &lab) else { return };
        let made = made.exits(0);
        assert!(
            !made.stderr.contains("rror") && !made.stderr.contains("arning"),
            "{}",
            made.stderr
        );
    }
    let words = ["-i", "board.dtb", "-o", "whole.dtb", "lines.dtbo"];
    let Some(applied) = run("fdtoverlay", &words, &lab) else { return };
    applied.exits(0);
    let of = |property: &str| {
        let got =
            run("fdtget", &["whole.dtb", "/onset", property], &lab).expect("of dtc's package");
        got.exits(0).stdout.trim().to_owned()
    };
    let driver = std::fs::read_to_string(repository().join("driver/gpio.c")).expect("readable");
    assert!(driver.contains(&format!(".compatible = {:?}", of("compatible"))));
    let chip = run("fdtget", &["whole.dtb", "/gpio", "phandle"], &lab).expect("of dtc's package");
    let chip = chip.exits(0).stdout.trim().to_owned();
    assert_eq!(of("trigger-gpios"), format!("{chip} 17 0"));
    assert_eq!(of("answer-gpios"), format!("{chip} 27 0 {chip} 22 0 {chip} 23 0"));
}

#[test]
fn the_acpi_table_of_the_lines_is_one_that_the_compiler_takes() {
    let lab = Lab::bare();
    let table = repository().join("examples/gpio-lines.asl");
    let words = ["-p", "lines", table.to_str().expect("text")];
    let Some(compiled) = run("iasl", &words, &lab) else { return };
    let compiled = compiled.exits(0);
    assert!(compiled.stdout.contains("0 Errors, 0 Warnings"), "{}", compiled.stdout);
    let table = std::fs::read(lab.path().join("lines.aml")).expect("written");
    let holds = |text: &[u8]| table.windows(text.len()).any(|bytes| bytes == text);
    assert!(holds(b"PRP0001\0") && holds(b"onset,gpio-lines\0") && holds(b"answer-gpios\0"));
}
