// SPDX-License-Identifier: GPL-2.0-or-later
//! A ring in memory that two processes share. The collector makes it, and the source inherits its descriptor.

use crate::{Consumer, Event, Producer, RingError, ring_bytes, ring_init};
use core::fmt;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// Why there is no channel, or why it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// The system refused memory or descriptor.
    System(Errno),
    /// The memory is no ring of this version.
    Ring(RingError),
    /// Bytes that are no event: the source is of another version.
    Malformed,
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(e) => write!(f, "the record channel: {e}"),
            Self::Ring(e) => e.fmt(f),
            Self::Malformed => f.write_str(
                "the record channel holds a malformed event; build onset and its parts together",
            ),
        }
    }
}

impl core::error::Error for ChannelError {}

impl From<Errno> for ChannelError {
    fn from(e: Errno) -> Self {
        ChannelError::System(e)
    }
}

impl From<RingError> for ChannelError {
    fn from(e: RingError) -> Self {
        ChannelError::Ring(e)
    }
}

/// The collector's end.
pub struct Channel {
    fd: OwnedFd,
    memory: *mut core::ffi::c_void,
    bytes: usize,
    consumer: Consumer,
}

// SAFETY: the memory is reached only through the consumer's atomics and unmapped once, on drop.
unsafe impl Send for Channel {}

impl Channel {
    /// An empty channel for `events` events.
    pub fn with_capacity(events: usize) -> Result<Channel, ChannelError> {
        let bytes = ring_bytes(events);
        let fd = rustix::fs::memfd_create("onset-records", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, bytes as u64)?;
        let memory = map(&fd, bytes)?;
        // SAFETY: a fresh mapping of a fresh file, exclusive until a source inherits the descriptor.
        let consumer = unsafe {
            ring_init(memory.cast(), bytes)?;
            Consumer::attach(memory.cast(), bytes)?
        };
        Ok(Channel { fd, memory, bytes, consumer })
    }

    /// The descriptor that the source inherits; it is closed on exec unless the child's set-up says otherwise.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Hands every waiting event to `each`, and whether events are missing before it; returns how many.
    ///
    /// # Errors
    /// [`ChannelError::Malformed`], after the sound ones were handed over.
    pub fn drain(&mut self, mut each: impl FnMut(&Event, bool)) -> Result<u64, ChannelError> {
        let mut malformed = false;
        let n = self.consumer.drain(|bytes, gap| match Event::decode(bytes) {
            Ok(event) => each(&event, gap),
            Err(_) => malformed = true,
        });
        if malformed { Err(ChannelError::Malformed) } else { Ok(n) }
    }

    /// Events lost so far because the channel was full.
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

/// The source's end of the channel behind an inherited descriptor. Stays mapped until the process ends.
///
/// # Errors
/// [`ChannelError`], as for a descriptor that is no channel.
///
/// # Safety
/// No other producer uses the channel, in this process or another.
pub unsafe fn producer_of(fd: impl AsFd) -> Result<Producer, ChannelError> {
    let bytes =
        usize::try_from(rustix::fs::fstat(&fd)?.st_size).map_err(|_| RingError::TooSmall)?;
    let memory = map(&fd, bytes)?;
    // SAFETY: a mapping of `bytes` bytes that is never removed; the caller vouches for the rest.
    Ok(unsafe { Producer::attach(memory.cast(), bytes)? })
}

fn map(fd: impl AsFd, bytes: usize) -> Result<*mut core::ffi::c_void, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe { rustix::mm::mmap(core::ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use sample::Loss;

    #[test]
    fn what_the_source_pushes_the_collector_drains_in_order() {
        let mut channel = Channel::with_capacity(8).unwrap();
        // SAFETY: the only producer of a channel made here.
        let mut producer = unsafe { producer_of(&channel.fd) }.unwrap();
        let loss = |count| Event::Reading(Reading::Loss { series: 0, loss: Loss::Tainted, count });
        let events = [1, 2, 3].map(loss);
        events.iter().for_each(|event| producer.push(event));
        let mut seen = std::vec::Vec::new();
        assert_eq!(channel.drain(|event, _| seen.push(*event)), Ok(3));
        assert_eq!(seen, events);
    }

    #[test]
    fn a_file_that_is_no_channel_is_refused() {
        let empty = rustix::fs::memfd_create("empty", MemfdFlags::CLOEXEC).unwrap();
        // SAFETY: nobody else uses it.
        assert!(unsafe { producer_of(&empty) }.is_err());
        rustix::fs::ftruncate(&empty, 4096).unwrap();
        // SAFETY: as above.
        let refused = unsafe { producer_of(&empty) };
        assert_eq!(refused.err(), Some(ChannelError::Ring(RingError::NotARing)));
    }
}
