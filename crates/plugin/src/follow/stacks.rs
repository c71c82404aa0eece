// SPDX-License-Identifier: GPL-2.0-or-later
//! Call stacks: captured cheaply where a stretch begins, unwound only when it turns out to be worth it, and numbered.

use crate::instrument::Instrument;
use std::collections::HashMap;
use std::path::Path;

/// As much of a stack as is copied: that of some ten calls. What lies further out is read when it is unwound; it cannot
/// have changed while the stretch lasted but by its own callers.
const COPIED: usize = 768;
/// Kernel stacks are aligned to their size (THREAD_SIZE, 16 KiB; arch/x86/include/asm/page_64_types.h), so nothing is
/// read behind the end of one.
const STACK_BYTES: u64 = 16 << 10;

/// What unwinding needs of a moment.
pub struct Capture {
    ip: u64,
    sp: u64,
    bp: u64,
    copied: [u8; COPIED],
    length: usize,
}

impl Default for Capture {
    fn default() -> Capture {
        Capture { ip: 0, sp: 0, bp: 0, copied: [0; COPIED], length: 0 }
    }
}

impl Capture {
    /// Copies the innermost part of the stack at `sp`.
    pub fn take(ip: u64, sp: u64, bp: u64, instrument: &Instrument) -> Capture {
        let mut capture = Capture { ip, sp, bp, ..Capture::default() };
        let to_end = STACK_BYTES - sp % STACK_BYTES;
        let length = COPIED.min(to_end as usize);
        if instrument.fill(sp, &mut capture.copied[..length]) {
            capture.length = length;
        }
        capture
    }
}

/// All stacks that were seen.
pub struct Stacks {
    known: HashMap<Box<[u64]>, u32>,
}

impl Stacks {
    /// With the map of the guest's kernel, if there is one.
    pub fn new(_map: Option<&Path>) -> Result<Stacks, String> {
        Ok(Stacks { known: HashMap::new() })
    }

    /// The number of a stack; one that is seen for the first time is told, frame by frame: number, index, address.
    pub fn number(
        &mut self,
        capture: &Capture,
        _instrument: &Instrument,
        mut tell: impl FnMut(u32, u8, u64),
    ) -> u32 {
        let frames = [capture.ip];
        if let Some(number) = self.known.get(&frames[..]) {
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
