// SPDX-License-Identifier: GPL-2.0-or-later
//! The TCP line between a generator and its host. One host at a time is served, and nobody waits for it: reading and
//! writing take what there is.
//!
//! Whoever calls is no host before it has said `identify`: `callers.rs`.

use super::Generator;
use super::callers::Callers;
use crate::Error;
use sample::Nanos;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

/// The most bytes that are taken from a host in one turn: a host that never pauses does not keep the session waiting.
const TAKEN_MAX: usize = 64 * 1024;

/// A line on which a generator listens.
pub struct Line {
    listener: TcpListener,
    callers: Callers,
    host: Option<Host>,
    begun: Instant,
}

/// The host at the other end.
struct Host {
    stream: TcpStream,
    /// What it said, and the generator has not taken yet.
    heard: Vec<u8>,
}

/// What happened on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A host came.
    Came(SocketAddr),
    /// The host went. Its run goes on.
    Went,
    /// Another host came and took the place of the one before.
    Replaced(SocketAddr),
}

impl Line {
    /// Listens on a loopback address; port 0 takes a free one.
    ///
    /// # Errors
    /// Those of [`loopback::listen`](crate::loopback::listen).
    pub fn listen(address: SocketAddr) -> Result<Line, Error> {
        let listener = crate::loopback::listen(address)?;
        Ok(Line { listener, callers: Callers::default(), host: None, begun: Instant::now() })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`Error::File`] where the system does not say.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|e| Error::File(format!("the listening socket: {e}")))
    }

    /// Whether a host is there.
    pub fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// The time outside, since the line was opened.
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Lets a host in, hands what it says to the generator, and sends what the generator says.
    pub fn turn(&mut self, generator: &mut Generator<'_>, told: &mut dyn FnMut(Happened)) {
        // A failed accept is of the one who called, or passes: the next turn tries again.
        if let Ok((stream, from)) = self.listener.accept() {
            let is_ready = stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok();
            if is_ready {
                self.callers.add(stream, from);
            }
        }
        if let Some((stream, from, heard)) = self.callers.identified() {
            // The one before may be gone without a word, as a machine that sleeps is.
            let before = self.host.replace(Host { stream, heard });
            if before.is_some() {
                generator.disconnected();
            }
            told(before.map_or(Happened::Came(from), |_| Happened::Replaced(from)));
        }
        let now = self.now();
        let Some(host) = &mut self.host else { return };
        let is_there = host.converse(generator, now);
        if !is_there {
            self.host = None;
            generator.disconnected();
            told(Happened::Went);
        }
    }
}

impl Host {
    /// Hands on what the host says, and sends it what the generator says. Whether the host is still there.
    fn converse(&mut self, generator: &mut Generator<'_>, now: Nanos) -> bool {
        let mut taken = 0;
        loop {
            // What the generator has not taken waits here, and the rest waits in the line.
            let read = if self.heard.is_empty() {
                read(&mut self.stream, &mut self.heard)
            } else {
                Some(0)
            };
            let Some(read) = read else { return false };
            let mut rest = self.heard.as_slice();
            generator.hear(&mut rest, now);
            let heard = self.heard.len() - rest.len();
            self.heard.drain(..heard);
            if !self.say(generator) {
                return false;
            }
            taken += heard;
            if (read == 0 && heard == 0) || taken >= TAKEN_MAX {
                return true;
            }
        }
    }

    /// Whether the host is still there.
    fn say(&mut self, generator: &mut Generator<'_>) -> bool {
        let mut is_there = true;
        generator.say(|bytes| match self.stream.write(bytes) {
            Ok(written) => written,
            Err(e) => {
                is_there = is_passing(&e);
                0
            }
        });
        is_there
    }
}

/// Adds what came to `heard`, and says how many bytes that were; `None` where the other end is gone.
pub(super) fn read(stream: &mut TcpStream, heard: &mut Vec<u8>) -> Option<usize> {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes) {
        Ok(0) => None,
        Ok(read) => {
            heard.extend_from_slice(&bytes[..read]);
            Some(read)
        }
        Err(e) => is_passing(&e).then_some(0),
    }
}

/// Whether an error only says that nothing can be done now.
fn is_passing(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
