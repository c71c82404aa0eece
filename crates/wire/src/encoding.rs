// SPDX-License-Identifier: GPL-2.0-or-later
//! How an event is written: 32 bytes, little endian.
//!
//! `kind:u8 byte:u8 cpu:u8 reserved:u8 value:u32 number:u64 time_ns:u64 insns:u64`. [`Event::raw`] and [`Raw::event`]
//! alone say which field holds what. The reserved byte is 0, except for the ring's own mark while an event is in the
//! ring (`ring.rs`).

use crate::{Event, Mark, Reading, StackId, TaskId};
use core::fmt;
use sample::{At, Insns, Loss, Nanos, Occurrence, Stamp, Stretch, Stretches};

const TRIGGER: u8 = 1;
const PINS: u8 = 2;
const MARK: u8 = 3;
const END: u8 = 4;
pub(crate) const SAMPLE: u8 = 5;
pub(crate) const LOSS: u8 = 6;
const WAKE: u8 = 7;
const CLOCK: u8 = 8;
const CALL: u8 = 9;
const FRAME: u8 = 10;
const IRQS: u8 = 11;
const PREEMPT: u8 = 12;
const TASK: u8 = 13;
const RUN: u8 = 14;
const ENTER: u8 = 15;
const LEAVE: u8 = 16;
const STRETCH: u8 = 17;
const INSIDE: u8 = 18;
const DISTURBANCE: u8 = 19;
const FUNCTION: u8 = 20;
const RETURN: u8 = 21;
const CLOSE: u8 = 22;
const PROBE_END: u8 = 23;
const REACHED: u8 = 24;
const BATCH: u8 = 40;
const SPENT: u8 = 41;
/// Stands for "no watch" in an event of kind [`ENTER`].
pub(crate) const AIMED: u8 = u8::MAX;
/// Bits of [`BATCH`]'s byte.
const COUNTS: u8 = 1;
const ENDS: u8 = 2;
/// Of [`IRQS`].
const UNMASKED: u8 = 0;
const MASKED: u8 = 1;

/// The control register lies so many bits above a mark.
const CONTROL: u32 = 8;
/// The level of the pins from 8 on lies so many bits above a mark or a number of timers. That of the others is a byte.
const LEVEL: u32 = 16;
/// The upper half of a number lies so many bits above the lower half.
const UPPER: u32 = 32;

/// Bytes that are no event: the kind is unknown, or a field that has to be empty is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed event")
    }
}

impl core::error::Error for Malformed {}

/// The fields of an encoded event, each of which means something else in each kind.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Raw {
    kind: u8,
    byte: u8,
    cpu: u8,
    value: u32,
    number: u64,
    time: u64,
    insns: u64,
}

impl Raw {
    /// Of an event that is not of an instant.
    fn new(kind: u8) -> Raw {
        Raw { kind, ..Raw::default() }
    }

    fn at(kind: u8, at: At) -> Raw {
        Raw { kind, cpu: at.cpu, time: at.time.ns(), insns: at.insns.0, ..Raw::default() }
    }

    fn byte(self, byte: u8) -> Raw {
        Raw { byte, ..self }
    }

    fn value(self, value: u32) -> Raw {
        Raw { value, ..self }
    }

    /// A level of the pins, beside what else is in the value.
    fn level(self, level: u16) -> Raw {
        let [byte, upper] = level.to_le_bytes();
        Raw { byte, value: self.value | u32::from(upper) << LEVEL, ..self }
    }

    fn number(self, number: u64) -> Raw {
        Raw { number, ..self }
    }

    fn stack(self, stack: Option<StackId>) -> Raw {
        self.value(StackId::or_zero(stack))
    }

    /// A number of two halves.
    fn halves(self, lower: u32, upper: Option<StackId>) -> Raw {
        self.number(u64::from(StackId::or_zero(upper)) << UPPER | u64::from(lower))
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; Event::BYTES] {
        // Stored word by word: a processor that loads a whole word waits for what was stored byte by byte. No loop is
        // used: the agent is built for size, so a loop would stay one, and each sample of a probe comes here.
        let head = u64::from(self.kind)
            | u64::from(self.byte) << 8
            | u64::from(self.cpu) << 16
            | u64::from(self.value) << 32;
        let mut b = [0; Event::BYTES];
        b[..8].copy_from_slice(&head.to_le_bytes());
        b[8..16].copy_from_slice(&self.number.to_le_bytes());
        b[16..24].copy_from_slice(&self.time.to_le_bytes());
        b[24..].copy_from_slice(&self.insns.to_le_bytes());
        b
    }

    /// `None` where the reserved byte is other than 0.
    fn of_bytes(b: &[u8; Event::BYTES]) -> Option<Raw> {
        let u64_at = |i: usize| u64::from_le_bytes(b[i..i + 8].try_into().expect("8 bytes"));
        let [kind, byte, cpu, 0, ..] = *b else { return None };
        let value = u32::from_le_bytes(b[4..8].try_into().expect("4 bytes"));
        let (number, time, insns) = (u64_at(8), u64_at(16), u64_at(24));
        Some(Raw { kind, byte, cpu, value, number, time, insns })
    }

    /// What it means. Fields that mean nothing in its kind are not looked at.
    fn event(&self) -> Option<Event> {
        let Raw { kind, byte, cpu, value, number, time, insns } = *self;
        let (opened, insns) = (Stamp::from_ns(time), Insns(insns));
        let at = At { time: opened, insns, cpu };
        let level = u16::from_le_bytes([byte, (value >> LEVEL) as u8]);
        let (raised, control) = (number, (value >> CONTROL) as u8);
        let (stack, lower, upper) = (StackId::of(value), number as u32, (number >> UPPER) as u32);
        Some(match kind {
            TRIGGER => Event::Trigger { at, level, number },
            PINS => Event::Pins { at, level, raised },
            DISTURBANCE => Event::Disturbance { at, timers: value as u8, level, raised },
            MARK => Event::Mark { at, mark: Mark::of(value as u8)?, control, level, raised },
            END => Event::End { at, control, level, raised },
            SAMPLE | LOSS => Event::Reading(self.reading()?),
            REACHED => Event::Reached { at },
            PROBE_END => Event::ProbeEnd,
            CLOCK => Event::Clock { at, width: Nanos(value.into()), read: Stamp::from_ns(number) },
            CALL => {
                let requested = (number != 0).then(|| Stamp::from_ns(number));
                Event::Call { at, call: byte, thread: value, requested }
            }
            WAKE => Event::Wake { at, call: byte, thread: value, own: Insns(number) },
            BATCH => {
                let (counts, ends) = (byte & COUNTS != 0, byte & ENDS != 0);
                let series = u16::try_from(value).ok()?;
                Event::Batch { at, series, number: u32::try_from(number).ok()?, counts, ends }
            }
            SPENT => Event::Spent { function: number, insns },
            FRAME => Event::Frame { at, stack: stack?, index: byte, address: number },
            IRQS if byte == MASKED => Event::Masked { at, by: number },
            IRQS => Event::Unmasked { at, stack, opened: StackId::of(lower) },
            PREEMPT => Event::Preempt { at, count: lower, stack, opened: StackId::of(upper) },
            TASK => {
                let name = u128::from(time) | u128::from(insns.0) << 64;
                let (task, name) = (TaskId(number), name.to_le_bytes());
                Event::Task { task, pid: value, prio: byte, name }
            }
            RUN => Event::Run { at, task: TaskId(number), pid: value },
            ENTER if byte == AIMED => Event::Aimed { at, kind: stretch(lower as u8)?, stack },
            ENTER => Event::Enter { at, watch: byte, taken: number, stack },
            CLOSE => {
                let opened = StackId::of(upper);
                Event::Close { at, watch: byte, taken: lower, stack, opened }
            }
            LEAVE => Event::Leave { at, user: byte == 1, to: number },
            STRETCH => {
                let occurrence = Occurrence { kind: stretch(byte)?, key: number, ordinal: value };
                Event::Stretch { opened, cpu, length: insns, occurrence }
            }
            INSIDE => {
                let (kinds, unscheduled) = (Stretches::from_mask(byte), Insns(number));
                Event::Inside { at, kinds, unscheduled, stack }
            }
            FUNCTION => Event::Function { at, address: number, stack_pointer: value },
            RETURN => Event::Return { at, address: number, stack_pointer: value },
            _ => return None,
        })
    }

    fn reading(&self) -> Option<Reading> {
        let series = u16::try_from(self.value).ok()?;
        Some(match self.kind {
            LOSS => {
                let loss = Loss::ALL.into_iter().find(|loss| *loss as u8 == self.byte)?;
                Reading::Loss { series, loss, count: self.number }
            }
            _ => {
                let (at, latency) = (Stamp::from_ns(self.time), Nanos(self.insns));
                Reading::Sample { series, number: self.number, at, latency }
            }
        })
    }
}

fn stretch(number: u8) -> Option<Stretch> {
    Stretch::from_bit(number)
}

impl StackId {
    fn of(number: u32) -> Option<StackId> {
        (number != 0).then_some(StackId(number))
    }

    fn or_zero(stack: Option<StackId>) -> u32 {
        stack.map_or(0, |StackId(number)| number)
    }
}

impl Event {
    /// Size of the encoding in bytes.
    pub const BYTES: usize = 32;

    /// The encoding.
    #[inline(always)]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        self.raw().to_bytes()
    }

    /// The event in `b`.
    ///
    /// # Errors
    /// [`Malformed`]; what is an event is encoded to the same bytes again.
    pub fn decode(b: &[u8; Self::BYTES]) -> Result<Event, Malformed> {
        let raw = Raw::of_bytes(b).ok_or(Malformed)?;
        let event = raw.event().ok_or(Malformed)?;
        if event.raw() == raw { Ok(event) } else { Err(Malformed) }
    }

    #[inline(always)]
    fn raw(&self) -> Raw {
        match *self {
            Event::Trigger { at, level, number } => {
                Raw::at(TRIGGER, at).level(level).number(number)
            }
            Event::Pins { at, level, raised } => Raw::at(PINS, at).level(level).number(raised),
            Event::Disturbance { at, timers, level, raised } => {
                Raw::at(DISTURBANCE, at).value(timers.into()).level(level).number(raised)
            }
            Event::Mark { at, mark, control, level, raised } => {
                let value = u32::from(mark as u8) | u32::from(control) << CONTROL;
                Raw::at(MARK, at).value(value).level(level).number(raised)
            }
            Event::End { at, control, level, raised } => {
                let value = u32::from(control) << CONTROL;
                Raw::at(END, at).value(value).level(level).number(raised)
            }
            Event::Reached { at } => Raw::at(REACHED, at),
            Event::Reading(reading) => raw_of_reading(reading),
            Event::ProbeEnd => Raw::new(PROBE_END),
            Event::Clock { at, width, read } => {
                let width = u32::try_from(width.0).unwrap_or(u32::MAX);
                Raw::at(CLOCK, at).value(width).number(read.ns())
            }
            Event::Call { at, call, thread, requested } => {
                let requested = requested.map_or(0, Stamp::ns);
                Raw::at(CALL, at).byte(call).value(thread).number(requested)
            }
            Event::Wake { at, call, thread, own } => {
                Raw::at(WAKE, at).byte(call).value(thread).number(own.0)
            }
            Event::Batch { at, series, number, counts, ends } => {
                let byte = if counts { COUNTS } else { 0 } | if ends { ENDS } else { 0 };
                Raw::at(BATCH, at).byte(byte).value(series.into()).number(number.into())
            }
            Event::Spent { function, insns } => {
                Raw { insns: insns.0, ..Raw::new(SPENT).number(function) }
            }
            _ => self.raw_of_follower(),
        }
    }

    #[inline]
    fn raw_of_follower(&self) -> Raw {
        match *self {
            Event::Frame { at, stack, index, address } => {
                Raw::at(FRAME, at).byte(index).value(stack.0).number(address)
            }
            Event::Masked { at, by } => Raw::at(IRQS, at).byte(MASKED).number(by),
            Event::Unmasked { at, stack, opened } => {
                let opened = StackId::or_zero(opened).into();
                Raw::at(IRQS, at).byte(UNMASKED).stack(stack).number(opened)
            }
            Event::Preempt { at, count, stack, opened } => {
                Raw::at(PREEMPT, at).stack(stack).halves(count, opened)
            }
            Event::Task { task, pid, prio, name } => {
                let [time, insns] = [0, 8].map(|from| {
                    u64::from_le_bytes(name[from..from + 8].try_into().expect("8 bytes"))
                });
                let raw = Raw::new(TASK).byte(prio).value(pid).number(task.0);
                Raw { time, insns, ..raw }
            }
            Event::Run { at, task, pid } => Raw::at(RUN, at).value(pid).number(task.0),
            Event::Enter { at, watch, taken, stack } => {
                Raw::at(ENTER, at).byte(watch).stack(stack).number(taken)
            }
            Event::Close { at, watch, taken, stack, opened } => {
                Raw::at(CLOSE, at).byte(watch).stack(stack).halves(taken, opened)
            }
            Event::Aimed { at, kind, stack } => {
                Raw::at(ENTER, at).byte(AIMED).stack(stack).number(kind as u64)
            }
            Event::Leave { at, user, to } => Raw::at(LEAVE, at).byte(user.into()).number(to),
            Event::Stretch { opened, cpu, length, occurrence } => {
                let Occurrence { kind, key, ordinal } = occurrence;
                let at = At { time: opened, insns: length, cpu };
                Raw::at(STRETCH, at).byte(kind as u8).value(ordinal).number(key)
            }
            Event::Inside { at, kinds, unscheduled, stack } => {
                Raw::at(INSIDE, at).byte(kinds.mask()).stack(stack).number(unscheduled.0)
            }
            Event::Function { at, address, stack_pointer } => {
                Raw::at(FUNCTION, at).value(stack_pointer).number(address)
            }
            Event::Return { at, address, stack_pointer } => {
                Raw::at(RETURN, at).value(stack_pointer).number(address)
            }
            // `raw` has these.
            Event::Trigger { .. }
            | Event::Pins { .. }
            | Event::Disturbance { .. }
            | Event::Mark { .. }
            | Event::End { .. }
            | Event::Reached { .. }
            | Event::Reading(_)
            | Event::ProbeEnd
            | Event::Clock { .. }
            | Event::Call { .. }
            | Event::Batch { .. }
            | Event::Spent { .. }
            | Event::Wake { .. } => Raw::default(),
        }
    }
}

fn raw_of_reading(reading: Reading) -> Raw {
    match reading {
        Reading::Sample { series, number, at, latency } => {
            let raw = Raw::new(SAMPLE).value(series.into()).number(number);
            Raw { time: at.ns(), insns: latency.0, ..raw }
        }
        Reading::Loss { series, loss, count } => {
            Raw::new(LOSS).byte(loss as u8).value(series.into()).number(count)
        }
    }
}

#[cfg(test)]
mod tests;
