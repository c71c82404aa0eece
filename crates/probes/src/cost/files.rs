// SPDX-License-Identifier: GPL-2.0-or-later
//! Files, mappings and faults (lmbench3: lat_fs.c, lat_mmap.c, lat_pagefault.c, lat_sig.c, bw_file_rd.c, bw_mmap_rd.c).

use super::Suite::Files;
use super::bench::{Signs, Work, answered, empty};
use super::ipc::CHUNK;
use super::memory::add_up;
use super::partner::{read, write};
use super::place::{Place, shuffled};
use super::row::Row;
use super::syscalls::{caught, install, send};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const PAGE: usize = 4096;
/// Pages of the file whose pages are faulted in: 1 MiB, the least that LMbench takes.
const PAGES: u32 = 256;
/// The file that is mapped and touched.
const MAPPED: usize = 4 << 20;
/// A tenth of the mapping is touched, in steps of so many bytes.
const STEP: usize = 16 * 1024;
/// The file that is read again and again.
const REREAD: usize = 8 << 20;
/// Files that a batch makes and deletes.
const FILES: u32 = 100;

pub(super) static ROWS: [Row; 9] = [
    Row::time((Files, "file_create_0k"), "an empty file made", FILES, |p| Made::of(p, 0, true)),
    Row::time((Files, "file_delete_0k"), "one deleted", FILES, |p| Made::of(p, 0, false)),
    Row::time((Files, "file_create_10k"), "a file of 10 KiB made", FILES, |p| {
        Made::of(p, 10, true)
    }),
    Row::time((Files, "file_delete_10k"), "one deleted", FILES, |p| Made::of(p, 10, false)),
    Row::time((Files, "mmap"), "4 MiB mapped, a tenth touched, unmapped", 20, mmap),
    Row::time((Files, "page_fault"), "a page of a mapped file touched", PAGES, page_fault),
    Row::time((Files, "protection_fault"), "a store refused, less a signal", 200, protection_fault),
    Row::bytes((Files, "file_reread"), "8 MiB read and added up", (1, REREAD as u64), file_reread),
    Row::bytes(
        (Files, "mmap_reread"),
        "8 MiB mapped and added up",
        (1, REREAD as u64),
        mmap_reread,
    ),
];

/// Files that are made in one stretch and deleted in another, which is not measured.
struct Made {
    names: Vec<CString>,
    content: Vec<u8>,
    /// Whether making is measured, and not deleting.
    makes: bool,
}

impl Made {
    fn of(place: &Place, kib: usize, makes: bool) -> io::Result<Box<dyn Work>> {
        let names = (0..FILES).map(|n| place.text(&n.to_string())).collect();
        Ok(Box::new(Made { names, content: vec![1; kib * 1024], makes }))
    }

    fn make(&self) -> io::Result<()> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        self.names.iter().try_for_each(|name| {
            // SAFETY: the name ends with a zero.
            let fd = answered(unsafe { libc::open(name.as_ptr(), flags, 0o666) })? as RawFd;
            let wrote = match self.content.len() {
                0 => Ok(()),
                length => super::bench::moved(write(&fd, &self.content), length),
            };
            // SAFETY: the descriptor is this function's own.
            answered(unsafe { libc::close(fd) })?;
            wrote
        })
    }

    fn delete(&self) -> io::Result<()> {
        // SAFETY: the name ends with a zero.
        let delete = |name: &CString| answered(unsafe { libc::unlink(name.as_ptr()) }).map(drop);
        self.names.iter().try_for_each(delete)
    }
}

impl Work for Made {
    fn before(&mut self, _ops: u32) -> io::Result<()> {
        if self.makes { Ok(()) } else { self.make() }
    }

    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        match (part, self.makes) {
            (0, true) => self.make(),
            (0, false) => self.delete(),
            _ => {
                empty(ops);
                Ok(())
            }
        }
    }

    fn after(&mut self, _ops: u32) -> io::Result<()> {
        if self.makes { self.delete() } else { Ok(()) }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // After a failure some are left; the next row needs the room.
        for name in &self.names {
            // SAFETY: the name ends with a zero.
            unsafe { libc::unlink(name.as_ptr()) };
        }
    }
}

/// A file in memory.
struct Mapping {
    file: File,
    bytes: usize,
    access: libc::c_int,
    memory: *mut u8,
}

impl Mapping {
    fn of(file: File, bytes: usize, access: libc::c_int) -> io::Result<Mapping> {
        let mut mapping = Mapping { file, bytes, access, memory: ptr::null_mut() };
        mapping.map()?;
        Ok(mapping)
    }

    #[inline]
    fn map(&mut self) -> io::Result<()> {
        let Mapping { bytes, access, .. } = *self;
        let fd = self.file.as_raw_fd();
        // SAFETY: the kernel chooses the address.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.memory = memory.cast();
        Ok(())
    }

    #[inline]
    fn unmap(&mut self) -> io::Result<()> {
        if self.memory.is_null() {
            return Ok(());
        }
        let memory = std::mem::replace(&mut self.memory, ptr::null_mut());
        // SAFETY: this is a mapping of so many bytes, and nobody has a part of it any more.
        answered(unsafe { libc::munmap(memory.cast(), self.bytes) }).map(drop)
    }

    fn content(&self) -> &[u8] {
        // SAFETY: the mapping has so many bytes, and nobody writes to the file.
        unsafe { std::slice::from_raw_parts(self.memory, self.bytes) }
    }

    /// The pages are dropped from memory and mapped anew, as LMbench does between two rounds.
    fn again(&mut self) -> io::Result<()> {
        self.unmap()?;
        self.map()?;
        // SAFETY: this is a mapping of so many bytes.
        answered(unsafe { libc::msync(self.memory.cast(), self.bytes, libc::MS_INVALIDATE) })
            .map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = self.unmap();
    }
}

fn opened(place: &Place, name: &str, bytes: usize) -> io::Result<File> {
    let path = place.file(name, bytes)?;
    File::options().read(true).write(true).open(path)
}

fn mmap(place: &Place) -> io::Result<Box<dyn Work>> {
    let file = opened(place, "mapped", MAPPED)?;
    let mut mapping = Mapping::of(file, MAPPED, libc::PROT_READ | libc::PROT_WRITE)?;
    mapping.unmap()?;
    super::bench::each(move || {
        mapping.map()?;
        for at in (0..MAPPED / 10).step_by(STEP) {
            // SAFETY: the mapping is larger and may be written to.
            unsafe { mapping.memory.add(at).write_volatile(1) };
        }
        mapping.unmap()
    })
}

/// Pages of a mapped file that are touched in a mixed order.
struct Touched {
    mapping: Mapping,
    order: Vec<usize>,
}

fn page_fault(place: &Place) -> io::Result<Box<dyn Work>> {
    let bytes = PAGES as usize * PAGE;
    let mapping = Mapping::of(opened(place, "touched", bytes)?, bytes, libc::PROT_READ)?;
    let order = shuffled(PAGES as usize, &mut place.seed.into());
    Ok(Box::new(Touched { mapping, order }))
}

impl Work for Touched {
    fn before(&mut self, _ops: u32) -> io::Result<()> {
        self.mapping.again()
    }

    fn stretch(&mut self, part: usize, _ops: u32) -> io::Result<()> {
        if part == 0 {
            for page in &self.order {
                // SAFETY: the mapping has that page.
                unsafe { self.mapping.memory.add(page * PAGE).read_volatile() };
            }
        }
        self.mapping.again()
    }
}

/// The page that the handler makes writable after so many faults.
static REFUSING: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LEFT: AtomicU32 = AtomicU32::new(0);

/// The store is tried again when the handler returns, and faults again, until the last one may succeed.
extern "C" fn refused(_signal: libc::c_int) {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        let (page, access) = (REFUSING.load(Ordering::Relaxed), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: this is a page of this process.
        unsafe { libc::mprotect(page.cast(), PAGE, access) };
    }
}

/// Stores that the page does not allow.
struct Refused {
    mapping: Mapping,
    /// The handler that was there before.
    former: libc::sigaction,
}

fn protection_fault(place: &Place) -> io::Result<Box<dyn Work>> {
    let mapping = Mapping::of(opened(place, "refused", PAGE)?, PAGE, libc::PROT_READ)?;
    // SAFETY: there is room for the action.
    let former = unsafe {
        let mut former = std::mem::zeroed();
        answered(libc::sigaction(libc::SIGSEGV, ptr::null(), &mut former))?;
        former
    };
    Ok(Box::new(Refused { mapping, former }))
}

impl Work for Refused {
    /// A store that is refused costs what a signal costs that is caught; and one that is caught costs what sending it
    /// does, which nobody does here.
    fn signs(&self) -> Signs {
        &[true, false, true, false]
    }

    fn before(&mut self, ops: u32) -> io::Result<()> {
        REFUSING.store(self.mapping.memory, Ordering::Relaxed);
        LEFT.store(ops, Ordering::Relaxed);
        let handler = refused as *const () as libc::sighandler_t;
        install(libc::SIGSEGV, handler)?;
        install(libc::SIGUSR1, caught as *const () as libc::sighandler_t)?;
        // SAFETY: this is a page of this process.
        answered(unsafe { libc::mprotect(self.mapping.memory.cast(), PAGE, libc::PROT_READ) })
            .map(drop)
    }

    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        match part {
            // SAFETY: the page is there; its handler makes it writable in the end.
            0 => unsafe { self.mapping.memory.write_volatile(1) },
            1 => send(libc::SIGUSR1, ops)?,
            2 => send(0, ops)?,
            _ => empty(ops),
        }
        Ok(())
    }
}

impl Drop for Refused {
    fn drop(&mut self) {
        // SAFETY: the action is the one that was there.
        unsafe { libc::sigaction(libc::SIGSEGV, &self.former, ptr::null_mut()) };
    }
}

fn file_reread(place: &Place) -> io::Result<Box<dyn Work>> {
    let file = opened(place, "reread", REREAD)?;
    let mut buffer = vec![0u8; CHUNK];
    super::bench::each(move || {
        // SAFETY: this is a plain system call.
        answered(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_SET) })?;
        for _ in 0..REREAD / CHUNK {
            super::bench::moved(read(&file, &mut buffer), CHUNK)?;
            add_up(&buffer);
        }
        Ok(())
    })
}

fn mmap_reread(place: &Place) -> io::Result<Box<dyn Work>> {
    let mapping = Mapping::of(opened(place, "reread", REREAD)?, REREAD, libc::PROT_READ)?;
    super::bench::each(move || {
        add_up(mapping.content());
        Ok(())
    })
}
