// SPDX-License-Identifier: GPL-2.0-or-later
//! io_uring by its system calls (io_uring_setup(2), io_uring_enter(2)), without a library: one entry is put into the
//! ring, handed in and waited for.

use super::Suite::Ipc;
use super::bench::{Work, answered, each};
use super::ipc::new_eventfd;
use super::partner::write;
use super::place::Place;
use super::row::Row;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) static ROWS: [Row; 2] = [
    Row::time((Ipc, "io_uring_nop"), "an empty request through io_uring", 500, nop),
    Row::time((Ipc, "io_uring_poll"), "a poll of a ready eventfd through io_uring", 500, poll),
];

// Of include/uapi/linux/io_uring.h.
const OP_NOP: u8 = 0;
const OP_POLL_ADD: u8 = 6;
const ENTER_GETEVENTS: u32 = 1;
const OFFSET_SQ: i64 = 0;
const OFFSET_CQ: i64 = 0x800_0000;
const OFFSET_SQES: i64 = 0x1000_0000;
/// The entries of the ring. One is used at a time.
const ENTRIES: u32 = 8;

/// `struct io_sqring_offsets` and `struct io_cqring_offsets`: ten words each, where only the first ones are used.
type Offsets = [u32; 10];

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    rest: [u32; 7],
    sq: Offsets,
    cq: Offsets,
}

/// `struct io_uring_sqe`, with the fields that these requests have.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    events: u32,
    user: u64,
    rest: [u64; 3],
}

/// A piece of the ring's memory.
struct Mapped {
    memory: *mut u8,
    bytes: usize,
}

impl Mapped {
    fn of(ring: &OwnedFd, bytes: usize, offset: i64) -> io::Result<Mapped> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: the kernel chooses the address, and the ring has so many bytes.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, ring.as_raw_fd(), offset) };
        match memory == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Mapped { memory: memory.cast(), bytes }),
        }
    }

    /// The word at `offset`, which the kernel named.
    fn word(&self, offset: u32) -> &AtomicU32 {
        assert!(offset as usize + size_of::<u32>() <= self.bytes, "outside of the ring");
        // SAFETY: the word is inside the mapping, and both sides use it as an atomic.
        unsafe { &*self.memory.add(offset as usize).cast() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nobody has a part of it any more.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

struct Ring {
    fd: OwnedFd,
    submission: Mapped,
    completion: Mapped,
    requests: Mapped,
    params: Params,
}

impl Ring {
    fn new() -> io::Result<Ring> {
        let mut params = Params::default();
        // SAFETY: the parameters are initialised, and nobody else owns the descriptor.
        let fd = unsafe {
            let fd = libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut params);
            OwnedFd::from_raw_fd(answered(fd)? as RawFd)
        };
        // The last member of each offset table is where the arrays begin (sq: array, cq: cqes).
        let sq_bytes = params.sq[6] as usize + params.sq_entries as usize * size_of::<u32>();
        let cq_bytes = params.cq[5] as usize + params.cq_entries as usize * 16;
        Ok(Ring {
            submission: Mapped::of(&fd, sq_bytes, OFFSET_SQ)?,
            completion: Mapped::of(&fd, cq_bytes, OFFSET_CQ)?,
            requests: Mapped::of(
                &fd,
                params.sq_entries as usize * size_of::<Request>(),
                OFFSET_SQES,
            )?,
            fd,
            params,
        })
    }

    /// Hands a request in and waits for its answer, in one system call.
    fn carry_out(&self, request: Request) -> io::Result<i32> {
        let (sq, cq) = (&self.params.sq, &self.params.cq);
        let (sq_tail, sq_mask) = (self.submission.word(sq[1]), self.submission.word(sq[2]));
        let tail = sq_tail.load(Ordering::Relaxed);
        let slot = tail & sq_mask.load(Ordering::Relaxed);
        // SAFETY: the mask keeps the slot among the entries.
        unsafe {
            self.requests.memory.cast::<Request>().add(slot as usize).write_volatile(request)
        };
        self.submission.word(sq[6] + slot * 4).store(slot, Ordering::Relaxed);
        sq_tail.store(tail.wrapping_add(1), Ordering::Release);
        let fd = self.fd.as_raw_fd();
        let nobody = ptr::null::<libc::sigset_t>();
        // SAFETY: the ring has one request, and there is no set of signals.
        answered(unsafe {
            libc::syscall(libc::SYS_io_uring_enter, fd, 1, 1, ENTER_GETEVENTS, nobody, 0usize)
        })?;
        let (cq_head, cq_mask) = (self.completion.word(cq[0]), self.completion.word(cq[2]));
        let head = cq_head.load(Ordering::Relaxed);
        let slot = head & cq_mask.load(Ordering::Relaxed);
        // `struct io_uring_cqe`: the user's word, then the result.
        let result = self.completion.word(cq[5] + slot * 16 + 8).load(Ordering::Acquire) as i32;
        cq_head.store(head.wrapping_add(1), Ordering::Release);
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
    }
}

const fn request(opcode: u8, fd: i32, events: u32) -> Request {
    Request {
        opcode,
        flags: 0,
        priority: 0,
        fd,
        offset: 0,
        address: 0,
        length: 0,
        events,
        user: 0,
        rest: [0; 3],
    }
}

fn nop(_: &Place) -> io::Result<Box<dyn Work>> {
    let ring = Ring::new()?;
    each(move || ring.carry_out(request(OP_NOP, -1, 0)).map(drop))
}

fn poll(_: &Place) -> io::Result<Box<dyn Work>> {
    let (ring, event) = (Ring::new()?, new_eventfd()?);
    super::bench::moved(write(&event, &1u64.to_ne_bytes()), 8)?;
    each(move || {
        let wanted = request(OP_POLL_ADD, event.as_raw_fd(), libc::POLLIN as u32);
        ring.carry_out(wanted).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_large_as_the_kernel_says() {
        assert_eq!((size_of::<Params>(), size_of::<Request>()), (120, 64));
    }

    #[test]
    fn a_request_is_answered_or_the_kernel_says_that_it_has_no_ring() {
        match Ring::new() {
            Ok(ring) => {
                // More than the ring has entries.
                for _ in 0..3 * ENTRIES {
                    assert_eq!(ring.carry_out(request(OP_NOP, -1, 0)).unwrap(), 0);
                }
                let unknown = ring.carry_out(request(u8::MAX, -1, 0)).unwrap_err();
                assert_eq!(unknown.raw_os_error(), Some(libc::EINVAL));
            }
            Err(e) => {
                assert!(matches!(
                    e.raw_os_error(),
                    Some(libc::ENOSYS | libc::EPERM | libc::ENOMEM)
                ));
            }
        }
    }
}
