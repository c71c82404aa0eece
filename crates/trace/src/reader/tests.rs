// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use proptest::prelude::*;
use sample::{Stamp, Stretches};

fn at(ns: u64) -> At {
    At::new(Stamp::from_ns(ns), Insns(ns))
}

fn frame(stack: u32, index: u8, address: u64) -> wire::Event {
    wire::Event::Frame { at: at(0), stack: StackId(stack), index, address }
}

fn enter(watch: u8, taken: u64) -> wire::Event {
    wire::Event::Enter { at: at(5), watch, taken, stack: None }
}

fn preempt(stack: u32, opened: Option<StackId>) -> wire::Event {
    wire::Event::Preempt { at: at(7), count: 0, stack: Some(StackId(stack)), opened }
}

#[test]
fn stacks_are_kept_and_named_when_a_stretch_ends() {
    let mut r = Reader::new(&[]);
    for (id, index, address) in [(1, 0, 0xa), (1, 1, 0xb), (2, 0, 0xc)] {
        assert_eq!(r.read(&frame(id, index, address)), None);
    }
    let mut what = |event| r.read(&event).map(|e| e.what);
    let (one, two) = (Place::Stack(StackId(1)), Place::Stack(StackId(2)));
    let (place, opened) = (Place::Address(0xa), Place::Unknown);
    let masked = what(wire::Event::Masked { at: at(5), by: 0xa });
    assert_eq!(masked, Some(What::Irqs { masked: true, place, opened }));
    let (stack, opener) = (Some(StackId(2)), Some(StackId(1)));
    let unmasked = what(wire::Event::Unmasked { at: at(6), stack, opened: opener });
    assert_eq!(unmasked, Some(What::Irqs { masked: false, place: two, opened: one }));
    let enabled = what(preempt(2, opener));
    assert_eq!(enabled, Some(What::Preempt { count: 0, place: two, opened: one }));
    assert_eq!(r.stacks().frames(StackId(1)), [0xa, 0xb]);
    assert_eq!(r.losses(), ReaderLosses::default());
}

#[test]
fn a_look_into_stretches_says_into_which_and_where_the_cpu_was() {
    let mut r = Reader::new(&[]);
    assert_eq!(r.read(&frame(1, 0, 0xa)), None);
    let kinds: Stretches = [Stretch::IrqsOff, Stretch::Unscheduled].into_iter().collect();
    let (unscheduled, stack) = (Insns(900), Some(StackId(1)));
    let looked = wire::Event::Inside { at: at(7), kinds, unscheduled, stack };
    let looked = r.read(&looked).expect("an event");
    let place = Place::Stack(StackId(1));
    let inside =
        What::Inside { irqs_off: true, preempt_off: false, unscheduled: Some(Insns(900)), place };
    assert_eq!(looked.what, inside);
}

#[test]
fn a_watch_is_known_by_its_place_in_the_list_given() {
    let schedule = (0u8..).zip(WATCHED).find(|(_, w)| w.role == Role::Schedule);
    let index = schedule.expect("in the list").0;
    let mut r = Reader::new(&[Watch { index: 0, address: 1 }, Watch { index, address: 2 }]);
    let e = r.read(&enter(1, 7)).expect("an event");
    let place = Place::Unknown;
    assert_eq!(
        e.what,
        What::Enter { role: Role::Schedule, address: 2, taken: 7, place, opened: place }
    );
    assert_eq!(r.read(&enter(2, 7)), None);
    assert_eq!(r.losses().unknown_watches, 1);
}

#[test]
fn a_request_is_lazy_where_it_is_made_by_the_flag_for_that() {
    let index = (0u8..).zip(WATCHED).find(|(_, w)| w.role == Role::NeedResched);
    let watches = [Watch { index: index.expect("in the list").0, address: 1 }];
    let taken = |flag: Option<u64>, given: u64| {
        let mut reader = Reader::new(&watches).with_lazy_flag(flag);
        match reader.read(&enter(0, given)).expect("an event").what {
            What::Enter { taken, .. } => taken,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([3, 4].map(|given| taken(Some(4), given)), [0, LAZY]);
    assert_eq!([4, 5].map(|given| taken(Some(5), given)), [0, LAZY]);
    assert_eq!([0, 4].map(|given| taken(None, given)), [0, 0]);
}

#[test]
fn a_call_that_closes_a_stretch_has_what_opened_it() {
    let watch = |role: Role| {
        let index = (0u8..).zip(WATCHED).find(|(_, w)| w.role == role).expect("in the list").0;
        Watch { index, address: 1 }
    };
    let mut r = Reader::new(&[watch(Role::BhEnable), watch(Role::BhDisable)]);
    assert_eq!(r.read(&frame(1, 0, 0xa)), None);
    let of = |e: Option<Event>| match e.expect("an event").what {
        What::Enter { taken, opened, .. } => (taken, opened),
        other => panic!("{other:?}"),
    };
    let opener = Some(StackId(1));
    let close =
        |opened| wire::Event::Close { at: at(5), watch: 0, taken: 0x200, stack: None, opened };
    let place = Place::Stack(StackId(1));
    assert_eq!(of(r.read(&close(opener))), (0x200, place));
    assert_eq!(of(r.read(&close(None))), (0x200, Place::Unknown));
    assert_eq!(of(r.read(&enter(1, 1 << 32 | 0x200))), (1 << 32 | 0x200, Place::Unknown));
    assert_eq!(r.losses(), ReaderLosses::default());
}

#[test]
fn an_undefined_stack_a_stray_frame_and_time_going_back_are_counted() {
    let mut r = Reader::new(&[]);
    let e = r.read(&preempt(9, None)).expect("an event");
    let nowhere = Place::Unknown;
    assert_eq!(e.what, What::Preempt { count: 0, place: nowhere, opened: nowhere });
    assert_eq!(r.read(&frame(2, 1, 0xb)), None);
    let leave = wire::Event::Leave { at: at(4), user: true, to: 0 };
    assert_eq!(r.read(&leave), None);
    assert_eq!(r.gap(3).map(|e| e.what), Some(What::Gap));
    let lost = ReaderLosses {
        backwards: 1,
        unknown_stacks: 1,
        unknown_watches: 0,
        stray_frames: 1,
        dropped: 3,
    };
    assert_eq!(r.losses(), lost);
}

#[test]
fn a_disturbance_has_its_number_of_timers() {
    let mut r = Reader::new(&[]);
    let disturbance = wire::Event::Disturbance { at: at(1), timers: 64, level: 0, raised: 0 };
    let what = r.read(&disturbance).map(|event| event.what);
    assert_eq!(what, Some(What::Disturbance { timers: 64 }));
}

#[test]
fn a_task_has_the_name_without_the_zeros_behind_it() {
    let mut r = Reader::new(&[]);
    let (task, name) = (TaskId(0xffff_8880), *b"irq/7-onset\0\0\0\0\0");
    assert_eq!(r.read(&wire::Event::Task { task, pid: 77, prio: 49, name }), None);
    let known = Task { pid: 77, prio: 49, name: "irq/7-onset".into() };
    assert_eq!(r.tasks().get(task), Some(&known));
}

proptest! {
    #[test]
    fn no_event_makes_the_reader_panic_and_events_never_go_back(
        bytes in prop::collection::vec((1u8..=23, any::<[u8; 31]>(), any::<u32>()), 0..200)
    ) {
        let mut r = Reader::new(&[]);
        let mut last: Option<At> = None;
        for (kind, rest, blank) in bytes {
            let mut b = [0; 32];
            b[0] = kind;
            b[1..].copy_from_slice(&rest);
            b[3] = 0;
            // Few kinds use every byte.
            (1..32).filter(|at| blank >> at & 1 == 1).for_each(|at| b[at] = 0);
            let Ok(event) = wire::Event::decode(&b) else { continue };
            if let Some(e) = r.read(&event) {
                prop_assert!(last.is_none_or(|l| e.at.since(l).is_some()));
                last = Some(e.at);
            }
        }
    }
}
