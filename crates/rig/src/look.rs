// SPDX-License-Identifier: GPL-2.0-or-later
//! A look at a paused guest: its kernel's memory and its registers.
//!
//! The guest cannot notice the look. It runs without the plugin, so nothing is measured in it.

use crate::cache::Owned;
use crate::error::At;
use crate::machine::Running;
use crate::run::END_DEADLINE;
use crate::x86_64::{PAGE, regs};
use crate::{Error, Result};
use serde_json::json;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use vmlinux::{Memory, Regs};

/// The size of the pieces in which QEMU is asked for memory, in bytes. A piece with holes is asked for page by page.
/// Each request takes time, so few are better than many.
const PIECE: u64 = 1 << 16;

/// A paused guest. Its QEMU ends when this is dropped.
pub struct Look {
    asked: RefCell<Asked>,
}

/// QEMU, and its answers since the guest was paused.
struct Asked {
    running: Running,
    scratch: Owned,
    /// The pages by address. `None` if there is no such memory.
    pages: HashMap<u64, Option<Box<[u8]>>>,
}

impl Look {
    pub(crate) fn at(running: Running, scratch: Owned) -> Look {
        Look { asked: RefCell::new(Asked { running, scratch, pages: HashMap::new() }) }
    }

    /// Lets the guest go on for some milliseconds of wall time, and pauses it again.
    ///
    /// # Errors
    /// [`Error::Qemu`], also if the guest has ended.
    pub fn go_on(&mut self) -> Result<()> {
        let asked = self.asked.get_mut();
        asked.pages.clear();
        asked.running.call("cont", json!({}), END_DEADLINE)?;
        asked.running.call("stop", json!({}), END_DEADLINE)?;
        crate::run::wait_until_paused(&mut asked.running)
    }

    /// Checks that QEMU still answers, and that nobody asked to stop. Otherwise memory may only have seemed unreadable.
    pub(crate) fn confirm(&self) -> Result<()> {
        let running = &mut self.asked.borrow_mut().running;
        running.call("query-status", json!({}), END_DEADLINE).map(drop)
    }

    /// The registers of the guest's processor.
    ///
    /// # Errors
    /// [`Error::Qemu`], also if QEMU prints them in an unknown way.
    pub fn registers(&self) -> Result<Regs> {
        let command = json!({"command-line": "info registers"});
        let running = &mut self.asked.borrow_mut().running;
        let answer = running.call("human-monitor-command", command, END_DEADLINE)?;
        let text = answer.as_str().unwrap_or_default();
        regs(text).ok_or_else(|| Error::Qemu(format!("its registers are in no known form: {text}")))
    }
}

impl Memory for Look {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let asked = &mut *self.asked.borrow_mut();
        let (mut at, mut left) = (address, bytes);
        while !left.is_empty() {
            let Some(page) = asked.page(at - at % PAGE) else {
                return false;
            };
            let from = (at % PAGE) as usize;
            let length = left.len().min(page.len() - from);
            let (now, later) = left.split_at_mut(length);
            now.copy_from_slice(&page[from..from + length]);
            (at, left) = (at.wrapping_add(length as u64), later);
        }
        true
    }
}

impl Asked {
    /// The page that begins at `start`.
    fn page(&mut self, start: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&start) {
            let piece = start - start % PIECE;
            match self.fetch(piece, PIECE) {
                Some(bytes) => {
                    for (at, page) in
                        (piece..=u64::MAX).step_by(PAGE as usize).zip(bytes.chunks(PAGE as usize))
                    {
                        self.pages.insert(at, Some(page.into()));
                    }
                }
                None => {
                    let page = self.fetch(start, PAGE).map(Vec::into_boxed_slice);
                    self.pages.insert(start, page);
                }
            }
        }
        self.pages.get(&start)?.as_deref()
    }

    /// The memory at a virtual address, as the processor sees it now.
    fn fetch(&mut self, at: u64, length: u64) -> Option<Vec<u8>> {
        let path = self.scratch.path().join("memory");
        let place = json!({"val": at, "size": length, "filename": path.to_str()?});
        self.running.call("memsave", place, END_DEADLINE).ok()?;
        let bytes = fs::read(&path).at(&path).ok()?;
        (bytes.len() as u64 == length).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_read_from_what_qemu_prints() {
        let text = "\r\nCPU#0\r\nRAX=0000000000000001 RBX=0000000000000002 RCX=0000000000000003 RDX=0000000000000004\r\n\
            RSI=0000000000000005 RDI=0000000000000006 RBP=0000000000000007 RSP=fffffe0000000008\r\n\
            R8 =0000000000000009 R9 =000000000000000a R10=000000000000000b R11=000000000000000c\r\n\
            R12=000000000000000d R13=000000000000000e R14=000000000000000f R15=0000000000000010\r\n\
            RIP=ffffffff81000011 RFL=00000046 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n";
        let expected = Regs {
            ip: 0xffff_ffff_8100_0011,
            sp: 0xffff_fe00_0000_0008,
            bp: 7,
            dx: 4,
            di: 6,
            r10: 11,
            r13: 14,
        };
        assert_eq!(regs(text), Some(expected));
        assert_eq!(regs("CPU#0\r\nEIP=0000fff0"), None);
    }
}
