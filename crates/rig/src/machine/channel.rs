// SPDX-License-Identifier: GPL-2.0-or-later
//! The collector's end of the record channel: a ring in memory that QEMU inherits.

use crate::{Error, Result};
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use sample::{Consumer, Record, ring_bytes, ring_init};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Records that fit: 8 MiB. The guest makes at most a few hundred thousand a second of wall time, so the
/// collector may be kept from running for seconds before one is dropped.
const CAPACITY: usize = 1 << 18;

/// The channel of one machine.
pub struct Channel {
    fd: OwnedFd,
    memory: *mut std::ffi::c_void,
    bytes: usize,
    consumer: Consumer,
}

// SAFETY: the memory is reached only through the consumer's atomics and unmapped once, on drop.
unsafe impl Send for Channel {}

impl Channel {
    /// An empty channel of the usual size.
    pub fn new() -> Result<Channel> {
        Channel::with_capacity(CAPACITY)
    }

    /// An empty channel for `records` records.
    pub fn with_capacity(records: usize) -> Result<Channel> {
        let failed = |e: rustix::io::Errno| Error::Qemu(format!("the record channel: {e}"));
        let bytes = ring_bytes(records);
        let fd = rustix::fs::memfd_create("onset-records", MemfdFlags::CLOEXEC).map_err(failed)?;
        rustix::fs::ftruncate(&fd, bytes as u64).map_err(failed)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping of a fresh file, exclusive until a QEMU inherits the descriptor.
        let (memory, consumer) = unsafe {
            let memory =
                rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &fd, 0)
                    .map_err(failed)?;
            ring_init(memory.cast(), bytes).map_err(|e| Error::Qemu(e.to_string()))?;
            let consumer = Consumer::attach(memory.cast(), bytes);
            (memory, consumer.map_err(|e| Error::Qemu(e.to_string()))?)
        };
        Ok(Channel { fd, memory, bytes, consumer })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Hands every waiting record to `each`, and whether records are missing before it; returns how many.
    /// Bytes that are no record are an error: the
    /// plugin and this program disagree.
    pub fn drain(&mut self, mut each: impl FnMut(&Record, bool)) -> Result<u64> {
        let mut malformed = false;
        let n = self.consumer.drain(|bytes, gap| match Record::decode(bytes) {
            Ok(record) => each(&record, gap),
            Err(_) => malformed = true,
        });
        if malformed {
            return Err(Error::Qemu(
                "the plugin sent a malformed record; rebuild onset and its plugin together".into(),
            ));
        }
        Ok(n)
    }

    /// Records lost so far because the channel was full.
    pub fn dropped(&self) -> u64 {
        self.consumer.dropped()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: mapped in `with_capacity`; the consumer is not used after this.
        let _ = unsafe { rustix::mm::munmap(self.memory, self.bytes) };
    }
}
