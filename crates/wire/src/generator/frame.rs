// SPDX-License-Identifier: GPL-2.0-or-later
//! Frames: how messages lie in a stream of bytes, and how a reader finds them again after bytes that are none.
//!
//! A frame is stuffed so that it has no zero byte, and a zero byte ends it (S. Cheshire, M. Baker: Consistent Overhead
//! Byte Stuffing, IEEE/ACM Transactions on Networking 7(2), 1999). A reader that has lost its place is right again at
//! the next zero byte, whatever came before. With a magic number and a length it would not be: both may occur in the
//! data, and a damaged length makes a reader wait for bytes that belong to later frames. The price is a byte for each
//! 254.
//!
//! Before it is stuffed a frame is `version:u8 kind:u8 number:u16 payload crc:u32`, little endian. The checksum is the
//! CRC-32 of IEEE 802.3, over all that precedes it. At this length it finds all changes of up to three bits
//! (P. Koopman: 32-Bit Cyclic Redundancy Codes for Internet Applications, DSN 2002). A changed bit that moves the
//! stuffing changes more of them; one in 2³² of such changes passes.

/// The most bytes of a frame before it is stuffed, with its header and checksum.
pub const FRAME_MAX: usize = 1536;

/// The most bytes of a payload.
pub const PAYLOAD_MAX: usize = FRAME_MAX - HEADER - CHECKSUM;

/// The most bytes that a frame has in the stream: a byte more for each 254, and the zero byte that ends it.
pub const STUFFED_MAX: usize = FRAME_MAX + FRAME_MAX.div_ceil(BLOCK) + 1;

/// Ends a frame, and lies in none.
pub const DELIMITER: u8 = 0;

/// `version:u8 kind:u8 number:u16`.
const HEADER: usize = 4;
const CHECKSUM: usize = 4;
/// The most bytes between two bytes that say how far the next zero is.
const BLOCK: usize = 254;
/// Says that a whole [`BLOCK`] follows, and no zero after it.
const WHOLE: u8 = 0xff;

/// What one frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Of which version of the protocol the payload is.
    pub version: u8,
    /// What the payload is.
    pub kind: u8,
    /// Of a command: what its answer repeats. Of what answers nothing: how many such frames the generator had made
    /// before, modulo 2¹⁶.
    pub number: u16,
    /// At most [`PAYLOAD_MAX`] bytes.
    pub payload: &'a [u8],
}

/// Why bytes between two delimiters are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// More than [`FRAME_MAX`] bytes.
    TooLong,
    /// Fewer than a header and a checksum have.
    TooShort,
    /// The frame ended where the stuffing says that it goes on.
    Torn,
    /// The checksum is that of other bytes.
    Checksum,
}

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Damaged::TooLong => "a frame has more than 1536 bytes",
            Damaged::TooShort => "a frame is shorter than its header and checksum",
            Damaged::Torn => "a frame ends too early",
            Damaged::Checksum => "the checksum of a frame is that of other bytes",
        })
    }
}

impl core::error::Error for Damaged {}

/// CRC-32 of IEEE 802.3 (reflected, polynomial 0x04c11db7; of "123456789" it is 0xcbf43926), eight bits at a time.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc_of(crc: u32, byte: u8) -> u32 {
    crc >> 8 ^ CRC[usize::from(crc as u8 ^ byte)]
}

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| crc_of(crc, *byte))
}

/// Writes one frame, byte by byte, into a buffer that has room for any.
pub(super) struct Writer<'a> {
    out: &'a mut [u8; STUFFED_MAX],
    /// Bytes written.
    written: usize,
    /// Where the byte lies that says how far the next zero is.
    code: usize,
    crc: u32,
    /// Bytes of the frame before it is stuffed.
    length: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        out: &'a mut [u8; STUFFED_MAX],
        version: u8,
        kind: u8,
        number: u16,
    ) -> Writer<'a> {
        let mut writer = Writer { out, written: 1, code: 0, crc: u32::MAX, length: 0 };
        writer.put(&[version, kind]);
        writer.put(&number.to_le_bytes());
        writer
    }

    /// The payload's next bytes. Those beyond [`PAYLOAD_MAX`] are none of any message.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        debug_assert!(self.length + bytes.len() + CHECKSUM <= FRAME_MAX, "a message is longer");
        for byte in bytes {
            self.crc = crc_of(self.crc, *byte);
            self.stuff(*byte);
        }
    }

    fn stuff(&mut self, byte: u8) {
        if self.length == FRAME_MAX {
            return;
        }
        self.length += 1;
        if byte != DELIMITER {
            self.out[self.written] = byte;
            self.written += 1;
        }
        let ahead = self.written - self.code;
        if byte == DELIMITER || ahead == usize::from(WHOLE) {
            self.close(ahead as u8);
        }
    }

    /// Says how far the next zero is from where that is said.
    fn close(&mut self, ahead: u8) {
        self.out[self.code] = ahead;
        self.code = self.written;
        self.written += 1;
    }

    /// The frame as it goes into the stream.
    pub(super) fn finish(mut self) -> &'a [u8] {
        for byte in (!self.crc).to_le_bytes() {
            self.stuff(byte);
        }
        let ahead = self.written - self.code;
        self.close(ahead as u8);
        self.out[self.code] = DELIMITER;
        &self.out[..self.written]
    }
}

impl Frame<'_> {
    /// The frame as it goes into the stream, with the delimiter that ends it.
    pub fn encode<'a>(&self, out: &'a mut [u8; STUFFED_MAX]) -> &'a [u8] {
        let mut writer = Writer::new(out, self.version, self.kind, self.number);
        writer.put(self.payload);
        writer.finish()
    }
}

/// Finds frames in a stream that comes in pieces, cut anywhere. It holds one frame and never more.
pub struct Deframer {
    body: [u8; FRAME_MAX],
    /// Bytes of the frame that have come; more than [`FRAME_MAX`] where it is too long.
    length: usize,
    /// How many bytes follow before the next one that says how far.
    left: u8,
    /// Whether a zero is due there.
    zero: bool,
    /// Whether anything has come since the last delimiter.
    begun: bool,
    damaged: u64,
}

impl Default for Deframer {
    fn default() -> Deframer {
        Deframer::new()
    }
}

impl Deframer {
    /// One that has read nothing.
    pub const fn new() -> Deframer {
        let body = [0; FRAME_MAX];
        Deframer { body, length: 0, left: 0, zero: false, begun: false, damaged: 0 }
    }

    /// How often bytes between two delimiters were no frame.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Takes bytes away from the front of `bytes` up to the end of a frame. `None` where they end first; the rest of
    /// the frame then comes with the next call. Delimiters with nothing between are passed over.
    ///
    /// # Errors
    /// Why what lay before a delimiter is no frame. The next one may be.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<Result<Frame<'_>, Damaged>> {
        loop {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            if *byte != DELIMITER {
                self.take(*byte);
            } else if core::mem::replace(&mut self.begun, false) {
                return Some(self.end());
            }
        }
    }

    fn take(&mut self, byte: u8) {
        if !self.begun {
            (self.begun, self.length, self.left, self.zero) = (true, 0, 0, false);
        }
        if self.left > 0 {
            self.left -= 1;
            return self.keep(byte);
        }
        if self.zero {
            self.keep(DELIMITER);
        }
        (self.left, self.zero) = (byte - 1, byte != WHOLE);
    }

    fn keep(&mut self, byte: u8) {
        if let Some(place) = self.body.get_mut(self.length) {
            *place = byte;
        }
        self.length = (self.length + 1).min(FRAME_MAX + 1);
    }

    fn end(&mut self) -> Result<Frame<'_>, Damaged> {
        let checked = self.check();
        self.damaged += u64::from(checked.is_err());
        checked?;
        let [version, kind, low, high] = [0, 1, 2, 3].map(|n| self.body[n]);
        let payload = &self.body[HEADER..self.length - CHECKSUM];
        Ok(Frame { version, kind, number: u16::from_le_bytes([low, high]), payload })
    }

    fn check(&self) -> Result<(), Damaged> {
        let body = self.body.get(..self.length).ok_or(Damaged::TooLong)?;
        if self.left > 0 {
            return Err(Damaged::Torn);
        }
        let (said, told) = body.split_last_chunk().ok_or(Damaged::TooShort).map(|(b, c)| (c, b))?;
        if told.len() < HEADER {
            return Err(Damaged::TooShort);
        }
        // A fuzzer finds no checksum; behind it lies what it is to try.
        let right = cfg!(fuzzing) || checksum(told) == u32::from_le_bytes(*said);
        if right { Ok(()) } else { Err(Damaged::Checksum) }
    }
}

#[cfg(test)]
#[path = "tests/frame.rs"]
mod tests;
