// SPDX-License-Identifier: GPL-2.0-or-later
//! The probes in which threads tell, hold up and preempt one another, and those that need something else (the driver,
//! a clock, cyclictest), for real on this machine.

mod collect;

use collect::notes::skip;
use collect::{Series, policy};
use probes::plan::{
    Async, Component, Cyclictest, Interface, Inversion, Ladder, Mechanism, Placement, Rhealstone,
    Rtc, SleepMethod,
};
use probes::{Doubt, Plan, Probe, Report, RunError};
use rt::Policy;
use sample::{Nanos, Responder};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One run at a time: threads of one real-time priority would measure each other.
static MACHINE: Mutex<()> = Mutex::new(());

fn measured(plan: &Plan) -> Result<(Vec<Series>, Report), RunError> {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = collect::measured(plan);
    for series in measured.iter().flat_map(|(all, _)| all).filter(|s| !s.samples.is_empty()) {
        let (count, median) = (series.samples.len(), series.latency_median());
        println!("{}: {count} samples, median {median}, {:?}", series.name, series.losses);
    }
    if let Ok((_, report)) = &measured {
        let locked = !report.doubts.iter().any(|d| matches!(d, Doubt::MemoryNotLocked { .. }));
        let faults = report.counters.get("page_faults");
        assert!(!locked || faults.is_none_or(|faults| *faults == 0), "{report:?}");
    }
    measured
}

fn plan(probe: Probe, policy: &str, cpus: &[u32]) -> Plan {
    Plan {
        probe,
        policy: policy.parse().unwrap(),
        cpus: cpus.to_vec(),
        pm_qos: false,
        program: None,
    }
}

/// Each number at most once, and nothing that cannot be.
fn assert_sound(series: &Series) {
    let numbers: Vec<u64> = series.samples.iter().map(|s| s.0).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{}: {numbers:?}", series.name);
    assert_eq!(series.losses.tainted, 0, "{}", series.name);
}

/// Whether this process may be a real-time task; else the calling test is skipped.
fn may_be_real_time() -> bool {
    let may = matches!(policy(), Policy::Fifo(_));
    if !may {
        skip("SCHED_FIFO is not permitted here");
    }
    may
}

const MECHANISMS: [Mechanism; 10] = [
    Mechanism::Condvar,
    Mechanism::Futex,
    Mechanism::Eventfd,
    Mechanism::Pipe,
    Mechanism::PosixSemaphore,
    Mechanism::SysvSemaphore,
    Mechanism::PosixQueue,
    Mechanism::SysvQueue,
    Mechanism::Signal,
    Mechanism::Sigwait,
];

/// CPUs that this process may use: one or two.
fn cpus() -> Vec<u32> {
    rt::allowed_cpus().unwrap().into_iter().take(2).collect()
}

fn events(count: u64) -> Probe {
    Probe::Async(Async {
        mechanisms: MECHANISMS.to_vec(),
        placements: vec![Placement::Same, Placement::Across],
        period: Nanos::from_millis(1),
        count,
    })
}

/// Every event of every series that was measured is a sample or a loss, and samples there are.
fn assert_whole(all: &[Series], not_measured: &[String], count: u64) {
    for series in all.iter().filter(|s| !not_measured.contains(&s.name)) {
        assert_sound(series);
        assert_eq!(series.events(), count, "{series:?}");
        assert!(!series.samples.is_empty(), "{series:?}");
    }
}

fn not_measured(doubts: &[Doubt]) -> Vec<String> {
    let name = |doubt: &Doubt| match doubt {
        Doubt::NotMeasured { series, .. } => Some(series.clone()),
        _ => None,
    };
    doubts.iter().filter_map(name).collect()
}

/// Every mechanism hands over every event, on one CPU and across. Only where there is one CPU, nothing is handed
/// across.
fn assert_all_hand_over(policy: &str, count: u64) {
    let (all, report) = measured(&plan(events(count), policy, &cpus())).unwrap();
    assert_eq!(all.len(), 2 * MECHANISMS.len());
    let missing = not_measured(&report.doubts);
    let lacking = if cpus().len() > 1 { 0 } else { MECHANISMS.len() };
    assert_eq!(missing.len(), lacking, "{missing:?}");
    assert!(missing.iter().all(|name| name.ends_with("-across")), "{missing:?}");
    assert_whole(&all, &missing, count);
}

#[test]
fn every_mechanism_hands_over_every_event_on_one_cpu_and_across() {
    if may_be_real_time() {
        assert_all_hand_over("fifo:80", 50);
    }
}

#[test]
fn without_priorities_the_events_are_handed_over_all_the_same() {
    assert_all_hand_over("other", 10);
}

#[test]
fn across_cpus_takes_one_that_is_not_measured_and_without_one_the_others_are_still_measured() {
    let (all, report) = measured(&plan(events(3), "other", &cpus()[..1])).unwrap();
    let missing = not_measured(&report.doubts);
    let lacking = if cpus().len() > 1 { 0 } else { MECHANISMS.len() };
    assert_eq!(missing.len(), lacking, "{missing:?}");
    assert!(missing.iter().all(|name| name.ends_with("-across")));
    assert_whole(&all, &missing, 3);
}

#[test]
fn system_v_objects_are_gone_when_the_probe_is() {
    let of_this_process = || {
        ["sem", "msg", "shm"].map(|kind| {
            std::fs::read_to_string(format!("/proc/sysvipc/{kind}"))
                .map_or(0, |t| t.lines().count())
        })
    };
    let before = of_this_process();
    measured(&plan(events(2), "other", &cpus())).unwrap();
    assert_eq!(of_this_process(), before);
}

fn components(count: u64) -> Probe {
    Probe::Rhealstone(Rhealstone {
        components: vec![
            Component::TaskSwitch,
            Component::Preemption,
            Component::InterruptLatency,
            Component::SemaphoreShuffle,
            Component::DeadlockBreaking,
            Component::MessagePassing,
        ],
        interfaces: vec![Interface::Sysv, Interface::Posix],
        count,
    })
}

#[test]
fn every_component_of_rhealstone_is_measured_or_said_to_be_not() {
    if !may_be_real_time() {
        return;
    }
    let (all, report) = measured(&plan(components(2_500), "fifo:80", &cpus())).unwrap();
    let missing = not_measured(&report.doubts);
    assert!(missing.iter().all(|name| name == "interrupt_latency"), "{missing:?}");
    assert_whole(&all, &missing, 2_500);
    let suffix = if missing.is_empty() { "" } else { "_of_5" };
    for interface in ["sysv", "posix"] {
        let figure = format!("rhealstones_per_second_{interface}{suffix}");
        assert!(report.counters[&figure] > 0, "{:?}", report.counters);
    }
}

#[test]
fn rhealstone_without_priorities_is_refused_with_a_policy_that_has_them() {
    let refused = measured(&plan(components(1), "other", &cpus())).unwrap_err();
    assert!(matches!(refused, RunError::Plan { part: "policy", .. }));
    assert!(refused.to_string().contains("fifo:80"));
    let too_low = measured(&plan(components(1), "fifo:1", &cpus())).unwrap_err();
    assert!(too_low.to_string().contains("priority 3 or above"), "{too_low}");
}

#[test]
fn a_plain_mutex_lets_the_wait_grow_with_the_middle_thread_and_inheritance_bounds_it() {
    if !may_be_real_time() {
        return;
    }
    let middle = [Nanos::from_millis(1), Nanos::from_millis(4), Nanos::from_millis(16)];
    let held = Nanos::from_micros(200);
    let probe = Inversion { middle: middle.to_vec(), held, count: 9 };
    let (all, _) = measured(&plan(Probe::Inversion(probe), "fifo:80", &cpus())).unwrap();
    let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["plain-1ms", "pi-1ms", "plain-4ms", "pi-4ms", "plain-16ms", "pi-16ms"]);
    assert_whole(&all, &[], 9);
    let medians: Vec<Nanos> = all.iter().map(Series::latency_median).collect();
    let (plain, pi): (Vec<Nanos>, Vec<Nanos>) =
        medians.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert!(plain.is_sorted_by(|a, b| a < b), "{plain:?}");
    // Unbounded: the wait holds all of the middle thread's work. Bounded: it holds none of it, however long.
    for ((plain, pi), middle) in plain.iter().zip(&pi).zip(&middle) {
        assert!(*plain >= *middle + held, "{plain} with {middle}");
        assert!(*pi >= held && pi < plain, "{pi} beside {plain}");
    }
    assert!(pi[2] < plain[0].max(middle[1]), "{pi:?} beside {plain:?}");
}

fn clock(timerfd: bool, rate_hz: u32) -> Probe {
    Probe::Rtc(Rtc { rate_hz, count: 100, timerfd })
}

#[test]
fn a_timerfd_at_the_rate_of_the_clock_loses_nothing_uncounted() {
    let (all, _) = measured(&plan(clock(true, 2048), "other", &cpus())).unwrap();
    assert_eq!(all[0].name, "timerfd-2048hz");
    assert_whole(&all, &[], 100);
    assert_eq!(all[0].samples[0].1, Nanos(488_281));
}

#[test]
fn the_real_time_clock_is_measured_or_the_timerfd_is_offered() {
    match measured(&plan(clock(false, 2048), "other", &cpus())) {
        Ok((all, report)) => {
            let missing = not_measured(&report.doubts);
            assert!(missing.iter().all(|name| name == "interrupt-2048hz"), "{missing:?}");
            assert_whole(&all, &missing, 100);
        }
        Err(e) => assert!(e.to_string().contains("timerfd"), "{e}"),
    }
    let odd = measured(&plan(clock(false, 1000), "other", &cpus())).unwrap_err();
    assert!(odd.to_string().contains("power of two"), "{odd}");
}

#[test]
fn the_ladder_is_measured_or_it_is_said_how_to_load_the_driver() {
    let responders = vec![Responder::Hardirq, Responder::Task];
    let probe = Probe::Ladder(Ladder { period: Nanos::from_millis(1), count: 100, responders });
    match measured(&plan(probe, "fifo:80", &[0])) {
        Ok((all, _)) => {
            for series in &all {
                assert_sound(series);
                assert_eq!(series.events(), 100, "{series:?}");
            }
        }
        Err(e) => assert!(matches!(e, RunError::Unavailable { .. }), "{e}"),
    }
}

#[test]
fn every_method_of_cyclictest_gives_its_loops() {
    if !Path::new("/usr/bin/cyclictest").exists() {
        return skip("no cyclictest; apt install rt-tests");
    }
    let mut refused = Vec::new();
    let methods = [SleepMethod::ClockNanosleep, SleepMethod::Nanosleep, SleepMethod::PosixTimer];
    for method in methods {
        let probe = Cyclictest { methods: vec![method], period: Nanos::from_millis(1), count: 50 };
        let plan = plan(Probe::Cyclictest(probe), "other", &[0]);
        let (all, report) = match measured(&plan) {
            Ok(measured) => measured,
            Err(e @ RunError::Unavailable { .. }) => {
                eprintln!("without {method:?}: {e}");
                refused.push(e.to_string());
                continue;
            }
            Err(e) => panic!("{method:?}: {e}"),
        };
        assert_sound(&all[0]);
        // Periods that passed while it was late are no loops.
        assert_eq!(all[0].events() - all[0].losses.superseded, 50, "{method:?}");
        assert!(report.counters["cpu_time_ns"] > 0 && report.counters["memory_peak_kib"] > 0);
    }
    if refused.len() == methods.len() {
        skip(&refused.join("; "));
    }
}
