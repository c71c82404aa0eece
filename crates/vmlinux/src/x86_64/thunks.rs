// SPDX-License-Identifier: GPL-2.0-or-later
//! The stack inside the thunks of indirect calls. The kernel's unwind table does not describe it.

use super::UPPER;
use super::orc::{Entry, Kind};
use crate::{Image, Symbol};

/// Adds the stack inside the thunks of indirect calls (arch/x86/lib/retpoline.S), which the kernel's own table leaves
/// open. Such a thunk calls a place inside itself. The code there writes the target over the address that this call
/// left (`mov` of 4 bytes), and returns to the target. The table has an entry only from this return on, and the entry
/// takes the target for the caller. Some thunks jump instead. They do so in their first instructions, with the stack of
/// the call.
pub(crate) fn know_thunks(all: &mut Vec<(u64, Entry)>, image: &Image) {
    const LONGEST: u64 = 32;
    const MOV: u64 = 4;
    let is_thunk =
        |s: &&Symbol| s.name.starts_with("__x86_indirect_thunk_") && s.address >> 32 == UPPER;
    let mut thunks: Vec<u64> = image.symbols.iter().filter(is_thunk).map(|s| s.address).collect();
    thunks.dedup();
    let mut known = Vec::new();
    for thunk in thunks {
        let inside = |ip: u64| ip.checked_sub(thunk).is_some_and(|d| d > MOV && d < LONGEST);
        let of_return = all.iter().find(|(ip, e)| inside(*ip) && e.kind == Kind::Call);
        let Some((at, entry)) = of_return.copied() else {
            continue;
        };
        all.retain(|(ip, _)| *ip < thunk || *ip > at);
        let target_on_stack = Entry { sp_offset: entry.sp_offset.saturating_add(8), ..entry };
        known.extend([(thunk, entry), (at - MOV, target_on_stack)]);
    }
    all.extend(known);
}
