// SPDX-License-Identifier: GPL-2.0-or-later
//! The ports between the plugin and a probe inside the guest: the plan on its way in, the records and the
//! time by the guest's own clock on their way out.
//!
//! The plan is given after the machine was restored, so one snapshot serves every probe. Each access is an exit
//! from translated code, which costs no virtual time beyond the instruction itself.

use crate::generator::{fail, pass_on};
use crate::qemu::{Ports, Qemu, Width};
use sample::{Insns, Kind, Record, Stamp, Virtual};

/// Read: the length of the plan in bytes, then the plan, four bytes at a time, little endian, with zeroes after its
/// end. A length of 0 says that there is no plan. "OP".
pub const PLAN_PORT: u16 = 0x4f50;
/// Written: the records of a probe, eight times four bytes each, little endian. "OT".
pub const DATA_PORT: u16 = 0x4f54;
/// Written, three times in a row: anything, right before the guest reads its CLOCK_MONOTONIC; what it read in ns, the
/// lower half (right after) and the upper half. "OX".
pub const CLOCK_PORT: u16 = 0x4f58;

/// The plan, as the guest reads it.
pub(crate) struct PlanPort {
    /// Length and bytes.
    words: std::vec::IntoIter<u32>,
}

impl PlanPort {
    /// `plan` is shorter than 4 GiB.
    pub(crate) fn new(plan: &[u8]) -> PlanPort {
        let mut words = vec![plan.len() as u32];
        for chunk in plan.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..chunk.len()].copy_from_slice(chunk);
            words.push(u32::from_le_bytes(bytes));
        }
        PlanPort { words: words.into_iter() }
    }
}

impl Ports for PlanPort {
    const WIDTH: Width = Width::Word;

    fn read(&mut self, _offset: u64) -> u32 {
        self.words.next().unwrap_or(0)
    }

    fn write(&mut self, _offset: u64, _value: u32) {}
}

/// Puts records together from the words that the guest writes.
pub(crate) struct DataPort {
    bytes: [u8; Record::BYTES],
    filled: usize,
}

impl DataPort {
    pub(crate) fn new() -> DataPort {
        DataPort { bytes: [0; Record::BYTES], filled: 0 }
    }

    /// Takes a word; gives a record, or what is no record of a probe, with each eighth.
    fn take(&mut self, word: u32) -> Option<Result<Record, [u8; Record::BYTES]>> {
        self.bytes[self.filled..self.filled + 4].copy_from_slice(&word.to_le_bytes());
        self.filled = (self.filled + 4) % Record::BYTES;
        if self.filled != 0 {
            return None;
        }
        let of_a_probe = |r: &Record| matches!(r.kind, Kind::Sample | Kind::Loss);
        Some(Record::decode(&self.bytes).ok().filter(of_a_probe).ok_or(self.bytes))
    }
}

impl Ports for DataPort {
    const WIDTH: Width = Width::Word;

    fn read(&mut self, _offset: u64) -> u32 {
        0
    }

    fn write(&mut self, _offset: u64, value: u32) {
        match self.take(value) {
            None => {}
            Some(Ok(record)) => pass_on(&record),
            Some(Err(bytes)) => fail(&format!(
                "the guest wrote {bytes:02x?}, which is no record of a probe; build onset and its parts together"
            )),
        }
    }
}

/// Sets the guest's clock beside ours.
pub(crate) struct ClockPort {
    qemu: Qemu,
    reading: ClockReading,
}

/// How far the guest has told of one reading.
#[derive(Clone, Copy)]
enum ClockReading {
    Idle,
    Begun(Stamp<Virtual>, Insns),
    Half { begun: Stamp<Virtual>, insns: Insns, ended: Stamp<Virtual>, lower: u32 },
}

impl ClockReading {
    /// The next write, which happens `now`; gives a record with each third.
    fn write(&mut self, value: u32, now: Stamp<Virtual>, insns: Insns) -> Option<Record> {
        *self = match *self {
            ClockReading::Idle => ClockReading::Begun(now, insns),
            ClockReading::Begun(begun, insns) => {
                ClockReading::Half { begun, insns, ended: now, lower: value }
            }
            ClockReading::Half { begun, insns, ended, lower } => {
                *self = ClockReading::Idle;
                let width = ended.ns().saturating_sub(begun.ns());
                return Some(Record {
                    kind: Kind::Clock,
                    pins: 0,
                    // One that took longer than 32 bits can tell is of no use at any width.
                    value: u32::try_from(width).unwrap_or(u32::MAX),
                    number: u64::from(value) << 32 | u64::from(lower),
                    at: begun,
                    insns,
                });
            }
        };
        None
    }
}

impl ClockPort {
    pub(crate) fn new(qemu: Qemu) -> ClockPort {
        ClockPort { qemu, reading: ClockReading::Idle }
    }
}

impl Ports for ClockPort {
    const WIDTH: Width = Width::Word;

    fn read(&mut self, _offset: u64) -> u32 {
        0
    }

    fn write(&mut self, _offset: u64, value: u32) {
        if let Some(record) = self.reading.write(value, self.qemu.now(), self.qemu.insns()) {
            pass_on(&record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sample::{Loss, Reading};

    /// What a guest reads: the length, then as many words as hold it.
    fn read(port: &mut PlanPort) -> Vec<u8> {
        let length = port.read(0) as usize;
        let mut bytes: Vec<u8> =
            (0..length.div_ceil(4)).flat_map(|_| port.read(0).to_le_bytes()).collect();
        bytes.truncate(length);
        bytes
    }

    proptest! {
        #[test]
        fn a_plan_of_any_length_arrives_whole(plan in proptest::collection::vec(0u8.., 0..50)) {
            prop_assert_eq!(read(&mut PlanPort::new(&plan)), plan);
        }
    }

    #[test]
    fn after_the_plan_there_are_zeroes() {
        let mut port = PlanPort::new(b"x");
        read(&mut port);
        assert_eq!((port.read(0), port.read(0)), (0, 0));
    }

    fn write(port: &mut DataPort, bytes: &[u8]) -> Vec<Result<Record, [u8; Record::BYTES]>> {
        let words = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
        words.filter_map(|w| port.take(w)).collect()
    }

    #[test]
    fn eight_words_make_a_record() {
        let mut port = DataPort::new();
        for count in [1, u64::MAX] {
            let record = Reading::Loss { series: 3, loss: Loss::Tainted, count }.record();
            assert_eq!(write(&mut port, &record.encode()), [Ok(record)]);
        }
    }

    #[test]
    fn a_record_that_only_the_plugin_may_make_is_refused() {
        let record = Reading::Loss { series: 3, loss: Loss::Tainted, count: 1 }.record();
        for kind in [Kind::Trigger, Kind::Mark, Kind::End] {
            let bytes = Record { kind, ..record }.encode();
            assert_eq!(write(&mut DataPort::new(), &bytes), [Err(bytes)]);
        }
        assert_eq!(write(&mut DataPort::new(), &[0xff; 32]), [Err([0xff; 32])]);
    }

    #[test]
    fn three_writes_make_a_clock_reading_with_the_time_of_the_first_and_the_width_up_to_the_second()
    {
        let mut reading = ClockReading::Idle;
        let number = 7 << 32 | 9;
        let mut write = |value, at| reading.write(value, Stamp::from_ns(at), Insns(at / 2));
        for at in [1_000, 5_000] {
            assert_eq!(write(1, at), None);
            assert_eq!(write(9, at + 80), None);
            let record = write(7, at + 90).unwrap();
            assert_eq!((record.kind, record.number, record.value), (Kind::Clock, number, 80));
            assert_eq!((record.at.ns(), record.insns), (at, Insns(at / 2)));
        }
    }
}
