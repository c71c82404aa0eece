// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells what is off at each instant of a census's window: interrupts, or preemption, and who turned it off. The guest
//! is run once more, followed, up to the end of the window. A trial of the census is the same run up to its trigger.

use super::{Window, triggered};
use crate::Error;
use crate::followed::{Ready, Reproducer, STACKS_FROM};
use rig::{Calls, Following};
use sample::{Nanos, Stamp, Virtual};
use std::cell::RefCell;
use std::ops::ControlFlow;
use trace::{Event, Place, Reader, Symbols, What, WindowKind};

/// What is off at an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opened {
    /// What is off. If interrupts and preemption are, it is interrupts.
    pub kind: WindowKind,
    /// Who turned it off: the functions of the stack, innermost first, or the one that is known.
    pub by: Vec<String>,
}

/// A stretch with interrupts or preemption off, in nanoseconds since measuring began.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    from: Nanos,
    until: Nanos,
    opened: Opened,
}

/// The stretches of a run up to the end of a window.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    /// Those with interrupts off, by time.
    masked: Vec<Interval>,
    /// Those with preemption off, by time.
    held: Vec<Interval>,
}

impl Stretches {
    /// Adds a stretch, which comes after the others of its kind.
    fn add(&mut self, interval: Interval) {
        match interval.opened.kind {
            WindowKind::IrqsOff => self.masked.push(interval),
            _ => self.held.push(interval),
        }
    }

    /// What is off at this instant. `None` if nothing is.
    pub fn at(&self, at: Nanos) -> Option<&Opened> {
        within(&self.masked, at).or_else(|| within(&self.held, at))
    }
}

/// Who opened that of these stretches in which this instant lies.
fn within(intervals: &[Interval], at: Nanos) -> Option<&Opened> {
    let after = intervals.partition_point(|interval| interval.from <= at);
    let last = &intervals[after.checked_sub(1)?];
    (at < last.until).then_some(&last.opened)
}

/// Collects stretches from what the follower tells.
#[derive(Default)]
struct Collector {
    origin: Option<Stamp<Virtual>>,
    /// Since when interrupts are masked, and by whom.
    masked: Option<(Nanos, Place)>,
    /// Since when preemption is off.
    held: Option<Nanos>,
    is_idle: bool,
    count: u32,
    /// The beginning of the window. What ended before is left out: a guest under load opens millions in a second.
    window: Nanos,
    /// Each stretch with its ends and its opener.
    told: Vec<(WindowKind, Nanos, Nanos, Place)>,
    /// When the window's end was reached.
    ended: Option<Nanos>,
}

impl Collector {
    fn event(&mut self, event: &Event) {
        let Some(at) = self.origin.and_then(|origin| event.at.time.since(origin)) else { return };
        if self.ended.is_some() {
            return;
        }
        match event.what {
            What::Trigger { .. } => self.ended = Some(at),
            What::Irqs { masked: true, place, .. } => self.masked = Some((at, place)),
            What::Irqs { masked: false, opened, .. } => {
                if let Some((from, place)) = self.masked.take() {
                    let place = if opened == Place::Unknown { place } else { opened };
                    self.tell(WindowKind::IrqsOff, (from, at), place);
                }
            }
            What::Preempt { count, opened, .. } => {
                self.count = count;
                self.hold(at, opened);
            }
            What::Run { pid, .. } => {
                self.is_idle = pid == 0;
                self.hold(at, Place::Unknown);
            }
            _ => {}
        }
    }

    /// Learns that the count has changed, or that another task runs. The idle task always has a count of 1
    /// (kernel/sched/core.c, `init_idle()`).
    fn hold(&mut self, at: Nanos, opened: Place) {
        match (self.held, self.count > u32::from(self.is_idle)) {
            (None, true) => self.held = Some(at),
            (Some(from), false) => {
                self.held = None;
                self.tell(WindowKind::PreemptOff, (from, at), opened);
            }
            _ => {}
        }
    }

    fn tell(&mut self, kind: WindowKind, (from, until): (Nanos, Nanos), place: Place) {
        if until > self.window {
            self.told.push((kind, from, until, place));
        }
    }

    fn stretches(mut self, reader: &Reader, symbols: &dyn Symbols) -> Stretches {
        let end = self.ended.unwrap_or(Nanos(u64::MAX));
        // Those that were open at the end were so until then, at least.
        if let Some((from, place)) = self.masked {
            self.told.push((WindowKind::IrqsOff, from, end + Nanos(1), place));
        }
        if let Some(from) = self.held {
            self.told.push((WindowKind::PreemptOff, from, end + Nanos(1), Place::Unknown));
        }
        let mut stretches = Stretches::default();
        for (kind, from, until, place) in self.told {
            let by = hunt::place(&reader.stacks().names(place, symbols));
            stretches.add(Interval { from, until, opened: Opened { kind, by } });
        }
        stretches
    }
}

/// The stretches up to the end of the window, without the trigger that the find is about.
///
/// # Errors
/// The errors of following and of the rig.
pub fn stretches(ready: &Ready, find: &Reproducer, window: Window) -> Result<Stretches, Error> {
    let (map, follow) = ready.follow(STACKS_FROM, Calls::None)?;
    let reader = Reader::new(&follow.watches).with_lazy_flag(follow.lazy);
    let last = super::earlier(find).len() as u64;
    let collector = Collector { window: window.from, ..Collector::default() };
    let shared = RefCell::new((reader, collector));
    let mut see = |event: &wire::Event| {
        let (reader, collector) = &mut *shared.borrow_mut();
        if let wire::Event::Mark { at, .. } = event {
            collector.origin = Some(at.time);
        }
        match reader.read(event) {
            // The earlier triggers of the find belong to the way.
            Some(Event { what: What::Trigger { number, .. }, .. }) if number < last => {}
            Some(event) => collector.event(&event),
            None => {}
        }
    };
    let generator = triggered(ready, find, window.until);
    let following = Following { follow: &follow, see: &mut see };
    let mut observe = |_| ControlFlow::Continue(());
    let outcome = ready.fire(generator, &mut observe, Some(following), &|_| ())?;
    super::check(&outcome, window.until)?;
    let (reader, collector) = shared.into_inner();
    Ok(collector.stretches(&reader, &map))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stretches of these kinds, from and until these times, by these openers.
    pub fn stretches(told: &[(WindowKind, u64, u64, &str)]) -> Stretches {
        let mut stretches = Stretches::default();
        for &(kind, from, until, by) in told {
            let opened = Opened { kind, by: vec![by.into()] };
            stretches.add(Interval { from: Nanos(from), until: Nanos(until), opened });
        }
        stretches
    }

    #[test]
    fn at_each_instant_interrupts_come_before_preemption() {
        let stretches = stretches(&[
            (WindowKind::PreemptOff, 10, 40, "c"),
            (WindowKind::IrqsOff, 20, 30, "a"),
            (WindowKind::IrqsOff, 50, 60, "b"),
        ]);
        let at = |ns| stretches.at(Nanos(ns)).map_or("", |opened| opened.by[0].as_str());
        let told = [5, 10, 19, 20, 29, 30, 39, 40, 49, 50, 60].map(at);
        assert_eq!(told, ["", "c", "c", "a", "a", "c", "c", "", "", "b", ""]);
    }
}
