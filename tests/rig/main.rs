// SPDX-License-Identifier: GPL-2.0-or-later
//! The command with real QEMU and real stock kernels. Tests share snapshots through one cache, so they use few
//! flavours and loads; those that damage or watch a cache have one of their own.

mod acpi;
mod atlas;
mod bound;
mod breed;
mod census;
mod cold;
mod contract;
mod costs;
mod deadlines;
mod determinism;
mod disturbance;
mod ending;
mod explain;
mod finds;
mod flavours;
mod follow;
mod gpio;
mod guest;
mod hunt;
mod ladder;
mod later;
mod live;
mod loads;
mod locks;
mod map;
mod mechanisms;
mod minimise;
mod modules;
mod oracle;
mod own_program;
mod planted;
mod probes;
mod programs;
mod qemu;
mod recipes;
mod report;
mod session;
mod shards;
mod snapshots;
mod spans;
mod stages;
mod store;
mod strategies;
mod timer;
mod truth;
mod tune;
mod unseen;
mod walker;
mod windows;

/// A rig of the command that is tested, with the cache of `lab`.
fn bench(lab: &testbench::Lab) -> rig::Bench {
    let installation = onset::installation::Installation::find_near(&testbench::onset());
    let cache = rig::Cache::at(&lab.cache()).expect("a cache");
    rig::Bench::new(cache, installation.expect("built").parts()).expect("a rig")
}
