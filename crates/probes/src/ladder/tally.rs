// SPDX-License-Identifier: GPL-2.0-or-later
//! Takes exactly as many triggers as the plan asks for. The driver makes a few more, since the probe stops its timer
//! from outside.

use sample::{ALL_RESPONDERS, Loss, Losses};
use wire::Reading;

/// The results of the triggers, responder by responder.
pub(super) struct Triggers {
    count: u64,
    /// The number of triggers that are known to have been due.
    due: u64,
    /// One tally for each pin.
    tallies: [Tally; ALL_RESPONDERS.len()],
}

impl Triggers {
    /// A count for a plan that wants the first `count` triggers.
    pub(super) fn wanted(count: u64) -> Triggers {
        Triggers { count, due: 0, tallies: Default::default() }
    }

    /// Whether all wanted triggers were due. A trigger that nobody answers does not show, but the next trigger that
    /// somebody answers does.
    pub(super) fn were_all(&self) -> bool {
        self.due >= self.count
    }

    /// Takes a reading of one pin from the driver. If the reading is a wanted sample, the function hands it on.
    pub(super) fn take(&mut self, reading: Reading, mut each: impl FnMut(Reading)) {
        let (Reading::Sample { series: pin, .. } | Reading::Loss { series: pin, .. }) = reading;
        let Some(tally) = self.tallies.get_mut(usize::from(pin)) else { return };
        match reading {
            Reading::Sample { number, .. } => {
                self.due = self.due.max(number.saturating_add(1));
                if number < self.count {
                    tally.wanted += 1;
                    each(reading);
                } else {
                    tally.beyond += 1;
                }
            }
            Reading::Loss { loss, count, .. } => tally.losses.count(loss, count),
        }
    }

    /// Hands on the losses of the wanted triggers. Call this after the last reading.
    pub(super) fn finish(self, mut each: impl FnMut(Reading)) {
        for (pin, tally) in (0..).zip(self.tallies) {
            for (loss, count) in tally.lost(self.count) {
                each(Reading::Loss { series: pin, loss, count });
            }
        }
    }
}

/// The results of the triggers of one responder.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// The number of samples of triggers that the plan wants.
    wanted: u64,
    /// The number of samples of later triggers.
    beyond: u64,
    /// All losses.
    losses: Losses,
}

impl Tally {
    /// The number of triggers that reached this responder. Each of them is a sample or a loss (`driver/samples.c`).
    fn triggers(&self) -> u64 {
        self.wanted + self.beyond + self.losses.total()
    }

    /// The losses among the first `count` triggers. The driver does not say to which triggers its losses belong. But
    /// the triggers without an answer at the end are the last ones, so these losses count first for the later triggers.
    fn lost(&self, count: u64) -> [(Loss, u64); 4] {
        let lost_beyond = self.triggers().saturating_sub(count).saturating_sub(self.beyond);
        let mut missing = count.min(self.triggers()).saturating_sub(self.wanted);
        let mut take = |most: u64| {
            let taken = most.min(missing);
            missing -= taken;
            taken
        };
        let unanswered = take(self.losses.unanswered.saturating_sub(lost_beyond));
        let tainted = take(self.losses.tainted);
        let dropped = take(self.losses.dropped);
        let superseded = take(u64::MAX);
        [
            (Loss::Unanswered, unanswered),
            (Loss::Tainted, tainted),
            (Loss::Dropped, dropped),
            (Loss::Superseded, superseded),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Nanos, Stamp};

    fn sample(pin: u16, number: u64) -> Reading {
        let at = Stamp::from_ns(number * 1_000);
        Reading::Sample { series: pin, number, at, latency: Nanos(7) }
    }

    fn loss(pin: u16, loss: Loss, count: u64) -> Reading {
        Reading::Loss { series: pin, loss, count }
    }

    /// The numbers of the samples of pin 2 out of `count` triggers, and the losses.
    fn counted(count: u64, readings: &[Reading]) -> (Vec<u64>, Losses) {
        let (mut numbers, mut losses) = (Vec::new(), Losses::default());
        let mut each = |reading| match reading {
            Reading::Sample { series: 2, number, .. } => numbers.push(number),
            Reading::Loss { series: 2, loss, count } => losses.count(loss, count),
            _ => {}
        };
        let mut triggers = Triggers::wanted(count);
        for reading in readings {
            triggers.take(*reading, &mut each);
        }
        triggers.finish(&mut each);
        (numbers, losses)
    }

    #[test]
    fn every_wanted_trigger_is_a_sample_or_a_loss_whatever_came_after() {
        // The triggers that have samples, and how many of 8 triggers had no answer at the end.
        for (answered, unanswered) in [
            (&[0u64, 1, 2, 3, 4, 5, 6, 7][..], 0),
            (&[0, 3, 4], 2),
            (&[0], 7),
            (&[], 8),
            (&[0, 6], 0),
            (&[7], 0),
        ] {
            let mut readings: Vec<_> = answered.iter().map(|n| sample(2, *n)).collect();
            let superseded = 8 - answered.len() as u64 - unanswered;
            readings.push(loss(2, Loss::Superseded, superseded));
            readings.push(loss(2, Loss::Unanswered, unanswered));
            for count in [1, 4, 5, 8, 20] {
                let (numbers, losses) = counted(count, &readings);
                let kept: Vec<u64> = answered.iter().copied().filter(|n| *n < count).collect();
                assert_eq!(numbers, kept);
                assert_eq!(
                    numbers.len() as u64 + losses.total(),
                    count.min(8),
                    "{answered:?} {count}"
                );
                // The last triggers are the ones that nobody answered.
                assert_eq!(losses.unanswered, count.min(8).saturating_sub(8 - unanswered));
            }
        }
    }

    #[test]
    fn each_kind_of_loss_stays_what_it_was() {
        let readings = [sample(2, 0), loss(2, Loss::Tainted, 1), loss(2, Loss::Dropped, 2)];
        let (_, losses) = counted(4, &readings);
        assert_eq!(losses, Losses { tainted: 1, dropped: 2, ..Losses::default() });
    }

    #[test]
    fn it_ends_when_any_responder_answered_the_last_wanted_trigger_or_a_later_one() {
        let mut triggers = Triggers::wanted(3);
        triggers.take(sample(2, 1), |_| ());
        assert!(!triggers.were_all());
        triggers.take(sample(0, 2), |_| ());
        assert!(triggers.were_all());
    }

    #[test]
    fn a_pin_that_nobody_has_is_left_out() {
        assert_eq!(counted(3, &[sample(200, 0), loss(200, Loss::Dropped, 1)]).0, [0u64; 0]);
    }
}
