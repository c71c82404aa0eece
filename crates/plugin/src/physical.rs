// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads the guest's memory by the machine's own addresses: the place of a page of the kernel, and the bytes there.
//!
//! QEMU's plugin interface does both since its version 5. For versions before 5 the plugin uses two of QEMU's own
//! functions, which later versions of QEMU lack.

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
    /// QEMU's own functions. The functions of the interface took their place.
    struct Inside {
        cpu_get_phys_page_attrs_debug: fn(*mut c_void, u64, *mut [u64; 2]) -> u64;
        cpu_physical_memory_map: fn(u64, *mut u64, bool) -> *const u8;
    }
}

/// The two ways to read memory.
#[derive(Clone, Copy)]
enum Way {
    Asked(Asked),
    Inside(Inside),
}

/// A way to read memory, without a vCPU yet.
#[derive(Clone, Copy)]
pub(crate) struct Reads(Way);

impl Reads {
    /// Looks up the functions that it needs.
    ///
    /// # Errors
    /// If QEMU lacks a part of them.
    pub(crate) fn resolve(interface: Interface) -> Result<Reads, Failed> {
        let way = match interface >= Interface::READS_MEMORY {
            true => Way::Asked(Asked::resolve()?),
            false => Way::Inside(Inside::resolve()?),
        };
        Ok(Reads(way))
    }
}

/// The memory as a vCPU sees it. Only that vCPU's thread uses this, in callbacks.
pub struct Physical {
    way: Way,
    cpu: *mut c_void,
    /// The buffer of the interface for the bytes that it reads. It keeps reading from allocating.
    buffer: *mut Bytes,
    /// Looked up at the first use, because a vCPU is made before the machine has RAM.
    ram: OnceLock<Option<Ram>>,
}

/// The guest's RAM from its first MiB to the next hole, at its place in the host's memory.
#[derive(Clone, Copy)]
struct Ram {
    begin: *const u8,
    length: u64,
}

impl Physical {
    /// The memory of a vCPU. `cpu` is a `CPUState`.
    pub(crate) fn new(Reads(way): Reads, cpu: *mut c_void) -> Physical {
        let buffer = match way {
            // SAFETY: making an array has no precondition.
            Way::Asked(asked) => unsafe { (asked.g_byte_array_new)() },
            Way::Inside(_) => std::ptr::null_mut(),
        };
        Physical { way, cpu, buffer, ram: OnceLock::new() }
    }

    /// The present place of the page at `address`, a multiple of a page's size. `None` if there is no such page.
    pub fn page(&self, address: u64) -> Option<u64> {
        match self.way {
            Way::Asked(asked) => {
                let mut found = 0;
                // SAFETY: a caller may ask for any address, on a vCPU's thread.
                let is = unsafe { (asked.qemu_plugin_translate_vaddr)(address, &raw mut found) };
                is.then_some(found)
            }
            Way::Inside(inside) => {
                // This is larger than MemTxAttrs.
                let mut attributes = [0; 2];
                // SAFETY: this is the vCPU of the calling thread, and its page tables are only read. QEMU's gdbstub
                // does so without the big lock, too.
                let found = unsafe {
                    (inside.cpu_get_phys_page_attrs_debug)(self.cpu, address, &raw mut attributes)
                };
                (found != u64::MAX).then_some(found)
            }
        }
    }

    /// Fills `bytes` from this physical address on. Returns false if there is no RAM below the first device.
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
        // SAFETY: a caller may ask for any address. The buffer is ours and, after a success, has the wanted
        // length.
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
    /// Maps the RAM at the first MiB, which every machine of the rig has. `None` if QEMU does not give it.
    fn map(inside: Inside) -> Option<Ram> {
        let mut length = u64::MAX - RAM_FROM;
        // SAFETY: QEMU maps under a lock of its own (RCU), not under the big one. Nobody ever unmaps this, so it stays
        // in its place.
        let begin = unsafe { (inside.cpu_physical_memory_map)(RAM_FROM, &raw mut length, false) };
        (!begin.is_null()).then_some(Ram { begin, length })
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Some(from) = address.checked_sub(RAM_FROM) else { return false };
        if from.checked_add(bytes.len() as u64).is_none_or(|end| end > self.length) {
            return false;
        }
        // SAFETY: this is inside the range that QEMU mapped. The vCPU, which writes to it, waits for this callback. No
        // device of the rig writes there by itself.
        unsafe {
            self.begin.add(from as usize).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len())
        };
        true
    }
}
