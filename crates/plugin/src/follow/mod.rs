// SPDX-License-Identifier: GPL-2.0-or-later
//! Follows the guest's kernel from outside: whether interrupts are masked, the preemption count, the running task, and the
//! places that it was told to watch, each with its exact time, and the call stacks that mask and unmask.
//!
//! Vantage point: before the instructions that change the interrupt flag, after the stores to the per-CPU variables, where
//! gates of the interrupt table lead to. The guest executes nothing else for it, so its run is the same, to the
//! instruction, with the follower and without.
//!
//! What it cannot see: a change by code that no instruction of [`code`] stands for. A store by an instruction that then
//! faults is told as if it had been done.

mod aim;
mod beginning;
mod code;
mod functions;
mod looks;
mod memory;
mod nests;
mod places;
mod plan;
mod stacks;
mod state;

pub use plan::Plan;

use crate::generator::{fail, pass_on_among_many, trigger_at, waits_for_aim};
use crate::halting::before_halts;
use crate::instrument::{Instrument, Instruments, Register};
use crate::layout::GENERAL;
use crate::qemu::Qemu;
use crate::vcpu::{Cpu, General};
use aim::Opening;
use code::{Change, INTERRUPT_FLAG};
use memory::StackMemory;
use places::{Place, Why};
use plan::{Stack, Watch};
use rustc_hash::FxHashSet;
use sample::{AIMED, Aim, Insns, Kind, Nanos, Record, Stamp, Stretch, Take, Virtual};
use stacks::{Capture, Stacks};
use state::{Followed, Opened, Since};
use std::cell::{RefCell, RefMut};
use std::ffi::{c_uint, c_void};
use std::sync::{Once, OnceLock};

/// The kernel is the upper half of the addresses.
const KERNEL: u64 = 1 << 63;
/// The bit of a preemption count of 32 bits that says whether no reschedule is needed (PREEMPT_NEED_RESCHED,
/// arch/x86/include/asm/preempt.h).
const NO_RESCHED: u32 = 1 << 31;

/// A preemption count as records have it: 8 bits of preemption that is off, 8 of bottom halves, 4 of interrupts, 4 of NMIs
/// (include/linux/preempt.h before 7.2). What is stored is that and [`NO_RESCHED`]; where it `counts_irqs`, there are 8 bits
/// of interrupts that are disabled between the second and the third, and the highest of 64 bits says whether no reschedule is
/// needed. Those 8 bits become the highest: they keep preemption off, too.
fn preempt_count(stored: u64, counts_irqs: bool) -> u32 {
    let count = stored as u32;
    if counts_irqs {
        count & 0xffff | count >> 24 << 16 | (count >> 16 & 0xff) << 24
    } else {
        count & !NO_RESCHED
    }
}
/// In what bottom halves are counted by, that they are disabled, and not that a softirq runs (SOFTIRQ_DISABLE_OFFSET,
/// include/linux/preempt.h).
const SOFTIRQ_DISABLE: u64 = 1 << 9;
/// Taking a lock that nobody holds is done by then.
const LOCKING: Nanos = Nanos(500);

/// The registers that are looked at once.
#[derive(Clone, Copy)]
struct Registers {
    general: [Register; GENERAL],
    cs: Register,
    eflags: Register,
    /// Of the mode that runs, and of the other one (`swapgs`).
    gs_bases: [Register; 2],
}

/// The vCPU, once it has been made.
struct Vcpu {
    cpu: Cpu,
    registers: Registers,
    memory: StackMemory,
}

struct Follower {
    qemu: Qemu,
    instrument: Instrument,
    plan: Plan,
    vcpu: OnceLock<Vcpu>,
    begun: Once,
    /// Where the kernel's functions begin, where each call is told.
    functions: FxHashSet<u64>,
    /// Reached in callbacks at translations and instructions alone. A lock for each would be a twentieth of a followed guest's time.
    followed: RefCell<Followed>,
}

// SAFETY: QEMU's objects behind the raw pointers are reached only through its functions, in callbacks.
unsafe impl Send for Follower {}
// SAFETY: as above; what changes is reached on the one vCPU's thread only, which makes the callbacks one after the other.
unsafe impl Sync for Follower {}

static FOLLOWER: OnceLock<Follower> = OnceLock::new();

fn follower() -> &'static Follower {
    FOLLOWER.get().expect("set before any callback is registered")
}

/// Registers everything with QEMU, for the plugin that it calls `id`.
///
/// # Errors
/// A QEMU that lacks a part of the interface; a map that cannot be read.
pub fn install(qemu: Qemu, id: u64, plan: Plan, aim: Option<Aim>) -> Result<(), String> {
    let attached = Instrument::attach(id, qemu.interface());
    let instrument = attached.map_err(|failed| qemu.refusal(&failed))?;
    let followed = Followed::new(&plan, aim)?;
    let functions = plan.functions_from.map(|_| followed.stacks.functions()).unwrap_or_default();
    let (vcpu, begun, followed) = (OnceLock::new(), Once::new(), RefCell::new(followed));
    let follower = Follower { qemu, instrument, plan, vcpu, begun, functions, followed };
    if FOLLOWER.set(follower).is_err() {
        return Err("the plugin was loaded twice".into());
    }
    self::follower().instrument.on::<Follower>();
    Ok(())
}

impl Instruments for Follower {
    fn has_vcpu() {
        let follower = follower();
        let vcpu = follower.look_up().unwrap_or_else(|e| fail(&e));
        follower.vcpu.get_or_init(|| vcpu);
    }

    fn translates(block: *mut c_void) {
        let follower = follower();
        let block = follower.instrument.block(block);
        before_halts(&block);
        follower.begun.call_once(|| follower.begin());
        if block.address() >= KERNEL {
            follower.look(&block);
        }
    }
}

extern "C" fn on_place(_vcpu: c_uint, place: *mut c_void) {
    // SAFETY: a leaked Place, given by `look`.
    let place = unsafe { &*place.cast::<Place>() };
    follower().at(place);
}

extern "C" fn on_due(_vcpu: c_uint, place: *mut c_void) {
    // SAFETY: as above.
    follower().look_inside(unsafe { &*place.cast::<Place>() });
}

extern "C" fn on_store(_vcpu: c_uint, info: c_uint, address: u64, place: *mut c_void) {
    // SAFETY: as above.
    let place = unsafe { &*place.cast::<Place>() };
    follower().stored(place, address, follower().instrument.stored(info));
}

impl Follower {
    fn vcpu(&self) -> &Vcpu {
        self.vcpu.get().expect("found when the vCPU was made")
    }

    fn followed(&self) -> RefMut<'_, Followed> {
        self.followed.borrow_mut()
    }

    fn read(&self, register: Register) -> u64 {
        self.instrument.read(register)
    }

    fn word(&self, address: u64) -> u64 {
        self.instrument.memory(address).map_or(0, |[word]| word)
    }

    /// Before an instruction.
    fn at(&self, place: &Place) {
        let cpu = &self.vcpu().cpu;
        cpu.check(place.left == 1);
        let before = || cpu.time(place.left);
        let after = || cpu.time(place.left - 1);
        match place.why {
            Why::Gate => self.gate(place.address, before()),
            Why::Point => self.point(place.address, before()),
            Why::Watch => self.watch(place.address, before()),
            Why::Holds(holds) => self.hold(holds, place.address, before()),
            Why::Change(Change::Masks) => self.mask(true, place.address, after()),
            Why::Change(Change::Unmasks) => self.mask(false, place.address, after()),
            Why::Change(Change::PopsFlags) => {
                let flags = self.word(cpu.register(General::Rsp));
                self.mask(flags & INTERRUPT_FLAG == 0, place.address, after());
            }
            Why::Change(Change::ReturnsFromInterrupt) => {
                let frame = self.instrument.memory(cpu.register(General::Rsp));
                let [ip, segment, flags] = frame.unwrap_or_default();
                let time = after();
                self.mask(flags & INTERRUPT_FLAG == 0, place.address, time);
                self.leave(segment & 3 == 3, ip, time);
            }
            Why::Change(Change::ReturnsFromCall) => {
                let time = after();
                self.mask(cpu.register(General::R11) & INTERRUPT_FLAG == 0, place.address, time);
                self.leave(true, 0, time);
            }
            Why::Change(Change::StoresPerCpu(_) | Change::StoresShort(_)) => {}
            Why::Due | Why::Function | Why::Return => {}
        }
    }

    /// Interrupts are masked, or not, from `time` on, by the instruction at `address`.
    fn mask(&self, masked: bool, address: u64, time: (Stamp<Virtual>, Insns)) {
        let mut followed = self.followed();
        if followed.masked == masked {
            return;
        }
        followed.masked = masked;
        self.begin_functions(&mut followed, time.0);
        if masked {
            let since = self.open(&mut followed, Stretch::IrqsOff, address, time, true);
            self.begin_looks(&mut followed, Stretch::IrqsOff, time);
            record(Kind::Irqs, 1, 0, address, time);
            let nested = followed.preempt != 0;
            self.aim(&mut followed, since, nested, address);
        } else {
            followed.end_looks(Stretch::IrqsOff);
            let (opened, closed) = self.close(&mut followed, Stretch::IrqsOff, address, time);
            record(Kind::Irqs, 0, closed, opened.into(), time);
        }
    }

    /// After a store, perhaps to one of the per-CPU variables, or to the running task's counter.
    fn stored(&self, place: &Place, address: u64, value: u64) {
        let cpu = &self.vcpu().cpu;
        cpu.check(place.left == 1);
        let time = cpu.time(place.left - 1);
        let offset = match place.why {
            Why::Change(Change::StoresPerCpu(offset)) => offset,
            Why::Change(Change::StoresShort(distance)) => {
                if self.followed().task.checked_add(distance) == Some(address) {
                    self.count(value as u16, place.address, time);
                }
                return;
            }
            _ => return,
        };
        if self.plan.current == Some(offset) {
            self.vcpu().memory.forget();
            self.run(value, time);
            let mut followed = self.followed();
            self.begin_looks(&mut followed, Stretch::Unscheduled, time);
            self.look_at_count(&mut followed, time);
            if followed.aimer.is_some() {
                followed.end_unscheduled(time.1);
                self.begin_unscheduled(&mut followed, value, place.address, time);
            }
            return;
        }
        let count = preempt_count(value, self.plan.counts_irqs);
        let mut followed = self.followed();
        let previous = std::mem::replace(&mut followed.preempt, count);
        if previous == count {
            return;
        }
        self.look_at_count(&mut followed, time);
        let mut number = u64::from(count);
        let mut closed = 0;
        let mut since = None;
        if previous == 0 {
            // Where triggers are aimed, every opener is told from others.
            let worth = !place.brief || followed.aimer.is_some();
            since = Some(self.open(&mut followed, Stretch::PreemptOff, place.address, time, worth));
        } else if count == 0 {
            let opened;
            (opened, closed) = self.close(&mut followed, Stretch::PreemptOff, place.address, time);
            number |= u64::from(opened) << 32;
        }
        record(Kind::Preempt, 0, closed, number, time);
        if let Some(since) = since {
            let nested = followed.masked;
            self.aim(&mut followed, since, nested, place.address);
        }
    }

    /// The running task's counter is this since the instruction at `address`.
    fn count(&self, value: u16, address: u64, time: (Stamp<Virtual>, Insns)) {
        let mut followed = self.followed();
        let task = followed.task;
        let before = followed.counters.insert(task, value);
        drop(followed);
        // Where it was before following began is not known; who counts begins at 0.
        let rises = before.map_or(value > 0, |before| value > before);
        let told = if rises { self.plan.rises } else { self.plan.falls };
        if let Some((index, watch)) = told.filter(|_| before != Some(value)) {
            self.tell(index, watch, address, time);
        }
    }

    /// A gate of the interrupt table, or a call, has led to `address`.
    fn gate(&self, address: u64, time: (Stamp<Virtual>, Insns)) {
        self.mask(true, address, time);
        let mut followed = self.followed();
        if followed.looks.as_ref().is_some_and(|looks| !looks.is_open(Stretch::Unscheduled)) {
            self.begin_looks(&mut followed, Stretch::Unscheduled, time);
        }
        if followed.aimer.is_some() && followed.unscheduled.is_none() {
            // A call is told from others by its number.
            let key = address ^ self.vcpu().cpu.register(General::Rax);
            self.begin_unscheduled(&mut followed, key, address, time);
        }
    }

    /// Back from the kernel, or from one of its interrupts.
    fn leave(&self, to_user: bool, address: u64, time: (Stamp<Virtual>, Insns)) {
        record(Kind::Leave, u8::from(to_user), 0, address, time);
        if to_user {
            let mut followed = self.followed();
            followed.end_looks(Stretch::Unscheduled);
            followed.end_unscheduled(time.1);
        }
    }

    /// The kernel is at a place where it would schedule.
    fn point(&self, address: u64, time: (Stamp<Virtual>, Insns)) {
        let mut followed = self.followed();
        self.begin_looks(&mut followed, Stretch::Unscheduled, time);
        if followed.aimer.is_none() {
            return;
        }
        followed.end_unscheduled(time.1);
        let key = self.capture(address).key();
        self.begin_unscheduled(&mut followed, key, address, time);
    }

    /// The lock of bottom halves is taken, or released, by a call of the function at `address`.
    fn hold(&self, holds: bool, address: u64, time: (Stamp<Virtual>, Insns)) {
        let mut followed = self.followed();
        if followed.aimer.is_none() || self.vcpu().cpu.register(General::Rsi) & SOFTIRQ_DISABLE == 0
        {
            return;
        }
        let before = followed.bh_held;
        followed.bh_held = if holds { before + 1 } else { before.saturating_sub(1) };
        match (before, followed.bh_held) {
            (0, 1) => {
                let key = self.capture(address).key();
                let since = Since::new(&mut followed.aimer, Stretch::BhHeld, || key, time);
                followed.bh_off = Some(since);
                let nested = followed.masked || followed.preempt != 0;
                self.aim(&mut followed, since, nested, address);
            }
            (1, 0) => {
                if let Some(since) = followed.bh_off.take() {
                    followed.closed(since, time.1);
                }
            }
            _ => {}
        }
    }

    fn begin_unscheduled(
        &self,
        followed: &mut Followed,
        key: u64,
        address: u64,
        time: (Stamp<Virtual>, Insns),
    ) {
        let since = Since::new(&mut followed.aimer, Stretch::Unscheduled, || key, time);
        followed.unscheduled = Some(since);
        let nested = followed.masked || followed.preempt != 0;
        self.aim(followed, since, nested, address);
    }

    /// Triggers, if a stretch is worth it that opens at the instruction at `address`, inside another or not.
    fn aim(&self, followed: &mut Followed, since: Since, nested: bool, address: u64) {
        let (Some(aimer), Some(occurrence)) = (&mut followed.aimer, since.occurrence) else {
            return;
        };
        let time = since.time;
        let Some(waited) = waits_for_aim(time.0) else { return };
        if aimer.takes(Opening { occurrence, nested }, waited) {
            let stack = self.stack(&mut followed.stacks, &self.capture(address), time);
            record(Kind::Enter, AIMED, stack, occurrence.kind as u64, time);
            // What takes a lock is told before it has it.
            let held = occurrence.kind == Stretch::BhHeld;
            trigger_at(time.0, if held { LOCKING } else { Nanos(0) });
        }
    }

    /// A stretch that gets stacks opens; that of its opener is copied if it is `worth` it.
    fn open(
        &self,
        followed: &mut Followed,
        kind: Stretch,
        address: u64,
        time: (Stamp<Virtual>, Insns),
        worth: bool,
    ) -> Since {
        let Opened { since, opener } = followed.openers.of(kind);
        match worth {
            true => self.copy(opener, address),
            false => opener.set_bare(address),
        }
        // What a gate interrupted is no part of why it masks.
        let key = || if self.plan.is_gate(address) { address } else { opener.key() };
        *since.insert(Since::new(&mut followed.aimer, kind, key, time))
    }

    /// The stacks that opened and closed a stretch, where it was long enough; else 0.
    fn close(
        &self,
        followed: &mut Followed,
        kind: Stretch,
        address: u64,
        time: (Stamp<Virtual>, Insns),
    ) -> (u32, u32) {
        let Some(since) = followed.openers.of(kind).since.take() else { return (0, 0) };
        followed.closed(since, time.1);
        if time.1.0.saturating_sub(since.time.1.0) < self.plan.stacks_from {
            return (0, 0);
        }
        let Followed { openers, stacks, .. } = followed;
        let opener = &openers.of(kind).opener;
        (self.stack(stacks, opener, time), self.stack(stacks, &self.capture(address), time))
    }

    fn stack(&self, stacks: &mut Stacks, capture: &Capture, time: (Stamp<Virtual>, Insns)) -> u32 {
        let fill = |address, bytes: &mut [u8]| self.fill(address, bytes);
        stacks.number(capture, fill, |number, index, address| {
            record(Kind::Stack, index, number, address, time);
        })
    }

    /// What it takes to unwind the stack here, at the instruction at `address`.
    fn capture(&self, address: u64) -> Capture {
        let mut capture = Capture::default();
        self.copy(&mut capture, address);
        capture
    }

    /// The same, in place of what `capture` held.
    fn copy(&self, capture: &mut Capture, address: u64) {
        let cpu = &self.vcpu().cpu;
        let (sp, bp) = (cpu.register(General::Rsp), cpu.register(General::Rbp));
        capture.set(address, sp, bp, |address, bytes| self.fill(address, bytes));
    }

    fn fill(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.vcpu().memory.fill(&self.instrument, address, bytes)
    }

    /// The CPU runs the task at `task`.
    fn run(&self, task: u64, time: (Stamp<Virtual>, Insns)) {
        let fields = &self.plan.task;
        let [pid, priority] = [fields.pid, fields.prio].map(|f| self.word(task + f) as u32);
        let name: [u64; 2] = self.instrument.memory(task + fields.comm).unwrap_or_default();
        let mut followed = self.followed();
        (followed.task, followed.idle) = (task, pid == 0);
        let known = followed.tasks.insert(task, (pid, priority, name));
        drop(followed);
        if known != Some((pid, priority, name)) {
            let named = (Stamp::from_ns(name[0]), Insns(name[1]));
            record(Kind::Task, priority as u8, pid, task, named);
        }
        record(Kind::Run, 0, pid, task, time);
    }

    fn watch(&self, address: u64, time: (Stamp<Virtual>, Insns)) {
        for (index, watch) in &self.plan.watches[&address] {
            self.tell(*index, *watch, address, time);
        }
    }

    /// Tells that the CPU came to a watched place, with what is to be taken there.
    fn tell(&self, index: u8, watch: Watch, address: u64, time: (Stamp<Virtual>, Insns)) {
        let cpu = &self.vcpu().cpu;
        let taken = match watch.take {
            Take::Nothing => 0,
            Take::First => cpu.register(General::Rdi),
            Take::Second => cpu.register(General::Rsi),
            Take::Count => u64::from(cpu.register(General::Rsi) as u32),
            Take::Word(offset) => self.word(cpu.register(General::Rdi).wrapping_add(offset)),
            Take::Top => self.word(cpu.register(General::Rsp)),
        };
        // Calls that tell by how much they disable tell of softirqs being served, too.
        let counts = watch.take != Take::Count || taken & SOFTIRQ_DISABLE != 0;
        let mut followed = self.followed();
        let Followed { nests, stacks, task, .. } = &mut *followed;
        let mut opened = 0;
        let stack = match watch.stack {
            Stack::Always => self.stack(stacks, &self.capture(address), time),
            Stack::Opens(nesting) if counts => {
                nests.open(nesting, *task, time.1, |opener| self.copy(opener, address));
                0
            }
            Stack::Closes(nesting) if counts => {
                let closed = nests.close(nesting, *task, time.1);
                let long = closed.filter(|(length, _)| length.0 >= self.plan.stacks_from);
                long.map_or(0, |(_, opener)| {
                    opened = self.stack(stacks, opener, time);
                    self.stack(stacks, &self.capture(address), time)
                })
            }
            Stack::Never | Stack::Opens(_) | Stack::Closes(_) => 0,
        };
        record(Kind::Enter, index, stack, taken | u64::from(opened) << 32, time);
    }
}

fn record(kind: Kind, pins: u8, value: u32, number: u64, time: (Stamp<Virtual>, Insns)) {
    pass_on_among_many(&Record { kind, pins, value, number, at: time.0, insns: time.1 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_count_is_the_same_in_both_forms() {
        // Preemption off once, bottom halves three times, in an interrupt, in an NMI; a reschedule needed and not.
        let recorded = 1 | 3 << 9 | 1 << 16 | 1 << 20;
        let short = |needed: u64| u64::from(recorded) | needed << 31;
        let long = |needed: u64, disabled: u64| {
            1 | 3 << 9 | disabled << 16 | 1 << 24 | 1 << 28 | needed << 63
        };
        for needed in [0, 1] {
            assert_eq!(preempt_count(short(needed), false), recorded);
            assert_eq!(preempt_count(long(needed, 0), true), recorded);
            assert_eq!(preempt_count(long(needed, 2), true), recorded | 2 << 24);
        }
        assert_eq!(preempt_count(1 << 63, true), 0);
    }
}
