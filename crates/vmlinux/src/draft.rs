// SPDX-License-Identifier: GPL-2.0-or-later
//! Making a map: everything is gathered, sorted and written once.

use crate::map::{
    ADDRESSES, BLOCK, BY_NAME, FACTS, HEADER, KINDS, MAGIC, NAMES, ORC_BLOCKS, ORC_ENTRIES,
    ORC_IPS, PARTS, REGIONS, TEXT, UPPER, VERSION,
};
use crate::modules::{Module, modules};
use crate::orc::{Entry, Kind};
use crate::{Error, Image, Layout, Map, Memory, Symbol};
use std::ops::Range;

type Parts = [Vec<u8>; PARTS];

impl Map {
    /// The map of a kernel that runs: of its image, and of the modules that are found in its `memory`.
    ///
    /// # Errors
    /// [`Error::TooLarge`]. What the kernel does not tell is in [`Map::missing`] instead.
    pub fn of(image: &Image, memory: &dyn Memory) -> Result<Map, Error> {
        let found = modules(image, memory);
        let mut missing = found.missing;
        let mut say = |view: &str, why: &str| missing.push(format!("{view}: {why}"));
        if let Err(why) = &image.btf {
            say("tasks and preemption", why);
        }
        if let Err(why) = &image.orc {
            say("stacks", why);
        }
        let mut parts = Parts::default();
        let mut text = Text(vec![0]);
        symbols(&mut parts, &mut text, image, &found.modules)?;
        regions(&mut parts, &mut text, image, &found.modules)?;
        parts[TEXT] = text.0;
        let base = orc(&mut parts, image, &found.modules);
        let fields = Layout::of(image).fields();
        let facts = std::iter::once(base).chain(fields.map(|f| f.unwrap_or(u64::MAX)));
        parts[FACTS] = facts.flat_map(u64::to_le_bytes).collect();
        parts[FACTS].extend_from_slice(missing.join("\n").as_bytes());
        Map::from_bytes(joined(&parts)?)
    }
}

/// A part for names.
struct Text(Vec<u8>);

impl Text {
    /// Adds a name and says where it is.
    fn add(&mut self, name: &str) -> Result<u32, Error> {
        let at = u32::try_from(self.0.len()).map_err(|_| Error::TooLarge("names"))?;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        Ok(at)
    }
}

fn symbols(
    parts: &mut Parts,
    text: &mut Text,
    image: &Image,
    modules: &[Module],
) -> Result<(), Error> {
    let of_modules = modules.iter().flat_map(|module| &module.symbols);
    let mut symbols: Vec<&Symbol> = image.symbols.iter().chain(of_modules).collect();
    // Stable, so that of several at one address the one stays first that the kernel has first.
    symbols.sort_by_key(|s| s.address);
    let count = u32::try_from(symbols.len()).map_err(|_| Error::TooLarge("symbols"))?;
    for symbol in &symbols {
        parts[ADDRESSES].extend_from_slice(&symbol.address.to_le_bytes());
        parts[NAMES].extend_from_slice(&text.add(&symbol.name)?.to_le_bytes());
        parts[KINDS].push(symbol.kind);
    }
    let mut by_name: Vec<u32> = (0..count).collect();
    by_name.sort_by_key(|n| (&symbols[*n as usize].name, *n));
    parts[BY_NAME] = by_name.into_iter().flat_map(u32::to_le_bytes).collect();
    Ok(())
}

fn regions(
    parts: &mut Parts,
    text: &mut Text,
    image: &Image,
    modules: &[Module],
) -> Result<(), Error> {
    let mut regions: Vec<(Range<u64>, u32)> = image.code.iter().map(|r| (r.clone(), 0)).collect();
    for module in modules {
        regions.push((module.code.clone(), text.add(&module.name)?));
    }
    regions.sort_by_key(|(region, _)| region.start);
    for (region, name) in regions {
        for field in [region.start, region.end, name.into()] {
            parts[REGIONS].extend_from_slice(&field.to_le_bytes());
        }
    }
    Ok(())
}

/// Writes the unwind tables of kernel and modules as one, and returns where the first block of its index begins.
fn orc(parts: &mut Parts, image: &Image, modules: &[Module]) -> u64 {
    let Ok((_, of_image)) = &image.orc else {
        return u64::MAX;
    };
    let ends = image.code.iter().chain(modules.iter().map(|m| &m.code)).map(|r| r.end);
    // Behind the last instruction of a stretch nothing is known, whatever the entry before says.
    let mut all: Vec<(u64, Entry)> = ends.map(|end| (end, Entry::UNDEFINED)).collect();
    all.extend(of_image.iter().chain(modules.iter().flat_map(|m| &m.orc)));
    all.retain(|(ip, _)| ip >> 32 == UPPER);
    // As the kernel's own orc_sort_cmp(): of two entries at one address the last holds, and one that says nothing is
    // but the end of what was before it.
    all.sort_by_key(|(ip, entry)| (*ip, entry.kind != Kind::Undefined));
    for (ip, entry) in &all {
        parts[ORC_IPS].extend_from_slice(&(*ip as u32).to_le_bytes());
        parts[ORC_ENTRIES].extend_from_slice(&entry.to_bytes());
    }
    let (start, end) = image
        .code
        .iter()
        .fold((u64::MAX, 0), |(start, end), region| (start.min(region.start), end.max(region.end)));
    let is_covered = start < end && start >> 32 == UPPER && end >> 32 == UPPER;
    let mut next = 0;
    for block in (start..end).step_by(BLOCK as usize).chain([end]).filter(|_| is_covered) {
        while all.get(next).is_some_and(|(ip, _)| *ip < block) {
            next += 1;
        }
        parts[ORC_BLOCKS].extend_from_slice(&(next as u32).to_le_bytes());
    }
    start
}

fn joined(parts: &Parts) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::from(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    let mut at = HEADER;
    let number = |n: usize| u32::try_from(n).map_err(|_| Error::TooLarge("of everything"));
    for part in parts {
        bytes.extend_from_slice(&number(at)?.to_le_bytes());
        bytes.extend_from_slice(&number(part.len())?.to_le_bytes());
        at = (at + part.len()).next_multiple_of(8);
    }
    for part in parts {
        bytes.extend_from_slice(part);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    Ok(bytes)
}
