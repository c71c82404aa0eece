// SPDX-License-Identifier: GPL-2.0-or-later
//! The context of the measured CPUs: who else may use them, which CPUs share their cores, and what changes their speed.

use super::parse::{cpu_list, cpu_mask, labelled, show_cpu_list, ticks};
use super::tree::Tree;
use super::{Context, keys};
use std::collections::BTreeSet;
use std::path::Path;

pub fn read(tree: &Tree, cpus: &BTreeSet<u32>, context: &mut Context) {
    sets(tree, context);
    context.set(keys::IRQS_ON_MEASURED, interrupts(tree, cpus));
    context.set(keys::SMT, tree.text("sys/devices/system/cpu/smt/control"));
    context.set(keys::IDLE_DRIVER, tree.text("sys/devices/system/cpu/cpuidle/current_driver"));
    let governor = |name| tree.text(&format!("sys/devices/system/cpu/cpuidle/{name}"));
    let chooses = governor("current_governor").or_else(|| governor("current_governor_ro"));
    context.set(keys::IDLE_GOVERNOR, chooses);
    context.set(keys::CPU_DMA_LATENCY_US, latency_allowed(tree));
    for cpu in cpus {
        frequency(tree, *cpu, context);
        idle(tree, *cpu, context);
        heat(tree, *cpu, context);
        for (key, server) in
            [(keys::FAIR_SERVER_NS, "fair_server"), (keys::EXT_SERVER_NS, "ext_server")]
        {
            let server = format!("sys/kernel/debug/sched/{server}/cpu{cpu}");
            let part = |name| tree.number(&format!("{server}/{name}"));
            let both = part("runtime").zip(part("period"));
            context.set_of_cpu(key, *cpu, both.map(|(r, p)| format!("{r}/{p}")));
        }
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        context.set_of_cpu(keys::SMT_SIBLINGS, *cpu, tree.text(&topology));
    }
    accounts(tree, cpus, context);
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    context.set(keys::CPU_MODEL, labelled(&cpuinfo, "model name"));
    context.set(keys::MICROCODE, labelled(&cpuinfo, "microcode"));
}

fn sets(tree: &Tree, context: &mut Context) {
    for (key, path) in [
        (keys::CPUS_ONLINE, "sys/devices/system/cpu/online"),
        (keys::CPUS_ISOLATED, "sys/devices/system/cpu/isolated"),
        (keys::CPUS_ISOLATED_BY_CPUSET, "sys/fs/cgroup/cpuset.cpus.isolated"),
        // The file reads `(null)` where the kernel supports `nohz_full` and nobody asked for it. `(null)` is no list.
        (keys::NOHZ_FULL, "sys/devices/system/cpu/nohz_full"),
    ] {
        let cpus = tree.whole(path).as_deref().and_then(cpu_list);
        context.set(key, cpus.as_deref().map(show_cpu_list));
    }
    let status = tree.text("proc/self/status");
    let allowed = status.as_deref().and_then(|s| labelled(s, "Cpus_allowed_list"));
    context.set(keys::AFFINITY, allowed);
    context.set(keys::CPUS_ALLOWED, cpuset(tree));
    let mask = tree.text("proc/irq/default_smp_affinity");
    let cpus = mask.as_deref().and_then(cpu_mask);
    context.set(keys::DEFAULT_SMP_AFFINITY, cpus.as_deref().map(show_cpu_list));
}

/// The effective CPUs of the nearest group that names them, in either version of the hierarchy (cgroups(7)).
fn cpuset(tree: &Tree) -> Option<String> {
    let groups = tree.text("proc/self/cgroup")?;
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (top, file) = if controllers.split(',').any(|c| c == "cpuset") {
            ("sys/fs/cgroup/cpuset", "cpuset.effective_cpus")
        } else if number == "0" {
            ("sys/fs/cgroup", "cpuset.cpus.effective")
        } else {
            return None;
        };
        let groups = Path::new(path).ancestors().map(|group| format!("{top}{}", group.display()));
        groups.into_iter().find_map(|group| tree.text(&format!("{group}/{file}")))
    })
}

/// The interrupts that go to one of the CPUs. Absent where the kernel shows no interrupts at all.
fn interrupts(tree: &Tree, cpus: &BTreeSet<u32>) -> Option<String> {
    let numbers = tree.numbered("proc/irq", "");
    if numbers.is_empty() {
        return None;
    }
    let found: Vec<String> =
        numbers.into_iter().filter_map(|irq| interrupt(tree, irq, cpus)).collect();
    Some(if found.is_empty() { "none".into() } else { found.join("; ") })
}

/// An interrupt as `NUMBER:NAME@CPUS`. Absent unless it is in use and is delivered to one of the CPUs.
fn interrupt(tree: &Tree, irq: u32, cpus: &BTreeSet<u32>) -> Option<String> {
    let directory = format!("proc/irq/{irq}");
    // Each handler has a directory of its name there (register_handler_proc(), kernel/irq/proc.c).
    let handler =
        tree.names(&directory).into_iter().find(|n| tree.is_directory(&format!("{directory}/{n}")));
    let name = handler?;
    // The file is empty for an interrupt that each CPU has for itself. The file is missing where the kernel knows only
    // where it may deliver an interrupt, and not where it does.
    let list = tree
        .whole(&format!("{directory}/effective_affinity_list"))
        .or_else(|| tree.whole(&format!("{directory}/smp_affinity_list")))?;
    let here: Vec<u32> = cpu_list(&list)?.into_iter().filter(|c| cpus.contains(c)).collect();
    (!here.is_empty()).then(|| format!("{irq}:{name}@{}", show_cpu_list(&here)))
}

/// The latency that `/dev/cpu_dma_latency` gives: 32 bits in machine order (Documentation/power/pm_qos_interface.rst).
fn latency_allowed(tree: &Tree) -> Option<i32> {
    tree.bytes("dev/cpu_dma_latency")?.first_chunk().map(|b| i32::from_ne_bytes(*b))
}

fn frequency(tree: &Tree, cpu: u32, context: &mut Context) {
    let file = |name: &str| tree.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"));
    context.set_of_cpu(keys::GOVERNOR, cpu, file("scaling_governor"));
    context.set(keys::FREQUENCY_DRIVER, file("scaling_driver"));
    context.set_of_cpu(keys::FREQUENCY_MIN_KHZ, cpu, file("scaling_min_freq"));
    context.set_of_cpu(keys::FREQUENCY_MAX_KHZ, cpu, file("scaling_max_freq"));
    let now = file("scaling_cur_freq").filter(|text| text.parse::<u64>().is_ok());
    context.set_of_cpu(keys::FREQUENCY_KHZ, cpu, now);
}

fn idle(tree: &Tree, cpu: u32, context: &mut Context) {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let states = tree.numbered(&directory, "state").into_iter().filter_map(|state| {
        let file = |name: &str| tree.text(&format!("{directory}/state{state}/{name}"));
        let disabled = file("disable").is_some_and(|d| d != "0");
        // A name with a space, such as `MWAIT 0x10`, would look like two states.
        let name = file("name")?.replace(char::is_whitespace, "_");
        (!disabled).then_some(format!("{name}:{}", file("latency")?))
    });
    let states: Vec<String> = states.collect();
    context.set_of_cpu(keys::IDLE_STATES, cpu, Some(states.join(" ")));
}

fn heat(tree: &Tree, cpu: u32, context: &mut Context) {
    let count = |name: &str| {
        tree.number(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}"))
    };
    context.set_of_cpu(keys::CORE_THROTTLES, cpu, count("core_throttle_count"));
    context.set_of_cpu(keys::PACKAGE_THROTTLES, cpu, count("package_throttle_count"));
}

fn accounts(tree: &Tree, cpus: &BTreeSet<u32>, context: &mut Context) {
    let stat = tree.text("proc/stat").unwrap_or_default();
    let siblings: BTreeSet<u32> = cpus.iter().flat_map(|c| context.siblings(*c)).collect();
    for cpu in cpus.union(&siblings) {
        let Some(ticks) = ticks(&stat, *cpu) else { continue };
        context.set_of_cpu(keys::BUSY_TICKS, *cpu, Some(ticks.busy));
        context.set_of_cpu(keys::IDLE_TICKS, *cpu, Some(ticks.idle));
        if cpus.contains(cpu) {
            context.set_of_cpu(keys::STEAL_TICKS, *cpu, Some(ticks.steal));
        }
    }
}
