// SPDX-License-Identifier: GPL-2.0-or-later
//! The messages on their way to the host. Their number is bounded. A host that does not read loses batches, which are
//! counted. Nobody waits for the host.

use wire::generator::{Report, STUFFED_MAX};

/// The most bytes that wait for a host. A batch that would exceed this is thrown away. Answers and the ends of runs are
/// not: no command is taken while an answer waits, so there is one answer at a time.
const OUTBOX_MAX: usize = 256 * 1024;

#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// How many of the bytes go up to the end of the answer that waits; 0 where none waits.
    answered: usize,
    /// The number of frames so far that answer nothing.
    told: u16,
}

impl Outbox {
    /// Queues a message that answers nothing, whether there is room or not.
    pub(super) fn tell(&mut self, report: &Report<'_>) {
        let number = self.told;
        self.told = number.wrapping_add(1);
        self.queue(report, number);
    }

    /// Queues a message if there is room. Returns whether there was room. The message uses up its number in any case.
    pub(super) fn offer(&mut self, report: &Report<'_>) -> bool {
        let has_room = self.bytes.len() + STUFFED_MAX <= OUTBOX_MAX;
        if has_room {
            self.tell(report);
        } else {
            self.told = self.told.wrapping_add(1);
        }
        has_room
    }

    /// Queues a message as the answer to the command with this number.
    pub(super) fn answer(&mut self, report: &Report<'_>, number: u16) {
        self.queue(report, number);
        self.answered = self.bytes.len();
    }

    /// Whether an answer waits for the host, all of it or its end.
    pub(super) fn holds_answer(&self) -> bool {
        self.answered > 0
    }

    fn queue(&mut self, report: &Report<'_>, number: u16) {
        self.bytes.extend_from_slice(report.encode(number, &mut [0; STUFFED_MAX]));
    }

    pub(super) fn drain(&mut self, mut send: impl FnMut(&[u8]) -> usize) {
        let sent = if self.bytes.is_empty() { 0 } else { send(&self.bytes) };
        self.bytes.drain(..sent.min(self.bytes.len()));
        self.answered = self.answered.saturating_sub(sent);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.answered = 0;
    }
}
