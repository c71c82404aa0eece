// SPDX-License-Identifier: GPL-2.0-or-later
//! The channel between generator and collector: a ring of records in memory that both map.
//!
//! One producer, one consumer. Pushing never blocks: a full ring drops the record and counts it, and
//! the count is a loss that every summary shows. Records are numbered (in their two reserved bytes), so
//! that the reader knows where some are missing; one place is kept free for the record that ends a run.
//!
//! Layout, native endian (both ends share a machine): a header of [`RING_BYTES_HEADER`] bytes with
//! magic, version and capacity; head, tail and drop count, each in a cache line of its own; then
//! `capacity` encoded records.

use crate::{Kind, Record};
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the first record.
pub const RING_BYTES_HEADER: usize = 256;
/// "onset" and the layout's version.
const MAGIC: u64 = u64::from_le_bytes(*b"onset\0\0\x01");

/// Where in an encoded record its number is.
const NUMBER: Range<usize> = 2..4;
/// Places that only [`Kind::End`] may take: without it the reader would wait for ever.
const PLACES_FOR_THE_END: u64 = 1;

#[repr(C)]
struct Header {
    magic: AtomicU64,
    capacity: AtomicU64,
    _pad0: [u64; 6],
    /// Records ever pushed.
    head: AtomicU64,
    _pad1: [u64; 7],
    /// Records ever popped.
    tail: AtomicU64,
    _pad2: [u64; 7],
    /// Records that found the ring full.
    dropped: AtomicU64,
    _pad3: [u64; 7],
}
const _: () = assert!(size_of::<Header>() == RING_BYTES_HEADER);

/// Why a piece of memory is no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingError {
    /// Smaller than its header says.
    TooSmall,
    /// Not initialised, or of another version of onset.
    NotARing,
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooSmall => "the record channel is smaller than its header says",
            Self::NotARing => "the record channel is not one, or of another version of onset",
        })
    }
}

impl core::error::Error for RingError {}

/// Size in bytes of a ring for `capacity` records.
pub const fn ring_bytes(capacity: usize) -> usize {
    RING_BYTES_HEADER + capacity * Record::BYTES
}

/// Makes the memory an empty ring with as many records as fit.
///
/// # Safety
/// `memory` points to `bytes` writable bytes, aligned to 8, that nobody else uses yet.
pub unsafe fn ring_init(memory: *mut u8, bytes: usize) -> Result<(), RingError> {
    if bytes < ring_bytes(1) {
        return Err(RingError::TooSmall);
    }
    // SAFETY: the caller gives exclusive, aligned memory of at least a header.
    let header = unsafe { &*memory.cast::<Header>() };
    for counter in [&header.head, &header.tail, &header.dropped] {
        counter.store(0, Ordering::Relaxed);
    }
    let capacity = (bytes - RING_BYTES_HEADER) / Record::BYTES;
    header.capacity.store(capacity as u64, Ordering::Relaxed);
    header.magic.store(MAGIC, Ordering::Release);
    Ok(())
}

struct Ring {
    memory: *mut u8,
    capacity: u64,
}

impl Ring {
    /// # Safety
    /// As for [`Producer::attach`].
    unsafe fn attach(memory: *mut u8, bytes: usize) -> Result<Ring, RingError> {
        if bytes < RING_BYTES_HEADER {
            return Err(RingError::TooSmall);
        }
        // SAFETY: the caller vouches for `bytes` aligned bytes that live as long as the ring.
        let header = unsafe { &*memory.cast::<Header>() };
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(RingError::NotARing);
        }
        let capacity = header.capacity.load(Ordering::Relaxed);
        match usize::try_from(capacity).ok().and_then(|c| c.checked_mul(Record::BYTES)) {
            Some(records) if capacity > 0 && records <= bytes - RING_BYTES_HEADER => {
                Ok(Ring { memory, capacity })
            }
            _ => Err(RingError::TooSmall),
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: `attach` checked it, and its caller keeps the memory alive.
        unsafe { &*self.memory.cast::<Header>() }
    }

    fn slot(&self, index: u64) -> *mut [u8; Record::BYTES] {
        let offset = RING_BYTES_HEADER + (index % self.capacity) as usize * Record::BYTES;
        // SAFETY: index modulo capacity is inside the memory that `attach` checked.
        unsafe { self.memory.add(offset).cast() }
    }
}

/// The writing end.
pub struct Producer {
    ring: Ring,
    /// Number of the next record, dropped ones included.
    number: u16,
}
// SAFETY: the ring is reached through atomics; one producer is the caller's promise at `attach`.
unsafe impl Send for Producer {}

impl Producer {
    /// Attaches to an initialised ring.
    ///
    /// # Safety
    /// `memory` points to `bytes` bytes, aligned to 8, mapped as long as the producer lives; there is
    /// no other producer.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Result<Self, RingError> {
        // SAFETY: as promised by the caller.
        unsafe { Ring::attach(memory, bytes) }.map(|ring| Producer { ring, number: 0 })
    }

    /// Appends a record, or counts it as dropped when the ring is full. Never blocks.
    pub fn push(&mut self, record: &Record) {
        if !self.offer(record) {
            self.number = self.number.wrapping_add(1);
            self.ring.header().dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends a record if there is room for it; whether there was. Never blocks.
    pub fn offer(&mut self, record: &Record) -> bool {
        let kept_free = if record.kind == Kind::End { 0 } else { PLACES_FOR_THE_END };
        self.write(core::slice::from_ref(record), kept_free) == 1
    }

    /// Appends the first of many records, none of which ends a run: as many as there is room for; returns how many. The reader sees
    /// them at once: each store for itself would wait for the cache of its processor, these wait together. Never blocks.
    pub fn offer_all(&mut self, records: &[Record]) -> usize {
        self.write(records, PLACES_FOR_THE_END)
    }

    fn write(&mut self, records: &[Record], kept_free: u64) -> usize {
        let header = self.ring.header();
        let head = header.head.load(Ordering::Relaxed);
        let waiting = head.wrapping_sub(header.tail.load(Ordering::Acquire));
        let room = self.ring.capacity.saturating_sub(waiting + kept_free) as usize;
        let many = room.min(records.len());
        for (n, record) in records[..many].iter().enumerate() {
            let mut bytes = record.encode();
            bytes[NUMBER].copy_from_slice(&self.number.to_le_bytes());
            self.number = self.number.wrapping_add(1);
            // SAFETY: the slot is free (not between tail and head), and only we write.
            unsafe { self.ring.slot(head.wrapping_add(n as u64)).write(bytes) };
        }
        header.head.store(head.wrapping_add(many as u64), Ordering::Release);
        many
    }
}

/// The reading end.
pub struct Consumer {
    ring: Ring,
    /// Number that the next record has if none is missing.
    number: u16,
}
// SAFETY: the ring is reached through atomics; one consumer is the caller's promise at `attach`.
unsafe impl Send for Consumer {}

impl Consumer {
    /// Attaches to an initialised ring.
    ///
    /// # Safety
    /// As for [`Producer::attach`], and there is no other consumer.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Result<Self, RingError> {
        // SAFETY: as promised by the caller.
        unsafe { Ring::attach(memory, bytes) }.map(|ring| Consumer { ring, number: 0 })
    }

    /// Hands every waiting record, still encoded, to `each`, and whether records are missing before it;
    /// returns how many there were. A gap of a multiple of 65,536 records goes unnoticed here, but is
    /// in [`dropped`](Self::dropped).
    pub fn drain(&mut self, mut each: impl FnMut(&[u8; Record::BYTES], bool)) -> u64 {
        let header = self.ring.header();
        let tail = header.tail.load(Ordering::Relaxed);
        let head = header.head.load(Ordering::Acquire);
        let waiting = head.wrapping_sub(tail).min(self.ring.capacity);
        for i in 0..waiting {
            // SAFETY: slots between tail and head hold whole records that the producer leaves alone.
            let mut bytes = unsafe { self.ring.slot(tail.wrapping_add(i)).read() };
            let number = u16::from_le_bytes([bytes[NUMBER.start], bytes[NUMBER.start + 1]]);
            bytes[NUMBER].fill(0);
            each(&bytes, number != self.number);
            self.number = number.wrapping_add(1);
            // Freed one by one, so that a long drain does not make the producer drop.
            header.tail.store(tail.wrapping_add(i + 1), Ordering::Release);
        }
        waiting
    }

    /// Records dropped so far because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.ring.header().dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Insns, Kind, Stamp};
    use alloc::{vec, vec::Vec};

    fn record(number: u64) -> Record {
        Record {
            kind: Kind::Trigger,
            pins: 0,
            value: 0,
            number,
            at: Stamp::from_ns(number * 10),
            insns: Insns(number),
        }
    }

    fn ring(capacity: usize) -> (Vec<u64>, Producer, Consumer) {
        let bytes = ring_bytes(capacity);
        let mut memory = vec![0u64; bytes / 8];
        let p = memory.as_mut_ptr().cast();
        // SAFETY: exclusive, aligned, and returned beside the two ends that use it.
        unsafe {
            ring_init(p, bytes).unwrap();
            (memory, Producer::attach(p, bytes).unwrap(), Consumer::attach(p, bytes).unwrap())
        }
    }

    fn numbers(consumer: &mut Consumer) -> Vec<u64> {
        let mut out = Vec::new();
        consumer.drain(|b, _| out.push(Record::decode(b).unwrap().number));
        out
    }

    #[test]
    fn records_come_out_in_order_around_the_end_of_the_ring() {
        let (_memory, mut producer, mut consumer) = ring(4);
        for round in 0..5 {
            producer.push(&record(round * 2));
            producer.push(&record(round * 2 + 1));
            assert_eq!(numbers(&mut consumer), [round * 2, round * 2 + 1]);
        }
        assert_eq!(consumer.dropped(), 0);
    }

    #[test]
    fn a_stalled_reader_costs_counted_drops_and_never_blocks() {
        let (_memory, mut producer, mut consumer) = ring(4);
        for n in 0..10 {
            producer.push(&record(n));
        }
        assert_eq!(consumer.dropped(), 7);
        assert_eq!(numbers(&mut consumer), [0, 1, 2]);
        producer.push(&record(10));
        producer.push(&record(11));
        let mut gaps = Vec::new();
        consumer.drain(|_, gap| gaps.push(gap));
        assert_eq!(gaps, [true, false]);
    }

    #[test]
    fn the_end_of_a_run_finds_room_in_a_full_ring() {
        let (_memory, mut producer, mut consumer) = ring(4);
        (0..10).for_each(|n| producer.push(&record(n)));
        producer.push(&Record { kind: Kind::End, ..record(10) });
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 10]);
    }

    #[test]
    fn what_is_offered_to_a_full_ring_is_refused_and_not_counted() {
        let (_memory, mut producer, mut consumer) = ring(4);
        let end = |n| Record { kind: Kind::End, ..record(n) };
        assert_eq!([0, 1, 2, 3].map(|n| producer.offer(&record(n))), [true, true, true, false]);
        assert!(producer.offer(&end(4)));
        assert!(!producer.offer(&end(5)));
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 4]);
        assert!(producer.offer(&record(6)));
        assert_eq!((numbers(&mut consumer), consumer.dropped()), (vec![6], 0));
    }

    #[test]
    fn of_many_as_many_are_taken_as_there_is_room_for_and_the_end_finds_its_own() {
        let (_memory, mut producer, mut consumer) = ring(4);
        let many: Vec<Record> = (0..6).map(record).collect();
        assert_eq!(producer.offer_all(&many), 3);
        assert_eq!(producer.offer_all(&many[3..]), 0);
        producer.push(&Record { kind: Kind::End, ..record(9) });
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 9]);
        assert_eq!(producer.offer_all(&many[3..]), 3);
        let mut gaps = Vec::new();
        consumer.drain(|_, gap| gaps.push(gap));
        assert_eq!(gaps, [false; 3], "what was not taken has no number");
        assert_eq!(consumer.dropped(), 0);
    }

    #[test]
    fn two_threads_lose_nothing_that_is_not_counted() {
        let (_memory, mut producer, mut consumer) = ring(64);
        let total = 100_000;
        let seen = std::thread::scope(|s| {
            let writer = s.spawn(move || (0..total).for_each(|n| producer.push(&record(n))));
            let mut seen = Vec::new();
            while !writer.is_finished() {
                seen.extend(numbers(&mut consumer));
            }
            seen.extend(numbers(&mut consumer));
            seen
        });
        assert!(seen.is_sorted());
        assert_eq!(seen.len() as u64 + consumer.dropped(), total);
    }

    #[test]
    fn foreign_or_truncated_memory_is_refused() {
        let mut memory = vec![0u64; ring_bytes(2) / 8];
        let p: *mut u8 = memory.as_mut_ptr().cast();
        // SAFETY: exclusive and aligned; the sizes given are never larger than the memory.
        unsafe {
            assert_eq!(Producer::attach(p, ring_bytes(2)).err(), Some(RingError::NotARing));
            assert_eq!(ring_init(p, 100).err(), Some(RingError::TooSmall));
            ring_init(p, ring_bytes(2)).unwrap();
            assert_eq!(Consumer::attach(p, ring_bytes(1)).err(), Some(RingError::TooSmall));
        }
    }
}
