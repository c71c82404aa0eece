// SPDX-License-Identifier: GPL-2.0-or-later
//! The host's end of the line to a generator: TCP, or a serial device such as a board's USB port.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long an address is tried.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a line may refuse to take more bytes.
const WRITE: Duration = Duration::from_secs(5);

/// A line to a generator.
pub(super) struct Connection {
    file: File,
    /// The settings that a serial device had before.
    before: Option<Termios>,
}

/// A serial device is left as it was found, also where the conversation failed.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A device that was unplugged has no settings any more.
            let _ = tcsetattr(&self.file, OptionalActions::Now, before);
        }
    }
}

impl Connection {
    /// Opens `place`: a path where it has a slash, otherwise HOST:PORT.
    pub(super) fn open(place: &str) -> io::Result<Connection> {
        if place.contains('/') { serial(place) } else { tcp(place) }
    }

    /// Whether bytes may be damaged or lost on the way, which TCP does not let happen.
    pub(super) fn is_serial(&self) -> bool {
        self.before.is_some()
    }

    /// Reads what there is; waits for it so long. 0 where nothing came.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] where the other end is gone.
    pub(super) fn read(&mut self, bytes: &mut [u8], wait: Duration) -> io::Result<usize> {
        self.poll(PollFlags::IN, wait)?;
        match self.file.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            read => read,
        }
    }

    /// Writes all of it.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let begun = Instant::now();
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock && begun.elapsed() < WRITE => {
                    self.poll(PollFlags::OUT, work::POLL)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn poll(&self, events: PollFlags, wait: Duration) -> io::Result<()> {
        let wait = Timespec::try_from(wait).map_err(|_| ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.file, events)], Some(&wait)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

fn tcp(place: &str) -> io::Result<Connection> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(Connection { file: OwnedFd::from(stream).into(), before: None });
            }
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

/// Every byte is passed as it is: no echo, no signals, no line ends.
fn serial(place: &str) -> io::Result<Connection> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = rustix::fs::open(place, flags, Mode::empty())?;
    let before = tcgetattr(&device)?;
    let mut settings = before.clone();
    settings.make_raw();
    let connection = Connection { file: device.into(), before: Some(before) };
    tcsetattr(&connection.file, OptionalActions::Flush, &settings)?;
    Ok(connection)
}
