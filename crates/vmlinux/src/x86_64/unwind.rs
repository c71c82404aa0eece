// SPDX-License-Identifier: GPL-2.0-or-later
//! Follows a stack from outside, by the kernel's own tables (Documentation/arch/x86/orc-unwinder.rst).
//!
//! An entry means what it means to the kernel's unwinder, arch/x86/kernel/unwind_orc.c. This unwinder differs in one
//! thing: it knows no stacks with their limits. It follows the pointers where they lead, also from interrupt stacks to
//! task stacks. It gives up where memory cannot be read, where a stack would grow downwards, or where `frames` ends. It
//! does not put back return addresses that kretprobes and the function graph tracer replaced; a stack ends there as
//! [`StackEnd::Lost`].

use super::orc::{Base, Entry, Kind};
use super::{KERNEL, PAGE};
use crate::little_endian::u64_at;
use crate::{Map, Memory};

/// The registers of a stopped processor, as far as unwinding may need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the processor's")]
pub struct Regs {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub dx: u64,
    pub di: u64,
    pub r10: u64,
    pub r13: u64,
}

/// The reason why there are no further frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackEnd {
    /// User space was interrupted, or made the call.
    User,
    /// There is no caller: this is the first function of a kernel thread, the idle task, or entry code.
    End,
    /// There may be more frames, but there was no room for them.
    Truncated,
    /// The caller of the code at this address is not known: there is no code, the table does not say, or the memory was
    /// not readable.
    Lost {
        /// The address of that code.
        at: u64,
    },
}

/// The result of [`unwind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// The number of frames that were written.
    pub frames: usize,
    /// The reason why the frames end.
    pub ending: StackEnd,
    /// Bit n says that frame n is the next instruction to be executed there, and not the one behind a call. This is so
    /// if the instruction was interrupted, or if a new task begins with it. Only the first 64 frames have a bit.
    pub exact: u64,
}

/// Offsets in the `struct pt_regs` of x86-64 (arch/x86/include/asm/ptrace.h).
const R13: u64 = 2 * 8;
const BP: u64 = 4 * 8;
const R10: u64 = 7 * 8;
const DX: u64 = 12 * 8;
const DI: u64 = 14 * 8;
const IP: u64 = 16 * 8;
const CS: u64 = 17 * 8;
const SP: u64 = 19 * 8;

/// The number of bytes that are read at once. The frames of a system call have some 100 bytes each, so two or three
/// reads are enough for most stacks.
const WINDOW: usize = 512;

/// Follows a stack outwards. `frames[0]` becomes `regs.ip`. The return addresses and the interrupted addresses follow,
/// the innermost first. The function does not allocate.
pub fn unwind<B: AsRef<[u8]>>(
    map: &Map<B>,
    regs: &Regs,
    memory: &dyn Memory,
    frames: &mut [u64],
) -> Unwound {
    follow((&mut |ip| map.orc(ip), map.new_task()), regs, memory, frames)
}

/// A map for unwinding again and again. Stacks consist of the same few thousand addresses, so the unwinder remembers
/// their entries.
#[derive(Debug)]
pub struct Unwinder<B = Vec<u8>> {
    map: Map<B>,
    /// The remembered entries, by the lowest bits of their address.
    known: Box<[(u64, Option<Entry>)]>,
}

impl<B> Unwinder<B> {
    /// The map by which this unwinds.
    pub fn map(&self) -> &Map<B> {
        &self.map
    }
}

/// The number of entries that are remembered.
const KNOWN: usize = 1 << 11;

impl<B: AsRef<[u8]>> Unwinder<B> {
    /// An unwinder for this map.
    pub fn new(map: Map<B>) -> Unwinder<B> {
        // No code is at address 0.
        Unwinder { map, known: vec![(0, None); KNOWN].into() }
    }

    /// Does the same as the function [`unwind`].
    pub fn unwind(&mut self, regs: &Regs, memory: &dyn Memory, frames: &mut [u64]) -> Unwound {
        let Unwinder { map, known } = self;
        let mut orc = |ip: u64| {
            let place = &mut known[ip as usize % KNOWN];
            if place.0 != ip {
                *place = (ip, map.orc(ip));
            }
            place.1
        };
        follow((&mut orc, map.new_task()), regs, memory, frames)
    }
}

/// The function that finds the entry of an address, and the instruction with which a new task begins.
type Tables<'a> = (&'a mut dyn FnMut(u64) -> Option<Entry>, Option<u64>);

fn follow(mut tables: Tables, regs: &Regs, memory: &dyn Memory, frames: &mut [u64]) -> Unwound {
    let mut walk = Walk {
        ip: regs.ip,
        sp: regs.sp,
        bp: regs.bp,
        is_exact: true,
        regs: Known::Live(*regs),
        stack: Stack { memory, at: 0, length: 0, bytes: [0; WINDOW] },
    };
    let mut unwound = Unwound { frames: 0, ending: StackEnd::Truncated, exact: 0 };
    for frame in frames {
        *frame = walk.ip;
        if let (true, Ok(n)) = (walk.is_exact, u32::try_from(unwound.frames)) {
            unwound.exact |= 1u64.checked_shl(n).unwrap_or(0);
        }
        unwound.frames += 1;
        if let Err(ending) = walk.step(&mut tables) {
            unwound.ending = ending;
            break;
        }
    }
    unwound
}

#[cfg(all(test, feature = "image"))]
mod tests;

/// The registers beside those that are followed, as far as a frame knows them.
#[derive(Clone, Copy)]
enum Known {
    /// The registers of the processor.
    Live(Regs),
    /// The registers that are saved at this address.
    Saved(u64),
    Nothing,
}

/// A frame of the stack.
struct Walk<'a> {
    ip: u64,
    sp: u64,
    bp: u64,
    /// Whether `ip` is the next instruction, and not the one behind a call.
    is_exact: bool,
    regs: Known,
    stack: Stack<'a>,
}

impl Walk<'_> {
    /// Moves on to the caller.
    fn step(&mut self, (orc, new_task): &mut Tables) -> Result<(), StackEnd> {
        if self.ip < KERNEL {
            return Err(StackEnd::User);
        }
        let lost = StackEnd::Lost { at: self.ip };
        // The instruction behind a call may belong to other code, which has another stack.
        let ip = if self.is_exact { self.ip } else { self.ip - 1 };
        let entry = orc(ip).ok_or(lost)?;
        match entry.kind {
            Kind::Undefined => return Err(lost),
            Kind::End => return Err(StackEnd::End),
            Kind::Call | Kind::Regs | Kind::RegsPartial => {}
        }
        let before = self.sp;
        let frame = self.frame(&entry).ok_or(lost)?;
        let is_user = self.leave(&entry, frame).ok_or(lost)?;
        if is_user {
            return Err(StackEnd::User);
        }
        self.bp = self.caller_bp(&entry, frame).ok_or(lost)?;
        // The kernel switches to a new task by a return address that no call left behind.
        self.is_exact = entry.is_signal || Some(self.ip) == *new_task;
        // A step downwards by less than a page leads to no other stack: below each stack is a page that is not mapped.
        let is_downwards = self.sp <= before && before - self.sp < PAGE;
        if is_downwards { Err(lost) } else { Ok(()) }
    }

    /// The beginning of the caller's frame.
    fn frame(&mut self, entry: &Entry) -> Option<u64> {
        let offset = i64::from(entry.sp_offset);
        let moved = |base: u64| base.wrapping_add_signed(offset);
        Some(match entry.sp {
            Base::Sp => moved(self.sp),
            Base::Bp => moved(self.bp),
            // The first adds the offset to the word that it finds, the second to the address of the word that it reads.
            Base::SpIndirect => moved(self.stack.word(self.sp)?),
            Base::BpIndirect => self.stack.word(moved(self.bp))?,
            // These take no offset, whatever the entry has.
            Base::R10 => self.register(R10, |regs| regs.r10)?,
            Base::R13 => self.register(R13, |regs| regs.r13)?,
            Base::Di => self.register(DI, |regs| regs.di)?,
            Base::Dx => self.register(DX, |regs| regs.dx)?,
            Base::Undefined | Base::PreviousSp => return None,
        })
    }

    /// Takes over the caller's address, stack and saved registers. Returns whether the caller is user space.
    fn leave(&mut self, entry: &Entry, frame: u64) -> Option<bool> {
        if entry.kind == Kind::Call {
            self.ip = self.stack.word(frame.wrapping_sub(8))?;
            self.sp = frame;
            self.regs = Known::Nothing;
            return Some(false);
        }
        let regs = if entry.kind == Kind::Regs { frame } else { frame.wrapping_sub(IP) };
        let mut saved = |offset: u64| self.stack.word(regs.wrapping_add(offset));
        (self.ip, self.sp) = (saved(IP)?, saved(SP)?);
        // The lowest bits of the code segment are the level of privilege.
        let is_user = saved(CS)? & 3 != 0;
        if entry.kind == Kind::Regs {
            self.regs = Known::Saved(regs);
        }
        Some(is_user)
    }

    /// The frame pointer of the caller.
    fn caller_bp(&mut self, entry: &Entry, frame: u64) -> Option<u64> {
        let offset = i64::from(entry.bp_offset);
        match entry.bp {
            Base::PreviousSp => self.stack.word(frame.wrapping_add_signed(offset)),
            Base::Bp => self.stack.word(self.bp.wrapping_add_signed(offset)),
            Base::Undefined => match self.regs {
                Known::Saved(regs) => self.stack.word(regs.wrapping_add(BP)),
                Known::Live(_) | Known::Nothing => Some(self.bp),
            },
            _ => None,
        }
    }

    fn register(&mut self, offset: u64, live: impl Fn(&Regs) -> u64) -> Option<u64> {
        match &self.regs {
            Known::Live(regs) => Some(live(regs)),
            Known::Saved(at) => self.stack.word(at.wrapping_add(offset)),
            Known::Nothing => None,
        }
    }
}

/// The memory of a stack. It is read in pieces.
struct Stack<'a> {
    memory: &'a dyn Memory,
    at: u64,
    length: usize,
    bytes: [u8; WINDOW],
}

impl Stack<'_> {
    /// The eight bytes at `address`.
    fn word(&mut self, address: u64) -> Option<u64> {
        let inside = |at: u64, length: usize| {
            let offset = usize::try_from(address.checked_sub(at)?).ok()?;
            (offset.checked_add(8)? <= length).then_some(offset)
        };
        if let Some(offset) = inside(self.at, self.length) {
            return u64_at(&self.bytes, offset);
        }
        // A read goes only up to the end of the page, because the next page may not be mapped.
        let room = (PAGE - address % PAGE).clamp(8, WINDOW as u64) as usize;
        self.length = 0;
        if !self.memory.read(address, &mut self.bytes[..room]) {
            return None;
        }
        (self.at, self.length) = (address, room);
        u64_at(&self.bytes, 0)
    }
}
