// SPDX-License-Identifier: GPL-2.0-or-later
//! System calls that fail: strace(1) answers one of them in the command's place, as a full disk or a broken one would.

use crate::kills::{MEASURE, acknowledged, journaled, wrongs};
use crate::{Chance, table, times};
use std::fs;
use std::process::Command;
use testbench::{Finished, Lab, onset, skip};

/// The system calls by which files are written, and how each fails. Not mmap, by which memory is had, too: without any
/// a program ends.
const FAILURES: [(&str, &str); 12] = [
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("pwrite64", "ENOSPC"),
    ("openat", "EMFILE"),
    ("mkdirat,mkdir", "ENOSPC"),
    ("fallocate", "ENOSPC"),
    ("ftruncate", "ENOSPC"),
    ("fsync,fdatasync", "EIO"),
    ("renameat2,renameat,rename", "EIO"),
    ("unlinkat,unlink", "EIO"),
    ("flock", "ENOLCK"),
    ("fstat,newfstatat,statx", "EIO"),
];

/// What strace did, in the lab.
const LOG: &str = "strace.log";

/// Measures under strace with these words.
fn measure(lab: &Lab, words: &[&str]) -> Finished {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", LOG]).args(words).arg(onset()).args(MEASURE);
    command.current_dir(lab.path());
    command.env("XDG_CACHE_HOME", lab.path().join("cache")).env("ONSET_STORE", lab.store());
    Finished::of(&mut command)
}

#[test]
fn a_system_call_that_fails_loses_no_journaled_sample_and_leaves_an_open_store() {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing: apt-get install strace");
        return;
    }
    let mut chance = Chance::new("failing system calls");
    let lab = Lab::bare();
    // Without a failure it measures, under strace too. So often it makes each of the calls.
    let all: Vec<&str> = FAILURES.iter().map(|(calls, _)| *calls).collect();
    measure(&lab, &["-e", &format!("trace={}", all.join(","))]).exits(3);
    let log = fs::read(lab.path().join(LOG)).expect("strace writes it");
    let log = String::from_utf8_lossy(&log).into_owned();
    let made = |calls: &str| {
        calls.split(',').map(|c| log.matches(&format!(" {c}(")).count()).sum::<usize>()
    };
    let tried = times(45, 1_000);
    let (mut unclean, mut failed) = (Vec::new(), 0);
    for _ in 0..tried {
        let (calls, error) = chance.of(&FAILURES);
        // A call that the run does not make cannot fail. Few processes make more than sixty.
        let from = 1 + chance.below(made(calls).clamp(1, 60) as u64);
        // One call, or all from there on, as when a disk stays full.
        let when = if chance.below(2) == 0 { format!("{from}") } else { format!("{from}+") };
        let trace = format!("trace={calls}");
        let inject = format!("inject={calls}:error={error}:when={when}");
        let finished = measure(&lab, &["-e", &trace, "-e", &inject]);
        let log = fs::read(lab.path().join(LOG)).expect("strace writes it");
        // Each thread counts its own calls, so some make too few.
        failed += u64::from(String::from_utf8_lossy(&log).contains("(INJECTED)"));
        let before = journaled(&lab.store());
        let mut wrong = wrongs(&lab, &before, &acknowledged(&finished));
        if finished.status == Some(101) || finished.stderr.contains("panicked") {
            wrong.push(format!("a panic: {}", finished.stderr));
        }
        // What is kept is said to be, and where.
        let is_told = finished.stderr.contains("the samples until then are in")
            // Where no write succeeds any more, nobody can be told.
            || (*calls == "write" && when.ends_with('+'));
        if before.iter().any(|(_, entries)| *entries > 0) && finished.status == Some(69) && !is_told
        {
            wrong.push(format!("samples are kept, and nobody says where: {}", finished.stderr));
        }
        unclean.extend(wrong.into_iter().map(|w| format!("{calls} {error} {when}: {w}")));
    }
    table("failing system calls of measure", tried, &unclean);
    testbench::figure("  of them with a call that failed", tried, failed);
    assert!(failed > 0, "no system call of {tried} runs failed");
}
