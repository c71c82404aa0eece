// SPDX-License-Identifier: GPL-2.0-or-later
//! What a host tells a QEMU that serves trials by forking itself, and what that QEMU answers, over a socket. Each
//! request and each reply has [`REQUEST_BYTES`] bytes.
//!
//! The guest stands still until a request comes, and stands still again before the reply. So its history depends on the
//! requests alone.

use sample::Nanos;

/// Bytes of an encoded request, and of a reply, little endian: `kind:u64 value:u64`.
pub const REQUEST_BYTES: usize = 16;

/// What a QEMU is to do whose guest stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkRequest {
    /// Let the guest run to this instant after measuring began.
    Walk {
        /// To when.
        until: Nanos,
    },
    /// Fork. The child reads what it is to be from the file that [`WalkRequest::file`] names.
    Fork {
        /// The number of the child's descriptors and files.
        slot: u32,
    },
    /// Stop the machine where it stands, so that it can be saved. It serves no more requests. The answer is the end of
    /// measuring ([`Event::End`](crate::Event::End)).
    Stop,
}

/// What it answers once the request is carried out. The first reply comes unasked, where measuring begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkReply {
    /// The guest stands still, this long after measuring began.
    Stands {
        /// Where.
        at: Nanos,
    },
    /// There is a child with this number.
    Forked {
        /// The child's process number.
        process: u32,
    },
    /// The system refused to fork, by this number (errno(3)).
    Refused {
        /// The number.
        errno: u32,
    },
}

impl WalkRequest {
    /// The name of the file with the arguments of the child in `slot`, a line each.
    pub fn file(slot: u32) -> alloc::string::String {
        alloc::format!("request-{slot}")
    }

    /// Its bytes.
    pub fn encode(self) -> [u8; REQUEST_BYTES] {
        match self {
            WalkRequest::Walk { until } => encoded(0, until.0),
            WalkRequest::Fork { slot } => encoded(1, slot.into()),
            WalkRequest::Stop => encoded(2, 0),
        }
    }

    /// What these bytes say. `None` if they are no request.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<WalkRequest> {
        match decoded(bytes) {
            (0, until) => Some(WalkRequest::Walk { until: Nanos(until) }),
            (1, slot) => Some(WalkRequest::Fork { slot: u32::try_from(slot).ok()? }),
            (2, 0) => Some(WalkRequest::Stop),
            _ => None,
        }
    }
}

impl WalkReply {
    /// Its bytes.
    pub fn encode(self) -> [u8; REQUEST_BYTES] {
        match self {
            WalkReply::Stands { at } => encoded(0, at.0),
            WalkReply::Forked { process } => encoded(1, process.into()),
            WalkReply::Refused { errno } => encoded(2, errno.into()),
        }
    }

    /// What these bytes say. `None` if they are no reply.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<WalkReply> {
        let small = |value| u32::try_from(value).ok();
        match decoded(bytes) {
            (0, at) => Some(WalkReply::Stands { at: Nanos(at) }),
            (1, process) => Some(WalkReply::Forked { process: small(process)? }),
            (2, errno) => Some(WalkReply::Refused { errno: small(errno)? }),
            _ => None,
        }
    }
}

fn encoded(kind: u64, value: u64) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..8].copy_from_slice(&kind.to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn decoded(bytes: &[u8; REQUEST_BYTES]) -> (u64, u64) {
    let word = |from: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[from..from + 8]);
        u64::from_le_bytes(word)
    };
    (word(0), word(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_and_replies_survive_their_bytes(value in any::<u64>(), small in any::<u32>()) {
            let walk = WalkRequest::Walk { until: Nanos(value) };
            for request in [walk, WalkRequest::Fork { slot: small }, WalkRequest::Stop] {
                prop_assert_eq!(WalkRequest::decode(&request.encode()), Some(request));
            }
            let forked = WalkReply::Forked { process: small };
            for reply in [WalkReply::Stands { at: Nanos(value) }, forked, WalkReply::Refused { errno: small }] {
                prop_assert_eq!(WalkReply::decode(&reply.encode()), Some(reply));
            }
        }

        #[test]
        fn any_bytes_are_a_request_or_none(bytes in any::<[u8; REQUEST_BYTES]>()) {
            if let Some(request) = WalkRequest::decode(&bytes) {
                prop_assert_eq!(request.encode(), bytes);
            }
            if let Some(reply) = WalkReply::decode(&bytes) {
                prop_assert_eq!(reply.encode(), bytes);
            }
        }
    }
}
