// SPDX-License-Identifier: GPL-2.0-or-later
//! An upper bound of the scheduling latency from the longest stretches seen, after D. Bristot de Oliveira, D. Casini,
//! R. S. de Oliveira and T. Cucinotta, "Demystifying the Real-Time Linux Scheduling Latency" (ECRTS 2020, LIPIcs 165,
//! 9:1), theorem 8: the least positive L with
//!
//! ```text
//! L = max(D_ST, D_POID) + D_PAIE + D_PSD + I_NMI(L) + I_IRQ(L)
//! ```
//!
//! The terms are the paper's table 1. Each is the longest that was seen, without the interrupts inside it. I(L) is the
//! time that interrupts may take of an interval of length L: the paper's sliding window, separately for each entry and
//! vector. docs/methods/bound.md says what the terms mean on kernels that are not preemptible everywhere, and what the
//! bound does not hold for.

mod held;
mod interrupts;
mod report;
mod stretch;

pub use held::{Unbounded, scheduling};
pub use report::{BoundReport, TermReport};

use crate::cpu::{Activity, Cpu, Interrupt};
use crate::{At, Event, LAZY, Place, Role, What};
use interrupts::{NARROWEST, Source, WINDOWS};
use rustc_hash::FxHashMap;
use sample::{Nanos, Stamp, Virtual};
use stretch::{Opener, Stretch, Told};

/// The longest stretch of one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The length of the stretch, without interrupts.
    pub ns: Nanos,
    /// When the stretch began, on the virtual clock.
    pub at_ns: Nanos,
    /// The code that began the stretch: it turned interrupts or preemption off, or on for D_PAIE, or it called the
    /// scheduler.
    pub opened: Place,
    /// The place of the CPU in the stretch when the follower looked last.
    pub inside: Place,
}

/// The terms, and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// D_ST: from masking interrupts in the scheduler, over the switch, to the time at which preemption is on again.
    pub st: Term,
    /// D_POID: preemption or interrupts are off, and not in order to schedule.
    pub poid: Term,
    /// D_PAIE: both are on, and another task is asked for, until the scheduler is entered.
    pub paie: Term,
    /// D_PSD: preemption is off in order to schedule, from the scheduler's entry to the time at which preemption is on
    /// again.
    pub psd: Term,
    /// The first four put together: the latency without interrupts.
    pub interference_free_ns: Nanos,
    /// I(L): the interrupts in an interval as long as the bound. Absent if there is no bound.
    pub interrupts_ns: Option<Nanos>,
    /// L. Absent if no interval up to 2²⁴ ns (17 ms) fulfils the equation, because interrupts came too densely.
    pub bound_ns: Option<Nanos>,
}

impl Bound {
    /// Whether a task was scheduled later than the bound. Without a bound, no task was.
    pub fn is_exceeded_by(&self, scheduling: Nanos) -> bool {
        self.bound_ns.is_some_and(|bound| scheduling > bound)
    }
}

/// Follows events, and keeps the longest stretch of each term.
#[derive(Clone, Debug, Default)]
pub struct BoundMeter {
    cpu: Cpu,
    last: Option<At>,
    st: Stretch,
    poid: Stretch,
    paie: Stretch,
    psd: Stretch,
    /// Whether another task is asked for, and the scheduler was not entered since.
    asked: bool,
    /// Whether interrupts and preemption were on since then.
    was_on: bool,
    /// Whether interrupts were masked in the scheduler.
    switching: bool,
    /// The code that entered the scheduler last. Below, the code that turned interrupts or preemption on.
    scheduled: Place,
    turned_on: Place,
    interrupt: Option<(Interrupt, u64, u64)>,
    sources: FxHashMap<Interrupt, Source>,
}

impl BoundMeter {
    /// A meter that has followed no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        if let Some((last, (time, _))) = self.last.and_then(|l| Some((l, event.at.since(l)?))) {
            self.passed(last.time, time);
        }
        self.last = Some(event.at);
        self.cpu.event(event);
        match event.what {
            What::Enter { role: Role::NeedResched, taken, .. } => self.ask(taken),
            // Somebody asked for the chosen task before.
            What::Run { .. } => self.asked = false,
            What::Enter { role: Role::Schedule, place, .. } => {
                self.scheduled = place;
                (self.asked, self.was_on, self.switching) = (false, false, false);
                self.poid.end();
                self.paie.end();
                self.psd.end();
                self.st.end();
            }
            What::Irqs { masked: true, .. } => {
                let activity = self.cpu.activity();
                self.switching |= matches!(activity, Activity::Scheduler | Activity::Switch);
            }
            What::Irqs { masked: false, place, opened } => self.on(Told::Irqs, place, opened),
            What::Preempt { count: 0, place, opened } => self.on(Told::Preempt, place, opened),
            What::Inside { place, .. } => self.look(place),
            What::Gap => self.forget(),
            _ => {}
        }
    }

    fn on(&mut self, told: Told, place: Place, opened: Place) {
        self.turned_on = place;
        self.poid.told(told, opened);
        self.st.told(told, opened);
    }

    fn look(&mut self, place: Place) {
        // The terms do not contain interrupts.
        if !matches!(self.cpu.activity(), Activity::Interrupt(_)) {
            let stretches = [&mut self.st, &mut self.poid, &mut self.paie, &mut self.psd];
            stretches.into_iter().for_each(|stretch| stretch.look(place));
        }
    }

    /// The bound by the events so far.
    pub fn bound(&self) -> Bound {
        let [st, poid, paie, psd] =
            [&self.st, &self.poid, &self.paie, &self.psd].map(Stretch::longest);
        let free = st.ns.max(poid.ns) + paie.ns + psd.ns;
        let mut bound = free;
        // The interval only grows, by whole windows. So the loop ends.
        let interrupts = loop {
            let Some(interrupts) = self.interrupts(bound) else { break None };
            if free + interrupts <= bound {
                break Some(bound - free);
            }
            bound = free + interrupts;
        };
        Bound {
            st,
            poid,
            paie,
            psd,
            interference_free_ns: free,
            interrupts_ns: interrupts,
            bound_ns: interrupts.map(|_| bound),
        }
    }

    /// The time that interrupts may take of an interval of this length. `None` beyond the widest window.
    fn interrupts(&self, length: Nanos) -> Option<Nanos> {
        let window = (0..WINDOWS).find(|w| length.0 <= 1 << (NARROWEST as usize + w))?;
        Some(Nanos(self.sources.values().map(|source| source.most[window]).sum()))
    }

    /// Learns that somebody asks for another task. A lazy request is not for a task that the bound speaks of: the
    /// kernel may wait until the next tick. A request by the scheduler itself does not count either, since the
    /// scheduler withdraws it when it has chosen (kernel/sched/core.c, `__schedule`, `clear_tsk_need_resched`).
    fn ask(&mut self, urgency: u64) {
        let withdrawn = self.cpu.activity() == Activity::Scheduler;
        self.asked |= urgency != LAZY && !withdrawn;
    }

    /// Adds `time` since `from`, in the state before the event that ends it.
    fn passed(&mut self, from: Stamp<Virtual>, time: Nanos) {
        let activity = self.cpu.activity();
        if let Activity::Interrupt(interrupt) = activity {
            match &mut self.interrupt {
                Some((same, _, length)) if *same == interrupt => *length += time.0,
                _ => {
                    self.end_interrupt();
                    self.interrupt = Some((interrupt, from.ns(), time.0));
                }
            }
            return;
        }
        self.end_interrupt();
        if self.was_on {
            // If the kernel is not preemptible everywhere, all time until the scheduler is one wait.
            self.paie.add(from, time, (self.turned_on, None));
        }
        match activity {
            Activity::Scheduler | Activity::Switch => {
                self.psd.add(from, time, (self.scheduled, None));
                if self.switching {
                    self.st.add(from, time, (self.cpu.masked_at(), Some(Told::Irqs)));
                }
            }
            Activity::IrqsOff(_) | Activity::PreemptOff(_) | Activity::Softirq(_) => {
                self.end_scheduler();
                self.poid.add(from, time, self.opener(activity));
            }
            Activity::Kernel(_) | Activity::User | Activity::Idle => {
                self.end_scheduler();
                self.poid.end();
                if self.asked && !self.was_on {
                    self.was_on = true;
                    self.paie.add(from, time, (self.turned_on, None));
                }
            }
            Activity::Interrupt(_) | Activity::Unknown => {}
        }
    }

    /// The code that first turned off what is off.
    fn opener(&self, activity: Activity) -> Opener {
        match activity {
            Activity::IrqsOff(place) => (place, Some(Told::Irqs)),
            _ => (self.cpu.disabled_at(), Some(Told::Preempt)),
        }
    }

    fn end_scheduler(&mut self) {
        self.switching = false;
        self.psd.end();
        self.st.end();
    }

    fn end_interrupt(&mut self) {
        if let Some((interrupt, begin, length)) = self.interrupt.take() {
            self.sources.entry(interrupt).or_default().add(begin, length);
        }
    }

    fn forget(&mut self) {
        self.end_scheduler();
        self.poid.end();
        self.paie.end();
        (self.asked, self.was_on, self.interrupt) = (false, false, None);
    }
}

#[cfg(test)]
mod tests;
