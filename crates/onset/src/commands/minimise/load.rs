// SPDX-License-Identifier: GPL-2.0-or-later
//! A find under less load: a short hunt in a guest that does only a part of what the find's guest did. One that is as late
//! shows that the rest was not needed; one that is not shows nothing, since a longer hunt might be.

use super::{ENOUGH_PERCENT, enough};
use crate::commands::hunt;
use crate::failure::Failure;
use crate::followed::{Reproducer, Subject};
use crate::hunt::{ALL, About, Budget, Ended, Find, Grounds, Hunt, JOURNAL, Journal, Strategy};
use crate::visible::tell;
use agent::Load;
use rig::{Bench, Guest};
use sample::Nanos;

/// As late an answer of the same responder under the first part of the find's load that has one, nothing at all before the
/// others; `None` where none has.
///
/// # Errors
/// Those of the rig; an interruption.
pub fn under_less(
    bench: &Bench,
    find: &Reproducer,
    budget: Budget,
    jobs: usize,
) -> Result<Option<Reproducer>, Failure> {
    let less = [Load::Idle].iter().chain(find.load.parts()).copied();
    for load in less.filter(|load| *load != find.load) {
        let Some(found) = latest(bench, find, load, budget, jobs)? else { continue };
        let latency = found.answer.latency_ns;
        if enough(latency, find.answer.latency_ns) {
            tell!("under {load} alone: {latency}, which is enough");
            return Ok(Some(found));
        }
        tell!("under {load} alone: {latency}");
    }
    Ok(None)
}

/// The latest answer of a hunt under this load; `None` where nobody answered.
fn latest(
    bench: &Bench,
    find: &Reproducer,
    load: Load,
    budget: Budget,
    jobs: usize,
) -> Result<Option<Reproducer>, Failure> {
    let Subject { guest, generator, .. } = find.subject(bench)?;
    let contents = rig::Contents { load, ..guest.contents.clone() };
    let guest = Guest { contents, begin_after: Nanos(0), ..guest };
    let subject = Subject { guest, generator, made_with: None };
    let responder = find.answer.responder;
    let enough = Nanos(find.answer.latency_ns.0.saturating_mul(ENOUGH_PERCENT).div_ceil(100));
    let hunt = Hunt {
        guests: 1,
        responders: vec![responder],
        strategies: ALL.into_iter().filter(|s| *s != Strategy::Disturb).collect(),
        seed: 1,
        budget,
        jobs,
        enough: Some(enough),
    };
    let grounds = Grounds::new([hunt::ready(bench, subject, &find.kernel)?]);
    let scratch = tempfile::tempdir()
        .map_err(|e| Failure::unavailable(format!("no directory for temporary files: {e}")))?;
    let about = About::of(&hunt, "", find.kernel.clone(), grounds.first());
    let mut journal = Journal::open(&scratch.path().join(JOURNAL), &about)?;
    let (known, ended) = hunt::search(&hunt, &grounds, &mut journal)?;
    if ended == Ended::Interrupted {
        return Err(rig::Error::Interrupted.into());
    }
    let finds = Find::all(&grounds, &known, &[responder]);
    Ok(finds.into_iter().next().map(|find| find.reproducer))
}
