// SPDX-License-Identifier: GPL-2.0-or-later
//! The follower against what is known of the guest from elsewhere: it disturbs nothing, and what it says of the CPU is so
//! where the driver's own code shows it.

use agent::Load;
use lab::{Lab, have_kernels};
use rig::{Calls, Contents, Ending, Follow, Following, Generator, Guest, Stimulus};
use sample::{Insns, Nanos, Observation, Record, Responder, Sample, Schedule, When};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{Place, Reader, ReaderLosses, What};

const ANSWER: [Responder; 2] = [Responder::Hardirq, Responder::Task];
const TRIGGERS: u64 = 300;
/// Softirqs and hard interrupts in the preemption count (include/linux/preempt.h).
const HARDIRQ: u32 = 0x000f_0000;

struct Seen {
    samples: Vec<Sample>,
    records: Vec<Record>,
    follow: Follow,
}

/// The same triggers twice, without the follower and with it.
fn twice(kernel: &str, parameters: &[&str]) -> (Vec<Sample>, Seen) {
    let lab = Lab::new();
    let bench = crate::bench(&lab);
    let guest = Guest {
        kernel: bench.cache().kernels().and_then(|k| k.get(kernel)).expect("a kernel"),
        parameters: parameters.iter().map(ToString::to_string).collect(),
        contents: Contents {
            agent: bench.parts().agent.clone(),
            load: Load::Mixed,
            driver: Some("responders=hardirq,task".into()),
            task: true,
            warm_up_ns: 200_000_000,
            ends_after_ns: None,
            modules: Vec::new(),
            programs: Vec::new(),
            files: Vec::new(),
        },
        memory_mib: 256,
        shift: 0,
        seed: 1,
        begin_after: Nanos(0),
    };
    let period = Nanos::from_millis(1);
    let jitter = Nanos::from_micros(200);
    let schedule = Schedule::Periodic { phase: period, period, jitter, seed: 3, count: TRIGGERS };
    let stimulus = Stimulus::Triggers(Generator {
        when: When::Planned(schedule),
        high: Nanos::from_micros(500),
        grace: Nanos::from_millis(100),
        responders: ANSWER.into_iter().collect(),
        disturbances: Vec::new(),
    });
    let snapshot = bench.snapshot(&guest, &|_| ()).expect("a snapshot");
    let path = bench.map(&guest, &snapshot).expect("a map");
    let bytes = std::fs::read(&path).expect("readable");
    let map = vmlinux::Map::from_bytes(bytes).expect("a map");
    let follow = Follow::new(&map, &path, Insns(1_000), Calls::All).looking_inside(Insns(4_000));
    let mut records = Vec::new();
    let run = |following: Option<Following>| {
        let mut samples = Vec::new();
        let mut observe = |observation| {
            if let Observation::Sample(sample) = observation {
                samples.push(sample);
            }
            ControlFlow::Continue(())
        };
        let run = bench.measure(&guest, &stimulus, &snapshot, &mut observe, following, &|_| ());
        let outcome = run.expect("a run");
        assert_eq!(
            (outcome.ending, outcome.guest_ended, outcome.dropped),
            (Ending::Whole, Ok(()), 0)
        );
        samples
    };
    let plain = run(None);
    let mut see = |record: &Record| records.push(*record);
    let samples = run(Some(Following { follow: &follow, see: &mut see }));
    (plain, Seen { samples, records, follow })
}

/// What the follower says at each edge of a responder's pin: interrupts masked, the preemption count, the task's name.
fn at_edges(seen: &Seen) -> BTreeMap<Responder, Vec<(bool, u32, String)>> {
    let mut reader = Reader::new(&seen.follow.watches);
    let mut edges: BTreeMap<_, Vec<_>> = BTreeMap::new();
    // Measuring begins in user space.
    let (mut masked, mut count, mut running, mut level) = (false, 0, String::new(), None);
    let mut looks = 0;
    for record in &seen.records {
        let Some(event) = reader.read(record) else { continue };
        match event.what {
            What::Irqs { masked: now, .. } => {
                assert_ne!(masked, now, "only changes are told: {event:?}");
                masked = now;
            }
            What::Preempt { count: now, .. } => {
                assert_ne!(count, now, "only changes are told: {event:?}");
                count = now;
            }
            What::Run { task, .. } => {
                running = reader.tasks().get(task).expect("named before it runs").name.to_string();
            }
            What::Inside { irqs_off, preempt_off, place, .. } => {
                assert!(matches!(place, Place::Stack(_)), "a look finds something: {event:?}");
                assert!(masked || !irqs_off, "only what is open is looked into: {event:?}");
                assert!(count != 0 || !preempt_off, "only what is open is looked into: {event:?}");
                looks += 1;
            }
            What::Trigger { level: now, .. } => level = Some(now),
            What::Pins { level: now } => {
                let changed = now ^ level.replace(now).unwrap_or(now);
                for responder in ANSWER.into_iter().filter(|r| changed >> r.pin() & 1 == 1) {
                    edges.entry(responder).or_default().push((masked, count, running.clone()));
                }
            }
            _ => {}
        }
    }
    assert_eq!(reader.losses(), ReaderLosses::default());
    assert_ne!(looks, 0, "the way to a task is longer than what is looked into");
    edges
}

#[test]
fn a_followed_run_is_the_plain_one_and_the_state_of_the_cpu_is_what_the_driver_runs_in() {
    for (kernel, parameters) in [("6.12", &["preempt=full"][..]), ("6.12-rt", &[])] {
        if !have_kernels(&[kernel]) {
            continue;
        }
        let (plain, seen) = twice(kernel, parameters);
        assert_eq!(plain.len() as u64, TRIGGERS * ANSWER.len() as u64);
        assert_eq!(seen.samples, plain, "{kernel}: the follower disturbs nothing");
        let edges = at_edges(&seen);
        let hard = &edges[&Responder::Hardirq];
        assert_eq!(hard.len() as u64, TRIGGERS);
        for (masked, count, _) in hard {
            assert!(*masked, "{kernel}: a hard handler runs with interrupts off");
            assert_ne!(count & HARDIRQ, 0, "{kernel}: and in a hard interrupt");
        }
        let task = &edges[&Responder::Task];
        assert_eq!(task.len() as u64, TRIGGERS);
        for (masked, count, name) in task {
            // It asks the driver, which changes the pins under a raw spinlock.
            assert_eq!((masked, count, name.as_str()), (&true, &1, "init"), "{kernel}");
        }
    }
}
