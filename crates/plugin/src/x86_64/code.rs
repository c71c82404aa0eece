// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads instructions of x86-64 from their bytes alone, and tells which of them change what the follower follows.
//!
//! The opcodes are those of the Intel SDM, volume 2. Some instructions change the interrupt flag and are not here. The
//! follower sees `syscall` and the gates of the interrupt table at their targets. No guest of the rig executes `vmrun`
//! and similar instructions.

/// What an instruction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `cli`.
    Masks,
    /// `sti`.
    Unmasks,
    /// `popf`: the word on the stack has the new interrupt flag.
    PopsFlags,
    /// `iretq`: the frame on the stack has the new flags and the new privilege level.
    ReturnsFromInterrupt,
    /// `sysretq`: returns to user space. r11 has the new flags.
    ReturnsFromCall,
    /// The instruction may store to the per-CPU variable at this offset from the gs base.
    StoresPerCpu(u64),
    /// The instruction may store 16 bits at this distance from the address in a register.
    StoresShort(u64),
}

/// A step by one, up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `inc`.
    Up,
    /// `dec`.
    Down,
}

/// `syscall`: user space calls the kernel.
pub const CALL: [u8; 2] = [0x0f, 0x05];
/// `sysretq`: the kernel returns from a call.
pub const RETURN_FROM_CALL: [u8; 3] = [0x48, 0x0f, 0x07];
/// `iretq`: the kernel returns from an interrupt.
pub const RETURN_FROM_INTERRUPT: [u8; 2] = [0x48, 0xcf];
/// The instructions that halt QEMU's vCPU until an interrupt comes: `hlt` and, on a machine with one processor,
/// `mwait`.
pub const HALTING: [&[u8]; 2] = [&[0xf4], &[0x0f, 0x01, 0xc9]];

/// The change that the instruction at `address` makes. `code` has all its bytes.
pub fn change(code: &[u8], address: u64) -> Option<Change> {
    match code {
        [0xfa] => Some(Change::Masks),
        [0xfb] => Some(Change::Unmasks),
        [0x9d] => Some(Change::PopsFlags),
        [0x48, 0xcf] => Some(Change::ReturnsFromInterrupt),
        [0x48, 0x0f, 0x07] => Some(Change::ReturnsFromCall),
        _ => stored_per_cpu(code, address)
            .map(Change::StoresPerCpu)
            .or_else(|| stored_short(code).map(Change::StoresShort)),
    }
}

/// Whether an instruction adds one to the word that it stores (`inc`), or takes one (`dec`): opcode 0xff, /0 and /1.
pub fn step(code: &[u8]) -> Option<Step> {
    let prefixes = code.iter().take_while(|b| is_prefix(b)).count();
    match code[prefixes..] {
        [0xff, mode, ..] if mode & 0x38 == 0 => Some(Step::Up),
        [0xff, mode, ..] if mode & 0x38 == 8 => Some(Step::Down),
        _ => None,
    }
}

/// Whether an instruction leads further on in memory, or into a called function. A jump does, conditional or not, if it
/// goes by a constant that is not negative. A call by a constant does, too. A guest whose blocks all end with such
/// instructions comes to no loop.
pub fn leads_on(code: &[u8]) -> bool {
    match *code {
        [0x70..=0x7f | 0xeb, by] => by.cast_signed() >= 0,
        [0xe9, a, b, c, d] | [0x0f, 0x80..=0x8f, a, b, c, d] => {
            i32::from_le_bytes([a, b, c, d]) >= 0
        }
        [0xe8, ..] => true,
        _ => false,
    }
}

/// Whether an instruction returns to its caller: `ret`, also with a constant, or with the prefix that old processors
/// want.
pub fn returns(code: &[u8]) -> bool {
    matches!(code, [0xc3] | [0xf3, 0xc3] | [0xc2, _, _])
}

fn is_prefix(byte: &u8) -> bool {
    matches!(byte, 0x65 | 0x66 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f)
}

/// Opcodes of one byte that store to their operand in memory: add, or, and, sub, xor from a register; the same with a
/// constant; xchg; mov; inc, dec and others of group 5.
const STORES: [u8; 11] = [0x01, 0x09, 0x21, 0x29, 0x31, 0x81, 0x83, 0x87, 0x89, 0xc7, 0xff];

/// The distance of 32 bits from a register at which an instruction may store 16 bits. Only one register may be part of
/// the address, and gs may not be part of it.
fn stored_short(code: &[u8]) -> Option<u64> {
    const SHORT: u8 = 0x66;
    let prefixes = code.iter().take_while(|b| is_prefix(b)).count();
    let is_short = code[..prefixes].contains(&SHORT) && !code[..prefixes].contains(&GS);
    let [opcode, mode, rest @ ..] = &code[prefixes..] else { return None };
    // Mode 2 means a register and 32 bits. Register 4 would mean that there are two registers.
    if !is_short || !STORES.contains(opcode) || mode & 0xc0 != 0x80 || mode & 7 == 4 {
        return None;
    }
    u64::try_from(i32::from_le_bytes(*rest.first_chunk()?)).ok()
}

/// The prefix for an address that counts from the gs base.
const GS: u8 = 0x65;

/// The offset from the gs base to which an instruction may store, if the instruction itself contains this offset: as a
/// displacement alone, or relative to the next instruction (Linux since 6.7).
fn stored_per_cpu(code: &[u8], address: u64) -> Option<u64> {
    let prefixes = code.iter().take_while(|b| is_prefix(b)).count();
    if !code[..prefixes].contains(&GS) {
        return None;
    }
    let operands = match code[prefixes..] {
        [opcode, ..] if STORES.contains(&opcode) => prefixes + 1,
        // These are cmpxchg and xadd.
        [0x0f, 0xb1 | 0xc1, ..] => prefixes + 2,
        _ => return None,
    };
    let (mode, rest) = code[operands..].split_first()?;
    let displacement =
        |bytes: &[u8]| Some(i64::from(i32::from_le_bytes(*bytes.first_chunk()?)) as u64);
    match (mode & 0xc7, rest) {
        (0x05, _) => {
            Some(displacement(rest)?.wrapping_add(address).wrapping_add(code.len() as u64))
        }
        // The base is "none", and the index is "none".
        (0x04, [sib, disp @ ..]) if sib & 0x3f == 0x25 => displacement(disp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interrupt_flag_is_changed_by_these() {
        assert_eq!(change(&[0xfa], 0), Some(Change::Masks));
        assert_eq!(change(&[0xfb], 0), Some(Change::Unmasks));
        assert_eq!(change(&[0x9d], 0), Some(Change::PopsFlags));
        assert_eq!(change(&[0x48, 0xcf], 0), Some(Change::ReturnsFromInterrupt));
        assert_eq!(change(&[0x48, 0x0f, 0x07], 0), Some(Change::ReturnsFromCall));
        // These are nop, ret, and an instruction that has 0xfa as its constant.
        for code in [&[0x90][..], &[0xc3], &[0xb0, 0xfa]] {
            assert_eq!(change(code, 0), None);
        }
    }

    #[test]
    fn a_store_to_a_per_cpu_variable_gives_its_offset_in_both_encodings() {
        // incl %gs:0x33c88, as before Linux 6.7: the offset is absolute.
        let absolute = [0x65, 0xff, 0x04, 0x25, 0x88, 0x3c, 0x03, 0x00];
        assert_eq!(change(&absolute, 0xffff_ffff_8100_0000), Some(Change::StoresPerCpu(0x33c88)));
        // decl %gs:0x7ef0_0000(%rip), at an address where the sum is 0x33c88.
        let at = 0xffff_ffff_8100_0000u64;
        let relative = 0x33c88u64.wrapping_sub(at).wrapping_sub(7) as u32;
        let mut code = vec![0x65, 0xff, 0x0d];
        code.extend(relative.to_le_bytes());
        assert_eq!(change(&code, at), Some(Change::StoresPerCpu(0x33c88)));
        // addl $0x200 in the same way: the constant follows the displacement.
        let relative = 0x33c88u64.wrapping_sub(at).wrapping_sub(11) as u32;
        let mut code = vec![0x65, 0x81, 0x05];
        code.extend(relative.to_le_bytes());
        code.extend(0x200u32.to_le_bytes());
        assert_eq!(change(&code, at), Some(Change::StoresPerCpu(0x33c88)));
        // mov %r13,%gs:… has a REX prefix.
        let moved = [0x65, 0x4c, 0x89, 0x2c, 0x25, 0x80, 0x3c, 0x03, 0x00];
        assert_eq!(change(&moved, at), Some(Change::StoresPerCpu(0x33c80)));
    }

    #[test]
    fn a_store_of_16_bits_behind_a_register_gives_its_distance() {
        // incw 0x4c0(%rax); movw $1,0x4c0(%rdx); decw 0x4c0(%r12), whose encoding has two registers; mov
        // %ax,0x4c0(%r13).
        let stores = |code: &[u8]| change(code, 0);
        let at = [0xc0, 0x04, 0x00, 0x00];
        let short = Some(Change::StoresShort(0x4c0));
        assert_eq!(stores(&[&[0x66, 0xff, 0x80][..], &at].concat()), short);
        assert_eq!(stores(&[&[0x66, 0xc7, 0x82][..], &at, &[1, 0]].concat()), short);
        assert_eq!(stores(&[&[0x66, 0x41, 0x89, 0x85][..], &at].concat()), short);
        assert_eq!(stores(&[&[0x66, 0x41, 0xff, 0x8c, 0x24][..], &at].concat()), None);
        // incl; movzwl from there; incw (%rax); incw %gs:0x4c0; an incw with a negative distance.
        assert_eq!(stores(&[&[0xff, 0x80][..], &at].concat()), None);
        assert_eq!(stores(&[&[0x0f, 0xb7, 0x80][..], &at].concat()), None);
        assert_eq!(stores(&[0x66, 0xff, 0x00]), None);
        let of_cpu = [&[0x65, 0x66, 0xff, 0x04, 0x25][..], &at].concat();
        assert_eq!(stores(&of_cpu), Some(Change::StoresPerCpu(0x4c0)));
        assert_eq!(stores(&[0x66, 0xff, 0x80, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn a_step_is_an_inc_or_a_dec() {
        // incl and decl %gs:0x33c88; then addl $1, movl, and a call through memory, which has the same opcode.
        let at = [0x04, 0x25, 0x88, 0x3c, 0x03, 0x00];
        assert_eq!(step(&[&[0x65, 0xff][..], &at].concat()), Some(Step::Up));
        assert_eq!(step(&[0x65, 0xff, 0x0d, 0, 0, 0, 0]), Some(Step::Down));
        assert_eq!(step(&[&[0x65, 0x83][..], &at, &[1]].concat()), None);
        assert_eq!(step(&[0x65, 0xff, 0x15, 0, 0, 0, 0]), None);
        assert_eq!(step(&[]), None);
    }

    #[test]
    fn loads_and_addresses_in_registers_are_no_such_stores() {
        // mov %gs:0x33c88,%eax; incl %gs:(%rax); incl 0x33c88 without gs.
        assert_eq!(change(&[0x65, 0x8b, 0x04, 0x25, 0x88, 0x3c, 0x03, 0x00], 0), None);
        assert_eq!(change(&[0x65, 0xff, 0x00], 0), None);
        assert_eq!(change(&[0xff, 0x04, 0x25, 0x88, 0x3c, 0x03, 0x00], 0), None);
    }

    #[test]
    fn a_return_is_a_ret_and_neither_a_jump_nor_a_return_from_an_interrupt() {
        let returns: [&[u8]; 3] = [&[0xc3], &[0xf3, 0xc3], &[0xc2, 0x08, 0x00]];
        returns.iter().for_each(|code| assert!(super::returns(code), "{code:x?}"));
        let others: [&[u8]; 4] = [&[0xe9, 0xc3, 0, 0, 0], &[0x48, 0xcf], &[0xcc], &[]];
        others.iter().for_each(|code| assert!(!super::returns(code), "{code:x?}"));
    }

    #[test]
    fn jumps_that_are_forward_and_calls_lead_on_and_nothing_else() {
        // je, jmp and jne, and jmp with long displacements; and a call backward, which returns.
        let on: [&[u8]; 5] = [
            &[0x74, 0x10],
            &[0xeb, 0x00],
            &[0x0f, 0x85, 0xff, 0xff, 0x00, 0x00],
            &[0xe9, 0x00, 0x00, 0x00, 0x7f],
            &[0xe8, 0x00, 0x00, 0x00, 0xff],
        ];
        on.iter().for_each(|code| assert!(leads_on(code), "{code:x?}"));
        // The same jumps backward; ret, jmp *%rax, rep movsb, nop, loop, bswap, and a jump with a prefix.
        let not: [&[u8]; 11] = [
            &[0x74, 0xf0],
            &[0xeb, 0xfe],
            &[0x0f, 0x85, 0x00, 0x00, 0x00, 0x80],
            &[0xe9, 0xff, 0xff, 0xff, 0xff],
            &[0xc3],
            &[0xff, 0xe0],
            &[0xf3, 0xa4],
            &[0x90],
            &[0xe2, 0x10],
            &[0x0f, 0xc8],
            &[0x2e, 0x74, 0x10],
        ];
        not.iter().for_each(|code| assert!(!leads_on(code), "{code:x?}"));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_they_are_looked_at(code in proptest::collection::vec(any::<u8>(), 0..16), at: u64) {
            let _ = change(&code, at);
            let _ = leads_on(&code);
        }
    }
}
