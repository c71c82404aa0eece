// SPDX-License-Identifier: GPL-2.0-or-later
//! An upper bound of the scheduling latency from the longest stretches seen, after D. Bristot de Oliveira, D. Casini,
//! R. S. de Oliveira and T. Cucinotta, "Demystifying the Real-Time Linux Scheduling Latency" (ECRTS 2020, LIPIcs 165, 9:1),
//! theorem 8: the least positive L with
//!
//! ```text
//! L = max(D_ST, D_POID) + D_PAIE + D_PSD + I_NMI(L) + I_IRQ(L)
//! ```
//!
//! The terms are the paper's table 1, each the longest seen, without the interrupts inside it. I(L) is what interrupts may
//! take of an interval of length L: the paper's sliding window, for each entry and vector by itself. What the terms mean
//! on kernels that are not preemptible everywhere, and what the bound does not hold for, is in docs/methods/bound.md.

use crate::cpu::{Activity, Cpu, Interrupt};
use crate::{At, Cause, Event, Explanation, Role, Stage, TIF_NEED_RESCHED_LAZY, What};
use sample::{Nanos, Stamp, Virtual};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// The longest of one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// How long, without interrupts.
    pub ns: Nanos,
    /// When it began, on the virtual clock.
    pub at_ns: Nanos,
}

/// The terms, and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// D_ST: from interrupts being masked in the scheduler, to switch, to preemption being on again.
    pub st: Term,
    /// D_POID: preemption or interrupts off, other than to schedule.
    pub poid: Term,
    /// D_PAIE: both on, another task being asked for, until the scheduler is entered.
    pub paie: Term,
    /// D_PSD: preemption off to schedule: from the scheduler's entry to preemption being on again.
    pub psd: Term,
    /// The first four put together: the latency without interrupts.
    pub interference_free_ns: Nanos,
    /// I(L): interrupts in an interval as long as the bound; absent where there is none.
    pub interrupts_ns: Option<Nanos>,
    /// L; absent where no interval up to 2²⁴ ns (17 ms) fulfils the equation: interrupts came too densely.
    pub bound_ns: Option<Nanos>,
}

impl Bound {
    /// Whether a task was scheduled later than the bound. Nothing exceeds a bound that there is not.
    pub fn is_exceeded_by(&self, scheduling: Nanos) -> bool {
        self.bound_ns.is_some_and(|bound| scheduling > bound)
    }
}

/// Widths of the sliding windows: 2¹⁰ to 2²⁴ ns. An interval is rounded up to the next one, so that I(L) is never too
/// small, and memory is bounded by how many interrupts fit into the widest.
const NARROWEST: u32 = 10;
const WINDOWS: usize = 15;

/// Interrupts of one kind.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Begin and length of those that reach into the widest window.
    recent: VecDeque<(u64, u64)>,
    /// For each width, the most that a window of it had.
    most: [u64; WINDOWS],
}

impl Source {
    /// An interrupt from `begin` on for `length`. The window that ends with its beginning has all of it, and of the
    /// earlier ones those that end inside.
    fn add(&mut self, begin: u64, length: u64) {
        let width = |window: usize| 1u64 << (NARROWEST as usize + window);
        let ends_after = |of: &(u64, u64), from: u64| of.0 + of.1 > from;
        let widest = begin.saturating_sub(width(WINDOWS - 1));
        while self.recent.front().is_some_and(|first| !ends_after(first, widest)) {
            self.recent.pop_front();
        }
        self.recent.push_back((begin, length));
        let (mut sum, mut window) = (0, 0);
        for of in self.recent.iter().rev() {
            while window < WINDOWS && !ends_after(of, begin.saturating_sub(width(window))) {
                self.most[window] = self.most[window].max(sum);
                window += 1;
            }
            sum += of.1;
        }
        for most in &mut self.most[window..] {
            *most = (*most).max(sum);
        }
    }
}

/// A stretch that is being measured.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    since: Option<u64>,
    length: u64,
    longest: Term,
}

impl Stretch {
    fn add(&mut self, from: Stamp<Virtual>, time: Nanos) {
        let since = *self.since.get_or_insert(from.ns());
        self.length += time.0;
        if self.length > self.longest.ns.0 {
            self.longest = Term { ns: Nanos(self.length), at_ns: Nanos(since) };
        }
    }

    fn end(&mut self) {
        (self.since, self.length) = (None, 0);
    }
}

/// Follows events and keeps the longest of each term.
#[derive(Clone, Debug, Default)]
pub struct BoundMeter {
    cpu: Cpu,
    last: Option<At>,
    st: Stretch,
    poid: Stretch,
    paie: Stretch,
    psd: Stretch,
    /// Another task is asked for, and the scheduler was not entered since.
    asked: bool,
    /// Both were on since then.
    was_on: bool,
    /// Interrupts were masked in the scheduler.
    switching: bool,
    interrupt: Option<(Interrupt, u64, u64)>,
    sources: HashMap<Interrupt, Source>,
}

impl BoundMeter {
    /// Nothing followed yet.
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
            // Whom the scheduler chose was asked for before.
            What::Run { .. } => self.asked = false,
            What::Enter { role: Role::Schedule, .. } => {
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
            What::Gap => self.forget(),
            _ => {}
        }
    }

    /// The bound of what was followed so far.
    pub fn bound(&self) -> Bound {
        let [st, poid, paie, psd] =
            [&self.st, &self.poid, &self.paie, &self.psd].map(|stretch| stretch.longest);
        let free = Nanos(st.ns.0.max(poid.ns.0) + paie.ns.0 + psd.ns.0);
        let mut bound = free.0;
        // Grows only, by whole windows: it ends.
        let interrupts = loop {
            let Some(interrupts) = self.interrupts(bound) else { break None };
            if free.0 + interrupts <= bound {
                break Some(Nanos(bound - free.0));
            }
            bound = free.0 + interrupts;
        };
        Bound {
            st,
            poid,
            paie,
            psd,
            interference_free_ns: free,
            interrupts_ns: interrupts,
            bound_ns: interrupts.map(|_| Nanos(bound)),
        }
    }

    /// What interrupts may take of an interval of `length` ns; `None` beyond the widest window.
    fn interrupts(&self, length: u64) -> Option<u64> {
        let window = (0..WINDOWS).find(|w| length <= 1 << (NARROWEST as usize + w))?;
        Some(self.sources.values().map(|source| source.most[window]).sum())
    }

    /// Somebody asks for another task by this flag. Not for one that the bound speaks of where the request is lazy: the kernel
    /// may take until the next tick. And not where it is the scheduler itself, which withdraws the request when it has
    /// chosen (kernel/sched/core.c, `__schedule`, `clear_tsk_need_resched`).
    fn ask(&mut self, flag: u64) {
        let withdrawn = self.cpu.activity() == Activity::Scheduler;
        self.asked |= flag != TIF_NEED_RESCHED_LAZY && !withdrawn;
    }

    /// `time` passed since `from`, in the state before the event that ends it.
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
            // Where the kernel is not preemptible everywhere, all until the scheduler is one wait.
            self.paie.add(from, time);
        }
        match activity {
            Activity::Scheduler | Activity::Switch => {
                self.psd.add(from, time);
                if self.switching {
                    self.st.add(from, time);
                }
            }
            Activity::IrqsOff(_) | Activity::PreemptOff(_) | Activity::Softirq(_) => {
                self.end_scheduler();
                self.poid.add(from, time);
            }
            Activity::Kernel(_) | Activity::User | Activity::Idle => {
                self.end_scheduler();
                self.poid.end();
                if self.asked && !self.was_on {
                    self.was_on = true;
                    self.paie.add(from, time);
                }
            }
            Activity::Interrupt(_) | Activity::Unknown => {}
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

/// Why the bound does not speak of an answer. The first that applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unbounded {
    /// An interrupt or softirqs answered, or the task had not slept: nothing was switched to.
    NotSwitched,
    /// The kernel had made the driver's handler a thread, which had to be switched to before.
    ThreadedHandler,
    /// The responder waited for a sleeping lock.
    Lock,
    /// Another task went before it.
    Task,
    /// A part is not understood.
    Unexplained,
}

impl Unbounded {
    fn of(stage: Stage, cause: &Cause) -> Option<Unbounded> {
        match cause {
            Cause::Scheduler | Cause::Switch if stage < Stage::Handler => {
                Some(Unbounded::ThreadedHandler)
            }
            Cause::Lock { .. } => Some(Unbounded::Lock),
            Cause::Task(_) => Some(Unbounded::Task),
            Cause::Unexplained => Some(Unbounded::Unexplained),
            _ => None,
        }
    }
}

/// The part of a latency that the bound is for: from the line raised to the switch to the responder's task.
///
/// # Errors
/// Why the bound does not speak of this one.
pub fn scheduling(explanation: &Explanation) -> Result<Nanos, Unbounded> {
    let segments = || explanation.parts.segments();
    if !segments().any(|s| s.label.stage >= Stage::Resumed) {
        return Err(Unbounded::NotSwitched);
    }
    let before = || segments().filter(|s| s.label.stage < Stage::Resumed);
    match before().filter_map(|s| Unbounded::of(s.label.stage, &s.label.cause)).min() {
        Some(why) => Err(why),
        None => Ok(Nanos(before().map(|s| s.length.time.0).sum())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blame, Partition, Place, TaskId};
    use proptest::prelude::*;
    use sample::Insns;

    fn at(ns: u64) -> At {
        At { time: Stamp::from_ns(ns), insns: Insns(ns) }
    }

    fn irqs(masked: bool) -> What {
        What::Irqs { masked, place: Place::Unknown, opened: Place::Unknown }
    }

    fn preempt(count: u32) -> What {
        What::Preempt { count, place: Place::Unknown, opened: Place::Unknown }
    }

    fn enter(role: Role) -> What {
        What::Enter { role, address: 1, taken: 0, place: Place::Unknown }
    }

    fn bound(events: &[(u64, What)]) -> Bound {
        let mut meter = BoundMeter::new();
        for &(ns, what) in events {
            meter.event(&Event { at: at(ns), what });
        }
        meter.bound()
    }

    fn run(pid: u32) -> What {
        What::Run { task: TaskId(pid.into()), pid }
    }

    #[test]
    fn each_term_is_the_longest_of_its_kind_without_the_interrupt_in_it() {
        let b = bound(&[
            (0, run(1)),
            (0, preempt(0)),
            (0, irqs(false)),
            (100, preempt(1)),
            (130, irqs(true)),
            (130, enter(Role::Interrupt)),
            (135, preempt(0x1_0001)),
            (150, enter(Role::NeedResched)),
            (180, preempt(1)),
            (190, irqs(false)),
            (190, What::Leave { user: false, to: 0 }),
            (240, preempt(0)),
            (247, preempt(1)),
            (247, enter(Role::Schedule)),
            (260, irqs(true)),
            (280, run(2)),
            (300, irqs(false)),
            (310, preempt(0)),
            (400, preempt(0)),
        ]);
        // 100 to 240 without 130 to 190; 240 to 247; 247 to 310; 260 to 310.
        let terms = [b.poid, b.paie, b.psd, b.st].map(|t| (t.ns.0, t.at_ns.0));
        assert_eq!(terms, [(80, 100), (7, 240), (63, 247), (50, 260)]);
        assert_eq!(b.interference_free_ns, Nanos(150));
        assert_eq!((b.interrupts_ns, b.bound_ns), (Some(Nanos(60)), Some(Nanos(210))));
    }

    /// The longest D_PAIE where a task runs from 100 on for 500 ns in the kernel with both on, until it schedules.
    fn paie(before: &[(u64, What)]) -> u64 {
        let first = [(0, run(1)), (0, preempt(0)), (0, irqs(false))];
        let last = [(100, preempt(0)), (600, preempt(1)), (600, enter(Role::Schedule))];
        let all = [&first, before, &last].concat();
        bound(&all).paie.ns.0
    }

    #[test]
    fn only_a_request_that_stands_is_waited_for() {
        let asked = |flag| What::Enter {
            role: Role::NeedResched,
            address: 1,
            taken: flag,
            place: Place::Unknown,
        };
        assert_eq!(paie(&[]), 0);
        assert_eq!(paie(&[(50, preempt(1)), (60, asked(0))]), 500);
        assert_eq!(paie(&[(50, preempt(1)), (60, asked(3))]), 500);
        assert_eq!(paie(&[(50, preempt(1)), (60, asked(TIF_NEED_RESCHED_LAZY))]), 0);
        let scheduler = [(50, preempt(1)), (50, enter(Role::Schedule)), (60, irqs(true))];
        let by_scheduler = [&scheduler[..], &[(70, asked(0)), (80, irqs(false))]].concat();
        assert_eq!(paie(&by_scheduler), 0);
        let switched = [(70, run(2)), (75, asked(0)), (80, irqs(false))];
        assert_eq!(paie(&[&scheduler[..], &switched].concat()), 500, "after the switch");
    }

    fn explained(parts: &[(u64, Stage, Cause)]) -> Explanation {
        let mut partition = Partition::new(at(0));
        for (to, stage, cause) in parts {
            let blame = Blame { stage: *stage, cause: cause.clone(), inside: Vec::new() };
            assert_eq!(partition.until(at(*to), blame), Ok(()));
        }
        Explanation { trigger: 0, pin: 0, task: Some(TaskId(1)), parts: partition }
    }

    #[test]
    fn the_part_that_is_held_against_the_bound_ends_with_the_switch() {
        let line = (10, Stage::Line, Cause::IrqsOff(Place::Unknown));
        let off = (20, Stage::NeedResched, Cause::PreemptOff(Place::Unknown));
        let scheduler = (25, Stage::Schedule, Cause::Scheduler);
        let resumed = (90, Stage::Resumed, Cause::Switch);
        let of = |parts: &[(u64, Stage, Cause)]| scheduling(&explained(parts));
        let [line, off, scheduler, resumed] = [&line, &off, &scheduler, &resumed].map(Clone::clone);
        let whole = [line.clone(), off, scheduler.clone(), resumed.clone()];
        assert_eq!(of(&whole), Ok(Nanos(25)));
        assert_eq!(of(&whole[..3]), Err(Unbounded::NotSwitched));
        let with = |stage, cause| of(&[line.clone(), (24, stage, cause), resumed.clone()]);
        let lock = Cause::Lock { holders: vec![], running: None, doing: Activity::Idle };
        assert_eq!(with(Stage::NeedResched, lock.clone()), Err(Unbounded::Lock));
        let task = Cause::Task(TaskId(2));
        assert_eq!(with(Stage::NeedResched, task.clone()), Err(Unbounded::Task));
        assert_eq!(with(Stage::Entry, Cause::Switch), Err(Unbounded::ThreadedHandler));
        assert_eq!(with(Stage::WakeUp, Cause::Unexplained), Err(Unbounded::Unexplained));
        let both = [(5, Stage::NeedResched, task), (6, Stage::NeedResched, lock.clone())];
        let both = [&both[..], std::slice::from_ref(&resumed)].concat();
        assert_eq!(of(&both), Err(Unbounded::Lock), "the first reason in their order");
        // What happens after the switch is not the scheduler's.
        assert_eq!(of(&[scheduler, (90, Stage::Resumed, lock)]), Ok(Nanos(25)));
    }

    #[test]
    fn a_meter_that_was_fed_with_less_than_an_answer_met_is_exceeded() {
        let before = [(0, run(1)), (0, irqs(false)), (0, preempt(0))];
        let stretch = [(100, preempt(1)), (180, preempt(0)), (190, preempt(0))];
        let seen = bound(&[&before[..], &stretch].concat());
        let met = explained(&[
            (80, Stage::Line, Cause::PreemptOff(Place::Unknown)),
            (90, Stage::Resumed, Cause::Switch),
        ]);
        let met = scheduling(&met).expect("nothing that the bound leaves out");
        assert!(!seen.is_exceeded_by(met), "{seen:?}");
        let less = bound(
            &[&before[..], &[(100, preempt(1)), (179, preempt(0)), (190, preempt(0))]].concat(),
        );
        assert!(less.is_exceeded_by(met), "{less:?}");
    }

    #[test]
    fn interrupts_that_leave_no_time_have_no_bound() {
        let mut events = vec![(0, run(1)), (0, irqs(false)), (0, preempt(0))];
        for n in 0..2_000u64 {
            let at = 10 + n * 10_000;
            events.extend([
                (at, irqs(true)),
                (at, enter(Role::Interrupt)),
                (at + 9_999, irqs(false)),
                (at + 9_999, What::Leave { user: false, to: 0 }),
            ]);
        }
        events.push((20_000_010, preempt(1)));
        events.push((20_000_110, preempt(0)));
        let b = bound(&events);
        assert_eq!((b.interference_free_ns, b.bound_ns), (Nanos(100), None));
    }

    proptest! {
        #[test]
        fn a_window_never_has_less_than_any_interval_of_its_width(
            interrupts in prop::collection::vec((0u64..3_000, 1u64..800), 1..60),
            from in 0u64..100_000, window in 0usize..6,
        ) {
            let (mut now, mut source, mut all) = (0, Source::default(), Vec::new());
            for (pause, length) in interrupts {
                now += pause;
                source.add(now, length);
                all.push((now, now + length));
                now += length;
            }
            let to = from + (1 << (NARROWEST as usize + window));
            let overlap = |&(a, b): &(u64, u64)| b.min(to).saturating_sub(a.max(from));
            prop_assert!(all.iter().map(overlap).sum::<u64>() <= source.most[window]);
        }
    }
}
