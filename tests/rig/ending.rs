// SPDX-License-Identifier: GPL-2.0-or-later
//! Every way to end early: what was measured is kept and marked, and nothing else stays behind.

use std::fs;
use testbench::{
    Lab, Started, cpu_ticks, experiment, have_kernels, is_alive, kill, users_of, wait_for,
};

const QEMU: &str = "qemu-system-x86_64";
const NONE: &str = "6.12 preempt=none";
/// Half an hour of triggers; no test waits for its end.
const ENDLESS: u64 = 2_000_000;

/// Starts a run that would take very long and waits until it measures.
fn measuring(lab: &Lab) -> (Started, u32) {
    let path = lab.experiment(&experiment(&[NONE], &["idle"], ENDLESS, ""));
    let mut started = Started::of(&mut lab.command(&["run", &path, "--json"]));
    started.wait_until_it_says("measuring, ");
    let qemu = started.wait_for_child(QEMU);
    (started, qemu)
}

/// Neither processes nor directories of ended commands.
fn assert_no_debris(lab: &Lab) {
    let scratch = lab.cache().join("scratch");
    assert_eq!(Lab::names(&scratch), [""; 0]);
    assert_eq!(users_of(lab.path()), [0; 0]);
    let partial = lab.bundles().into_iter().filter(|n| n.starts_with('.'));
    assert_eq!(partial.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn an_interruption_keeps_what_was_measured_and_leaves_nothing_else() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let path = lab.experiment(&experiment(&[NONE], &["idle"], ENDLESS, ""));

    let mut booting = Started::of(&mut lab.command(&["run", &path, "--json"]));
    booting.wait_until_it_says("booting");
    let qemu = booting.wait_for_child(QEMU);
    booting.signal(libc::SIGINT);
    booting.wait().exits(130).says(&["interrupted"]);
    assert!(!is_alive(qemu));
    assert_no_debris(&lab);
    assert_eq!(lab.bundles(), [""; 0]);

    let (started, qemu) = measuring(&lab);
    started.signal(libc::SIGINT);
    let finished = started.wait().exits(130);
    assert!(!is_alive(qemu));
    assert_no_debris(&lab);
    let run = finished.run();
    assert_eq!(run.0["complete"], false);
    assert_eq!(run.text("verdict"), "invalid");
    run.warning("interrupted");
    assert!(run.series("hardirq")["count"].as_u64().is_some_and(|n| n > 0 && n < ENDLESS));
    lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
}

#[test]
fn an_interrupted_probe_in_the_guest_ends_as_on_a_machine_and_keeps_its_samples() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    // A probe that reports at its end alone, and one that is judged by what the port saw.
    for probe in ["[periodic]\nperiods = [\"1ms\"]\n", "[toggle]\nline = \"parport:0x378\"\n"] {
        let text = format!(
            "title = \"t\"\ntarget = \"rig\"\nflavours = [\"{NONE}\"]\nloads = [\"idle\"]\nwarm_up = \"200ms\"\n\
             {probe}count = 300000\n"
        );
        let path = lab.experiment(&text);
        let mut started = Started::of(&mut lab.command(&["run", &path, "--json"]));
        started.wait_until_it_says("measuring, ");
        let qemu = started.wait_for_child(QEMU);
        // By now it has measured for most of that.
        wait_for("some periods", || (cpu_ticks(qemu) > 300).then_some(()));
        started.signal(libc::SIGINT);
        let run = started.wait().exits(130).run();
        assert!(!is_alive(qemu));
        assert_no_debris(&lab);
        assert_eq!(run.0["complete"], false);
        assert_eq!(run.text("verdict"), "invalid");
        run.warning("interrupted");
        let first = &run.0["series"][0];
        assert!(first["count"].as_u64().is_some_and(|n| n > 0 && n < 300_000), "{first}");
        lab.onset(&["show", run.text("run"), "--verify"]).exits(0);
    }
}

#[test]
fn a_stopped_command_loses_records_which_are_counted_and_never_a_false_maximum() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    // More records than the channel holds (2^18), from the responder that is quickest to simulate.
    let more = "responders = [\"hardirq\"]\n[limits]\nhardirq.max = \"1ms\"\n";
    let path = lab.experiment(&experiment(&[NONE], &["idle"], 400_000, more));
    let closer = ["--set", "trigger.period=50us", "--set", "trigger.jitter=10us"];
    let words = [&["run", &path, "--json"], &closer[..]].concat();
    let mut started = Started::of(&mut lab.command(&words));
    started.wait_until_it_says("measuring, ");
    let qemu = started.wait_for_child(QEMU);
    // As by Ctrl-Z: QEMU goes on to its end, and waits as a zombie.
    started.signal(libc::SIGSTOP);
    wait_for("the end of QEMU", || (!is_alive(qemu)).then_some(()));
    started.signal(libc::SIGCONT);
    let run = started.wait().exits(3).run();
    let hardirq = run.series("hardirq");
    assert!(hardirq["losses"]["dropped"].as_u64().is_some_and(|n| n > 0), "{hardirq}");
    assert!(run.max("hardirq") < 1_000_000, "{hardirq}");
    run.warning("channel_dropped");
    assert_eq!(run.text("verdict"), "invalid");
    // The same guest without a stop has all of its answers: those that are left of them have no greater maximum.
    let whole = lab.onset(&words).run();
    assert_eq!(whole.series("hardirq")["losses"]["dropped"], 0, "{}", whole.0);
    assert!(run.max("hardirq") <= whole.max("hardirq"), "{hardirq} {}", whole.0);
}

#[test]
fn a_guest_that_is_followed_waits_for_a_stopped_command_and_nothing_is_lost() {
    if !have_kernels(&["6.12-rt"]) {
        return;
    }
    let lab = Lab::new();
    let run = lab.run(&experiment(&["6.12-rt"], &["mixed"], 1_500, ""), &[]).exits(3).run();
    let windows = |stops: bool| {
        let words = ["windows", run.text("run"), "--json"];
        let mut started = Started::of(&mut lab.command(&words));
        if stops {
            started.wait_until_it_says("measuring, ");
            let qemu = started.wait_for_child(QEMU);
            started.signal(libc::SIGSTOP);
            // Hundreds of thousands of records later it does nothing any more, but has not ended.
            let rests = || {
                let before = cpu_ticks(qemu);
                std::thread::sleep(std::time::Duration::from_secs(1));
                (cpu_ticks(qemu) < before + 30).then_some(())
            };
            wait_for("the guest to wait", rests);
            assert!(is_alive(qemu));
            started.signal(libc::SIGCONT);
        }
        started.wait().exits(0).json()
    };
    let whole = windows(false);
    assert!(whole["windows"].as_array().is_some_and(|windows| !windows.is_empty()), "{whole:#}");
    assert_eq!(windows(true), whole);
}

#[test]
fn a_terminated_download_leaves_no_process_and_no_directory() {
    let lab = Lab::bare();
    // A program that downloads through a child of its own, as apt-get does.
    let marker = lab.path().join("downloading");
    let child = lab.script("fetch-slowly", "exec sleep 1000");
    let body = format!(
        "case $1 in indextargets) echo 'Debian|Debian|http://mirror.example/debian'; exit ;; esac\n{0} & echo $! >{1}.new; mv {1}.new {1}; wait",
        child.display(),
        marker.display()
    );
    lab.script("apt-get", &body);
    let mut command = lab.command(&["kernels", "fetch", "9.9"]);
    let started = Started::of(command.env("PATH", lab.with_bin()));
    let read = || fs::read_to_string(&marker).ok()?.trim().parse::<u32>().ok();
    let child = wait_for("the download", read);
    started.signal(libc::SIGINT);
    started.wait().exits(130).says(&["interrupted"]);
    wait_for("the end of the download", || (!is_alive(child)).then_some(()));
    // Of the archive only the directory for its lists is there.
    assert_eq!(Lab::names(&lab.cache().join("kernels")), [".archive"]);
}

#[test]
fn qemu_killed_while_measuring_leaves_a_marked_bundle() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let (started, qemu) = measuring(&lab);
    kill(qemu);
    let run = started.wait().exits(3).run();
    assert_eq!(run.0["complete"], false);
    assert_eq!(run.text("verdict"), "invalid");
    let text = run.warning("machine_died")["text"].as_str().expect("text");
    assert!(text.contains("signal: 9"), "{text}");
    assert_no_debris(&lab);
}

#[test]
fn qemu_killed_while_booting_fails_and_leaves_nothing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let path = lab.experiment(&experiment(&[NONE], &["idle"], 10, ""));
    let mut started = Started::of(&mut lab.command(&["run", &path]));
    started.wait_until_it_says("booting");
    kill(started.wait_for_child(QEMU));
    started.wait().exits(69).says(&["QEMU", "signal: 9"]);
    assert_no_debris(&lab);
    assert_eq!(lab.bundles(), [""; 0]);
}

#[test]
fn a_killed_command_takes_qemu_along_and_the_next_one_keeps_what_was_measured() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::private();
    let (started, qemu) = measuring(&lab);
    let partial = lab.store().join(&lab.bundles()[0]);
    let observed = || fs::read(partial.join("journal")).map_or(0, |journal| entries(&journal));
    let least = wait_for("some answers", || Some(observed()).filter(|n| *n > 100));
    // Another command leaves a run alone that goes on.
    let listed = lab.onset(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(0), "{listed:#}");
    started.signal(libc::SIGKILL);
    assert_eq!(started.wait().status, None);
    wait_for("QEMU to die with its parent", || (!is_alive(qemu)).then_some(()));
    assert_eq!(Lab::names(&lab.cache().join("scratch")).len(), 1);
    assert!(lab.bundles()[0].starts_with(".partial-"), "{:?}", lab.bundles());
    let observed = observed();
    assert!(observed >= least);

    let listed = lab.onset(&["list", "--json"]).exits(0).json();
    let killed = &listed["runs"][0];
    assert_eq!((&killed["complete"], &killed["verdict"]), (&false.into(), &"invalid".into()));
    let samples = killed["samples"].as_u64().expect("a number");
    // What is no sample is a count of losses.
    assert!(samples > 0 && samples <= observed, "{samples} of {observed}");
    let run = killed["run"].as_str().expect("a name");
    assert!(lab.onset(&["show", run, "--verify"]).exits(0).stdout.contains("onset was killed"));
    let manifest = lab.onset(&["show", run, "--json"]).exits(0).json();
    let counts = manifest["series"].as_array().expect("series").iter().map(|s| &s["count"]);
    assert_eq!(counts.filter_map(|n| n.as_u64()).sum::<u64>(), samples);
    lab.run(&experiment(&[NONE], &["idle"], 10, ""), &[]).exits(3);
    assert_no_debris(&lab);
    assert_eq!(lab.bundles().len(), 2);
}

/// Entries in a journal: 40 bytes each, up to the first that begins with 0.
fn entries(journal: &[u8]) -> u64 {
    journal.chunks(40).take_while(|entry| entry[0] != 0).count() as u64
}
