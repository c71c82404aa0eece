// SPDX-License-Identifier: GPL-2.0-or-later
//! `repeat NAME COMMAND…`: runs the command again and again and counts how often it succeeded, in a
//! file of eight bytes that anyone may read at any time.

use agent::{COUNTERS_DIR, COUNTERS_VARIABLE};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The pause after a failure. Without a pause, a command that fails again and again would be a load itself.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

struct Counter {
    file: File,
    value: u64,
}

impl Counter {
    fn create(name: &str) -> std::io::Result<Counter> {
        let directory = std::env::var_os(COUNTERS_VARIABLE).unwrap_or(COUNTERS_DIR.into());
        fs::create_dir_all(&directory)?;
        Ok(Counter { file: File::create(Path::new(&directory).join(name))?, value: 0 })
    }

    fn increment(&mut self) -> std::io::Result<()> {
        self.value += 1;
        self.file.write_all_at(&self.value.to_le_bytes(), 0)
    }
}

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
    let mut done = Counter::create(name)?;
    let mut failed = Counter::create(&format!("{name}.failed"))?;
    loop {
        let status = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(if failed.value == 0 { Stdio::inherit() } else { Stdio::null() })
            .status()?;
        if status.success() {
            done.increment()?;
        } else {
            failed.increment()?;
            std::thread::sleep(PAUSE_AFTER_FAILURE);
        }
    }
}
