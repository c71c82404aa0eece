// SPDX-License-Identifier: GPL-2.0-or-later
//! Call stacks: captured cheaply where a stretch begins that is not over at once, unwound only when it turns out to be worth it,
//! and numbered.

use super::KERNEL;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use vmlinux::{Map, Memory, Regs, Unwinder};

/// As much of a stack as is copied: that of some ten calls. What lies further out is read when it is unwound; it cannot
/// have changed while the stretch lasted but by its own callers.
const COPIED: usize = 768;
/// Kernel stacks are aligned to their size (THREAD_SIZE, 16 KiB; arch/x86/include/asm/page_64_types.h), so nothing is
/// read behind the end of one.
const STACK_BYTES: u64 = 16 << 10;
/// The deepest stack that is told; frames further out are cut off.
const FRAMES_MAX: usize = 48;

/// What unwinding needs of a moment.
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
    /// Without the stack: only the instruction, which is all that is then told.
    pub fn set_bare(&mut self, ip: u64) {
        self.registers = Regs { ip, ..Regs::default() };
        self.length = 0;
    }

    /// The instruction.
    #[cfg(test)]
    pub fn ip(&self) -> u64 {
        self.registers.ip
    }

    /// With the innermost part of the stack at `sp`, which `fill` copies.
    pub fn set(&mut self, ip: u64, sp: u64, bp: u64, fill: impl FnOnce(u64, &mut [u8]) -> bool) {
        self.registers = Regs { ip, sp, bp, ..Regs::default() };
        let to_end = STACK_BYTES - sp % STACK_BYTES;
        // At the entry of a call, and at its end, the stack is the user's, and nobody unwinds from there.
        let length = if sp < KERNEL { 0 } else { COPIED.min(to_end as usize) };
        self.length = if fill(sp, &mut self.copied[..length]) { length } else { 0 };
    }

    /// Stands for the instruction and its innermost callers, without unwinding: the first words of the stack that look like
    /// addresses of code.
    pub fn key(&self) -> u64 {
        /// Kernel and modules (Documentation/arch/x86/x86_64/mm.rst).
        const CODE: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_ff00_0000;
        const WORDS: usize = 24;
        const CALLERS: usize = 3;
        let (words, _) = self.copied[..self.length].as_chunks::<8>();
        let words = words.iter().take(WORDS).map(|word| u64::from_le_bytes(*word));
        let callers = words.filter(|word| CODE.contains(word)).take(CALLERS);
        // FNV-1a, word by word.
        std::iter::once(self.registers.ip)
            .chain(callers)
            .fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
    }
}

/// The memory of then, as far as it was copied, and of now beyond that.
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

/// All stacks that were seen.
pub struct Stacks {
    unwinder: Option<Unwinder>,
    known: FxHashMap<Box<[u64]>, u32>,
}

impl Stacks {
    /// With the map of the guest's kernel, if there is one; else a stack is its innermost address.
    ///
    /// # Errors
    /// A file that cannot be read, or is no map.
    pub fn new(map: Option<&Path>) -> Result<Stacks, String> {
        let read = |path: &Path| {
            let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
            Map::from_bytes(bytes).map_err(|e| e.to_string())
        };
        let map = map.map(|path| read(path).map_err(|e| format!("{}: {e}", path.display())));
        let unwinder = map.transpose()?.map(Unwinder::new);
        Ok(Stacks { unwinder, known: FxHashMap::default() })
    }

    /// Where the kernel's functions begin; none without its map.
    pub fn functions(&self) -> FxHashSet<u64> {
        let map = self.unwinder.as_ref().map(Unwinder::map);
        map.into_iter().flat_map(Map::symbols).map(|(_, address, _)| address).collect()
    }

    /// The number of a stack; one that is seen for the first time is told, frame by frame: number, index, address.
    pub fn number(
        &mut self,
        capture: &Capture,
        fill: impl Fn(u64, &mut [u8]) -> bool,
        mut tell: impl FnMut(u32, u8, u64),
    ) -> u32 {
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
        let number = self.known.len() as u32 + 1;
        self.known.insert(frames.into(), number);
        for (index, frame) in frames.iter().enumerate() {
            tell(number, index as u8, *frame);
        }
        number
    }
}
