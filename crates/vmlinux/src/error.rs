// SPDX-License-Identifier: GPL-2.0-or-later
//! Why an image or a map cannot be used, and what to do about it.

use crate::x86_64::{IMAGE_OF_A_BUILD, KERNEL_IMAGE};
use std::fmt;

/// What is wrong with the given bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes are no kernel image that can be booted, or the image ends too early.
    BootImage(&'static str),
    /// The kernel is compressed in an unknown way. The field has its first bytes.
    Compression([u8; 4]),
    /// The bytes are no 64-bit ELF image, or the image is damaged.
    Elf(&'static str),
    /// The image has no symbol table that can be found.
    Kallsyms(&'static str),
    /// The bytes are no map, or the map is damaged.
    Map(&'static str),
    /// Another version of this program made the map. The fields are the map's version and ours.
    MapVersion(u32, u32),
    /// The kernel has more things of one kind than a map can hold.
    TooLarge(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BootImage(why) => write!(
                f,
                "no kernel image: {why}; give the file that Debian names vmlinuz ({IMAGE_OF_A_BUILD} of a build)"
            ),
            Error::Compression(magic) => write!(
                f,
                "the kernel is compressed in an unknown way (it begins with {magic:02x?}); build it with CONFIG_KERNEL_ZSTD or _XZ"
            ),
            Error::Elf(why) => {
                write!(f, "what is compressed in the kernel image is no {KERNEL_IMAGE}: {why}")
            }
            Error::Kallsyms(why) => write!(
                f,
                "the kernel has no symbol table that could be read: {why}; it takes CONFIG_KALLSYMS=y, and its forms in Linux 6.1 … 7.3 are known"
            ),
            Error::Map(why) => write!(f, "the map is damaged: {why}; remove it, it is made again"),
            Error::MapVersion(theirs, ours) => write!(
                f,
                "the map has version {theirs}, this is for version {ours}; remove it, it is made again"
            ),
            Error::TooLarge(what) => write!(f, "the kernel has more {what} than a map holds"),
        }
    }
}

impl std::error::Error for Error {}
