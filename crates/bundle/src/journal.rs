// SPDX-License-Identifier: GPL-2.0-or-later
//! The journal: everything that a run has yielded so far. Nothing of it is lost when its writer is killed at any
//! instant.
//!
//! The journal is a row of entries of 40 bytes in a file that is mapped into memory. Bytes that are stored in a shared
//! mapping belong to the kernel, so a writer that is killed loses nothing. Adding an entry takes neither a system call
//! nor a clock that would say when to flush. Nothing is made durable: when the machine itself goes down, entries may be
//! missing from some point on. Each entry has a check, so that a half-written one does not count.
//!
//! An entry is five words of 64 bits, little endian:
//!
//! ```text
//! 0  kind (8 bits: 1 sample, 2 sample with path, 3 loss), kind of loss (8), series (16), check (32)
//! 1  number of the trigger, or how many were lost
//! 2  at, ns
//! 3  latency, ns
//! 4  path, instructions
//! ```
//!
//! A field that a kind does not use is 0. The first word of an entry is stored last. The journal ends at the first
//! entry whose first word is 0.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use sample::{Insns, Loss, Nanos, Observation, Sample, SeriesId};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// The length of an entry in words, and below in bytes.
const WORDS: usize = 5;
const ENTRY: usize = WORDS * 8;
/// The smallest length that is whole entries and whole pages (of 4 KiB; 5 × 64 KiB for pages of 64 KiB).
const BLOCK: usize = 5 << 16;
/// The length that is mapped at a time: 32,768 entries, 1.25 MiB.
const WINDOW: usize = 4 * BLOCK;

const SAMPLE: u64 = 1;
const SAMPLE_WITH_PATH: u64 = 2;
const LOSS: u64 = 3;

/// Whether the journal in this file has a first entry. The entry may be incomplete.
pub fn has_entry(file: &File) -> io::Result<bool> {
    let mut first = [0; ENTRY];
    match file.read_exact_at(&mut first, 0) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| first[..8] != [0; 8]),
    }
}

/// A journal that is written or read.
pub struct Journal {
    file: File,
    window: Option<NonNull<u64>>,
    /// The number of words of the window that are used.
    used: usize,
    /// The place in the file at which the next window begins.
    end: u64,
}

// SAFETY: the window belongs to this value. Nobody else in the process has its address.
unsafe impl Send for Journal {}

impl Journal {
    /// A journal on a file that was just created, or on the file of a dead writer. The latter is only read.
    pub fn new(file: File) -> Self {
        Journal { file, window: None, used: 0, end: 0 }
    }

    /// Adds an observation. From now on, a reader of the file finds it.
    ///
    /// # Errors
    /// The errors of the operating system, as on a full disk. They come at most once in 32,768 entries.
    pub fn push(&mut self, observation: &Observation) -> io::Result<()> {
        let window = match self.window {
            Some(window) if self.used < WINDOW / 8 => window,
            _ => self.next_window()?,
        };
        let words = encode(observation);
        // SAFETY: an entry begins at each multiple of five words below the window's length, which is such a multiple
        // itself. Only this thread writes here. Another process that reads sees the first word last.
        unsafe {
            let entry = window.as_ptr().add(self.used);
            for (i, word) in words.iter().enumerate().skip(1) {
                entry.add(i).write(word.to_le());
            }
            AtomicU64::from_ptr(entry).store(words[0].to_le(), Ordering::Release);
        }
        self.used += WORDS;
        Ok(())
    }

    /// Lengthens the file and maps its new end.
    fn next_window(&mut self) -> io::Result<NonNull<u64>> {
        // This writes, because a full disk shows here as an error. Without it, a full disk would show as a fatal signal
        // when somebody stores into the mapping of a hole.
        for block in 0..WINDOW / BLOCK {
            self.file.write_all_at(&[0; BLOCK], self.end + (block * BLOCK) as u64)?;
        }
        self.unmap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new mapping at an address that the kernel chooses.
        let address = unsafe {
            mmap(ptr::null_mut(), WINDOW, access, MapFlags::SHARED, &self.file, self.end)?
        };
        let window = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        (self.window, self.used) = (Some(window), 0);
        self.end += WINDOW as u64;
        Ok(window)
    }

    fn unmap(&mut self) {
        if let Some(window) = self.window.take() {
            // SAFETY: `next_window` mapped this with this length. The only address of it is given up here.
            let _ = unsafe { munmap(window.as_ptr().cast(), WINDOW) };
        }
    }

    /// Hands every whole entry to `each`, in their order, up to the first one that is not whole. `series` is the number
    /// of series in the run. The journal may be written meanwhile.
    ///
    /// # Errors
    /// The errors of the operating system, and those of `each`.
    pub fn read(
        &self,
        series: usize,
        mut each: impl FnMut(Observation) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = BufReader::with_capacity(BLOCK, Positioned { file: &self.file, at: 0 });
        let mut bytes = [0; ENTRY];
        loop {
            match file.read_exact(&mut bytes) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            match decode(&bytes, series) {
                Some(observation) => each(observation)?,
                None => return Ok(()),
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Reads a file from its beginning, wherever the file's cursor is.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn encode(observation: &Observation) -> [u64; WORDS] {
    let (kind, loss, series, body) = match *observation {
        Observation::Sample(Sample { series, trigger, at, latency, path }) => {
            let kind = if path.is_some() { SAMPLE_WITH_PATH } else { SAMPLE };
            (kind, 0, series, [trigger, at.0, latency.0, path.map_or(0, |p| p.0)])
        }
        Observation::Loss(series, loss, n) => (LOSS, loss as u64, series, [n, 0, 0, 0]),
    };
    let head = kind | loss << 8 | u64::from(series.0) << 16;
    let [a, b, c, d] = body;
    [head | u64::from(check(head, &body)) << 32, a, b, c, d]
}

/// The observation in an entry. `None` if the bytes are no entry, or if the run does not have its series.
fn decode(bytes: &[u8; ENTRY], series: usize) -> Option<Observation> {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let [head, body @ ..] = words;
    let (found, head) = ((head >> 32) as u32, head & u64::from(u32::MAX));
    if found != check(head, &body) {
        return None;
    }
    let id = SeriesId((head >> 16) as u16);
    if id.index() >= series {
        return None;
    }
    let [trigger, at, latency, path] = body;
    let sample =
        |path| Sample { series: id, trigger, at: Nanos(at), latency: Nanos(latency), path };
    match head & 0xff {
        SAMPLE => Some(Observation::Sample(sample(None))),
        SAMPLE_WITH_PATH => Some(Observation::Sample(sample(Some(Insns(path))))),
        LOSS => Some(Observation::Loss(id, *Loss::ALL.get((head >> 8 & 0xff) as usize)?, trigger)),
        _ => None,
    }
}

/// The check of an entry, which shows that a part of the entry is missing. Each word is multiplied into the words
/// before it. The multiplier is 2⁶⁴ ÷ the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4).
fn check(head: u64, body: &[u64; 4]) -> u32 {
    let mixed = body.iter().fold(head, |mixed, word| {
        (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn observation() -> impl Strategy<Value = Observation> {
        let path = prop::option::of(any::<u64>().prop_map(Insns));
        let sample =
            (0u16..9, any::<[u64; 3]>(), path).prop_map(|(series, [trigger, at, ns], path)| {
                let (at, latency) = (Nanos(at), Nanos(ns));
                Observation::Sample(Sample { series: SeriesId(series), trigger, at, latency, path })
            });
        let loss = (0u16..9, 0..Loss::ALL.len(), any::<u64>())
            .prop_map(|(series, loss, n)| Observation::Loss(SeriesId(series), Loss::ALL[loss], n));
        prop_oneof![sample, loss]
    }

    fn entries(journal: &Journal) -> Vec<Observation> {
        let mut entries = Vec::new();
        let read = journal.read(9, |o| {
            entries.push(o);
            Ok(())
        });
        read.expect("a readable file");
        entries
    }

    #[test]
    fn the_number_of_a_loss_is_its_place_in_the_list() {
        for (i, loss) in Loss::ALL.into_iter().enumerate() {
            assert_eq!(loss as usize, i);
        }
    }

    #[test]
    fn entries_are_read_across_windows_while_they_are_written() {
        let mut journal = Journal::new(tempfile::tempfile().unwrap());
        let many = WINDOW / ENTRY * 2 + 3;
        let loss = |n| Observation::Loss(SeriesId(1), Loss::Overrun, n);
        for n in 0..many as u64 {
            journal.push(&loss(n)).unwrap();
        }
        assert!(entries(&journal).into_iter().eq((0..many as u64).map(loss)));
    }

    #[test]
    fn a_full_disk_is_an_error_and_not_a_signal() {
        let full = File::options().write(true).read(true).open("/dev/full").unwrap();
        let error = Journal::new(full).push(&Observation::Loss(SeriesId(0), Loss::Tainted, 1));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_read_up_to_the_first_entry_that_is_torn(
            pushed in prop::collection::vec(observation(), 1..20),
            place in any::<prop::sample::Index>(),
            noise in 1u8..,
        ) {
            let mut journal = Journal::new(tempfile::tempfile().unwrap());
            pushed.iter().for_each(|o| journal.push(o).unwrap());
            prop_assert_eq!(&entries(&journal), &pushed);
            let place = place.index(pushed.len() * ENTRY);
            let mut byte = [0];
            journal.file.read_exact_at(&mut byte, place as u64).unwrap();
            journal.file.write_all_at(&[byte[0] ^ noise], place as u64).unwrap();
            prop_assert_eq!(&entries(&journal), &pushed[..place / ENTRY]);
            journal.file.set_len(place as u64).unwrap();
            prop_assert_eq!(&entries(&journal), &pushed[..place / ENTRY]);
        }
    }
}
