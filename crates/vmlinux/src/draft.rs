// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a map: gathers all facts, sorts them and writes them once.

use crate::map::{
    ADDRESSES, BLOCK, BY_NAME, FACTS, KINDS, MAGIC, NAMES, ORC_BLOCKS, ORC_ENTRIES, ORC_IPS, PARTS,
    REGIONS, TEXT, VERSION,
};
use crate::modules::{Module, modules};
use crate::x86_64::orc::{Entry, Kind};
use crate::x86_64::thunks::know_thunks;
use crate::x86_64::{NEW_TASK, UPPER};
use crate::{Error, Image, Layout, Map, Memory, Symbol};
use std::ops::Range;

type Parts = [Vec<u8>; PARTS];

impl Map {
    /// The map of a running kernel: of its image, and of the modules in its `memory`.
    ///
    /// # Errors
    /// [`Error::TooLarge`]. Facts that the kernel does not tell are no errors: [`Map::missing`] lists them.
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
        let new_task = NEW_TASK.iter().find_map(|name| image.address(name)).unwrap_or(u64::MAX);
        let facts = [base, new_task].into_iter().chain(fields.map(|f| f.unwrap_or(u64::MAX)));
        parts[FACTS] = facts.flat_map(u64::to_le_bytes).collect();
        parts[FACTS].extend_from_slice(missing.join("\n").as_bytes());
        Map::from_bytes(joined(&parts)?)
    }
}

/// The map's part for names.
struct Text(Vec<u8>);

impl Text {
    /// Adds a name, and returns its place.
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
    // The sort is stable: of several symbols at one address, the kernel's first symbol stays first.
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
    for module in modules.iter().filter(|m| !m.code.is_empty()) {
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

/// Writes the unwind tables of kernel and modules as one table. Returns the address of the first block of its index.
fn orc(parts: &mut Parts, image: &Image, modules: &[Module]) -> u64 {
    let Ok((_, of_image)) = &image.orc else {
        return u64::MAX;
    };
    let ends = image.code.iter().chain(modules.iter().map(|m| &m.code)).map(|r| r.end);
    // Behind the last instruction of a stretch nothing is known, whatever the entry before that says.
    let mut all: Vec<(u64, Entry)> = ends.map(|end| (end, Entry::UNDEFINED)).collect();
    all.extend(of_image.iter().chain(modules.iter().flat_map(|m| &m.orc)));
    all.retain(|(ip, _)| ip >> 32 == UPPER);
    know_thunks(&mut all, image);
    // This is the order of the kernel's own orc_sort_cmp(). Of two entries at one address the last one holds. An entry
    // that says nothing only ends the entry before it.
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
    if !is_covered {
        return u64::MAX;
    }
    let mut next = 0;
    for block in (start..end).step_by(BLOCK as usize).chain([end]) {
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
    let mut at = bytes.len() + 8 * PARTS;
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

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: u64 = 0xffff_ffff_8100_0000;

    struct Nothing;

    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    fn map() -> Map {
        let symbol =
            |address: u64, kind: u8, name: &str| Symbol { address, kind, name: name.into() };
        let image = Image {
            symbols: vec![
                symbol(0x40, b'A', "pcpu_hot"),
                symbol(CODE, b'T', "first"),
                symbol(CODE, b't', "alias"),
                symbol(CODE + 0x10, b't', "same"),
                symbol(CODE + 0x18, b'r', "table"),
                symbol(CODE + 0x20, b't', "same"),
                symbol(CODE + 0x1000, b'D', "modules"),
            ],
            btf: Err("there are no types"),
            orc: Err("there is no table"),
            code: std::iter::once(CODE..CODE + 0x40).collect(),
            instructions: Vec::new(),
        };
        Map::of(&image, &Nothing).unwrap()
    }

    #[test]
    fn an_address_is_named_by_the_first_function_before_it() {
        let map = map();
        let place = |address: u64| map.resolve(address).map(|p| p.to_string());
        let found = [0, 0xf, 0x10, 0x1f, 0x3f].map(|offset| place(CODE + offset).unwrap());
        assert_eq!(found, ["first+0x0", "first+0xf", "same+0x0", "same+0xf", "same+0x1f"]);
        assert_eq!([CODE - 1, CODE + 0x40, CODE + 0x1000, 0x40].map(place), [const { None }; 4]);
        let module = crate::CodePlace { symbol: "f", offset: 16, module: Some("ext4") };
        assert_eq!(module.to_string(), "f+0x10 [ext4]");
    }

    #[test]
    fn a_function_begins_at_each_address_that_has_one_and_none_where_code_ends() {
        let starts = [(CODE, true), (CODE + 0x10, true), (CODE + 0x20, true), (CODE + 0x40, false)];
        assert_eq!(map().function_starts(), starts);
    }

    #[test]
    fn a_name_has_its_lowest_address_and_a_prefix_all_of_them() {
        let map = map();
        let found = ["pcpu_hot", "alias", "same", "modules", "sam", "z"].map(|n| map.address(n));
        let at = [Some(0x40), Some(CODE), Some(CODE + 0x10), Some(CODE + 0x1000), None, None];
        assert_eq!(found, at);
        let same: Vec<_> = map.with_prefix("sa").collect();
        assert_eq!(same, [("same", CODE + 0x10), ("same", CODE + 0x20)]);
        assert_eq!(map.with_prefix("").count(), 7);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_named() {
        let map = map();
        let missing: Vec<_> = map.missing().collect();
        let lines = ["modules: ", "tasks and preemption: ", "stacks: "];
        assert!(missing.iter().zip(lines).all(|(m, l)| m.starts_with(l)), "{missing:?}");
        assert_eq!(missing.len(), lines.len());
        assert_eq!((map.layout(), map.unwinds()), (Layout::default(), false));
    }

    #[test]
    fn thunks_of_indirect_calls_have_the_stack_of_their_caller() {
        let entry = |kind: Kind, sp_offset: i16| Entry {
            sp_offset,
            sp: crate::x86_64::orc::Base::Sp,
            kind,
            ..Entry::UNDEFINED
        };
        let thunk = CODE + 0x20;
        let image = Image {
            symbols: vec![Symbol {
                address: thunk,
                kind: b't',
                name: "__x86_indirect_thunk_r15".into(),
            }],
            btf: Err("there are no types"),
            orc: Ok((
                crate::x86_64::orc::Format::KindsOf3Bits,
                vec![
                    (CODE, entry(Kind::Call, 40)),
                    (thunk, Entry::UNDEFINED),
                    (thunk + 10, entry(Kind::Call, 8)),
                    (thunk + 15, Entry::UNDEFINED),
                ],
            )),
            code: std::iter::once(CODE..CODE + 0x40).collect(),
            instructions: Vec::new(),
        };
        let map = Map::of(&image, &Nothing).unwrap();
        let offset = |at: u64| map.orc(at).filter(|e| e.kind == Kind::Call).map(|e| e.sp_offset);
        let found = [thunk - 1, thunk, thunk + 5, thunk + 6, thunk + 10, thunk + 15].map(offset);
        assert_eq!(found, [Some(40), Some(8), Some(8), Some(16), Some(16), None]);
    }

    #[test]
    fn a_map_of_another_version_or_a_torn_one_is_refused() {
        let whole = map().to_bytes().to_vec();
        for length in 0..whole.len() - 8 {
            assert!(Map::from_bytes(&whole[..length]).is_err(), "{length}");
        }
        let mut other = whole;
        other[8] += 1;
        let refused = Map::from_bytes(other).unwrap_err();
        assert_eq!(refused, Error::MapVersion(VERSION + 1, VERSION));
    }
}
