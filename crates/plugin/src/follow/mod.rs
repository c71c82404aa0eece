// SPDX-License-Identifier: GPL-2.0-or-later
//! Follows the guest's kernel from outside. The follower reports whether interrupts are masked, the preemption count,
//! the running task, and the places that it was told to watch, each with its exact time. It also reports the call
//! stacks that mask and unmask interrupts.
//!
//! QEMU calls the follower before the instructions that change the interrupt flag, after the stores to the per-CPU
//! variables, and at the targets of the interrupt table's gates. The guest executes nothing else for it. So the guest's
//! run is the same, to the instruction, with the follower and without it.
//!
//! The follower cannot see a change by code that no instruction of [`code`](crate::x86_64::code) stands for. If an
//! instruction stores and then faults, the follower reports the store as if it had been done.

mod aim;
mod beginning;
mod bottom_halves;
mod functions;
mod looks;
mod memory;
mod nests;
mod places;
mod stacks;
mod state;
mod watches;

use crate::generator::{fail, pass_on_among_many, trigger_at, waits_for_aim};
use crate::halting::before_halts;
use crate::instrument::{Instrument, Instruments, Register};
use crate::qemu::Qemu;
use crate::vcpu::Cpu;
use crate::x86_64::code::Change;
use crate::x86_64::{self, GENERAL, General, InterruptFrame, KERNEL, preempt_count};
use aim::Opening;
use memory::StackMemory;
use places::{Place, Why};
use rustc_hash::FxHashSet;
use sample::{Aim, At, Nanos, Stretch};
use stacks::{Capture, Stacks};
use state::{Followed, Opened, Since};
use std::cell::{RefCell, RefMut};
use std::ffi::{c_uint, c_void};
use std::sync::{Once, OnceLock};
use watches::Watches;
use wire::plan::{Plan, Stack, Watch};
use wire::{Event, StackId, Take, TaskId};

/// The bit in a step of the bottom halves' count that says that they are disabled. Without it a softirq runs
/// (SOFTIRQ_DISABLE_OFFSET, include/linux/preempt.h).
const SOFTIRQ_DISABLE: u64 = 1 << 9;
/// The longest time that a CPU needs to take a lock that nobody holds.
const LOCKING: Nanos = Nanos(500);

/// The registers that the follower looks up once.
#[derive(Clone, Copy)]
struct Registers {
    general: [Register; GENERAL],
    code_segment: Register,
    flags: Register,
    /// The base of the mode that runs, and the base of the other mode.
    bases: [Register; 2],
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
    watches: Watches,
    vcpu: OnceLock<Vcpu>,
    begun: Once,
    /// The addresses at which the kernel's functions begin. Filled only if each call is to be reported.
    functions: FxHashSet<u64>,
    /// Only callbacks at translations and instructions use this. A lock for each of them would take a twentieth of a
    /// followed guest's time.
    followed: RefCell<Followed>,
}

// SAFETY: QEMU's objects behind the raw pointers are reached only through its functions, in callbacks.
unsafe impl Send for Follower {}
// SAFETY: as for `Send`. Only the thread of the one vCPU reaches the parts that change, and it makes the callbacks one
// after the other.
unsafe impl Sync for Follower {}

static FOLLOWER: OnceLock<Follower> = OnceLock::new();

fn follower() -> &'static Follower {
    FOLLOWER.get().expect("set before any callback is registered")
}

/// Registers all callbacks with QEMU, for the plugin that QEMU calls `id`.
///
/// # Errors
/// If QEMU lacks a part of the interface, or a map cannot be read.
pub fn install(qemu: Qemu, id: u64, plan: Plan, aim: Option<Aim>) -> Result<(), String> {
    let attached = Instrument::attach(id, qemu.interface());
    let instrument = attached.map_err(|failed| qemu.refusal(&failed))?;
    let followed = Followed::new(&plan, aim)?;
    let functions = plan.functions_from.map(|_| followed.stacks.functions()).unwrap_or_default();
    let (vcpu, begun, followed) = (OnceLock::new(), Once::new(), RefCell::new(followed));
    let watches = Watches::of(&plan);
    let follower = Follower { qemu, instrument, plan, watches, vcpu, begun, functions, followed };
    if FOLLOWER.set(follower).is_err() {
        return Err("the plugin was loaded twice".into());
    }
    self::follower().instrument.on::<Follower>();
    Ok(())
}

/// Gives the triggers of a child this aim, if there is one.
///
/// # Errors
/// If the guest is not followed, or if the stretches until now were not numbered.
pub fn aim_at(aim: Option<Aim>) -> Result<(), String> {
    match (FOLLOWER.get(), aim) {
        (Some(follower), aim) => follower.followed().aim_at(aim),
        (None, Some(_)) => Err("an aim for a guest that is not followed".into()),
        (None, None) => Ok(()),
    }
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
    // SAFETY: the pointer is to a leaked Place, and `look` gave it.
    let place = unsafe { &*place.cast::<Place>() };
    follower().at(place);
}

extern "C" fn on_due(_vcpu: c_uint, place: *mut c_void) {
    // SAFETY: the pointer is to a leaked Place, and `look` gave it.
    follower().look_inside(unsafe { &*place.cast::<Place>() });
}

extern "C" fn on_store(_vcpu: c_uint, info: c_uint, address: u64, place: *mut c_void) {
    // SAFETY: the pointer is to a leaked Place, and `look` gave it.
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

    fn counts_irqs(&self) -> bool {
        self.plan.preempt.is_some_and(|count| count.counts_irqs)
    }

    fn word(&self, address: u64) -> u64 {
        self.instrument.memory(address).map_or(0, |[word]| word)
    }

    /// Is called before an instruction.
    fn at(&self, place: &Place) {
        let cpu = &self.vcpu().cpu;
        cpu.check(place.left == 1);
        let before = || cpu.time(place.left);
        let after = || cpu.time(place.left - 1);
        // At a gate the stack tells of the interrupt, and not yet of what takes long. Watched places depend on how
        // closely a run is followed, which must not decide where the follower looks.
        if let Why::Change(Change::Masks | Change::Unmasks) = place.why {
            self.look_if_due(place, before());
        }
        match place.why {
            Why::Gate => self.gate(place.address, before()),
            Why::Point => self.point(place.address, before()),
            Why::Watch => self.watch(place.address, before()),
            Why::Holds(holds) => self.hold(holds, place.address, before()),
            Why::Change(Change::Masks) => self.mask(true, place.address, after()),
            Why::Change(Change::Unmasks) => self.mask(false, place.address, after()),
            Why::Change(Change::PopsFlags) => {
                let flags = self.word(cpu.register(General::Stack));
                self.mask(x86_64::masks(flags), place.address, after());
            }
            Why::Change(Change::ReturnsFromInterrupt) => {
                let frame = self.instrument.memory(cpu.register(General::Stack));
                let [ip, segment, flags]: InterruptFrame = frame.unwrap_or_default();
                let at = after();
                self.mask(x86_64::masks(flags), place.address, at);
                self.leave(x86_64::is_user(segment), ip, at);
            }
            Why::Change(Change::ReturnsFromCall) => {
                let at = after();
                self.mask(x86_64::masks(cpu.register(General::CallFlags)), place.address, at);
                self.leave(true, 0, at);
            }
            Why::Change(Change::StoresPerCpu(_) | Change::StoresShort(_)) => {}
            Why::Due | Why::Function | Why::Return => {}
        }
    }

    /// Learns that the instruction at `address` masks interrupts, or unmasks them, at `at`.
    fn mask(&self, masked: bool, address: u64, at: At) {
        let mut followed = self.followed();
        if followed.masked == masked {
            return;
        }
        followed.masked = masked;
        self.begin_functions(&mut followed, at.time);
        if masked {
            let since = self.open(&mut followed, Stretch::IrqsOff, address, at, true);
            self.begin_looks(&mut followed, Stretch::IrqsOff, at);
            pass_on_among_many(&Event::Masked { at, by: address });
            let nested = followed.preempt != 0;
            self.aim(&mut followed, since, nested, address);
        } else {
            followed.end_looks(Stretch::IrqsOff);
            let (opened, stack) = self.close(&mut followed, Stretch::IrqsOff, address, at);
            pass_on_among_many(&Event::Unmasked { at, stack, opened });
        }
    }

    /// Is called after a store, perhaps to one of the per-CPU variables, or to the running task's counter.
    fn stored(&self, place: &Place, address: u64, value: u64) {
        let cpu = &self.vcpu().cpu;
        cpu.check(place.left == 1);
        let at = cpu.time(place.left - 1);
        self.look_if_due(place, at);
        let offset = match place.why {
            Why::Change(Change::StoresPerCpu(offset)) => offset,
            Why::Change(Change::StoresShort(distance)) => {
                if self.followed().task.checked_add(distance) == Some(address) {
                    self.count(value as u16, place.address, at);
                }
                return;
            }
            _ => return,
        };
        if self.plan.current == Some(offset) {
            self.vcpu().memory.forget();
            self.run(value, at);
            let mut followed = self.followed();
            self.begin_looks(&mut followed, Stretch::Unscheduled, at);
            self.look_at_count(&mut followed, at);
            if followed.aimer.is_some() {
                followed.end_unscheduled(at.insns);
                self.begin_unscheduled(&mut followed, value, place.address, at);
            }
            return;
        }
        let count = preempt_count(value, self.counts_irqs());
        let mut followed = self.followed();
        let previous = std::mem::replace(&mut followed.preempt, count);
        if previous == count {
            return;
        }
        self.look_at_count(&mut followed, at);
        let (mut opened, mut stack) = (None, None);
        let mut since = None;
        if previous == 0 {
            // Where triggers are aimed, the key has to tell each opener from the others.
            let worth = !place.brief || followed.aimer.is_some();
            since = Some(self.open(&mut followed, Stretch::PreemptOff, place.address, at, worth));
        } else if count == 0 {
            (opened, stack) = self.close(&mut followed, Stretch::PreemptOff, place.address, at);
        }
        pass_on_among_many(&Event::Preempt { at, count, stack, opened });
        if let Some(since) = since {
            let nested = followed.masked;
            self.aim(&mut followed, since, nested, place.address);
        }
    }

    /// Learns that the running task's counter has this value since the instruction at `address`.
    fn count(&self, value: u16, address: u64, at: At) {
        let mut followed = self.followed();
        let task = followed.task;
        let before = followed.counters.insert(task, value);
        drop(followed);
        // The value before the follower began is not known. A task's counter begins at 0.
        let rises = before.map_or(value > 0, |before| value > before);
        let told = if rises { self.watches.rises } else { self.watches.falls };
        if let Some((index, watch)) = told.filter(|_| before != Some(value)) {
            self.tell(index, watch, address, at);
        }
    }

    /// Learns that a gate of the interrupt table, or a call, has led to `address`.
    fn gate(&self, address: u64, at: At) {
        self.mask(true, address, at);
        let mut followed = self.followed();
        if followed.looks.as_ref().is_some_and(|looks| !looks.is_open(Stretch::Unscheduled)) {
            self.begin_looks(&mut followed, Stretch::Unscheduled, at);
        }
        if followed.aimer.is_some() && followed.unscheduled.is_none() {
            // The number of a system call tells it from other calls.
            let key = address ^ self.vcpu().cpu.register(General::Call);
            self.begin_unscheduled(&mut followed, key, address, at);
        }
    }

    /// Learns that the CPU is back from the kernel, or from one of the kernel's interrupts.
    fn leave(&self, to_user: bool, address: u64, at: At) {
        pass_on_among_many(&Event::Leave { at, user: to_user, to: address });
        if to_user {
            let mut followed = self.followed();
            followed.end_looks(Stretch::Unscheduled);
            followed.end_unscheduled(at.insns);
        }
    }

    /// Learns that the kernel is at a place where it would schedule.
    fn point(&self, address: u64, at: At) {
        let mut followed = self.followed();
        self.begin_looks(&mut followed, Stretch::Unscheduled, at);
        if followed.aimer.is_none() {
            return;
        }
        followed.end_unscheduled(at.insns);
        let key = self.capture(address).key();
        self.begin_unscheduled(&mut followed, key, address, at);
    }

    fn begin_unscheduled(&self, followed: &mut Followed, key: u64, address: u64, at: At) {
        let since = Since::new(&mut followed.aimer, Stretch::Unscheduled, || key, at);
        followed.unscheduled = Some(since);
        let nested = followed.masked || followed.preempt != 0;
        self.aim(followed, since, nested, address);
    }

    /// Triggers if the stretch that the instruction at `address` opens is worth it. `nested` says if it is in another.
    fn aim(&self, followed: &mut Followed, since: Since, nested: bool, address: u64) {
        let (Some(aimer), Some(occurrence)) = (&mut followed.aimer, since.occurrence) else {
            return;
        };
        let at = since.at;
        let Some(waited) = waits_for_aim(at.time) else { return };
        if aimer.takes(Opening { occurrence, nested }, waited) {
            let stack = self.stack(&mut followed.stacks, &self.capture(address), at);
            let (kind, stack) = (occurrence.kind, Some(stack));
            pass_on_among_many(&Event::Aimed { at, kind, stack });
            // The place that takes a lock is reported before the CPU has the lock.
            let held = occurrence.kind == Stretch::BhHeld;
            trigger_at(at.time, if held { LOCKING } else { Nanos(0) });
        }
    }

    /// Opens a stretch of a kind that gets stacks. If the stretch is `worth` it, the stack of its opener is copied.
    fn open(
        &self,
        followed: &mut Followed,
        kind: Stretch,
        address: u64,
        at: At,
        worth: bool,
    ) -> Since {
        let Opened { since, opener } = followed.openers.of(kind);
        match worth {
            true => self.copy(opener, address),
            false => opener.set_bare(address),
        }
        // The interrupted code is no part of the reason why a gate masks interrupts.
        let key = || if self.plan.is_gate(address) { address } else { opener.key() };
        *since.insert(Since::new(&mut followed.aimer, kind, key, at))
    }

    /// Closes a stretch. Returns the stacks that opened and closed it, if it was long enough.
    fn close(
        &self,
        followed: &mut Followed,
        kind: Stretch,
        address: u64,
        at: At,
    ) -> (Option<StackId>, Option<StackId>) {
        let Some(since) = followed.openers.of(kind).since.take() else { return (None, None) };
        followed.closed(since, at.insns);
        if at.insns.saturating_sub(since.at.insns) < self.plan.stacks_from {
            return (None, None);
        }
        let Followed { openers, stacks, .. } = followed;
        let opener = &openers.of(kind).opener;
        let opened = self.stack(stacks, opener, at);
        (Some(opened), Some(self.stack(stacks, &self.capture(address), at)))
    }

    fn stack(&self, stacks: &mut Stacks, capture: &Capture, at: At) -> StackId {
        let fill = |address, bytes: &mut [u8]| self.fill(address, bytes);
        stacks.number(capture, fill, |stack, index, address| {
            pass_on_among_many(&Event::Frame { at, stack, index, address });
        })
    }

    /// Takes the state that is needed to unwind the stack at the instruction at `address`.
    fn capture(&self, address: u64) -> Capture {
        let mut capture = Capture::default();
        self.copy(&mut capture, address);
        capture
    }

    /// Takes the same state into `capture`, in place of its content.
    fn copy(&self, capture: &mut Capture, address: u64) {
        let cpu = &self.vcpu().cpu;
        let (sp, bp) = (cpu.register(General::Stack), cpu.register(General::Frame));
        capture.set(address, sp, bp, |address, bytes| self.fill(address, bytes));
    }

    fn fill(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.vcpu().memory.fill(&self.instrument, address, bytes)
    }

    /// Learns that the CPU runs the task at `task`.
    fn run(&self, task: u64, at: At) {
        let fields = &self.plan.task;
        let [pid, priority] = [fields.pid, fields.prio].map(|f| self.word(task + f) as u32);
        let name: [u64; 2] = self.instrument.memory(task + fields.comm).unwrap_or_default();
        let mut followed = self.followed();
        (followed.task, followed.idle) = (task, pid == 0);
        let known = followed.tasks.insert(task, (pid, priority, name));
        drop(followed);
        let id = TaskId(task);
        if known != Some((pid, priority, name)) {
            let name = u128::from(name[0]) | u128::from(name[1]) << 64;
            let (prio, name) = (priority as u8, name.to_le_bytes());
            pass_on_among_many(&Event::Task { task: id, pid, prio, name });
        }
        pass_on_among_many(&Event::Run { at, task: id, pid });
    }

    fn watch(&self, address: u64, at: At) {
        for (index, watch) in &self.watches.places[&address] {
            self.tell(*index, *watch, address, at);
        }
    }

    /// Reports that the CPU came to a watched place, with the value that is to be taken there.
    fn tell(&self, index: u8, watch: Watch, address: u64, at: At) {
        let cpu = &self.vcpu().cpu;
        let taken = match watch.take {
            Take::Nothing => 0,
            Take::First => cpu.register(General::First),
            Take::Second => cpu.register(General::Second),
            Take::Count => u64::from(cpu.register(General::Second) as u32),
            Take::Word(offset) => self.word(cpu.register(General::First).wrapping_add(offset)),
            Take::Top => self.word(cpu.register(General::Stack)),
        };
        // Calls that report by how much they disable bottom halves report the serving of softirqs, too.
        let counts = watch.take != Take::Count || taken & SOFTIRQ_DISABLE != 0;
        let mut followed = self.followed();
        let Followed { nests, stacks, task, .. } = &mut *followed;
        let (mut opened, mut stack) = (None, None);
        match watch.stack {
            Stack::Always => stack = Some(self.stack(stacks, &self.capture(address), at)),
            Stack::Opens(nesting) if counts => {
                nests.open(nesting, *task, at.insns, |opener| self.copy(opener, address));
            }
            Stack::Closes(nesting) if counts => {
                let closed = nests.close(nesting, *task, at.insns);
                let long = closed.filter(|(length, _)| *length >= self.plan.stacks_from);
                if let Some((_, opener)) = long {
                    opened = Some(self.stack(stacks, opener, at));
                    stack = Some(self.stack(stacks, &self.capture(address), at));
                }
            }
            Stack::Never | Stack::Opens(_) | Stack::Closes(_) => {}
        }
        pass_on_among_many(&match watch.stack {
            Stack::Closes(_) => {
                Event::Close { at, watch: index, taken: taken as u32, stack, opened }
            }
            _ => Event::Enter { at, watch: index, taken, stack },
        });
    }
}
