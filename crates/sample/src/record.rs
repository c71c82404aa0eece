// SPDX-License-Identifier: GPL-2.0-or-later
//! The wire format of generators and probes: one fixed-size record for everything that they do or see.
//!
//! 32 bytes, little endian: `kind:u8 pins:u8 reserved:u16 value:u32 number:u64 time_ns:u64 insns:u64`. The
//! reserved bytes are 0, but for the channel's own numbering while a record is in it (`ring.rs`).

use crate::{Insns, Stamp, Virtual};
use core::fmt;

/// What a record reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The generator raised the line; `number` counts triggers from 0.
    Trigger = 1,
    /// The data port was written; `pins` is the new level of D0 … D7.
    Pins = 2,
    /// The target reached a phase; `value` is the mark it wrote.
    Mark = 3,
    /// The generator has done everything it was asked for, and waited for the last answers; a probe has
    /// ended.
    End = 4,
    /// A probe measured a latency: `value` is the series, `number` the event's own number, `at` when it was due (since the
    /// beginning of measuring), `insns` holds the latency in ns. See [`Reading`](crate::Reading).
    Sample = 5,
    /// A probe lost something: `value` is the series, `pins` the kind of loss, `number` how often.
    Loss = 6,
    /// The witness saw a thread of the guest return to user space from a system call that waits: `pins` is the call's
    /// number, `value` the thread's (in the order in which they were seen), `number` the instructions that user space
    /// executed from the thread's wake-up before this one (or its first call) up to the call, the call included. `at` and
    /// `insns` are those of the return: the thread's first instruction is the next one.
    Wake = 7,
    /// The guest read its CLOCK_MONOTONIC: `number` is what it read, in ns, at some instant from `at` on within `value`
    /// ns.
    Clock = 8,
    /// The witness saw a thread of the guest enter a system call that waits: `pins` is the call's number, `value` the
    /// thread's, `number` the time on CLOCK_MONOTONIC in ns until which it asks to sleep, 0 where it names none.
    Call = 9,
    /// The follower saw a call stack for the first time, and tells one frame of it: `value` is the stack's number (from 1
    /// on, in the order in which they were seen), `pins` the frame's index from the innermost one (0), `number` its address
    /// in the guest. All frames of a stack come one after the other, before anything refers to it.
    Stack = 10,
    /// The follower saw the CPU mask interrupts (`pins` = 1) by the instruction at `number`, or enter the kernel there with
    /// interrupts masked; or unmask them (0): `value` is then the stack there, and `number` the one that had masked them, both
    /// 0 where the stretch was too short to be worth it. Only changes are told.
    Irqs = 11,
    /// The follower saw the CPU's preemption count change (include/linux/preempt.h): the lower half of `number` is the new
    /// count, without the bit that stands for need_resched. Where it came back to 0, `value` is the stack there, and the upper
    /// half of `number` the stack that had made it other than 0; both 0 where the stretch was too short to be worth it.
    Preempt = 12,
    /// The follower names a task, before anything refers to it, and again when a name or priority changed: `number` is the
    /// address of its task_struct, `value` its pid, `pins` its priority as the kernel counts (0 is the highest; 100 to 139
    /// for other than real-time tasks); `at` and `insns` hold no time but the 16 bytes of its name, padded with zeros.
    Task = 13,
    /// The follower saw the CPU switch to the task whose task_struct is at `number`; `value` is its pid.
    Run = 14,
    /// The follower saw the CPU come to a watched place: `pins` is the watch's index, `number` what it was asked to take
    /// there (an argument, or a word in memory), `value` the stack there, 0 where none was taken. Of a call that closes a
    /// stretch of its task, what was taken is the lower half, and the upper half the stack that had opened it, or 0. Index 255
    /// ([`AIMED`](crate::AIMED)) is no place: a trigger was asked for as a stretch opened, `number` is its kind, `value` what opened it.
    Enter = 15,
    /// The follower saw the CPU return from an interrupt, an exception or a system call: to user space (`pins` = 1) or
    /// to the kernel (0), at the address `number`.
    Leave = 16,
    /// A scout saw a long stretch, and tells it when it closes: `pins` is its [kind](crate::Stretch), `number` what stands for its
    /// opener, `value` how many of this kind and opener had opened before (an [`Occurrence`](crate::Occurrence)); `at` is when it
    /// opened, `insns` how long it was.
    Stretch = 17,
    /// The follower looked where the CPU is, in a stretch that had become long: `value` is the stack there, `pins` the
    /// [kinds](crate::Stretch) of the open stretches for which it was time, added up. It looks when a stretch is as long as a
    /// given number of instructions, twice that, four times that, and so on: the last look of a stretch that is long enough
    /// for one lies in its second half. `number` is how long the stretch [`Unscheduled`](crate::Stretch::Unscheduled) is, in
    /// instructions, where one is open: the lengths of the others are known from when they opened.
    Inside = 18,
    /// The line of the device that disturbs was to rise; `value` is how many timers its handler starts.
    Disturbance = 19,
    /// The follower saw the CPU come to the first instruction of the kernel's function at `number`; `value` is the lower half
    /// of the stack pointer there, which points at where the function returns to.
    Function = 20,
    /// The follower saw the CPU return, at the instruction at `number`, from all functions whose stack pointer was `value` or
    /// less on the same stack.
    Return = 21,
}

/// One event with its exact time. The meaning of the fields is that of [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub kind: Kind,
    /// Level of the data pins after the event, D0 in bit 0.
    pub pins: u8,
    /// The mark, for [`Kind::Mark`]; else 0.
    pub value: u32,
    /// Triggers raised before this event (for a trigger: its own number).
    pub number: u64,
    /// When, in virtual time.
    pub at: Stamp<Virtual>,
    /// Instructions that the vCPU had completed.
    pub insns: Insns,
}

/// Bytes that are no record: an unknown kind, or reserved bits set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed generator record")
    }
}

impl core::error::Error for Malformed {}

impl Record {
    /// Size of the encoding in bytes.
    pub const BYTES: usize = 32;

    /// The encoding.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[0] = self.kind as u8;
        b[1] = self.pins;
        b[4..8].copy_from_slice(&self.value.to_le_bytes());
        b[8..16].copy_from_slice(&self.number.to_le_bytes());
        b[16..24].copy_from_slice(&self.at.ns().to_le_bytes());
        b[24..32].copy_from_slice(&self.insns.0.to_le_bytes());
        b
    }

    /// The record in `b`.
    pub fn decode(b: &[u8; Self::BYTES]) -> Result<Record, Malformed> {
        let kind = match b[0] {
            1 => Kind::Trigger,
            2 => Kind::Pins,
            3 => Kind::Mark,
            4 => Kind::End,
            5 => Kind::Sample,
            6 => Kind::Loss,
            7 => Kind::Wake,
            8 => Kind::Clock,
            9 => Kind::Call,
            10 => Kind::Stack,
            11 => Kind::Irqs,
            12 => Kind::Preempt,
            13 => Kind::Task,
            14 => Kind::Run,
            15 => Kind::Enter,
            16 => Kind::Leave,
            17 => Kind::Stretch,
            18 => Kind::Inside,
            19 => Kind::Disturbance,
            20 => Kind::Function,
            21 => Kind::Return,
            _ => return Err(Malformed),
        };
        if b[2] != 0 || b[3] != 0 {
            return Err(Malformed);
        }
        let u64_at = |i: usize| u64::from_le_bytes(b[i..i + 8].try_into().expect("8 bytes"));
        Ok(Record {
            kind,
            pins: b[1],
            value: u32::from_le_bytes(b[4..8].try_into().expect("4 bytes")),
            number: u64_at(8),
            at: Stamp::from_ns(u64_at(16)),
            insns: Insns(u64_at(24)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_survives_its_encoding(
            kind in prop_oneof![
                Just(Kind::Trigger), Just(Kind::Pins), Just(Kind::Mark), Just(Kind::End),
                Just(Kind::Sample), Just(Kind::Loss), Just(Kind::Wake), Just(Kind::Clock), Just(Kind::Call),
                Just(Kind::Stack), Just(Kind::Irqs), Just(Kind::Preempt), Just(Kind::Task), Just(Kind::Run),
                Just(Kind::Enter), Just(Kind::Leave), Just(Kind::Stretch), Just(Kind::Inside),
                Just(Kind::Disturbance),
            ],
            pins: u8, value: u32, number: u64, ns: u64, insns: u64,
        ) {
            let r = Record { kind, pins, value, number, at: Stamp::from_ns(ns), insns: Insns(insns) };
            prop_assert_eq!(Record::decode(&r.encode()), Ok(r));
        }

        #[test]
        fn arbitrary_bytes_are_a_record_or_an_error_and_nothing_is_lost(b: [u8; 32]) {
            if let Ok(r) = Record::decode(&b) {
                prop_assert_eq!(r.encode(), b);
            }
        }
    }
}
