// SPDX-License-Identifier: GPL-2.0-or-later
//! The symbol table that a kernel carries for itself (scripts/kallsyms.c, kernel/kallsyms.c).
//!
//! Nothing says where in `.rodata` it is, so it is found by its structure, from the most peculiar part on: 256 rising
//! numbers, each of which points behind a NUL of the text before them. Every further part has to fit to those found.
//! Two orders are known: since 6.4 the offsets are behind the other parts, before that in front of
//! them. Each part begins at a multiple of 8 bytes.

use crate::Error;
use crate::image::Symbol;
use crate::little_endian::{u16_at, u32_at, u64_at};

/// Tokens that names are made of: one for each byte.
const TOKENS: usize = 256;
/// Longest token, in bytes: a token stands for pairs of tokens, and real tables have up to some 40.
const TOKEN_MAX: usize = 512;
/// Every so many names there is a marker.
const MARKER_EVERY: usize = 256;
/// Most symbols; kernels have some 200,000. Bounds the search.
const SYMBOLS_MAX: usize = 1 << 22;
/// Where an x86-64 kernel is linked (`__START_KERNEL_map`).
const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// The table's symbols, in its order: by address, those that the kernel itself prefers among equals first.
pub(crate) fn symbols(rodata: &[u8]) -> Result<Vec<Symbol>, Error> {
    let tokens = Tokens::find(rodata).ok_or(Error::Kallsyms("its tokens were not found"))?;
    let names = Names::find(rodata, tokens.table)
        .ok_or(Error::Kallsyms("its names were not found before its tokens"))?;
    let addresses = addresses(rodata, &names, &tokens)
        .ok_or(Error::Kallsyms("its addresses were not found around its names"))?;
    let mut symbols = Vec::with_capacity(names.count);
    let mut at = names.start;
    for address in addresses {
        let (from, length) = name(rodata, at).ok_or(Error::Kallsyms("a name is cut short"))?;
        at = from + length;
        let text: Vec<u8> = rodata[from..at]
            .iter()
            .flat_map(|token| tokens.text(rodata, *token))
            .copied()
            .collect();
        let (kind, text) = text.split_first().ok_or(Error::Kallsyms("a name is empty"))?;
        let name = std::str::from_utf8(text).map_err(|_| Error::Kallsyms("a name is no text"))?;
        symbols.push(Symbol { address, kind: *kind, name: name.to_string() });
    }
    Ok(symbols)
}

/// The next multiple of 8.
fn aligned(n: usize) -> usize {
    n.next_multiple_of(8)
}

/// Where the tokens are, as offsets into `.rodata`.
struct Tokens {
    table: usize,
    index: usize,
    starts: Vec<usize>,
}

impl Tokens {
    fn find(rodata: &[u8]) -> Option<Tokens> {
        (0..rodata.len()).step_by(8).find_map(|at| Tokens::at(rodata, at))
    }

    /// The tokens whose index is at `at`.
    fn at(rodata: &[u8], at: usize) -> Option<Tokens> {
        let start = |n: usize| u16_at(rodata, at + 2 * n).map(usize::from);
        // What nearly every place fails at.
        if start(0)? != 0 || start(1)? < 2 {
            return None;
        }
        let starts = (0..TOKENS).map(start).collect::<Option<Vec<usize>>>()?;
        if starts.windows(2).any(|pair| pair[1] < pair[0] + 2 || pair[1] - pair[0] > TOKEN_MAX) {
            return None;
        }
        // The end of the last token is not in the index, and what is behind it is filled with NULs.
        let shortest = starts[TOKENS - 1] + 2;
        let lengths = (aligned(shortest)..=aligned(shortest + TOKEN_MAX)).step_by(8);
        let fits = |table: usize| {
            let text = &rodata[table..at];
            let (tokens, last) = text.split_at(starts[TOKENS - 1]);
            let ends = |pair: &[usize]| {
                let token = &tokens[pair[0]..pair[1]];
                token.iter().position(|b| *b == 0) == Some(token.len() - 1)
            };
            let end = last.iter().position(|b| *b == 0);
            starts.windows(2).all(ends)
                && end.is_some_and(|end| end > 0 && last.len() - end <= 8)
                && last[end.unwrap_or(0)..].iter().all(|b| *b == 0)
        };
        let table = lengths.map_while(|length| at.checked_sub(length)).find(|t| fits(*t))?;
        Some(Tokens { table, index: at, starts })
    }

    fn text<'a>(&self, rodata: &'a [u8], token: u8) -> &'a [u8] {
        let from = self.table + self.starts[usize::from(token)];
        let end = rodata[from..self.index].iter().position(|b| *b == 0).unwrap_or(0);
        &rodata[from..from + end]
    }
}

/// Where the names are.
struct Names {
    /// How many.
    count: usize,
    /// Where their number is, which the first name follows after 8 bytes.
    number: usize,
    /// Where the first is.
    start: usize,
}

impl Names {
    /// The names whose markers, or the order of names that was between them in 6.2 and 6.3, end at
    /// `table`.
    fn find(rodata: &[u8], table: usize) -> Option<Names> {
        (0..table).step_by(8).rev().find_map(|number| {
            let count = u32_at(rodata, number)? as usize;
            if count == 0 || count > SYMBOLS_MAX || u32_at(rodata, number + 4)? != 0 {
                return None;
            }
            let names = Names { count, number, start: number + 8 };
            let length = aligned(4 * count.div_ceil(MARKER_EVERY));
            let behind = [0, aligned(3 * count)];
            let markers = behind.iter().filter_map(|b| table.checked_sub(b + length));
            markers.into_iter().any(|markers| names.fit(rodata, markers)).then_some(names)
        })
    }

    /// Whether the names end where the markers begin, and each marker is the place of its name.
    fn fit(&self, rodata: &[u8], markers: usize) -> bool {
        // What nearly every place fails at: a name takes at least two bytes.
        if u32_at(rodata, markers) != Some(0) || self.start + 2 * self.count > markers {
            return false;
        }
        let mut at = self.start;
        for n in 0..self.count {
            let marker = || u32_at(rodata, markers + n / MARKER_EVERY * 4);
            if n % MARKER_EVERY == 0 && marker() != u32::try_from(at - self.start).ok() {
                return false;
            }
            match name(rodata, at) {
                Some((from, length)) if length > 0 && from + length <= markers => {
                    at = from + length;
                }
                _ => return false,
            }
        }
        aligned(at) == markers
    }
}

/// Where the tokens of the name at `at` begin, and how many they are. A length from 128 on has two bytes (since 6.1).
fn name(rodata: &[u8], at: usize) -> Option<(usize, usize)> {
    match usize::from(*rodata.get(at)?) {
        length if length < 128 => Some((at + 1, length)),
        low => Some((at + 2, low & 127 | usize::from(*rodata.get(at + 1)?) << 7)),
    }
}

/// The addresses of the names: those that rise, as they do in every such table.
fn addresses(rodata: &[u8], names: &Names, tokens: &Tokens) -> Option<Vec<u64>> {
    let length = aligned(4 * names.count);
    let behind = tokens.index + 2 * TOKENS;
    let before = names.number.checked_sub(8);
    let places = [
        Some((behind, behind + length)),
        before.and_then(|base| Some((base.checked_sub(length)?, base))),
    ];
    places.into_iter().flatten().find_map(|(offsets, base)| {
        let base = u64_at(rodata, base).filter(|base| *base >= KERNEL)?;
        let offset = |n: usize| u32_at(rodata, offsets + 4 * n);
        let offsets = (0..names.count).map(offset).collect::<Option<Vec<u32>>>()?;
        // CONFIG_KALLSYMS_ABSOLUTE_PERCPU (SMP before 6.15): an offset that is not negative is an address itself,
        // a negative one counts from the base on, downwards from -1. No kernel is half of 4 GiB large.
        let is_absolute_percpu = offsets.iter().any(|o| (*o as i32) < 0);
        let address = |offset: &u32| match *offset as i32 {
            negative if negative < 0 => base.wrapping_add(u64::from(!*offset)),
            absolute if is_absolute_percpu => absolute as u64,
            _ => base.wrapping_add(u64::from(*offset)),
        };
        let addresses: Vec<u64> = offsets.iter().map(address).collect();
        addresses.is_sorted().then_some(addresses)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pad(bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }

    /// A table of names without compression (each token one character), with `behind` in front of it.
    fn table(symbols: &[(u64, &str)], offsets_last: bool, percpu: bool) -> Vec<u8> {
        let base = KERNEL + 0x100_0000;
        let offset = |address: u64| match address.checked_sub(base) {
            Some(offset) if percpu => !(offset as u32),
            Some(offset) => offset as u32,
            None => address as u32,
        };
        let mut offsets = Vec::new();
        symbols.iter().for_each(|(a, _)| offsets.extend_from_slice(&offset(*a).to_le_bytes()));
        pad(&mut offsets);
        offsets.extend_from_slice(&base.to_le_bytes());

        let mut bytes = vec![0xaa; 1024];
        if !offsets_last {
            bytes.extend_from_slice(&offsets);
        }
        bytes.extend_from_slice(&(symbols.len() as u64).to_le_bytes());
        let (start, mut markers) = (bytes.len(), Vec::new());
        for (n, (_, name)) in symbols.iter().enumerate() {
            if n % MARKER_EVERY == 0 {
                markers.extend_from_slice(&((bytes.len() - start) as u32).to_le_bytes());
            }
            match name.len() {
                length if length < 128 => bytes.push(length as u8),
                length => bytes.extend_from_slice(&[128 | length as u8, (length >> 7) as u8]),
            }
            bytes.extend_from_slice(name.as_bytes());
        }
        pad(&mut bytes);
        bytes.extend_from_slice(&markers);
        pad(&mut bytes);
        for token in 0..TOKENS {
            bytes.extend_from_slice(&[if token == 0 { 1 } else { token as u8 }, 0]);
        }
        (0..TOKENS).for_each(|n| bytes.extend_from_slice(&(2 * n as u16).to_le_bytes()));
        if offsets_last {
            bytes.extend_from_slice(&offsets);
        }
        bytes.extend_from_slice(&[0x55; 64]);
        bytes
    }

    #[test]
    fn a_table_is_found_in_each_order_and_encoding() {
        let long = format!("t{}", "x".repeat(300));
        let text = KERNEL + 0x100_0000;
        let mut given = vec![(text, "Tstart".to_string()), (text + 16, long)];
        given.extend((0..600).map(|n| (text + 32 + n, format!("tf{n}"))));
        for percpu in [false, true] {
            if percpu {
                given.insert(0, (0x40, "Acpu_variable".to_string()));
            }
            let given: Vec<(u64, &str)> = given.iter().map(|(a, n)| (*a, n.as_str())).collect();
            for offsets_last in [false, true] {
                let found = symbols(&table(&given, offsets_last, percpu)).unwrap();
                let found: Vec<(u64, String)> = found
                    .into_iter()
                    .map(|s| (s.address, format!("{}{}", char::from(s.kind), s.name)))
                    .collect();
                let found: Vec<(u64, &str)> = found.iter().map(|(a, n)| (*a, n.as_str())).collect();
                assert_eq!(found, given, "{percpu} {offsets_last}");
            }
        }
    }

    #[test]
    fn a_table_that_is_damaged_is_not_found() {
        let text = KERNEL + 0x100_0000;
        let whole = table(&[(text, "Tstart"), (text + 16, "tnext")], true, true);
        assert!(symbols(&whole).is_ok());
        for length in 0..whole.len() - 64 {
            assert!(symbols(&whole[..length]).is_err(), "{length}");
        }
    }
}
