// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::generator::{Batcher, Ended, List, Measurement};
use core::num::NonZeroU32;
use proptest::collection::vec;
use proptest::prelude::*;
use sample::Loss;

const RUN: Run = Run(NonZeroU32::MIN);

/// What happens to a trigger of one of two responders, and to the batch that is then due.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Sent,
    NoRoom,
    LostOnTheLine,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Sent), Just(Fate::NoRoom), Just(Fate::LostOnTheLine)]
}

fn measurement(trigger: u64, responder: Responder) -> Measurement {
    Measurement { trigger, at: Ticks(trigger), responder, latency: Ticks(3) }
}

proptest! {
    #[test]
    fn whatever_the_reader_misses_is_counted_exactly(
        all in vec((any::<[bool; 2]>(), fate()), 0..200), size in 1usize..=22
    ) {
        let both = ResponderSet::ALL.at(0x81);
        let mut batcher = Batcher::new(RUN, both, size);
        let mut receipt = Receipt::new(RUN, both);
        let (mut missed, mut seen) = ([0u64; 8], 0);
        for (trigger, (answered, fate)) in (0..).zip(&all) {
            batcher.triggered();
            let now = Ticks(trigger);
            for (responder, answered) in both.iter().zip(answered) {
                match answered {
                    false => batcher.lost(responder, Loss::Superseded, 1),
                    // One that finds the batch full drops it.
                    true if batcher.held() < size => {
                        batcher.measured(measurement(trigger, responder), now);
                    }
                    true => {
                        let batch = batcher.batch(now);
                        let of = batch.measurements.iter().map(|m| m.responder.pin());
                        of.for_each(|pin| missed[usize::from(pin)] += 1);
                        batcher.measured(measurement(trigger, responder), now);
                    }
                }
            }
            if !batcher.is_due(now, Ticks(u64::MAX)) {
                continue;
            }
            let batch = batcher.batch(now);
            if !matches!(fate, Fate::Sent) {
                let of = batch.measurements.iter().map(|m| m.responder.pin());
                of.for_each(|pin| missed[usize::from(pin)] += 1);
            }
            match fate {
                Fate::Sent => {
                    seen += receipt.take(&batch).expect("it is in order");
                    batcher.sent(now);
                }
                Fate::LostOnTheLine => batcher.sent(now),
                Fate::NoRoom => batcher.dropped(now),
            }
        }
        let end = Ticks(all.len() as u64);
        if batcher.held() > 0 {
            seen += receipt.take(&batcher.batch(end)).expect("it is in order");
            batcher.sent(end);
        }
        let (triggers, tallies) = (batcher.triggers(), *batcher.tallies());
        let stopped = Stopped { run: RUN, ended: Ended::Complete, triggers, at: end, tallies };
        seen += receipt.stop(&stopped).expect("everything adds up");
        prop_assert!(receipt.is_whole());
        prop_assert_eq!(seen, missed.iter().sum::<u64>());
        for responder in both.iter() {
            let losses = receipt.losses(responder).expect("it is measured");
            prop_assert_eq!(losses.dropped, missed[usize::from(responder.pin())]);
            prop_assert_eq!(receipt.received(responder) + losses.total(), all.len() as u64);
        }
    }
}

/// A receipt that has taken one batch of one measurement, and that batch.
fn begun<'a>(measurements: &'a [Measurement; 1]) -> (Receipt, Batch<'a>) {
    let own = ResponderSet::ALL.at(0x80);
    let mut receipt = Receipt::new(RUN, own);
    let mut tallies = Tallies::new(own);
    tallies.get_mut(Responder::Task).expect("it is measured").measured = 1;
    let measurements = List::new(measurements).expect("one");
    let batch = Batch { run: RUN, first: 0, triggers: 1, at: Ticks(9), tallies, measurements };
    assert_eq!(receipt.take(&batch), Ok(0));
    (receipt, batch)
}

#[test]
fn a_generator_that_contradicts_itself_is_found_out() {
    let one = [measurement(0, Responder::Task)];
    let (receipt, batch) = begun(&one);
    let mut next = batch;
    next.first = 1;
    next.tallies.get_mut(Responder::Task).expect("it is measured").measured = 2;
    next.triggers = 2;
    assert_eq!(receipt.clone().take(&next), Ok(0));
    let told = |change: &dyn Fn(&mut Batch<'_>)| {
        let mut other = next;
        change(&mut other);
        receipt.clone().take(&other)
    };
    let tally = |change: &'static dyn Fn(&mut super::super::Tally)| {
        told(&move |batch| change(batch.tallies.get_mut(Responder::Task).expect("it is measured")))
    };
    use Inconsistent::{Accounts, Backwards, Future, Order, Responders, Sum, TooMany};
    assert_eq!(told(&|batch| batch.run = Run(NonZeroU32::MAX)), Err(Inconsistent::Run));
    let other = Tallies::new(ResponderSet::ALL.at(1));
    assert_eq!(told(&|batch| batch.tallies = other), Err(Responders));
    assert_eq!(told(&|batch| batch.first = 0), Err(Order));
    assert_eq!(told(&|batch| batch.at = Ticks(8)), Err(Backwards));
    assert_eq!(told(&|batch| batch.triggers = 0), Err(Future));
    assert_eq!(told(&|batch| batch.first = 2), Err(Sum));
    assert_eq!(tally(&|tally| tally.measured = 0), Err(Backwards));
    assert_eq!(tally(&|tally| tally.losses.dropped = 1), Err(TooMany));
    assert_eq!(tally(&|tally| tally.losses.unanswered = 1), Err(Accounts));
    assert_eq!(tally(&|tally| tally.losses.unanswered = u64::MAX), Err(Accounts));
}

#[test]
fn a_run_ends_once_and_with_every_trigger_accounted_for() {
    let one = [measurement(0, Responder::Task)];
    let (mut receipt, batch) = begun(&one);
    let (at, tallies) = (Ticks(9), batch.tallies);
    let stopped = Stopped { run: RUN, ended: Ended::Asked, triggers: 1, at, tallies };
    let two = Stopped { triggers: 2, ..stopped };
    assert_eq!(receipt.stop(&two), Err(Inconsistent::Accounts));
    assert!(!receipt.is_whole());
    assert_eq!(receipt.stop(&stopped), Ok(0));
    assert_eq!(receipt.stop(&stopped), Ok(0), "it is told again");
    assert_eq!(receipt.stop(&Stopped { at: Ticks(10), ..stopped }), Err(Inconsistent::Run));
    assert_eq!(receipt.take(&batch), Err(Inconsistent::Order));
    assert!(receipt.is_whole());
}
