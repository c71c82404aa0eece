// SPDX-License-Identifier: GPL-2.0-or-later
//! Probes inside the guest, and what the rig sees of them from outside.

use agent::Load;
use probes::plan::{Gtod, Overrun, Periodic, Probe, ReadClock, SleepMethod};
use rig::{Ending, Guest, Outcome, ProbeRun, Stimulus};
use rt::Policy;
use sample::{Nanos, Observation, SeriesId};
use std::ops::ControlFlow;
use testbench::{Lab, have_kernels};

/// What a run gave.
struct Measured {
    observations: Vec<Observation>,
    outcome: Outcome,
}

impl Measured {
    /// Events that became a sample or a loss.
    fn counted(&self) -> u64 {
        let count = |o: &Observation| match o {
            Observation::Sample(_) => 1,
            Observation::Loss(_, _, count) => *count,
        };
        self.observations.iter().map(count).sum()
    }

    /// The latencies of a series, in the order of events.
    fn latencies(&self, of: SeriesId) -> Vec<Nanos> {
        let latency = |o: &Observation| match o {
            Observation::Sample(s) if s.series == of => Some(s.latency),
            _ => None,
        };
        self.observations.iter().filter_map(latency).collect()
    }
}

/// Runs a probe in a guest under `load`, to its end.
fn measure(load: Load, probe: &Probe, witness: bool) -> Measured {
    let measured = run(load, probe, witness);
    let Outcome { ending, guest_ended, dropped, .. } = &measured.outcome;
    assert_eq!((ending, guest_ended, dropped), (&Ending::Whole, &Ok(()), &0));
    measured
}

fn run(load: Load, probe: &Probe, witness: bool) -> Measured {
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let mut guest = Guest::plain(&bench, "6.12", load).expect("a kernel");
    guest.parameters = vec!["preempt=none".into()];
    let probe = probe.clone();
    let plan = probes::Plan {
        probe,
        policy: Policy::Fifo(80),
        cpus: vec![0],
        pm_qos: false,
        program: None,
    };
    let plan = serde_json::to_vec(&plan).expect("a plan serialises");
    let stimulus = Stimulus::Probe(ProbeRun {
        plan,
        expected: Nanos::from_millis(2_000),
        witness,
        functions: None,
    });
    let snapshot = bench.snapshot(&guest, &|_| ()).expect("a snapshot");
    let mut observations = Vec::new();
    let mut observe = |o| {
        observations.push(o);
        ControlFlow::Continue(())
    };
    let outcome =
        bench.measure(&guest, &stimulus, &snapshot, &mut observe, None, &|_| ()).expect("a run");
    Measured { observations, outcome }
}

/// 1 ms, 500 times.
fn periodic(method: SleepMethod) -> Probe {
    Probe::Periodic(Periodic {
        methods: vec![method],
        periods: vec![Nanos::from_millis(1)],
        count: 500,
        overrun: Overrun::Skip,
        migrate: false,
        slack: Nanos(1),
    })
}

/// The number of the system call of `clock_nanosleep`.
const CLOCK_NANOSLEEP: u8 = 230;
/// That of `sched_yield`, by which init begins each reading of the clock.
const SCHED_YIELD: u8 = 24;

#[test]
fn a_probe_measures_inside_the_guest_and_the_same_plan_gives_the_same_records() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let probe = periodic(SleepMethod::ClockNanosleep);
    for load in [Load::Idle, Load::Mixed] {
        let first = measure(load, &probe, false);
        assert_eq!(first.counted(), 500, "each period is a sample or a loss");
        let report = first.outcome.report.as_ref().expect("the probe's own words");
        assert_eq!(report.counters.get("page_faults"), Some(&0), "{report:?}");
        let again = measure(load, &probe, false);
        assert_eq!(again.observations, first.observations, "{load}");
        assert_eq!(again.outcome.report, first.outcome.report, "{load}");
    }
}

#[test]
fn one_saved_guest_serves_every_probe() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let clocks = vec![ReadClock::Monotonic, ReadClock::Tsc];
    let gtod = measure(Load::Idle, &Probe::Gtod(Gtod { clocks, count: 500 }), false);
    assert_eq!(gtod.latencies(SeriesId(0)).len(), 500);
    assert_eq!(gtod.latencies(SeriesId(1)).len(), 500);
    let periodic = measure(Load::Idle, &periodic(SleepMethod::Nanosleep), false);
    assert_eq!(periodic.outcome.snapshot, gtod.outcome.snapshot);
}

#[test]
fn a_witness_changes_nothing_also_in_a_busy_guest() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let probe = periodic(SleepMethod::ClockNanosleep);
    for load in [Load::Idle, Load::Mixed] {
        let alone = measure(load, &probe, false);
        let seen = measure(load, &probe, true);
        assert_eq!(seen.observations, alone.observations, "{load}");
        assert_eq!(seen.outcome.witness.clock, alone.outcome.witness.clock, "{load}");
        assert!(alone.outcome.witness.wakes.is_empty());
        assert!(seen.outcome.witness.wakes.len() > 500, "{load}");
    }
}

#[test]
fn the_witness_agrees_with_the_port_to_the_instruction() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let seen = measure(Load::Mixed, &periodic(SleepMethod::ClockNanosleep), true);
    let witness = seen.outcome.witness;
    // Init enters the first write of each reading of the clock right from sched_yield(). Only an interrupt can come
    // between, and as many instructions pass as time.
    let yields: Vec<_> = witness.wakes.iter().filter(|w| w.call == SCHED_YIELD).collect();
    assert_eq!((witness.clock.len(), yields.len()), (32, 32));
    let mut right_before = 0;
    for (point, before) in witness.clock.iter().zip(yields) {
        let between = point.insns.0.checked_sub(before.insns.0).expect("it returns before");
        assert_eq!(before.woke.ns() + between, point.begun.ns(), "{point:?}");
        right_before += usize::from(between == 1);
    }
    assert!(right_before >= 24, "{right_before} of 32");
}

#[test]
fn a_probes_latencies_are_those_that_the_witness_saw() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let seen = measure(Load::Idle, &periodic(SleepMethod::ClockNanosleep), true);
    let latencies = seen.latencies(SeriesId(0));
    assert_eq!(latencies.len(), 500);
    let witness = seen.outcome.witness;
    let line = witness.clock_line().expect("readings before and after");
    let sleeps = witness.wakes.iter().filter(|w| w.call == CLOCK_NANOSLEEP);
    let truths = sleeps.filter_map(|w| {
        let due = line.to_virtual(w.requested?)?;
        Some(w.woke.ns().checked_sub(due.ns()).expect("no thread wakes early"))
    });
    let truths: Vec<u64> = truths.collect();
    assert_eq!(truths.len(), 500);
    // The probe reads its clock some instructions after it woke, always as many.
    let errors: Vec<i64> =
        latencies.iter().zip(truths).map(|(said, truth)| said.0 as i64 - truth as i64).collect();
    let (least, most) = (errors.iter().min().expect("500"), errors.iter().max().expect("500"));
    let unsure = line.uncertainty().0 as i64;
    assert!(*least >= -unsure && *most < 200 + unsure, "{least} … {most}, sure to {unsure} ns");
    assert!(most - least <= 2, "{least} … {most}: the guest's clock does not run evenly");
}

#[test]
fn a_probe_that_cannot_run_says_why() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let clocks = vec![ReadClock::Monotonic];
    let too_much = Probe::Gtod(Gtod { clocks: clocks.clone(), count: 1 << 30 });
    let nothing = Probe::Gtod(Gtod { clocks, count: 0 });
    for (probe, words) in [(too_much, "give the guest more memory"), (nothing, "count: it is 0")] {
        let Measured { observations, outcome } = run(Load::Idle, &probe, false);
        assert!(observations.is_empty());
        match outcome.ending {
            Ending::Died(why) => assert!(why.contains(words), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Runs an experiment of one flavour at rest and returns its run.
fn run_experiment(lab: &Lab, flavour: &str, section: &str) -> testbench::Run {
    let head = format!(
        "title = \"t\"\ntarget = \"rig\"\nflavours = [\"{flavour}\"]\nloads = [\"idle\"]\n"
    );
    let path = lab.experiment(&format!("{head}{section}\n"));
    lab.onset(&["run", &path, "--json"]).exits(3).run()
}

#[test]
fn rhealstones_interrupt_is_of_the_line_and_every_round_of_every_component_is_answered() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[rhealstone]\ncount = 200";
    for flavour in ["6.12 preempt=none", "6.12 preempt=none highres=off nohz=off"] {
        let run = run_experiment(&lab, flavour, asked);
        for series in run.responders() {
            assert_eq!(run.series(series)["count"], 200, "{flavour}: {series}");
        }
        // The handler answers some hundred instructions after the line rises; the driver's timer took thousands to come
        // where only the tick drives timers.
        let least = run.series("interrupt_latency")["min_ns"].as_u64().expect("a minimum");
        assert!((100..2_000).contains(&least), "{flavour}: {least}");
        let counters = &run.file("manifest.json")["about"]["probe_counters"];
        assert!(
            counters["rhealstones_per_second_sysv"].as_u64().is_some(),
            "of all six: {counters}"
        );
        let again = run_experiment(&lab, flavour, asked);
        assert_eq!(again.text("samples_blake3"), run.text("samples_blake3"), "{flavour}");
    }
}

#[test]
fn the_time_from_the_clocks_interrupt_to_the_task_is_known_also_with_timers_of_the_tick() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    for flavour in ["6.12 preempt=none", "6.12 preempt=none highres=off nohz=off"] {
        let run = run_experiment(&lab, flavour, "[rtc]\ncount = 300");
        let names = ["rtc-2048hz", "interval-2048hz", "interrupt-2048hz"];
        assert_eq!(run.responders(), names);
        let [quickest, _, interrupt] = names.map(|name| run.series(name));
        assert_eq!((&quickest["count"], &interrupt["count"]), (&300.into(), &300.into()));
        // Both are of the same answers and of grids of one period: apart by what the quickest took, once that was
        // known.
        let apart = |key: &str| interrupt[key].as_u64().unwrap() - quickest[key].as_u64().unwrap();
        assert!(apart("min_ns") > 1_000, "{flavour}: the way from an interrupt to user space");
        let moved = &run.file("manifest.json")["about"]["probe_counters"]["phase_moved_ns"];
        let moved = moved.as_u64().expect("how far the anchor moved");
        assert!(apart("min_ns").abs_diff(apart("max_ns")) <= moved, "{flavour}: {moved}");
    }
}

#[test]
fn the_driver_measures_each_responder_by_its_own_timer_and_each_waits_for_those_that_wake_it() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[ladder]\ncount = 200";
    let run = run_experiment(&lab, "6.12 preempt=none", asked);
    let names = "hardirq threaded_irq tasklet bh_work work work_highpri kthread task";
    assert_eq!(run.responders().join(" "), names);
    let least = |name: &str| {
        let series = run.series(name);
        assert_eq!(series["count"], 200, "{name}: {series}");
        series["min_ns"].as_u64().expect("a minimum")
    };
    // The hard handler wakes all others. A task needs a switch, and a softirq does not.
    let [handler, softirq, task] = ["hardirq", "tasklet", "task"].map(least);
    assert!(100 < handler && handler < softirq && softirq < task, "{handler} {softirq} {task}");
    assert!(run.max("hardirq") < 2_000, "at rest");
    let again = run_experiment(&lab, "6.12 preempt=none", asked);
    assert_eq!(again.text("samples_blake3"), run.text("samples_blake3"));
}

#[test]
fn a_busy_wait_ends_within_a_turn_of_its_loop_where_sleeping_takes_a_tick() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let asked = "[periodic]\nmethods = [\"busy\", \"precise\", \"nanosleep\"]\nperiods = [\"2ms\"]\ncount = 100";
    let run = run_experiment(&lab, "6.12 preempt=none highres=off nohz=off", asked);
    assert!(run.median("busy-2ms") < 1_000, "{}", run.median("busy-2ms"));
    // A sleep that shall end before the period does is lengthened to the tick all the same.
    assert!(run.median("precise-2ms") > 1_000_000, "{}", run.median("precise-2ms"));
    assert!(run.median("nanosleep-2ms") > 1_000_000, "{}", run.median("nanosleep-2ms"));
}

#[test]
fn an_ordinary_task_sleeps_longer_by_its_timer_slack_and_a_real_time_task_has_none() {
    if !have_kernels(&["6.12"]) {
        return;
    }
    let lab = Lab::new();
    let late = |policy: &str, slack: &str| {
        let asked = format!(
            "[task]\npolicy = {policy:?}\n[periodic]\nmethods = [\"nanosleep\"]\nperiods = [\"3ms\"]\ncount = 100\nslack = {slack:?}"
        );
        run_experiment(&lab, "6.12 preempt=none", &asked).median("nanosleep-3ms")
    };
    let [least, usual, long] = ["1ns", "50us", "700us"].map(|slack| late("other:0", slack));
    // The kernel puts the timer at the end of the slack where no other timer comes before.
    assert!((49_000..=51_000).contains(&(usual - least)), "{least} and {usual}");
    assert!((690_000..=710_000).contains(&(long - least)), "{least} and {long}");
    let [none, ignored] = ["1ns", "700us"].map(|slack| late("fifo:80", slack));
    assert!(none.abs_diff(ignored) < 500, "{none} and {ignored}");
}
