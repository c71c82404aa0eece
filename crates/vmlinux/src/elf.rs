// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads the sections of a 64-bit little-endian ELF image (System V ABI, chapter 4). The crate needs nothing else of
//! the image, so it uses no ELF library.

use crate::Error;
use crate::little_endian::{array_at, text_at, u16_at, u32_at, u64_at};
use crate::x86_64::ELF_MACHINE;

/// The `sh_type` of a section that has no bytes in the file.
const SHT_NOBITS: u32 = 8;
/// The flags `sh_flags` of sections that may be written, that are in memory, and that hold instructions.
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;

/// A section of the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    /// The section's name, with the dot.
    pub name: &'a str,
    /// The section's address when the image was linked.
    pub address: u64,
    /// The section's length in memory, in bytes.
    pub size: u64,
    /// The section's bytes. Empty if the section has no bytes in the file.
    pub bytes: &'a [u8],
    /// Whether the section holds instructions of the running kernel.
    pub is_code: bool,
}

/// The sections of an image, in the image's order.
pub(crate) fn sections(elf: &[u8]) -> Result<Vec<Section<'_>>, Error> {
    let short = || Error::Elf("it ends inside its headers");
    if array_at(elf, 0) != Some(*b"\x7fELF\x02\x01") || u16_at(elf, 18) != Some(ELF_MACHINE) {
        return Err(Error::Elf("it does not begin like one"));
    }
    let table = u64_at(elf, 0x28).ok_or_else(short)?;
    let size = usize::from(u16_at(elf, 0x3a).ok_or_else(short)?);
    let count = usize::from(u16_at(elf, 0x3c).ok_or_else(short)?);
    let names = usize::from(u16_at(elf, 0x3e).ok_or_else(short)?);
    let table = usize::try_from(table).ok().and_then(|t| elf.get(t..)).ok_or_else(short)?;
    let header = |n: usize| n.checked_mul(size).and_then(|at| table.get(at..)?.get(..64));
    let bytes = |header: &[u8]| -> Option<&[u8]> {
        if u32_at(header, 4)? == SHT_NOBITS {
            return Some(&[]);
        }
        let (at, length) = (u64_at(header, 24)?, u64_at(header, 32)?);
        elf.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(length).ok()?)
    };
    let names = header(names).and_then(bytes).ok_or_else(short)?;
    let section = |n: usize| {
        let header = header(n)?;
        let flags = u64_at(header, 8)?;
        Some(Section {
            name: text_at(names, u32_at(header, 0)? as usize)?,
            address: u64_at(header, 16)?,
            size: u64_at(header, 32)?,
            bytes: bytes(header)?,
            // Since 7.x `.data` has the flag of instructions, too.
            is_code: flags & (SHF_ALLOC | SHF_EXECINSTR | SHF_WRITE) == SHF_ALLOC | SHF_EXECINSTR,
        })
    };
    (0..count).map(|n| section(n).ok_or_else(short)).collect()
}
