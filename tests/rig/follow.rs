// SPDX-License-Identifier: GPL-2.0-or-later
//! The follower against what is known of the guest from elsewhere: it disturbs nothing, and what it says of the CPU is
//! so where the driver's own code shows it, and where the guest itself has looked.

use crate::modules::module_for;
use agent::Load;
use rig::{Bench, Calls, Ending, Follow, Following, Generator, Guest, Snapshot, Stimulus};
use sample::{Insns, Nanos, Observation, Responder, ResponderSet, Sample, Schedule, When};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use testbench::{Lab, those_here};
use trace::{Reader, ReaderLosses, What};
use wire::Event;

const ANSWER: [Responder; 2] = [Responder::Hardirq, Responder::Task];
const TRIGGERS: u64 = 300;
/// Hard interrupts in the preemption count (include/linux/preempt.h).
const HARDIRQ: u32 = 0x000f_0000;

/// A guest under load, and the plan by which its kernel is followed.
struct Subject {
    bench: Bench,
    guest: Guest,
    snapshot: (Snapshot, String),
    follow: Follow,
}

impl Subject {
    /// With the driver, where that is given its parameters, and with these modules.
    fn new(
        kernel: &str,
        parameters: &[&str],
        driver: Option<&str>,
        modules: Vec<PathBuf>,
    ) -> Subject {
        let lab = Lab::new();
        let bench = crate::bench(&lab);
        let mut guest = Guest::plain(&bench, kernel, Load::Mixed).expect("a kernel");
        guest.parameters = parameters.iter().map(ToString::to_string).collect();
        let contents = &mut guest.contents;
        contents.driver = driver.map(String::from);
        contents.task = driver.map(|_| agent::TaskProcess::Agent);
        contents.modules = modules;
        let snapshot = bench.snapshot(&guest, &|_| ()).expect("a snapshot");
        let path = bench.map(&guest, &snapshot).expect("a map");
        let bytes = std::fs::read(&path).expect("readable");
        let map = vmlinux::Map::from_bytes(bytes).expect("a map");
        let follow = Follow::new(&map, &path, Insns(1_000), Calls::All);
        Subject { bench, guest, snapshot, follow: follow.looking_inside(Insns(4_000)) }
    }

    /// Its answers to these triggers, with the follower or without it.
    fn run(&self, triggers: Generator, following: Option<Following>) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut observe = |observation| {
            if let Observation::Sample(sample) = observation {
                samples.push(sample);
            }
            ControlFlow::Continue(())
        };
        let stimulus = Stimulus::Triggers(triggers);
        let Subject { bench, guest, snapshot, .. } = self;
        let run = bench.measure(guest, &stimulus, snapshot, &mut observe, following, &|_| ());
        let outcome = run.expect("a run");
        assert_eq!(
            (outcome.ending, outcome.guest_ended, outcome.dropped),
            (Ending::Whole, Ok(()), 0)
        );
        samples
    }

    /// The same with the follower, and what that saw.
    fn run_followed(&self, triggers: Generator) -> (Vec<Sample>, Vec<Event>) {
        let mut events = Vec::new();
        let mut see = |event: &Event| events.push(*event);
        let following = Following { follow: &self.follow, see: &mut see };
        let samples = self.run(triggers, Some(following));
        (samples, events)
    }
}

fn generator(schedule: Schedule, responders: ResponderSet) -> Generator {
    Generator {
        when: When::Planned(schedule),
        high: Nanos::from_micros(500),
        grace: Nanos::from_millis(100),
        responders,
        disturbances: Vec::new(),
        work: None,
    }
}

/// A write to the data port, with what the follower says of the CPU there.
#[derive(Debug)]
struct Write {
    /// The pins before.
    before: u16,
    pins: u16,
    masked: bool,
    /// The preemption count.
    count: u32,
    /// The name of the task.
    running: String,
}

fn writes(follow: &Follow, events: &[Event]) -> Vec<Write> {
    let mut reader = Reader::new(&follow.watches).with_lazy_flag(follow.lazy);
    let mut writes = Vec::new();
    // Measuring begins in user space.
    let (mut masked, mut count, mut running, mut level) = (false, 0, String::new(), None);
    let mut looks = 0;
    for told in events {
        let Some(event) = reader.read(told) else { continue };
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
                assert!(
                    matches!(place, trace::Place::Stack(_)),
                    "a look finds something: {event:?}"
                );
                assert!(masked || !irqs_off, "only what is open is looked into: {event:?}");
                assert!(count != 0 || !preempt_off, "only what is open is looked into: {event:?}");
                looks += 1;
            }
            What::Trigger { level: now, .. } => level = Some(now),
            What::Pins { level: pins } => {
                let before = level.replace(pins).unwrap_or(pins);
                writes.push(Write { before, pins, masked, count, running: running.clone() });
            }
            _ => {}
        }
    }
    assert_eq!(reader.losses(), ReaderLosses::default());
    assert_ne!(looks, 0, "some stretch is longer than what is looked into");
    writes
}

/// As each is followed here: 7.3 as it comes, which is lazy.
fn parameters_of(kernel: &str) -> &'static [&'static str] {
    if kernel == "6.12" { &["preempt=full"] } else { &[] }
}

#[test]
fn a_followed_run_is_the_plain_one_and_the_state_of_the_cpu_is_what_the_driver_runs_in() {
    let (period, jitter) = (Nanos::from_millis(1), Nanos::from_micros(200));
    let schedule = Schedule::Periodic { phase: period, period, jitter, seed: 3, count: TRIGGERS };
    let triggers = generator(schedule, ANSWER.into_iter().collect());
    for kernel in those_here(&["6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let parameters = parameters_of(kernel);
        let subject = Subject::new(kernel, parameters, Some("responders=hardirq,task"), Vec::new());
        let plain = subject.run(triggers.clone(), None);
        assert_eq!(plain.len() as u64, TRIGGERS * ANSWER.len() as u64);
        let (samples, records) = subject.run_followed(triggers.clone());
        assert_eq!(samples, plain, "{kernel}: the follower disturbs nothing");

        let mut edges: BTreeMap<Responder, Vec<Write>> = BTreeMap::new();
        for write in writes(&subject.follow, &records) {
            let is_edge = |r: &Responder| (write.before ^ write.pins) >> r.pin() & 1 == 1;
            // The driver changes one pin at a time.
            if let Some(responder) = ANSWER.into_iter().find(is_edge) {
                edges.entry(responder).or_default().push(write);
            }
        }
        let hard = &edges[&Responder::Hardirq];
        assert_eq!(hard.len() as u64, TRIGGERS);
        for write in hard {
            assert!(write.masked, "{kernel}: a hard handler runs with interrupts off");
            assert_ne!(write.count & HARDIRQ, 0, "{kernel}: and in a hard interrupt");
        }
        let task = &edges[&Responder::Task];
        assert_eq!(task.len() as u64, TRIGGERS);
        for write in task {
            // It asks the driver, which changes the pins under a raw spinlock.
            let state = (write.masked, write.count, write.running.as_str());
            assert_eq!(state, (true, 1, "init"), "{kernel}");
        }
    }
}

/// Where test_flags.c looks.
struct Place {
    name: &'static str,
    /// Whether interrupts are masked there, and the preemption count.
    plain: (bool, u32),
    /// The same with PREEMPT_RT.
    rt: (bool, u32),
}

const fn place(name: &'static str, masked: bool, count: u32) -> Place {
    Place { name, plain: (masked, count), rt: (masked, count) }
}

impl Place {
    /// With PREEMPT_RT spinlocks and bottom halves change neither.
    const fn but_rt(self, masked: bool, count: u32) -> Place {
        Place { rt: (masked, count), ..self }
    }
}

/// In its order.
const PLACES: [Place; 41] = [
    place("in a thread", false, 0),
    place("interrupts off", true, 0),
    place("interrupts off twice", true, 0),
    place("interrupts restored once", true, 0),
    place("interrupts restored", false, 0),
    place("flags popped, masked", true, 0),
    place("flags popped", false, 0),
    place("spinlock", true, 1).but_rt(false, 0),
    place("spinlock released", false, 0),
    place("raw spinlock", true, 1),
    place("raw spinlock released", false, 0),
    place("preemption off", false, 1),
    place("preemption off twice", false, 2),
    place("interrupts and preemption off", true, 2),
    place("preemption on once", false, 1),
    place("preemption on", false, 0),
    place("bottom halves off", false, 0x200).but_rt(false, 0),
    place("bottom halves and preemption off", false, 0x201).but_rt(false, 1),
    // Preemption stays off until the softirqs are done.
    place("softirq", false, 0x101).but_rt(false, 0),
    place("softirq, interrupts off", true, 0x101).but_rt(true, 0),
    place("hard interrupt in a softirq", true, 0x1_0101).but_rt(true, 0x1_0000),
    place("softirq, interrupted", false, 0x101).but_rt(false, 0),
    place("bottom halves on", false, 0),
    place("migration off", false, 0),
    place("hard interrupt", true, 0x1_0000),
    place("interrupted", false, 0),
    place("hard interrupt, preemption off", true, 0x1_0001),
    place("preemption off, interrupted", false, 1),
    place("hard interrupt, bottom halves off", true, 0x1_0200).but_rt(true, 0x1_0000),
    place("bottom halves off, interrupted", false, 0x200).but_rt(false, 0),
    place("interrupt held back", true, 0),
    place("hard interrupt, held back until now", true, 0x1_0000),
    place("nothing held back", false, 0),
    // The kernel asks for that one with preemption off.
    place("interrupt by itself", true, 0x1_0001),
    place("interrupted by itself", false, 0),
    place("fault", false, 0),
    place("fault, interrupts off", true, 0),
    place("fault, preemption off", false, 1),
    place("fault served", false, 0),
    place("slept", false, 0),
    // With whatever the timer interrupts besides.
    place("hard interrupt anywhere", true, 0x1_0000),
];
const ANYWHERE: usize = PLACES.len() - 1;

/// What the guest read at one of these places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Statement {
    place: usize,
    masked: bool,
    count: u32,
}

/// Of the first write of a statement: it is that; interrupts are masked. Below them the place.
const HEAD: u16 = 0x80;
const MASKED: u16 = 0x40;
/// The first, and four with six bits of the count each.
const WRITES: usize = 5;

impl Statement {
    fn of(writes: &[Write]) -> Statement {
        let (head, rest) = writes.split_first().expect("a statement has five writes");
        let is_rest = |write: &Write| write.pins & (HEAD | MASKED) == 0;
        assert!(head.pins & HEAD != 0 && rest.iter().all(is_rest), "{writes:#?}");
        Statement {
            place: usize::from(head.pins & !(HEAD | MASKED)),
            masked: head.pins & MASKED != 0,
            count: rest.iter().rev().fold(0, |count, write| count << 6 | u32::from(write.pins)),
        }
    }
}

/// Each statement, and that at all of its writes the follower says the same.
fn statements(kernel: &str, writes: &[Write]) -> Vec<Statement> {
    let first = writes.iter().position(|w| w.pins & HEAD != 0).expect("the module tells");
    let of = |writes: &[Write]| {
        let statement = Statement::of(writes);
        let Statement { place, masked, count } = statement;
        let name = PLACES[place].name;
        for write in writes {
            let followed = (write.masked, write.count);
            assert_eq!(followed, (masked, count), "{kernel}: {name}: followed, and told");
        }
        statement
    };
    writes[first..].chunks_exact(WRITES).map(of).collect()
}

/// The module looks where it says: else agreeing with it would mean little.
fn assert_sound(kernel: &str, told: &[Statement]) {
    let is_rt = kernel.ends_with("-rt");
    for statement in told {
        let Place { name, plain, rt } = PLACES[statement.place];
        let known = if statement.place == ANYWHERE { HARDIRQ } else { u32::MAX };
        let expected = if is_rt { rt } else { plain };
        assert_eq!((statement.masked, statement.count & known), expected, "{kernel}: {name}");
    }
    for pair in told.windows(2) {
        let (from, to) = (pair[0].place, pair[1].place);
        let follows = to == (from + 1) % PLACES.len() || (from, to) == (ANYWHERE, ANYWHERE);
        assert!(follows, "{kernel}: {} and then {}", PLACES[from].name, PLACES[to].name);
    }
    let places: BTreeSet<usize> = told.iter().map(|statement| statement.place).collect();
    assert_eq!(places.len(), PLACES.len(), "{kernel}: {places:?}");
}

#[test]
fn the_follower_says_of_interrupts_and_of_the_preemption_count_what_the_guest_itself_reads() {
    for kernel in those_here(&["6.1", "6.1-rt", "6.12", "6.12-rt", "7.3", "7.3-rt"]) {
        let parameters = parameters_of(kernel);
        let subject =
            Subject::new(kernel, parameters, None, vec![module_for(kernel, "test_flags")]);
        // Without the driver nobody has the interrupt of the one trigger: that is when to end.
        let end = Schedule::Explicit(vec![Nanos::from_millis(120)]);
        let (_, records) = subject.run_followed(generator(end, ResponderSet::default()));
        let told = statements(kernel, &writes(&subject.follow, &records));
        assert_sound(kernel, &told);

        let anywhere = told.iter().filter(|statement| statement.place == ANYWHERE);
        let interrupted: BTreeSet<u32> = anywhere.map(|s| s.count & !HARDIRQ).collect();
        // The load leaves nothing out: nothing off, preemption off, and on other kernels than PREEMPT_RT softirqs.
        let least = if kernel.ends_with("-rt") { 2 } else { 4 };
        assert!(interrupted.len() >= least, "{kernel}: {interrupted:x?}");
    }
}
