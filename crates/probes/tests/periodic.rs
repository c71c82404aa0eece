// SPDX-License-Identifier: GPL-2.0-or-later
//! `periodic` on the machine that runs the tests: every period is a sample or a counted loss, whatever the machine
//! does.

mod collect;

use collect::notes::skip;
use collect::{Series, measured, measured_until, policy};
use probes::plan::{Overrun, Periodic, SleepMethod};
use probes::{Doubt, Plan, Probe, RunError};
use rt::Policy;
use sample::Nanos;
use std::sync::atomic::AtomicBool;

/// All but the interval timer, whose signal goes to the whole process: see itimer.rs.
const METHODS: [SleepMethod; 6] = [
    SleepMethod::Nanosleep,
    SleepMethod::ClockNanosleep,
    SleepMethod::Timerfd,
    SleepMethod::PosixTimer,
    SleepMethod::Precise,
    SleepMethod::Busy,
];

fn plan(methods: &[SleepMethod], period: Nanos, count: u64) -> Plan {
    let periodic = Periodic {
        methods: methods.to_vec(),
        periods: vec![period],
        count,
        overrun: Overrun::Skip,
        migrate: false,
        slack: Nanos(1),
    };
    let cpus = vec![rt::allowed_cpus().unwrap()[0]];
    Plan { probe: Probe::Periodic(periodic), policy: policy(), cpus, pm_qos: false, program: None }
}

fn periodic(plan: &mut Plan) -> &mut Periodic {
    match &mut plan.probe {
        Probe::Periodic(periodic) => periodic,
        _ => unreachable!(),
    }
}

fn accounts_for(series: &Series, count: u64) {
    assert_eq!(series.events(), count, "{}: {:?}", series.name, series.losses);
    assert_eq!(series.losses.tainted, 0, "{}", series.name);
    assert!(series.samples.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{}", series.name);
}

/// Page faults are none where memory could be locked.
fn no_faults(report: &probes::Report) {
    let locked = !report.doubts.iter().any(|d| matches!(d, Doubt::MemoryNotLocked { .. }));
    if locked {
        assert_eq!(report.counters["page_faults"], 0, "{report:?}");
    } else {
        println!("memory is not locked: {} page faults", report.counters["page_faults"]);
    }
}

#[test]
fn every_period_of_every_method_is_a_sample_or_a_counted_loss_and_no_page_fault_comes_between() {
    let (all, report) = measured(&plan(&METHODS, Nanos::from_millis(1), 200)).unwrap();
    let names: Vec<_> = all.iter().map(|series| series.name.as_str()).collect();
    let want = [
        "nanosleep-1ms",
        "clock_nanosleep-1ms",
        "timerfd-1ms",
        "posix_timer-1ms",
        "precise-1ms",
        "busy-1ms",
    ];
    assert_eq!(names, want);
    for series in &all {
        accounts_for(series, 200);
        assert_eq!(series.samples[0].0, 0, "the first period is kept");
    }
    no_faults(&report);
    assert!(report.counters.contains_key("overhead_ns"));
    println!(
        "{:?} {:?}",
        report,
        all.iter().map(|s| (&s.name, s.latency_median())).collect::<Vec<_>>()
    );
}

#[test]
fn events_of_a_grid_are_due_a_period_apart_whatever_became_of_them() {
    let period = Nanos(3_250_000);
    let methods = [SleepMethod::ClockNanosleep, SleepMethod::Timerfd, SleepMethod::PosixTimer];
    let (all, _) = measured(&plan(&methods, period, 20)).unwrap();
    for series in all {
        assert!(series.name.ends_with("-3.25ms"), "{}", series.name);
        let (_, first, _) = series.samples[0];
        assert!(series.samples.iter().all(|(n, at, _)| at.0 == first.0 + n * period.0));
    }
}

#[test]
fn periods_too_short_to_keep_are_superseded_and_counted_for_every_method() {
    // At 2 µs most are lost. OTHER, so that the machine stays usable.
    let grid = &METHODS[1..];
    let mut plan = plan(grid, Nanos(2_000), 20_000);
    plan.policy = Policy::Other(0);
    let (all, report) = measured(&plan).unwrap();
    for series in &all {
        accounts_for(series, 20_000);
    }
    let superseded: u64 = all.iter().map(|series| series.losses.superseded).sum();
    assert!(superseded > 0);
    assert_eq!(report.counters["skipped_periods"], superseded);
}

#[test]
fn catching_up_leaves_nothing_out() {
    let mut plan = plan(&METHODS[1..], Nanos(2_000), 5_000);
    plan.policy = Policy::Other(0);
    periodic(&mut plan).overrun = Overrun::CatchUp;
    for series in measured(&plan).unwrap().0 {
        assert_eq!((series.samples.len(), series.losses.total()), (5_000, 0), "{}", series.name);
    }
}

#[test]
fn stopping_at_an_overrun_ends_the_series_and_is_a_doubt() {
    let mut plan = plan(&[SleepMethod::ClockNanosleep], Nanos(1_000), 1_000_000);
    plan.policy = Policy::Other(0);
    periodic(&mut plan).overrun = Overrun::Stop;
    let (all, report) = measured(&plan).unwrap();
    assert!(all[0].events() < 1_000_000);
    assert!(all[0].losses.superseded > 0);
    assert!(report.doubts.contains(&Doubt::Stopped { series: "clock_nanosleep-1us".into() }));
}

#[test]
fn each_cpu_has_its_own_series_and_one_thread_that_migrates_has_one() {
    let cpus = rt::allowed_cpus().unwrap();
    if cpus.len() < 2 {
        return skip("one CPU only");
    }
    let mut plan = plan(&[SleepMethod::ClockNanosleep], Nanos::from_millis(1), 50);
    plan.cpus = cpus[..2].to_vec();
    assert_eq!(plan.threads(), 2);
    let (all, _) = measured(&plan).unwrap();
    assert_eq!(all.len(), 2);
    for (series, cpu) in all.iter().zip(&cpus) {
        assert_eq!(series.name, format!("clock_nanosleep-1ms-cpu{cpu}"));
        accounts_for(series, 50);
    }
    periodic(&mut plan).migrate = true;
    assert_eq!((plan.threads(), plan.series()), (1, vec!["clock_nanosleep-1ms".to_owned()]));
    accounts_for(&measured(&plan).unwrap().0[0], 50);
}

#[test]
fn a_deadline_task_is_measured_where_it_may_be_one_and_refused_with_the_remedy_where_not() {
    let mut plan = plan(&[SleepMethod::Deadline], Nanos::from_millis(10), 20);
    plan.cpus = rt::allowed_cpus().unwrap();
    assert_eq!(plan.series(), ["deadline-10ms"]);
    match measured(&plan) {
        Ok((all, _)) => accounts_for(&all[0], 20),
        Err(RunError::Refused(e)) => {
            println!("not measured: {e}");
            assert!(matches!(
                e,
                rt::Error::DeadlinePrivilege
                    | rt::Error::DeadlineAffinity { .. }
                    | rt::Error::DeadlineAdmission { .. }
            ));
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_has() {
    let plan =
        plan(&[SleepMethod::ClockNanosleep, SleepMethod::Timerfd], Nanos::from_millis(1), 100_000);
    let (all, _) = measured_until(&plan, &AtomicBool::new(true)).unwrap();
    assert_eq!((all[0].samples.len(), all[1].events()), (1, 0));
}

#[test]
fn plans_that_make_no_sense_are_refused_by_the_part_that_is_wrong() {
    let good = || plan(&[SleepMethod::ClockNanosleep], Nanos::from_millis(1), 1);
    let mut cases = Vec::new();
    let mut case = |part, change: fn(&mut Plan)| {
        let mut plan = good();
        change(&mut plan);
        cases.push((part, plan));
    };
    case("count", |p| periodic(p).count = 0);
    case("periods_ns", |p| periodic(p).periods = vec![Nanos(0)]);
    case("periods_ns", |p| periodic(p).periods = vec![Nanos(u64::MAX)]);
    case("probe", |p| periodic(p).periods = vec![]);
    case("probe", |p| periodic(p).methods = vec![SleepMethod::Timerfd; 2]);
    case("periods_ns", |p| {
        periodic(p).methods = vec![SleepMethod::Busy];
        periodic(p).periods = vec![Nanos::from_millis(401)];
    });
    case("cpus", |p| p.cpus = vec![]);
    case("cpus", |p| p.cpus = vec![1, 0]);
    case("periods_ns", |p| {
        periodic(p).methods = vec![SleepMethod::Itimer];
        periodic(p).periods = vec![Nanos(1_500)];
    });
    for (wanted, plan) in cases {
        match measured(&plan) {
            Err(RunError::Plan { part, .. }) => assert_eq!(part, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
    let mut plan = good();
    plan.cpus = vec![4000];
    assert!(matches!(
        measured(&plan),
        Err(RunError::Refused(rt::Error::CpuMissing { cpu: 4000, .. }))
    ));
}

#[test]
fn a_timer_slack_is_granted_and_one_of_nothing_is_refused() {
    // How much later the task wakes is seen in the rig, where no other timer comes between (tests/rig/probes.rs).
    let mut plan = plan(&[SleepMethod::Nanosleep], Nanos::from_millis(2), 50);
    plan.policy = Policy::Other(0);
    periodic(&mut plan).slack = Nanos::from_millis(1);
    let (all, _) = measured(&plan).unwrap();
    accounts_for(&all[0], 50);
    periodic(&mut plan).slack = Nanos(0);
    let refused = measured(&plan).unwrap_err();
    assert!(matches!(refused, RunError::Plan { part: "slack_ns", .. }), "{refused}");
}
