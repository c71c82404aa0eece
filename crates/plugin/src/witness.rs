// SPDX-License-Identifier: GPL-2.0-or-later
//! Sees from outside when threads of the guest wait and when they run again. A probe inside the guest can only estimate
//! these instants.
//!
//! The witness watches three instructions of x86-64. `syscall` in user space has arguments that tell what a thread is
//! going to wait for. After `sysretq` and `iretq` in the kernel the thread's first instruction runs. All three end
//! their block of translated code, and QEMU's clock may be read only at the last instruction of a block. So the times
//! are QEMU's own and exact to the instruction, and the witness counts nothing beside QEMU.
//!
//! The witness cannot see why a thread was woken, nor whether a call waited at all. It knows a thread by its address
//! space (the page of its top-level table) and its thread-local storage. If a thread takes over both from a thread that
//! is gone, it gets the same number.

use crate::generator::{fail, pass_on};
use crate::halting::before_halts;
use crate::instrument::{Block, Instrument, Instruments, Register};
use crate::qemu::Qemu;
use crate::spending::Spending;
use crate::x86_64::code::{CALL, RETURN_FROM_CALL, RETURN_FROM_INTERRUPT};
use crate::x86_64::{self, INSTRUCTION_BYTES_MAX, SPACE, USER_END, WATCHED};
use crate::x86_64::{CLOCK_NANOSLEEP, FaultFrame, GETPID, TIMER_SETTIME};
use sample::{At, Insns, Stamp};
use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, OnceLock};
use wire::ports::{BATCH, BATCH_BITS, BATCH_COUNTS, BATCH_ENDS};
use wire::{Event, FunctionStarts};

/// The bytes from the beginning of an itimerspec to its first expiry, which follows the interval.
const IT_VALUE: u64 = 16;
const CLOCK_MONOTONIC: u64 = 1;
const TIMER_ABSTIME: u64 = 1;
/// The numbers for the callback before a return: by a call, and below by an interrupt.
const BY_CALL: usize = 0;
const BY_INTERRUPT: usize = 1;

/// The registers that the witness looks at.
#[derive(Clone, Copy)]
struct Registers {
    number: Register,
    first: Register,
    second: Register,
    third: Register,
    stack: Register,
    storage: Register,
    space: Register,
}

/// A thread, as the witness knows it.
#[derive(Debug)]
struct Thread {
    number: u32,
    /// The instructions of user space when the thread was woken, or when it was first seen.
    woken: u64,
    /// The call in which the thread waits, and the thread's own instructions of user space before that call.
    waits: Option<(u8, u64)>,
}

/// The threads by address space and thread-local storage, and how many of them wait.
#[derive(Debug, Default)]
struct Threads {
    known: BTreeMap<(u64, u64), Thread>,
    waiting: usize,
}

impl Threads {
    /// A thread makes a call. `counted` are the instructions of user space until now. Returns the thread's number.
    fn call(&mut self, key: (u64, u64), call: u8, counted: u64) -> u32 {
        let number = self.known.len() as u32;
        let thread =
            self.known.entry(key).or_insert(Thread { number, woken: counted, waits: None });
        let own = counted.saturating_sub(thread.woken);
        if thread.waits.replace((call, own)).is_none() {
            self.waiting += 1;
        }
        thread.number
    }

    /// A thread returns. Gives its number, the call in which it waited, and its instructions of user space before that.
    fn wake(&mut self, key: (u64, u64), counted: u64) -> Option<(u32, u8, u64)> {
        let thread = self.known.get_mut(&key)?;
        let (call, own) = thread.waits.take()?;
        thread.woken = counted;
        self.waiting -= 1;
        Some((thread.number, call, own))
    }
}

struct Witness {
    qemu: Qemu,
    instrument: Instrument,
    registers: OnceLock<Registers>,
    threads: Mutex<Threads>,
    spending: Option<Spending>,
}

// SAFETY: QEMU's objects behind the raw pointers are reached only through its functions, in callbacks.
unsafe impl Send for Witness {}
// SAFETY: as for `Send`. A lock guards the parts that change.
unsafe impl Sync for Witness {}

static WITNESS: OnceLock<Witness> = OnceLock::new();

fn witness() -> &'static Witness {
    WITNESS.get().expect("set before any callback is registered")
}

/// Registers all callbacks with QEMU, for the plugin that QEMU calls `id`. With `functions` the witness also counts
/// what each function executes in the stretches of the probe `cost`.
///
/// # Errors
/// If QEMU lacks a part of the interface.
pub fn install(qemu: Qemu, id: u64, functions: Option<FunctionStarts>) -> Result<(), String> {
    let attached = Instrument::attach(id, qemu.interface());
    let instrument = attached.map_err(|failed| qemu.refusal(&failed))?;
    let threads = Mutex::new(Threads::default());
    let spending = functions.map(|functions| Spending::new(&instrument, functions));
    let witness = Witness { qemu, instrument, registers: OnceLock::new(), threads, spending };
    if WITNESS.set(witness).is_err() {
        return Err("the plugin was loaded twice".into());
    }
    self::witness().instrument.on::<Witness>();
    Ok(())
}

impl Instruments for Witness {
    fn has_vcpu() {
        let Witness { qemu, instrument, .. } = witness();
        let found = instrument.registers(x86_64::CALL_NAMES);
        let [number, first, second, third, stack, storage, space] =
            found.unwrap_or_else(|failed| fail(&qemu.refusal(&failed)));
        let registers = Registers { number, first, second, third, stack, storage, space };
        witness().registers.get_or_init(|| registers);
    }

    fn translates(block: *mut c_void) {
        witness().look(&witness().instrument.block(block));
    }
}

extern "C" fn on_call(_vcpu: c_uint, _: *mut c_void) {
    witness().see_call();
}

extern "C" fn on_fault(_vcpu: c_uint, _: *mut c_void) {
    witness().see_fault();
}

extern "C" fn on_return(_vcpu: c_uint, how: *mut c_void) {
    witness().see_return(how as usize);
}

impl Witness {
    /// Looks at a block that QEMU translates.
    fn look(&self, block: &Block<'_>) {
        before_halts(block);
        let user = block.address() < USER_END;
        if user {
            block.count();
        }
        if let Some(spending) = &self.spending {
            spending.look(block, on_fault);
        }
        let Some(last) = block.last() else { return };
        let mut bytes = [0; INSTRUCTION_BYTES_MAX];
        let code = last.code(&mut bytes);
        if user {
            if code.starts_with(&CALL) {
                last.before(on_call, 0);
            }
        } else if code.starts_with(&RETURN_FROM_CALL) {
            last.before(on_return, BY_CALL);
        } else if code.starts_with(&RETURN_FROM_INTERRUPT) {
            last.before(on_return, BY_INTERRUPT);
        }
    }

    fn registers(&self) -> &Registers {
        self.registers.get().expect("found when the vCPU was made")
    }

    /// The key of the current thread: its address space and its thread-local storage.
    fn key(&self) -> (u64, u64) {
        let Registers { space, storage, .. } = self.registers();
        (self.instrument.read(*space) & SPACE, self.instrument.read(*storage))
    }

    fn see_call(&self) {
        let number = self.instrument.read(self.registers().number);
        if number == GETPID {
            return self.see_batch();
        }
        let Some(call) = WATCHED.into_iter().find(|n| u64::from(*n) == number) else { return };
        let requested = self.requested(call);
        let thread = self.threads().call(self.key(), call, self.instrument.counted());
        // The guest booted at 0, so 0 is no such time.
        let requested = (requested != 0).then(|| Stamp::from_ns(requested));
        pass_on(&Event::Call { at: self.now(), call, thread, requested });
    }

    /// The probe `cost` begins or ends a stretch, if the call's first argument says so.
    fn see_batch(&self) {
        let Registers { first, second, third, .. } = self.registers();
        let read = |register: &Register| self.instrument.read(*register);
        if read(first) != BATCH {
            return;
        }
        let (series, third) = (read(second) as u16, read(third));
        let (counts, ends) = (third & BATCH_COUNTS != 0, third & BATCH_ENDS != 0);
        let number = (third >> BATCH_BITS) as u32;
        match &self.spending {
            Some(spending) if ends => spending.tell(&self.instrument),
            Some(spending) => spending.begin(&self.instrument),
            None => {}
        }
        pass_on(&Event::Batch { at: self.now(), series, number, counts, ends });
    }

    /// The kernel is entered after a page fault.
    fn see_fault(&self) {
        let stack = self.instrument.read(self.registers().stack);
        let frame: Option<FaultFrame> = self.instrument.memory(stack);
        if let (Some(spending), Some([code, address])) = (&self.spending, frame)
            && !x86_64::is_fetch(code)
        {
            spending.take_back(&self.instrument, address);
        }
    }

    /// The time until which the thread asks to sleep, in ns of CLOCK_MONOTONIC, or the first expiry of its timer, in ns
    /// of that timer's clock. 0 if there is no such time.
    fn requested(&self, call: u8) -> u64 {
        let Registers { first, second, third, .. } = self.registers();
        let read = |register: &Register| self.instrument.read(*register);
        let time = match call {
            CLOCK_NANOSLEEP if read(first) == CLOCK_MONOTONIC => read(third),
            TIMER_SETTIME => read(third).wrapping_add(IT_VALUE),
            _ => return 0,
        };
        if read(second) & TIMER_ABSTIME == 0 {
            return 0;
        }
        match self.instrument.memory(time) {
            Some([s, ns]) => s.saturating_mul(1_000_000_000).saturating_add(ns),
            None => 0,
        }
    }

    fn see_return(&self, how: usize) {
        if self.threads().waiting == 0 || how == BY_INTERRUPT && !self.is_to_user() {
            return;
        }
        let woken = self.threads().wake(self.key(), self.instrument.counted());
        if let Some((thread, call, own)) = woken {
            pass_on(&Event::Wake { at: self.now(), call, thread, own: Insns(own) });
        }
    }

    /// Whether the return from an interrupt leads to user space. The code segment above the return address says so.
    fn is_to_user(&self) -> bool {
        let frame = self.instrument.memory(self.instrument.read(self.registers().stack));
        frame.is_some_and(|[_, code_segment]: [u64; 2]| x86_64::is_user(code_segment))
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The present time. The counts include the instruction before which the witness is called.
    fn now(&self) -> At {
        At::new(self.qemu.now(), self.qemu.insns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_tells_what_its_own_thread_executed_before_the_call() {
        let mut threads = Threads::default();
        let (a, b) = ((1, 1), (1, 2));
        assert_eq!(threads.call(a, 35, 100), 0);
        assert_eq!(threads.call(b, 0, 250), 1);
        assert_eq!(threads.waiting, 2);
        assert_eq!(threads.wake(a, 250), Some((0, 35, 0)));
        assert_eq!(threads.call(a, 24, 290), 0);
        assert_eq!(threads.wake(b, 290), Some((1, 0, 0)));
        assert_eq!(threads.wake(a, 300), Some((0, 24, 40)));
        assert_eq!(threads.waiting, 0);
    }

    #[test]
    fn a_thread_that_did_not_call_does_not_wake() {
        let mut threads = Threads::default();
        assert_eq!(threads.wake((1, 1), 5), None);
        threads.call((1, 1), 202, 5);
        assert_eq!(threads.wake((1, 2), 5), None);
        assert!(threads.wake((1, 1), 5).is_some());
        assert_eq!(threads.wake((1, 1), 6), None);
    }

    #[test]
    fn a_call_that_is_begun_again_is_one_wait() {
        let mut threads = Threads::default();
        threads.call((1, 1), 230, 5);
        threads.call((1, 1), 230, 9);
        assert_eq!(threads.waiting, 1);
        assert_eq!(threads.wake((1, 1), 12), Some((0, 230, 4)));
        assert_eq!(threads.waiting, 0);
    }
}
