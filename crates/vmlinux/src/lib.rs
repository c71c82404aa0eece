// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kernel's own image says of its code, and what the memory of a running kernel says of its modules.
//!
//! All of it comes from a stock x86-64 `bzImage` and nothing else. [`payload`] finds the compressed ELF in it, and
//! [`Image`] reads the symbols, unwind tables and types of that ELF. [`Map::of`] adds the modules of a running kernel.
//! A [`Map`] is one file that is used where it lies; [`unwind`] follows stacks by it.
//!
//! The crate is pure: it takes bytes and a [`Memory`] and gives values. The caller decompresses the ELF and reads the
//! guest. Addresses are taken as linked, so the kernel has to run with `nokaslr`. The crate does not see code that the
//! kernel makes at run time (BPF programs, ftrace and kprobe trampolines). Stacks that go through such code are lost
//! there.

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
mod kallsyms;
mod layout;
mod little_endian;
mod map;
#[cfg(feature = "image")]
mod modules;
mod x86_64;

#[cfg(feature = "image")]
pub use btf::Btf;
pub use error::Error;
#[cfg(feature = "image")]
pub use image::{Image, Symbol};
pub use layout::Layout;
pub use map::{CodePlace, Map};
#[cfg(feature = "image")]
pub use x86_64::payload::{Compression, payload};
pub use x86_64::unwind::{Regs, StackEnd, Unwinder, Unwound, unwind};

/// The memory of a kernel, or the made-up memory of a test.
pub trait Memory {
    /// Fills `bytes` from the kernel's virtual `address` on. Returns `false` if part of the range cannot be read. The
    /// content of `bytes` means nothing in that case.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}
