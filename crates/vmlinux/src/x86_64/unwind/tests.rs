// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests each kind of entry on made-up tables and stacks, and tests arbitrary bytes.

use super::*;
use crate::{Image, Symbol};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The address of the code in these tests. There is one function every 0x100 bytes.
const CODE: u64 = 0xffff_ffff_8100_0000;
/// The addresses of two stacks.
const IRQ: u64 = 0xffff_c900_0000_0000;
const TASK: u64 = 0xffff_c900_0010_0000;
const USER: u64 = 0x40_1000;
const USER_CS: u64 = 0x33;
const KERNEL_CS: u64 = 0x10;

/// Words at addresses. Nothing else is readable.
#[derive(Default)]
struct Words(BTreeMap<u64, u64>);

impl Words {
    fn set(mut self, at: u64, word: u64) -> Words {
        self.0.insert(at, word);
        self
    }

    /// Adds at `at` what the processor pushes at an interrupt of `cs:ip` with the stack `sp`.
    fn interrupted(self, at: u64, ip: u64, cs: u64, sp: u64) -> Words {
        self.set(at, ip).set(at + 8, cs).set(at + 16, 0).set(at + 24, sp).set(at + 32, 0)
    }
}

impl Memory for Words {
    /// Reads whole pages that contain a word. The other words of such a page are 0.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let page = address - address % PAGE;
        if address + bytes.len() as u64 > page + PAGE
            || self.0.range(page..page + PAGE).next().is_none()
        {
            return false;
        }
        for (byte, at) in bytes.iter_mut().zip(address..) {
            let word = self.0.get(&(at - at % 8)).copied().unwrap_or(0);
            *byte = word.to_le_bytes()[(at % 8) as usize];
        }
        true
    }
}

fn entry(kind: Kind, sp: Base, sp_offset: i16) -> Entry {
    let is_signal = matches!(kind, Kind::Regs | Kind::RegsPartial);
    Entry { sp_offset, bp_offset: 0, sp, bp: Base::Undefined, kind, is_signal }
}

fn call(sp: Base, sp_offset: i16) -> Entry {
    entry(Kind::Call, sp, sp_offset)
}

/// An entry whose frame pointer is saved below the return address.
fn call_with_bp(sp: Base, sp_offset: i16) -> Entry {
    Entry { bp: Base::PreviousSp, bp_offset: -16, ..call(sp, sp_offset) }
}

/// A kernel whose functions have these entries.
fn map(entries: &[Entry]) -> Map {
    let at = |n: usize| CODE + 0x100 * n as u64;
    let symbol = |n: usize| Symbol { address: at(n), kind: b'T', name: format!("f{n}") };
    let image = Image {
        symbols: (0..entries.len()).map(symbol).collect(),
        btf: Err("not in this test"),
        orc: Ok((
            crate::x86_64::orc::Format::KindsOf3Bits,
            (0..).map(at).zip(entries.iter().copied()).collect(),
        )),
        code: std::iter::once(CODE..at(entries.len())).collect(),
        instructions: Vec::new(),
    };
    Map::of(&image, &Words::default()).unwrap()
}

/// An address inside function `n`.
fn f(n: u64) -> u64 {
    CODE + 0x100 * n + 0x20
}

fn stack(map: &Map, regs: Regs, memory: &Words) -> (Vec<u64>, StackEnd) {
    let mut frames = [0; 16];
    let unwound = unwind(map, &regs, memory, &mut frames);
    // The unwinder that remembers entries finds the same, also if it has all of them.
    let mut unwinder = Unwinder::new(map.clone());
    for _ in 0..2 {
        let mut again = [0; 16];
        assert_eq!((unwinder.unwind(&regs, memory, &mut again), again), (unwound, frames));
    }
    (frames[..unwound.frames].to_vec(), unwound.ending)
}

fn regs(ip: u64, sp: u64) -> Regs {
    Regs { ip, sp, ..Regs::default() }
}

#[test]
fn calls_are_followed_by_stack_and_by_frame_pointer() {
    let map = map(&[
        call_with_bp(Base::Sp, 24),
        call_with_bp(Base::Bp, 16),
        call_with_bp(Base::Bp, 16),
        entry(Kind::End, Base::Undefined, 0),
    ]);
    let memory = Words::default()
        .set(TASK + 8, TASK + 0x100)
        .set(TASK + 16, f(1))
        .set(TASK + 0x100, TASK + 0x200)
        .set(TASK + 0x108, f(2))
        .set(TASK + 0x200, 0)
        .set(TASK + 0x208, f(3));
    let found = stack(&map, regs(f(0), TASK), &memory);
    assert_eq!(found, (vec![f(0), f(1), f(2), f(3)], StackEnd::End));
}

#[test]
fn an_interrupt_of_the_kernel_leads_to_the_interrupted_stack_and_on_to_user_space() {
    let map = map(&[
        call(Base::Sp, 8),
        entry(Kind::Regs, Base::SpIndirect, 0),
        call_with_bp(Base::Bp, 16),
        entry(Kind::Regs, Base::Sp, 0),
    ]);
    // On the interrupt stack. Its last word points to the task's stack.
    let saved = TASK + 0x400;
    let memory = Words::default()
        .set(IRQ, f(1))
        .set(IRQ + 8, saved)
        .interrupted(saved + IP, f(2), KERNEL_CS, TASK + 0x700)
        .set(saved + BP, TASK + 0x800)
        .set(TASK + 0x808, f(3))
        .interrupted(TASK + 0x810 + IP, USER, USER_CS, 0x7fff_0000);
    let mut frames = [0; 16];
    let unwound = unwind(&map, &regs(f(0), IRQ), &memory, &mut frames);
    assert_eq!(
        (&frames[..unwound.frames], unwound.ending),
        (&[f(0), f(1), f(2), f(3)][..], StackEnd::User)
    );
    // Two frames are exact: the first, and the interrupted one.
    assert_eq!(unwound.exact, 0b101);
}

#[test]
fn what_the_processor_itself_pushed_is_enough() {
    let map = map(&[entry(Kind::RegsPartial, Base::Sp, 16), entry(Kind::End, Base::Undefined, 0)]);
    let kernel = Words::default().interrupted(TASK + 16, f(1), KERNEL_CS, TASK + 0x100);
    assert_eq!(stack(&map, regs(f(0), TASK), &kernel), (vec![f(0), f(1)], StackEnd::End));
    let user = Words::default().interrupted(TASK + 16, USER, USER_CS, 0x7fff_0000);
    assert_eq!(stack(&map, regs(f(0), TASK), &user), (vec![f(0)], StackEnd::User));
}

#[test]
fn other_registers_hold_the_frame_where_they_are_known() {
    for base in [Base::R10, Base::R13, Base::Di, Base::Dx] {
        let map = map(&[call(base, 0), entry(Kind::End, Base::Undefined, 0), call(Base::Sp, 8)]);
        let mut live = regs(f(0), TASK);
        let register = match base {
            Base::R10 => &mut live.r10,
            Base::R13 => &mut live.r13,
            Base::Di => &mut live.di,
            _ => &mut live.dx,
        };
        *register = TASK + 0x80;
        let memory = Words::default().set(TASK + 0x78, f(1)).set(TASK, f(0));
        assert_eq!(stack(&map, live, &memory), (vec![f(0), f(1)], StackEnd::End), "{base:?}");
        // A caller does not keep these registers.
        let inner = Regs { ip: f(2), ..live };
        assert_eq!(stack(&map, inner, &memory), (vec![f(2), f(0)], StackEnd::Lost { at: f(0) }));
    }
}

#[test]
fn registers_of_an_interrupted_context_are_those_that_were_saved() {
    let map = map(&[
        entry(Kind::Regs, Base::Sp, 0),
        call(Base::R10, 0),
        entry(Kind::End, Base::Undefined, 0),
    ]);
    let memory = Words::default()
        .interrupted(TASK + IP, f(1), KERNEL_CS, TASK + 0x200)
        .set(TASK + R10, TASK + 0x300)
        .set(TASK + 0x2f8, f(2));
    assert_eq!(stack(&map, regs(f(0), TASK), &memory), (vec![f(0), f(1), f(2)], StackEnd::End));
}

#[test]
fn the_two_indirect_bases_add_their_offset_before_and_after() {
    let map = map(&[
        call(Base::SpIndirect, 8),
        call(Base::BpIndirect, -8),
        entry(Kind::End, Base::Undefined, 0),
    ]);
    let memory = Words::default().set(TASK, TASK + 0x40).set(TASK + 0x40, f(2));
    assert_eq!(stack(&map, regs(f(0), TASK), &memory), (vec![f(0), f(2)], StackEnd::End));
    let memory = Words::default().set(TASK + 0x18, TASK + 0x40).set(TASK + 0x38, f(2));
    let by_bp = Regs { bp: TASK + 0x20, ..regs(f(1), TASK) };
    assert_eq!(stack(&map, by_bp, &memory), (vec![f(1), f(2)], StackEnd::End));
}

#[test]
fn a_function_that_ends_with_a_call_is_looked_up_by_the_call() {
    // The return address is the first address of the next function, which has another stack.
    let map =
        map(&[call(Base::Sp, 8), call(Base::Sp, 16), entry(Kind::Undefined, Base::Undefined, 0)]);
    let memory = Words::default().set(TASK, CODE + 0x200).set(TASK + 16, USER);
    let found = stack(&map, regs(f(0), TASK), &memory);
    assert_eq!(found, (vec![f(0), CODE + 0x200, USER], StackEnd::User));
    assert_eq!(map.resolve_return(CODE + 0x200).unwrap().to_string(), "f1+0x100");
    assert_eq!(map.resolve(CODE + 0x200).unwrap().to_string(), "f2+0x0");
}

#[test]
fn a_stack_that_leads_nowhere_is_lost_and_one_without_room_is_truncated() {
    let map =
        map(&[call(Base::Sp, 8), entry(Kind::Undefined, Base::Undefined, 0), call(Base::Sp, -8)]);
    let memory = Words::default().set(TASK, f(1)).set(TASK + 0x100, CODE + 0x10_0000);
    let lost = |regs: Regs, at: u64| stack(&map, regs, &memory).1 == StackEnd::Lost { at };
    assert!(lost(regs(f(0), TASK), f(1)), "nothing is known");
    assert!(lost(regs(f(0), TASK + 0x100), CODE + 0x10_0000), "no code");
    assert!(lost(regs(f(0), IRQ), f(0)), "no memory");
    assert!(lost(regs(f(2), TASK + 0x10), f(2)), "downwards");
    assert_eq!(stack(&map, regs(USER, 0), &memory), (vec![USER], StackEnd::User));
    let mut frames = [0; 1];
    assert_eq!(unwind(&map, &regs(f(0), TASK), &memory, &mut frames).ending, StackEnd::Truncated);
    assert_eq!(unwind(&map, &regs(f(0), TASK), &memory, &mut []).frames, 0);
}

/// Memory in which every address has some bytes.
struct Noise(u64);

impl Memory for Noise {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        for (byte, at) in bytes.iter_mut().zip(0u64..) {
            let place = (address.wrapping_add(at) ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Some of the words lead into the code.
            let word = if place >> 63 == 0 { place } else { CODE + (place >> 40 & 0xfff) };
            *byte = (word >> (8 * (at % 8))) as u8;
        }
        !self.0.is_multiple_of(3)
    }
}

fn any_entry() -> impl Strategy<Value = Entry> {
    any::<[u8; 6]>().prop_map(Entry::from_bytes)
}

proptest! {
    #[test]
    fn whatever_the_table_and_the_memory_say_it_ends(
        entries in proptest::collection::vec(any_entry(), 1..16),
        seed: u64,
        sp: u64,
        bp: u64,
    ) {
        let regs = Regs { bp, r10: sp, r13: bp, ..regs(f(0), sp) };
        let mut frames = [0; 32];
        let unwound = unwind(&map(&entries), &regs, &Noise(seed), &mut frames);
        prop_assert!((1..=32).contains(&unwound.frames));
        prop_assert!(unwound.ending != StackEnd::Truncated || unwound.frames == 32);
    }

    #[test]
    fn a_damaged_map_gives_wrong_answers_at_worst(
        changes in proptest::collection::vec((0..4096usize, any::<u8>()), 1..20),
        cut in 0..4096usize,
        address: u64,
    ) {
        let whole = map(&[call(Base::Sp, 8), entry(Kind::End, Base::Undefined, 0)]);
        let mut bytes = whole.to_bytes().to_vec();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if cut % 4 == 0 {
            bytes.truncate(cut % bytes.len());
        }
        if let Ok(map) = Map::from_bytes(&bytes[..]) {
            for address in [address, f(0), f(1), CODE, CODE - 1] {
                let _ = (map.resolve(address), map.resolve_return(address));
                unwind(&map, &regs(address, TASK), &Noise(address), &mut [0; 8]);
            }
            let _ = (map.address("f0"), map.layout(), map.missing().count());
            let _ = (map.with_prefix("f").count(), map.symbols().count(), map.modules().count());
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_image(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        prop_assert!(Map::from_bytes(&bytes[..]).is_err());
        prop_assert!(Image::parse(&bytes).is_err());
        prop_assert!(crate::payload(&bytes).is_err());
        let header = [&b"\x9f\xeb\x01\x00\x18\x00\x00\x00"[..], &bytes].concat();
        if let Ok(btf) = crate::Btf::parse(&header) {
            let _ = btf.offset("a", "b.c");
        }
    }
}
