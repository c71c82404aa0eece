// SPDX-License-Identifier: GPL-2.0-or-later
//! The TCP line between a generator and its host. One host at a time is served, and nobody waits for it: reading and
//! writing take what there is.

use super::Generator;
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
    host: Option<TcpStream>,
    begun: Instant,
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
        Ok(Line { listener, host: None, begun: Instant::now() })
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
                // The one before may be gone without a word, as a machine that sleeps is.
                let before = self.host.replace(stream);
                if before.is_some() {
                    generator.disconnected();
                }
                told(before.map_or(Happened::Came(from), |_| Happened::Replaced(from)));
            }
        }
        let now = self.now();
        let Some(host) = &mut self.host else { return };
        let is_there = hear(host, generator, now) && say(host, generator);
        if !is_there {
            self.host = None;
            generator.disconnected();
            told(Happened::Went);
        }
    }
}

/// Whether the host is still there.
fn hear(host: &mut TcpStream, generator: &mut Generator<'_>, now: Nanos) -> bool {
    let (mut bytes, mut taken) = ([0; 4096], 0);
    while taken < TAKEN_MAX {
        match host.read(&mut bytes) {
            Ok(0) => return false,
            Ok(read) => {
                generator.hear(&bytes[..read], now);
                taken += read;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}

/// As [`hear`].
fn say(host: &mut TcpStream, generator: &mut Generator<'_>) -> bool {
    let mut is_there = true;
    generator.say(|bytes| match host.write(bytes) {
        Ok(written) => written,
        Err(e) => {
            is_there = matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            0
        }
    });
    is_there
}
