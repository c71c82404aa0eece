// SPDX-License-Identifier: GPL-2.0-or-later
//! Entries of the kernel's unwind table (arch/x86/include/asm/orc_types.h). An entry holds from an address of the code
//! on, and says how to find the frame of the caller there.

/// The section of an image with the addresses from which the unwind entries hold. The section below has the entries.
#[cfg(feature = "image")]
pub(crate) const IPS: &str = ".orc_unwind_ip";
/// The section with the unwind entries; see [`IPS`].
#[cfg(feature = "image")]
pub(crate) const ENTRIES: &str = ".orc_unwind";
/// The members of a `struct module` with its own table: the number of entries, the addresses, the entries.
#[cfg(feature = "image")]
pub(crate) const OF_MODULE: [&str; 3] = ["arch.num_orcs", "arch.orc_unwind_ip", "arch.orc_unwind"];

/// The bytes of an entry, in the kernel's tables and in ours.
pub(crate) const ENTRY: usize = 6;

/// What is on the stack at the beginning of the caller's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing is known: there is no code, or objtool does not follow the code.
    Undefined,
    /// There is no caller.
    End,
    /// A return address.
    Call,
    /// All registers (`struct pt_regs`).
    Regs,
    /// The registers that the processor itself pushes at an interrupt.
    RegsPartial,
}

/// The value from which an address is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Undefined,
    PreviousSp,
    Dx,
    Di,
    Bp,
    Sp,
    R10,
    R13,
    BpIndirect,
    SpIndirect,
}

impl Base {
    /// The base of a number `ORC_REG_…`.
    fn of(number: u8) -> Base {
        match number {
            1 => Base::PreviousSp,
            2 => Base::Dx,
            3 => Base::Di,
            4 => Base::Bp,
            5 => Base::Sp,
            6 => Base::R10,
            7 => Base::R13,
            8 => Base::BpIndirect,
            9 => Base::SpIndirect,
            _ => Base::Undefined,
        }
    }
}

/// An entry. In a map it has the form of kernels since 6.4: two signed offsets of 16 bits, two bases of 4 bits each,
/// the kind (3 bits), and whether it is an interrupted context (1 bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub sp_offset: i16,
    pub bp_offset: i16,
    pub sp: Base,
    pub bp: Base,
    pub kind: Kind,
    /// Whether the caller's address is that of an interrupted instruction.
    pub is_signal: bool,
}

impl Entry {
    /// The entry that nothing is known.
    #[cfg(feature = "image")]
    pub(crate) const UNDEFINED: Entry = Entry {
        sp_offset: 0,
        bp_offset: 0,
        sp: Base::Undefined,
        bp: Base::Undefined,
        kind: Kind::Undefined,
        is_signal: false,
    };

    /// Reads an entry from a map.
    pub(crate) fn from_bytes(bytes: [u8; ENTRY]) -> Entry {
        let [a, b, c, d, bases, flags] = bytes;
        Entry {
            sp_offset: i16::from_le_bytes([a, b]),
            bp_offset: i16::from_le_bytes([c, d]),
            sp: Base::of(bases & 15),
            bp: Base::of(bases >> 4),
            kind: match flags & 7 {
                1 => Kind::End,
                2 => Kind::Call,
                3 => Kind::Regs,
                4 => Kind::RegsPartial,
                _ => Kind::Undefined,
            },
            is_signal: flags & 8 != 0,
        }
    }

    /// Writes the entry into a map.
    #[cfg(feature = "image")]
    pub(crate) fn to_bytes(self) -> [u8; ENTRY] {
        let [a, b] = self.sp_offset.to_le_bytes();
        let [c, d] = self.bp_offset.to_le_bytes();
        let bases = self.sp as u8 | (self.bp as u8) << 4;
        [a, b, c, d, bases, self.kind as u8 | u8::from(self.is_signal) << 3]
    }
}

/// The format of a kernel's entries. A stable series may take over the next format with any release. So the table tells
/// the format, and not the kernel's version.
#[cfg(feature = "image")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The format before 6.4: the kinds `call`, `regs` and `regs_partial` in 2 bits. One more bit says that the stack
    /// ends. This bit is also set if nothing is known.
    KindsOf2Bits,
    /// The format since 6.4 (fb799447ae29, "x86,objtool: Split UNWIND_HINT_EMPTY in two"). A map has this format.
    KindsOf3Bits,
    /// The same with other numbers for the bases, since 7.1 (96f3b16a9de5, "objtool: Support Clang RAX DRAP sequence").
    BasesRenumbered,
}

#[cfg(feature = "image")]
impl Format {
    const ALL: [Format; 3] = [Format::KindsOf2Bits, Format::KindsOf3Bits, Format::BasesRenumbered];

    /// The format of a table, by its most frequent entries. Those are the entries of functions: calls whose caller's
    /// frame is found from the stack pointer. Nothing else in the image of a kernel before 6.4 tells the format.
    pub(crate) fn of(entries: &[u8]) -> Option<Format> {
        let known = || entries.chunks_exact(ENTRY).filter(|e| e[4] & 15 != 0);
        let half = known().count() / 2;
        Format::ALL.into_iter().find(|format| {
            let is_call = |e: &&[u8]| (e[4] & 15, e[5] & 7) == format.call();
            known().filter(is_call).count() > half
        })
    }

    /// The number of the stack pointer, and the number of a call.
    fn call(self) -> (u8, u8) {
        match self {
            Format::KindsOf2Bits => (5, 0),
            Format::KindsOf3Bits => (5, 2),
            Format::BasesRenumbered => (3, 2),
        }
    }

    /// The base of a number `ORC_REG_…` since 7.1. Only clang uses the accumulator as a base. Stacks with this base are
    /// not followed, and are lost there.
    fn renumbered(number: u8) -> Base {
        match number {
            2 => Base::Dx,
            3 => Base::Sp,
            4 => Base::Bp,
            5 => Base::Di,
            6 => Base::R10,
            7 => Base::R13,
            8 => Base::PreviousSp,
            9 => Base::SpIndirect,
            10 => Base::BpIndirect,
            _ => Base::Undefined,
        }
    }

    /// Reads an entry of this format.
    pub(crate) fn entry(self, bytes: [u8; ENTRY]) -> Entry {
        let entry = Entry::from_bytes(bytes);
        match self {
            Format::KindsOf2Bits => {}
            Format::KindsOf3Bits => return entry,
            Format::BasesRenumbered => {
                let [sp, bp] = [bytes[4] & 15, bytes[4] >> 4].map(Format::renumbered);
                return Entry { sp, bp, ..entry };
            }
        }
        let (kind, is_end) = (bytes[5] & 3, bytes[5] & 4 != 0);
        let kind = match (entry.sp, kind) {
            (Base::Undefined, _) if is_end => Kind::End,
            (Base::Undefined, _) => Kind::Undefined,
            (_, 0) => Kind::Call,
            (_, 1) => Kind::Regs,
            (_, 2) => Kind::RegsPartial,
            _ => Kind::Undefined,
        };
        // In these kernels all frames of registers are interrupted contexts (arch/x86/kernel/unwind_orc.c).
        Entry { kind, is_signal: matches!(kind, Kind::Regs | Kind::RegsPartial), ..entry }
    }

    /// The entries of a table, each with the address from which it holds. `ips` has a distance for each entry, which
    /// counts from the distance's own place. The first distance is at `at`.
    pub(crate) fn table(
        self,
        at: u64,
        ips: &[u8],
        entries: &[u8],
    ) -> impl Iterator<Item = (u64, Entry)> {
        let ips = ips.chunks_exact(4).zip(0..).map(move |(ip, n)| {
            let distance = i32::from_le_bytes([ip[0], ip[1], ip[2], ip[3]]);
            // A table may claim to be at the end of all addresses.
            at.wrapping_add(4 * n).wrapping_add_signed(i64::from(distance))
        });
        let entries = entries.chunks_exact(ENTRY);
        ips.zip(entries.map(move |e| self.entry([e[0], e[1], e[2], e[3], e[4], e[5]])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_at_the_end_of_all_addresses_is_read() {
        let entries = Format::KindsOf3Bits.table(u64::MAX - 5, &[0; 16], &[0; 4 * ENTRY]);
        let places: Vec<u64> = entries.map(|(place, _)| place).collect();
        assert_eq!(places, [u64::MAX - 5, u64::MAX - 1, 2, 6]);
    }

    #[test]
    fn entries_survive_being_written() {
        for bases in 0..=255 {
            for flags in 0..16 {
                let entry = Entry::from_bytes([1, 0x80, 0xff, 0x7f, bases, flags]);
                assert_eq!(Entry::from_bytes(entry.to_bytes()), entry);
                assert_eq!((entry.sp_offset, entry.bp_offset), (i16::MIN + 1, i16::MAX));
            }
        }
    }

    #[test]
    fn the_old_format_says_the_same_in_other_words() {
        let old = |sp: Base, flags: u8| Format::KindsOf2Bits.entry([8, 0, 0, 0, sp as u8, flags]);
        let told = |entry: Entry| (entry.kind, entry.is_signal);
        assert_eq!(told(old(Base::Sp, 0)), (Kind::Call, false));
        assert_eq!(told(old(Base::Sp, 1)), (Kind::Regs, true));
        assert_eq!(told(old(Base::Sp, 2)), (Kind::RegsPartial, true));
        assert_eq!(told(old(Base::Undefined, 4)), (Kind::End, false));
        assert_eq!(told(old(Base::Undefined, 0)), (Kind::Undefined, false));
    }

    #[test]
    fn renumbered_bases_are_the_same_bases() {
        // The numbers of the stack pointer and of the stack pointer before the call, as
        // arch/x86/include/asm/orc_types.h has them in 7.1 and in 6.4. Both formats have to give the same
        // bases.
        let renumbered = Format::BasesRenumbered.entry([16, 0, 0xf0, 0xff, 0x83, 2]);
        assert_eq!(renumbered, Format::KindsOf3Bits.entry([16, 0, 0xf0, 0xff, 0x15, 2]));
        let bases = (0..16).map(|n| Format::BasesRenumbered.entry([0, 0, 0, 0, n, 2]).sp);
        let mut known: Vec<Base> = bases.filter(|base| *base != Base::Undefined).collect();
        assert_eq!(known.len(), 9);
        known.dedup();
        assert_eq!(known.len(), 9);
    }

    #[test]
    fn a_table_tells_its_format_by_its_functions() {
        let call = |base: u8, flags: u8| [8, 0, 0, 0, base, flags];
        let regs = [0, 0, 0, 0, Base::Sp as u8, 1];
        let nothing = [0; ENTRY];
        for (call, format) in [
            (call(5, 0), Format::KindsOf2Bits),
            (call(5, 2), Format::KindsOf3Bits),
            (call(3, 2), Format::BasesRenumbered),
        ] {
            let table = [nothing, nothing, nothing, call, call, regs].concat();
            assert_eq!(Format::of(&table), Some(format));
        }
        assert_eq!(Format::of(&[regs, regs].concat()), None);
        assert_eq!(Format::of(&[]), None);
    }
}
