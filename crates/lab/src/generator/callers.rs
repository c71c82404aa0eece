// SPDX-License-Identifier: GPL-2.0-or-later
//! Who has called a generator, and has not said yet that it is a host. A caller takes the place of the host once it has
//! said `identify`, and not before.
//!
//! Every program of this machine can call, also a browser for the page of any site. Such a request has a head of text,
//! and the site chooses what follows: frames in it are not to be obeyed. So who says anything that no host begins with
//! is hung up on.

use super::line::read;
use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use wire::generator::{Command, DELIMITER, Deframer, Kind, Refused, Report, STUFFED_MAX, Why};

/// The most callers at once; one more, and the oldest is hung up on. A host says who it is as soon as it calls.
const CALLERS_MAX: usize = 8;

/// The callers, the oldest first.
#[derive(Default)]
pub(super) struct Callers(VecDeque<Caller>);

struct Caller {
    stream: TcpStream,
    from: SocketAddr,
    /// What it said, from the last frame on that has not been answered.
    heard: Vec<u8>,
}

/// What a caller is, by what it has said so far.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// A host. What it said begins with `identify`.
    Host,
    /// Not known yet.
    Waits,
    /// No host, or one that is gone.
    Other,
}

impl Callers {
    /// Adds one, whose stream never waits.
    pub(super) fn add(&mut self, stream: TcpStream, from: SocketAddr) {
        if self.0.len() == CALLERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Caller { stream, from, heard: Vec::new() });
    }

    /// Listens to all of them. Returns one that has said `identify`, with what it said from there on.
    pub(super) fn identified(&mut self) -> Option<(TcpStream, SocketAddr, Vec<u8>)> {
        let mut host = None;
        for mut caller in std::mem::take(&mut self.0) {
            match if host.is_none() { caller.listen() } else { Seen::Waits } {
                Seen::Host => host = Some((caller.stream, caller.from, caller.heard)),
                Seen::Waits => self.0.push_back(caller),
                Seen::Other => {}
            }
        }
        host
    }
}

impl Caller {
    fn listen(&mut self) -> Seen {
        if read(&mut self.stream, &mut self.heard).is_none() {
            return Seen::Other;
        }
        let stream = &mut self.stream;
        seen(&mut self.heard, &mut |refusal| stream.write(refusal).ok() == Some(refusal.len()))
    }
}

/// What a caller is that said this. Frames that are answered are taken away; `answer` says whether the caller took it.
fn seen(heard: &mut Vec<u8>, answer: &mut dyn FnMut(&[u8]) -> bool) -> Seen {
    while let Some(end) = heard.iter().position(|byte| *byte == DELIMITER) {
        let mut deframer = Deframer::new();
        match deframer.next(&mut &heard[..=end]) {
            // Zero bytes alone are no frame, and no damage.
            None => {}
            // TCP damages nothing.
            Some(Err(_)) => return Seen::Other,
            // The head of a request of HTTP with the right checksum behind it is of such a kind: the third letter of
            // its method has the bit. No host begins with one.
            Some(Ok(frame)) if is_passed_over(Kind(frame.kind)) => return Seen::Other,
            Some(Ok(frame)) => {
                let refused = match Command::decode(&frame) {
                    Ok(Command::Identify { .. }) => return Seen::Host,
                    Err(e) if frame.kind == Kind::IDENTIFY.0 => e.refusal(frame.kind),
                    _ => Some(Refused::new(Why::Unidentified, Kind(frame.kind))),
                };
                let said = refused.is_none_or(|refused| {
                    answer(Report::Refused(refused).encode(frame.number, &mut [0; STUFFED_MAX]))
                });
                if !said {
                    return Seen::Other;
                }
            }
        }
        heard.drain(..=end);
    }
    // No frame is that long.
    if heard.len() < STUFFED_MAX { Seen::Waits } else { Seen::Other }
}

/// Whether whoever does not know this kind, or hears an echo, passes it over.
fn is_passed_over(kind: Kind) -> bool {
    kind.is_optional() || kind.is_of_generator()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::generator::{Frame, VERSION};

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let frame = Frame { version: VERSION, kind, number: 7, payload };
        frame.encode(&mut [0; STUFFED_MAX]).to_vec()
    }

    fn identify() -> Vec<u8> {
        frame(Kind::IDENTIFY.0, &[VERSION, VERSION])
    }

    /// What a caller is that says this, what is left of it, and how many refusals it heard.
    fn said(parts: &[&[u8]]) -> (Seen, Vec<u8>, usize) {
        let (mut heard, mut refusals) = (parts.concat(), 0);
        let seen = seen(&mut heard, &mut |refusal| {
            let mut deframer = Deframer::new();
            let frame = deframer.next(&mut &refusal[..]).expect("a frame").expect("whole");
            assert_eq!((frame.kind, frame.number), (Kind::REFUSED.0, 7));
            refusals += 1;
            true
        });
        (seen, heard, refusals)
    }

    #[test]
    fn who_says_identify_is_a_host_with_all_that_follows_it() {
        let (stop, identify) = (frame(Kind::STOP.0, &[]), identify());
        let (seen, left, refusals) = said(&[&[0, 0], &identify, &stop]);
        assert_eq!((seen, left, refusals), (Seen::Host, [identify.clone(), stop].concat(), 0));
        for end in 0..identify.len() {
            assert_eq!(said(&[&identify[..end]]).0, Seen::Waits, "{end} bytes");
        }
    }

    #[test]
    fn another_command_is_refused_and_identify_may_follow() {
        let stop = frame(Kind::STOP.0, &[]);
        assert_eq!(said(&[&stop, &stop]), (Seen::Waits, Vec::new(), 2));
        assert_eq!(said(&[&frame(Kind::IDENTIFY.0, &[1])]).2, 1);
        let (seen, _, refusals) = said(&[&stop, &frame(0x30, &[]), &identify()]);
        assert_eq!((seen, refusals), (Seen::Host, 2));
        let mut heard = stop;
        assert_eq!(super::seen(&mut heard, &mut |_| false), Seen::Other);
    }

    #[test]
    fn a_page_of_another_site_is_hung_up_on_before_its_frames_are_read() {
        let head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:7010\r\nContent-Type: text/plain\r\n\r\n";
        assert_eq!(said(&[head]).0, Seen::Waits);
        assert_eq!(said(&[head, &[0], &identify()]).0, Seen::Other);
        assert_eq!(said(&[head, &[1; STUFFED_MAX]]).0, Seen::Other);
        // The site makes a frame of the head: its length by the first letter, and a checksum in the body.
        let mut text = head[1..].to_vec();
        text.resize(usize::from(b'P') - 1 - 4, b'x');
        let checksum = wire::generator::checksum(&text).to_le_bytes();
        let mut stuffed = [b"P", &text[..], &checksum].concat();
        assert!(!stuffed.contains(&0), "another text has another checksum");
        stuffed.push(0);
        let mut deframer = Deframer::new();
        assert!(deframer.next(&mut &stuffed[..]).expect("a frame").is_ok());
        assert_eq!(said(&[&stuffed, &identify()]).0, Seen::Other);
    }

    #[test]
    fn there_is_no_end_of_callers_and_the_oldest_goes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        let mut callers = Callers::default();
        let ends: Vec<TcpStream> = (0..=CALLERS_MAX)
            .map(|_| {
                let ours = TcpStream::connect(address).expect("it listens");
                let (stream, from) = listener.accept().expect("a caller");
                stream.set_nonblocking(true).expect("a socket");
                callers.add(stream, from);
                ours
            })
            .collect();
        assert_eq!(callers.0.len(), CALLERS_MAX);
        (&ends[3]).write_all(&identify()).expect("it takes it");
        let (_, from, heard) = std::iter::repeat_with(|| callers.identified())
            .flatten()
            .next()
            .expect("it says who it is");
        assert_eq!((from, heard), (ends[3].local_addr().expect("a socket"), identify()));
        assert_eq!(callers.0.len(), CALLERS_MAX - 1);
    }
}
