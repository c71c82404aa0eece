// SPDX-License-Identifier: GPL-2.0-or-later
//! What is collected of one series of a run, in two quantities: how late its answers came, and how many instructions
//! the target completed until each. Beside that, how often it missed the deadlines that are limited.

use sample::{Clock, Insns, Losses, Observation, Sample, SeriesName};
use stats::{Limit, MissCounter, MissTally, Series, Summary};

/// The numbers of one series.
pub(super) struct Collected {
    /// The latencies, and the losses.
    pub(super) times: Series,
    /// The instructions between trigger and answer; none until something counts them.
    paths: Option<Series<Insns>>,
    /// One for each limit on a deadline.
    watches: Vec<MissCounter>,
}

impl Collected {
    /// Of a series without an observation, in a run with these limits.
    pub(super) fn new(responder: SeriesName, clock: Clock, limits: &[Limit]) -> Collected {
        let own = limits.iter().filter(|limit| limit.responder == responder);
        let watches = own.filter_map(Limit::deadline).map(MissCounter::new).collect();
        Collected { times: Series::new(responder, clock), paths: None, watches }
    }

    /// Adds an observation of this series.
    pub(super) fn add(&mut self, observation: &Observation) {
        match observation {
            Observation::Sample(sample) => self.record(sample),
            Observation::Loss(_, loss, n) => self.times.lose(*loss, *n),
        }
    }

    /// Adds a sample of this series.
    pub(super) fn record(&mut self, sample: &Sample) {
        self.times.record(sample);
        self.watches.iter_mut().for_each(|watch| watch.record(sample));
        let Sample { series, trigger, at, path: Some(latency), .. } = *sample else { return };
        let Collected { times, paths, .. } = self;
        let paths =
            paths.get_or_insert_with(|| Series::of(times.responder().clone(), times.clock()));
        paths.record(&Sample { series, trigger, at, latency, path: None });
    }

    /// The numbers of the instructions; none where nobody counted them. What was lost is told by the times alone.
    pub(super) fn path(&self) -> Option<Summary<Insns>> {
        let summary = self.paths.as_ref().map(Series::summary);
        summary.map(|summary| Summary { losses: Losses::default(), ..summary })
    }

    /// How often each deadline was missed, by the losses of the whole run.
    pub(super) fn tallies<'a>(
        &'a self,
        losses: &'a Losses,
    ) -> impl Iterator<Item = MissTally> + 'a {
        self.watches.iter().map(|watch| watch.tally(self.times.responder(), losses))
    }
}
