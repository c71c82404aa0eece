// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads a kernel's image: its symbols, unwind table, types, and the places of its instructions.

use crate::btf::Btf;
use crate::elf::{self, Section};
use crate::x86_64::orc::{self, Entry, Format};
use crate::{Error, kallsyms};
use std::ops::Range;

/// A symbol of the kernel or of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The symbol's address. For a variable of each CPU, the distance from the beginning of that CPU's variables.
    pub address: u64,
    /// The symbol's kind, as nm(1) writes it: `b't'` and `b'T'` for functions, …
    pub kind: u8,
    /// The symbol's name.
    pub name: String,
}

/// The entries of an unwind table by address, and the format in which they are read.
type OrcTable = (Format, Vec<(u64, Entry)>);

/// A kernel's image.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// The symbols, in the kernel's own order: by address. Of several symbols at one address, the one that the kernel
    /// names in its stacks comes first.
    pub symbols: Vec<Symbol>,
    /// The types, or the reason why there are none.
    pub btf: Result<Btf<'a>, &'static str>,
    /// How to unwind stacks from each address on, or the reason why nobody knows.
    pub(crate) orc: Result<OrcTable, &'static str>,
    /// The ranges of addresses that hold instructions.
    pub(crate) code: Vec<Range<u64>>,
    /// The instructions, with the address of the first one.
    pub(crate) instructions: Vec<(u64, &'a [u8])>,
}

impl<'a> Image<'a> {
    /// Reads a kernel's ELF image as a `bzImage` contains it compressed: with its sections, and without a symbol table.
    ///
    /// # Errors
    /// [`Error::Elf`] or [`Error::Kallsyms`]. A kernel without types or without an unwind table is no error.
    pub fn parse(elf: &'a [u8]) -> Result<Image<'a>, Error> {
        let sections = elf::sections(elf)?;
        let section = |name: &str| sections.iter().find(|s| s.name == name);
        let rodata = section(".rodata").ok_or(Error::Elf("it has no section .rodata"))?;
        let code = || sections.iter().filter(|s| s.is_code && s.size > 0);
        Ok(Image {
            symbols: kallsyms::symbols(rodata.bytes, rodata.address)?,
            btf: section(".BTF")
                .ok_or("the kernel has no type information (CONFIG_DEBUG_INFO_BTF)")
                .and_then(|s| Btf::parse(s.bytes)),
            orc: table(section(orc::IPS), section(orc::ENTRIES)),
            code: code().map(|s| s.address..s.address.saturating_add(s.size)).collect(),
            instructions: code().map(|s| (s.address, s.bytes)).collect(),
        })
    }

    /// Checks whether stacks can be unwound. The error says why not.
    pub fn unwinds(&self) -> Result<(), &'static str> {
        self.orc.as_ref().map(drop).map_err(|why| *why)
    }

    /// The instructions from the function `name` up to the next symbol, with the address of the first one.
    pub(crate) fn function(&self, name: &str) -> Option<(u64, &'a [u8])> {
        let start = self.address(name)?;
        let next = self.symbols.partition_point(|s| s.address <= start);
        let end = self.symbols.get(next)?.address;
        self.instructions.iter().find_map(|(address, bytes)| {
            let place = |at: u64| usize::try_from(at.checked_sub(*address)?).ok();
            Some((start, bytes.get(place(start)?..place(end)?)?))
        })
    }

    /// The address of the symbol `name`. If there are several such symbols, the first one counts.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|s| s.name == name).map(|s| s.address)
    }
}

type Table = (Format, Vec<(u64, Entry)>);

fn table(ip: Option<&Section>, entries: Option<&Section>) -> Result<Table, &'static str> {
    let missing = "the kernel has no unwind table (CONFIG_UNWINDER_ORC)";
    let (ip, entries) = ip.zip(entries).ok_or(missing)?;
    let format =
        Format::of(entries.bytes).ok_or("the kernel's unwind table is of an unknown format")?;
    Ok((format, format.table(ip.address, ip.bytes, entries.bytes).collect()))
}
