// SPDX-License-Identifier: GPL-2.0-or-later
//! Call stacks, each with a number. If a stretch begins that is not over at once, its stack is captured cheaply. The
//! stack is unwound only if the stretch turns out to be worth it.

use crate::x86_64::{CODE, KERNEL, STACK_BYTES};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use vmlinux::{Map, Memory, Regs, Unwinder};
use wire::StackId;

/// The number of bytes of a stack that are copied: those of some ten calls. The part further out is read when the stack
/// is unwound. While the stretch lasts, only its own callers can change that part.
const COPIED: usize = 768;
/// The deepest stack that is reported. Frames further out are cut off.
const FRAMES_MAX: usize = 48;

/// The state of a moment, as far as unwinding needs it.
pub struct Capture {
    registers: Regs,
    copied: [u8; COPIED],
    length: usize,
}

impl Default for Capture {
    fn default() -> Capture {
        Capture { registers: Regs::default(), copied: [0; COPIED], length: 0 }
    }
}

impl Capture {
    /// Captures without the stack. The capture keeps only the instruction, and only this is reported.
    pub fn set_bare(&mut self, ip: u64) {
        self.registers = Regs { ip, ..Regs::default() };
        self.length = 0;
    }

    /// The address of the instruction.
    #[cfg(test)]
    pub fn ip(&self) -> u64 {
        self.registers.ip
    }

    /// Captures with the innermost part of the stack at `sp`, which `fill` copies.
    pub fn set(&mut self, ip: u64, sp: u64, bp: u64, fill: impl FnOnce(u64, &mut [u8]) -> bool) {
        self.registers = Regs { ip, sp, bp, ..Regs::default() };
        // The copy ends at the end of the stack, which is aligned to its size.
        let to_end = STACK_BYTES - sp % STACK_BYTES;
        // At the entry of a call, and at its end, the stack is the user's. Nobody unwinds from there.
        let length = if sp < KERNEL { 0 } else { COPIED.min(to_end as usize) };
        self.length = if fill(sp, &mut self.copied[..length]) { length } else { 0 };
    }

    /// A number that stands for the instruction and its innermost callers. The function unwinds nothing: it takes the
    /// first words of the stack that look like addresses of code for the callers.
    pub fn key(&self) -> u64 {
        const WORDS: usize = 24;
        const CALLERS: usize = 3;
        let (words, _) = self.copied[..self.length].as_chunks::<8>();
        let words = words.iter().take(WORDS).map(|word| u64::from_le_bytes(*word));
        let callers = words.filter(|word| CODE.contains(word)).take(CALLERS);
        // This is FNV-1a, word by word.
        std::iter::once(self.registers.ip)
            .chain(callers)
            .fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
    }
}

/// A stack. The copied part is as it was when it was captured; the part beyond is as it is now.
struct Then<'a, F>(&'a Capture, F);

impl<F: Fn(u64, &mut [u8]) -> bool> Memory for Then<'_, F> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Then(capture, fill) = self;
        let copied = &capture.copied[..capture.length];
        let inside = address
            .checked_sub(capture.registers.sp)
            .and_then(|from| copied.get(usize::try_from(from).ok()?..)?.get(..bytes.len()));
        match inside {
            Some(inside) => bytes.copy_from_slice(inside),
            None => return fill(address, bytes),
        }
        true
    }
}

/// All stacks that were seen, with their numbers.
pub struct Stacks {
    unwinder: Option<Unwinder>,
    known: FxHashMap<Box<[u64]>, StackId>,
}

impl Stacks {
    /// Stacks by the map of the guest's kernel. Without a map, a stack is only its innermost address.
    ///
    /// # Errors
    /// If the file cannot be read, or is no map.
    pub fn new(map: Option<&Path>) -> Result<Stacks, String> {
        let read = |path: &Path| {
            let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
            Map::from_bytes(bytes).map_err(|e| e.to_string())
        };
        let map = map.map(|path| read(path).map_err(|e| format!("{}: {e}", path.display())));
        let unwinder = map.transpose()?.map(Unwinder::new);
        Ok(Stacks { unwinder, known: FxHashMap::default() })
    }

    /// The addresses at which the kernel's functions begin. Empty without a map.
    pub fn functions(&self) -> FxHashSet<u64> {
        let map = self.unwinder.as_ref().map(Unwinder::map);
        map.into_iter().flat_map(Map::symbols).map(|(_, address, _)| address).collect()
    }

    /// The number of a stack. A stack that is seen for the first time is reported by frames: number, index, address.
    pub fn number(
        &mut self,
        capture: &Capture,
        fill: impl Fn(u64, &mut [u8]) -> bool,
        mut tell: impl FnMut(StackId, u8, u64),
    ) -> StackId {
        let mut frames = [0; FRAMES_MAX];
        let frames = match &mut self.unwinder {
            Some(unwinder) => {
                let memory = Then(capture, fill);
                let unwound = unwinder.unwind(&capture.registers, &memory, &mut frames);
                &frames[..unwound.frames]
            }
            None => &[capture.registers.ip],
        };
        if let Some(number) = self.known.get(frames) {
            return *number;
        }
        let number = StackId(self.known.len() as u32 + 1);
        self.known.insert(frames.into(), number);
        for (index, frame) in frames.iter().enumerate() {
            tell(number, index as u8, *frame);
        }
        number
    }
}
