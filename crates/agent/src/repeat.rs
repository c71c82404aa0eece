// SPDX-License-Identifier: GPL-2.0-or-later
//! `repeat NAME COMMAND…`: runs the command again and again and counts how often it succeeded.

use crate::counter::Counter;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The pause after a failure. Without a pause, a command that fails again and again would be a load itself.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Repeats the command. Returns an exit status only if the call itself is wrong.
pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    let words: Vec<String> = arguments.collect();
    let [name, program, rest @ ..] = words.as_slice() else {
        eprintln!("usage: repeat NAME COMMAND…");
        return 2;
    };
    match repeat(name, program, rest) {
        Ok(never) => match never {},
        Err(e) => {
            eprintln!("repeat {name}: {program}: {e}");
            1
        }
    }
}

fn repeat(name: &str, program: &str, rest: &[String]) -> std::io::Result<std::convert::Infallible> {
    let (mut done, mut failed) = Counter::pair(name)?;
    loop {
        let status = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(if failed.value() == 0 { Stdio::inherit() } else { Stdio::null() })
            .status()?;
        if status.success() {
            done.add(1)?;
        } else {
            failed.add(1)?;
            std::thread::sleep(PAUSE_AFTER_FAILURE);
        }
    }
}
