// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator and analyser: a parallel port whose acknowledge line belongs to the plugin.
//!
//! The generator has the port's registers (data, status, control). It raises the interrupt line by the schedule, and
//! writes down every trigger and every level of the data pins. It sees the device's side of the bus, in virtual time.
//! It cannot see which code of the guest wrote a port.
//!
//! Where a probe measures, the generator raises nothing. It hands the plan to the guest and takes the probe's records
//! (`guest.rs`).

mod registers;
mod walking;

pub(crate) use self::walking::{become_child, flush, stands_at, stop, walk};

use self::registers::{DisturbancePort, HigherPins, MarkPort, ParallelPort};
use crate::commands::Commands;
use crate::disturbance::Disturbances;
use crate::forking;
use crate::guest::{ClockPort, DataPort, PlanPort};
use crate::qemu::{Line, Qemu, Timer, Wire};
use sample::{Answers, At, Nanos, Stamp, Virtual, When};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use wire::{Arguments, Command, Event, Mark, Producer, Start, Stimulus, ports};

/// The bit of the control register with which acknowledge raises the interrupt (IEEE 1284 compatibility mode, bit 4).
const CONTROL_IRQ_ENABLE: u8 = 0x10;

/// How long to wait for a full ring in all, and below (`BREATH`) how long at once. QEMU answers nobody meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
const BREATH: Duration = Duration::from_micros(200);

struct Parts {
    rise: Timer,
    fall: Timer,
    line: Line,
    wire: Wire,
    disturb: Timer,
    disturbing: Line,
}

struct Generator {
    qemu: Qemu,
    told: Arguments,
    events: Producer,
    pins: u16,
    control: u8,
    /// The number of triggers that were raised.
    raised: u64,
    /// The instant at which measuring began. `None` before.
    origin: Option<Stamp<Virtual>>,
    answers: Option<Answers>,
    /// The instant of the last trigger.
    last: Option<Stamp<Virtual>>,
    /// Whether the follower has asked for a trigger.
    asked: bool,
    /// Whether the follower's time to ask is over.
    timed_out: bool,
    ended: bool,
    /// Whether nobody took events for [`PATIENCE`].
    is_deserted: bool,
    disturbances: Disturbances,
    /// The commands, if triggers are commanded.
    commands: Option<Commands>,
    parts: Option<Parts>,
}

/// What the generator does next.
enum Next {
    /// A trigger, this long after measuring began.
    At(Nanos),
    /// A trigger when the follower asks for one, and at this time at the latest.
    Asked(Nanos),
    /// No trigger, but another command, this long after measuring began.
    Commanded(Nanos),
    /// No more triggers.
    Over,
}

// SAFETY: QEMU's objects behind the raw pointers are touched only under QEMU's big lock.
unsafe impl Send for Generator {}

static GENERATOR: OnceLock<Mutex<Generator>> = OnceLock::new();

/// Events that come in millions. They are kept until there are [`MANY`] of them, or until one of the generator's own
/// events comes. A lock for each of them would take a twentieth of a followed guest's time.
struct Kept(UnsafeCell<Vec<Event>>);

// SAFETY: two threads reach this, and never at once. One is the vCPU's thread, in callbacks at instructions, at ports
// and of timers of the virtual clock, which runs with the counted instructions. The other is QEMU's main thread while
// no vCPU runs: before the machine runs, and when its run state changes. In a child that is the thread that moves time,
// with the big lock and while the vCPU is idle.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept(UnsafeCell::new(Vec::new()));
const MANY: usize = 64;

fn with<T>(f: impl FnOnce(&mut Generator) -> T) -> T {
    // SAFETY: see `Kept`. The function below does not come back here.
    hand_over(unsafe { &mut *KEPT.0.get() });
    locked(f)
}

fn locked<T>(f: impl FnOnce(&mut Generator) -> T) -> T {
    let generator = GENERATOR.get().expect("set before any callback is registered");
    f(&mut generator.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Passes events on to the host while measuring goes on. If the host has no time to take them, the guest waits. The
/// guest's time stands still meanwhile.
fn hand_over(events: &mut Vec<Event>) {
    let mut waited = Duration::ZERO;
    while !events.is_empty() && !locked(|g| g.hand_over(events, waited)) {
        std::thread::sleep(BREATH);
        waited += BREATH;
    }
}

/// Registers the generator with QEMU.
pub fn install(qemu: Qemu, told: Arguments, events: Producer) {
    let (pins, control) = told.registers;
    let disturbances = match &told.stimulus {
        Stimulus::Triggers(triggers) => triggers.disturbances.clone(),
        Stimulus::Probe(_) => Vec::new(),
    };
    // SAFETY: the parent left this descriptor open for the plugin alone.
    let commands = told.commands_fd.map(|fd| unsafe { Commands::from_descriptor(fd) });
    let generator = Generator {
        qemu,
        told,
        commands,
        events,
        pins,
        control,
        raised: 0,
        origin: None,
        answers: None,
        last: None,
        asked: false,
        timed_out: false,
        ended: false,
        is_deserted: false,
        disturbances: Disturbances::new(disturbances),
        parts: None,
    };
    if GENERATOR.set(Mutex::new(generator)).is_err() {
        fail("the plugin was loaded twice");
    }
    qemu.when_machine_is_built(on_machine_built);
    qemu.on_run_state(on_run_state);
}

/// Ends QEMU with a message for whoever started it. QEMU ends at once: the callers hold locks that QEMU may want for
/// tidying up.
pub(crate) fn fail(message: &str) -> ! {
    eprintln!("onset plugin: {message}");
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(1) }
}

/// Passes an event of another module on to the host, while measuring goes on.
pub(crate) fn pass_on(event: &Event) {
    pass_on_among_many(event);
    with(|_| ());
}

/// Passes on one event of many, for which nobody waits.
pub(crate) fn pass_on_among_many(event: &Event) {
    // SAFETY: see `Kept`. The reference ends here.
    let kept = unsafe { &mut *KEPT.0.get() };
    kept.push(*event);
    if kept.len() >= MANY {
        hand_over(kept);
    }
}

/// How long a trigger without a plan has been possible. `None` while it is not possible: the last trigger has no answer
/// yet, or it is not long enough ago.
pub(crate) fn waits_for_aim(now: Stamp<Virtual>) -> Option<Nanos> {
    locked(|g| g.waits_for_aim(now))
}

/// Triggers `after` the instant `time`, but not before the end of the block of code that is being executed.
pub(crate) fn trigger_at(time: Stamp<Virtual>, after: Nanos) {
    locked(|g| {
        g.asked = true;
        g.qemu.arm(&g.parts().rise, time, after);
    });
}

/// How long measuring has been going on at `now`. `None` before measuring began.
pub(crate) fn since_measuring_began(now: Stamp<Virtual>) -> Option<Nanos> {
    locked(|g| now.since(g.origin?))
}

extern "C" fn on_machine_built() {
    with(|g| {
        let wire = CString::new(ports::WIRE).expect("a name without NUL");
        let parts = || -> Result<Parts, String> {
            Ok(Parts {
                rise: g.qemu.timer(on_rise)?,
                fall: g.qemu.timer(on_fall)?,
                line: g.qemu.interrupt_line(ports::PARALLEL_IRQ.into())?,
                wire: g.qemu.wire(&wire)?,
                disturb: g.qemu.timer(on_disturb)?,
                disturbing: g.qemu.interrupt_line(ports::DISTURBANCE_IRQ.into())?,
            })
        };
        g.parts = Some(parts().unwrap_or_else(|e| fail(&e)));
        g.qemu.check_ports().unwrap_or_else(|failed| fail(&g.qemu.refusal(&failed)));
        g.qemu.claim_ports(c"onset-port", ports::PARALLEL, 3, ParallelPort);
        g.qemu.claim_ports(c"onset-higher", ports::HIGHER, 1, HigherPins);
        g.qemu.claim_ports(c"onset-mark", ports::MARK, 1, MarkPort);
        g.qemu.claim_ports(c"onset-disturbance", ports::DISTURBANCE, 1, DisturbancePort);
        let plan = match &g.told.stimulus {
            Stimulus::Probe(plan) => plan.as_slice(),
            Stimulus::Triggers(triggers) => triggers.work.as_deref().unwrap_or_default(),
        };
        g.qemu.claim_ports(c"onset-plan", ports::PLAN, 4, PlanPort::new(plan));
        g.qemu.claim_ports(c"onset-data", ports::DATA, 4, DataPort::new());
        g.qemu.claim_ports(c"onset-clock", ports::CLOCK, 4, ClockPort::new(g.qemu));
        if let Some(told) = &g.told.forking {
            forking::prepare(g.qemu, told).unwrap_or_else(|e| fail(&e));
        }
    });
}

extern "C" fn on_run_state(running: bool) {
    with(|g| {
        if running {
            let checked = g.qemu.check_virtual_clock();
            checked.unwrap_or_else(|failed| fail(&g.qemu.refusal(&failed)));
        }
        if running && g.told.start != Start::Boot && g.origin.is_none() {
            g.begin();
        }
    });
}

extern "C" fn on_rise(_: *mut c_void) {
    with(Generator::rise);
}

extern "C" fn on_advanced() {
    stop();
}

extern "C" fn on_fall(_: *mut c_void) {
    with(|g| {
        let parts = g.parts();
        g.qemu.set(&parts.line, false);
    });
}

extern "C" fn on_disturb(_: *mut c_void) {
    with(Generator::disturb);
}

impl Generator {
    fn parts(&self) -> &Parts {
        self.parts.as_ref().expect("made before the machine runs")
    }

    /// Hands over as many of `events` as it can, and removes these. `waited` says how long the caller has waited.
    /// Returns whether no events are left. Events that nobody takes for [`PATIENCE`] are dropped.
    fn hand_over(&mut self, events: &mut Vec<Event>, waited: Duration) -> bool {
        if self.origin.is_some() && !self.ended {
            events.drain(..self.events.offer_all(events));
            self.is_deserted |= !events.is_empty() && waited >= PATIENCE;
            if !events.is_empty() && !self.is_deserted {
                return false;
            }
            events.iter().for_each(|event| self.events.push(event));
        }
        events.clear();
        true
    }

    fn now(&self) -> At {
        At::new(self.qemu.now(), self.qemu.insns())
    }

    fn report(&mut self, event: Event) {
        self.events.push(&event);
        if let Some(answers) = &mut self.answers {
            event.tell(answers, |_| ());
        }
    }

    fn report_mark(&mut self, mark: Mark) {
        let Generator { control, pins: level, raised, .. } = *self;
        self.report(Event::Mark { at: self.now(), mark, control, level, raised });
    }

    fn begin(&mut self) {
        let origin = self.qemu.now();
        self.origin = Some(origin);
        self.report_mark(Mark::Measuring);
        match self.told.start {
            Start::Advance(time) => self.qemu.arm(&self.parts().rise, origin, time),
            Start::Walk => self.qemu.arm(&self.parts().rise, origin, Nanos(0)),
            Start::Boot | Start::Restore => self.begin_to_trigger(origin),
        }
    }

    fn begin_to_trigger(&mut self, origin: Stamp<Virtual>) {
        if let Stimulus::Triggers(triggers) = &self.told.stimulus {
            self.answers = Some(Answers::new(triggers.responders, origin, self.pins));
        }
        self.take_command();
        self.arm_rise();
        self.arm_disturb();
    }

    fn next(&self) -> Next {
        let Stimulus::Triggers(triggers) = &self.told.stimulus else { return Next::Over };
        match &triggers.when {
            When::Planned(schedule) => schedule.due(self.raised).map_or(Next::Over, Next::At),
            When::Aimed(aim) if self.raised < aim.count && !self.timed_out => {
                Next::Asked(aim.until)
            }
            When::Aimed(_) => Next::Over,
            When::Commanded => match self.command() {
                Command::Trigger { at, .. } => Next::At(at),
                Command::Run { until } => Next::Commanded(until),
                Command::End => Next::Over,
            },
        }
    }

    /// The command that is being carried out. `End` if nobody commands.
    fn command(&self) -> Command {
        self.commands.as_ref().map_or(Command::End, Commands::current)
    }

    /// Goes on to the next command. The guest stands still until the command has come.
    fn take_command(&mut self) {
        self.commands.iter_mut().for_each(Commands::advance);
    }

    fn waits_for_aim(&self, now: Stamp<Virtual>) -> Option<Nanos> {
        let Stimulus::Triggers(triggers) = &self.told.stimulus else { return None };
        let (When::Aimed(aim), Next::Asked(_), false) = (&triggers.when, self.next(), self.asked)
        else {
            return None;
        };
        let origin = self.origin.filter(|_| !self.ended)?;
        let Some(last) = self.last else { return now.since(origin) };
        let waited = now.since(last)?;
        let is_answered = self.answers.as_ref().is_some_and(Answers::complete);
        let needed = if is_answered { aim.gap } else { triggers.grace };
        waited.checked_sub(needed)
    }

    fn arm_rise(&self) {
        let (Some(origin), parts) = (self.origin, self.parts()) else { return };
        let Stimulus::Triggers(triggers) = &self.told.stimulus else { return };
        match self.next() {
            Next::At(due) | Next::Asked(due) | Next::Commanded(due) => {
                self.qemu.arm(&parts.rise, origin, due);
            }
            Next::Over => {
                let is_answered = self.answers.as_ref().is_some_and(Answers::complete);
                let grace = if is_answered { Nanos(0) } else { triggers.grace };
                self.qemu.arm(&parts.rise, self.qemu.now(), grace);
            }
        }
    }

    fn rise(&mut self) {
        match self.told.start {
            Start::Advance(_) => return self.qemu.before_next_instruction(on_advanced),
            Start::Walk => return self.qemu.before_next_instruction(forking::serve),
            Start::Boot | Start::Restore => {}
        }
        let Stimulus::Triggers(triggers) = &self.told.stimulus else { return };
        let high = match self.command() {
            Command::Trigger { high, .. } => high,
            Command::Run { .. } | Command::End => triggers.high,
        };
        if self.ended {
            return;
        }
        match self.next() {
            Next::Over => {
                self.end();
                forking::end_child();
                self.qemu.send(&self.parts().wire, ports::DONE);
                return;
            }
            Next::Asked(_) if !self.asked => {
                self.timed_out = true;
                self.arm_rise();
                return;
            }
            Next::Commanded(_) => {
                self.report(Event::Reached { at: self.now() });
                self.take_command();
                self.arm_rise();
                return;
            }
            Next::Asked(_) | Next::At(_) => {}
        }
        self.asked = false;
        let (level, number) = (self.pins, self.raised);
        self.report(Event::Trigger { at: self.now(), level, number });
        self.last = Some(self.qemu.now());
        self.raised += 1;
        let parts = self.parts();
        if self.control & CONTROL_IRQ_ENABLE != 0 {
            self.qemu.set(&parts.line, true);
        }
        self.qemu.arm(&parts.fall, self.qemu.now(), high);
        self.take_command();
        self.arm_rise();
    }

    fn arm_disturb(&self) {
        if let (Some(origin), Some(due)) = (self.origin, self.disturbances.due()) {
            self.qemu.arm(&self.parts().disturb, origin, due);
        }
    }

    fn disturb(&mut self) {
        if self.ended {
            return;
        }
        let timers = self.disturbances.raise();
        let (level, raised) = (self.pins, self.raised);
        self.report(Event::Disturbance { at: self.now(), timers, level, raised });
        self.qemu.set(&self.parts().disturbing, true);
        self.arm_disturb();
    }

    fn serve_disturbance(&mut self) -> u8 {
        let (timers, again) = self.disturbances.serve();
        let line = &self.parts().disturbing;
        self.qemu.set(line, false);
        if again {
            self.qemu.set(line, true);
        }
        timers
    }

    fn end(&mut self) {
        self.ended = true;
        let Generator { control, pins: level, raised, .. } = *self;
        self.report(Event::End { at: self.now(), control, level, raised });
    }

    /// A data register was written: that of the pins from `first` on.
    fn write_data(&mut self, first: u32, byte: u8) {
        let level = self.pins & !(0xff << first) | u16::from(byte) << first;
        self.pins = level;
        if self.origin.is_none() || self.ended {
            return;
        }
        let raised = self.raised;
        self.report(Event::Pins { at: self.now(), level, raised });
        if matches!(self.next(), Next::Over) && self.answers.as_ref().is_some_and(Answers::complete)
        {
            // The run ends in the timer's callback, at this virtual time: a port access is no place to send.
            self.qemu.arm(&self.parts().rise, self.qemu.now(), Nanos(0));
        }
    }

    fn write_mark(&mut self, byte: u8) {
        let Some(mark) = Mark::of(byte) else { return };
        self.report_mark(mark);
        if mark == Mark::Measuring && self.told.start == Start::Boot {
            self.qemu.stop();
        }
        if mark == Mark::Done && self.origin.is_some() && !self.ended {
            self.end();
        }
    }
}
