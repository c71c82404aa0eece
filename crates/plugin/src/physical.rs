// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads the guest's memory by the machine's own addresses: where a page of the kernel's lies, and what is there.
//!
//! QEMU's plugin interface does both since its version 5. With versions before 5 it takes two of QEMU's own functions,
//! which later versions of QEMU lack.

use crate::checks::Failed;
use crate::instrument::Bytes;
use crate::interface::Interface;
use crate::symbols::symbols;
use crate::x86_64::{DEVICES_FROM, RAM_FROM};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;

symbols! {
    /// The interface's own functions, since version 5.
    struct Asked {
        qemu_plugin_translate_vaddr: fn(u64, *mut u64) -> bool;
        qemu_plugin_read_memory_hwaddr: fn(u64, *mut Bytes, usize) -> c_int;
        g_byte_array_new: fn() -> *mut Bytes;
    }
}

symbols! {
    /// QEMU's own functions, whose place the interface's functions took.
    struct Inside {
        cpu_get_phys_page_attrs_debug: fn(*mut c_void, u64, *mut [u64; 2]) -> u64;
        cpu_physical_memory_map: fn(u64, *mut u64, bool) -> *const u8;
    }
}

/// How it is read.
#[derive(Clone, Copy)]
enum Way {
    Asked(Asked),
    Inside(Inside),
}

/// Whose memory, and how it is read; without a vCPU yet.
#[derive(Clone, Copy)]
pub(crate) struct Reads(Way);

impl Reads {
    /// Looks up what it takes.
    ///
    /// # Errors
    /// A QEMU that lacks a part of it.
    pub(crate) fn resolve(interface: Interface) -> Result<Reads, Failed> {
        let way = match interface >= Interface::READS_MEMORY {
            true => Way::Asked(Asked::resolve()?),
            false => Way::Inside(Inside::resolve()?),
        };
        Ok(Reads(way))
    }
}

/// The memory as a vCPU sees it. Used on that vCPU's thread only, in callbacks.
pub struct Physical {
    way: Way,
    cpu: *mut c_void,
    /// What is read into by the interface, so that reading allocates nothing.
    buffer: *mut Bytes,
    /// Looked up when it is needed first: a vCPU is made before the machine has RAM.
    ram: OnceLock<Option<Ram>>,
}

/// The guest's RAM from its first MiB to the next hole, as the host has it.
#[derive(Clone, Copy)]
struct Ram {
    begin: *const u8,
    length: u64,
}

impl Physical {
    /// `cpu` is a `CPUState`.
    pub(crate) fn new(Reads(way): Reads, cpu: *mut c_void) -> Physical {
        let buffer = match way {
            // SAFETY: making an array has no precondition.
            Way::Asked(asked) => unsafe { (asked.g_byte_array_new)() },
            Way::Inside(_) => std::ptr::null_mut(),
        };
        Physical { way, cpu, buffer, ram: OnceLock::new() }
    }

    /// Where the page at `address`, a multiple of its size, lies now; `None` where there is none.
    pub fn page(&self, address: u64) -> Option<u64> {
        match self.way {
            Way::Asked(asked) => {
                let mut found = 0;
                // SAFETY: any address may be asked for, on a vCPU's thread.
                let is = unsafe { (asked.qemu_plugin_translate_vaddr)(address, &raw mut found) };
                is.then_some(found)
            }
            Way::Inside(inside) => {
                // Larger than MemTxAttrs.
                let mut attributes = [0; 2];
                // SAFETY: our own thread's vCPU, whose page tables are only read; QEMU's gdbstub does so without the
                // big lock, too.
                let found = unsafe {
                    (inside.cpu_get_phys_page_attrs_debug)(self.cpu, address, &raw mut attributes)
                };
                (found != u64::MAX).then_some(found)
            }
        }
    }

    /// Fills `bytes` with what is at this physical address; false where that is no RAM below the first device.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let end = address.checked_add(bytes.len() as u64);
        if address < RAM_FROM || end.is_none_or(|end| end > DEVICES_FROM) {
            return false;
        }
        match self.way {
            Way::Asked(asked) => self.ask(asked, address, bytes),
            Way::Inside(inside) => self
                .ram
                .get_or_init(|| Ram::map(inside))
                .is_some_and(|ram| ram.read(address, bytes)),
        }
    }

    fn ask(&self, asked: Asked, address: u64, bytes: &mut [u8]) -> bool {
        // SAFETY: any address may be asked for; the buffer is ours, and holds as much as was asked for if that went
        // well.
        unsafe {
            let result = (asked.qemu_plugin_read_memory_hwaddr)(address, self.buffer, bytes.len());
            let buffer = &*self.buffer;
            if result != 0 || buffer.len != bytes.len() as c_uint {
                return false;
            }
            buffer.data.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len());
        }
        true
    }
}

impl Ram {
    /// Every machine of the rig has some at its first MiB. `None` where QEMU does not give it.
    fn map(inside: Inside) -> Option<Ram> {
        let mut length = u64::MAX - RAM_FROM;
        // SAFETY: QEMU maps under a lock of its own (RCU), not the big one. It is never unmapped, so that it stays
        // where it is.
        let begin = unsafe { (inside.cpu_physical_memory_map)(RAM_FROM, &raw mut length, false) };
        (!begin.is_null()).then_some(Ram { begin, length })
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Some(from) = address.checked_sub(RAM_FROM) else { return false };
        if from.checked_add(bytes.len() as u64).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: inside of what QEMU mapped. The vCPU, which writes to it, waits for us, and no device of the rig does
        // so by itself.
        unsafe {
            self.begin.add(from as usize).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len())
        };
        true
    }
}
