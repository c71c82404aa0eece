// SPDX-License-Identifier: GPL-2.0-or-later
//! Fills the ledgers of a run, one for each responder. A ledger sums up by cause all the time of the answers that took
//! at least a given latency.

use super::{Choice, Wanted, samples_of};
use crate::Error;
use bundle::Bundle;
use sample::{Nanos, Sample, SeriesId, SeriesName};
use stats::Summary;
use std::collections::BTreeMap;
use trace::{Explanation, Ledger, LedgerReport, Reader, Symbols};

/// The ledger of one responder.
#[derive(Clone, Debug)]
pub struct Account {
    /// The responder; of a probe, the series.
    pub responder: String,
    /// The ledger of the responder.
    pub report: LedgerReport,
}

/// Ledgers that are being filled.
#[derive(Debug, Default)]
pub struct Ledgers(BTreeMap<SeriesId, Ledger>);

impl Ledgers {
    /// Empty ledgers of a run, or of one of its series, and the samples that belong in them. The samples of a
    /// responder are those of at least the latency that `from` gives for it. A responder without such a latency has no
    /// ledger.
    ///
    /// # Errors
    /// The errors of [`samples_of`].
    pub fn of(
        bundle: &Bundle,
        series: Option<&SeriesName>,
        from: impl Fn(&Summary) -> Option<Nanos>,
    ) -> Result<(Ledgers, Wanted), Error> {
        let asked = |s: &Summary| series.is_none_or(|name| s.responder == *name);
        let summaries = (0..).zip(&bundle.manifest().series).filter(|(_, summary)| asked(summary));
        let from: BTreeMap<SeriesId, Nanos> =
            summaries.filter_map(|(id, summary)| Some((SeriesId(id), from(summary)?))).collect();
        let samples = samples_of(bundle, series, Choice::Worst(usize::MAX))?;
        let belongs = |s: &&Sample| from.get(&s.series).is_some_and(|from| s.latency >= *from);
        let wanted = samples.iter().filter(belongs).map(|s| ((s.trigger, s.series), *s)).collect();
        let ledgers = from.into_iter().map(|(series, from)| (series, Ledger::new(from)));
        Ok((Ledgers(ledgers.collect()), wanted))
    }

    /// Enters an answer.
    pub fn add(
        &mut self,
        sample: &Sample,
        explanation: &Explanation,
        reader: &Reader,
        symbols: &dyn Symbols,
    ) {
        if let Some(ledger) = self.0.get_mut(&sample.series) {
            ledger.add(explanation, reader, symbols);
        }
    }

    /// The ledgers with names. `names` are those of the run's series.
    pub fn accounts(
        &self,
        names: &[SeriesName],
        reader: &Reader,
        symbols: &dyn Symbols,
    ) -> Vec<Account> {
        let account = |(series, ledger): (&SeriesId, &Ledger)| Account {
            responder: names[series.index()].to_string(),
            report: ledger.report(reader.stacks(), symbols),
        };
        self.0.iter().map(account).collect()
    }
}
