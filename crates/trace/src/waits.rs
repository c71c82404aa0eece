// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds how long the kernel goes on after somebody asked for another task, until it enters the scheduler.
//!
//! On a kernel that is not preemptible everywhere this is the distance to the next place at which it would schedule,
//! measured only where a task waits for that place. Interrupts and softirqs that come meanwhile are part of it. Lazy
//! requests do not count: nobody urgent waits. Requests that come while the kernel schedules do not count either, since
//! the scheduler withdraws them when it has chosen (kernel/sched/core.c, `__schedule`).

use crate::windows::Length;
use crate::{At, Event, LAZY, Place, Role, What};
use rustc_hash::FxHashMap;
use sample::Insns;

/// The longest wait of those that have both places in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its length.
    pub length: Length,
    /// When the other task was asked for.
    pub at: At,
    /// The code that entered the scheduler.
    pub closed_by: Place,
    /// The place of the CPU when the follower looked last. Unknown if the wait was too short for a look.
    pub inside: Place,
}

/// A wait that goes on.
#[derive(Clone, Copy, Debug)]
struct Asked {
    since: At,
    /// Where the CPU was at the last look.
    inside: Place,
    /// Whether that look was for the whole way between two places at which the kernel would schedule.
    is_of_the_way: bool,
}

/// Follows events, and keeps the longest wait of each pair of places. Memory grows with the number of different places.
#[derive(Clone, Debug)]
pub struct Waits {
    asked: Option<Asked>,
    /// Whether the kernel schedules: from the scheduler's entry until preemption is on again.
    is_scheduling: bool,
    longest: FxHashMap<(Place, Place), Wait>,
    /// Waits that are shorter than this are not kept. Below, those that are not looked into.
    kept_from: Insns,
    inside_from: Insns,
}

impl Waits {
    /// Waits of which nothing has been followed yet. It keeps those as long as `kept_from`.
    pub fn new(kept_from: Insns, inside_from: Insns) -> Waits {
        let (asked, longest) = (None, FxHashMap::default());
        Waits { asked, is_scheduling: false, longest, kept_from, inside_from }
    }

    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        match event.what {
            What::Enter { role: Role::NeedResched, taken, .. }
                if taken != LAZY && !self.is_scheduling =>
            {
                let (since, inside) = (event.at, Place::Unknown);
                self.asked.get_or_insert(Asked { since, inside, is_of_the_way: false });
            }
            What::Enter { role: Role::Schedule, place, .. } => {
                self.is_scheduling = true;
                self.close(event.at, place);
            }
            What::Preempt { count: 0, .. } => self.is_scheduling = false,
            // A switch without the scheduler's entry was not seen whole.
            What::Run { .. } => self.asked = None,
            What::Inside { unscheduled, place, .. } => {
                self.look(event.at, unscheduled.is_some(), place);
            }
            What::Gap => (self.asked, self.is_scheduling) = (None, false),
            _ => {}
        }
    }

    /// The longest waits, in no order.
    pub fn longest(&self) -> impl Iterator<Item = &Wait> {
        self.longest.values()
    }

    /// Takes a look. A look into a shorter stretch on the way, such as one with preemption off, says less of the whole
    /// way: its callers may be those of the way, and its innermost functions are not. It counts where there is no
    /// other.
    fn look(&mut self, at: At, is_of_the_way: bool, place: Place) {
        let Some(asked) = &mut self.asked else { return };
        let is_long = at.since(asked.since).is_some_and(|(_, insns)| insns >= self.inside_from);
        if is_long && (is_of_the_way || !asked.is_of_the_way) {
            (asked.inside, asked.is_of_the_way) = (place, is_of_the_way);
        }
    }

    fn close(&mut self, at: At, closed_by: Place) {
        let Some(Asked { since, inside, .. }) = self.asked.take() else { return };
        let Some((time, insns)) = at.since(since).filter(|(_, insns)| *insns >= self.kept_from)
        else {
            return;
        };
        let wait = Wait { length: Length { time, insns }, at: since, closed_by, inside };
        let kept = self.longest.entry((closed_by, inside)).or_insert(wait);
        if wait.length > kept.length {
            *kept = wait;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StackId, TaskId};
    use sample::Stamp;

    fn event(ns: u64, what: What) -> Event {
        Event { at: At::new(Stamp::from_ns(ns), Insns(ns)), what }
    }

    fn on(stack: u32) -> Place {
        Place::Stack(StackId(stack))
    }

    fn enter(ns: u64, role: Role, taken: u64, stack: u32) -> Event {
        let opened = Place::Unknown;
        event(ns, What::Enter { role, address: 0, taken, place: on(stack), opened })
    }

    fn on_again(ns: u64) -> Event {
        event(ns, What::Preempt { count: 0, place: Place::Unknown, opened: Place::Unknown })
    }

    fn look(ns: u64, stack: u32, is_for_the_way: bool) -> Event {
        let (irqs_off, preempt_off) = (false, !is_for_the_way);
        let unscheduled = is_for_the_way.then_some(Insns(100));
        event(ns, What::Inside { irqs_off, preempt_off, unscheduled, place: on(stack) })
    }

    fn waits(events: &[Event]) -> Vec<(u64, u64, Place, Place)> {
        let mut waits = Waits::new(Insns(50), Insns(100));
        events.iter().for_each(|event| waits.event(event));
        let told = |w: &Wait| (w.at.time.ns(), w.length.time.0, w.closed_by, w.inside);
        let mut all: Vec<_> = waits.longest().map(told).collect();
        all.sort();
        all
    }

    #[test]
    fn a_wait_goes_from_the_first_request_to_the_scheduler_with_the_last_look() {
        let events = [
            enter(1000, Role::NeedResched, 0, 9),
            look(1050, 7, true),
            enter(1100, Role::NeedResched, 0, 9),
            look(1400, 8, true),
            look(1850, 6, false),
            enter(1900, Role::Schedule, 0, 3),
            on_again(1950),
            enter(2000, Role::NeedResched, 0, 9),
            enter(2060, Role::Schedule, 0, 3),
            on_again(2070),
            enter(3000, Role::NeedResched, 0, 9),
            look(3200, 5, false),
            enter(3500, Role::Schedule, 0, 3),
        ];
        let expected = [
            (1000, 900, on(3), on(8)),
            (2000, 60, on(3), Place::Unknown),
            (3000, 500, on(3), on(5)),
        ];
        assert_eq!(waits(&events), expected);
    }

    #[test]
    fn what_nobody_urgent_asked_for_or_the_scheduler_withdraws_is_no_wait() {
        let run = What::Run { task: TaskId(1), pid: 1 };
        let events = [
            enter(1000, Role::NeedResched, LAZY, 9),
            enter(2000, Role::Schedule, 0, 3),
            enter(2010, Role::NeedResched, 0, 9),
            on_again(2100),
            enter(3000, Role::Schedule, 0, 3),
            on_again(3010),
            enter(3100, Role::NeedResched, 0, 9),
            event(3300, run),
            enter(3400, Role::Schedule, 0, 3),
            on_again(3410),
            enter(3500, Role::NeedResched, 0, 9),
            event(3600, What::Gap),
            enter(3700, Role::Schedule, 0, 3),
            on_again(3710),
            enter(3800, Role::NeedResched, 0, 9),
            enter(3849, Role::Schedule, 0, 3),
        ];
        assert_eq!(waits(&events), []);
    }

    #[test]
    fn of_waits_between_the_same_places_the_longest_is_kept() {
        let mut events = Vec::new();
        for (begin, length) in [(1000, 80), (2000, 95), (3000, 60)] {
            events.push(enter(begin, Role::NeedResched, 0, 9));
            events.push(enter(begin + length, Role::Schedule, 0, 3));
            events.push(on_again(begin + length + 1));
        }
        assert_eq!(waits(&events), [(2000, 95, on(3), Place::Unknown)]);
    }
}
