// SPDX-License-Identifier: GPL-2.0-or-later
//! SIGKILL at random moments of `hunt`, which the same command goes on with.

use crate::{Chance, some_met, table, times};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use testbench::{Finished, Lab, Started, have_kernels, users_of};

/// One machine, so that trials are written in the order of their numbers.
const HUNT: [&str; 12] = [
    "hunt",
    "--flavour",
    "6.12 preempt=none",
    "--load",
    "idle",
    "--responder",
    "hardirq",
    "--jobs",
    "1",
    "--budget",
    "12trials",
    "--json",
];
/// Kills of one hunt at the most, before it is let come to its end.
const KILLS: u64 = 4;

fn start(lab: &Lab, place: &Path) -> Started {
    let place = place.to_str().expect("the lab's path is text");
    Started::of(&mut lab.command(&[&HUNT[..], &["--directory", place]].concat()))
}

/// The whole lines of trials that a hunt's journal has.
fn trials(place: &Path) -> Vec<u8> {
    let journal = fs::read(place.join("trials.jsonl")).unwrap_or_default();
    let mut lines = journal.split_inclusive(|byte| *byte == b'\n');
    lines.next();
    lines.take_while(|line| line.ends_with(b"\n")).flatten().copied().collect()
}

/// What was found, without what names the directory.
fn nameless(finished: &Finished) -> Option<Value> {
    let mut found: Value = serde_json::from_str(&finished.stdout).ok()?;
    found.as_object_mut()?.remove("directory");
    for worst in found["worst"].as_array_mut()? {
        worst.as_object_mut()?.remove("find");
    }
    Some(found)
}

/// What a hunt's directory shows.
fn visible(place: &Path) -> Vec<String> {
    let mut names = Lab::names(place);
    names.retain(|name| !name.starts_with('.'));
    names
}

/// The same hunt that nobody killed.
struct Whole {
    found: Option<Value>,
    names: Vec<String>,
    took: Duration,
}

impl Whole {
    fn of(lab: &Lab) -> Whole {
        // The first makes the snapshot.
        start(lab, &lab.path().join("first")).wait().exits(0);
        let place = lab.path().join("whole");
        let begun = Instant::now();
        let finished = start(lab, &place).wait().exits(0);
        Whole { found: nameless(&finished), names: visible(&place), took: begun.elapsed() }
    }
}

/// Kills a hunt, at the most so often, and lets it end then; how often it was killed, how often of these with trials in
/// its journal, and what is wrong.
fn kill(
    lab: &Lab,
    place: &Path,
    whole: &Whole,
    (chance, most): (&mut Chance, u64),
) -> (u64, u64, Vec<String>) {
    let (mut killed, mut met, mut wrong) = (0, 0, Vec::new());
    let mut before = Vec::new();
    let mut is_kept = |wrong: &mut Vec<String>| {
        let now = trials(place);
        if !now.starts_with(&before) {
            wrong.push("trials that were in the journal are lost".into());
        }
        before = now;
        !before.is_empty()
    };
    while killed < most {
        // What follows takes ever less.
        let after = Duration::from_micros(chance.below(whole.took.as_micros() as u64));
        let started = start(lab, place);
        std::thread::sleep(after);
        started.signal(libc::SIGKILL);
        let is_ended = started.wait().status.is_some();
        let has_trials = is_kept(&mut wrong);
        if is_ended {
            break;
        }
        killed += 1;
        met += u64::from(has_trials);
    }
    let last = start(lab, place).wait();
    is_kept(&mut wrong);
    if last.status != Some(0) {
        wrong.push(format!("it does not go on: {:?} {}", last.status, last.stderr));
    } else if nameless(&last) != whole.found {
        wrong.push(format!("it came to another end: {}", last.stdout));
    }
    if visible(place) != whole.names {
        wrong.push(format!("its directory shows {:?}", visible(place)));
    }
    (killed, met, wrong)
}

#[test]
fn a_hunt_that_is_killed_goes_on_to_the_same_end() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let what = "SIGKILL of hunt";
    let mut chance = Chance::new(what);
    let lab = Lab::private();
    let whole = Whole::of(&lab);
    assert!(whole.found.is_some(), "the hunt that nobody killed did not print what it found");
    let wanted = times(3, 140);
    let (mut tried, mut met, mut unclean) = (0, 0, Vec::new());
    for n in 0.. {
        let (killed, with_trials, wrong) = kill(
            &lab,
            &lab.path().join(format!("killed-{n}")),
            &whole,
            (&mut chance, KILLS.min(wanted - tried)),
        );
        (tried, met) = (tried + killed, met + with_trials);
        unclean.extend(wrong.into_iter().map(|wrong| format!("hunt {n}: {wrong}")));
        if tried >= wanted {
            break;
        }
    }
    testbench::wait_for("the end of guests", || users_of(lab.path()).is_empty().then_some(()));
    table(what, tried, &unclean);
    some_met("  of them while there were trials", tried, met);
}
