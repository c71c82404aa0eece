// SPDX-License-Identifier: GPL-2.0-or-later
//! What a process that was forked needs of this one: a channel for its events, and a socket. They are made before QEMU
//! starts, since a child has what its parent has. One process after another uses the same slot.

use crate::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wire::{Channel, Event, REQUEST_BYTES, WalkReply, WalkRequest};

/// How long a process may take to end once it was killed.
const KILLED: Duration = Duration::from_secs(10);

/// A slot.
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) channel: Channel,
    ours: UnixStream,
    /// The number of the child's end of the socket, in the child.
    pub(super) theirs: RawFd,
}

impl Slot {
    /// A slot for `events` events, and the child's end of its socket, which is to be closed here once QEMU has it.
    pub(super) fn new(number: u32, events: usize) -> Result<(Slot, UnixStream)> {
        let failed = |e: std::io::Error| Error::Qemu(format!("a socket for its requests: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let channel = Channel::with_capacity(events)?;
        let slot = Slot { number, channel, ours, theirs: theirs.as_raw_fd() };
        Ok((slot, theirs))
    }

    /// Gives the process a request.
    pub(super) fn request(&mut self, request: WalkRequest) -> Result<()> {
        let gone = |e: std::io::Error| Error::Qemu(format!("takes no requests: {e}"));
        self.ours.write_all(&request.encode()).map_err(gone)
    }

    /// Waits for the reply to a request, and takes the events meanwhile. `None` if neither comes for `silence`.
    pub(super) fn reply(
        &mut self,
        silence: Duration,
        mut take: impl FnMut(&Event),
    ) -> Result<Option<WalkReply>> {
        let mut heard = Instant::now();
        while !is_ready(&self.ours, work::POLL) {
            if self.channel.drain(|event, _| take(event))? > 0 {
                heard = Instant::now();
            }
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            if heard.elapsed() > silence {
                return Ok(None);
            }
        }
        let mut bytes = [0; REQUEST_BYTES];
        let gone = |e: std::io::Error| Error::Qemu(format!("ended instead of a reply: {e}"));
        self.ours.read_exact(&mut bytes).map_err(gone)?;
        // What it told before the reply is in the channel by now.
        self.channel.drain(|event, _| take(event))?;
        let reply = WalkReply::decode(&bytes);
        reply.map(Some).ok_or_else(|| Error::Qemu(format!("answers a request with {bytes:?}")))
    }

    /// Forgets what a process that has ended has left.
    pub(super) fn clear(&mut self) {
        // Events that cannot be read are of no use either.
        let _ = self.channel.drain(|_, _| ());
    }
}

/// A process that was forked by QEMU. It is no child of this one.
pub(super) struct Forked {
    pub(super) number: u32,
    /// `None` if it was not there any more.
    pidfd: Option<OwnedFd>,
}

impl Forked {
    /// The process with this number, which its parent has just told.
    pub(super) fn new(number: u32) -> Forked {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        // A process that is not there has ended already.
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Forked { number, pidfd }
    }

    /// Whether it has ended, after waiting for at most `patience`.
    pub(super) fn has_ended(&self, patience: Duration) -> bool {
        self.pidfd.as_ref().is_none_or(|pidfd| is_ready(pidfd, patience))
    }

    /// Kills it, and waits for its end. Returns whether it has ended.
    pub(super) fn kill(&self) -> bool {
        if let Some(pidfd) = &self.pidfd {
            // One that has ended meanwhile needs no signal.
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        self.has_ended(KILLED)
    }
}

/// Whether there is something to read, or the other end is gone, after waiting for at most `patience`.
fn is_ready(fd: impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    // A signal that interrupts the waiting is nothing to read.
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Nanos;
    use std::os::fd::BorrowedFd;
    use std::process::Command;

    const SILENCE: Duration = Duration::from_millis(20);

    #[test]
    fn a_reply_comes_after_what_was_told_before_it() {
        let (mut slot, mut theirs) = Slot::new(3, 8).expect("a slot");
        slot.request(WalkRequest::Walk { until: Nanos(7) }).expect("there is room");
        let mut bytes = [0; REQUEST_BYTES];
        theirs.read_exact(&mut bytes).expect("a request");
        assert_eq!(WalkRequest::decode(&bytes), Some(WalkRequest::Walk { until: Nanos(7) }));
        // SAFETY: the only producer of a channel that was made here.
        let mut events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(slot.channel.fd())) }
            .expect("a channel");
        events.push(&Event::ProbeEnd);
        theirs.write_all(&WalkReply::Stands { at: Nanos(7) }.encode()).expect("there is room");
        let mut told = Vec::new();
        let reply = slot.reply(SILENCE, |event| told.push(*event)).expect("a reply");
        assert_eq!(
            (reply, told),
            (Some(WalkReply::Stands { at: Nanos(7) }), vec![Event::ProbeEnd])
        );
    }

    #[test]
    fn silence_is_no_reply_and_a_process_that_is_gone_or_says_nonsense_is_an_error() {
        let (mut slot, mut theirs) = Slot::new(0, 8).expect("a slot");
        assert_eq!(slot.reply(SILENCE, |_| ()).expect("nothing is wrong yet"), None);
        theirs.write_all(&[9; REQUEST_BYTES]).expect("there is room");
        let nonsense = slot.reply(SILENCE, |_| ()).unwrap_err().to_string();
        assert!(nonsense.contains("[9, 9"), "{nonsense}");
        drop(theirs);
        let gone = slot.reply(SILENCE, |_| ()).unwrap_err().to_string();
        assert!(gone.contains("ended instead of a reply"), "{gone}");
        assert!(slot.request(WalkRequest::Fork { slot: 1 }).is_err());
    }

    #[test]
    fn what_an_ended_process_left_is_forgotten() {
        let (mut slot, _theirs) = Slot::new(0, 8).expect("a slot");
        // SAFETY: the only producer of a channel that was made here.
        let mut events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(slot.channel.fd())) }
            .expect("a channel");
        events.push(&Event::ProbeEnd);
        slot.clear();
        assert_eq!(slot.channel.drain(|_, _| ()), Ok(0));
    }

    #[test]
    fn a_process_is_killed_and_one_that_is_not_there_has_ended() {
        let mut sleeps = Command::new("sleep").arg("1000").spawn().expect("a program");
        let process = Forked::new(sleeps.id());
        assert!(!process.has_ended(Duration::ZERO));
        assert!(process.kill());
        assert!(!sleeps.wait().expect("our own").success());
        assert!(Forked::new(sleeps.id()).has_ended(Duration::ZERO));
        assert!(Forked::new(0).kill());
    }
}
