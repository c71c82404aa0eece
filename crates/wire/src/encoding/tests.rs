// SPDX-License-Identifier: GPL-2.0-or-later
//! What is encoded is decoded to the same, and nothing else is.

use super::*;
use alloc::vec;
use proptest::prelude::*;
use sample::{Answers, Observation, ResponderSet};

fn at() -> impl Strategy<Value = At> {
    any::<(u64, u64, u8)>().prop_map(|(ns, insns, cpu)| At {
        time: Stamp::from_ns(ns),
        insns: Insns(insns),
        cpu,
    })
}

fn stack() -> impl Strategy<Value = Option<StackId>> {
    any::<u32>().prop_map(StackId::of)
}

fn kind() -> impl Strategy<Value = Stretch> {
    prop::sample::select(Stretch::ALL.to_vec())
}

/// Of whoever watches the port, and of probes.
fn reported() -> impl Strategy<Value = Event> {
    let marks = prop::sample::select(Mark::ALL.to_vec());
    let losses = prop::sample::select(Loss::ALL.to_vec());
    prop_oneof![
        (at(), any::<u16>(), any::<u64>()).prop_map(|(at, level, number)| Event::Trigger {
            at,
            level,
            number
        }),
        (at(), any::<u16>(), any::<u64>()).prop_map(|(at, level, raised)| Event::Pins {
            at,
            level,
            raised
        }),
        (at(), any::<(u8, u16, u64)>()).prop_map(|(at, (timers, level, raised))| {
            Event::Disturbance { at, timers, level, raised }
        }),
        (at(), marks, any::<(u8, u16, u64)>()).prop_map(|(at, mark, (control, level, raised))| {
            Event::Mark { at, mark, control, level, raised }
        }),
        (at(), any::<(u8, u16, u64)>()).prop_map(|(at, (control, level, raised))| Event::End {
            at,
            control,
            level,
            raised
        }),
        any::<(u16, u64, u64, u64)>().prop_map(|(series, number, at, latency)| {
            let (at, latency) = (Stamp::from_ns(at), Nanos(latency));
            Event::Reading(Reading::Sample { series, number, at, latency })
        }),
        (any::<u16>(), losses, any::<u64>()).prop_map(|(series, loss, count)| Event::Reading(
            Reading::Loss { series, loss, count }
        )),
        at().prop_map(|at| Event::Reached { at }),
        Just(Event::ProbeEnd),
        (at(), any::<(u32, u64)>()).prop_map(|(at, (width, read))| {
            Event::Clock { at, width: Nanos(width.into()), read: Stamp::from_ns(read) }
        }),
        (at(), any::<(u8, u32, u64)>()).prop_map(|(at, (call, thread, time))| {
            let requested = (time != 0).then(|| Stamp::from_ns(time));
            Event::Call { at, call, thread, requested }
        }),
        (at(), any::<(u8, u32, u64)>()).prop_map(|(at, (call, thread, own))| Event::Wake {
            at,
            call,
            thread,
            own: Insns(own)
        }),
        (at(), any::<(u16, u32, bool, bool)>()).prop_map(|(at, (series, number, counts, ends))| {
            Event::Batch { at, series, number, counts, ends }
        }),
        any::<(u64, u64)>().prop_map(|(function, n)| Event::Spent { function, insns: Insns(n) }),
    ]
}

/// Of a follower.
fn followed() -> impl Strategy<Value = Event> {
    prop_oneof![
        (at(), 1u32.., any::<(u8, u64)>()).prop_map(|(at, stack, (index, address))| {
            Event::Frame { at, stack: StackId(stack), index, address }
        }),
        (at(), any::<u64>()).prop_map(|(at, by)| Event::Masked { at, by }),
        (at(), stack(), stack()).prop_map(|(at, stack, opened)| Event::Unmasked {
            at,
            stack,
            opened
        }),
        (at(), any::<u32>(), stack(), stack())
            .prop_map(|(at, count, stack, opened)| { Event::Preempt { at, count, stack, opened } }),
        any::<(u64, u32, u8, [u8; 16])>().prop_map(|(task, pid, prio, name)| {
            Event::Task { task: TaskId(task), pid, prio, name }
        }),
        (at(), any::<(u64, u32)>()).prop_map(|(at, (task, pid))| Event::Run {
            at,
            task: TaskId(task),
            pid
        }),
        (at(), 0..AIMED, any::<u64>(), stack())
            .prop_map(|(at, watch, taken, stack)| Event::Enter { at, watch, taken, stack }),
        (at(), any::<(u8, u32)>(), stack(), stack()).prop_map(
            |(at, (watch, taken), stack, opened)| Event::Close { at, watch, taken, stack, opened }
        ),
        (at(), kind(), stack()).prop_map(|(at, kind, stack)| Event::Aimed { at, kind, stack }),
        (at(), any::<(bool, u64)>()).prop_map(|(at, (user, to))| Event::Leave { at, user, to }),
        (at(), kind(), any::<(u64, u32)>()).prop_map(|(at, kind, (key, ordinal))| {
            let occurrence = Occurrence { kind, key, ordinal };
            Event::Stretch { opened: at.time, cpu: at.cpu, length: at.insns, occurrence }
        }),
        (at(), any::<(u8, u64)>(), stack()).prop_map(|(at, (kinds, insns), stack)| {
            let (kinds, unscheduled) = (Stretches::from_mask(kinds), Insns(insns));
            Event::Inside { at, kinds, unscheduled, stack }
        }),
        (at(), any::<(u64, u32)>()).prop_map(|(at, (address, stack_pointer))| {
            Event::Function { at, address, stack_pointer }
        }),
        (at(), any::<(u64, u32)>()).prop_map(|(at, (address, stack_pointer))| {
            Event::Return { at, address, stack_pointer }
        }),
    ]
}

proptest! {
    #[test]
    fn an_event_survives_its_encoding(event in prop_oneof![reported(), followed()]) {
        prop_assert_eq!(Event::decode(&event.encode()), Ok(event));
    }

    #[test]
    fn arbitrary_bytes_are_an_event_or_an_error_and_nothing_is_lost(
        kind in 0u8..=PROBE_END + 1, rest: [u8; 31], blank: u32,
    ) {
        let mut b = [0; 32];
        b[0] = kind;
        b[1..].copy_from_slice(&rest);
        // Few kinds use every byte.
        (1..32).filter(|at| blank >> at & 1 == 1).for_each(|at| b[at] = 0);
        for reserved in [b[3], 0] {
            b[3] = reserved;
            if let Ok(event) = Event::decode(&b) {
                prop_assert_eq!(event.encode(), b);
            }
        }
    }
}

#[test]
fn what_has_no_meaning_in_its_kind_or_is_too_large_for_it_is_refused() {
    let loss = Event::Reading(Reading::Loss { series: 1, loss: Loss::Tainted, count: 2 }).encode();
    let trigger = Event::Trigger { at: At::new(Stamp::from_ns(1), Insns(1)), level: 0, number: 0 };
    let mut wrong =
        [(loss, 1, 200), (loss, 6, 1), (loss, 16, 1), (loss, 2, 1), (loss, 3, 1)].to_vec();
    wrong.extend([(trigger.encode(), 4, 1), (trigger.encode(), 0, 0), (trigger.encode(), 0, 25)]);
    for (mut bytes, at, byte) in wrong {
        assert!(Event::decode(&bytes).is_ok());
        bytes[at] = byte;
        assert_eq!(Event::decode(&bytes), Err(Malformed), "{byte} at {at}");
    }
}

#[test]
fn a_clock_reading_that_took_too_long_is_as_wide_as_can_be_told() {
    let clock = |width| {
        let (at, read) = (At::new(Stamp::from_ns(5), Insns(5)), Stamp::from_ns(7));
        Event::Clock { at, width: Nanos(width), read }
    };
    let told = clock(1 << 40).encode();
    assert_eq!(Event::decode(&told), Ok(clock(u32::MAX.into())));
}

#[test]
fn only_triggers_and_pins_are_told_to_answers() {
    let at = |ns| At::new(Stamp::from_ns(ns), Insns(ns));
    let mut answers = Answers::new(ResponderSet::ALL.at(1), Stamp::from_ns(0), 0);
    let mut told = std::vec::Vec::new();
    for event in [
        Event::Trigger { at: at(5), level: 0, number: 0 },
        Event::Disturbance { at: at(6), timers: 1, level: 1, raised: 1 },
        Event::Pins { at: at(9), level: 1, raised: 1 },
    ] {
        event.tell(&mut answers, |o| told.push(o));
    }
    let [Observation::Sample(sample)] = told[..] else { panic!("{told:?}") };
    assert_eq!((sample.latency, sample.path), (Nanos(4), Some(Insns(4))));
}
