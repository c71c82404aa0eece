// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kernel's own image says of its code, and what the memory of a running one says of its modules.
//!
//! From a stock x86-64 `bzImage` and nothing else: [`payload`] finds the compressed ELF in it, [`Image`] the
//! symbols, unwind tables and types in that, and [`Map::of`] adds the modules of a running kernel. A [`Map`] is
//! one file that is used where it lies; [`unwind`] follows stacks by it.
//!
//! Pure: bytes and a [`Memory`] in, values out; decompressing, and reading a guest, are the caller's. It takes
//! addresses as linked, so the kernel has to run with `nokaslr`. It does not see code that the kernel makes at run
//! time (BPF programs, ftrace and kprobe trampolines): stacks that go through it are lost there.

#[cfg(feature = "image")]
mod btf;
#[cfg(feature = "image")]
mod draft;
#[cfg(feature = "image")]
mod elf;
mod error;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "image")]
mod instructions;
#[cfg(feature = "image")]
mod kallsyms;
mod layout;
mod little_endian;
mod map;
#[cfg(feature = "image")]
mod modules;
mod orc;
#[cfg(feature = "image")]
mod payload;
mod unwind;

#[cfg(feature = "image")]
pub use btf::Btf;
pub use error::Error;
#[cfg(feature = "image")]
pub use image::{Image, Symbol};
pub use layout::Layout;
pub use map::{Map, Place};
#[cfg(feature = "image")]
pub use payload::{Compression, payload};
pub use unwind::{Ending, Regs, Unwinder, Unwound, unwind};

/// The memory of a kernel, or of a test.
pub trait Memory {
    /// Fills `bytes` from the kernel's virtual `address` on. `false` where not all of it can be read; what is then
    /// in `bytes` means nothing.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}
