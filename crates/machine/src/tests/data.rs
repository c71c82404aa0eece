// SPDX-License-Identifier: GPL-2.0-or-later
//! The files of the knobs, as data, and each knob read on a prepared machine.

use super::*;
use std::collections::BTreeSet;

/// What each knob with places is on the prepared machine. Of knobs that stand on the command line the next test asks.
const NOW: [(&str, &str); 58] = [
    ("sched.preempt", "full"),
    ("kernel.sched_rt_runtime_us", "950000"),
    ("kernel.timer_migration", "1"),
    ("sched.features", "PLACE_LAG NO_HRTICK NO_RT_PUSH_IPI"),
    ("sched.fair_server.runtime", "50000000"),
    ("sched.fair_server.period", "1000000000"),
    ("sched.ext_server.runtime", "50000000"),
    ("sched.ext_server.period", "1000000000"),
    ("priority.irq", "fifo:50"),
    ("priority.ksoftirqd", "other"),
    ("priority.ktimers", "fifo:1"),
    ("priority.rcuc", "fifo:4"),
    ("workqueue.cpumask", "f"),
    ("workqueue.cpumask.each", "f"),
    ("writeback.cpumask", "f"),
    ("rcu_normal", "0"),
    ("rcu_expedited", "0"),
    ("kernel.nmi_watchdog", "1"),
    ("kernel.watchdog_cpumask", "0-3"),
    ("kernel.hung_task_timeout_secs", "120"),
    ("kernel.printk", "4 4 1 7"),
    ("current_clocksource", "tsc"),
    ("vm.stat_interval", "1"),
    ("vm.swappiness", "60"),
    ("vm.dirty_ratio", "20"),
    ("vm.dirty_background_ratio", "10"),
    ("vm.dirty_bytes", "0"),
    ("vm.dirty_background_bytes", "0"),
    ("vm.dirty_writeback_centisecs", "500"),
    ("vm.dirty_expire_centisecs", "3000"),
    ("vm.compaction_proactiveness", "20"),
    ("vm.compact_unevictable_allowed", "1"),
    ("vm.zone_reclaim_mode", "0"),
    ("kernel.numa_balancing", "1"),
    ("transparent_hugepage.enabled", "always"),
    ("transparent_hugepage.defrag", "madvise"),
    ("ksm.run", "0"),
    ("cpuidle.state.disable", "0"),
    ("pm_qos_resume_latency_us", "0"),
    ("scaling_governor", "powersave (3×), performance (1×)"),
    ("scaling_min_freq", "800000"),
    ("energy_performance_preference", "balance_performance"),
    ("intel_pstate.no_turbo", "0"),
    ("smt.control", "on"),
    ("machinecheck.ignore_ce", "0"),
    ("machinecheck.check_interval", "300"),
    ("net.core.busy_poll", "0"),
    ("net.core.busy_read", "0"),
    ("net.threaded", "0"),
    ("net.napi_defer_hard_irqs", "0"),
    ("net.gro_flush_timeout", "0"),
    ("net.rps_cpus", "0"),
    ("net.xps_cpus", "3 (1×), c (1×)"),
    ("net.rx_usecs", "3"),
    ("net.adaptive_rx", "on"),
    ("irq.default_smp_affinity", "f"),
    ("irq.smp_affinity", "0-3 (2×), 2 (1×)"),
    ("resctrl", "MB:0=100 L3:0=fff"),
];

#[test]
fn every_file_of_knobs_is_in_the_command() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("knobs");
    let there: BTreeSet<String> = fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let known = crate::knob::FILES.iter().map(|(name, _)| format!("{name}.toml"));
    assert_eq!(known.collect::<BTreeSet<_>>(), there);
}

#[test]
fn a_key_that_nobody_knows_is_refused() {
    let text = "[[knob]]\nname = \"a\"\nkind = \"boot\"\nwhy = \"b\"\nsource = \"c\"\n";
    assert_eq!(crate::knob::parsed(text).unwrap().len(), 1);
    assert!(crate::knob::parsed(&format!("{text}value = \"d\"\n")).is_err());
}

#[test]
fn names_are_unique_and_those_that_a_knob_names_exist() {
    let names: BTreeSet<&str> = knobs().iter().map(|knob| knob.name.as_str()).collect();
    assert_eq!(names.len(), knobs().len());
    for knob in knobs() {
        for other in knob.needs.iter().chain(&knob.contradicts).chain(&knob.moves) {
            assert!(names.contains(other.as_str()), "{} names {other}", knob.name);
            assert_ne!(*other, knob.name);
        }
        assert!(knob.needs.iter().all(|other| !knob.contradicts.contains(other)), "{}", knob.name);
    }
}

#[test]
fn what_onset_proposes_is_whole_and_contradicts_nothing_else_that_it_proposes() {
    for knob in knobs().iter().filter(|knob| knob.proposes.is_some()) {
        let is_proposed = |name: &String| find(name).unwrap().proposes.is_some();
        assert!(knob.needs.iter().all(is_proposed), "{}", knob.name);
        assert!(!knob.contradicts.iter().any(is_proposed), "{}", knob.name);
        assert_ne!(knob.kind, KnobKind::Told, "{}", knob.name);
    }
}

#[test]
fn each_boot_parameter_and_sysctl_has_a_value_to_try_that_a_plan_takes() {
    let two = Cpus { measured: vec![1], housekeeping: vec![0] };
    let one = Cpus { measured: vec![0], housekeeping: Vec::new() };
    let booted = |knob: &&Knob| matches!(knob.kind, KnobKind::Boot | KnobKind::Sysctl);
    for knob in knobs().iter().filter(booted) {
        let trial = knob.trial(&two).unwrap_or_else(|| panic!("{} has no value", knob.name));
        Plan::default().with(&[trial], &two).expect("a knob with its value");
        assert!(knob.tries.is_none() || (knob.proposes.is_none() && !knob.flag), "{}", knob.name);
    }
    let trial = |name| find(name).unwrap().trial(&one);
    assert_eq!(trial("nohz_full").as_deref(), Some("nohz_full=0"));
    assert_eq!(trial("threadirqs").as_deref(), Some("threadirqs"));
    // No CPU is left that could keep house.
    assert_eq!(trial("irqaffinity"), None);
}

#[test]
fn each_kind_of_knob_has_its_places() {
    for knob in knobs() {
        let is_below = |start: &str| knob.paths.iter().all(|path| path.starts_with(start));
        let is_right = match knob.kind {
            KnobKind::Boot => knob.paths.is_empty() && knob.reboot,
            KnobKind::Sysctl => {
                knob.paths == [format!("/proc/sys/{}", knob.name.replace('.', "/"))]
            }
            KnobKind::Sysfs => is_below("/sys/") && !knob.paths.is_empty(),
            KnobKind::Debugfs => is_below("/sys/kernel/debug/") && !knob.paths.is_empty(),
            KnobKind::Procfs => is_below("/proc/") && !knob.paths.is_empty(),
            KnobKind::Priority => !knob.paths.is_empty() && !is_below("/"),
            KnobKind::Cgroup => knob.paths.is_empty(),
            KnobKind::Ethtool => !knob.paths.is_empty() && !is_below("/"),
            KnobKind::Told => knob.how.is_some(),
        };
        assert!(is_right, "{}", knob.name);
        assert_eq!(knob.how.is_some(), knob.kind == KnobKind::Told, "{}", knob.name);
        assert!(knob.reboot || !knob.irreversible, "{}", knob.name);
        assert!(knob.why.ends_with('.') && knob.why.len() > 20, "{}", knob.name);
        assert!(knob.source.contains(['/', '(']), "{}", knob.name);
        assert!(knob.from.is_none() || knob.until.is_none() || knob.from <= knob.until);
    }
}

#[test]
fn each_knob_is_read_on_a_prepared_machine() {
    let prepared = Prepared::new();
    let mut read = 0;
    for look in prepared.looks() {
        let name = look.knob.name.as_str();
        // A card may lack a setting of the others.
        if look.knob.paths.is_empty() || name == "net.rx_frames" {
            continue;
        }
        let want = NOW.iter().find(|(known, _)| *known == name).map(|(_, now)| *now);
        assert_eq!(look.now().as_deref(), want, "{name}: {:?}", look.state);
        read += 1;
    }
    assert_eq!(read, NOW.len());
}

#[test]
fn each_boot_parameter_is_read_on_the_command_line() {
    let prepared = Prepared::new();
    let boot: Vec<&Knob> = knobs().iter().filter(|knob| knob.kind == KnobKind::Boot).collect();
    assert!(boot.len() > 40);
    for knob in boot {
        if knob.name == "sched_proxy_exec" {
            continue;
        }
        let state = |line: &str| {
            prepared.put("/proc/cmdline", line);
            look(&prepared.system(), knob, &prepared.cpus()).now()
        };
        assert_eq!(state("ro quiet\n").as_deref(), Some("unset"), "{}", knob.name);
        assert_eq!(state(&format!("ro {}=7 quiet\n", knob.name)).as_deref(), Some("7"));
        assert_eq!(state(&format!("ro {}\n", knob.name)).as_deref(), Some("set"));
    }
}

#[test]
fn what_a_kernel_does_by_itself_is_not_asked_of_it() {
    let prepared = Prepared::new();
    let state = || look(&prepared.system(), find("threadirqs").unwrap(), &prepared.cpus()).state;
    assert!(!matches!(state(), State::NotHere(_)));
    prepared.put("/boot/config-7.3.0-amd64", "CONFIG_PREEMPT_RT=y\n");
    let State::NotHere(why) = state() else { panic!("the parameter is on PREEMPT_RT") };
    assert!(why.contains("CONFIG_PREEMPT_RT, and always does that"), "{why}");
}

#[test]
fn what_a_kernel_lacks_is_not_here_and_says_why() {
    let prepared = Prepared::new();
    let why = |name: &str| {
        let look = look(&prepared.system(), find(name).unwrap(), &prepared.cpus());
        match look.state {
            State::NotHere(why) => why,
            state => panic!("{name} is here: {state:?}"),
        }
    };
    assert!(why("sched_proxy_exec").contains("built without CONFIG_SCHED_PROXY_EXEC"));
    prepared.put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    assert!(why("sched.fair_server.runtime").contains("Linux 6.12 and later have it; this is 6.1"));
    fs::remove_file(prepared.path("/sys/kernel/mm/ksm/run")).unwrap();
    assert!(why("ksm.run").contains("there is no /sys/kernel/mm/ksm/run"));
    fs::remove_dir_all(prepared.path("/sys/kernel/debug")).unwrap();
    assert!(why("sched.preempt").contains("mount -t debugfs"));
    fs::remove_file(prepared.path("/proc/34/stat")).unwrap();
    assert!(why("priority.ktimers").contains("no kernel thread is called ktimers/"));
    prepared.put("/sys/devices/system/cpu/online", "0\n");
    assert!(why("nohz_full").contains("no CPU is left"));
}

#[test]
fn a_name_is_found_by_its_end_and_a_wrong_one_is_told_the_nearest() {
    assert_eq!(find("timer_migration").unwrap().name, "kernel.timer_migration");
    assert_eq!(find("nmi_watchdog").unwrap().kind, KnobKind::Boot);
    assert!(find("vm.stat_intervall").unwrap_err().contains("\"vm.stat_interval\""));
    assert!(find("cpumask").is_err());
}

/// The rows of the table in docs/tuning.md.
fn rows() -> Vec<String> {
    let row = |knob: &Knob| {
        let proposed = match (&knob.proposes, knob.kind) {
            (Some(value), _) => format!("`{value}`"),
            (None, KnobKind::Told) => "(told)".into(),
            (None, _) => String::new(),
        };
        let kernels = match (knob.from, knob.until) {
            (Some(from), None) => format!("from {from}"),
            (None, Some(until)) => format!("until {until}"),
            (Some(from), Some(until)) => format!("{from} to {until}"),
            (None, None) => String::new(),
        };
        let boot = if knob.irreversible { "boot, until reboot" } else { knob.kind.name() };
        format!(
            "| `{}` | {boot} | {proposed} | {kernels} | {} | {} |",
            knob.name, knob.why, knob.source
        )
    };
    knobs().iter().map(row).collect()
}

#[test]
fn the_table_of_the_documentation_has_every_knob_as_its_file_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tuning.md");
    let text = fs::read_to_string(path).unwrap();
    let there: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    let rows = rows();
    assert_eq!(there, rows, "the rows of docs/tuning.md have to be:\n{}", rows.join("\n"));
}
