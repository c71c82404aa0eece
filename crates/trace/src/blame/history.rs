// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps the events that are still needed to explain an answer, and the state before them.

use super::{Beginning, Disturbed, Explanation, explain};
use crate::cpu::Cpu;
use crate::{Event, Excerpt, Place, Tasks, What};
use sample::{Nanos, Responder};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// How long a disturbance may be felt, also in the answer to a trigger after it. The disturbance's interrupt and the
/// timers that its handler starts take less time than this, even if threads serve them.
pub const FELT_FOR: Nanos = Nanos::from_micros(500);

/// How many states are remembered. Explanations began with these states. The older the states are, the fewer are kept.
/// So going back by some events means to replay about as many, however many events there are.
const STATES_KEPT: usize = 16;

/// Why a latency cannot be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexplainable {
    /// The history does not have the trigger: it was forgotten, or it never existed.
    NoTrigger(u64),
    /// The pin has no edge after the trigger.
    NoEdge(u8),
    /// The task that was due did not go on.
    NotDone(u64),
    /// The events go back in time, so they did not come from a reader.
    Backwards,
}

impl fmt::Display for Unexplainable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTrigger(n) => write!(
                f,
                "trigger {n} is not among the events kept: explain an answer when it comes, or keep more events"
            ),
            Self::Backwards => f.write_str("events go back in time: read them by a Reader"),
            Self::NoEdge(pin) => write!(f, "pin {pin} did not change after that trigger"),
            Self::NotDone(n) => write!(f, "the task that was due (number {n}) did not go on"),
        }
    }
}

impl std::error::Error for Unexplainable {}

/// A bounded history. Push events. When an edge answers a trigger, ask for its explanation. Then forget the events that
/// no trigger needs any more.
#[derive(Clone, Debug)]
pub struct History {
    before: Cpu,
    /// The level of the pins before the events that are kept.
    level: Option<u16>,
    events: VecDeque<Event>,
    limit: usize,
    /// The number of events that were forgotten. With it, an event keeps its number while others are forgotten.
    forgotten: u64,
    /// The numbers of the events of the triggers that are kept, or of those at which a task was due. A run has one kind
    /// of the two.
    triggers: BTreeMap<u64, u64>,
    /// The states before the events of these numbers, rising. With them, an old trigger that nobody answers costs
    /// nothing. Without them, each later answer would be explained by replaying everything since that trigger.
    states: Vec<(u64, Cpu)>,
}

impl History {
    /// A history of at most `limit` events (at least one). Beyond the limit the oldest events are forgotten.
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        History {
            before: Cpu::default(),
            level: None,
            events: VecDeque::new(),
            limit,
            forgotten: 0,
            triggers: BTreeMap::new(),
            states: Vec::new(),
        }
    }

    /// Adds an event. If the event tells the place at which an earlier stretch began, the function writes this place
    /// into the event that began the stretch.
    pub fn push(&mut self, event: Event) {
        match event.what {
            What::Irqs { masked: false, opened: Place::Stack(id), .. } => {
                self.learn(true, Place::Stack(id));
            }
            What::Preempt { count: 0, opened: Place::Stack(id), .. } => {
                self.learn(false, Place::Stack(id));
            }
            _ => {}
        }
        if self.events.len() == self.limit {
            self.forget_first();
        }
        if let What::Trigger { number, .. } | What::Due { number } = event.what {
            let next = self.forgotten + self.events.len() as u64;
            self.triggers.entry(number).or_insert(next);
        }
        self.events.push_back(event);
    }

    /// Forgets the events that came longer than `before` before this trigger, which is the oldest one that may still be
    /// answered. If the history does not have the trigger, nothing is forgotten.
    pub fn forget_before(&mut self, trigger: u64, before: Nanos) {
        let Some(index) = self.find(trigger) else { return };
        let begins = self.begins(index, before);
        for _ in 0..begins {
            self.forget_first();
        }
    }

    /// How many of the events before `index` came longer than `before` before the event at `index`.
    fn begins(&self, index: usize, before: Nanos) -> usize {
        let at = self.events[index].at.time;
        let early = |e: &&Event| at.since(e.at.time).is_some_and(|time| time > before);
        self.events.iter().take(index).take_while(early).count()
    }

    /// Explains the answer to `trigger` by the last edge of `pin` (the responder's number). Call this when this
    /// edge is the last event that was pushed. If interrupts or preemption are off at that moment, no event has told
    /// yet who turned them off. Then the follower's last look into the stretch stands for it.
    pub fn explain(
        &mut self,
        trigger: u64,
        pin: u8,
        tasks: &Tasks,
    ) -> Result<Explanation, Unexplainable> {
        let from = self.find(trigger).ok_or(Unexplainable::NoTrigger(trigger))?;
        let to = self.last_edge(from, pin).ok_or(Unexplainable::NoEdge(pin))?;
        let by_timer = pin == Responder::TimerSoftirq.pin();
        self.explain_between(trigger, (from, to), by_timer, tasks)
    }

    /// Explains why the task that was due at the event [`What::Due`] with this number went on only at [`What::Done`].
    /// Call this when that is the last event that was pushed. The task is the one that runs then.
    pub fn explain_due(
        &mut self,
        number: u64,
        tasks: &Tasks,
    ) -> Result<Explanation, Unexplainable> {
        let from = self.find(number).ok_or(Unexplainable::NoTrigger(number))?;
        let is_done = |e: &Event| e.what == What::Done { number };
        let done = self.events.iter().skip(from).position(is_done);
        let done = done.ok_or(Unexplainable::NotDone(number))?;
        self.explain_between(number, (from, from + done), false, tasks)
    }

    /// Explains the time between the events at these indices, at whose end a timer may have answered.
    fn explain_between(
        &mut self,
        trigger: u64,
        (from, to): (usize, usize),
        by_timer: bool,
        tasks: &Tasks,
    ) -> Result<Explanation, Unexplainable> {
        self.learn_from_looks();
        let (cpu, _) = self.state_before(from);
        let events: Vec<Event> = self.events.range(from..=to).copied().collect();
        let explained = explain(cpu, &events, by_timer, tasks);
        let (task, parts) = explained.ok_or(Unexplainable::Backwards)?;
        let begin = parts.from().time.ns();
        let disturbed = |event: &Event| {
            let What::Disturbance { timers } = event.what else { return None };
            Some(Disturbed { from_ns: event.at.time.ns().wrapping_sub(begin) as i64, timers })
        };
        let at = self.events[from].at.time;
        let is_felt = |e: &&Event| at.since(e.at.time).is_none_or(|time| time <= FELT_FOR);
        let earlier = self.events.range(..from).rev().take_while(is_felt).count();
        let felt = self.events.range(from - earlier..=to);
        let disturbances = felt.filter_map(disturbed).collect();
        let is_due = matches!(self.events[from].what, What::Due { .. });
        let beginning = if is_due { Beginning::Due } else { Beginning::Trigger };
        Ok(Explanation { trigger, beginning, task, parts, disturbances })
    }

    /// The state before the event at `index`, and how many events had to be replayed to get it.
    fn state_before(&mut self, index: usize) -> (Cpu, usize) {
        let number = self.forgotten + index as u64;
        self.states.drain(..self.states.partition_point(|(at, _)| *at < self.forgotten));
        let known = self.states.partition_point(|(at, _)| *at <= number);
        let (at, state) = match known.checked_sub(1).map(|last| &self.states[last]) {
            Some((at, state)) => (*at, state),
            None => (self.forgotten, &self.before),
        };
        let mut cpu = state.clone();
        let begin = (at - self.forgotten) as usize;
        self.events.range(begin..index).for_each(|e| cpu.event(e));
        if at != number {
            self.states.insert(known, (number, cpu.clone()));
        }
        if self.states.len() > STATES_KEPT {
            self.thin_out();
        }
        (cpu, index - begin)
    }

    /// Forgets the least useful state: the one with the shortest way from the state before it to the state after it, in
    /// comparison with its age.
    fn thin_out(&mut self) {
        let Some((newest, _)) = self.states.last() else { return };
        let missed = |around: &[(u64, Cpu)]| {
            let [before, after] = [&around[0], &around[2]].map(|(at, _)| *at);
            // The result is in 1024ths. The second number is never less than the first.
            ((after - before) << 10) / (newest - before).max(1)
        };
        let least = self.states.windows(3).enumerate().min_by_key(|(_, around)| missed(around));
        if let Some((index, _)) = least {
            self.states.remove(index + 1);
        }
    }

    /// A copy of the events from `before` the trigger on to the last one. `None` if the history does not have the
    /// trigger.
    pub fn excerpt(&self, trigger: u64, before: Nanos) -> Option<Excerpt> {
        let skipped = self.begins(self.find(trigger)?, before);
        let (mut cpu, mut level) = (self.before.clone(), self.level);
        for event in self.events.iter().take(skipped) {
            cpu.event(event);
            level = level_of(event).or(level);
        }
        let events: Vec<Event> = self.events.iter().skip(skipped).copied().collect();
        // No event told the level before, so it is the level of the first event that has one.
        let level = level.or_else(|| events.iter().find_map(level_of)).unwrap_or_default();
        Some(Excerpt { before: cpu, level, events })
    }

    /// The place of the CPU at the follower's last look into a stretch that is still open.
    fn learn_from_looks(&mut self) {
        let mut open = [true, true];
        let mut looks = [None, None];
        for event in self.events.iter().rev() {
            match event.what {
                What::Irqs { masked: false, .. } => open[0] = false,
                What::Preempt { count: 0, .. } => open[1] = false,
                What::Gap => break,
                What::Inside { irqs_off, preempt_off, place: Place::Stack(id), .. } => {
                    for (index, looked) in [irqs_off, preempt_off].into_iter().enumerate() {
                        if looked && open[index] {
                            looks[index].get_or_insert(Place::Stack(id));
                        }
                    }
                }
                _ => {}
            }
            if open == [false, false] {
                break;
            }
        }
        for (irqs, look) in [true, false].into_iter().zip(looks) {
            if let Some(place) = look {
                self.learn(irqs, place);
            }
        }
    }

    /// Interrupts or preemption are on again now, and had been turned off at `opened`. For interrupts the last masking
    /// had turned them off. For preemption it was the first count after the last count of 0.
    fn learn(&mut self, irqs: bool, opened: Place) {
        let (mut first, mut began_here) = (None, !self.before.preempt_off());
        for (index, event) in self.events.iter_mut().enumerate().rev() {
            match &mut event.what {
                What::Irqs { masked: true, place, .. } if irqs => {
                    *place = opened;
                    self.unlearn(Some(index));
                    return;
                }
                What::Preempt { count: 0, .. } if !irqs => {
                    began_here = true;
                    break;
                }
                What::Preempt { place, .. } if !irqs => first = Some((index, place)),
                What::Gap => {
                    began_here = true;
                    break;
                }
                _ => {}
            }
        }
        match first {
            // The history may have counts that rose and fell inside the stretch, and not the count that began it.
            Some((index, place)) if began_here => {
                *place = opened;
                self.unlearn(Some(index));
            }
            _ => {
                self.before.learn(irqs, opened);
                self.unlearn(None);
            }
        }
    }

    /// Forgets the states that contain the event at `index`, because this event was changed. If the state before all
    /// events was changed, the function forgets all states.
    fn unlearn(&mut self, index: Option<usize>) {
        let until = index.map_or(0, |index| self.forgotten + index as u64);
        self.states.truncate(self.states.partition_point(|(at, _)| *at <= until));
    }

    fn find(&self, trigger: u64) -> Option<usize> {
        let number = self.triggers.get(&trigger)?;
        Some((number - self.forgotten) as usize)
    }

    /// The last event after `from` that changes the pin's level.
    fn last_edge(&self, from: usize, pin: u8) -> Option<usize> {
        let mask = 1u16.checked_shl(pin.into())?;
        let What::Trigger { mut level, .. } = self.events.get(from)?.what else { return None };
        let mut edge = None;
        for (index, event) in self.events.iter().enumerate().skip(from) {
            let What::Pins { level: now } = event.what else { continue };
            if (level ^ now) & mask != 0 {
                edge = Some(index);
            }
            level = now;
        }
        edge
    }

    fn forget_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            if let What::Trigger { number, .. } | What::Due { number } = event.what
                && self.triggers.get(&number) == Some(&self.forgotten)
            {
                self.triggers.remove(&number);
            }
            self.forgotten += 1;
            self.before.event(&event);
            self.level = level_of(&event).or(self.level);
        }
    }
}

fn level_of(event: &Event) -> Option<u16> {
    match event.what {
        What::Pins { level } | What::Trigger { level, .. } => Some(level),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, Reader, StackId};
    use proptest::prelude::*;
    use sample::{Insns, Stamp};

    fn event(ns: u64, what: What) -> Event {
        Event { at: At::new(Stamp::from_ns(ns), Insns(ns)), what }
    }

    fn place(stack: u32) -> Place {
        if stack == 0 { Place::Unknown } else { Place::Stack(StackId(stack)) }
    }

    fn irqs(masked: bool, stack: u32) -> What {
        What::Irqs { masked, place: place(stack), opened: place(stack) }
    }

    fn preempt(count: u32, stack: u32) -> What {
        What::Preempt { count, place: place(stack), opened: place(stack) }
    }

    /// Nobody ever answers trigger 0. A pin answers each of the others, in stretches that end before and after the
    /// answer.
    #[test]
    fn answers_beside_a_trigger_that_nobody_answers_cost_as_much_as_events_came() {
        let mut history = History::new(1 << 20);
        let (mut now, mut replayed) = (0, 0);
        let mut push = |history: &mut History, what| {
            now += 10;
            history.push(event(now, what));
        };
        for number in 0..3_000 {
            push(&mut history, What::Trigger { number, level: 0 });
            for _ in 0..5 {
                push(&mut history, irqs(true, 0));
                push(&mut history, irqs(false, 7));
            }
            // One stretch for each hundred triggers.
            push(&mut history, preempt(u32::from(number % 100 != 0), 9));
            push(&mut history, What::Pins { level: 1 });
            if number > 0 {
                let index = history.find(number).expect("kept");
                replayed += history.state_before(index).1;
                history.explain(number, 0, Reader::new(&[]).tasks()).expect("answered");
                push(&mut history, What::Pins { level: 0 });
            }
            history.forget_before(0, Nanos(0));
        }
        let events = history.events.len();
        assert!(events > 3_000 * 13 && replayed < 3 * events, "{replayed} for {events} events");
    }

    fn any_what() -> impl Strategy<Value = What> {
        let counts = prop_oneof![Just(0u32), Just(1), Just(0x100), Just(0x1_0001)];
        prop_oneof![
            3 => (any::<bool>(), 0u32..4).prop_map(|(masked, stack)| irqs(masked, stack)),
            3 => (counts, 0u32..4).prop_map(|(count, stack)| preempt(count, stack)),
            1 => any::<bool>().prop_map(|user| What::Leave { user, to: 0 }),
            1 => (0u8..=64).prop_map(|timers| What::Disturbance { timers }),
            1 => Just(What::Gap),
            4 => Just(What::Pins { level: 1 }),
            // The numbers are filled in later.
            4 => Just(What::Trigger { number: 0, level: 0 }),
        ]
    }

    proptest! {
        #[test]
        fn what_was_explained_before_does_not_change_what_is_explained(
            steps in prop::collection::vec((0u64..50, any_what(), 0u64..8), 0..400),
            limit in 1usize..300,
            forgetting in any::<bool>(),
        ) {
            let (mut now, mut triggers) = (0, 0);
            let tasks = Reader::new(&[]).tasks().clone();
            let mut history = History::new(limit);
            for (step, mut what, back) in steps {
                now += step;
                if let What::Trigger { number, .. } = &mut what {
                    *number = triggers;
                    triggers += 1;
                }
                history.push(event(now, what));
                if matches!(what, What::Pins { .. }) {
                    let trigger = triggers.saturating_sub(1 + back);
                    let mut cold = history.clone();
                    cold.states.clear();
                    let said = history.explain(trigger, 0, &tasks);
                    prop_assert_eq!(said, cold.explain(trigger, 0, &tasks));
                }
                if forgetting {
                    history.forget_before(triggers.saturating_sub(4), Nanos(0));
                }
            }
        }
    }
}
