// SPDX-License-Identifier: GPL-2.0-or-later
//! Memory itself (lmbench3: bw_mem.c, lat_mem_rd.c). The kernel has no part in it but interrupts and page tables.

use super::Suite::Memory;
use super::bench::{Work, each, empty};
use super::place::{Place, next};
use super::row::Row;
use std::hint::black_box;
use std::io;

/// Bytes that one operation reads, writes or copies.
const BLOCK: usize = 8 << 20;
/// Loads in a batch of a latency.
const LOADS: u32 = 20_000;
/// Bytes of a cache line.
const LINE: usize = 64;

pub(super) static ROWS: [Row; 11] = [
    Row::bytes((Memory, "memory_read"), "8 MiB added up", (1, BLOCK as u64), reads),
    Row::bytes((Memory, "memory_write"), "8 MiB written", (1, BLOCK as u64), writes),
    Row::bytes((Memory, "memory_copy"), "8 MiB copied word by word", (1, BLOCK as u64), copies),
    Row::bytes((Memory, "memory_copy_libc"), "8 MiB copied by memcpy", (1, BLOCK as u64), memcpy),
    latency("memory_latency_8k", |place| Chain::of(place, 8 << 10)),
    latency("memory_latency_32k", |place| Chain::of(place, 32 << 10)),
    latency("memory_latency_128k", |place| Chain::of(place, 128 << 10)),
    latency("memory_latency_512k", |place| Chain::of(place, 512 << 10)),
    latency("memory_latency_2m", |place| Chain::of(place, 2 << 20)),
    latency("memory_latency_8m", |place| Chain::of(place, 8 << 20)),
    latency("memory_latency_32m", |place| Chain::of(place, 32 << 20)),
];

const fn latency(name: &'static str, make: fn(&Place) -> io::Result<Box<dyn Work>>) -> Row {
    Row::time((Memory, name), "a load whose address the load before gives", LOADS, make)
}

/// Memory of `words` words, each `value`. Too little memory is an error, and ends no process.
fn words<T: Copy>(words: usize, value: T) -> io::Result<Vec<T>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(words).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    memory.resize(words, value);
    Ok(memory)
}

/// Adds up each word of 4 bytes.
#[inline(never)]
pub(super) fn add_up(bytes: &[u8]) {
    let words = bytes.as_chunks::<4>().0.iter();
    black_box(words.fold(0u32, |sum, word| sum.wrapping_add(u32::from_ne_bytes(*word))));
}

fn reads(_: &Place) -> io::Result<Box<dyn Work>> {
    let block = words(BLOCK, 1u8)?;
    each(move || {
        add_up(&block);
        Ok(())
    })
}

#[inline(never)]
fn fill(block: &mut [u32]) {
    block.iter_mut().for_each(|word| *word = 1);
    black_box(block);
}

fn writes(_: &Place) -> io::Result<Box<dyn Work>> {
    let mut block = words(BLOCK / 4, 0u32)?;
    each(move || {
        fill(black_box(&mut block));
        Ok(())
    })
}

#[inline(never)]
fn copy(to: &mut [u32], from: &[u32]) {
    // One word after the other, and not the C library's memcpy.
    to.iter_mut().zip(from).for_each(|(to, from)| *to = black_box(*from));
    black_box(to);
}

fn copies(_: &Place) -> io::Result<Box<dyn Work>> {
    let (mut to, from) = (words(BLOCK / 4, 0u32)?, words(BLOCK / 4, 1u32)?);
    each(move || {
        copy(black_box(&mut to), &from);
        Ok(())
    })
}

fn memcpy(_: &Place) -> io::Result<Box<dyn Work>> {
    let (mut to, from) = (words(BLOCK, 0u8)?, words(BLOCK, 1u8)?);
    each(move || {
        black_box(&mut to).copy_from_slice(black_box(&from));
        black_box(&mut to);
        Ok(())
    })
}

/// A chain of loads through memory: each word is the index of the next one, and all lines are on one ring in a mixed
/// order, so that no prefetcher foresees the next.
struct Chain {
    lines: Vec<[u64; LINE / 8]>,
    at: u64,
}

impl Chain {
    fn of(place: &Place, bytes: usize) -> io::Result<Box<dyn Work>> {
        let mut lines = words(bytes / LINE, [0u64; LINE / 8])?;
        for (line, next) in lines.iter_mut().zip(ring(bytes / LINE, place.seed)?) {
            line[0] = next.into();
        }
        Ok(Box::new(Chain { lines, at: 0 }))
    }
}

/// For each of `n` lines the next one. All are on a single ring (Sattolo: An algorithm to generate a random cyclic
/// permutation, 1986).
fn ring(n: usize, seed: u32) -> io::Result<Vec<u32>> {
    let (mut state, mut order) = (u64::from(seed), words(n, 0u32)?);
    (0..).zip(&mut order).for_each(|(n, next)| *next = n);
    for last in (1..n).rev() {
        order.swap(last, (next(&mut state) % last as u64) as usize);
    }
    Ok(order)
}

impl Work for Chain {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        if part > 0 {
            empty(ops);
            return Ok(());
        }
        let mut at = self.at;
        for _ in 0..ops {
            at = self.lines[at as usize][0];
        }
        self.at = black_box(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_through_all_of_its_lines_before_it_comes_back() {
        let order = ring(64, 5).unwrap();
        let (mut at, mut seen) = (0, 0);
        loop {
            at = order[at as usize];
            seen += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(seen, 64);
    }

    #[test]
    fn memory_that_nobody_has_is_an_error() {
        let refused = words(usize::MAX / 16, 0u64).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOMEM));
    }
}
