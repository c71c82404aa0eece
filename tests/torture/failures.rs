// SPDX-License-Identifier: GPL-2.0-or-later
//! System calls that fail: strace(1) answers one of them in the command's place, as a full disk or a broken one would.

use crate::kills::{MEASURE, acknowledged, journaled, wrongs};
use crate::{Chance, table, times};
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

#[test]
fn a_system_call_that_fails_loses_no_journaled_sample_and_leaves_an_open_store() {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing: apt-get install strace");
        return;
    }
    let mut chance = Chance::new("failing system calls");
    let lab = Lab::bare();
    let tried = times(45, 1_000);
    let mut unclean = Vec::new();
    for _ in 0..tried {
        let (calls, error) = chance.of(&FAILURES);
        let from = 1 + chance.below(60);
        // One call, or all from there on, as when a disk stays full.
        let when = if chance.below(2) == 0 { format!("{from}") } else { format!("{from}+") };
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={calls}"));
        command.arg("-e").arg(format!("inject={calls}:error={error}:when={when}"));
        command.arg(onset()).args(MEASURE).current_dir(lab.path());
        command.env("XDG_CACHE_HOME", lab.path().join("cache")).env("ONSET_STORE", lab.store());
        let finished = Finished::of(&mut command);
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
}
