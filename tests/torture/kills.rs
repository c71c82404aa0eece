// SPDX-License-Identifier: GPL-2.0-or-later
//! SIGKILL at random moments of `measure`, `run`, the guest's boot, and the finishing of what was killed before.

use crate::{Chance, some_met, table, times};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use testbench::{Finished, Lab, Started, experiment, have_kernels, users_of};

/// Measures for 60 ms, and writes a bundle.
pub const MEASURE: [&str; 11] = [
    "measure", "periodic", "--count", "120", "--period", "500us", "--policy", "other", "--load",
    "idle", "--json",
];

/// Entries in the journals of a store's runs that are not finished, by run.
pub fn journaled(store: &Path) -> Vec<(String, u64)> {
    let partial =
        Lab::names(store).into_iter().filter_map(|n| Some(n.strip_prefix(".partial-")?.to_owned()));
    let count = |run: String| {
        let journal = fs::read(store.join(format!(".partial-{run}/journal"))).unwrap_or_default();
        let entries = journal.chunks(40).take_while(|entry| entry.len() == 40 && entry[0] != 0);
        (run, entries.count() as u64)
    };
    partial.map(count).collect()
}

/// Observations of a run: samples, and losses, of which an entry is one or more.
fn observed(lab: &Lab, run: &str) -> Option<u64> {
    let manifest = lab.onset(&["show", run, "--json"]);
    let manifest: Value = serde_json::from_str(&manifest.stdout).ok()?;
    let series = manifest["series"].as_array()?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let losses =
        |s: &Value| s["losses"].as_object().map_or(0, |l| l.values().map(number).sum::<u64>());
    Some(series.iter().map(|s| number(&s["count"]) + losses(s)).sum())
}

/// What is wrong with a store after a command was ended: of `before`, what stood in journals, and of `acknowledged`,
/// runs that were printed as finished, nothing may be lost; nothing half-made may be seen; and the store is open to the
/// next command.
pub fn wrongs(lab: &Lab, before: &[(String, u64)], acknowledged: &[String]) -> Vec<String> {
    let mut wrongs = Vec::new();
    let listed = lab.onset(&["list", "--json"]);
    let runs = match (listed.status, serde_json::from_str::<Value>(&listed.stdout)) {
        (Some(0), Ok(list)) => list["runs"].as_array().cloned().unwrap_or_default(),
        _ => return vec![format!("the store does not open: {}", listed.stderr)],
    };
    if let Some(damaged) = runs.iter().find(|run| !run["damaged"].is_null()) {
        wrongs.push(format!("half a bundle is listed: {damaged}"));
    }
    let is_listed = |wanted: &str| runs.iter().any(|run| run["run"] == wanted);
    wrongs.extend(
        acknowledged
            .iter()
            .filter(|r| !is_listed(r))
            .map(|run| format!("{run} was acknowledged, and is lost")),
    );
    for (run, entries) in before.iter().filter(|(_, entries)| *entries > 0) {
        match observed(lab, run) {
            Some(kept) if kept >= *entries => {}
            kept => wrongs.push(format!("{run}: {entries} in the journal, {kept:?} in the bundle")),
        }
        if lab.onset(&["show", run, "--verify"]).status != Some(0) {
            wrongs.push(format!("{run} does not verify"));
        }
    }
    if !journaled(&lab.store()).is_empty() {
        wrongs.push("a partial directory is left over".into());
    }
    wrongs
}

/// The runs that a command printed as finished.
pub fn acknowledged(finished: &Finished) -> Vec<String> {
    let Ok(printed) = serde_json::from_str::<Value>(&finished.stdout) else { return Vec::new() };
    let runs = printed["runs"].as_array().cloned().unwrap_or_default();
    runs.iter().filter_map(|run| Some(run["run"].as_str()?.to_owned())).collect()
}

/// Kills the command `tried` times, each after at most what `longest` says, and sees what is left.
fn kill(lab: &Lab, words: &[&str], (what, tried): (&str, u64), longest: impl Fn(u64) -> Duration) {
    let mut chance = Chance::new(what);
    let (mut unclean, mut met) = (Vec::new(), 0);
    for n in 0..tried {
        let after = Duration::from_micros(chance.below(longest(n).as_micros() as u64));
        let started = Started::of(&mut lab.command(words));
        std::thread::sleep(after);
        started.signal(libc::SIGKILL);
        let finished = started.wait();
        // A child that it had just forked has its open files, the lock of the run among them, until the kernel ends it
        // too.
        testbench::wait_for("its children's end", || users_of(lab.path()).is_empty().then_some(()));
        let before = journaled(&lab.store());
        met += u64::from(before.iter().any(|(_, entries)| *entries > 0));
        let wrongs = wrongs(lab, &before, &acknowledged(&finished));
        unclean.extend(wrongs.into_iter().map(|wrong| format!("after {after:?}: {wrong}")));
    }
    table(what, tried, &unclean);
    // Else nothing could have been lost.
    assert!(met > 0, "no kill of {tried} came while there were samples");
    testbench::figure("  of them while there were samples", tried, met);
}

#[test]
fn a_measurement_that_is_killed_loses_nothing() {
    let longest = Duration::from_millis(400);
    kill(&Lab::bare(), &MEASURE, ("SIGKILL of measure", times(30, 400)), |_| longest);
}

#[test]
fn a_run_in_the_rig_that_is_killed_loses_nothing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let path = lab.experiment(&experiment(&["6.12 preempt=none"], &["idle"], 2_000, ""));
    // A snapshot first, from which they are restored.
    let words = ["run", &path, "--json"];
    lab.onset(&words);
    // How long one takes, here and now.
    let begun = Instant::now();
    lab.onset(&words);
    let takes = begun.elapsed();
    let tried = times(8, 200);
    let what = ("SIGKILL of run in the rig", tried);
    kill(&lab, &words, what, |_| takes);
}

/// What is wrong with the snapshots that a cache shows: a half one among them.
fn half_snapshots(lab: &Lab) -> Vec<String> {
    let place = lab.cache().join("snapshots");
    let shown = Lab::names(&place).into_iter().filter(|name| !name.starts_with('.'));
    let is_whole = |name: &String| {
        let record = fs::read(place.join(name).join("snapshot.json")).ok()?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        let state = fs::read(place.join(name).join("state")).ok()?;
        (record["state_blake3"] == blake3::hash(&state).to_hex().as_str()).then_some(())
    };
    shown.filter(|n| is_whole(n).is_none()).map(|n| format!("half a snapshot: {n}")).collect()
}

#[test]
fn a_run_that_is_killed_while_its_guest_boots_leaves_nothing_half_made() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let what = "SIGKILL of run while its guest boots";
    let (mut chance, lab) = (Chance::new(what), Lab::private());
    // Each seed is another guest, of which there is no snapshot yet.
    let guest = |seed: u64| {
        let seed = format!("guest = {{ seed = {seed} }}");
        experiment(&["6.12 preempt=full"], &["idle"], 20, &seed)
    };
    let begun = Instant::now();
    lab.run(&guest(1_000), &[]).exits(3);
    let longest = begun.elapsed();
    let tried = times(2, 60);
    let (mut unclean, mut met) = (Vec::new(), 0);
    for n in 0..tried {
        let text = guest(n);
        let path = lab.experiment(&text);
        let mut started = Started::of(&mut lab.command(&["run", &path, "--json"]));
        started.wait_until_it_says("booting");
        let after = Duration::from_micros(chance.below(longest.as_micros() as u64));
        std::thread::sleep(after);
        started.signal(libc::SIGKILL);
        let finished = started.wait();
        met += u64::from(finished.status.is_none());
        let before = journaled(&lab.store());
        let mut wrong = wrongs(&lab, &before, &acknowledged(&finished));
        testbench::wait_for("the guest's end", || users_of(lab.path()).is_empty().then_some(()));
        wrong.extend(half_snapshots(&lab));
        let again = lab.run(&text, &[]);
        if again.status != Some(3) {
            wrong.push(format!("the same again: {:?} {}", again.status, again.stderr));
        }
        let left = Lab::names(&lab.cache().join("scratch"));
        if !left.is_empty() {
            wrong.push(format!("left over: {left:?}"));
        }
        unclean.extend(wrong.into_iter().map(|wrong| format!("after {after:?}: {wrong}")));
    }
    table(what, tried, &unclean);
    some_met("  of them before it had ended", tried, met);
}

#[test]
fn the_finishing_of_a_killed_run_that_is_killed_loses_nothing() {
    let mut chance = Chance::new("kills of list");
    let tried = times(15, 200);
    let (mut unclean, mut met) = (Vec::new(), 0);
    for _ in 0..tried {
        let lab = Lab::bare();
        let started = Started::of(&mut lab.command(&MEASURE));
        testbench::wait_for("answers", || {
            journaled(&lab.store()).first().filter(|(_, n)| *n > 20).map(drop)
        });
        started.signal(libc::SIGKILL);
        started.wait();
        let before = journaled(&lab.store());
        // Killed while it makes the bundle, which takes some milliseconds.
        let finishing = Started::of(&mut lab.command(&["list"]));
        std::thread::sleep(Duration::from_micros(chance.below(25_000)));
        finishing.signal(libc::SIGKILL);
        met += u64::from(finishing.wait().status.is_none());
        unclean.extend(wrongs(&lab, &before, &[]));
    }
    table("SIGKILL of the finishing of a killed run", tried, &unclean);
    some_met("  of them before it had ended", tried, met);
}
