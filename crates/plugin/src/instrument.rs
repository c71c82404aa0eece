// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's plugin interface, as far as the plugin needs it: callbacks at chosen instructions, and the values of the
//! guest's registers and memory there. The shapes are those of QEMU 10.0's `include/qemu/qemu-plugin.h` (version 4 of
//! the interface), of 11.1's `include/plugins/qemu-plugin.h` (version 7), and of GLib's `garray.h`.

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
/// The number at which the countdown ends. It counts up, because the interface compares only with a constant.
const DUE: u64 = 1 << 30;
/// `QEMU_PLUGIN_MEM_W`: stores only.
const STORES: c_int = 2;
/// The only vCPU of the rig.
const VCPU: c_uint = 0;

/// A user of the interface. QEMU has one such user for each plugin.
pub trait Instruments {
    /// QEMU translates a block of code ([`Instrument::block`]).
    fn translates(block: *mut c_void);
    /// QEMU has made the vCPU.
    fn has_vcpu() {}
}

/// QEMU calls this when it translates a block. It passes the plugin's number and the block. Since version 7 it passes
/// the block and the data that was registered.
type OnTranslation = extern "C" fn(*mut c_void, *mut c_void);
/// QEMU calls this when it has made the vCPU. The plugin uses no argument.
type OnVcpu = extern "C" fn();
/// QEMU calls this before an instruction is executed, with the number that was given for the instruction.
pub type OnInstruction = extern "C" fn(c_uint, *mut c_void);

/// QEMU calls this after a store to the guest's memory, with the store, its address, and the number given for it.
pub type OnStore = extern "C" fn(c_uint, c_uint, u64, *mut c_void);

/// `qemu_plugin_mem_value`: a kind and the bytes. The plugin uses only the lower 8 bytes.
#[repr(C)]
struct Value {
    kind: c_int,
    low: u64,
    high: u64,
}

/// `GByteArray`. A `GArray` begins in the same way.
#[repr(C)]
pub(crate) struct Bytes {
    pub(crate) data: *mut u8,
    pub(crate) len: c_uint,
}

/// `qemu_plugin_u64`: the place of a counter in a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    score: *mut c_void,
    offset: usize,
}

/// `qemu_plugin_reg_descriptor`. Version 6 has more fields behind these.
#[repr(C)]
struct Descriptor {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

symbols! {
    /// The functions of the interface, resolved.
    struct Symbols {
        qemu_plugin_register_vcpu_init_cb: fn(u64, OnVcpu, *mut c_void);
        qemu_plugin_register_vcpu_tb_trans_cb: fn(u64, OnTranslation, *mut c_void);
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu: fn(*mut c_void, c_int, Entry, u64);
        qemu_plugin_register_vcpu_tb_exec_cond_cb: fn(*mut c_void, OnInstruction, c_int, c_int, Entry, u64,
            *mut c_void);
        qemu_plugin_register_vcpu_insn_exec_cb: fn(*mut c_void, OnInstruction, c_int, *mut c_void);
        qemu_plugin_register_vcpu_insn_exec_cond_cb: fn(*mut c_void, OnInstruction, c_int, c_int, Entry, u64,
            *mut c_void);
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu: fn(*mut c_void, c_int, Entry, u64);
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
    /// The buffer for the values of registers and memory. It keeps reading from allocating.
    buffer: *mut Bytes,
    counter: Entry,
    countdown: Entry,
    /// A flag that is not 0 while functions are reported.
    telling: Entry,
}

// SAFETY: only callbacks at instructions use `buffer`. The one vCPU thread makes them one after the other.
unsafe impl Send for Instrument {}
// SAFETY: as for `Send`.
unsafe impl Sync for Instrument {}

/// A block of code that QEMU is translating. It is valid only in that callback.
pub struct Block<'a> {
    instrument: &'a Instrument,
    block: *mut c_void,
}

/// Counters of instructions ([`Instruction::count`]).
#[derive(Clone, Copy)]
pub struct Counters(*mut c_void);

// SAFETY: QEMU's scoreboard behind the pointer lives for ever, and is reached only through QEMU's functions.
unsafe impl Send for Counters {}
// SAFETY: as for `Send`.
unsafe impl Sync for Counters {}

impl Counters {
    fn entry(self, index: usize) -> Entry {
        Entry { score: self.0, offset: index * size_of::<u64>() }
    }
}

/// A register of the guest.
#[derive(Clone, Copy)]
pub struct Register(*mut c_void);

// SAFETY: this is QEMU's number of the register in the guise of a pointer.
unsafe impl Send for Register {}

impl Instrument {
    /// Resolves the interface for the plugin that QEMU calls `id`. QEMU is installing the plugin at this time.
    ///
    /// # Errors
    /// If QEMU lacks a part of the interface.
    pub fn attach(id: u64, interface: Interface) -> Result<Instrument, Failed> {
        let symbols = Symbols::resolve()?;
        // SAFETY: making an array has no precondition, and a scoreboard may be made while QEMU installs the plugin.
        let (buffer, score) = unsafe {
            let three = (symbols.qemu_plugin_scoreboard_new)(3 * size_of::<u64>());
            ((symbols.g_byte_array_new)(), three)
        };
        let [counter, countdown, telling] =
            [0, 1, 2].map(|index| Entry { score, offset: index * size_of::<u64>() });
        Ok(Instrument { symbols, id, interface, buffer, counter, countdown, telling })
    }

    /// Lets QEMU call `T` for the vCPU, and for each block that it translates.
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
        // SAFETY: the code is static and takes no more arguments than QEMU passes. A QEMU that knows no third argument
        // does not look at it.
        unsafe {
            let nothing = std::ptr::null_mut();
            (self.symbols.qemu_plugin_register_vcpu_init_cb)(self.id, has_vcpu::<T>, nothing);
            (self.symbols.qemu_plugin_register_vcpu_tb_trans_cb)(self.id, translates, nothing);
        }
    }

    /// Makes `count` counters, which begin at 0. QEMU is installing the plugin at this time.
    pub fn counters(&self, count: usize) -> Counters {
        let bytes = count * size_of::<u64>();
        // SAFETY: a scoreboard may be made while QEMU installs the plugin.
        Counters(unsafe { (self.symbols.qemu_plugin_scoreboard_new)(bytes) })
    }

    /// The value of the counter `index`, which is below the number of counters that were made.
    pub fn value(&self, counters: Counters, index: usize) -> u64 {
        // SAFETY: the scoreboard lives for ever, and the caller promises that it has this counter.
        unsafe { (self.symbols.qemu_plugin_u64_get)(counters.entry(index), VCPU) }
    }

    /// Sets such a counter.
    pub fn set(&self, counters: Counters, index: usize, value: u64) {
        // SAFETY: as in `value`.
        unsafe { (self.symbols.qemu_plugin_u64_set)(counters.entry(index), VCPU, value) }
    }

    /// The block that QEMU gave to a translation callback.
    pub fn block(&self, block: *mut c_void) -> Block<'_> {
        Block { instrument: self, block }
    }

    /// The registers with these names (GDB's names). Call this when QEMU has made the vCPU.
    ///
    /// # Errors
    /// If the vCPU has no register of such a name.
    pub fn registers<const N: usize>(&self, names: [&CStr; N]) -> Result<[Register; N], Failed> {
        // SAFETY: this is the vCPU's thread. The call returns a GArray of descriptors with static names.
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
                // SAFETY: the index is inside the array, whose elements begin in this way.
                .map(|index| unsafe { &*known.data.add(index * size).cast::<Descriptor>() })
                // SAFETY: QEMU's names are NUL-terminated.
                .find(|d| unsafe { CStr::from_ptr(d.name) } == name);
            let missing = || Check::Interface.fails(format!("the vCPU has no register {name:?}"));
            *register = Register(descriptor.ok_or_else(missing)?.handle);
        }
        Ok(found)
    }

    /// The general registers, in the order of their numbers in instructions. Call this when QEMU has made the vCPU.
    ///
    /// # Errors
    /// The errors of [`Instrument::registers`].
    pub fn general(&self) -> Result<[Register; GENERAL], Failed> {
        self.registers(GENERAL_NAMES)
    }

    /// The value of a register of at most 8 bytes. Call this before an instruction, or while QEMU translates a block
    /// that is executed next.
    pub fn read(&self, register: Register) -> u64 {
        // SAFETY: the handle is from `registers`, and the buffer is our own.
        unsafe {
            (self.symbols.g_byte_array_set_size)(self.buffer, 0);
            (self.symbols.qemu_plugin_read_register)(register.0, self.buffer);
        }
        self.word(0).or_else(|| self.half()).unwrap_or(0)
    }

    /// `N` words of the guest's memory at `address`, if they can be read. Call this before an instruction.
    pub fn memory<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        // SAFETY: a caller may ask for any address.
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

    /// Fills `bytes` from the guest's memory at `address`. Returns false if the memory cannot be read. Call this before
    /// an instruction or after a store.
    pub fn fill(&self, address: u64, bytes: &mut [u8]) -> bool {
        // SAFETY: a caller may ask for any address. The buffer is ours and, after a success, has the wanted length.
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

    /// The lower 8 bytes of the stored value. Call this in the callback after the store.
    pub fn stored(&self, info: c_uint) -> u64 {
        // SAFETY: QEMU gave this number to the callback that is running.
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

    /// The content of the buffer, until the buffer is filled again.
    fn bytes(&self) -> &[u8] {
        // SAFETY: these are a GByteArray's bytes, and nobody else uses them meanwhile.
        unsafe {
            let array = &*self.buffer;
            std::slice::from_raw_parts(array.data, array.len as usize)
        }
    }

    /// Sets the countdown: when blocks with this many instructions have been executed, [`Block::when_due`] calls. A
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

    /// Lets [`Instruction::when_telling`] call from now on.
    pub fn tell(&self) {
        // SAFETY: the scoreboard lives for ever.
        unsafe { (self.symbols.qemu_plugin_u64_set)(self.telling, VCPU, 1) }
    }

    /// The sum of the instructions that the executed blocks added ([`Block::count`]).
    pub fn counted(&self) -> u64 {
        // SAFETY: the scoreboard lives for ever.
        unsafe { (self.symbols.qemu_plugin_u64_get)(self.counter, VCPU) }
    }
}

impl Block<'_> {
    /// The guest's address of the block's first instruction.
    pub fn address(&self) -> u64 {
        // SAFETY: this is the block of the callback that is running.
        unsafe { (self.instrument.symbols.qemu_plugin_tb_vaddr)(self.block) }
    }

    /// The number of instructions in the block.
    pub fn instructions(&self) -> usize {
        // SAFETY: this is the block of the callback that is running.
        unsafe { (self.instrument.symbols.qemu_plugin_tb_n_insns)(self.block) }
    }

    /// Instruction `index` of the block. `None` behind the last one.
    pub fn instruction(&self, index: usize) -> Option<Instruction<'_>> {
        (index < self.instructions()).then(|| Instruction {
            instrument: self.instrument,
            // SAFETY: the index is below the count.
            instruction: unsafe {
                (self.instrument.symbols.qemu_plugin_tb_get_insn)(self.block, index)
            },
        })
    }

    /// The block's last instruction. `None` for a block without instructions.
    pub fn last(&self) -> Option<Instruction<'_>> {
        self.instruction(self.instructions().checked_sub(1)?)
    }

    /// Adds the number of the block's instructions to [`Instrument::counted`] whenever the block begins.
    pub fn count(&self) {
        let symbols = &self.instrument.symbols;
        // SAFETY: this is the block of the callback that is running, and the counter lives for ever.
        unsafe {
            (symbols.qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu)(
                self.block,
                INLINE_ADD,
                self.instrument.counter,
                self.instructions() as u64,
            );
        }
    }

    /// Lets the block count as this many `instructions` for [`Instrument::due_in`]. Once the countdown has ended, QEMU
    /// calls `each` with `number` before each execution of the block, until the countdown is set again.
    pub fn when_due(&self, instructions: u64, each: OnInstruction, number: usize) {
        let Instrument { symbols, countdown, .. } = self.instrument;
        // SAFETY: this is the block of the callback that is running, and the counter lives for ever. Nobody takes
        // `number` for an address.
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

/// An instruction of a block that QEMU is translating.
pub struct Instruction<'a> {
    instrument: &'a Instrument,
    instruction: *mut c_void,
}

impl Instruction<'_> {
    /// The guest's address of the instruction.
    pub fn address(&self) -> u64 {
        // SAFETY: this is an instruction of the callback that is running.
        unsafe { (self.instrument.symbols.qemu_plugin_insn_vaddr)(self.instruction) }
    }

    /// The code of the instruction, in `bytes`.
    pub fn code<'b>(&self, bytes: &'b mut [u8; INSTRUCTION_BYTES_MAX]) -> &'b [u8] {
        // SAFETY: this is an instruction of the callback that is running. The call writes only as many bytes as fit.
        unsafe {
            let symbols = &self.instrument.symbols;
            let size = (symbols.qemu_plugin_insn_size)(self.instruction).min(bytes.len());
            (symbols.qemu_plugin_insn_data)(self.instruction, bytes.as_mut_ptr().cast(), size);
            &bytes[..size]
        }
    }

    /// Adds one to the counter `index` before each execution of the instruction. Whoever is called before the
    /// instruction later sees it counted.
    pub fn count(&self, counters: Counters, index: usize) {
        // SAFETY: this is an instruction of the callback that is running, and the counters live for ever. The caller
        // promises that there is a counter of this index.
        unsafe {
            (self.instrument.symbols.qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu)(
                self.instruction,
                INLINE_ADD,
                counters.entry(index),
                1,
            );
        }
    }

    /// Calls `each` with `number` after each store of the instruction.
    pub fn after_store(&self, each: OnStore, number: usize) {
        // SAFETY: this is an instruction of the callback that is running. Nobody takes `number` for an address.
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

    /// Calls `each` with `number` before each execution of the instruction, from [`Instrument::tell`] on. Until then
    /// each execution costs a comparison.
    pub fn when_telling(&self, each: OnInstruction, number: usize) {
        let Instrument { symbols, telling, .. } = self.instrument;
        // SAFETY: this is an instruction of the callback that is running, and the entry lives for ever. Nobody takes
        // `number` for an address.
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

    /// Calls `each` with `number` before each execution of the instruction.
    pub fn before(&self, each: OnInstruction, number: usize) {
        // SAFETY: this is an instruction of the callback that is running. Nobody takes `number` for an address.
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
