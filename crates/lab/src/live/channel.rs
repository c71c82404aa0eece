// SPDX-License-Identifier: GPL-2.0-or-later
//! What a conversation knows of one responder.

use sample::{Clock, Loss, Losses, Responder};
use stats::Series;

/// What is known of one responder.
pub struct Channel {
    /// Who answers.
    pub responder: Responder,
    /// Its latencies, of all runs of the conversation since the numbers were last forgotten.
    pub series: Series,
    /// What was lost since then, as far as the generator has told.
    pub losses: Losses,
    /// What was lost in runs that have ended, and what was lost when the numbers were last forgotten.
    pub(super) settled: Losses,
    forgotten: Losses,
}

impl Channel {
    /// Of a responder that has not answered.
    pub fn new(responder: Responder, clock: Clock) -> Channel {
        let (losses, settled, forgotten) = Default::default();
        Channel {
            responder,
            series: Series::new(responder.into(), clock),
            losses,
            settled,
            forgotten,
        }
    }

    /// Forgets what was measured and lost so far.
    pub(super) fn forget(&mut self) {
        self.series = Series::new(self.responder.into(), self.series.clock());
        self.forgotten.merge(&self.losses);
        self.losses = Losses::default();
    }

    /// Learns what was lost in all runs.
    pub(super) fn has_lost(&mut self, all: &Losses) {
        self.losses = Losses::default();
        let counts = all.of_all().into_iter().zip(self.forgotten.of_all());
        for (loss, (all, forgotten)) in Loss::ALL.into_iter().zip(counts) {
            // What came late is no loss any more, so there may be less than there was.
            self.losses.count(loss, all.saturating_sub(forgotten));
        }
    }
}
