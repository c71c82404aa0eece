// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms of the probe `async` whose objects belong to the system and could outlive the process.
//!
//! A POSIX queue loses its name as soon as it is open. System V objects cannot lose theirs: removing such an object
//! ends every wait for it. They are private and are removed on drop. Where the user may have one, they live in an IPC
//! namespace of the probe ([`isolate`]). This namespace ends with the probe's last thread, even after a kill.

use super::mechanism::{Handover, checked, uninterrupted};
use rt::now;
use sample::{Monotonic, Stamp};
use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The length of a message: one word. Rhealstone asks for a length above zero.
const MESSAGE_BYTES: usize = 8;

/// Gives the calling thread and the threads that it starts their own System V objects and message queues. Returns
/// whether the system allowed this (CAP_SYS_ADMIN and CONFIG_IPC_NS, namespaces(7)). Only one thing depends on it: that
/// a killed probe leaves nothing behind.
pub(crate) fn isolate() -> bool {
    // SAFETY: the call concerns System V objects only, and this thread has none yet.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
}

/// A mechanism by `semop` on one System V semaphore.
pub(crate) struct SysvSemaphore {
    id: libc::c_int,
}

impl SysvSemaphore {
    pub(crate) fn new() -> io::Result<SysvSemaphore> {
        // SAFETY: there are no pointers. Linux makes the semaphore with the value 0 (semget(2)).
        let id = checked(unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) })?;
        Ok(SysvSemaphore { id: id as libc::c_int })
    }

    fn add(&self, change: libc::c_short) -> io::Result<()> {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: change, sem_flg: 0 };
        // SAFETY: there is one operation, which outlives the call.
        uninterrupted(|| unsafe { libc::semop(self.id, &raw mut operation, 1) })?;
        Ok(())
    }
}

impl Handover for SysvSemaphore {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        self.add(-1)?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        self.add(1)
    }
}

impl Drop for SysvSemaphore {
    fn drop(&mut self) {
        // SAFETY: the object is our own, and IPC_RMID takes no fourth argument.
        unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
    }
}

/// A mechanism by `msgsnd` and `msgrcv` on one System V queue.
pub(crate) struct SysvQueue {
    id: libc::c_int,
}

/// `struct msgbuf` of msgop(2).
#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; MESSAGE_BYTES],
}

impl SysvQueue {
    pub(crate) fn new() -> io::Result<SysvQueue> {
        // SAFETY: there are no pointers.
        let id = checked(unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) })?;
        Ok(SysvQueue { id: id as libc::c_int })
    }
}

impl Handover for SysvQueue {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        let mut message = Message { kind: 0, text: [0; MESSAGE_BYTES] };
        let into = (&raw mut message).cast();
        // SAFETY: there is room for a message of this length, and the room outlives the call.
        uninterrupted(|| unsafe { libc::msgrcv(self.id, into, MESSAGE_BYTES, 0, 0) as i64 })?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        let message = Message { kind: 1, text: [0; MESSAGE_BYTES] };
        let from = (&raw const message).cast();
        // SAFETY: the message has this length and outlives the call.
        uninterrupted(|| unsafe { libc::msgsnd(self.id, from, MESSAGE_BYTES, 0) })?;
        Ok(())
    }
}

impl Drop for SysvQueue {
    fn drop(&mut self) {
        // SAFETY: the object is our own, and IPC_RMID wants no buffer.
        unsafe { libc::msgctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A mechanism by `mq_send` and `mq_receive` on one POSIX queue.
pub(crate) struct PosixQueue {
    queue: libc::mqd_t,
}

impl PosixQueue {
    pub(crate) fn new() -> io::Result<PosixQueue> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("/onset-{}-{made}", std::process::id()))?;
        // SAFETY: the fields are plain numbers. mq_open(3) wants zero in the fields that are not set below.
        let mut shape: libc::mq_attr = unsafe { std::mem::zeroed() };
        shape.mq_maxmsg = 4;
        shape.mq_msgsize = MESSAGE_BYTES as libc::c_long;
        let how = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: the name and the attributes outlive the calls.
        let queue = checked(unsafe { libc::mq_open(name.as_ptr(), how, 0o600, &raw const shape) })?;
        // SAFETY: the name outlives the call. The queue itself stays until it is closed.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        Ok(PosixQueue { queue: queue as libc::mqd_t })
    }
}

impl Handover for PosixQueue {
    fn wait(&self) -> io::Result<Stamp<Monotonic>> {
        let mut text = [0 as libc::c_char; MESSAGE_BYTES];
        let priority = std::ptr::null_mut();
        let into = text.as_mut_ptr();
        // SAFETY: there is room for the longest message of this queue, and nobody asks for the priority.
        uninterrupted(|| unsafe {
            libc::mq_receive(self.queue, into, MESSAGE_BYTES, priority) as i64
        })?;
        Ok(now())
    }

    fn tell(&self) -> io::Result<()> {
        let text = [0 as libc::c_char; MESSAGE_BYTES];
        // SAFETY: the message has this length and outlives the call.
        uninterrupted(|| unsafe { libc::mq_send(self.queue, text.as_ptr(), MESSAGE_BYTES, 0) })?;
        Ok(())
    }
}

impl Drop for PosixQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is open and our own.
        unsafe { libc::mq_close(self.queue) };
    }
}
