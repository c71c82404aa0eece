// SPDX-License-Identifier: GPL-2.0-or-later
//! A trial in a process that was forked for it.

use super::slot::Slot;
use super::{Past, Sees};
use crate::run::{Ending, Outcome};
use crate::{Error, Fault, Result, console};
use sample::{Loss, Observation, Observer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a trial may tell nothing before it counts as failed. A trial without an answer ends after its grace time,
/// which an idle guest passes at once. A busy guest takes about ten seconds for a virtual one.
const SILENCE: Duration = Duration::from_secs(60);

/// What is known of the guest from before.
pub(super) struct Known {
    /// The text that the guest's kernel had printed before the snapshot.
    pub(super) printed: String,
    pub(super) context: BTreeMap<String, String>,
    /// The key of the snapshot.
    pub(super) snapshot: String,
}

/// A trial that goes on in a process of its own.
pub struct ForkedTrial<S> {
    pub(super) slot: Slot,
    pub(super) past: Past<S>,
    pub(super) console: PathBuf,
    pub(super) known: Arc<Known>,
}

impl<S: Sees> ForkedTrial<S> {
    /// Measures to the end of the trial. `observe` gets what it would get of a run from the snapshot. `None` if the
    /// trial did not end as usual: a run from the snapshot says what happens, and what was observed is of no use.
    ///
    /// # Errors
    /// If the channel holds bytes that are no events, or if the user asks to stop.
    pub fn measure(&mut self, observe: &mut Observer) -> Result<Option<Outcome>> {
        let mut is_answered = true;
        let mut observe = |observation| {
            is_answered &= !matches!(observation, Observation::Loss(_, Loss::Unanswered, _));
            observe(observation)
        };
        let mut heard = Instant::now();
        loop {
            // This comes before draining: everything that the process told before it ended is then in the channel.
            let has_ended = self.slot.has_ended(Duration::from_millis(1));
            let past = &mut self.past;
            let received = self.slot.channel.drain(|event, gap| {
                past.take(event, gap, &mut observe);
            })?;
            if received > 0 {
                heard = Instant::now();
            }
            if self.past.taken.is_whole() {
                break;
            }
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            if has_ended || self.past.taken.is_unheard() || heard.elapsed() > SILENCE {
                return Ok(None);
            }
        }
        self.past.taken.finish(&mut observe);
        self.past.said += &console::read(&self.console);
        let is_broken = console::faults(&self.past.said).iter().any(Fault::breaks);
        let is_usual = is_answered && !self.past.gaps && !is_broken;
        Ok(is_usual.then(|| self.outcome()))
    }

    /// What looked at the guest, from the snapshot on.
    pub fn seen(&self) -> &S {
        &self.past.seen
    }

    fn outcome(&self) -> Outcome {
        let Known { printed, context, snapshot } = &*self.known;
        let Past { taken, said, .. } = &self.past;
        let console = format!("{printed}{said}");
        Outcome {
            ending: Ending::Whole,
            dropped: 0,
            report: None,
            worked: None,
            witness: taken.witness.clone(),
            context: context.clone(),
            counters: BTreeMap::new(),
            faults: console::faults(&console),
            restored_at: printed.len(),
            console,
            // The process ended the guest, which did what it was to do.
            guest_ended: Ok(()),
            snapshot: snapshot.clone(),
            first_answer: taken.first_answer,
        }
    }
}
