// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::{Beginning, Blame, Cause, Explanation, Partition, StackId, Stage, TaskId};
use sample::Insns;

fn at(ns: u64) -> At {
    At::new(Stamp::from_ns(ns), Insns(ns))
}

fn irqs(masked: bool) -> What {
    What::Irqs { masked, place: Place::Unknown, opened: Place::Unknown }
}

fn preempt(count: u32) -> What {
    What::Preempt { count, place: Place::Unknown, opened: Place::Unknown }
}

fn enter(role: Role) -> What {
    What::Enter { role, address: 1, taken: 0, place: Place::Unknown, opened: Place::Unknown }
}

fn bound(events: &[(u64, What)]) -> Bound {
    let mut meter = BoundMeter::new();
    for &(ns, what) in events {
        meter.event(&Event { at: at(ns), what });
    }
    meter.bound()
}

fn run(pid: u32) -> What {
    What::Run { task: TaskId(pid.into()), pid }
}

#[test]
fn each_term_is_the_longest_of_its_kind_without_the_interrupt_in_it() {
    let b = bound(&[
        (0, run(1)),
        (0, preempt(0)),
        (0, irqs(false)),
        (100, preempt(1)),
        (130, irqs(true)),
        (130, enter(Role::Interrupt)),
        (135, preempt(0x1_0001)),
        (150, enter(Role::NeedResched)),
        (180, preempt(1)),
        (190, irqs(false)),
        (190, What::Leave { user: false, to: 0 }),
        (240, preempt(0)),
        (247, preempt(1)),
        (247, enter(Role::Schedule)),
        (260, irqs(true)),
        (280, run(2)),
        (300, irqs(false)),
        (310, preempt(0)),
        (400, preempt(0)),
    ]);
    // The stretches: 100 to 240 without 130 to 190; 240 to 247; 247 to 310; 260 to 310.
    let terms = [b.poid, b.paie, b.psd, b.st].map(|t| (t.ns.0, t.at_ns.0));
    assert_eq!(terms, [(80, 100), (7, 240), (63, 247), (50, 260)]);
    assert_eq!(b.interference_free_ns, Nanos(150));
    assert_eq!((b.interrupts_ns, b.bound_ns), (Some(Nanos(60)), Some(Nanos(210))));
}

/// The longest D_PAIE of a task that runs in the kernel from 100 on for 500 ns with both on, until it schedules.
fn paie(before: &[(u64, What)]) -> u64 {
    let first = [(0, run(1)), (0, preempt(0)), (0, irqs(false))];
    let last = [(100, preempt(0)), (600, preempt(1)), (600, enter(Role::Schedule))];
    let all = [&first, before, &last].concat();
    bound(&all).paie.ns.0
}

#[test]
fn only_a_request_that_stands_is_waited_for() {
    let asked = |flag| What::Enter {
        role: Role::NeedResched,
        address: 1,
        taken: flag,
        place: Place::Unknown,
        opened: Place::Unknown,
    };
    assert_eq!(paie(&[]), 0);
    assert_eq!(paie(&[(50, preempt(1)), (60, asked(0))]), 500);
    assert_eq!(paie(&[(50, preempt(1)), (60, asked(LAZY))]), 0);
    let scheduler = [(50, preempt(1)), (50, enter(Role::Schedule)), (60, irqs(true))];
    let by_scheduler = [&scheduler[..], &[(70, asked(0)), (80, irqs(false))]].concat();
    assert_eq!(paie(&by_scheduler), 0);
    let switched = [(70, run(2)), (75, asked(0)), (80, irqs(false))];
    assert_eq!(paie(&[&scheduler[..], &switched].concat()), 500, "after the switch");
}

fn explained(parts: &[(u64, Stage, Cause)]) -> Explanation {
    let mut partition = Partition::new(at(0));
    for (to, stage, cause) in parts {
        let blame = Blame { stage: *stage, cause: cause.clone(), inside: Vec::new() };
        assert_eq!(partition.until(at(*to), blame), Ok(()));
    }
    let (task, disturbances) = (Some(TaskId(1)), Vec::new());
    Explanation { trigger: 0, beginning: Beginning::Trigger, task, parts: partition, disturbances }
}

#[test]
fn the_part_that_is_held_against_the_bound_ends_with_the_switch() {
    let line = (10, Stage::Line, Cause::IrqsOff(Place::Unknown));
    let off = (20, Stage::NeedResched, Cause::PreemptOff(Place::Unknown));
    let scheduler = (25, Stage::Schedule, Cause::Scheduler);
    let resumed = (90, Stage::Resumed, Cause::Switch);
    let of = |parts: &[(u64, Stage, Cause)]| scheduling(&explained(parts));
    let [line, off, scheduler, resumed] = [&line, &off, &scheduler, &resumed].map(Clone::clone);
    let whole = [line.clone(), off, scheduler.clone(), resumed.clone()];
    assert_eq!(of(&whole), Ok(Nanos(25)));
    assert_eq!(of(&whole[..3]), Err(Unbounded::NotSwitched));
    let with = |stage, cause| of(&[line.clone(), (24, stage, cause), resumed.clone()]);
    let lock = Cause::Lock { holders: vec![], running: None, doing: Activity::Idle };
    assert_eq!(with(Stage::NeedResched, lock.clone()), Err(Unbounded::Lock));
    let task = Cause::Task(TaskId(2));
    assert_eq!(with(Stage::NeedResched, task.clone()), Err(Unbounded::Task));
    assert_eq!(with(Stage::Entry, Cause::Switch), Err(Unbounded::ThreadedHandler));
    assert_eq!(with(Stage::WakeUp, Cause::Unexplained), Err(Unbounded::Unexplained));
    let both = [(5, Stage::NeedResched, task), (6, Stage::NeedResched, lock.clone())];
    let both = [&both[..], std::slice::from_ref(&resumed)].concat();
    assert_eq!(of(&both), Err(Unbounded::Lock), "the first reason in their order");
    // Time after the switch does not belong to the scheduler.
    assert_eq!(of(&[scheduler, (90, Stage::Resumed, lock)]), Ok(Nanos(25)));
}

#[test]
fn a_meter_that_was_fed_with_less_than_an_answer_met_is_exceeded() {
    let before = [(0, run(1)), (0, irqs(false)), (0, preempt(0))];
    let stretch = [(100, preempt(1)), (180, preempt(0)), (190, preempt(0))];
    let seen = bound(&[&before[..], &stretch].concat());
    let met = explained(&[
        (80, Stage::Line, Cause::PreemptOff(Place::Unknown)),
        (90, Stage::Resumed, Cause::Switch),
    ]);
    let met = scheduling(&met).expect("nothing that the bound leaves out");
    assert!(!seen.is_exceeded_by(met), "{seen:?}");
    let less =
        bound(&[&before[..], &[(100, preempt(1)), (179, preempt(0)), (190, preempt(0))]].concat());
    assert!(less.is_exceeded_by(met), "{less:?}");
}

#[test]
fn interrupts_that_leave_no_time_have_no_bound() {
    let mut events = vec![(0, run(1)), (0, irqs(false)), (0, preempt(0))];
    for n in 0..2_000u64 {
        let at = 10 + n * 10_000;
        events.extend([
            (at, irqs(true)),
            (at, enter(Role::Interrupt)),
            (at + 9_999, irqs(false)),
            (at + 9_999, What::Leave { user: false, to: 0 }),
        ]);
    }
    events.push((20_000_010, preempt(1)));
    events.push((20_000_110, preempt(0)));
    let b = bound(&events);
    assert_eq!((b.interference_free_ns, b.bound_ns), (Nanos(100), None));
}

#[test]
fn each_term_has_who_began_it_and_where_the_cpu_was() {
    let on = |stack| Place::Stack(StackId(stack));
    let told = |masked, place, opened| What::Irqs { masked, place, opened };
    let counted = |count, place, opened| What::Preempt { count, place, opened };
    let look = |stack| What::Inside {
        irqs_off: true,
        preempt_off: true,
        unscheduled: None,
        place: on(stack),
    };
    let asks = What::Enter {
        role: Role::NeedResched,
        address: 1,
        taken: 0,
        place: Place::Unknown,
        opened: Place::Unknown,
    };
    let schedules = What::Enter {
        role: Role::Schedule,
        address: 1,
        taken: 0,
        place: on(3),
        opened: Place::Unknown,
    };
    let b = bound(&[
        (0, run(1)),
        (0, preempt(0)),
        (0, irqs(false)),
        (100, preempt(1)),
        (110, irqs(true)),
        (120, told(false, on(21), on(20))),
        (150, look(10)),
        (160, irqs(true)),
        (160, enter(Role::Interrupt)),
        (165, preempt(0x1_0001)),
        (170, look(11)),
        (180, preempt(1)),
        (190, irqs(false)),
        (190, What::Leave { user: false, to: 0 }),
        (200, asks),
        (240, counted(0, on(2), on(1))),
        (250, look(12)),
        (260, preempt(1)),
        (260, schedules),
        (270, irqs(true)),
        (280, look(13)),
        (290, run(2)),
        (300, told(false, on(5), on(4))),
        (310, preempt(0)),
        (400, preempt(0)),
    ]);
    let places = [b.poid, b.paie, b.psd, b.st].map(|term| (term.opened, term.inside));
    assert_eq!(places, [(on(1), on(10)), (on(2), on(12)), (on(3), on(13)), (on(4), on(13))]);
}
