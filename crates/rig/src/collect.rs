// SPDX-License-Identifier: GPL-2.0-or-later
//! From one machine's records and words to observations and an outcome.

use crate::console;
use crate::machine::{Running, Stimulus};
use crate::run::{END_DEADLINE, Ending, Outcome, Progress};
use crate::snapshot::Snapshot;
use crate::{Result, Witness, tool};
use agent::Word;
use sample::{Answers, Channel, Kind, Observation, Reading, Record, ResponderSet};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Takes observations, until it breaks.
pub type Observer<'a> = dyn FnMut(Observation) -> ControlFlow<()> + 'a;

/// Takes the records of a follower, and the triggers and pins between them, in the order of time.
pub type Seer<'a> = dyn FnMut(&Record) + 'a;

/// Without any record for this long, and a second more for each ten virtual milliseconds that may
/// legitimately pass between two, the machine stands still. (A busy guest takes about ten seconds for a virtual one.)
const STALL_DEADLINE: Duration = Duration::from_secs(120);
/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The plugin's mark for the beginning of measuring (crates/plugin/src/generator.rs).
pub(crate) const MARK_MEASURING: u8 = 2;

/// The best explanation there is for a guest that ended.
pub(crate) fn why_it_ended(running: &Running) -> String {
    let (failure, _) = read_words(&running.wire());
    let console = running.console();
    let last = tool::last_lines(&console, 8);
    match (failure, console::faults(&console).first()) {
        (Some(reason), _) => format!("its init gave up: {reason}\n{last}"),
        (None, Some(fault)) => fault.text().to_string(),
        (None, None) => format!("it ended without a word; the end of its console:\n{last}"),
    }
}

/// What is known of a machine that is no more heard of. A guest that hangs is still triggered, and its clock goes on: it is the
/// machine that stands still, or the host that has no time for it.
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
    counters: BTreeMap<String, u64>,
    report: Option<probes::Report>,
    dropped: u64,
}

/// What init said. Lines that are no words are passed over: a guest that died may have cut one short.
pub(crate) fn read_words(text: &str) -> (Option<String>, Words) {
    let mut words = Words::default();
    let mut failure = None;
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Word::Context(context)) => words.context = context,
            Ok(Word::Counters(counters)) => words.counters = counters,
            Ok(Word::Report(report)) => words.report = Some(report),
            Ok(Word::Dropped(records)) => words.dropped = records,
            Ok(Word::Failed(reason)) => failure = Some(reason),
            Err(_) => {}
        }
    }
    (failure, words)
}

/// Takes the records of one machine and turns them into observations.
pub(crate) struct Collector {
    pub(crate) channel: Channel,
    responders: ResponderSet,
    /// A probe measures, and what the guest writes to the port is no answer.
    probing: bool,
    total: u64,
    stall_deadline: Duration,
    answers: Option<Answers>,
    witness: Witness,
    triggers: u64,
    whole: bool,
    /// Whoever takes the observations wants no more.
    unheard: bool,
    first_answer: Option<Duration>,
}

impl Collector {
    pub(crate) fn new(stimulus: &Stimulus, channel: Channel) -> Collector {
        let (responders, total, silence) = match stimulus {
            Stimulus::Triggers(generator) => (
                generator.responders,
                generator.when.count(),
                generator.when.longest_gap().max(generator.grace),
            ),
            Stimulus::Probe(run) => (ResponderSet::default(), 0, run.expected),
        };
        Collector {
            channel,
            responders,
            probing: matches!(stimulus, Stimulus::Probe(_)),
            total,
            stall_deadline: STALL_DEADLINE + Duration::from_secs(silence.0 / 10_000_000),
            answers: None,
            witness: Witness::default(),
            triggers: 0,
            whole: false,
            unheard: false,
            first_answer: None,
        }
    }

    pub(crate) fn collect(
        mut self,
        mut running: Running,
        begun: Instant,
        (observe, mut see): (&mut Observer, Option<&mut Seer>),
        progress: &dyn Fn(Progress),
        snapshot: &Snapshot,
    ) -> Result<Outcome> {
        let (mut heard, mut told) = (Instant::now(), Instant::now());
        let (mut ended, mut asked) = (Ok(false), None::<Instant>);
        let ending = loop {
            // Asked before draining: what the machine wrote before it ended is then in the channel.
            ended = if matches!(ended, Ok(false)) { running.ended() } else { ended };
            let received = self.drain(begun, observe, &mut see)?;
            if self.unheard {
                break Ending::Interrupted;
            }
            if self.whole {
                break if asked.is_some() { Ending::Interrupted } else { Ending::Whole };
            }
            match &ended {
                Ok(false) => {}
                Ok(true) => break Ending::Died(why_it_ended(&running)),
                Err(e) => break Ending::Failed(e.to_string()),
            }
            if tool::interrupted() && asked.is_none() {
                if !self.probing || running.ask_probe_to_end().is_err() {
                    break Ending::Interrupted;
                }
                asked = Some(Instant::now());
            }
            if asked.is_some_and(|asked| asked.elapsed() > END_DEADLINE) {
                break Ending::Interrupted;
            }
            if received > 0 {
                heard = Instant::now();
            } else if heard.elapsed() > self.stall_deadline {
                break Ending::Failed(why_it_stands_still(&running, heard.elapsed()));
            }
            if told.elapsed() > PROGRESS_EVERY && self.answers.is_some() {
                told = Instant::now();
                progress(Progress::Measuring(self.triggers, self.total));
            }
            std::thread::sleep(tool::POLL);
        };
        if let Some(answers) = self.answers.take() {
            answers.finish(|o| self.unheard |= !self.unheard && observe(o).is_break());
        }
        let mut guest_ended = wait_for_end(&mut running, &ending);
        let (failure, words) = read_words(&running.wire());
        if let Some(reason) = failure {
            guest_ended = Err(format!("its init gave up: {reason}"));
        }
        let before = snapshot.console();
        let restored_at = before.len();
        let console = before + &running.console();
        Ok(Outcome {
            ending,
            dropped: self.channel.dropped() + words.dropped,
            report: words.report,
            witness: self.witness,
            context: snapshot.record.context.clone(),
            counters: words.counters,
            faults: console::faults(&console),
            console,
            restored_at,
            guest_ended,
            snapshot: String::new(),
            first_answer: self.first_answer,
        })
    }

    fn drain(
        &mut self,
        begun: Instant,
        observe: &mut Observer,
        see: &mut Option<&mut Seer>,
    ) -> Result<u64> {
        let Collector { channel, responders, probing, answers, witness, triggers, whole, .. } =
            self;
        let (first_answer, unheard) = (&mut self.first_answer, &mut self.unheard);
        let n = channel.drain(|record, gap| match record.kind {
            Kind::Mark if record.value as u8 == MARK_MEASURING => {
                *answers = Some(Answers::new(*responders, record.at, record.pins));
                witness.observe(record);
                see.iter_mut().for_each(|see| see(record));
            }
            Kind::Mark => {}
            Kind::Call | Kind::Wake | Kind::Clock => witness.observe(record),
            Kind::Stack
            | Kind::Irqs
            | Kind::Preempt
            | Kind::Task
            | Kind::Run
            | Kind::Enter
            | Kind::Leave
            | Kind::Stretch
            | Kind::Inside => see.iter_mut().for_each(|see| see(record)),
            Kind::Sample | Kind::Loss => {
                let observation = Reading::of(record).map(Observation::from);
                *unheard |= !*unheard && observation.is_some_and(|o| observe(o).is_break());
            }
            Kind::Pins if *probing => witness.observe(record),
            kind => {
                see.iter_mut().for_each(|see| see(record));
                *whole |= kind == Kind::End;
                *triggers += u64::from(kind == Kind::Trigger);
                if kind == Kind::Pins && first_answer.is_none() {
                    *first_answer = Some(begun.elapsed());
                }
                if let Some(answers) = answers {
                    if gap {
                        answers.resume(record);
                    }
                    answers.observe(record, |o| *unheard |= !*unheard && observe(o).is_break());
                }
            }
        })?;
        Ok(n)
    }
}

/// Waits for the guest to report and end. A guest that does not is killed when `running` is dropped.
fn wait_for_end(running: &mut Running, ending: &Ending) -> std::result::Result<(), String> {
    if *ending != Ending::Whole {
        return Err("measuring was not whole".into());
    }
    let begun = Instant::now();
    while begun.elapsed() < END_DEADLINE && !tool::interrupted() {
        match running.ended() {
            Ok(true) => return Ok(()),
            Ok(false) => std::thread::sleep(tool::POLL),
            Err(e) => return Err(e.to_string()),
        }
    }
    Err(format!("it still ran after {} s", begun.elapsed().as_secs()))
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
