// SPDX-License-Identifier: GPL-2.0-or-later
//! The host of a generator whose guest is a fake: as in a script, and on a terminal.

use lab::generator::fake::Served;
use lab::target::fake::Fake;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;
use testbench::{Lab, assert_as_promised_by};

#[test]
fn each_latency_goes_to_a_table_where_there_is_no_terminal() {
    let (generator, lab) = (Served::new(Fake::default()), Lab::bare());
    let (place, path) = (generator.address.to_string(), lab.path().join("latencies.csv"));
    let table = path.to_str().expect("the lab's path is text");
    let words = ["live", &place, "--frequency", "1kHz", "--count", "50", "--csv", table];
    let printed = lab.onset(&[&words[..], &["--record", "--json"]].concat()).exits(0).json();
    assert_as_promised_by("live", &printed);
    assert_eq!((&printed["triggers"], &printed["drift"]), (&50.into(), &serde_json::Value::Null));
    let csv = std::fs::read_to_string(&path).expect("a table");
    let exported = lab.onset(&["export", "latest", "--csv"]).exits(0).stdout;
    // A generator counts no instructions, which is the last column there.
    let cut = exported.lines().map(|line| line.rsplit_once(',').map_or(line, |(row, _)| row));
    assert!(csv.lines().eq(cut), "{csv}\n{exported}");
    assert_eq!(csv.lines().count(), 101);

    // What the generator refuses costs no table that is there.
    let words = ["live", &place, "--period", "1ns", "--count", "50", "--csv", table];
    lab.onset(&words).exits(2).says(&["refuses"]);
    assert_eq!(std::fs::read_to_string(&path).expect("a table"), csv);
    // A longer one is replaced as a whole.
    let words = ["live", &place, "--frequency", "1kHz", "--count", "2", "--csv", table];
    lab.onset(&words).exits(0);
    let shorter = std::fs::read_to_string(&path).expect("a table");
    assert_eq!(shorter.lines().count(), 5, "{shorter}");
    assert!(shorter.lines().next() == csv.lines().next());

    // A file that cannot be written is said before the run starts.
    let words = ["live", &place, "--count", "50", "--csv", "/dev/null/latencies.csv"];
    lab.onset(&words).exits(69).says(&["cannot write /dev/null/latencies.csv"]);
    let (fired, _) = generator.end();
    assert_eq!(fired.len(), 52);
}

/// A terminal: what is at its two ends.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let null = std::ptr::null_mut();
    // SAFETY: all pointers are to variables of this function, or null, which openpty allows.
    let made = unsafe { libc::openpty(&mut ours, &mut theirs, null, null.cast(), &size) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both descriptors are open, and nobody else has them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Reads what is drawn until these words are.
fn until(terminal: &mut File, words: &str) {
    let (mut drawn, mut bytes) = (String::new(), [0; 4096]);
    while !drawn.contains(words) {
        let read = terminal.read(&mut bytes).expect("it is drawn");
        drawn += &String::from_utf8_lossy(&bytes[..read]);
    }
}

#[test]
fn a_key_marks_a_run_on_a_terminal_and_the_bundle_has_the_mark() {
    let (generator, lab) = (Served::new(Fake::default()), Lab::bare());
    let place = generator.address.to_string();
    let (mut ours, theirs) = terminal();
    let mut command = lab.command(&["live", &place, "--frequency", "500Hz", "--record"]);
    let end = || Stdio::from(theirs.try_clone().expect("an open descriptor"));
    let mut child =
        command.stdin(end()).stdout(end()).stderr(Stdio::null()).spawn().expect("onset");
    until(&mut ours, "hardirq");
    ours.write_all(b"m").expect("a key");
    until(&mut ours, "marked");
    ours.write_all(b"q").expect("a key");
    until(&mut ours, "Bundle");
    assert!(child.wait().expect("it ends").success());
    let shown = lab.onset(&["show", "latest", "--json"]).exits(0).json();
    let source = shown["about"]["experiment"]["source"].as_str().expect("text");
    assert_eq!(source.matches("# mark at trigger ").count(), 1, "{source}");
}
