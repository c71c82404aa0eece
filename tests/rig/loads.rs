// SPDX-License-Identifier: GPL-2.0-or-later
//! Every load does its work in the time of a short experiment.

use testbench::{Lab, experiment, have_kernels};

const LOADS: [&str; 14] = [
    "disk",
    "net",
    "tcp_stream",
    "udp_stream",
    "tcp_rr",
    "fork",
    "fs",
    "compile",
    "ipc",
    "memory",
    "media",
    "build",
    "desktop",
    "mixed",
];

#[test]
fn every_load_works_while_it_is_measured_and_nothing_of_it_fails() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let limits = "limits.hardirq.p50 = \"10us\"";
    // Long enough for the longest unit of work: a run of iperf3 3.18 beside the others takes most of a second.
    let text = experiment(&["6.12 preempt=none"], &LOADS, 2000, limits);
    let runs = lab.run(&text, &[]).exits(0).runs();
    assert_eq!(runs.len(), LOADS.len());
    for run in runs {
        let load = run.text("load");
        let counters = run.counters();
        let own: Vec<_> =
            counters.iter().filter(|(name, _)| !name.starts_with("kernel.")).collect();
        assert!(!own.is_empty(), "{load}");
        for (name, n) in own {
            // Beside a compiler on one processor a player may run dry. That is a result, and no fault of the load.
            if load == "desktop" && name == "media.block.failed" {
                continue;
            }
            assert_eq!(*n == 0, name.ends_with(".failed"), "{load}: {name} is {n}");
        }
        // Hardly any time is left to idle in. Only a player sleeps between its blocks, as its listener wants.
        let idle_most = if load == "media" { 1950 } else { 250 };
        assert!(counters["kernel.idle_ms"] <= idle_most, "{load}: {counters:?}");
    }
}

#[test]
fn an_idle_guest_does_nothing() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let run = lab.run(&experiment(&["6.12 preempt=none"], &["idle"], 400, ""), &[]).exits(3).run();
    let counters = run.counters();
    assert_eq!(counters["kernel.forks"], 0, "{counters:?}");
    assert!(counters["kernel.idle_ms"] >= 300, "{counters:?}");
}
