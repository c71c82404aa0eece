// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's plugin interface, as far as it is needed: callbacks at chosen instructions, and what the guest's registers
//! and memory hold there. The shapes are those of QEMU 10.0's `include/qemu/qemu-plugin.h` (version 4 of the
//! interface), of 11.1's `include/plugins/qemu-plugin.h` (version 7), and of GLib's `garray.h`.

use crate::checks::{Check, Failed};
use crate::interface::Interface;
use crate::symbols::symbols;
use crate::x86_64::{GENERAL, GENERAL_NAMES, INSTRUCTION_BYTES_MAX};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `QEMU_PLUGIN_CB_R_REGS`: the callback reads registers.
const READS_REGISTERS: c_int = 1;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const INLINE_ADD: c_int = 0;
/// `QEMU_PLUGIN_COND_GE`, without signs.
const AT_LEAST: c_int = 7;
/// The countdown ends at this number. It counts up, because the interface compares with a constant only.
const DUE: u64 = 1 << 30;
/// `QEMU_PLUGIN_MEM_W`: stores only.
const STORES: c_int = 2;
/// The only vCPU of the rig.
const VCPU: c_uint = 0;

/// Whoever instruments the guest's code. QEMU has one for a plugin.
pub trait Instruments {
    /// A block of code is translated ([`Instrument::block`]).
    fn translates(block: *mut c_void);
    /// The vCPU has been made.
    fn has_vcpu() {}
}

/// QEMU calls this when it translates a block. It passes our number and the block; since version 7 it passes the block
/// and what was registered.
type OnTranslation = extern "C" fn(*mut c_void, *mut c_void);
/// QEMU calls this when it has made the vCPU. No argument is used.
type OnVcpu = extern "C" fn();
/// Called before an instruction is executed, with the number that was given for it.
pub type OnInstruction = extern "C" fn(c_uint, *mut c_void);

/// Called after an instruction stored to the guest's memory: what, where, and the number that was given for it.
pub type OnStore = extern "C" fn(c_uint, c_uint, u64, *mut c_void);

/// `qemu_plugin_mem_value`: a kind and the bytes, of which the lower 8 are looked at.
#[repr(C)]
struct Value {
    kind: c_int,
    low: u64,
    high: u64,
}

/// `GByteArray`; a `GArray` begins alike.
#[repr(C)]
pub(crate) struct Bytes {
    pub(crate) data: *mut u8,
    pub(crate) len: c_uint,
}

/// `qemu_plugin_u64`: where in a scoreboard a counter is.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    score: *mut c_void,
    offset: usize,
}

/// `qemu_plugin_reg_descriptor`; version 6 has more behind it.
#[repr(C)]
struct Descriptor {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

symbols! {
    /// The functions, resolved.
    struct Symbols {
        qemu_plugin_register_vcpu_init_cb: fn(u64, OnVcpu, *mut c_void);
        qemu_plugin_register_vcpu_tb_trans_cb: fn(u64, OnTranslation, *mut c_void);
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu: fn(*mut c_void, c_int, Entry, u64);
        qemu_plugin_register_vcpu_tb_exec_cond_cb: fn(*mut c_void, OnInstruction, c_int, c_int, Entry, u64,
            *mut c_void);
        qemu_plugin_register_vcpu_insn_exec_cb: fn(*mut c_void, OnInstruction, c_int, *mut c_void);
        qemu_plugin_register_vcpu_insn_exec_cond_cb: fn(*mut c_void, OnInstruction, c_int, c_int, Entry, u64,
            *mut c_void);
        qemu_plugin_tb_n_insns: fn(*const c_void) -> usize;
        qemu_plugin_tb_vaddr: fn(*const c_void) -> u64;
        qemu_plugin_tb_get_insn: fn(*const c_void, usize) -> *mut c_void;
        qemu_plugin_insn_data: fn(*const c_void, *mut c_void, usize) -> usize;
        qemu_plugin_insn_size: fn(*const c_void) -> usize;
        qemu_plugin_insn_vaddr: fn(*const c_void) -> u64;
        qemu_plugin_register_vcpu_mem_cb: fn(*mut c_void, OnStore, c_int, c_int, *mut c_void);
        qemu_plugin_mem_get_value: fn(c_uint) -> Value;
        qemu_plugin_get_registers: fn() -> *mut Bytes;
        qemu_plugin_read_register: fn(*mut c_void, *mut Bytes) -> c_int;
        qemu_plugin_read_memory_vaddr: fn(u64, *mut Bytes, usize) -> bool;
        qemu_plugin_scoreboard_new: fn(usize) -> *mut c_void;
        qemu_plugin_u64_get: fn(Entry, c_uint) -> u64;
        qemu_plugin_u64_set: fn(Entry, c_uint, u64);
        g_array_get_element_size: fn(*mut Bytes) -> c_uint;
        g_byte_array_new: fn() -> *mut Bytes;
        g_byte_array_set_size: fn(*mut Bytes, c_uint) -> *mut Bytes;
    }
}

/// The interface, for one plugin.
pub struct Instrument {
    symbols: Symbols,
    id: u64,
    interface: Interface,
    /// What registers and memory are read into, so that reading allocates nothing.
    buffer: *mut Bytes,
    counter: Entry,
    countdown: Entry,
    /// Not 0 while functions are told.
    telling: Entry,
}

// SAFETY: `buffer` is used only in callbacks at instructions, which the one vCPU thread makes one after the other.
unsafe impl Send for Instrument {}
// SAFETY: as above.
unsafe impl Sync for Instrument {}

/// A block of code that is being translated; valid in that callback.
pub struct Block<'a> {
    instrument: &'a Instrument,
    block: *mut c_void,
}

/// A register of the guest.
#[derive(Clone, Copy)]
pub struct Register(*mut c_void);

// SAFETY: QEMU's number of the register in the guise of a pointer.
unsafe impl Send for Register {}

impl Instrument {
    /// Resolves the interface for the plugin that QEMU calls `id`; called while it is being installed.
    ///
    /// # Errors
    /// A QEMU that lacks a part of it.
    pub fn attach(id: u64, interface: Interface) -> Result<Instrument, Failed> {
        let symbols = Symbols::resolve()?;
        // SAFETY: making an array has no precondition, and a scoreboard may be made while installing.
        let (buffer, score) = unsafe {
            let three = (symbols.qemu_plugin_scoreboard_new)(3 * size_of::<u64>());
            ((symbols.g_byte_array_new)(), three)
        };
        let [counter, countdown, telling] =
            [0, 1, 2].map(|index| Entry { score, offset: index * size_of::<u64>() });
        Ok(Instrument { symbols, id, interface, buffer, counter, countdown, telling })
    }

    /// Calls `T` for the vCPU, and for each block that is translated.
    pub fn on<T: Instruments>(&self) {
        extern "C" fn has_vcpu<T: Instruments>() {
            T::has_vcpu();
        }
        extern "C" fn with_id<T: Instruments>(_id: *mut c_void, block: *mut c_void) {
            T::translates(block);
        }
        extern "C" fn with_data<T: Instruments>(block: *mut c_void, _data: *mut c_void) {
            T::translates(block);
        }
        let translates = match self.interface >= Interface::HANDS_ON {
            true => with_data::<T>,
            false => with_id::<T>,
        };
        // SAFETY: static code, which takes no more than QEMU passes; a QEMU that knows no third argument does not look
        // at it.
        unsafe {
            let nothing = std::ptr::null_mut();
            (self.symbols.qemu_plugin_register_vcpu_init_cb)(self.id, has_vcpu::<T>, nothing);
            (self.symbols.qemu_plugin_register_vcpu_tb_trans_cb)(self.id, translates, nothing);
        }
    }

    /// The block that a translation callback was given.
    pub fn block(&self, block: *mut c_void) -> Block<'_> {
        Block { instrument: self, block }
    }

    /// The registers of these names (those of GDB); called when the vCPU has been made.
    ///
    /// # Errors
    /// A vCPU that has none of such a name.
    pub fn registers<const N: usize>(&self, names: [&CStr; N]) -> Result<[Register; N], Failed> {
        // SAFETY: called on the vCPU's thread; returns a GArray of descriptors with static names.
        let (known, size) = unsafe {
            let array = (self.symbols.qemu_plugin_get_registers)();
            (&*array, (self.symbols.g_array_get_element_size)(array) as usize)
        };
        Check::Interface.passes(size >= size_of::<Descriptor>(), || {
            format!("what it tells of a register has {size} bytes")
        })?;
        let mut found = [Register(std::ptr::null_mut()); N];
        for (register, name) in found.iter_mut().zip(names) {
            let descriptor = (0..known.len as usize)
                // SAFETY: inside of the array, whose elements begin so.
                .map(|index| unsafe { &*known.data.add(index * size).cast::<Descriptor>() })
                // SAFETY: QEMU's names are NUL-terminated.
                .find(|d| unsafe { CStr::from_ptr(d.name) } == name);
            let missing = || Check::Interface.fails(format!("the vCPU has no register {name:?}"));
            *register = Register(descriptor.ok_or_else(missing)?.handle);
        }
        Ok(found)
    }

    /// The general registers, in the order of their numbers in instructions; called when the vCPU has been made.
    ///
    /// # Errors
    /// As [`Instrument::registers`].
    pub fn general(&self) -> Result<[Register; GENERAL], Failed> {
        self.registers(GENERAL_NAMES)
    }

    /// What a register holds, of at most 8 bytes; called before an instruction, or while a block is translated that is
    /// executed next.
    pub fn read(&self, register: Register) -> u64 {
        // SAFETY: a handle from `registers`, and our own buffer.
        unsafe {
            (self.symbols.g_byte_array_set_size)(self.buffer, 0);
            (self.symbols.qemu_plugin_read_register)(register.0, self.buffer);
        }
        self.word(0).or_else(|| self.half()).unwrap_or(0)
    }

    /// `N` words of the guest's memory at `address`, where they can be read; called before an instruction.
    pub fn memory<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        // SAFETY: any address may be asked for.
        let read = unsafe {
            (self.symbols.qemu_plugin_read_memory_vaddr)(address, self.buffer, N * size_of::<u64>())
        };
        if !read {
            return None;
        }
        let mut words = [0; N];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(i)?;
        }
        Some(words)
    }

    /// Fills `bytes` from the guest's memory at `address`; false where it cannot be read. Called before an instruction
    /// or after a store.
    pub fn fill(&self, address: u64, bytes: &mut [u8]) -> bool {
        // SAFETY: any address may be asked for; the buffer is ours, and holds as much as was asked for then.
        unsafe {
            (self.symbols.qemu_plugin_read_memory_vaddr)(address, self.buffer, bytes.len()) && {
                let array = &*self.buffer;
                let got = std::slice::from_raw_parts(array.data, array.len as usize);
                got.len() == bytes.len() && {
                    bytes.copy_from_slice(got);
                    true
                }
            }
        }
    }

    /// What was stored, in the callback after it: its lower 8 bytes.
    pub fn stored(&self, info: c_uint) -> u64 {
        // SAFETY: the number that QEMU gave to the callback we are in.
        unsafe { (self.symbols.qemu_plugin_mem_get_value)(info) }.low
    }

    /// Word `i` of the buffer.
    fn word(&self, i: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes().get(8 * i..)?.first_chunk()?))
    }

    /// The lower half of a word. Flags and selectors have no more.
    fn half(&self) -> Option<u64> {
        Some(u32::from_le_bytes(*self.bytes().first_chunk()?).into())
    }

    /// What is in the buffer, until it is filled again.
    fn bytes(&self) -> &[u8] {
        // SAFETY: a GByteArray's bytes, which nobody else uses meanwhile.
        unsafe {
            let array = &*self.buffer;
            std::slice::from_raw_parts(array.data, array.len as usize)
        }
    }

    /// Sets the countdown: from now on, [`Block::when_due`] calls when blocks of so many instructions were executed. A
    /// number above 2³⁰ counts as 2³⁰.
    pub fn due_in(&self, instructions: u64) {
        // SAFETY: the scoreboard lives for ever.
        unsafe {
            (self.symbols.qemu_plugin_u64_set)(
                self.countdown,
                VCPU,
                DUE.saturating_sub(instructions),
            );
        }
    }

    /// From now on, [`Instruction::when_telling`] calls.
    pub fn tell(&self) {
        // SAFETY: the scoreboard lives for ever.
        unsafe { (self.symbols.qemu_plugin_u64_set)(self.telling, VCPU, 1) }
    }

    /// The sum of what the executed blocks added ([`Block::count`]).
    pub fn counted(&self) -> u64 {
        // SAFETY: the scoreboard lives for ever.
        unsafe { (self.symbols.qemu_plugin_u64_get)(self.counter, VCPU) }
    }
}

impl Block<'_> {
    /// The guest's address of its first instruction.
    pub fn address(&self) -> u64 {
        // SAFETY: the block of the callback we are in.
        unsafe { (self.instrument.symbols.qemu_plugin_tb_vaddr)(self.block) }
    }

    /// How many instructions it has.
    pub fn instructions(&self) -> usize {
        // SAFETY: the block of the callback we are in.
        unsafe { (self.instrument.symbols.qemu_plugin_tb_n_insns)(self.block) }
    }

    /// Instruction `index`; `None` behind the last.
    pub fn instruction(&self, index: usize) -> Option<Instruction<'_>> {
        (index < self.instructions()).then(|| Instruction {
            instrument: self.instrument,
            // SAFETY: an index below the count.
            instruction: unsafe {
                (self.instrument.symbols.qemu_plugin_tb_get_insn)(self.block, index)
            },
        })
    }

    /// The last instruction; `None` for a block without instructions.
    pub fn last(&self) -> Option<Instruction<'_>> {
        self.instruction(self.instructions().checked_sub(1)?)
    }

    /// Adds the number of its instructions to [`Instrument::counted`] whenever it is begun.
    pub fn count(&self) {
        let symbols = &self.instrument.symbols;
        // SAFETY: the block of the callback we are in, and a counter that lives for ever.
        unsafe {
            (symbols.qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu)(
                self.block,
                INLINE_ADD,
                self.instrument.counter,
                self.instructions() as u64,
            );
        }
    }

    /// The block counts as so many `instructions` for [`Instrument::due_in`]. Once that countdown has ended, QEMU calls
    /// `each` with `number` before each execution of the block, until the countdown is set again.
    pub fn when_due(&self, instructions: u64, each: OnInstruction, number: usize) {
        let Instrument { symbols, countdown, .. } = self.instrument;
        // SAFETY: the block of the callback we are in, and a counter that lives for ever; `number` is no address to
        // anybody.
        unsafe {
            (symbols.qemu_plugin_register_vcpu_tb_exec_cond_cb)(
                self.block,
                each,
                READS_REGISTERS,
                AT_LEAST,
                *countdown,
                DUE,
                number as *mut c_void,
            );
            (symbols.qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu)(
                self.block,
                INLINE_ADD,
                *countdown,
                instructions,
            );
        }
    }
}

/// An instruction of a block that is being translated.
pub struct Instruction<'a> {
    instrument: &'a Instrument,
    instruction: *mut c_void,
}

impl Instruction<'_> {
    /// The guest's address of it.
    pub fn address(&self) -> u64 {
        // SAFETY: an instruction of the callback we are in.
        unsafe { (self.instrument.symbols.qemu_plugin_insn_vaddr)(self.instruction) }
    }

    /// Its code, in `bytes`.
    pub fn code<'b>(&self, bytes: &'b mut [u8; INSTRUCTION_BYTES_MAX]) -> &'b [u8] {
        // SAFETY: an instruction of the callback we are in; as many bytes as there are.
        unsafe {
            let symbols = &self.instrument.symbols;
            let size = (symbols.qemu_plugin_insn_size)(self.instruction).min(bytes.len());
            (symbols.qemu_plugin_insn_data)(self.instruction, bytes.as_mut_ptr().cast(), size);
            &bytes[..size]
        }
    }

    /// Calls `each` with `number` after each store of the instruction.
    pub fn after_store(&self, each: OnStore, number: usize) {
        // SAFETY: an instruction of the callback we are in; `number` is no address to anybody.
        unsafe {
            (self.instrument.symbols.qemu_plugin_register_vcpu_mem_cb)(
                self.instruction,
                each,
                READS_REGISTERS,
                STORES,
                number as *mut c_void,
            );
        }
    }

    /// Calls `each` with `number` before the instruction is executed, from [`Instrument::tell`] on. Until then each
    /// execution costs a comparison.
    pub fn when_telling(&self, each: OnInstruction, number: usize) {
        let Instrument { symbols, telling, .. } = self.instrument;
        // SAFETY: an instruction of the callback we are in, and an entry that lives for ever; `number` is no address to
        // anybody.
        unsafe {
            (symbols.qemu_plugin_register_vcpu_insn_exec_cond_cb)(
                self.instruction,
                each,
                READS_REGISTERS,
                AT_LEAST,
                *telling,
                1,
                number as *mut c_void,
            );
        }
    }

    /// Calls `each` with `number` before the instruction is executed.
    pub fn before(&self, each: OnInstruction, number: usize) {
        // SAFETY: an instruction of the callback we are in; `number` is no address to anybody.
        unsafe {
            (self.instrument.symbols.qemu_plugin_register_vcpu_insn_exec_cb)(
                self.instruction,
                each,
                READS_REGISTERS,
                number as *mut c_void,
            );
        }
    }
}
