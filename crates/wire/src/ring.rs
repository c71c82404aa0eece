// SPDX-License-Identifier: GPL-2.0-or-later
//! The channel between generator and collector: a ring of events in memory that both map.
//!
//! There is one producer and one consumer. Pushing never blocks: a full ring drops the event and counts it, and every
//! summary shows that count as a loss. An event is marked (in its reserved byte) where events before it were dropped,
//! so the reader knows where they are missing. One place is kept free for the event that ends a run.
//!
//! The layout is native endian, since both ends share a machine. A header of [`RING_BYTES_HEADER`] bytes comes first,
//! with magic, version and capacity, and with head, tail and drop count, each in a cache line of its own. Then come
//! `capacity` encoded events.

use crate::Event;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the first event.
pub const RING_BYTES_HEADER: usize = 256;
/// "onset" and the layout's version.
const MAGIC: u64 = u64::from_le_bytes(*b"onset\0\0\x02");

/// Where in an encoded event it says whether some are missing before it: 1, else 0.
const MISSING: usize = 3;
/// So many places are for the event that ends a run. Without that event the reader would wait for ever.
const PLACES_FOR_THE_END: u64 = 1;

#[repr(C)]
struct Header {
    magic: AtomicU64,
    capacity: AtomicU64,
    _pad0: [u64; 6],
    /// Events ever pushed.
    head: AtomicU64,
    _pad1: [u64; 7],
    /// Events ever popped.
    tail: AtomicU64,
    _pad2: [u64; 7],
    /// Events that found the ring full.
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

/// Size in bytes of a ring for `capacity` events.
pub const fn ring_bytes(capacity: usize) -> usize {
    RING_BYTES_HEADER + capacity * Event::BYTES
}

/// Makes the memory an empty ring with as many events as fit.
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
    let capacity = (bytes - RING_BYTES_HEADER) / Event::BYTES;
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
        match usize::try_from(capacity).ok().and_then(|c| c.checked_mul(Event::BYTES)) {
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

    fn slot(&self, index: u64) -> *mut [u8; Event::BYTES] {
        let offset = RING_BYTES_HEADER + (index % self.capacity) as usize * Event::BYTES;
        // SAFETY: index modulo capacity is inside the memory that `attach` checked.
        unsafe { self.memory.add(offset).cast() }
    }
}

/// The writing end.
pub struct Producer {
    ring: Ring,
    /// Some were dropped since the last one that was written.
    missing: bool,
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
        unsafe { Ring::attach(memory, bytes) }.map(|ring| Producer { ring, missing: false })
    }

    /// Appends an event, or counts it as dropped when the ring is full. Never blocks.
    #[inline(always)]
    pub fn push(&mut self, event: &Event) {
        if !self.offer(event) {
            self.missing = true;
            self.ring.header().dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends an event if there is room for it. Gives whether there was. Never blocks.
    ///
    /// The event is encoded in the caller's code. A caller that knows which event it is, as a probe does, then stores
    /// four words and chooses nothing.
    #[inline(always)]
    pub fn offer(&mut self, event: &Event) -> bool {
        let kept_free = if event.is_last() { 0 } else { PLACES_FOR_THE_END };
        self.write(core::iter::once(event.encode()), kept_free) == 1
    }

    /// Appends the first of many events, as many as there is room for, and returns how many. None of the events may end
    /// a run. The reader sees all of them at the same moment. If each event were stored by itself, each would wait for
    /// the cache of the reader's processor; so they wait together. Never blocks.
    pub fn offer_all(&mut self, events: &[Event]) -> usize {
        self.write(events.iter().map(Event::encode), PLACES_FOR_THE_END)
    }

    fn write(
        &mut self,
        events: impl ExactSizeIterator<Item = [u8; Event::BYTES]>,
        kept_free: u64,
    ) -> usize {
        let header = self.ring.header();
        let head = header.head.load(Ordering::Relaxed);
        let waiting = head.wrapping_sub(header.tail.load(Ordering::Acquire));
        let room = self.ring.capacity.saturating_sub(waiting + kept_free) as usize;
        let many = room.min(events.len());
        for (n, bytes) in events.take(many).enumerate() {
            let slot = self.ring.slot(head.wrapping_add(n as u64));
            // SAFETY: the slot is free (not between tail and head), and only we write.
            unsafe { slot.write(bytes) };
            if core::mem::take(&mut self.missing) {
                // SAFETY: as above.
                unsafe { slot.cast::<u8>().add(MISSING).write(1) };
            }
        }
        header.head.store(head.wrapping_add(many as u64), Ordering::Release);
        many
    }
}

/// The reading end.
pub struct Consumer {
    ring: Ring,
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
        unsafe { Ring::attach(memory, bytes) }.map(|ring| Consumer { ring })
    }

    /// Hands every waiting event, still encoded, to `each`, and whether events are missing before it; returns how
    /// many there were.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8; Event::BYTES], bool)) -> u64 {
        let header = self.ring.header();
        let tail = header.tail.load(Ordering::Relaxed);
        let head = header.head.load(Ordering::Acquire);
        let waiting = head.wrapping_sub(tail).min(self.ring.capacity);
        for i in 0..waiting {
            // SAFETY: slots between tail and head hold whole events that the producer leaves alone.
            let mut bytes = unsafe { self.ring.slot(tail.wrapping_add(i)).read() };
            let missing = core::mem::take(&mut bytes[MISSING]) != 0;
            each(&bytes, missing);
            // Freed one by one, so that a long drain does not make the producer drop.
            header.tail.store(tail.wrapping_add(i + 1), Ordering::Release);
        }
        waiting
    }

    /// Events dropped so far because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.ring.header().dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};
    use sample::{At, Insns, Stamp};

    fn at(number: u64) -> At {
        At::new(Stamp::from_ns(number * 10), Insns(number))
    }

    fn trigger(number: u64) -> Event {
        Event::Trigger { at: at(number), level: 0, number }
    }

    fn end(raised: u64) -> Event {
        Event::End { at: at(raised), control: 0, level: 0, raised }
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
        consumer.drain(|b, _| out.push(Event::decode(b).unwrap().port().unwrap().1));
        out
    }

    #[test]
    fn events_come_out_in_order_around_the_end_of_the_ring() {
        let (_memory, mut producer, mut consumer) = ring(4);
        for round in 0..5 {
            producer.push(&trigger(round * 2));
            producer.push(&trigger(round * 2 + 1));
            assert_eq!(numbers(&mut consumer), [round * 2, round * 2 + 1]);
        }
        assert_eq!(consumer.dropped(), 0);
    }

    #[test]
    fn a_stalled_reader_costs_counted_drops_and_never_blocks() {
        let (_memory, mut producer, mut consumer) = ring(4);
        for n in 0..10 {
            producer.push(&trigger(n));
        }
        assert_eq!(consumer.dropped(), 7);
        assert_eq!(numbers(&mut consumer), [0, 1, 2]);
        producer.push(&trigger(10));
        producer.push(&trigger(11));
        let mut gaps = Vec::new();
        consumer.drain(|_, gap| gaps.push(gap));
        assert_eq!(gaps, [true, false]);
    }

    #[test]
    fn the_end_of_a_run_finds_room_in_a_full_ring() {
        let (_memory, mut producer, mut consumer) = ring(4);
        (0..10).for_each(|n| producer.push(&trigger(n)));
        producer.push(&end(10));
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 10]);
    }

    #[test]
    fn what_is_offered_to_a_full_ring_is_refused_and_not_counted() {
        let (_memory, mut producer, mut consumer) = ring(4);
        assert_eq!([0, 1, 2, 3].map(|n| producer.offer(&trigger(n))), [true, true, true, false]);
        assert!(producer.offer(&end(4)));
        assert!(!producer.offer(&end(5)));
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 4]);
        assert!(producer.offer(&trigger(6)));
        assert_eq!((numbers(&mut consumer), consumer.dropped()), (vec![6], 0));
    }

    #[test]
    fn of_many_as_many_are_taken_as_there_is_room_for_and_the_end_finds_its_own() {
        let (_memory, mut producer, mut consumer) = ring(4);
        let many: Vec<Event> = (0..6).map(trigger).collect();
        assert_eq!(producer.offer_all(&many), 3);
        assert_eq!(producer.offer_all(&many[3..]), 0);
        producer.push(&end(9));
        assert_eq!(numbers(&mut consumer), [0, 1, 2, 9]);
        assert_eq!(producer.offer_all(&many[3..]), 3);
        let mut gaps = Vec::new();
        consumer.drain(|_, gap| gaps.push(gap));
        assert_eq!(gaps, [false; 3], "what was not taken is not missing");
        assert_eq!(consumer.dropped(), 0);
    }

    #[test]
    fn two_threads_lose_nothing_that_is_not_counted() {
        let (_memory, mut producer, mut consumer) = ring(64);
        let total = 100_000;
        let seen = std::thread::scope(|s| {
            let writer = s.spawn(move || (0..total).for_each(|n| producer.push(&trigger(n))));
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
    fn what_is_missing_is_told_however_much_that_is() {
        let (_memory, mut producer, mut consumer) = ring(4);
        (0..3 + (1 << 16)).for_each(|n| producer.push(&trigger(n)));
        assert_eq!(numbers(&mut consumer), [0, 1, 2]);
        producer.push(&trigger(7));
        let mut gaps = Vec::new();
        consumer.drain(|_, gap| gaps.push(gap));
        assert_eq!(gaps, [true]);
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
