// SPDX-License-Identifier: GPL-2.0-or-later
//! The vCPU, seen from inside QEMU: its registers, and the clock, also at instructions where QEMU itself does not read
//! the clock.
//!
//! Both lie in a structure of QEMU's. Its shape changes with QEMU's version and with how QEMU was built, so
//! [`layout`](crate::layout) finds them by what is in the structure.

use crate::checks::{Check, Failed};
use crate::generator::fail;
use crate::layout::{ClockFlag, find_registers};
use crate::physical::{Physical, Reads};
use crate::qemu::Qemu;
use crate::x86_64::{GENERAL, General};
use sample::{At, Insns};
use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// No structure of a vCPU is larger.
const STRUCTURE_MAX: usize = 1 << 20;

/// The vCPU. Reads its registers, and the clock at any instruction. Used on the vCPU's thread only, in callbacks.
pub struct Cpu {
    qemu: Qemu,
    cpu: *mut c_void,
    /// Null until [`Cpu::learn`].
    registers: AtomicPtr<u64>,
    /// Null until it is told from others.
    can_do_io: AtomicPtr<u8>,
    searched: RefCell<Option<ClockFlag>>,
}

impl Cpu {
    /// `cpu` is a `CPUState`.
    pub(crate) fn new(qemu: Qemu, cpu: *mut c_void) -> Cpu {
        let (registers, can_do_io) = (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut()));
        Cpu { qemu, cpu, registers, can_do_io, searched: RefCell::new(None) }
    }

    /// Finds its way in the structure. To be called between two blocks of code, when the registers hold these `values`.
    ///
    /// # Errors
    /// The structure is not that of any vCPU that is known.
    pub fn learn(&self, values: &[u64; GENERAL]) -> Result<(), Failed> {
        let structure = self.structure();
        let at = find_registers(&structure, values)?;
        *self.searched.borrow_mut() = Some(ClockFlag::new(&structure, at));
        // SAFETY: inside the structure.
        self.registers.store(unsafe { self.cpu.byte_add(at) }.cast(), Relaxed);
        Ok(())
    }

    /// What is in the structure, with what QEMU keeps behind it.
    fn structure(&self) -> Vec<u8> {
        // SAFETY: QEMU allocates objects by malloc (GLib), or by posix_memalign; `CPUState` is their first member.
        let length = unsafe { libc::malloc_usable_size(self.cpu) }.min(STRUCTURE_MAX);
        let mut bytes = vec![0; length];
        // SAFETY: as many bytes as were allocated; the vCPU, which changes them, waits for us.
        unsafe { self.cpu.cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), length) };
        bytes
    }

    /// What a register holds, in a callback that may read registers. The plugin interface gives the same by several
    /// calls and a copy.
    pub fn register(&self, register: General) -> u64 {
        let registers = self.registers.load(Relaxed);
        debug_assert!(!registers.is_null());
        // SAFETY: our own thread's vCPU; found before anything is executed, and aligned as QEMU's structure is.
        unsafe { registers.add(register as usize).read() }
    }

    /// Virtual time and completed instructions at the beginning of the instruction that is `left` instructions before
    /// the end of its block. We are called at that instruction or after it. [`Cpu::check`] has to be called before.
    ///
    /// QEMU counts all instructions of a block when it begins the block. Until the block's last instruction the clock
    /// is therefore ahead, and QEMU refuses to read it. The caller knows the place in the block and may subtract, so
    /// the refusal is lifted for a moment.
    pub fn time(&self, left: u64) -> At {
        let flag = self.can_do_io.load(Relaxed);
        let (at, insns) = if flag.is_null() {
            // It is known from the first instruction on that is not the last of its block.
            (self.qemu.now(), self.qemu.insns())
        } else {
            // SAFETY: our own thread's vCPU, which is in our callback; a byte inside the structure, and a `bool` of
            // QEMU's as far as its value can tell.
            unsafe {
                let allowed = flag.read();
                if allowed > 1 {
                    self.refuse(&Check::ClockFlag.fails(format!("it is {allowed}")));
                }
                flag.write(1);
                let now = (self.qemu.now(), self.qemu.insns());
                flag.write(allowed);
                now
            }
        };
        let ahead = self.qemu.length(left);
        // The machine has one vCPU.
        At::new(at - ahead, insns - Insns(left))
    }

    /// Checks that QEMU's structure is what it is taken for. The clock may be read at the last instruction of a block
    /// and at no other, so the flag has to equal `last`. Ends QEMU where it does not.
    #[inline]
    pub fn check(&self, last: bool) {
        let flag = self.can_do_io.load(Relaxed);
        if flag.is_null() {
            self.search(last);
            return;
        }
        // SAFETY: a byte inside the structure.
        let is = unsafe { flag.read() };
        if is != u8::from(last) {
            self.refuse(&Check::ClockFlag.fails(format!("it is {is} where it has to be {last}")));
        }
    }

    #[cold]
    fn search(&self, last: bool) {
        // SAFETY: inside the structure, before the registers.
        let byte = |at| unsafe { self.cpu.byte_add(at).cast::<u8>().read() };
        let mut searched = self.searched.borrow_mut();
        let Some(flag) = searched.as_mut() else { return };
        match flag.narrow(last, byte) {
            // SAFETY: as above.
            Ok(Some(at)) => self.can_do_io.store(unsafe { self.cpu.byte_add(at) }.cast(), Relaxed),
            Ok(None) => {}
            Err(failed) => self.refuse(&failed),
        }
    }

    /// Ends QEMU, which does not pass a check.
    #[cold]
    pub fn refuse(&self, failed: &Failed) -> ! {
        fail(&self.qemu.refusal(failed))
    }

    /// The guest's memory as this vCPU sees it.
    pub(crate) fn memory(&self, reads: Reads) -> Physical {
        Physical::new(reads, self.cpu)
    }
}
