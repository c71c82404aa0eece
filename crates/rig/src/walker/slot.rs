// SPDX-License-Identifier: GPL-2.0-or-later
//! What a process that was forked needs of this one: a channel for its events, and a socket. They are made before QEMU
//! starts, since a child has what its parent has. One process after another uses the same slot.

use crate::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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
    /// The child's end of the socket, which has the same number in the child.
    theirs: UnixStream,
    /// The process that uses it.
    process: Option<Forked>,
}

/// What a process says, or that it says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Reply(WalkReply),
    /// It has ended, and left no reply.
    Ended,
    /// It says nothing any more.
    Silent,
}

impl Slot {
    /// A slot for `events` events.
    pub(super) fn new(number: u32, events: usize) -> Result<Slot> {
        let failed = |e: std::io::Error| Error::Qemu(format!("a socket for its requests: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let channel = Channel::with_capacity(events)?;
        Ok(Slot { number, channel, ours, theirs, process: None })
    }

    /// The number of the child's end of the socket.
    pub(super) fn requests_fd(&self) -> RawFd {
        self.theirs.as_raw_fd()
    }

    /// Notes that this process uses the slot.
    ///
    /// # Errors
    /// If nobody can watch the process.
    pub(super) fn is_used_by(&mut self, process: u32) -> Result<()> {
        self.process = Some(Forked::new(process)?);
        Ok(())
    }

    /// The number of the process that uses it.
    pub(super) fn process(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.number)
    }

    /// Whether its process has ended, after waiting for at most `patience`.
    pub(super) fn has_ended(&self, patience: Duration) -> bool {
        self.process.as_ref().is_none_or(|process| process.has_ended(patience))
    }

    /// Gives the process a request. A process that is gone is noticed with the reply.
    pub(super) fn request(&mut self, request: WalkRequest) {
        let _ = self.ours.write_all(&request.encode());
    }

    /// Waits for the reply to a request, and takes the events meanwhile, each with whether events before it are lost.
    ///
    /// # Errors
    /// If the process says what is no reply, or what is no event, and if the user asks to stop.
    pub(super) fn reply(
        &mut self,
        silence: Duration,
        mut take: impl FnMut(&Event, bool),
    ) -> Result<Said> {
        let mut heard = Instant::now();
        loop {
            // This comes before looking for the reply: what the process said before it ended is then there. All
            // processes have all ends of all sockets, so none of them hangs up as one ends.
            let has_ended = self.has_ended(Duration::ZERO);
            let patience = if has_ended { Duration::ZERO } else { work::POLL };
            if is_ready(&self.ours, patience) {
                break;
            }
            if self.channel.drain(&mut take)? > 0 {
                heard = Instant::now();
            }
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            if has_ended {
                return Ok(Said::Ended);
            }
            if heard.elapsed() > silence {
                return Ok(Said::Silent);
            }
        }
        let mut bytes = [0; REQUEST_BYTES];
        let unread =
            |e: std::io::Error| Error::Qemu(format!("left a reply that cannot be read: {e}"));
        self.ours.read_exact(&mut bytes).map_err(unread)?;
        // What it told before the reply is in the channel by now.
        self.channel.drain(&mut take)?;
        let reply = WalkReply::decode(&bytes);
        let nonsense = || Error::Qemu(format!("answers a request with {bytes:?}"));
        reply.map(Said::Reply).ok_or_else(nonsense)
    }

    /// Has its process say this.
    #[cfg(test)]
    pub(super) fn is_told(&mut self, reply: WalkReply) {
        self.theirs.write_all(&reply.encode()).expect("there is room");
    }

    /// Ends its process, and forgets what this has left. Returns whether the slot may be used again.
    pub(super) fn clear(&mut self) -> bool {
        if self.process.as_ref().is_some_and(|process| !process.kill()) {
            return false;
        }
        self.process = None;
        // Events that cannot be read are of no use either.
        let _ = self.channel.drain(|_, _| ());
        // A request or a reply that nobody took would be the next process's.
        let mut bytes = [0; REQUEST_BYTES];
        for end in [&mut self.ours, &mut self.theirs] {
            while is_ready(&*end, Duration::ZERO) && end.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
        true
    }
}

/// A process that was forked by QEMU, or QEMU itself. It is watched by a descriptor, since it may be no child of this
/// process.
struct Forked {
    number: u32,
    /// `None` if it was not there any more.
    pidfd: Option<OwnedFd>,
}

impl Forked {
    /// The process with this number, which its parent has just told.
    ///
    /// # Errors
    /// If it cannot be watched.
    fn new(number: u32) -> Result<Forked> {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let pidfd = match pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(pidfd)) => Some(pidfd),
            // A process that is not there has ended already.
            None | Some(Err(Errno::SRCH)) => None,
            Some(Err(e)) => {
                return Err(Error::Qemu(format!("forked a process that cannot be watched: {e}")));
            }
        };
        Ok(Forked { number, pidfd })
    }

    /// Whether it has ended, after waiting for at most `patience`.
    fn has_ended(&self, patience: Duration) -> bool {
        self.pidfd.as_ref().is_none_or(|pidfd| is_ready(pidfd, patience))
    }

    /// Kills it, and waits for its end. Returns whether it has ended.
    fn kill(&self) -> bool {
        if let Some(pidfd) = &self.pidfd {
            // One that has ended meanwhile needs no signal.
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        self.has_ended(KILLED)
    }
}

/// Whether there is something to read, or the other end is gone, after waiting for at most `patience`.
fn is_ready(fd: impl AsFd, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let timeout = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()) {
            Err(Errno::INTR) => continue,
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Nanos;
    use std::os::fd::BorrowedFd;
    use std::process::{Child, Command};

    const SILENCE: Duration = Duration::from_millis(20);

    fn sleeping() -> Child {
        Command::new("sleep").arg("1000").spawn().expect("a program")
    }

    #[test]
    fn a_reply_comes_after_what_was_told_before_it() {
        let mut slot = Slot::new(3, 8).expect("a slot");
        let mut theirs = slot.theirs.try_clone().expect("a descriptor");
        slot.request(WalkRequest::Walk { until: Nanos(7) });
        let mut bytes = [0; REQUEST_BYTES];
        theirs.read_exact(&mut bytes).expect("a request");
        assert_eq!(WalkRequest::decode(&bytes), Some(WalkRequest::Walk { until: Nanos(7) }));
        // SAFETY: the only producer of a channel that was made here.
        let mut events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(slot.channel.fd())) }
            .expect("a channel");
        events.push(&Event::ProbeEnd);
        theirs.write_all(&WalkReply::Stands { at: Nanos(7) }.encode()).expect("there is room");
        let mut told = Vec::new();
        let reply = slot.reply(SILENCE, |event, gap| told.push((*event, gap))).expect("a reply");
        let stands = Said::Reply(WalkReply::Stands { at: Nanos(7) });
        assert_eq!((reply, told), (stands, vec![(Event::ProbeEnd, false)]));
    }

    #[test]
    fn silence_and_an_end_are_no_replies_and_nonsense_is_an_error() {
        let mut slot = Slot::new(0, 8).expect("a slot");
        let mut theirs = slot.theirs.try_clone().expect("a descriptor");
        let mut sleeps = sleeping();
        slot.is_used_by(sleeps.id()).expect("it is watched");
        assert_eq!(slot.reply(SILENCE, |_, _| ()).expect("nothing is wrong yet"), Said::Silent);
        theirs.write_all(&[9; REQUEST_BYTES]).expect("there is room");
        let nonsense = slot.reply(SILENCE, |_, _| ()).unwrap_err().to_string();
        assert!(nonsense.contains("[9, 9"), "{nonsense}");
        sleeps.kill().expect("our own");
        // The other end of the socket is open still.
        let ended = slot.reply(Duration::from_secs(60), |_, _| ()).expect("it ended");
        assert_eq!(ended, Said::Ended);
        sleeps.wait().expect("our own");
    }

    #[test]
    fn what_an_ended_process_left_is_forgotten() {
        let mut slot = Slot::new(0, 8).expect("a slot");
        let mut theirs = slot.theirs.try_clone().expect("a descriptor");
        let mut sleeps = sleeping();
        slot.is_used_by(sleeps.id()).expect("it is watched");
        assert_eq!(slot.process(), Some(sleeps.id()));
        // SAFETY: the only producer of a channel that was made here.
        let mut events = unsafe { wire::producer_of(BorrowedFd::borrow_raw(slot.channel.fd())) }
            .expect("a channel");
        events.push(&Event::ProbeEnd);
        theirs.write_all(&WalkReply::Forked { process: 7 }.encode()).expect("there is room");
        slot.request(WalkRequest::Fork { slot: 1 });
        assert!(slot.clear());
        assert!(!is_ready(&theirs, Duration::ZERO), "the request is gone");
        assert!(!sleeps.wait().expect("our own").success(), "it was killed");
        assert_eq!(slot.channel.drain(|_, _| ()), Ok(0));
        assert_eq!(slot.process(), None);
        sleeps = sleeping();
        slot.is_used_by(sleeps.id()).expect("it is watched");
        assert_eq!(slot.reply(SILENCE, |_, _| ()).expect("no reply is left"), Said::Silent);
        assert!(slot.clear());
        sleeps.wait().expect("our own");
    }

    #[test]
    fn a_process_is_killed_and_one_that_is_not_there_has_ended() {
        let mut sleeps = sleeping();
        let process = Forked::new(sleeps.id()).expect("it is watched");
        assert!(!process.has_ended(Duration::ZERO));
        assert!(process.kill());
        assert!(!sleeps.wait().expect("our own").success());
        let gone = Forked::new(sleeps.id()).expect("it has ended");
        assert!(gone.has_ended(Duration::ZERO));
        assert!(Forked::new(0).expect("nothing to watch").kill());
    }
}
