// SPDX-License-Identifier: GPL-2.0-or-later
//! The vCPU, seen from inside QEMU: its registers, and the clock. The clock can also be read at instructions at which
//! QEMU itself does not read it.
//!
//! Both are in a structure of QEMU. Its shape changes with QEMU's version and with the way in which QEMU was built. So
//! [`layout`](crate::layout) finds them by the content of the structure.

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

/// An upper limit for the size of a vCPU's structure.
const STRUCTURE_MAX: usize = 1 << 20;

/// The vCPU. Reads its registers, and the clock at any instruction. Only the vCPU's thread uses this, in callbacks.
pub struct Cpu {
    qemu: Qemu,
    cpu: *mut c_void,
    /// Null until [`Cpu::learn`].
    registers: AtomicPtr<u64>,
    /// Null until the flag is told from other bytes.
    can_do_io: AtomicPtr<u8>,
    searched: RefCell<Option<ClockFlag>>,
}

impl Cpu {
    /// The vCPU of which `cpu` is the `CPUState`.
    pub(crate) fn new(qemu: Qemu, cpu: *mut c_void) -> Cpu {
        let (registers, can_do_io) = (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut()));
        Cpu { qemu, cpu, registers, can_do_io, searched: RefCell::new(None) }
    }

    /// Finds its way in the structure. Call this between two blocks of code, when the registers hold these `values`.
    ///
    /// # Errors
    /// If the structure is not that of any known vCPU.
    pub fn learn(&self, values: &[u64; GENERAL]) -> Result<(), Failed> {
        let structure = self.structure();
        let at = find_registers(&structure, values)?;
        *self.searched.borrow_mut() = Some(ClockFlag::new(&structure, at));
        // SAFETY: this is inside the structure.
        self.registers.store(unsafe { self.cpu.byte_add(at) }.cast(), Relaxed);
        Ok(())
    }

    /// The content of the structure, with the data that QEMU keeps behind it.
    pub(crate) fn structure(&self) -> Vec<u8> {
        // SAFETY: QEMU allocates objects by malloc (GLib), or by posix_memalign. `CPUState` is their first member.
        let length = unsafe { libc::malloc_usable_size(self.cpu) }.min(STRUCTURE_MAX);
        let mut bytes = vec![0; length];
        // SAFETY: these are as many bytes as were allocated. The vCPU, which changes them, waits for this callback.
        // Other threads may set its flags meanwhile, which nobody looks for here.
        unsafe { self.cpu.cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), length) };
        bytes
    }

    /// The word of the structure that is `at` bytes from its beginning, a place in what [`Cpu::structure`] returns.
    pub(crate) fn word(&self, at: usize) -> *mut i32 {
        self.cpu.wrapping_byte_add(at).cast()
    }

    /// The value of a register. Call this in a callback that may read registers. The plugin interface gives the same
    /// value by several calls and a copy.
    pub fn register(&self, register: General) -> u64 {
        let registers = self.registers.load(Relaxed);
        debug_assert!(!registers.is_null());
        // SAFETY: this is the calling thread's vCPU. The place was found before the guest ran, and it is aligned.
        unsafe { registers.add(register as usize).read() }
    }

    /// Virtual time and completed instructions at the beginning of the instruction that is `left` instructions before
    /// the end of its block. The plugin is called at that instruction or after it. Call [`Cpu::check`] before this.
    ///
    /// QEMU counts all instructions of a block when the block begins. Until the block's last instruction the clock is
    /// therefore ahead, and QEMU refuses to read it. The caller knows the place in the block and may subtract. So the
    /// refusal is lifted for a moment.
    pub fn time(&self, left: u64) -> At {
        let flag = self.can_do_io.load(Relaxed);
        let (at, insns) = if flag.is_null() {
            // The flag is known from the first instruction on that is not the last of its block.
            (self.qemu.now(), self.qemu.insns())
        } else {
            // SAFETY: this is the calling thread's vCPU, which is in the callback. The byte is inside the structure
            // and, as far as its value can tell, a `bool` of QEMU.
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

    /// Checks that the flag is the one that it is taken for. The clock may be read at the last instruction of a block
    /// and at no other, so the flag has to equal `last`. Ends QEMU if it does not.
    #[inline]
    pub fn check(&self, last: bool) {
        let flag = self.can_do_io.load(Relaxed);
        if flag.is_null() {
            self.search(last);
            return;
        }
        // SAFETY: this byte is inside the structure.
        let is = unsafe { flag.read() };
        if is != u8::from(last) {
            self.refuse(&Check::ClockFlag.fails(format!("it is {is} where it has to be {last}")));
        }
    }

    #[cold]
    fn search(&self, last: bool) {
        // SAFETY: this is inside the structure, before the registers.
        let byte = |at| unsafe { self.cpu.byte_add(at).cast::<u8>().read() };
        let mut searched = self.searched.borrow_mut();
        let Some(flag) = searched.as_mut() else { return };
        match flag.narrow(last, byte) {
            // SAFETY: this is inside the structure, before the registers.
            Ok(Some(at)) => self.can_do_io.store(unsafe { self.cpu.byte_add(at) }.cast(), Relaxed),
            Ok(None) => {}
            Err(failed) => self.refuse(&failed),
        }
    }

    /// Ends QEMU, because it does not pass a check.
    #[cold]
    pub fn refuse(&self, failed: &Failed) -> ! {
        fail(&self.qemu.refusal(failed))
    }

    /// The guest's memory as this vCPU sees it.
    pub(crate) fn memory(&self, reads: Reads) -> Physical {
        Physical::new(reads, self.cpu)
    }
}
