// SPDX-License-Identifier: GPL-2.0-or-later
//! Events around a trigger, and the state before them, for traces.

use crate::cpu::Cpu;
use crate::{Activity, At, Event, Place, TaskId, What};

/// Some events in their order, and the state before the first one.
#[derive(Clone, Debug)]
pub struct Excerpt {
    pub(crate) before: Cpu,
    pub(crate) level: u16,
    pub(crate) events: Vec<Event>,
}

/// The state after an event, which lasts until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    /// The place since which interrupts are off.
    pub irqs_off: Option<Place>,
    /// The place since which preemption is off.
    pub preempt_off: Option<Place>,
    /// The task that runs.
    pub running: Option<TaskId>,
    /// The activity of the CPU.
    pub activity: Activity,
    /// The softirq that the task serves, in kernels in which tasks do.
    pub served_by_task: Option<Option<u64>>,
    /// The level of the pins.
    pub level: u16,
}

impl Now {
    fn of(cpu: &Cpu, level: u16) -> Now {
        Now {
            irqs_off: (cpu.masked() == Some(true)).then(|| cpu.masked_at()),
            preempt_off: cpu.preempt_off().then(|| cpu.disabled_at()),
            running: cpu.running(),
            activity: cpu.activity(),
            served_by_task: cpu.served_by_task(),
            level,
        }
    }
}

impl Excerpt {
    /// The instant of the first event. `None` if there is no event.
    pub fn from(&self) -> Option<At> {
        self.events.first().map(|e| e.at)
    }

    /// The state before the first event.
    pub(crate) fn initial(&self) -> Now {
        Now::of(&self.before, self.level)
    }

    /// Each event with the state after it.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&Event, Now)> {
        let (mut cpu, mut level) = (self.before.clone(), self.level);
        self.events.iter().map(move |event| {
            cpu.event(event);
            match event.what {
                What::Pins { level: now } | What::Trigger { level: now, .. } => level = now,
                _ => {}
            }
            (event, Now::of(&cpu, level))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{History, Role, Symbols};
    use sample::{Insns, Nanos, Stamp};

    pub(crate) struct Letters;
    impl Symbols for Letters {
        fn name(&self, address: u64) -> Option<String> {
            Some(format!("f{address}+0x0"))
        }

        fn caller(&self, address: u64) -> Option<String> {
            self.name(address)
        }
    }

    pub(crate) fn symbols() -> Letters {
        Letters
    }

    /// Interrupts are off from 10 to 40 and from 50 on. Trigger 3 comes at 20, a disturbance at 30. D2 is high from 60
    /// on, a wake-up comes at 70, and the end at 90.
    pub(crate) fn excerpt() -> Excerpt {
        let irqs = |masked, address| {
            let place = Place::Address(address);
            What::Irqs { masked, place, opened: Place::Unknown }
        };
        let wake = What::Enter {
            role: Role::WakeUp,
            address: 7,
            taken: 1,
            place: Place::Unknown,
            opened: Place::Unknown,
        };
        let events = [
            (5, irqs(false, 1)),
            (10, irqs(true, 5)),
            (20, What::Trigger { number: 3, level: 0 }),
            (30, What::Disturbance { timers: 8 }),
            (40, irqs(false, 5)),
            (50, irqs(true, 6)),
            (60, What::Pins { level: 4 }),
            (70, wake),
            (90, What::Pins { level: 4 }),
        ];
        let mut history = History::new(100);
        for (ns, what) in events {
            let at = At::new(Stamp::from_ns(ns), Insns(ns));
            history.push(Event { at, what });
        }
        history.excerpt(3, Nanos(12)).expect("trigger 3 is kept")
    }

    #[test]
    fn an_excerpt_begins_before_the_trigger_and_knows_the_state_there() {
        let excerpt = excerpt();
        assert_eq!(excerpt.from().map(|at| at.time), Some(Stamp::from_ns(10)));
        assert_eq!(excerpt.initial().irqs_off, None);
        let off: Vec<_> = excerpt.states().map(|(_, now)| now.irqs_off.is_some()).collect();
        assert_eq!(off, [true, true, true, false, true, true, true, true]);
    }
}
