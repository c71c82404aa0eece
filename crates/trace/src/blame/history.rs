// SPDX-License-Identifier: GPL-2.0-or-later
//! Events that are still needed to explain an answer, and the state before them.

use super::{Disturbed, Explanation, explain};
use crate::cpu::Cpu;
use crate::{Event, Excerpt, Place, Tasks, What};
use sample::Nanos;
use std::collections::VecDeque;
use std::fmt;

/// How long a disturbance may be felt, also in the answer to a trigger that comes after it: its interrupt, and the timers that its handler starts, which
/// take less even where threads serve them.
pub const FELT_FOR: Nanos = Nanos::from_micros(500);

/// Why a latency cannot be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexplainable {
    /// The trigger is not among the events that are kept: it was forgotten, or there was never one.
    NoTrigger(u64),
    /// No edge of that pin after the trigger.
    NoEdge(u8),
    /// The events go back in time: they did not come from a reader.
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
            Self::NoEdge(pin) => write!(f, "D{pin} did not change after that trigger"),
        }
    }
}

impl std::error::Error for Unexplainable {}

/// A bounded history. Push events; when an edge answers a trigger, ask for its explanation; then forget what no trigger
/// needs any more.
#[derive(Clone, Debug)]
pub struct History {
    before: Cpu,
    /// Level of the pins before the events that are kept.
    level: Option<u8>,
    events: VecDeque<Event>,
    limit: usize,
}

impl History {
    /// A history of at most `limit` events (at least one); beyond that the oldest are forgotten.
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        History { before: Cpu::default(), level: None, events: VecDeque::new(), limit }
    }

    /// Adds an event. What tells where an earlier stretch began is written where that stretch began.
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
        self.events.push_back(event);
    }

    /// Forgets what came longer than `before` before this trigger: it is the oldest that may still be answered. Where the
    /// trigger is not kept, nothing is forgotten.
    pub fn forget_before(&mut self, trigger: u64, before: Nanos) {
        let Some(index) = self.find(trigger) else { return };
        let begins = self.begins(index, before);
        for _ in 0..begins {
            self.forget_first();
        }
    }

    /// Of the events before the one at `index`, how many came longer than `before` before it.
    fn begins(&self, index: usize, before: Nanos) -> usize {
        let at = self.events[index].at.time;
        let early = |e: &&Event| at.since(e.at.time).is_some_and(|time| time > before);
        self.events.iter().take(index).take_while(early).count()
    }

    /// Explains the answer to `trigger` by the last edge of `pin` (bit of the data port, 0 to 7): ask when that edge is the
    /// last that was pushed. What was off then, and so has not told yet who turned it off, is known by the last look into it.
    pub fn explain(
        &mut self,
        trigger: u64,
        pin: u8,
        tasks: &Tasks,
    ) -> Result<Explanation, Unexplainable> {
        let from = self.find(trigger).ok_or(Unexplainable::NoTrigger(trigger))?;
        let to = self.last_edge(from, pin).ok_or(Unexplainable::NoEdge(pin))?;
        self.learn_from_looks();
        let felt = self.begins(from, FELT_FOR);
        let events = &*self.events.make_contiguous();
        let mut cpu = self.before.clone();
        events[..from].iter().for_each(|e| cpu.event(e));
        let explained = explain(cpu, &events[from..=to], tasks);
        let (task, parts) = explained.ok_or(Unexplainable::Backwards)?;
        let begin = parts.from().time.ns();
        let disturbed = |event: &Event| {
            let What::Disturbance { timers } = event.what else { return None };
            Some(Disturbed { from_ns: event.at.time.ns().wrapping_sub(begin) as i64, timers })
        };
        let disturbances = events[felt..=to].iter().filter_map(disturbed).collect();
        Ok(Explanation { trigger, pin, task, parts, disturbances })
    }

    /// A copy of the events from `before` the trigger on to the last one; `None` where the trigger is not kept.
    pub fn excerpt(&self, trigger: u64, before: Nanos) -> Option<Excerpt> {
        let skipped = self.begins(self.find(trigger)?, before);
        let (mut cpu, mut level) = (self.before.clone(), self.level);
        for event in self.events.iter().take(skipped) {
            cpu.event(event);
            level = level_of(event).or(level);
        }
        let events: Vec<Event> = self.events.iter().skip(skipped).copied().collect();
        // Nothing told the level before: it is what the first event that has one says.
        let level = level.or_else(|| events.iter().find_map(level_of)).unwrap_or_default();
        Some(Excerpt { before: cpu, level, events })
    }

    /// Of what is still off: where the CPU was in it at the last look.
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

    /// Interrupts or preemption, on again now, had been turned off at `opened`: by the last masking, or by the first count
    /// after the last one that was 0.
    fn learn(&mut self, irqs: bool, opened: Place) {
        let (mut first, mut began_here) = (None, !self.before.preempt_off());
        for event in self.events.iter_mut().rev() {
            match &mut event.what {
                What::Irqs { masked: true, place, .. } if irqs => {
                    *place = opened;
                    return;
                }
                What::Preempt { count: 0, .. } if !irqs => {
                    began_here = true;
                    break;
                }
                What::Preempt { place, .. } if !irqs => first = Some(place),
                What::Gap => {
                    began_here = true;
                    break;
                }
                _ => {}
            }
        }
        match first {
            // Counts that rose and fell inside it may be kept while the one that began it is not.
            Some(place) if began_here => *place = opened,
            _ => self.before.learn(irqs, opened),
        }
    }

    fn find(&self, trigger: u64) -> Option<usize> {
        let is = |e: &Event| matches!(e.what, What::Trigger { number, .. } if number == trigger);
        self.events.iter().position(is)
    }

    /// The last event after `from` in which the pin's level is another than before it.
    fn last_edge(&self, from: usize, pin: u8) -> Option<usize> {
        let mask = 1u8.checked_shl(pin.into())?;
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
            self.before.event(&event);
            self.level = level_of(&event).or(self.level);
        }
    }
}

fn level_of(event: &Event) -> Option<u8> {
    match event.what {
        What::Pins { level } | What::Trigger { level, .. } => Some(level),
        _ => None,
    }
}
