// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks that every doubt is raised by a machine that differs from a sound one in one thing, and by no other machine.

use super::*;
use std::collections::BTreeMap;

/// The context of CPU 1 of a sound machine. Its sibling is CPU 3.
const SOUND: [(&str, &str); 23] = [
    (keys::ARCHITECTURE, "x86_64"),
    (keys::VIRTUALISATION, "none"),
    (keys::CPUS_ONLINE, "0-3"),
    (keys::CPUS_ALLOWED, "0-3"),
    (keys::AFFINITY, "0,2-3"),
    (keys::CPUS_ISOLATED, "1"),
    (keys::IRQS_ON_MEASURED, "none"),
    (keys::DEBUG_OPTIONS, "none"),
    (keys::RT_RUNTIME_US, "950000"),
    (keys::RT_PERIOD_US, "1000000"),
    (keys::RT_THROTTLED, "false"),
    (keys::RT_TASKS_TOP, "77 pipewire fifo:20"),
    (keys::CLOCKSOURCE, "tsc"),
    ("smt_siblings.cpu1", "1,3"),
    ("busy_ticks.cpu3", "1000"),
    ("idle_ticks.cpu3", "1000"),
    ("steal_ticks.cpu1", "5"),
    ("core_throttles.cpu1", "2"),
    ("frequency_khz.cpu1", "3000000"),
    ("governor.cpu1", "performance"),
    ("idle_states.cpu1", "POLL:0 C1:2 C6:133"),
    (keys::CPU_DMA_LATENCY_US, "10"),
    (keys::TAINT, "0"),
];

fn machine(changes: &[(&str, &str)]) -> Context {
    let all = SOUND.iter().chain(changes);
    Context::from(all.map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>())
}

/// The counters of an idle sibling, a second after [`SOUND`].
const LATER: [(&str, &str); 2] = [("busy_ticks.cpu3", "1001"), ("idle_ticks.cpu3", "1099")];

fn later(changes: &[(&str, &str)]) -> Context {
    machine(&[&LATER, changes].concat())
}

fn measured() -> Measured {
    Measured {
        cpus: vec![1],
        used: vec![1],
        policy: Policy::Fifo(80),
        spins: false,
        pm_qos: false,
        clock: Clock::Monotonic,
    }
}

fn codes(
    before: &[(&str, &str)],
    after: &[(&str, &str)],
    measured: &Measured,
) -> Vec<&'static str> {
    check(&machine(before), &later(after), measured).iter().map(Doubt::code).collect()
}

/// The doubts about a machine that has these changes both before and after measuring.
fn always(changes: &[(&str, &str)]) -> Vec<&'static str> {
    codes(changes, changes, &measured())
}

#[test]
fn a_sound_machine_raises_no_doubt() {
    assert!(always(&[]).is_empty());
}

#[test]
fn a_machine_that_says_nothing_raises_no_doubt() {
    assert!(check(&Context::default(), &Context::default(), &measured()).is_empty());
}

#[test]
fn what_the_machine_is_raises_its_doubt_and_no_other() {
    for (key, value, code) in [
        (keys::CPUS_ONLINE, "0,2-3", "cpu_offline"),
        (keys::CPUS_ALLOWED, "0", "cpu_not_allowed"),
        (keys::CPUS_ISOLATED, "2", "measured_not_isolated"),
        (keys::IRQS_ON_MEASURED, "24:eth0@rx@1", "irq_on_isolated"),
        (keys::DEBUG_OPTIONS, "KASAN LOCKDEP", "debug_kernel"),
        (keys::RT_TASKS_TOP, "9 rtkit fifo:99; 77 pipewire fifo:20", "real_time_rivals"),
        (keys::RT_TASKS_TOP, "9 rtkit fifo:80", "real_time_rivals"),
        (keys::RT_TASKS_TOP, "9 control deadline", "real_time_rivals"),
        (keys::CLOCKSOURCE, "hpet", "clocksource"),
        ("governor.cpu1", "powersave", "governor"),
        (keys::CPU_DMA_LATENCY_US, "2000000000", "deep_idle"),
    ] {
        assert_eq!(always(&[(key, value)]), [code], "{key}={value}");
    }
}

#[test]
fn what_changes_while_measuring_raises_its_doubt_and_no_other() {
    for (key, value, code) in [
        (keys::CPUS_ONLINE, "0", "cpu_offline"),
        (keys::RT_THROTTLED, "true", "rt_throttled"),
        ("busy_ticks.cpu3", "1030", "sibling_busy"),
        ("steal_ticks.cpu1", "6", "stolen"),
        ("core_throttles.cpu1", "3", "thermally_throttled"),
        ("frequency_khz.cpu1", "2000000", "frequency_changed"),
        ("frequency_khz.cpu1", "3200000", "frequency_changed"),
    ] {
        assert_eq!(codes(&[], &[(key, value)], &measured()), [code], "{key}={value}");
    }
}

#[test]
fn where_the_threads_ran_is_held_against_where_they_should_have() {
    for (used, expected) in [
        (vec![], vec!["cpu_not_used"]),
        (vec![1, 2], vec!["cpu_not_asked"]),
        (vec![0], vec!["cpu_not_used", "cpu_not_asked"]),
    ] {
        assert_eq!(codes(&[], &[], &Measured { used, ..measured() }), expected);
    }
}

#[test]
fn only_a_probe_that_spins_with_priority_may_be_throttled() {
    let spins = Measured { spins: true, ..measured() };
    assert_eq!(codes(&[], &[], &spins), ["rt_throttling"]);
    for unlimited in ["-1", "1000000"] {
        assert!(codes(&[(keys::RT_RUNTIME_US, unlimited)], &[], &spins).is_empty());
    }
    let ordinary = Measured { policy: Policy::Other(0), ..spins.clone() };
    assert!(!codes(&[], &[], &ordinary).contains(&"rt_throttling"));
    // Throttling that happened is no longer a mere possibility.
    assert_eq!(codes(&[], &[(keys::RT_THROTTLED, "true")], &spins), ["rt_throttled"]);
}

#[test]
fn what_was_throttled_long_ago_says_nothing_of_now() {
    assert!(always(&[(keys::RT_THROTTLED, "true")]).is_empty());
}

#[test]
fn any_real_time_task_is_above_an_ordinary_probe() {
    let ordinary = Measured { policy: Policy::Other(0), ..measured() };
    assert_eq!(codes(&[], &[], &ordinary), ["real_time_rivals"]);
}

#[test]
fn a_virtual_clock_knows_neither_speed_nor_sleep_nor_theft() {
    let virtual_time = Measured { clock: Clock::Virtual, ..measured() };
    let physical = [
        (keys::CLOCKSOURCE, "hpet"),
        ("governor.cpu1", "powersave"),
        (keys::CPU_DMA_LATENCY_US, "2000000000"),
        ("steal_ticks.cpu1", "60"),
        ("busy_ticks.cpu3", "1030"),
        ("frequency_khz.cpu1", "2000000"),
    ];
    assert!(codes(&[], &physical, &virtual_time).is_empty());
    assert_eq!(codes(&[(keys::DEBUG_OPTIONS, "KASAN")], &[], &virtual_time), ["debug_kernel"]);
}

#[test]
fn a_guest_may_keep_time_as_its_hypervisor_wants() {
    let guest = [(keys::VIRTUALISATION, "kvm"), (keys::CLOCKSOURCE, "kvm-clock")];
    assert!(always(&guest).is_empty());
    assert!(always(&[(keys::CLOCKSOURCE, "hpet"), (keys::ARCHITECTURE, "aarch64")]).is_empty());
}

#[test]
fn a_fixed_frequency_needs_no_governor_and_pm_qos_no_shallow_states() {
    let fixed = [
        ("governor.cpu1", "userspace"),
        ("frequency_min_khz.cpu1", "3000000"),
        ("frequency_max_khz.cpu1", "3000000"),
    ];
    assert!(always(&fixed).is_empty());
    let qos = Measured { pm_qos: true, ..measured() };
    assert!(codes(&[(keys::CPU_DMA_LATENCY_US, "2000000000")], &[], &qos).is_empty());
}

#[test]
fn a_cpu_isolated_by_a_cpuset_is_isolated() {
    let cpuset = [(keys::CPUS_ISOLATED, "none"), (keys::CPUS_ISOLATED_BY_CPUSET, "1")];
    assert!(always(&cpuset).is_empty());
    let with_irq = [cpuset[0], cpuset[1], (keys::IRQS_ON_MEASURED, "24:eth0@1")];
    assert_eq!(always(&with_irq), ["irq_on_isolated"]);
    // Nobody promised that a CPU is free of interrupts if it is not isolated.
    assert!(always(&[(keys::CPUS_ISOLATED, "none"), with_irq[2]]).is_empty());
}

#[test]
fn a_counter_that_went_back_is_no_doubt_and_no_panic() {
    let changes = [("steal_ticks.cpu1", "0"), ("busy_ticks.cpu3", "-9223372036854775808")];
    assert!(codes(&[], &changes, &measured()).is_empty());
}

/// One doubt of each kind.
fn all() -> Vec<Doubt> {
    let cpus = vec![1, 2];
    vec![
        Doubt::CpuOffline { cpus: cpus.clone() },
        Doubt::CpuNotAllowed { cpus: cpus.clone() },
        Doubt::CpuNotUsed { cpus: cpus.clone() },
        Doubt::CpuNotAsked { cpus: cpus.clone() },
        Doubt::MeasuredNotIsolated { cpus: cpus.clone(), isolated: vec![3] },
        Doubt::IrqOnIsolated { irqs: vec!["24:eth0@1".into()] },
        Doubt::DebugKernel { options: vec!["KASAN".into()] },
        Doubt::RtThrottling { runtime: Nanos(950_000_000), period: Nanos(1_000_000_000) },
        Doubt::RtThrottled,
        Doubt::RealTimeRivals { tasks: vec!["9 rtkit fifo:99".into()] },
        Doubt::Clocksource { clocksource: "hpet".into() },
        Doubt::SiblingBusy { cpu: 1, sibling: 3, percent: 40 },
        Doubt::Stolen { cpu: 1, stolen: Nanos(20_000_000) },
        Doubt::ThermallyThrottled { cpu: 1, core: 1, package: 2 },
        Doubt::FrequencyChanged { cpu: 1, before_khz: 3_000_000, after_khz: 2_000_000 },
        Doubt::Governor { governor: "powersave".into(), cpus },
        Doubt::DeepIdle { state: "C6".into(), exit_latency: Nanos(133_000) },
    ]
}

#[test]
fn every_doubt_explains_itself_and_reads_back_under_its_code() {
    for doubt in all() {
        let json = serde_json::to_value(&doubt).unwrap();
        assert_eq!(json["code"], doubt.code());
        assert_eq!(serde_json::from_value::<Doubt>(json).unwrap(), doubt);
        for text in [&doubt.symptom(), doubt.cause(), doubt.action()] {
            assert!(text.len() > 10 && !text.ends_with('.'), "{text}");
        }
    }
    assert!(Doubt::Stolen { cpu: 1, stolen: Nanos(20_000_000) }.symptom().contains("20 ms"));
}

#[test]
fn a_doubt_invalidates_only_where_something_else_was_measured_than_asked() {
    let codes: Vec<_> = all().iter().filter(|d| d.invalidates()).map(Doubt::code).collect();
    let expected =
        ["cpu_offline", "cpu_not_allowed", "cpu_not_used", "cpu_not_asked", "rt_throttled"];
    assert_eq!(codes, expected);
}

#[test]
fn a_machine_that_runs_another_mode_than_its_command_line_asks_for_is_contradicted() {
    let asked = (keys::COMMAND_LINE, "BOOT_IMAGE=/vmlinuz quiet preempt=none");
    let unknown = (keys::BOOT_WORDS_UNKNOWN, "BOOT_IMAGE=/vmlinuz");
    let mode = |mode| {
        [asked, unknown, (keys::PREEMPTION_MODE, mode), (keys::PREEMPTION_MODES, "full lazy")]
    };
    assert_eq!(always(&mode("lazy")), ["preemption_differs"]);
    assert!(always(&mode("none")).is_empty());
}
