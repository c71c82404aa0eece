// SPDX-License-Identifier: GPL-2.0-or-later
//! The symbol table that a kernel carries for itself (scripts/kallsyms.c, kernel/kallsyms.c).
//!
//! Nothing says where in `.rodata` the table is, so it is found by its structure. The search begins with the most
//! peculiar part: 256 rising numbers, each of which points behind a NUL of the text before them. Every further part has
//! to fit to those found.
//!
//! Three forms are known. Before 6.4 the offsets are in front of the other parts. Since 6.4 they are behind the other
//! parts. In both of these forms each part begins at a multiple of 8 bytes. In 7.x parts begin at multiples of 4, and
//! each address is counted from where its number lies ("kallsyms: use relative relocations for offsets").

use crate::Error;
use crate::image::Symbol;
use crate::little_endian::{u16_at, u32_at, u64_at};
use crate::x86_64::LINKED_FROM;

/// The number of tokens that names are made of: one token for each byte.
const TOKENS: usize = 256;
/// The longest token, in bytes. A token stands for pairs of tokens; real tables have tokens of up to some 40 bytes.
const TOKEN_MAX: usize = 512;
/// The distance between two markers, in names.
const MARKER_EVERY: usize = 256;
/// The most symbols. Kernels have some 200,000. The limit bounds the search.
const SYMBOLS_MAX: usize = 1 << 22;

/// The table's symbols, in its order: by address. Of several symbols at one address, the kernel prefers the first.
///
/// `address` is the address of `rodata`.
pub(crate) fn symbols(rodata: &[u8], address: u64) -> Result<Vec<Symbol>, Error> {
    // By chance the tokens of one form may lie as the tokens of the other form do. If the table cannot be read in one
    // form, it is read in the other.
    symbols_of(Form::Long, rodata, address)
        .or_else(|long| {
            // Of both reasons, the better one is that of the form that was read further.
            symbols_of(Form::Short, rodata, address).map_err(|short| short.max(long))
        })
        .map_err(|missing| Error::Kallsyms(missing.what()))
}

/// The part of a table that was not found. A later part means that more was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    Tokens,
    Names,
    Addresses,
    Text(&'static str),
}

impl Missing {
    fn what(self) -> &'static str {
        match self {
            Missing::Tokens => "its tokens were not found",
            Missing::Names => "its names were not found before its tokens",
            Missing::Addresses => "its addresses were not found around its names",
            Missing::Text(what) => what,
        }
    }
}

fn symbols_of(form: Form, rodata: &[u8], address: u64) -> Result<Vec<Symbol>, Missing> {
    let tokens = Tokens::find(rodata, form).ok_or(Missing::Tokens)?;
    let names = Names::find(rodata, tokens.table, form).ok_or(Missing::Names)?;
    let addresses = match form {
        Form::Long => addresses(rodata, &names, &tokens),
        Form::Short => addresses_from_themselves(rodata, address, &names, &tokens),
    }
    .ok_or(Missing::Addresses)?;
    let mut symbols = Vec::with_capacity(names.count);
    let mut at = names.start;
    for address in addresses {
        let (from, length) = name(rodata, at).ok_or(Missing::Text("a name is cut short"))?;
        at = from + length;
        let text: Vec<u8> = rodata[from..at]
            .iter()
            .flat_map(|token| tokens.text(rodata, *token))
            .copied()
            .collect();
        let (kind, text) = text.split_first().ok_or(Missing::Text("a name is empty"))?;
        let name = std::str::from_utf8(text).map_err(|_| Missing::Text("a name is no text"))?;
        symbols.push(Symbol { address, kind: *kind, name: name.to_string() });
    }
    Ok(symbols)
}

/// How the parts of a table lie, and how it writes addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Parts begin at multiples of 8 bytes. Addresses count from a base that is part of the table.
    Long,
    /// Parts begin at multiples of 4 bytes. Each address counts from the place at which it is written.
    Short,
}

impl Form {
    /// The alignment of the parts, in bytes.
    fn alignment(self) -> usize {
        match self {
            Form::Long => 8,
            Form::Short => 4,
        }
    }

    fn aligned(self, n: usize) -> usize {
        n.next_multiple_of(self.alignment())
    }
}

/// The places of the tokens, as offsets into `.rodata`.
struct Tokens {
    table: usize,
    index: usize,
    starts: Vec<usize>,
}

impl Tokens {
    fn find(rodata: &[u8], form: Form) -> Option<Tokens> {
        let places = (0..rodata.len()).step_by(form.alignment());
        places.into_iter().find_map(|at| Tokens::at(rodata, at, form))
    }

    /// The tokens, if their index is at `at`.
    fn at(rodata: &[u8], at: usize, form: Form) -> Option<Tokens> {
        let start = |n: usize| u16_at(rodata, at + 2 * n).map(usize::from);
        // Nearly every place fails at this test.
        if start(0)? != 0 || start(1)? < 2 {
            return None;
        }
        let starts = (0..TOKENS).map(start).collect::<Option<Vec<usize>>>()?;
        if starts.windows(2).any(|pair| pair[1] < pair[0] + 2 || pair[1] - pair[0] > TOKEN_MAX) {
            return None;
        }
        // The index does not have the end of the last token. The bytes behind this token are filled with NULs.
        let shortest = starts[TOKENS - 1] + 2;
        let (first, last) = (form.aligned(shortest), form.aligned(shortest + TOKEN_MAX));
        let lengths = (first..=last).step_by(form.alignment());
        let fits = |table: usize| {
            let text = &rodata[table..at];
            let (tokens, last) = text.split_at(starts[TOKENS - 1]);
            let ends = |pair: &[usize]| {
                let token = &tokens[pair[0]..pair[1]];
                token.iter().position(|b| *b == 0) == Some(token.len() - 1)
            };
            let end = last.iter().position(|b| *b == 0);
            starts.windows(2).all(ends)
                && end.is_some_and(|end| end > 0 && last.len() - end <= form.alignment())
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

/// The place of the names.
struct Names {
    /// The number of names.
    count: usize,
    /// The place of this number. The first name follows it.
    number: usize,
    /// The place of the first name.
    start: usize,
}

impl Names {
    /// The names before `table`. Their markers end there, or the order of names that 6.2 and 6.3 have in
    /// between.
    fn find(rodata: &[u8], table: usize, form: Form) -> Option<Names> {
        (0..table).step_by(form.alignment()).rev().find_map(|number| {
            let count = u32_at(rodata, number)? as usize;
            let is_filled = form == Form::Long && u32_at(rodata, number + 4)? != 0;
            if count == 0 || count > SYMBOLS_MAX || is_filled {
                return None;
            }
            let names = Names { count, number, start: number + form.alignment() };
            let length = form.aligned(4 * count.div_ceil(MARKER_EVERY));
            let behind = [0, form.aligned(3 * count)];
            let markers = behind.iter().filter_map(|b| table.checked_sub(b + length));
            markers.into_iter().any(|markers| names.fit(rodata, markers, form)).then_some(names)
        })
    }

    /// Whether the names end where the markers begin, and whether each marker is the place of its name.
    fn fit(&self, rodata: &[u8], markers: usize, form: Form) -> bool {
        // Nearly every place fails at this test: a name takes at least two bytes.
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
        form.aligned(at) == markers
    }
}

/// The first token's place in the name at `at`, and the number of tokens. Lengths above 127 have 2 bytes (since 6.1).
fn name(rodata: &[u8], at: usize) -> Option<(usize, usize)> {
    match usize::from(*rodata.get(at)?) {
        length if length < 128 => Some((at + 1, length)),
        low => Some((at + 2, low & 127 | usize::from(*rodata.get(at + 1)?) << 7)),
    }
}

/// The addresses of the names. They rise, as they do in every such table.
fn addresses(rodata: &[u8], names: &Names, tokens: &Tokens) -> Option<Vec<u64>> {
    let length = Form::Long.aligned(4 * names.count);
    let behind = tokens.index + 2 * TOKENS;
    let before = names.number.checked_sub(8);
    let places = [
        Some((behind, behind + length)),
        before.and_then(|base| Some((base.checked_sub(length)?, base))),
    ];
    places.into_iter().flatten().find_map(|(offsets, base)| {
        let base = u64_at(rodata, base).filter(|base| *base >= LINKED_FROM)?;
        let offset = |n: usize| u32_at(rodata, offsets + 4 * n);
        let offsets = (0..names.count).map(offset).collect::<Option<Vec<u32>>>()?;
        // CONFIG_KALLSYMS_ABSOLUTE_PERCPU (SMP before 6.15): an offset that is not negative is itself an address. A
        // negative offset counts from the base on, downwards from -1. No kernel is as large as half of 4 GiB.
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

/// The addresses of the names, where each address counts from the place of its own number, in `rodata` at `address`.
fn addresses_from_themselves(
    rodata: &[u8],
    address: u64,
    names: &Names,
    tokens: &Tokens,
) -> Option<Vec<u64>> {
    let numbers = tokens.index + 2 * TOKENS;
    let number = |n: usize| {
        let place = numbers + 4 * n;
        let from = address.checked_add(place as u64)?;
        from.checked_add_signed(i64::from(u32_at(rodata, place)?.cast_signed()))
    };
    let addresses = (0..names.count).map(number).collect::<Option<Vec<u64>>>()?;
    let is_kernel = addresses.first().is_some_and(|first| *first >= LINKED_FROM);
    (is_kernel && addresses.is_sorted()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address of `.rodata` in these tests.
    const RODATA: u64 = LINKED_FROM + 0x220_0000;

    /// The order and the encoding of a table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kernel {
        /// The form before 6.4.
        OffsetsFirst { percpu: bool },
        /// The form from 6.4 on.
        OffsetsLast { percpu: bool },
        /// The form of 7.x.
        FromThemselves,
    }

    impl Kernel {
        fn form(self) -> Form {
            if self == Kernel::FromThemselves { Form::Short } else { Form::Long }
        }

        fn pad(self, bytes: &mut Vec<u8>) {
            bytes.resize(self.form().aligned(bytes.len()), 0);
        }

        /// The offsets of the symbols from a base, and the base.
        fn offsets(self, symbols: &[(u64, &str)]) -> Vec<u8> {
            let percpu = matches!(
                self,
                Kernel::OffsetsFirst { percpu: true } | Kernel::OffsetsLast { percpu: true }
            );
            let base = LINKED_FROM + 0x100_0000;
            let offset = |address: u64| match address.checked_sub(base) {
                Some(offset) if percpu => !(offset as u32),
                Some(offset) => offset as u32,
                None => address as u32,
            };
            let mut bytes: Vec<u8> =
                symbols.iter().flat_map(|(a, _)| offset(*a).to_le_bytes()).collect();
            self.pad(&mut bytes);
            bytes.extend_from_slice(&base.to_le_bytes());
            bytes
        }

        /// A table of uncompressed names: each token is one character. `before` is the number of bytes in front of it.
        fn table(self, symbols: &[(u64, &str)], before: usize) -> Vec<u8> {
            let mut bytes = vec![0xaa; before];
            if matches!(self, Kernel::OffsetsFirst { .. }) {
                bytes.extend(self.offsets(symbols));
            }
            bytes.extend_from_slice(&(symbols.len() as u32).to_le_bytes());
            self.pad(&mut bytes);
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
            self.pad(&mut bytes);
            bytes.extend_from_slice(&markers);
            self.pad(&mut bytes);
            for token in 0..TOKENS {
                bytes.extend_from_slice(&[if token == 0 { 1 } else { token as u8 }, 0]);
            }
            (0..TOKENS).for_each(|n| bytes.extend_from_slice(&(2 * n as u16).to_le_bytes()));
            match self {
                Kernel::OffsetsFirst { .. } => {}
                Kernel::OffsetsLast { .. } => bytes.extend(self.offsets(symbols)),
                Kernel::FromThemselves => {
                    for (address, _) in symbols {
                        let here = RODATA + bytes.len() as u64;
                        bytes.extend_from_slice(&(address.wrapping_sub(here) as u32).to_le_bytes());
                    }
                }
            }
            bytes.extend_from_slice(&[0x55; 64]);
            bytes
        }
    }

    #[test]
    fn a_table_is_found_in_each_order_and_encoding() {
        let long = format!("t{}", "x".repeat(300));
        let text = LINKED_FROM + 0x100_0000;
        let mut given = vec![(text, "Tstart".to_string()), (text + 16, long)];
        given.extend((0..600).map(|n| (text + 32 + n, format!("tf{n}"))));
        let of_cpu = (0x40, "Acpu_variable".to_string());
        let kernels = [
            Kernel::OffsetsFirst { percpu: false },
            Kernel::OffsetsFirst { percpu: true },
            Kernel::OffsetsLast { percpu: false },
            Kernel::OffsetsLast { percpu: true },
            Kernel::FromThemselves,
        ];
        for kernel in kernels {
            let percpu = matches!(
                kernel,
                Kernel::OffsetsFirst { percpu: true } | Kernel::OffsetsLast { percpu: true }
            );
            let given = percpu.then_some(&of_cpu).into_iter().chain(&given);
            let given: Vec<(u64, &str)> = given.map(|(a, n)| (*a, n.as_str())).collect();
            // With some numbers of bytes in front, the parts of one form lie as those of the other form do.
            for before in (1024..1024 + 64).step_by(kernel.form().alignment()) {
                let found = symbols(&kernel.table(&given, before), RODATA).unwrap();
                let found: Vec<(u64, String)> = found
                    .into_iter()
                    .map(|s| (s.address, format!("{}{}", char::from(s.kind), s.name)))
                    .collect();
                let found: Vec<(u64, &str)> = found.iter().map(|(a, n)| (*a, n.as_str())).collect();
                assert_eq!(found, given, "{kernel:?}, {before}");
            }
        }
    }

    #[test]
    fn a_table_that_is_damaged_is_not_found() {
        let text = LINKED_FROM + 0x100_0000;
        for kernel in [Kernel::OffsetsLast { percpu: true }, Kernel::FromThemselves] {
            let whole = kernel.table(&[(text, "Tstart"), (text + 16, "tnext")], 1024);
            assert!(symbols(&whole, RODATA).is_ok(), "{kernel:?}");
            for length in 0..whole.len() - 64 {
                assert!(symbols(&whole[..length], RODATA).is_err(), "{kernel:?} {length}");
            }
        }
    }
}
