// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::cpu::Interrupt;
use crate::{At, Place, Reader, Role, StackId, WATCHED, What};
use proptest::prelude::*;
use sample::{Insns, Nanos, Stamp};

mod due;
mod served;
mod tick;

const ASM_COMMON: u64 = 0xffff_ffff_8200_0010;
const ASM_TIMER: u64 = 0xffff_ffff_8200_0020;
const LOAD: TaskId = TaskId(0x1000);
const RESPONDER: TaskId = TaskId(0x2000);
const HOLDER: TaskId = TaskId(0x3000);

fn at(ns: u64) -> At {
    At::new(Stamp::from_ns(ns), Insns(ns))
}

fn on(stack: u32) -> Place {
    if stack == 0 { Place::Unknown } else { Place::Stack(StackId(stack)) }
}

fn enter(role: Role, taken: u64, stack: u32) -> What {
    let address = if role == Role::CommonInterrupt { ASM_COMMON } else { ASM_TIMER };
    What::Enter { role, address, taken, place: on(stack), opened: Place::Unknown }
}

fn irqs(masked: bool, stack: u32) -> What {
    What::Irqs { masked, place: on(stack), opened: Place::Unknown }
}

fn preempt(count: u32, stack: u32) -> What {
    What::Preempt { count, place: on(stack), opened: Place::Unknown }
}

fn run(task: TaskId) -> What {
    What::Run { task, pid: (task.0 >> 12) as u32 }
}

const TRIGGER: What = What::Trigger { number: 0, level: 0 };
const TO_KERNEL: What = What::Leave { user: false, to: 0 };
const TO_USER: What = What::Leave { user: true, to: 0 };

/// The priorities: the load has 120, the responder 9, the holder 120.
fn tasks() -> Tasks {
    let mut reader = Reader::new(&[]);
    for (task, prio) in [(LOAD, 120), (RESPONDER, 9), (HOLDER, 120)] {
        let (pid, mut name) = ((task.0 >> 12) as u32, [0; 16]);
        name[0] = b'a';
        reader.read(&wire::Event::Task { task, pid, prio, name });
    }
    reader.tasks().clone()
}

fn explained(pin: u8, events: &[(u64, What)]) -> Explanation {
    let mut history = History::new(1_000);
    for &(ns, what) in events {
        history.push(Event { at: at(ns), what });
    }
    history.explain(0, pin, &tasks()).expect("an answer")
}

/// The stage, the cause and the length of each part.
fn parts(e: &Explanation) -> Vec<(Stage, Cause, u64)> {
    let part =
        |s: crate::Segment<'_, Blame>| (s.label.stage, s.label.cause.clone(), s.length.time.0);
    e.parts.segments().map(part).collect()
}

#[test]
fn what_disturbed_is_told_from_shortly_before_the_trigger_to_the_answer_and_cuts_no_part() {
    let disturbance = |timers| What::Disturbance { timers };
    let own = own_interrupt(600_200);
    let mut events = vec![(1, disturbance(1)), (599_000, disturbance(2)), (600_000, TRIGGER)];
    events.extend(own);
    let answered = [(600_300, What::Pins { level: 1 })];
    let calm: Vec<_> = events.iter().chain(&answered).copied().collect();
    events.push((600_250, disturbance(3)));
    events.extend(answered);
    events.push((600_400, disturbance(4)));
    let disturbed = explained(0, &events);
    let told = |e: &Explanation| -> Vec<_> {
        e.disturbances.iter().map(|d| (d.from_ns, d.timers)).collect()
    };
    assert_eq!(told(&disturbed), [(-1_000, 2), (250, 3)]);
    assert_eq!(disturbed.parts, explained(0, &calm).parts);
    // The same holds if only that much is kept.
    let mut history = History::new(1_000);
    events.iter().for_each(|&(ns, what)| history.push(Event { at: at(ns), what }));
    history.forget_before(0, FELT_FOR);
    assert_eq!(told(&history.explain(0, 0, &tasks()).expect("an answer")), told(&disturbed));
}

/// The entry, the vector and the count of our own interrupt, from `ns` on.
fn own_interrupt(ns: u64) -> [(u64, What); 4] {
    [
        (ns, irqs(true, 0)),
        (ns + 2, enter(Role::CommonInterrupt, 39, 0)),
        (ns + 20, preempt(0x1_0000, 0)),
        (ns + 40, enter(Role::Handler, 0, 0)),
    ]
}

#[test]
fn a_hard_handler_waits_for_masked_interrupts_and_for_another_interrupt() {
    let timer = Interrupt { entry: Some(ASM_TIMER), vector: None };
    let mut events = vec![
        (0, run(LOAD)),
        (0, preempt(0, 0)),
        (10, irqs(true, 1)),
        (50, TRIGGER),
        (80, irqs(false, 2)),
        (80, enter(Role::Interrupt, 0, 0)),
        (80, irqs(true, 0)),
        (90, preempt(0x1_0000, 3)),
        (120, preempt(0, 4)),
        (130, irqs(false, 0)),
        (130, TO_KERNEL),
    ];
    events.extend(own_interrupt(140));
    events.push((200, What::Pins { level: 1 }));
    let e = explained(0, &events);
    assert_eq!(
        parts(&e),
        [
            (Stage::Line, Cause::IrqsOff(on(1)), 30),
            (Stage::Line, Cause::Interrupt(timer), 50),
            (Stage::Line, Cause::Entry, 10),
            (Stage::Entry, Cause::Entry, 40),
            (Stage::Handler, Cause::Handler, 20),
        ]
    );
    assert_eq!(e.task, None);
    assert_eq!(e.kinds()[&LatencyKind::Interrupt].time, Nanos(130));
}

#[test]
fn softirqs_that_are_left_to_their_thread_wait_for_the_tasks_that_run_meanwhile() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (20, TO_USER)];
    events.push((100, TRIGGER));
    events.extend(own_interrupt(105));
    events.extend([
        (160, preempt(0, 0)),
        (170, irqs(false, 0)),
        (170, TO_USER),
        (400, irqs(true, 3)),
        (400, enter(Role::Interrupt, 0, 0)),
        (410, preempt(0x1_0000, 0)),
        (450, preempt(0x100, 0)),
        (455, enter(Role::SoftirqAction, 0, 0)),
        (500, What::Pins { level: 4 }),
    ]);
    let e = explained(2, &events);
    assert_eq!(e.causes()[&Cause::Task(LOAD)].time, Nanos(230));
    assert!(!e.causes().contains_key(&Cause::Unexplained), "{:?}", parts(&e));
}

/// A task wakes up out of our interrupt. `count` keeps the kernel from switching until 400.
fn wake_up_of_a_task() -> Vec<(u64, What)> {
    let mut events = vec![
        (0, run(LOAD)),
        (0, preempt(0, 0)),
        (10, irqs(false, 0)),
        (20, TO_USER),
        (100, TRIGGER),
    ];
    events.extend(own_interrupt(105));
    events.extend([
        (200, enter(Role::WakeUp, RESPONDER.0, 5)),
        (220, enter(Role::NeedResched, 0, 0)),
        (250, preempt(0x100, 0)),
        (255, enter(Role::SoftirqAction, 0, 0)),
        (300, preempt(0, 6)),
        (310, preempt(1, 7)),
        (320, enter(Role::Schedule, 0, 8)),
        (360, enter(Role::SwitchTo, RESPONDER.0, 0)),
        (370, run(RESPONDER)),
        (380, irqs(false, 9)),
        (390, preempt(0, 9)),
        (430, TO_USER),
        (450, irqs(true, 0)),
        (480, What::Pins { level: 0x80 }),
    ]);
    events
}

#[test]
fn a_task_goes_through_every_stage_and_each_has_its_cause() {
    let e = explained(7, &wake_up_of_a_task());
    assert_eq!(e.task, Some(RESPONDER));
    assert_eq!(
        parts(&e),
        [
            (Stage::Line, Cause::Entry, 5),
            (Stage::Entry, Cause::Entry, 40),
            (Stage::Handler, Cause::Handler, 55),
            (Stage::WakeUp, Cause::Handler, 20),
            (Stage::NeedResched, Cause::Handler, 30),
            (Stage::NeedResched, Cause::Softirq(None), 5),
            (Stage::NeedResched, Cause::Softirq(Some(ASM_TIMER)), 45),
            // This is the exit of our own interrupt.
            (Stage::NeedResched, Cause::Handler, 20),
            (Stage::Schedule, Cause::Scheduler, 40),
            (Stage::Schedule, Cause::Switch, 10),
            (Stage::Resumed, Cause::Switch, 20),
            (Stage::Resumed, Cause::Responder, 40),
            (Stage::User, Cause::Responder, 50),
        ]
    );
    let kinds = e.kinds();
    assert_eq!(kinds[&LatencyKind::Interrupt].time, Nanos(45));
    assert_eq!(kinds[&LatencyKind::InterruptInversion].time, Nanos(50));
    assert_eq!(kinds[&LatencyKind::Wakeup].time, Nanos(70));
    assert_eq!(kinds[&LatencyKind::Other].time, Nanos(215));
}

#[test]
fn a_task_in_the_kernel_is_blamed_where_nothing_is_off_and_preemption_where_it_is() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (100, TRIGGER)];
    events.extend(own_interrupt(100));
    events.extend([
        (150, enter(Role::WakeUp, RESPONDER.0, 5)),
        (170, preempt(0, 0)),
        (180, irqs(false, 0)),
        (180, TO_KERNEL),
        (200, preempt(1, 11)),
        (260, preempt(0, 12)),
        (300, preempt(1, 13)),
        (300, enter(Role::Schedule, 0, 14)),
        (310, run(RESPONDER)),
        (320, preempt(0, 0)),
        (330, What::Pins { level: 0x40 }),
    ]);
    let e = explained(6, &events);
    let after_wake: Vec<_> = parts(&e).into_iter().filter(|p| p.0 == Stage::WakeUp).collect();
    assert_eq!(
        after_wake,
        [
            (Stage::WakeUp, Cause::Handler, 30),
            (Stage::WakeUp, Cause::Kernel(LOAD, on(5)), 20),
            (Stage::WakeUp, Cause::PreemptOff(on(11)), 60),
            (Stage::WakeUp, Cause::Kernel(LOAD, on(5)), 40),
        ]
    );
}

#[test]
fn a_task_that_goes_first_is_blamed_whatever_it_turns_off() {
    // Here the task of priority 120 answers, and the one of priority 9 runs.
    let mut events =
        vec![(0, run(RESPONDER)), (0, preempt(0, 0)), (10, irqs(false, 0)), (100, TRIGGER)];
    events.extend(own_interrupt(100));
    events.extend([
        (150, enter(Role::WakeUp, HOLDER.0, 5)),
        (160, preempt(0, 0)),
        (170, irqs(false, 0)),
        (170, TO_USER),
        (200, irqs(true, 1)),
        (230, irqs(false, 2)),
        (240, preempt(1, 3)),
        (250, preempt(0, 3)),
        (260, preempt(1, 0)),
        (260, enter(Role::Schedule, 0, 0)),
        (300, run(HOLDER)),
        (310, preempt(0, 0)),
        (320, What::Pins { level: 0x80 }),
    ]);
    let e = explained(7, &events);
    let task = e.causes()[&Cause::Task(RESPONDER)];
    assert_eq!(task.time, Nanos(90));
    assert_eq!(e.causes().get(&Cause::IrqsOff(on(1))), None);
}

#[test]
fn a_handler_that_is_not_watched_is_known_by_its_edge() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (90, TRIGGER)];
    events.extend(own_interrupt(100).into_iter().take(3));
    events.push((200, What::Pins { level: 1 }));
    let e = explained(0, &events);
    let entry = |ns| (Stage::Entry, Cause::Entry, ns);
    assert_eq!(parts(&e), [(Stage::Line, Cause::Entry, 10), entry(100)]);
}

#[test]
fn a_lock_is_blamed_with_its_chain_of_holders_and_what_they_did() {
    let mut events = vec![(0, run(HOLDER)), (0, preempt(0, 0)), (10, irqs(false, 0))];
    // The holder of the lock waits for a lock that the load holds.
    events.extend([
        (20, enter(Role::LockWait, LOAD.0 | 1, 1)),
        (30, run(LOAD)),
        (40, preempt(0, 0)),
        (100, TRIGGER),
    ]);
    events.extend(own_interrupt(100));
    events.extend([
        (150, enter(Role::WakeUp, RESPONDER.0, 5)),
        (160, preempt(0, 0)),
        (170, irqs(false, 0)),
        (170, TO_KERNEL),
        (180, run(RESPONDER)),
        (190, preempt(0, 0)),
        (200, enter(Role::LockOwner, HOLDER.0, 2)),
        (210, enter(Role::LockSleep, 0, 2)),
        (220, enter(Role::Schedule, 0, 3)),
        (230, run(LOAD)),
        (240, preempt(0, 0)),
        (270, enter(Role::WakeUp, HOLDER.0, 4)),
        (280, run(HOLDER)),
        (290, preempt(0, 0)),
        (350, enter(Role::WakeUp, RESPONDER.0, 4)),
        (360, run(RESPONDER)),
        (370, preempt(0, 0)),
        (400, What::Pins { level: 0x80 }),
    ]);
    let e = explained(7, &events);
    let lock = |holders: &[TaskId], running, doing| Cause::Lock {
        holders: holders.to_vec(),
        running: Some(running),
        doing,
    };
    let chain = [HOLDER, LOAD];
    let resumed: Vec<_> = parts(&e).into_iter().filter(|p| p.0 == Stage::Resumed).collect();
    assert_eq!(
        resumed,
        [
            (Stage::Resumed, Cause::Switch, 10),
            (Stage::Resumed, Cause::Responder, 30),
            (Stage::Resumed, Cause::Scheduler, 10),
            (Stage::Resumed, lock(&chain, LOAD, Activity::Switch), 10),
            (Stage::Resumed, lock(&chain, LOAD, Activity::Kernel(Place::Unknown)), 30),
            (Stage::Resumed, lock(&[HOLDER], LOAD, Activity::Kernel(on(4))), 10),
            (Stage::Resumed, lock(&[HOLDER], HOLDER, Activity::Switch), 10),
            (Stage::Resumed, lock(&[HOLDER], HOLDER, Activity::Kernel(Place::Unknown)), 60),
            (Stage::Resumed, Cause::Kernel(HOLDER, on(4)), 10),
            (Stage::Resumed, Cause::Switch, 10),
            (Stage::Resumed, Cause::Responder, 30),
        ]
    );
    assert_eq!(e.kinds()[&LatencyKind::PriorityInversion].time, Nanos(120));
}

#[test]
fn a_stack_that_is_told_at_the_end_of_a_stretch_is_blamed_for_all_of_it() {
    let unmasked = What::Irqs { masked: false, place: on(2), opened: on(1) };
    let mut events = vec![
        (0, run(LOAD)),
        (0, preempt(0, 0)),
        (10, What::Irqs { masked: true, place: Place::Address(0x5), opened: Place::Unknown }),
        (50, TRIGGER),
        (90, unmasked),
    ];
    events.extend(own_interrupt(90));
    events.push((200, What::Pins { level: 1 }));
    assert_eq!(parts(&explained(0, &events))[0], (Stage::Line, Cause::IrqsOff(on(1)), 40));
}

#[test]
fn a_stretch_that_began_before_what_is_kept_is_blamed_on_its_stack_whatever_is_nested_in_it() {
    let mut history = History::new(1_000);
    let unset = What::Preempt { count: 0, place: on(2), opened: on(1) };
    let mut events = vec![
        (0, run(LOAD)),
        (0, preempt(0, 0)),
        (0, irqs(false, 0)),
        (90, What::Preempt { count: 1, place: Place::Address(0x5), opened: Place::Unknown }),
        (100, TRIGGER),
    ];
    events.extend(own_interrupt(100));
    events.extend([
        (150, enter(Role::WakeUp, RESPONDER.0, 5)),
        (170, preempt(1, 0)),
        (180, irqs(false, 0)),
        (180, TO_KERNEL),
        (900, unset),
        (910, preempt(1, 13)),
        (910, enter(Role::Schedule, 0, 14)),
        (920, run(RESPONDER)),
        (930, preempt(0, 0)),
        (940, What::Pins { level: 0x40 }),
    ]);
    for (ns, what) in events {
        history.push(Event { at: at(ns), what });
        history.forget_before(0, Nanos(0));
    }
    let explained = history.explain(0, 6, &tasks()).expect("an answer");
    let longest = parts(&explained).into_iter().max_by_key(|part| part.2);
    assert_eq!(longest, Some((Stage::WakeUp, Cause::PreemptOff(on(1)), 720)));
}

#[test]
fn what_was_lost_is_unexplained_and_still_counted() {
    let mut events = wake_up_of_a_task();
    events.insert(9, (150, What::Gap));
    let e = explained(7, &events);
    assert_eq!(e.latency().time, Nanos(380));
    let sum: Nanos = e.causes().values().map(|l| l.time).sum();
    assert_eq!(sum, Nanos(380));
    assert!(e.causes().contains_key(&Cause::Unexplained));
}

#[test]
fn a_trigger_that_was_forgotten_or_not_answered_has_no_explanation() {
    let mut history = History::new(3);
    for (ns, what) in [(0, TRIGGER), (1, TO_USER), (2, TO_USER)] {
        history.push(Event { at: at(ns), what });
    }
    assert_eq!(history.explain(0, 7, &tasks()), Err(Unexplainable::NoEdge(7)));
    history.push(Event { at: at(3), what: What::Pins { level: 1 } });
    assert_eq!(history.explain(0, 0, &tasks()), Err(Unexplainable::NoTrigger(0)));
    history.forget_before(0, Nanos(0));
}

fn any_what() -> impl Strategy<Value = What> {
    let task = prop_oneof![Just(TaskId(0)), Just(LOAD), Just(RESPONDER), Just(HOLDER)];
    let counts = prop_oneof![Just(0u32), Just(1), Just(0x100), Just(0x201), Just(0x1_0001)];
    prop_oneof![
        (any::<bool>(), 0u32..4).prop_map(|(masked, s)| irqs(masked, s)),
        (counts, 0u32..4).prop_map(|(count, s)| preempt(count, s)),
        task.clone().prop_map(run),
        (0..WATCHED.len(), task, 0u32..4).prop_map(|(watch, task, s)| enter(
            WATCHED[watch].role,
            task.0,
            s
        )),
        any::<bool>().prop_map(|user| What::Leave { user, to: 0 }),
        (0u8..=64).prop_map(|timers| What::Disturbance { timers }),
        Just(What::Gap),
    ]
}

proptest! {
    #[test]
    fn the_parts_of_any_latency_add_up_to_it(
        before in prop::collection::vec((0u64..50, any_what()), 0..60),
        between in prop::collection::vec((0u64..50, any_what()), 0..200),
    ) {
        let (mut now, mut history) = (0, History::new(1_000));
        let mut push = |step: u64, what, history: &mut History| {
            now += step;
            history.push(Event { at: at(now), what });
            now
        };
        for (step, what) in before {
            push(step, what, &mut history);
        }
        let from = push(1, TRIGGER, &mut history);
        for (step, what) in between {
            push(step, what, &mut history);
        }
        let to = push(1, What::Pins { level: 4 }, &mut history);
        let e = history.explain(0, 2, &tasks()).expect("an answer");
        prop_assert_eq!(e.latency().time, Nanos(to - from));
        for sum in [
            e.stages().values().map(|l| l.time).sum::<Nanos>(),
            e.causes().values().map(|l| l.time).sum(),
            e.kinds().values().map(|sum| sum.time).sum(),
        ] {
            prop_assert_eq!(sum, Nanos(to - from));
        }
        let stages: Vec<_> = e.parts.segments().map(|s| s.label.stage).collect();
        prop_assert!(stages.is_sorted());
    }
}

#[test]
fn who_turned_off_what_is_still_off_at_the_answer_is_known_by_the_last_look() {
    let look = |irqs_off, stack| What::Inside {
        irqs_off,
        preempt_off: !irqs_off,
        unscheduled: None,
        place: on(stack),
    };
    let mut events = vec![
        (0, run(LOAD)),
        (0, preempt(0, 0)),
        // A stretch that was over before has told its opener.
        (2, preempt(1, 0)),
        (3, What::Preempt { count: 0, place: on(8), opened: on(9) }),
        (5, irqs(false, 0)),
        (10, preempt(0x200, 0)),
        (20, look(false, 3)),
        (50, TRIGGER),
    ];
    events.extend(own_interrupt(50));
    events.extend([
        (95, preempt(0x200, 0)),
        (96, irqs(false, 0)),
        (96, TO_KERNEL),
        (150, look(false, 4)),
        (200, preempt(0x300, 0)),
        (210, What::Pins { level: 4 }),
    ]);
    let e = explained(2, &events);
    let off: Vec<_> = parts(&e).into_iter().map(|(_, cause, _)| cause).collect();
    assert!(off.contains(&Cause::PreemptOff(on(4))), "{off:?}");
    assert!(!off.iter().any(|c| matches!(c, Cause::PreemptOff(p) if *p != on(4))), "{off:?}");
}
