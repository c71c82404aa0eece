// SPDX-License-Identifier: GPL-2.0-or-later
//! The modules of a running kernel, read from its memory. The kernel's list `modules` leads to them, by the offsets
//! that the kernel's own types give (include/linux/module.h).

use crate::image::{Image, Symbol};
use crate::x86_64::PAGE;
use crate::x86_64::orc::{ENTRY, Entry, OF_MODULE};
use crate::{Btf, Memory};
use std::ops::Range;

/// The most modules, and below the most symbols or unwind entries of one module. Memory that was read at a bad moment
/// may hold anything. Debian's largest modules have some 20,000 symbols.
const MODULES_MAX: usize = 4096;
const ITEMS_MAX: u32 = 1 << 20;
/// `MODULE_STATE_UNFORMED`: the kernel has not set up anything of the module yet.
const UNFORMED: u32 = 3;
/// The bytes of an `Elf64_Sym`.
const SYMBOL: usize = 24;
/// The longest name (`KSYM_NAME_LEN`).
const NAME_MAX: usize = 512;

/// A module of the running kernel.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub name: String,
    /// The addresses of the module's instructions.
    pub code: Range<u64>,
    pub symbols: Vec<Symbol>,
    pub orc: Vec<(u64, Entry)>,
}

/// The modules that were found, and the parts of them that were not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub modules: Vec<Module>,
    pub missing: Vec<String>,
}

/// Reads all modules of the running kernel.
pub(crate) fn modules(image: &Image, memory: &dyn Memory) -> Found {
    let mut found = Found::default();
    if let Err(why) = walk(image, memory, &mut found) {
        found.missing.push(format!("modules: {why}"));
    }
    found
}

fn walk(image: &Image, memory: &dyn Memory, found: &mut Found) -> Result<(), &'static str> {
    let btf = image.btf.as_ref().map_err(|why| *why)?;
    let head = image.address("modules").ok_or("the kernel does not name their list")?;
    let members = Members::of(btf).ok_or("the kernel's type of a module is of no known form")?;
    let mut at = u64_in(memory, head).ok_or("their list is not readable")?;
    for _ in 0..MODULES_MAX {
        if at == head {
            return Ok(());
        }
        let start = at.wrapping_sub(members.list);
        let state = u32_in(memory, start.wrapping_add(members.state));
        if state.ok_or("their list is not readable")? != UNFORMED {
            let module = read(image, &members, memory, start, &mut found.missing);
            found.modules.push(module.ok_or("one of them is not readable")?);
        }
        at = u64_in(memory, at).ok_or("their list is not readable")?;
    }
    Err("their list has no end")
}

/// The offsets in a `struct module` and in a `struct mod_kallsyms`.
struct Members {
    list: u64,
    state: u64,
    name: u64,
    base: u64,
    size: u64,
    kallsyms: u64,
    symtab: u64,
    count: u64,
    strtab: u64,
    typetab: u64,
    orcs: Option<[u64; 3]>,
}

impl Members {
    fn of(btf: &Btf) -> Option<Members> {
        let module = |path: &str| btf.offset("module", path);
        // Since 6.4 there is an array of pieces. The first piece has the instructions.
        let piece = |path: &str| Some(module("mem")? + btf.offset("module_memory", path)?);
        let table = |path: &str| btf.offset("mod_kallsyms", path);
        let orcs = OF_MODULE.map(module);
        Some(Members {
            list: module("list")?,
            state: module("state")?,
            name: module("name")?,
            base: piece("base").or_else(|| module("core_layout.base"))?,
            size: piece("size").or_else(|| module("core_layout.text_size"))?,
            kallsyms: module("kallsyms")?,
            symtab: table("symtab")?,
            count: table("num_symtab")?,
            strtab: table("strtab")?,
            typetab: table("typetab")?,
            orcs: if let [Some(n), Some(ip), Some(entries)] = orcs {
                Some([n, ip, entries])
            } else {
                None
            },
        })
    }
}

/// The module at `start`. `None` if not even its name and its place can be read.
fn read(
    image: &Image,
    members: &Members,
    memory: &dyn Memory,
    start: u64,
    missing: &mut Vec<String>,
) -> Option<Module> {
    let name = text_in(memory, start.wrapping_add(members.name))?;
    let base = u64_in(memory, start.wrapping_add(members.base))?;
    let size = u32_in(memory, start.wrapping_add(members.size))?;
    let symbols = symbols(members, memory, start).unwrap_or_else(|| {
        missing.push(format!("symbols of the module {name}: they are not readable"));
        Vec::new()
    });
    let mut orc = orc(image, members, memory, start).unwrap_or_else(|| {
        missing.push(format!("stacks through the module {name}: its unwind table is not readable"));
        Vec::new()
    });
    let code = base..base.checked_add(size.into())?;
    // The table still names the code that ran at the module's start and was freed. Another module may be there now.
    orc.retain(|(ip, _)| code.contains(ip));
    Some(Module { name, code, symbols, orc })
}

fn symbols(members: &Members, memory: &dyn Memory, start: u64) -> Option<Vec<Symbol>> {
    let table = u64_in(memory, start.wrapping_add(members.kallsyms))?;
    let symtab = u64_in(memory, table.wrapping_add(members.symtab))?;
    let count = u32_in(memory, table.wrapping_add(members.count))?;
    let strtab = u64_in(memory, table.wrapping_add(members.strtab))?;
    let typetab = u64_in(memory, table.wrapping_add(members.typetab))?;
    let kinds = bytes_in(memory, typetab, count, 1)?;
    let table = bytes_in(memory, symtab, count, SYMBOL)?;
    let mut symbols = Vec::new();
    for (symbol, kind) in table.chunks_exact(SYMBOL).zip(kinds) {
        let name = u32::from_le_bytes(symbol[..4].try_into().ok()?);
        let name = text_in(memory, strtab.wrapping_add(name.into()))?;
        let address = u64::from_le_bytes(symbol[8..16].try_into().ok()?);
        if !name.is_empty() {
            symbols.push(Symbol { address, kind, name });
        }
    }
    Some(symbols)
}

/// The module's unwind table. Empty for a kernel without such tables.
fn orc(
    image: &Image,
    members: &Members,
    memory: &dyn Memory,
    start: u64,
) -> Option<Vec<(u64, Entry)>> {
    let (Ok((format, _)), Some([count, ip, entries])) = (&image.orc, members.orcs) else {
        return Some(Vec::new());
    };
    let count = u32_in(memory, start.wrapping_add(count))?;
    let at = u64_in(memory, start.wrapping_add(ip))?;
    let entries = u64_in(memory, start.wrapping_add(entries))?;
    let ips = bytes_in(memory, at, count, 4)?;
    let entries = bytes_in(memory, entries, count, ENTRY)?;
    Some(format.table(at, &ips, &entries).collect())
}

fn u64_in(memory: &dyn Memory, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

fn u32_in(memory: &dyn Memory, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(at, &mut bytes).then(|| u32::from_le_bytes(bytes))
}

fn bytes_in(memory: &dyn Memory, at: u64, count: u32, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; (count <= ITEMS_MAX).then_some(count as usize * size)?];
    (count == 0 || memory.read(at, &mut bytes)).then_some(bytes)
}

/// The text at `at`, up to a NUL.
fn text_in(memory: &dyn Memory, mut at: u64) -> Option<String> {
    let mut text = Vec::new();
    while text.len() < NAME_MAX {
        let mut bytes = [0; 64];
        // Beyond the end of its page, a text may be followed by memory that cannot be read.
        let room = (PAGE - at % PAGE).min(bytes.len() as u64) as usize;
        let bytes = &mut bytes[..room];
        if !memory.read(at, bytes) {
            return None;
        }
        let end = bytes.iter().position(|b| *b == 0);
        text.extend_from_slice(&bytes[..end.unwrap_or(room)]);
        if end.is_some() {
            return String::from_utf8(text).ok();
        }
        at = at.wrapping_add(room as u64);
    }
    None
}
