// SPDX-License-Identifier: GPL-2.0-or-later
//! The compressed kernel inside a `bzImage` (Documentation/arch/x86/boot.rst).

use crate::Error;
use crate::little_endian::{array_at, u16_at, u32_at};

/// How the kernel is compressed (scripts/extract-vmlinux, lib/decompress.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// xz, with the filter for x86 code.
    Xz,
    /// zstd (RFC 8878).
    Zstd,
    /// lz4 in the format before its frames, as `lz4 -l` writes it.
    Lz4,
    /// lzma, of lzma-utils.
    Lzma,
    /// bzip2.
    Bzip2,
    /// lzop.
    Lzo,
}

impl Compression {
    /// The program that decompresses this format from a file to its standard output if called with `-dc`, and the
    /// Debian package of the program.
    pub fn program(self) -> (&'static str, &'static str) {
        match self {
            Compression::Gzip => ("gzip", "gzip"),
            Compression::Xz => ("xz", "xz-utils"),
            Compression::Zstd => ("zstd", "zstd"),
            Compression::Lz4 => ("lz4", "lz4"),
            Compression::Lzma => ("lzma", "xz-utils"),
            Compression::Bzip2 => ("bzip2", "bzip2"),
            Compression::Lzo => ("lzop", "lzop"),
        }
    }

    fn of(payload: &[u8]) -> Option<Compression> {
        let magics: [(&[u8], Compression); 7] = [
            (&[0x1f, 0x8b, 0x08], Compression::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
            (&[0x02, 0x21, 0x4c, 0x18], Compression::Lz4),
            (&[0x5d, 0, 0], Compression::Lzma),
            (b"BZh", Compression::Bzip2),
            (&[0x89, b'L', b'Z', b'O'], Compression::Lzo),
        ];
        magics.into_iter().find(|(magic, _)| payload.starts_with(magic)).map(|(_, c)| c)
    }
}

/// The size of a sector of the boot protocol, in bytes.
const SECTOR: usize = 512;
/// Offsets in the real-mode kernel header (boot.rst, "The Real-Mode Kernel Header").
const SETUP_SECTS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// The compressed kernel in a `bzImage`. When decompressed it is the ELF image that
/// [`Image::parse`](crate::Image::parse) takes.
///
/// # Errors
/// [`Error::BootImage`] or [`Error::Compression`].
pub fn payload(bzimage: &[u8]) -> Result<(Compression, &[u8]), Error> {
    let missing = || Error::BootImage("it ends inside its header");
    if array_at(bzimage, MAGIC).ok_or_else(missing)? != *b"HdrS" {
        return Err(Error::BootImage("there is no boot header in it"));
    }
    // Protocol 2.08 brought payload_offset and payload_length.
    if u16_at(bzimage, VERSION).ok_or_else(missing)? < 0x208 {
        return Err(Error::BootImage("its boot protocol is older than 2.08"));
    }
    let sectors = match *bzimage.get(SETUP_SECTS).ok_or_else(missing)? {
        0 => 4,
        n => usize::from(n),
    };
    let offset = u32_at(bzimage, PAYLOAD_OFFSET).ok_or_else(missing)? as usize;
    let length = u32_at(bzimage, PAYLOAD_LENGTH).ok_or_else(missing)? as usize;
    let payload = bzimage
        .get((sectors + 1) * SECTOR..)
        .and_then(|b| b.get(offset..)?.get(..length))
        .ok_or(Error::BootImage("it ends inside the compressed kernel"))?;
    let compression = Compression::of(payload)
        .ok_or_else(|| Error::Compression(array_at(payload, 0).unwrap_or_default()))?;
    // scripts/Makefile.lib, size_append: the uncompressed size follows in all formats but gzip, which contains it. The
    // programs take this size for garbage.
    let trailer = if compression == Compression::Gzip { 0 } else { 4 };
    Ok((compression, &payload[..payload.len().saturating_sub(trailer)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR + 16];
        image[SETUP_SECTS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&0x20fu16.to_le_bytes());
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16u32.to_le_bytes());
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4]
            .copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn the_payload_comes_without_the_size_that_follows_it() {
        let image = bzimage(b"\x28\xb5\x2f\xfd data size");
        assert_eq!(payload(&image), Ok((Compression::Zstd, &b"\x28\xb5\x2f\xfd data "[..])));
        let image = bzimage(b"\x1f\x8b\x08 data");
        assert_eq!(payload(&image), Ok((Compression::Gzip, &b"\x1f\x8b\x08 data"[..])));
    }

    #[test]
    fn what_is_no_kernel_or_half_of_one_is_refused() {
        let whole = bzimage(b"\x28\xb5\x2f\xfd data size");
        for length in 0..whole.len() {
            assert!(matches!(payload(&whole[..length]), Err(Error::BootImage(_))), "{length}");
        }
        assert_eq!(payload(&bzimage(b"abcdefgh")), Err(Error::Compression(*b"abcd")));
    }
}
