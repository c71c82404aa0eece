// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator and analyser: a parallel port whose acknowledge line is ours.
//!
//! It is the port's register file (data, status, control), raises the interrupt line by the schedule, and
//! writes down every trigger and every level of the data pins. Vantage point: the device's side of the
//! bus, in virtual time. It cannot see which code of the guest wrote a port.
//!
//! Where a probe measures it raises nothing: it hands the plan to the guest and takes its records (`guest.rs`).

use crate::config::{Config, Start, Stimulus};
use crate::disturbance::{DISTURBANCE_IRQ, DISTURBANCE_PORT, Disturbances};
use crate::guest::{CLOCK_PORT, ClockPort, DATA_PORT, DataPort, PLAN_PORT, PlanPort};
use crate::qemu::{Line, Ports, Qemu, Timer, Width, Wire};
use sample::{Answers, Kind, Nanos, Producer, Record, Stamp, Virtual, When};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// First I/O port of the parallel port (LPT1).
const PORT_BASE: u16 = 0x378;
/// Its interrupt: pin of the I/O APIC.
const PORT_IRQ: i32 = 7;
/// The port to which the guest's init writes its phase; "ON", far from any device.
pub const MARK_PORT: u16 = 0x4f4e;
/// Mark: the load runs, warming up.
pub const MARK_WARMUP: u8 = 1;
/// Mark: measuring begins at this instruction.
pub const MARK_MEASURING: u8 = 2;
/// Mark: the probe has ended and its records were handed over.
pub const MARK_DONE: u8 = 3;
/// Control register: acknowledge raises the interrupt (IEEE 1284 compatibility mode, bit 4).
const CONTROL_IRQ_ENABLE: u8 = 0x10;
/// Status register at rest: not busy, acknowledge high, selected, no error.
const STATUS_AT_REST: u8 = 0xd8;
/// The serial line's chardev towards the guest's init.
const WIRE: &std::ffi::CStr = c"onset-agent";
/// Sent when measuring is over.
const BYTE_DONE: u8 = b'.';

/// How long a full ring is waited for, and how long at once. QEMU answers nobody meanwhile.
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
    config: Config,
    records: Producer,
    pins: u8,
    control: u8,
    /// Triggers raised.
    raised: u64,
    /// Where measuring began; `None` before.
    origin: Option<Stamp<Virtual>>,
    answers: Option<Answers>,
    /// When the last trigger was.
    last: Option<Stamp<Virtual>>,
    /// The follower has asked for a trigger.
    asked: bool,
    /// The follower may ask no more.
    timed_out: bool,
    ended: bool,
    /// Nobody took records for as long as we wait.
    is_deserted: bool,
    disturbances: Disturbances,
    parts: Option<Parts>,
}

/// What comes next.
enum Next {
    /// A trigger, so long after measuring began.
    At(Nanos),
    /// A trigger when the follower asks for it, but no later than this.
    Asked(Nanos),
    /// No more triggers.
    Over,
}

// SAFETY: QEMU's objects behind the raw pointers are touched only under QEMU's big lock.
unsafe impl Send for Generator {}

static GENERATOR: OnceLock<Mutex<Generator>> = OnceLock::new();

/// Records that come in millions, kept until they are [`MANY`] or one of the generator's own comes behind them: to take a lock for
/// each would be a twentieth of a followed guest's time.
struct Kept(UnsafeCell<Vec<Record>>);

// SAFETY: reached on the vCPU's thread, by the callbacks at instructions, at ports and of timers of the virtual clock, which runs with
// the instructions that are counted; and on QEMU's main thread while no vCPU runs: before the machine does, and where its run state
// changes.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept(UnsafeCell::new(Vec::new()));
const MANY: usize = 64;

fn with<T>(f: impl FnOnce(&mut Generator) -> T) -> T {
    // SAFETY: see there; nothing below comes back here.
    hand_over(unsafe { &mut *KEPT.0.get() });
    locked(f)
}

fn locked<T>(f: impl FnOnce(&mut Generator) -> T) -> T {
    let generator = GENERATOR.get().expect("set before any callback is registered");
    f(&mut generator.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Passes records on to the host, while measuring goes on. Where the host has no time to take them the guest waits, whose time
/// stands still meanwhile.
fn hand_over(records: &mut Vec<Record>) {
    let mut waited = Duration::ZERO;
    while !records.is_empty() && !locked(|g| g.hand_over(records, waited)) {
        std::thread::sleep(BREATH);
        waited += BREATH;
    }
}

/// Registers everything with QEMU.
pub fn install(qemu: Qemu, config: Config, records: Producer) {
    let (pins, control) = config.registers;
    let disturbances = match &config.stimulus {
        Stimulus::Triggers(triggers) => triggers.disturbances.clone(),
        Stimulus::Probe(_) => Vec::new(),
    };
    let generator = Generator {
        qemu,
        config,
        records,
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

/// Ends QEMU with a message for whoever started it. At once, since the callers hold locks that QEMU's own
/// tidying up may want.
pub(crate) fn fail(message: &str) -> ! {
    eprintln!("onset plugin: {message}");
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// Passes a record that is not ours on to the host, while measuring goes on.
pub(crate) fn pass_on(record: &Record) {
    pass_on_among_many(record);
    with(|_| ());
}

/// The same for one of many, for which nobody waits.
pub(crate) fn pass_on_among_many(record: &Record) {
    // SAFETY: see there; the reference ends here.
    let kept = unsafe { &mut *KEPT.0.get() };
    kept.push(*record);
    if kept.len() >= MANY {
        hand_over(kept);
    }
}

/// How long a trigger has been possible that is not planned; `None` while it is not: the last one is not answered yet, or
/// not far enough away.
pub(crate) fn waits_for_aim(now: Stamp<Virtual>) -> Option<Nanos> {
    locked(|g| g.waits_for_aim(now))
}

/// Triggers so long after `time`, or as soon as the block of code has ended that is being executed.
pub(crate) fn trigger_at(time: Stamp<Virtual>, after: Nanos) {
    locked(|g| {
        g.asked = true;
        g.qemu.arm(&g.parts().rise, time, after);
    });
}

/// How long measuring has been going on at `now`; `None` before.
pub(crate) fn since_measuring_began(now: Stamp<Virtual>) -> Option<Nanos> {
    locked(|g| now.since(g.origin?))
}

extern "C" fn on_machine_built() {
    with(|g| {
        let parts = || -> Result<Parts, String> {
            Ok(Parts {
                rise: g.qemu.timer(on_rise)?,
                fall: g.qemu.timer(on_fall)?,
                line: g.qemu.ioapic_line(PORT_IRQ)?,
                wire: g.qemu.wire(WIRE)?,
                disturb: g.qemu.timer(on_disturb)?,
                disturbing: g.qemu.ioapic_line(DISTURBANCE_IRQ)?,
            })
        };
        g.parts = Some(parts().unwrap_or_else(|e| fail(&e)));
        g.qemu.check_ports().unwrap_or_else(|failed| fail(&g.qemu.refusal(&failed)));
        g.qemu.claim_ports(c"onset-port", PORT_BASE, 3, ParallelPort);
        g.qemu.claim_ports(c"onset-mark", MARK_PORT, 1, MarkPort);
        g.qemu.claim_ports(c"onset-disturbance", DISTURBANCE_PORT, 1, DisturbancePort);
        let plan = match &g.config.stimulus {
            Stimulus::Probe(plan) => plan.as_slice(),
            Stimulus::Triggers(_) => &[],
        };
        g.qemu.claim_ports(c"onset-plan", PLAN_PORT, 4, PlanPort::new(plan));
        g.qemu.claim_ports(c"onset-data", DATA_PORT, 4, DataPort::new());
        g.qemu.claim_ports(c"onset-clock", CLOCK_PORT, 4, ClockPort::new(g.qemu));
    });
}

extern "C" fn on_run_state(running: bool) {
    with(|g| {
        if running {
            let checked = g.qemu.check_virtual_clock();
            checked.unwrap_or_else(|failed| fail(&g.qemu.refusal(&failed)));
        }
        if running && g.config.start != Start::Boot && g.origin.is_none() {
            g.begin();
        }
    });
}

extern "C" fn on_rise(_: *mut c_void) {
    with(Generator::rise);
}

extern "C" fn on_advanced() {
    with(|g| {
        g.end();
        g.qemu.stop();
    });
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

    /// Takes what is handed over out of `records`; whether that is all, after so long. What nobody takes for long is dropped.
    fn hand_over(&mut self, records: &mut Vec<Record>, waited: Duration) -> bool {
        if self.origin.is_some() && !self.ended {
            records.drain(..self.records.offer_all(records));
            self.is_deserted |= !records.is_empty() && waited >= PATIENCE;
            if !records.is_empty() && !self.is_deserted {
                return false;
            }
            records.iter().for_each(|record| self.records.push(record));
        }
        records.clear();
        true
    }

    fn record(&mut self, kind: Kind, value: u32) {
        let record = Record {
            kind,
            pins: self.pins,
            value,
            number: self.raised,
            at: self.qemu.now(),
            insns: self.qemu.insns(),
        };
        self.records.push(&record);
        if let Some(answers) = &mut self.answers {
            answers.observe(&record, |_| ());
        }
    }

    fn begin(&mut self) {
        let origin = self.qemu.now();
        self.origin = Some(origin);
        self.record(Kind::Mark, self.port_value(MARK_MEASURING));
        if let Start::Advance(time) = self.config.start {
            self.qemu.arm(&self.parts().rise, origin, time);
            return;
        }
        if let Stimulus::Triggers(triggers) = &self.config.stimulus {
            self.answers = Some(Answers::new(triggers.responders, origin, self.pins));
        }
        self.arm_rise();
        self.arm_disturb();
    }

    fn next(&self) -> Next {
        let Stimulus::Triggers(triggers) = &self.config.stimulus else { return Next::Over };
        match &triggers.when {
            When::Planned(schedule) => schedule.due(self.raised).map_or(Next::Over, Next::At),
            When::Aimed(aim) if self.raised < aim.count && !self.timed_out => {
                Next::Asked(aim.until)
            }
            When::Aimed(_) => Next::Over,
        }
    }

    fn waits_for_aim(&self, now: Stamp<Virtual>) -> Option<Nanos> {
        let Stimulus::Triggers(triggers) = &self.config.stimulus else { return None };
        let (When::Aimed(aim), Next::Asked(_), false) = (&triggers.when, self.next(), self.asked)
        else {
            return None;
        };
        let origin = self.origin.filter(|_| !self.ended)?;
        let Some(last) = self.last else { return now.since(origin) };
        let waited = now.since(last)?;
        let is_answered = self.answers.as_ref().is_some_and(Answers::complete);
        let needed = if is_answered { aim.gap } else { triggers.grace };
        waited.0.checked_sub(needed.0).map(Nanos)
    }

    /// A mark as recorded, or the end: the guest's byte, and above it the control register, which a restored port
    /// needs.
    fn port_value(&self, mark: u8) -> u32 {
        u32::from(mark) | u32::from(self.control) << 8
    }

    fn arm_rise(&self) {
        let (Some(origin), parts) = (self.origin, self.parts()) else { return };
        let Stimulus::Triggers(triggers) = &self.config.stimulus else { return };
        match self.next() {
            Next::At(due) | Next::Asked(due) => self.qemu.arm(&parts.rise, origin, due),
            Next::Over => {
                let is_answered = self.answers.as_ref().is_some_and(Answers::complete);
                let grace = if is_answered { Nanos(0) } else { triggers.grace };
                self.qemu.arm(&parts.rise, self.qemu.now(), grace);
            }
        }
    }

    fn rise(&mut self) {
        if let Start::Advance(_) = self.config.start {
            self.qemu.before_next_instruction(on_advanced);
            return;
        }
        let Stimulus::Triggers(triggers) = &self.config.stimulus else { return };
        let high = triggers.high;
        if self.ended {
            return;
        }
        match self.next() {
            Next::Over => {
                self.end();
                self.qemu.send(&self.parts().wire, BYTE_DONE);
                return;
            }
            Next::Asked(_) if !self.asked => {
                self.timed_out = true;
                self.arm_rise();
                return;
            }
            Next::Asked(_) | Next::At(_) => {}
        }
        self.asked = false;
        self.record(Kind::Trigger, 0);
        self.last = Some(self.qemu.now());
        self.raised += 1;
        let parts = self.parts();
        if self.control & CONTROL_IRQ_ENABLE != 0 {
            self.qemu.set(&parts.line, true);
        }
        self.qemu.arm(&parts.fall, self.qemu.now(), high);
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
        self.record(Kind::Disturbance, timers.into());
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
        self.record(Kind::End, self.port_value(0));
    }

    fn write_data(&mut self, pins: u8) {
        self.pins = pins;
        if self.origin.is_none() || self.ended {
            return;
        }
        self.record(Kind::Pins, 0);
        if matches!(self.next(), Next::Over) && self.answers.as_ref().is_some_and(Answers::complete)
        {
            // Ends in the timer's callback, at this virtual time: a port access is no place to send.
            self.qemu.arm(&self.parts().rise, self.qemu.now(), Nanos(0));
        }
    }

    fn write_mark(&mut self, mark: u8) {
        self.record(Kind::Mark, self.port_value(mark));
        if mark == MARK_MEASURING && self.config.start == Start::Boot {
            self.qemu.stop();
        }
        if mark == MARK_DONE && self.origin.is_some() && !self.ended {
            self.end();
        }
    }
}

struct ParallelPort;

impl Ports for ParallelPort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, offset: u64) -> u32 {
        with(|g| match offset {
            0 => g.pins,
            1 => STATUS_AT_REST,
            // The upper bits of the control register are not driven and read as ones.
            _ => g.control | 0xc0,
        })
        .into()
    }

    fn write(&mut self, offset: u64, value: u32) {
        let value = value as u8;
        with(|g| match offset {
            0 => g.write_data(value),
            1 => {}
            _ => g.control = value & 0x3f,
        });
    }
}

struct MarkPort;

impl Ports for MarkPort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, _offset: u64) -> u32 {
        // An absent port floats high; init tells the rig from a real machine by this.
        0x4f
    }

    fn write(&mut self, _offset: u64, value: u32) {
        with(|g| g.write_mark(value as u8));
    }
}

struct DisturbancePort;

impl Ports for DisturbancePort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, _offset: u64) -> u32 {
        with(Generator::serve_disturbance).into()
    }

    fn write(&mut self, _offset: u64, _value: u32) {}
}
