// SPDX-License-Identifier: GPL-2.0-or-later
//! What a test says of itself beside its outcome. Tests of a room include this file, since a room cannot use the rest.

use std::io::Write;

/// Says that the calling test cannot run here. The test harness of Rust knows no such outcome; `tests/run.sh`
/// counts these lines and takes the tests off those that passed.
pub fn skip(reason: &str) {
    say("skip", reason);
}

/// Says what the calling test runs without.
pub fn note(what: &str) {
    say("note", what);
}

/// Says something of the calling test, with a word for its kind. How long a test took is in the file alone.
pub fn say(word: &str, what: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    let line = format!("{word}: {test}: {what}\n");
    if word != "took" {
        eprint!("{line}");
    }
    if let Some(path) = std::env::var_os("ONSET_TEST_NOTES") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut f| f.write_all(line.as_bytes())).expect("the file of notes is writable");
    }
}
