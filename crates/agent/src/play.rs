// SPDX-License-Identifier: GPL-2.0-or-later
//! `play NAME FILE`: plays a file as a media player does, over and over. A device takes one block in each period,
//! whether there is one or not. The player wakes once in a period, and reads and decodes blocks until its buffer is
//! full. A block that the device took is counted as NAME. A block that was not there in time is counted as NAME.failed:
//! the player ran dry, and its listener heard that.

use crate::counter::Counter;
use std::convert::Infallible;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How often the device takes a block.
const PERIOD: Duration = Duration::from_millis(20);
/// The bytes of a block: 26 Mbit a second, as a film on a disc of 2006 (HD DVD, Blu-ray: up to 30 and 40).
const BLOCK: usize = 64 * 1024;
/// How many blocks the buffer holds: a tenth of a second.
const BUFFERED: u64 = 5;
/// How often the decoder goes over a block.
const PASSES: u32 = 8;

/// The blocks that were written for the device, and those that it should have taken.
#[derive(Debug, Default, PartialEq)]
struct Buffer {
    /// Blocks in the buffer.
    filled: u64,
    /// How many blocks the device took or missed until now.
    due: u64,
}

/// What happened in the buffer since the player looked at it last.
#[derive(Debug, PartialEq)]
struct Look {
    taken: u64,
    missed: u64,
}

impl Buffer {
    /// Looks at the buffer `after` the beginning.
    fn look(&mut self, after: Duration) -> Look {
        let due = (after.as_nanos() / PERIOD.as_nanos()) as u64;
        let wanted = due - self.due;
        let taken = wanted.min(self.filled);
        self.due = due;
        self.filled -= taken;
        Look { taken, missed: wanted - taken }
    }

    /// Adds a block, unless the buffer is full.
    fn fill(&mut self) -> bool {
        let has_room = self.filled < BUFFERED;
        self.filled += u64::from(has_room);
        has_room
    }
}

/// Plays. Returns an exit status only if something is wrong.
pub fn run(arguments: impl Iterator<Item = String>) -> i32 {
    let words: Vec<String> = arguments.collect();
    let [name, file] = words.as_slice() else {
        eprintln!("usage: play NAME FILE");
        return 2;
    };
    match play(name, file) {
        Ok(never) => match never {},
        Err(e) => {
            eprintln!("play {name}: {file}: {e}");
            1
        }
    }
}

fn play(name: &str, path: &str) -> std::io::Result<Infallible> {
    let (mut played, mut dry) = Counter::pair(name)?;
    let mut film = Film::open(path)?;
    let mut buffer = Buffer::default();
    film.fill(&mut buffer)?;
    let beginning = Instant::now();
    loop {
        let next = PERIOD * u32::try_from(buffer.due + 1).map_err(std::io::Error::other)?;
        std::thread::sleep(next.saturating_sub(beginning.elapsed()));
        let look = buffer.look(beginning.elapsed());
        played.add(look.taken)?;
        dry.add(look.missed)?;
        film.fill(&mut buffer)?;
    }
}

/// The file, and the place up to which it is read.
struct Film {
    file: File,
    blocks: u64,
    read: u64,
    block: Vec<u8>,
}

impl Film {
    fn open(path: &str) -> std::io::Result<Film> {
        let file = File::open(path)?;
        let blocks = file.metadata()?.len() / BLOCK as u64;
        if blocks == 0 {
            return Err(std::io::Error::other(format!("a film has at least {BLOCK} bytes")));
        }
        Ok(Film { file, blocks, read: 0, block: vec![0; BLOCK] })
    }

    /// Reads and decodes blocks until the buffer is full.
    fn fill(&mut self, buffer: &mut Buffer) -> std::io::Result<()> {
        while buffer.fill() {
            let at = self.read % self.blocks * BLOCK as u64;
            self.file.read_exact_at(&mut self.block, at)?;
            std::hint::black_box(decode(&self.block));
            self.read += 1;
        }
        Ok(())
    }
}

/// Work for each word of a block, as a decoder has.
fn decode(block: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    (0..PASSES).fold(0, |sum: u64, pass| {
        block.chunks(8).fold(sum, |sum, bytes| (sum ^ word(bytes)).rotate_left(pass + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Buffer {
        let mut buffer = Buffer::default();
        while buffer.fill() {}
        assert_eq!(buffer, Buffer { filled: BUFFERED, due: 0 });
        buffer
    }

    #[test]
    fn a_player_that_is_late_by_less_than_its_buffer_misses_no_block() {
        let mut buffer = filled();
        assert_eq!(buffer.look(PERIOD - Duration::from_nanos(1)), Look { taken: 0, missed: 0 });
        assert_eq!(buffer.look(PERIOD), Look { taken: 1, missed: 0 });
        assert_eq!(buffer.look(PERIOD * BUFFERED as u32), Look { taken: 4, missed: 0 });
        assert!(buffer.fill());
        assert_eq!(buffer, Buffer { filled: 1, due: 5 });
    }

    #[test]
    fn each_block_that_is_not_there_in_time_is_missed_once() {
        let mut buffer = filled();
        let late = PERIOD * (BUFFERED as u32 + 3);
        assert_eq!(buffer.look(late), Look { taken: 5, missed: 3 });
        assert_eq!(buffer.look(late), Look { taken: 0, missed: 0 });
        assert!(buffer.fill());
        assert_eq!(buffer.look(late + PERIOD), Look { taken: 1, missed: 0 });
    }

    #[test]
    fn what_is_decoded_depends_on_every_byte() {
        let mut block = vec![7; BLOCK];
        let before = decode(&block);
        block[BLOCK - 1] ^= 1;
        assert_ne!(decode(&block), before);
    }
}
