// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns one machine's events into observations, and reads the words of its init.

use crate::console;
use crate::machine::{Running, Stimulus};
use crate::{Result, Witness, tool};
use agent::{Word, Worked};
use sample::{Answers, Nanos, Observer, ResponderSet, Stamp, Virtual};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wire::{Channel, Event, Mark};

/// Takes the events of a follower, and the triggers and pins between them, in the order of time.
pub type Seer<'a> = dyn FnMut(&Event) + 'a;

/// The best known explanation why a guest ended.
pub(crate) fn why_it_ended(running: &Running) -> String {
    let (failure, _) = read_words(&running.wire());
    let console = running.console();
    let last = tool::last_lines(&console, 8);
    // The kernel goes on with the part of the image that it had room for (init/initramfs.c).
    if console.contains("Initramfs unpacking failed") {
        return format!(
            "its image does not fit into its memory: give it more ([guest] memory), or leave out large programs and \
             files\n{last}"
        );
    }
    match (failure, console::faults(&console).first()) {
        (Some(reason), _) => format!("its init gave up: {reason}\n{last}"),
        (None, Some(fault)) => fault.text().to_string(),
        (None, None) => format!("it ended without a word; the end of its console:\n{last}"),
    }
}

/// What onset knows of a machine from which nothing comes any more. A guest that hangs is still triggered, and its
/// clock goes on. So the machine stands still, or the host has no time for it.
pub(crate) fn why_it_stands_still(running: &Running, silent: Duration) -> String {
    let last = tool::last_lines(&running.console(), 8);
    let silent = silent.as_secs();
    format!(
        "it stood still for {silent} s; is this machine overloaded? The end of the guest's console:\n{last}"
    )
}

#[derive(Default)]
pub(crate) struct Words {
    pub(crate) context: BTreeMap<String, String>,
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) report: Option<probes::Report>,
    pub(crate) worked: Option<Worked>,
    pub(crate) dropped: u64,
}

/// The words of init. Lines that are no words are ignored: a guest that died may have cut one short.
pub(crate) fn read_words(text: &str) -> (Option<String>, Words) {
    let mut words = Words::default();
    let mut failure = None;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Word::Context(context)) => words.context = context,
            Ok(Word::Counters(counters)) => words.counters = counters,
            Ok(Word::Report(report)) => words.report = Some(report),
            Ok(Word::Worked(worked)) => words.worked = Some(worked),
            Ok(Word::Dropped(records)) => words.dropped = records,
            Ok(Word::Failed(reason)) => failure = Some(reason),
            Err(_) => {}
        }
    }
    (failure, words)
}

/// Takes the events of one machine and turns them into observations.
pub(crate) struct Collector {
    pub(crate) channel: Channel,
    pub(crate) taken: Taken,
}

/// The result of the events so far.
#[derive(Clone)]
pub(crate) struct Taken {
    responders: ResponderSet,
    /// Whether a probe measures. In this case the guest's writes to the port are no answers.
    probing: bool,
    total: u64,
    answers: Option<Answers>,
    /// The instant at which measuring began.
    origin: Option<Stamp<Virtual>>,
    /// How far the guest has come by its commands, counted from `origin`.
    pub(crate) reached: Nanos,
    /// Whether events are missing since the port's last event. Triggers that waited for an answer then cannot be
    /// matched.
    missing: bool,
    pub(crate) witness: Witness,
    triggers: u64,
    whole: bool,
    /// Whether the taker of the observations wants no more.
    unheard: bool,
    pub(crate) first_answer: Option<Duration>,
}

impl Collector {
    pub(crate) fn new(stimulus: &Stimulus, channel: Channel) -> Collector {
        Collector { channel, taken: Taken::new(stimulus) }
    }

    /// Takes the waiting events, and returns their number.
    pub(crate) fn drain(
        &mut self,
        begun: Instant,
        observe: &mut Observer,
        see: &mut Option<&mut Seer>,
    ) -> Result<u64> {
        let Collector { channel, taken } = self;
        Ok(channel.drain(|event, gap| taken.take(event, gap, begun, observe, see))?)
    }
}

impl Taken {
    pub(crate) fn new(stimulus: &Stimulus) -> Taken {
        let (responders, total) = match stimulus {
            Stimulus::Triggers(generator) => (generator.responders, generator.when.count()),
            Stimulus::Probe(_) | Stimulus::Work(_) => (ResponderSet::default(), 0),
        };
        Taken {
            responders,
            probing: matches!(stimulus, Stimulus::Probe(_)),
            total,
            answers: None,
            origin: None,
            reached: Nanos(0),
            missing: false,
            witness: Witness::default(),
            triggers: 0,
            whole: false,
            unheard: false,
            first_answer: None,
        }
    }

    /// The triggers raised so far, and how many there will be. `None` before measuring has begun.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        self.answers.as_ref().map(|_| (self.triggers, self.total))
    }

    /// Whether a probe measures.
    pub(crate) fn is_probing(&self) -> bool {
        self.probing
    }

    /// Whether the last event has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the taker of the observations wants no more.
    pub(crate) fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// Hands over the losses of the triggers that have no answer.
    pub(crate) fn finish(&mut self, observe: &mut Observer) {
        if let Some(answers) = self.answers.take() {
            answers.finish(|o| self.unheard |= !self.unheard && observe(o).is_break());
        }
    }

    /// Takes an event. `gap` says whether events are missing before it, and `begun` when the machine was started.
    pub(crate) fn take(
        &mut self,
        event: &Event,
        gap: bool,
        begun: Instant,
        observe: &mut Observer,
        see: &mut Option<&mut Seer>,
    ) {
        self.missing |= gap;
        let unheard = &mut self.unheard;
        match *event {
            Event::Mark { at, mark: Mark::Measuring, level, .. } => {
                self.answers = Some(Answers::new(self.responders, at.time, level));
                self.missing = false;
                self.origin = Some(at.time);
                self.witness.observe(event);
                see.iter_mut().for_each(|see| see(event));
            }
            Event::Mark { .. } => {}
            Event::Reached { at } => {
                let since = self.origin.and_then(|origin| at.time.since(origin));
                self.reached = since.unwrap_or(self.reached);
            }
            Event::Call { .. }
            | Event::Wake { .. }
            | Event::Batch { .. }
            | Event::Spent { .. }
            | Event::Clock { .. } => {
                self.witness.observe(event);
            }
            Event::Reading(reading) => {
                *unheard |= !*unheard && observe(reading.into()).is_break();
            }
            Event::Pins { .. } if self.probing => self.witness.observe(event),
            _ => {
                see.iter_mut().for_each(|see| see(event));
                self.whole |= event.is_last();
                self.triggers += u64::from(matches!(event, Event::Trigger { .. }));
                if matches!(event, Event::Pins { .. }) && self.first_answer.is_none() {
                    self.first_answer = Some(begun.elapsed());
                }
                if let (Some(answers), Some((level, raised))) = (&mut self.answers, event.port()) {
                    if std::mem::take(&mut self.missing) {
                        answers.resume(level, raised);
                    }
                    event.tell(answers, |o| *unheard |= !*unheard && observe(o).is_break());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_guests_words_are_understood_and_a_torn_one_is_passed_over() {
        let text = "{\"context\":{\"release\":\"6.12\"}}\n{\"counters\":{\"a\":3}}\n{\"coun";
        let (failure, words) = read_words(text);
        assert_eq!(failure, None);
        assert_eq!(words.context["release"], "6.12");
        assert_eq!(words.counters["a"], 3);
        let (failure, _) = read_words("{\"failed\":\"no disk\"}\n");
        assert_eq!(failure.as_deref(), Some("no disk"));
    }

    proptest! {
        #[test]
        fn whatever_the_guest_says_is_read(text in "\\PC*") {
            let _ = read_words(&text);
        }
    }
}
