// SPDX-License-Identifier: GPL-2.0-or-later
//! Sockets over the loopback interface (lmbench3: lat_udp.c, lat_tcp.c, lat_connect.c, lat_rpc.c, lat_select.c,
//! bw_tcp.c). No packet leaves the machine.

use super::Suite::Network;
use super::bench::{Work, answered, each, moved};
use super::ipc::{CHUNK, Drain, MOVED, round_trip};
use super::partner::{Partner, echo, pour, read, write};
use super::place::Place;
use super::row::Row;
use super::syscalls::select_of;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// Bytes of LMbench's UDP message, which is a number.
const UDP_BYTES: usize = 4;

pub(super) static ROWS: [Row; 6] = [
    Row::time((Network, "udp_round_trip"), "4 bytes there and back by UDP", 100, udp),
    Row::time((Network, "tcp_round_trip"), "1 byte there and back by TCP", 100, tcp),
    Row::time((Network, "tcp_connect"), "a TCP connection made and closed", 20, connect),
    Row::time((Network, "rpc_round_trip"), "a call of ONC RPC by TCP, and its reply", 100, rpc),
    Row::time((Network, "select_tcp_100"), "select on 100 TCP sockets", 100, select),
    Row::bytes(
        (Network, "tcp_bandwidth"),
        "1 MiB read from a TCP socket",
        (2, MOVED as u64),
        stream,
    ),
];

/// Brings the loopback interface up where it is down, as in a guest without a network (netdevice(7)).
fn loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the request is initialised and names an interface.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        answered(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request))?;
        if request.ifr_ifru.ifru_flags & libc::IFF_UP as libc::c_short != 0 {
            return Ok(());
        }
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        answered(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request)).map(drop)
    }
}

fn listener() -> io::Result<(TcpListener, SocketAddr)> {
    loopback()?;
    let listener = TcpListener::bind(HERE)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// A connection whose other end is a partner that does `body` with it.
fn connected(body: impl Fn(TcpStream)) -> io::Result<(TcpStream, Partner)> {
    let (listener, address) = listener()?;
    let partner = Partner::start(|| {
        if let Ok((stream, _)) = listener.accept() {
            body(stream);
        }
    })?;
    Ok((TcpStream::connect(address)?, partner))
}

fn udp(_: &Place) -> io::Result<Box<dyn Work>> {
    loopback()?;
    let (own, other) = (UdpSocket::bind(HERE)?, UdpSocket::bind(HERE)?);
    own.connect(other.local_addr()?)?;
    let partner = Partner::start(|| {
        let mut buffer = [0; UDP_BYTES];
        while let Ok((n, from)) = other.recv_from(&mut buffer) {
            let _ = other.send_to(&buffer[..n], from);
        }
    })?;
    round_trip((own.try_clone()?, own), UDP_BYTES, partner)
}

fn tcp(_: &Place) -> io::Result<Box<dyn Work>> {
    let (own, partner) = connected(|stream| echo(&stream, &stream, 1))?;
    round_trip((own.try_clone()?, own), 1, partner)
}

/// The partner closes each connection after this process has.
fn connect(_: &Place) -> io::Result<Box<dyn Work>> {
    let (listener, address) = listener()?;
    let partner = Partner::start(|| {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0]);
        }
    })?;
    each(move || {
        let _ = &partner;
        TcpStream::connect(address).map(drop)
    })
}

/// A call and its reply as words of 32 bits (RFC 5531, sections 9 and 11): a record mark, then the message.
mod message {
    /// The mark of a record's last part.
    const LAST: u32 = 1 << 31;
    const PROGRAM: u32 = 404_040;
    const VERSION: u32 = 1;
    const PROCEDURE: u32 = 1;
    const CALL: u32 = 0;
    const REPLY: u32 = 1;
    pub(super) const ARGUMENT: u32 = 1;
    pub(super) const RESULT: u32 = 123;

    pub(super) const CALL_BYTES: usize = 48;
    pub(super) const REPLY_BYTES: usize = 32;

    fn put(words: &[u32], bytes: &mut [u8]) {
        let length = (words.len() * 4) as u32 | LAST;
        let all = std::iter::once(&length).chain(words);
        bytes.chunks_exact_mut(4).zip(all).for_each(|(to, word)| {
            to.copy_from_slice(&word.to_be_bytes());
        });
    }

    fn word(bytes: &[u8], place: usize) -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(place * 4..place * 4 + 4)?.try_into().ok()?))
    }

    /// Number, kind, version of RPC, program, its version, procedure, no credentials, no verifier, argument.
    pub(super) fn call(number: u32, bytes: &mut [u8; CALL_BYTES]) {
        put(&[number, CALL, 2, PROGRAM, VERSION, PROCEDURE, 0, 0, 0, 0, ARGUMENT], bytes);
    }

    /// The number of a call that asks for this procedure.
    pub(super) fn asked(bytes: &[u8; CALL_BYTES]) -> Option<u32> {
        let rest: [u32; 5] = [CALL, 2, PROGRAM, VERSION, PROCEDURE];
        let is_whole = word(bytes, 0)? == (CALL_BYTES as u32 - 4) | LAST;
        let fits = (2..).zip(rest).all(|(place, wanted)| word(bytes, place) == Some(wanted));
        (is_whole && fits && word(bytes, 11)? == ARGUMENT).then_some(word(bytes, 1)?)
    }

    /// Number, kind, accepted, no verifier, success, result.
    pub(super) fn reply(number: u32, bytes: &mut [u8; REPLY_BYTES]) {
        put(&[number, REPLY, 0, 0, 0, 0, RESULT], bytes);
    }

    /// The result of the reply to call `number`.
    pub(super) fn result(number: u32, bytes: &[u8; REPLY_BYTES]) -> Option<u32> {
        (word(bytes, 1)? == number && word(bytes, 2)? == REPLY).then_some(word(bytes, 7)?)
    }
}

fn serve(stream: &TcpStream) {
    let (mut call, mut reply) = ([0; message::CALL_BYTES], [0; message::REPLY_BYTES]);
    while read(stream, &mut call) == call.len() as isize {
        let Some(number) = message::asked(&call) else { return };
        message::reply(number, &mut reply);
        if write(stream, &reply) != reply.len() as isize {
            return;
        }
    }
}

fn rpc(_: &Place) -> io::Result<Box<dyn Work>> {
    let (stream, partner) = connected(|stream| serve(&stream))?;
    let (mut call, mut reply) = ([0; message::CALL_BYTES], [0; message::REPLY_BYTES]);
    let mut number = 0u32;
    each(move || {
        let _ = &partner;
        number = number.wrapping_add(1);
        message::call(number, &mut call);
        moved(write(&stream, &call), call.len())?;
        moved(read(&stream, &mut reply), reply.len())?;
        match message::result(number, &reply) {
            Some(message::RESULT) => Ok(()),
            other => Err(io::Error::other(format!("the reply has {other:?}"))),
        }
    })
}

/// The descriptors are of one connection, as LMbench's are.
fn select(_: &Place) -> io::Result<Box<dyn Work>> {
    let (stream, partner) = connected(|mut stream| drop(stream.read(&mut [0])))?;
    let streams = (0..100).map(|_| stream.try_clone()).collect::<io::Result<Vec<TcpStream>>>()?;
    let work = select_of(streams.into_iter().map(OwnedFd::from).collect())?;
    Ok(Box::new(Beside { work, _partner: partner }))
}

/// Work beside which a partner waits.
struct Beside {
    work: Box<dyn Work>,
    _partner: Partner,
}

impl Work for Beside {
    fn stretch(&mut self, part: usize, ops: u32) -> io::Result<()> {
        self.work.stretch(part, ops)
    }
}

fn stream(_: &Place) -> io::Result<Box<dyn Work>> {
    let (stream, partner) = connected(|stream| pour(&stream, CHUNK))?;
    Ok(Drain::of(stream.into(), partner))
}

#[cfg(test)]
mod tests {
    use super::message::*;

    #[test]
    fn a_call_is_understood_and_its_reply_belongs_to_it() {
        let (mut call_bytes, mut reply_bytes) = ([0; CALL_BYTES], [0; REPLY_BYTES]);
        call(7, &mut call_bytes);
        assert_eq!(asked(&call_bytes), Some(7));
        reply(7, &mut reply_bytes);
        assert_eq!(result(7, &reply_bytes), Some(RESULT));
        assert_eq!(result(8, &reply_bytes), None);
        // Another procedure.
        call_bytes[27] ^= 1;
        assert_eq!(asked(&call_bytes), None);
    }
}
