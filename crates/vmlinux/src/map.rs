// SPDX-License-Identifier: GPL-2.0-or-later
//! All facts about one booted kernel, as one file that is used without being copied.
//!
//! The file is little-endian. Its header has `onsetmap`, the version (32 bits), and then the place and the length (32
//! bits each, in bytes) of each of [`PARTS`] parts. The parts are sorted arrays, each at a multiple of 8 bytes. Loading
//! looks at their lengths alone. An error inside a damaged part gives wrong answers or none, never a panic.

use crate::Error;
use crate::layout::{FIELDS, Layout};
use crate::little_endian::{array_at, text_at, u32_at, u64_at};
use crate::x86_64::UPPER;
use crate::x86_64::orc::{ENTRY, Entry};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// The first bytes of a map.
pub(crate) const MAGIC: [u8; 8] = *b"onsetmap";
/// The version of the map's contents. A map of another version is made again.
pub(crate) const VERSION: u32 = 2;
/// The number of parts.
pub(crate) const PARTS: usize = 10;
/// The addresses of the symbols, rising; 64 bits each.
pub(crate) const ADDRESSES: usize = 0;
/// The places in [`TEXT`] of the symbols' names; 32 bits each.
pub(crate) const NAMES: usize = 1;
/// The kinds of the symbols; a byte each.
pub(crate) const KINDS: usize = 2;
/// The numbers of the symbols, sorted by name; symbols of equal names by number; 32 bits each.
pub(crate) const BY_NAME: usize = 3;
/// The stretches of code, rising. Each has its beginning, its end, and the place in [`TEXT`] of the module's name; 64
/// bits each. The kernel itself has an empty name.
pub(crate) const REGIONS: usize = 4;
/// Names, each of which ends with NUL. The first name is empty.
pub(crate) const TEXT: usize = 5;
/// The lower halves of the addresses from which the unwind entries hold, rising; 32 bits each.
pub(crate) const ORC_IPS: usize = 6;
/// The unwind entries.
pub(crate) const ORC_ENTRIES: usize = 7;
/// For each block of the kernel's code the number of unwind entries before it, and last that of all; 32 bits each.
pub(crate) const ORC_BLOCKS: usize = 8;
/// The beginning of the first block, the beginning of new tasks, and the layout; 64 bits each. All ones mean that the
/// kernel has no such thing.
pub(crate) const FACTS: usize = 9;
/// The place of the missing facts. They follow the other facts, one a line.
pub(crate) const MISSING_AT: usize = 8 * (2 + FIELDS);

/// The bytes of code in a block, as in the kernel's own index (arch/x86/include/asm/orc_lookup.h). With this size a
/// lookup compares some four entries.
pub(crate) const BLOCK: u32 = 256;
/// The bytes of a region's record.
const REGION: usize = 24;

/// A kernel's symbols, unwind table and layout. The bytes are in a `Vec`, or in a mapped file.
#[derive(Clone, Debug)]
pub struct Map<B = Vec<u8>> {
    bytes: B,
    parts: [Range<usize>; PARTS],
}

/// The place of an address in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodePlace<'a> {
    /// The symbol at the address or before it. Of several symbols at one address it is the one that the kernel prints.
    pub symbol: &'a str,
    /// Bytes from the symbol to the address.
    pub offset: u64,
    /// The module with this code. `None` for the kernel itself.
    pub module: Option<&'a str>,
}

impl fmt::Display for CodePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.symbol, self.offset)?;
        self.module.map_or(Ok(()), |module| write!(f, " [{module}]"))
    }
}

impl<B: AsRef<[u8]>> Map<B> {
    /// Takes a map in the form that [`Map::to_bytes`] gives.
    ///
    /// # Errors
    /// [`Error::Map`] or [`Error::MapVersion`].
    pub fn from_bytes(bytes: B) -> Result<Map<B>, Error> {
        let all = bytes.as_ref();
        if array_at(all, 0) != Some(MAGIC) {
            return Err(Error::Map("it does not begin like one"));
        }
        let version = u32_at(all, 8).ok_or(Error::Map("it ends inside its header"))?;
        if version != VERSION {
            return Err(Error::MapVersion(version, VERSION));
        }
        let mut parts = [const { 0..0 }; PARTS];
        for (n, part) in parts.iter_mut().enumerate() {
            let place = u32_at(all, 16 + 8 * n).zip(u32_at(all, 20 + 8 * n));
            let (start, length) = place.ok_or(Error::Map("it ends inside its header"))?;
            let (start, end) = (start as usize, start as usize + length as usize);
            if end > all.len() {
                return Err(Error::Map("it is cut short"));
            }
            *part = start..end;
        }
        let map = Map { bytes, parts };
        let count = |part: usize, size: usize| map.part(part).len() / size;
        let symbols = count(ADDRESSES, 8);
        let is_whole = [(NAMES, 4), (KINDS, 1), (BY_NAME, 4)]
            .iter()
            .all(|(part, size)| count(*part, *size) == symbols)
            && count(ORC_IPS, 4) == count(ORC_ENTRIES, ENTRY)
            && map.part(FACTS).len() >= MISSING_AT;
        is_whole.then_some(map).ok_or(Error::Map("its parts do not fit to each other"))
    }

    /// The map in the form of its file.
    pub fn to_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The address of the symbol `name`. Of several symbols the lowest address counts. For a variable of each CPU, the
    /// distance from the beginning of that CPU's variables.
    pub fn address(&self, name: &str) -> Option<u64> {
        let (found, address) = self.named(self.first_named(name))?;
        (found == name).then_some(address)
    }

    /// The name and the address of every symbol whose name begins with `prefix`, by name.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        (self.first_named(prefix)..)
            .map_while(|n| self.named(n))
            .take_while(move |(name, _)| name.starts_with(prefix))
    }

    /// The name, the address and the kind (as nm(1) writes it) of every symbol, by address.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, u64, u8)> {
        let kinds = self.part(KINDS).iter();
        kinds.enumerate().filter_map(|(n, kind)| Some((self.name(n)?, self.symbol(n)?, *kind)))
    }

    /// The addresses at which another function begins, rising, each with whether there is code from there on. Where
    /// there is none, the kernel's code or that of a module ends.
    pub fn function_starts(&self) -> Vec<(u64, bool)> {
        let regions = (0..self.part(REGIONS).len() / REGION).filter_map(|n| self.region_at(n));
        let mut starts: BTreeMap<u64, bool> = BTreeMap::new();
        for (region, _) in regions {
            let count = self.part(KINDS).len();
            let from =
                partition_point(0, count, |n| self.symbol(n).is_some_and(|a| a < region.start));
            let inside = (from..count)
                .map_while(|n| Some((self.symbol(n)?, *self.part(KINDS).get(n)?)))
                .take_while(|(at, _)| *at < region.end);
            starts.extend(inside.filter(|(_, kind)| is_code(*kind)).map(|(at, _)| (at, true)));
            starts.entry(region.end).or_insert(false);
        }
        starts.into_iter().collect()
    }

    /// The place of an instruction. `None` if there is no code.
    pub fn resolve(&self, address: u64) -> Option<CodePlace<'_>> {
        let (region, module) = self.region(address)?;
        let count = self.part(KINDS).len();
        let mut n = partition_point(0, count, |n| self.symbol(n).is_some_and(|a| a <= address));
        let mut found: Option<(usize, u64)> = None;
        while n > 0 {
            n -= 1;
            let at = self.symbol(n)?;
            if at < region.start || found.is_some_and(|(_, of_found)| at != of_found) {
                break;
            }
            if self.part(KINDS).get(n).is_some_and(|kind| is_code(*kind)) {
                found = Some((n, at));
            }
        }
        let (n, at) = found?;
        Some(CodePlace { symbol: self.name(n)?, offset: address.checked_sub(at)?, module })
    }

    /// The place of the call that returns to `address`. If a function ends with a call that never returns, `address` is
    /// in the next function. As in the kernel's own stacks, the offset is that of `address`.
    pub fn resolve_return(&self, address: u64) -> Option<CodePlace<'_>> {
        let place = self.resolve(address.checked_sub(1)?)?;
        Some(CodePlace { offset: place.offset + 1, ..place })
    }

    /// The places in which the kernel keeps the things that an observer follows.
    pub fn layout(&self) -> Layout {
        let fact = |n: usize| u64_at(self.part(FACTS), 16 + 8 * n).filter(|f| *f != u64::MAX);
        Layout::from_fields(std::array::from_fn(fact))
    }

    /// The facts that this kernel does not tell, each with the reason, as lines for the user.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let text = self.part(FACTS).get(MISSING_AT..).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default().lines()
    }

    /// The names of the modules that have code, by address.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        let regions = self.part(REGIONS).len() / REGION;
        (0..regions).filter_map(|n| self.region_at(n)?.1)
    }

    /// Whether stacks can be unwound at all.
    pub fn unwinds(&self) -> bool {
        !self.part(ORC_IPS).is_empty()
    }

    /// How to find the caller's frame at the instruction at `ip`.
    pub(crate) fn orc(&self, ip: u64) -> Option<Entry> {
        let low = (ip >> 32 == UPPER).then_some(ip as u32)?;
        let (ips, blocks) = (self.part(ORC_IPS), self.part(ORC_BLOCKS));
        let block = |n: usize| u32_at(blocks, 4 * n).map(|n| n as usize);
        let base = u64_at(self.part(FACTS), 0)? as u32;
        let inside = low.checked_sub(base).map(|distance| (distance / BLOCK) as usize);
        let (from, to) =
            inside.and_then(|n| block(n).zip(block(n + 1))).unwrap_or((0, ips.len() / 4));
        let next = partition_point(from, to, |n| u32_at(ips, 4 * n).is_some_and(|ip| ip <= low));
        let at = next.checked_sub(1)?.checked_mul(ENTRY)?;
        array_at(self.part(ORC_ENTRIES), at).map(Entry::from_bytes)
    }

    /// The instruction with which a new task begins.
    pub(crate) fn new_task(&self) -> Option<u64> {
        u64_at(self.part(FACTS), 8)
    }

    fn part(&self, n: usize) -> &[u8] {
        self.bytes.as_ref().get(self.parts[n].clone()).unwrap_or_default()
    }

    fn symbol(&self, n: usize) -> Option<u64> {
        u64_at(self.part(ADDRESSES), 8 * n)
    }

    fn name(&self, n: usize) -> Option<&str> {
        text_at(self.part(TEXT), u32_at(self.part(NAMES), 4 * n)? as usize)
    }

    /// The `n`th symbol in the order of names.
    fn named(&self, n: usize) -> Option<(&str, u64)> {
        let symbol = u32_at(self.part(BY_NAME), 4 * n)? as usize;
        Some((self.name(symbol)?, self.symbol(symbol)?))
    }

    /// The place, in the order of names, of the first symbol that is not before `name`.
    fn first_named(&self, name: &str) -> usize {
        let is_before = |n: usize| self.named(n).is_some_and(|(found, _)| found < name);
        partition_point(0, self.part(BY_NAME).len() / 4, is_before)
    }

    fn region_at(&self, n: usize) -> Option<(Range<u64>, Option<&str>)> {
        let field = |field: usize| u64_at(self.part(REGIONS), REGION * n + 8 * field);
        let name = text_at(self.part(TEXT), usize::try_from(field(2)?).ok()?)?;
        Some((field(0)?..field(1)?, (!name.is_empty()).then_some(name)))
    }

    fn region(&self, address: u64) -> Option<(Range<u64>, Option<&str>)> {
        let is_before = |n: usize| self.region_at(n).is_some_and(|(r, _)| r.start <= address);
        let next = partition_point(0, self.part(REGIONS).len() / REGION, is_before);
        self.region_at(next.checked_sub(1)?).filter(|(region, _)| region.contains(&address))
    }
}

/// Whether symbols of this kind (as nm(1) writes it) name instructions.
fn is_code(kind: u8) -> bool {
    matches!(kind, b't' | b'T' | b'w' | b'W')
}

/// The first number from `from` to `to` for which `is_before` no longer holds.
fn partition_point(mut from: usize, mut to: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = from + (to - from) / 2;
        if is_before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}
