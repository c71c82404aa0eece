// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::generator::{Batcher, Misfit};
use core::num::NonZeroU32;
use sample::Loss;

const RUN: Run = Run(NonZeroU32::MIN);

fn measured(trigger: u64, latency: u64) -> Measurement {
    let (at, latency) = (Ticks(100 * trigger), Ticks(latency));
    Measurement { trigger, at, responder: Responder::Task, latency }
}

fn batcher(size: usize) -> Batcher {
    Batcher::new(RUN, ResponderSet::ALL.at(0x81), size)
}

#[test]
fn a_list_that_no_message_can_say_is_refused() {
    let too_many = [measured(0, 0); BATCH_MAX + 1];
    assert_eq!(List::new(&too_many), Err(Misfit));
    assert_eq!(List::new(&[measured(0, LATENCY_END.0)]), Err(Misfit));
    assert!(List::new(&too_many[1..]).is_ok());
    assert!(List::new(&[measured(0, LATENCY_END.0 - 1)]).is_ok());
}

#[test]
fn a_batch_is_due_when_it_is_full_or_old() {
    let mut batcher = batcher(2);
    let age = Ticks(50);
    assert!(!batcher.is_due(Ticks(49), age));
    assert!(
        batcher.is_due(Ticks(50), age),
        "one without measurements, which says that the run goes on"
    );
    batcher.sent(Ticks(50));
    batcher.measured(measured(0, 5), Ticks(60));
    assert!(!batcher.is_due(Ticks(109), age));
    assert!(batcher.is_due(Ticks(110), age));
    batcher.measured(measured(1, 5), Ticks(61));
    assert!(batcher.is_due(Ticks(61), age));
    assert_eq!(batcher.batch(Ticks(61)).measurements.len(), 2);
}

#[test]
fn a_batch_that_nobody_takes_is_dropped_and_counted_and_measuring_goes_on() {
    let mut batcher = batcher(2);
    for trigger in 0..5 {
        batcher.triggered();
        batcher.measured(measured(trigger, 5), Ticks(0));
    }
    let batch = batcher.batch(Ticks(1));
    assert_eq!((batch.first, batch.measurements.len(), batch.triggers), (4, 1, 5));
    let tally = *batch.tallies.get(Responder::Task).expect("it is measured");
    assert_eq!((tally.measured, tally.losses.dropped), (5, 4));
}

#[test]
fn a_latency_that_no_message_can_say_is_tainted_and_other_responders_are_not_measured() {
    let mut batcher = batcher(2);
    batcher.measured(measured(0, LATENCY_END.0), Ticks(0));
    let other = Measurement { responder: Responder::Work, ..measured(0, 1) };
    batcher.measured(other, Ticks(0));
    batcher.lost(Responder::Work, Loss::Tainted, 1);
    let batch = batcher.batch(Ticks(1));
    assert!(batch.measurements.is_empty());
    let tally = batch.tallies.get(Responder::Task).expect("it is measured");
    assert_eq!((tally.measured, tally.losses.tainted), (0, 1));
    assert_eq!(batch.tallies.get(Responder::Work), None);
}
