// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a change helps or harms: the first pair, run again with the kernel followed, and the time of their late answers
//! by cause.

use super::Proving;
use crate::commands::{bench, blame, open};
use crate::failure::Failure;
use lab::followed::{Ledgers, Subject};
use sample::{Responder, SeriesName};
use stats::{Quantile, Summary};
use std::collections::BTreeMap;
use trace::LedgerReport;
use view::results::{KernelProof, Reason};

/// Late answers are those from here on.
const LATE: Quantile = Quantile::P99;

/// Gives each change with an effect its reasons.
pub fn tell(proving: &Proving, kernel: &mut KernelProof) -> Result<(), Failure> {
    // The guest without the change is the same for every change.
    let mut known: BTreeMap<String, LedgerReport> = BTreeMap::new();
    for row in kernel.rows.iter_mut().filter(|row| row.has_effect()) {
        let Some((without, with)) = row.runs.first().cloned() else { continue };
        for run in [&without, &with] {
            if !known.contains_key(run)
                && let Some(ledger) = ledger(proving, run)?
            {
                known.insert(run.clone(), ledger);
            }
        }
        if let (Some(without), Some(with)) = (known.get(&without), known.get(&with)) {
            row.reasons = Reason::of(without, with);
        }
    }
    Ok(())
}

/// The ledger of a run's late answers. `None` if it has too few answers to have late ones.
fn ledger(proving: &Proving, run: &str) -> Result<Option<LedgerReport>, Failure> {
    let bench = bench()?;
    let bundle = open(run, &proving.store.store)?;
    let responder: Responder = proving.responder.parse().map_err(Failure::usage)?;
    let series = SeriesName::from(responder);
    let late = |summary: &Summary| summary.quantile(LATE);
    let asked = Ledgers::of(&bundle, Some(&series), late)?;
    let subject = Subject::of_bundle(&bench, &bundle)?;
    let (accounts, _) = blame::accounted(&bench, &bundle, subject, asked)?;
    Ok(accounts.into_iter().next().map(|account| account.report))
}
