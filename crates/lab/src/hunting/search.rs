// SPDX-License-Identifier: GPL-2.0-or-later
//! Carries out a hunt, with several trials at once. The journal has a trial before the trial counts.

use super::journal::Journal;
use super::workers::{at_once, lock};
use crate::Error;
use hunt::{Hunt, HuntEnd, HuntFailure, Knowledge, RoundResults, Trial, TrialResult};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Instant;

/// Runs a trial. `None` if it did not end by the deadline, or because somebody asked to stop.
pub type Run<'a> =
    dyn Fn(&Trial, Option<Instant>) -> Result<Option<TrialResult>, Error> + Sync + 'a;

/// The knowledge of a hunt at its end, and why the hunt ended.
pub type SearchResult = Result<(Knowledge, HuntEnd), HuntFailure<Error>>;

/// Goes on from the trials in `journal` until the hunt is over. `show` sees the knowledge after each round.
///
/// # Errors
/// The errors of the rig and of writing the journal. The finds until then are in the error and in the journal.
pub fn search(
    hunt: &Hunt,
    run: &Run,
    journal: &mut Journal,
    show: &mut dyn FnMut(&Knowledge),
) -> SearchResult {
    hunt.search(&mut |round, deadline| carry_out(hunt.jobs, round, run, deadline, journal), show)
}

/// Runs the trials that the journal does not have, several at once, until one fails.
fn carry_out(
    jobs: usize,
    round: &[Trial],
    run: &Run,
    deadline: Option<Instant>,
    journal: &mut Journal,
) -> RoundResults<Error> {
    let done: Vec<Option<TrialResult>> = round.iter().map(|t| journal.result(t.number)).collect();
    let made = RoundResults { results: done.clone(), failure: None };
    let shared = Mutex::new((made, journal));
    at_once(jobs, round.len(), |index| {
        if done[index].is_some() {
            return ControlFlow::Continue(());
        }
        let outcome = run(&round[index], deadline);
        let mut shared = lock(&shared);
        let (RoundResults { results, failure }, journal) = &mut *shared;
        match outcome {
            // A trial that is not in the journal was not made.
            Ok(Some(new)) => match journal.append(&new) {
                Ok(()) => results[index] = Some(new),
                Err(e) => drop(failure.get_or_insert(e)),
            },
            Ok(None) => return ControlFlow::Break(()),
            Err(e) => drop(failure.get_or_insert(e)),
        }
        if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).0
}
