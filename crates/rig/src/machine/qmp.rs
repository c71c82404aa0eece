// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's control protocol, as far as saving a machine needs it (docs/interop/qmp-spec.rst).

use crate::{Error, Result};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The control connection.
pub(crate) struct Qmp {
    stream: UnixStream,
    unread: Vec<u8>,
    lost: bool,
}

/// Both ends of a control connection: our end and QEMU's.
pub(super) fn pair() -> Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair().map_err(|e| Error::Qemu(e.to_string()))?;
    ours.set_read_timeout(Some(work::POLL)).map_err(|e| Error::Qemu(e.to_string()))?;
    Ok((ours, theirs.into()))
}

impl Qmp {
    pub(super) fn new(stream: UnixStream) -> Qmp {
        Qmp { stream, unread: Vec::new(), lost: false }
    }

    /// Whether the connection broke. It breaks when QEMU ends.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Carries out a command and returns its result.
    pub(super) fn call(
        &mut self,
        command: &str,
        arguments: Value,
        deadline: Duration,
    ) -> Result<Value> {
        self.tell(command, arguments)?;
        let begun = Instant::now();
        loop {
            if let Some(message) = self.message()? {
                if let Some(error) = message.get("error") {
                    return Err(Error::Qemu(format!("{command}: {error}")));
                }
                if let Some(result) = message.get("return") {
                    return Ok(result.clone());
                }
            } else if begun.elapsed() > deadline {
                return Err(Error::Qemu(format!(
                    "{command}: no answer in {} s",
                    deadline.as_secs()
                )));
            }
        }
    }

    /// Sends a command whose result nobody waits for. No other command may follow.
    pub(super) fn tell(&mut self, command: &str, arguments: Value) -> Result<()> {
        let text = json!({"execute": command, "arguments": arguments}).to_string();
        self.stream.write_all(text.as_bytes()).map_err(|e| self.gone(&e.to_string()))
    }

    /// The next message, if one arrives within the read timeout.
    fn message(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.unread.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let message = serde_json::from_slice(&line);
                return message
                    .map(Some)
                    .map_err(|e| Error::Qemu(format!("control protocol: {e}")));
            }
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(self.gone("closed")),
                Ok(n) => self.unread.extend_from_slice(&buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.gone(&e.to_string())),
            }
        }
    }

    fn gone(&mut self, why: &str) -> Error {
        self.lost = true;
        Error::Qemu(format!("control connection: {why}"))
    }
}
