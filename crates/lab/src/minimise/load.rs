// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for a find under less load. A short hunt runs in a guest that does only a part of what the find's guest did.
//! If an answer is as late as the find's, the rest of the load was not needed. If none is, this shows nothing, since a
//! longer hunt might find one.

use super::{ENOUGH_PERCENT, Steps, enough};
use crate::Error;
use crate::followed::{Reproducer, Subject};
use crate::hunting::{About, Find, Grounds, JOURNAL, Journal};
use agent::Load;
use hunt::{Budget, Hunt, HuntEnd, STRATEGIES};
use rig::{Bench, Guest};
use sample::Nanos;

/// An equally late answer of the same responder, under the first part of the find's load that has one. The idle load
/// comes before the other parts. `None` if no part has such an answer.
///
/// # Errors
/// The errors of the rig, and an interruption.
pub fn under_less(
    bench: &Bench,
    find: &Reproducer,
    budget: Budget,
    jobs: usize,
    steps: &Steps<'_, '_>,
) -> Result<Option<Reproducer>, Error> {
    let less = [Load::Idle].iter().chain(find.load.parts()).copied();
    for load in less.filter(|load| *load != find.load) {
        let Some(found) = latest(bench, find, load, budget, jobs, steps)? else { continue };
        let latency = found.answer.latency_ns;
        if enough(latency, find.answer.latency_ns) {
            (steps.say)(&format!("under {load} alone: {latency}, which is enough"));
            return Ok(Some(found));
        }
        (steps.say)(&format!("under {load} alone: {latency}"));
    }
    Ok(None)
}

/// The latest answer of a hunt under this load. `None` if nobody answered.
fn latest(
    bench: &Bench,
    find: &Reproducer,
    load: Load,
    budget: Budget,
    jobs: usize,
    steps: &Steps<'_, '_>,
) -> Result<Option<Reproducer>, Error> {
    let Subject { guest, stimulus, .. } = find.subject(bench)?;
    let contents = rig::Contents { load, ..guest.contents.clone() };
    let guest = Guest { contents, begin_after: Nanos(0), ..guest };
    let subject = Subject { guest, stimulus, made_with: None };
    let responder = find.answer.responder;
    let enough = Nanos(find.answer.latency_ns.saturating_mul(ENOUGH_PERCENT).0.div_ceil(100));
    let hunt = Hunt {
        guests: 1,
        responders: vec![responder],
        strategies: STRATEGIES.iter().filter(|s| !s.disturbs()).map(|s| s.name()).collect(),
        seed: 1,
        budget,
        jobs,
        corpus: Vec::new(),
        enough: Some(enough),
    };
    let grounds = Grounds::new([(steps.prepare)(subject)?]);
    let scratch = tempfile::tempdir()
        .map_err(|e| Error::File(format!("no directory for temporary files: {e}")))?;
    let about = About::of(&hunt, "", find.kernel.clone(), grounds.first());
    let mut journal = Journal::open(&scratch.path().join(JOURNAL), &about, steps.say)?;
    let (known, ended) = (steps.search)(&hunt, &grounds, &mut journal).map_err(|e| e.failure)?;
    if ended == HuntEnd::Interrupted {
        return Err(Error::Interrupted);
    }
    let finds = Find::all(&grounds, &known, &[responder]);
    Ok(finds.into_iter().next().map(|find| find.reproducer))
}
