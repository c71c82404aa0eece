// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests the explanations of tasks that were due at an instant.
use super::*;

const IDLE: TaskId = TaskId(0);
const DUE: What = What::Due { number: 0 };
const DONE: What = What::Done { number: 0 };
const TIMER: Cause = Cause::Interrupt(Interrupt { entry: Some(ASM_TIMER), vector: None });

fn explained_due(events: &[(u64, What)]) -> Explanation {
    let mut history = History::new(1_000);
    events.iter().for_each(|&(ns, what)| history.push(Event { at: at(ns), what }));
    history.explain_due(0, &tasks()).expect("it goes on")
}

/// The timer's interrupt from `ns` on: the entry, and the count.
fn timer(ns: u64) -> [(u64, What); 3] {
    let count = 0x1_0000;
    [(ns, irqs(true, 0)), (ns + 2, enter(Role::Interrupt, 0, 0)), (ns + 20, preempt(count, 0))]
}

/// The wake-up of the responder's task in an interrupt, and all until it reads its clock, from `ns` on.
fn wakes(ns: u64) -> [(u64, What); 10] {
    [
        (ns, enter(Role::WakeUp, RESPONDER.0, 0)),
        (ns + 10, enter(Role::NeedResched, 0, 0)),
        (ns + 30, preempt(0, 0)),
        (ns + 40, preempt(1, 0)),
        (ns + 40, enter(Role::Schedule, 0, 0)),
        (ns + 60, enter(Role::SwitchTo, RESPONDER.0, 0)),
        (ns + 70, run(RESPONDER)),
        (ns + 80, preempt(0, 0)),
        (ns + 85, irqs(false, 0)),
        (ns + 100, TO_USER),
    ]
}

/// What comes from `ns` on when [`wakes`] is what happens.
fn after_wake_up(exit: u64) -> Vec<(Stage, Cause, u64)> {
    vec![
        (Stage::WakeUp, TIMER, 10),
        (Stage::NeedResched, TIMER, 20 + exit),
        (Stage::Schedule, Cause::Scheduler, 20),
        (Stage::Schedule, Cause::Switch, 10),
        (Stage::Resumed, Cause::Switch, 10),
        (Stage::Resumed, Cause::Responder, 20),
        (Stage::User, Cause::Responder, 40),
    ]
}

#[test]
fn a_sleeper_waits_for_its_timer_and_its_timers_interrupt_and_then_as_any_responder() {
    let mut events =
        vec![(0, What::Run { task: IDLE, pid: 0 }), (0, preempt(1, 0)), (10, irqs(false, 0))];
    events.push((100, DUE));
    events.extend(timer(130));
    events.extend(wakes(200));
    events.push((340, DONE));
    let e = explained_due(&events);
    assert_eq!((e.task, e.beginning), (Some(RESPONDER), Beginning::Due));
    let mut expected = vec![
        (Stage::Line, Cause::Timer, 30),
        (Stage::Entry, Cause::Entry, 2),
        (Stage::Entry, TIMER, 68),
    ];
    expected.extend(after_wake_up(10));
    assert_eq!(parts(&e), expected);
    assert_eq!(e.latency().time, Nanos(240));
}

/// The load has interrupts off from 10 to 80. They are on again until the timer's interrupt comes at `entry`.
fn masked_until_80(entry: u64) -> Vec<(Stage, Cause, u64)> {
    let unmasked = What::Irqs { masked: false, place: on(2), opened: on(1) };
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(true, 3)), (50, DUE)];
    events.push((80, unmasked));
    events.extend(timer(entry));
    events.extend(wakes(300));
    events.push((500, DONE));
    parts(&explained_due(&events))
}

#[test]
fn masked_interrupts_are_blamed_where_the_timer_waits_for_them_and_not_where_it_comes_later() {
    let pending = masked_until_80(81);
    let expected = [(Stage::Line, Cause::IrqsOff(on(1)), 30), (Stage::Line, Cause::Entry, 1)];
    assert_eq!(pending[..2], expected);
    let later = masked_until_80(200);
    assert_eq!(later[0], (Stage::Line, Cause::Timer, 150));
}

#[test]
fn a_task_that_is_busy_when_it_is_due_is_the_cause_until_it_sleeps_or_is_preempted() {
    let mut events =
        vec![(0, run(RESPONDER)), (0, preempt(0, 0)), (10, irqs(false, 0)), (20, TO_USER)];
    events.push((100, DUE));
    // It waits for somebody, meanwhile the load runs, and the idle task.
    events.extend([
        (150, enter(Role::Schedule, 0, 0)),
        (160, run(LOAD)),
        (160, preempt(0, 0)),
        (170, TO_USER),
        (300, enter(Role::WakeUp, RESPONDER.0, 0)),
        (310, enter(Role::Schedule, 0, 0)),
        (320, run(RESPONDER)),
        (330, preempt(0, 0)),
        (330, TO_USER),
        (400, DONE),
    ]);
    let e = explained_due(&events);
    assert_eq!(
        parts(&e),
        [
            (Stage::User, Cause::Responder, 50),
            (Stage::User, Cause::Scheduler, 10),
            (Stage::User, Cause::Task(LOAD), 140),
            (Stage::User, Cause::Kernel(LOAD, Place::Unknown), 10),
            (Stage::User, Cause::Scheduler, 10),
            (Stage::User, Cause::Switch, 10),
            (Stage::User, Cause::Responder, 70),
        ]
    );
}

#[test]
fn a_task_that_was_woken_before_it_was_due_waits_for_the_cpu_and_not_for_its_next_timer() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(1, 4)), (10, irqs(false, 0))];
    events.push((20, enter(Role::WakeUp, RESPONDER.0, 0)));
    events.push((100, DUE));
    events.extend([
        (200, preempt(0, 0)),
        (200, preempt(1, 0)),
        (200, enter(Role::Schedule, 0, 0)),
        (220, run(RESPONDER)),
        (230, preempt(0, 0)),
        (240, TO_USER),
    ]);
    // It sleeps for an instant that has passed: its timer comes at once.
    events.extend(timer(300));
    events.extend([(330, enter(Role::WakeUp, RESPONDER.0, 0)), (340, preempt(0, 0))]);
    events.extend([(350, irqs(false, 0)), (350, TO_USER), (400, DONE)]);
    let e = explained_due(&events);
    assert_eq!(parts(&e)[0], (Stage::WakeUp, Cause::PreemptOff(on(4)), 100));
    assert!(!e.causes().contains_key(&Cause::Timer), "{:?}", parts(&e));
}

#[test]
fn a_task_that_another_one_wakes_waits_for_that_one() {
    let mut events =
        vec![(0, run(HOLDER)), (0, preempt(0, 0)), (10, irqs(false, 0)), (20, TO_USER)];
    events.push((100, DUE));
    events.push((180, irqs(true, 0)));
    events.extend(wakes(200));
    events.push((330, DONE));
    let e = explained_due(&events);
    assert_eq!(parts(&e)[0], (Stage::Handler, Cause::Task(HOLDER), 100));
    assert!(!e.causes().contains_key(&Cause::Unexplained), "{:?}", parts(&e));
}

#[test]
fn a_timer_that_a_thread_serves_waits_for_that_thread_from_its_own_wake_up_on() {
    let mut events = vec![(0, run(LOAD)), (0, preempt(0, 0)), (10, irqs(false, 0)), (20, TO_USER)];
    events.push((100, DUE));
    events.extend(timer(100));
    events.extend([
        (140, enter(Role::WakeUp, HOLDER.0, 0)),
        (150, preempt(0, 0)),
        (160, irqs(false, 0)),
        (160, TO_USER),
        (400, enter(Role::Schedule, 0, 0)),
        (420, run(HOLDER)),
        (430, preempt(0, 0)),
    ]);
    events.extend(wakes(500));
    events.push((700, DONE));
    let e = explained_due(&events);
    let of_entry: Vec<_> = parts(&e).into_iter().filter(|part| part.0 == Stage::Entry).collect();
    assert_eq!(
        of_entry,
        [
            (Stage::Entry, Cause::Entry, 2),
            (Stage::Entry, TIMER, 58),
            (Stage::Entry, Cause::Task(LOAD), 240),
            (Stage::Entry, Cause::Scheduler, 20),
            (Stage::Entry, Cause::Switch, 10),
            (Stage::Entry, Cause::Task(HOLDER), 70),
        ]
    );
}

#[test]
fn what_is_missing_for_a_task_that_was_due_is_named() {
    let mut history = History::new(10);
    history.push(Event { at: at(5), what: DUE });
    assert_eq!(history.explain_due(0, &tasks()), Err(Unexplainable::NotDone(0)));
    assert_eq!(history.explain_due(1, &tasks()), Err(Unexplainable::NoTrigger(1)));
}

fn any_event() -> impl Strategy<Value = What> {
    let task = || prop_oneof![Just(LOAD), Just(RESPONDER), Just(HOLDER), Just(IDLE)];
    let role = prop_oneof![Just(Role::Interrupt), Just(Role::Schedule), Just(Role::NeedResched)];
    let counts = prop_oneof![Just(0u32), Just(1), Just(0x100), Just(0x1_0001)];
    prop_oneof![
        any::<bool>().prop_map(|masked| irqs(masked, 1)),
        counts.prop_map(|count| preempt(count, 2)),
        task().prop_map(run),
        task().prop_map(|task| enter(Role::WakeUp, task.0, 0)),
        role.prop_map(|role| enter(role, 0, 0)),
        any::<bool>().prop_map(|user| What::Leave { user, to: 0 }),
        Just(What::Gap),
    ]
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_time_from_due_to_done_whatever_happens(
        before in prop::collection::vec((0u64..50, any_event()), 0..20),
        meanwhile in prop::collection::vec((0u64..50, any_event()), 0..60),
        last in 0u64..50,
    ) {
        let mut history = History::new(1_000);
        let mut now = 0;
        let mut push = |after: u64, what| {
            now += after;
            history.push(Event { at: at(now), what });
            now
        };
        for (after, what) in before {
            push(after, what);
        }
        let from = push(0, DUE);
        for (after, what) in meanwhile {
            push(after, what);
        }
        let to = push(last, DONE);
        let e = history.explain_due(0, &tasks()).expect("it goes on");
        let sum: Nanos = e.parts.segments().map(|part| part.length.time).sum();
        prop_assert_eq!((sum, e.latency().time), (Nanos(to - from), Nanos(to - from)));
    }
}
