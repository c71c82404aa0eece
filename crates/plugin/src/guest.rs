// SPDX-License-Identifier: GPL-2.0-or-later
//! The ports between the plugin and a probe inside the guest. The plan goes in; the readings and the time by the
//! guest's own clock come out.
//!
//! The plugin gives the plan after the machine was restored, so one snapshot serves every probe. Each access is an exit
//! from translated code, which costs no virtual time beyond the instruction itself.

use crate::generator::{fail, pass_on};
use crate::qemu::{Ports, Qemu, Width};
use sample::{At, Nanos, Stamp, Virtual};
use wire::{Event, Reading};

/// The port through which the guest reads the plan.
pub(crate) struct PlanPort {
    /// The length in bytes, and then the bytes.
    words: std::vec::IntoIter<u32>,
}

impl PlanPort {
    /// `plan` has to be shorter than 4 GiB.
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

/// The port that puts events together from the words that the guest writes.
pub(crate) struct DataPort {
    bytes: [u8; Event::BYTES],
    filled: usize,
}

impl DataPort {
    pub(crate) fn new() -> DataPort {
        DataPort { bytes: [0; Event::BYTES], filled: 0 }
    }

    /// Takes a word. Each eighth word completes a record. Returns the probe's reading, or bytes that are no reading.
    fn take(&mut self, word: u32) -> Option<Result<Reading, [u8; Event::BYTES]>> {
        self.bytes[self.filled..self.filled + 4].copy_from_slice(&word.to_le_bytes());
        self.filled = (self.filled + 4) % Event::BYTES;
        if self.filled != 0 {
            return None;
        }
        Some(match Event::decode(&self.bytes) {
            Ok(Event::Reading(reading)) => Ok(reading),
            _ => Err(self.bytes),
        })
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
            Some(Ok(reading)) => pass_on(&Event::Reading(reading)),
            Some(Err(bytes)) => fail(&format!(
                "the guest wrote {bytes:02x?}, which is no record of a probe; build onset and its parts together"
            )),
        }
    }
}

/// The port through which the guest reports its clock's time, beside virtual time.
pub(crate) struct ClockPort {
    qemu: Qemu,
    reading: ClockReading,
}

/// How much of one reading the guest has reported.
#[derive(Clone, Copy)]
enum ClockReading {
    Idle,
    Begun(At),
    Half { begun: At, ended: Stamp<Virtual>, lower: u32 },
}

impl ClockReading {
    /// Takes the next write, which happens `now`. Each third write completes an event.
    fn write(&mut self, value: u32, now: At) -> Option<Event> {
        *self = match *self {
            ClockReading::Idle => ClockReading::Begun(now),
            ClockReading::Begun(begun) => {
                ClockReading::Half { begun, ended: now.time, lower: value }
            }
            ClockReading::Half { begun, ended, lower } => {
                *self = ClockReading::Idle;
                let width = Nanos(ended.ns().saturating_sub(begun.time.ns()));
                let read = Stamp::from_ns(u64::from(value) << 32 | u64::from(lower));
                return Some(Event::Clock { at: begun, width, read });
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
        let now = At::new(self.qemu.now(), self.qemu.insns());
        if let Some(event) = self.reading.write(value, now) {
            pass_on(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sample::{Insns, Loss};
    use wire::Mark;

    /// The words that a guest reads: the length, and then as many words as the plan needs.
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

    fn write(port: &mut DataPort, bytes: &[u8]) -> Vec<Result<Reading, [u8; Event::BYTES]>> {
        let words = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
        words.filter_map(|w| port.take(w)).collect()
    }

    #[test]
    fn eight_words_make_an_event() {
        let mut port = DataPort::new();
        for count in [1, u64::MAX] {
            let reading = Reading::Loss { series: 3, loss: Loss::Tainted, count };
            let bytes = Event::Reading(reading).encode();
            assert_eq!(write(&mut port, &bytes), [Ok(reading)]);
        }
    }

    #[test]
    fn an_event_that_only_the_plugin_may_make_is_refused() {
        let (at, mark) = (At::new(Stamp::from_ns(5), Insns(5)), Mark::Measuring);
        for event in [
            Event::Trigger { at, level: 0, number: 0 },
            Event::Mark { at, mark, control: 0, level: 0, raised: 0 },
            Event::End { at, control: 0, level: 0, raised: 0 },
            Event::ProbeEnd,
        ] {
            let bytes = event.encode();
            assert_eq!(write(&mut DataPort::new(), &bytes), [Err(bytes)]);
        }
        assert_eq!(write(&mut DataPort::new(), &[0xff; 32]), [Err([0xff; 32])]);
    }

    #[test]
    fn three_writes_make_a_clock_reading_with_the_time_of_the_first_and_the_width_up_to_the_second()
    {
        let mut reading = ClockReading::Idle;
        let instant = |ns| At::new(Stamp::from_ns(ns), Insns(ns / 2));
        let mut write = |value, ns| reading.write(value, instant(ns));
        for ns in [1_000, 5_000] {
            assert_eq!(write(1, ns), None);
            assert_eq!(write(9, ns + 80), None);
            let (at, read) = (instant(ns), Stamp::from_ns(7 << 32 | 9));
            let told = Event::Clock { at, width: Nanos(80), read };
            assert_eq!(write(7, ns + 90), Some(told));
        }
    }
}
