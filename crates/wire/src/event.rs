// SPDX-License-Identifier: GPL-2.0-or-later
//! What generators, witnesses, followers and probes report: an event for each meaning. `encoding.rs` says how an event
//! is written.
//!
//! The reporter sees the guest from outside, or is a probe inside. Each event says what it stands for, and none says
//! why it happened.

use crate::encoding::AIMED;
use crate::{Mark, Reading};
use sample::{
    Answers, At, Insns, Monotonic, Nanos, Observation, Occurrence, Stamp, Stretch, Stretches,
    Virtual,
};

/// A call stack's number, from 1 on in the order in which the follower saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// A task, by the address of its `task_struct`. The kernel reuses addresses: the same one may be another task later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// How many places the follower can be told to watch: events name one by a byte, whose last value is [`Event::Aimed`].
pub const WATCHES_MAX: usize = AIMED as usize;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The generator raised the line.
    Trigger {
        /// When.
        at: At,
        /// Level of the pins then: pin 0 in bit 0.
        level: u16,
        /// Number of the trigger, from 0.
        number: u64,
    },
    /// A data register was written: the port's, or the rig's own second one.
    Pins {
        /// When: the instruction that writes is the next one.
        at: At,
        /// The new level of all pins: pin 0 in bit 0.
        level: u16,
        /// Triggers raised before.
        raised: u64,
    },
    /// The line of the device that disturbs was to rise.
    Disturbance {
        /// When.
        at: At,
        /// How many timers its handler starts.
        timers: u8,
        /// Level of the pins.
        level: u16,
        /// Triggers raised before.
        raised: u64,
    },
    /// The target reached a phase.
    Mark {
        /// When.
        at: At,
        /// Which.
        mark: Mark,
        /// The port's control register, which a restored port needs.
        control: u8,
        /// Level of the pins.
        level: u16,
        /// Triggers raised before.
        raised: u64,
    },
    /// Virtual time has come to where a session's command let the guest run.
    Reached {
        /// When.
        at: At,
    },
    /// The generator has done everything it was asked for, and waited for the last answers.
    End {
        /// When.
        at: At,
        /// The port's control register, which a restored port needs.
        control: u8,
        /// Level of the pins.
        level: u16,
        /// Triggers raised.
        raised: u64,
    },
    /// A probe measured or lost something.
    Reading(Reading),
    /// A measuring thread of a probe has ended: nothing more comes from it.
    ProbeEnd,
    /// The guest read its CLOCK_MONOTONIC, at some instant from `at` on within `width`.
    Clock {
        /// The instruction before it read.
        at: At,
        /// How much later it had read. A reading that took longer than 2³²−1 ns is told with that width; it is of no
        /// use anyway.
        width: Nanos,
        /// What it read.
        read: Stamp<Monotonic>,
    },
    /// The witness saw a thread of the guest enter a system call that waits, or that arms a timer.
    Call {
        /// When.
        at: At,
        /// The number of the call.
        call: u8,
        /// Which thread, in the order in which they were seen.
        thread: u32,
        /// Until when it asks to sleep, where it names a time on CLOCK_MONOTONIC; or when its timer is to expire
        /// first, where it names a time, on that timer's clock. Not 0.
        requested: Option<Stamp<Monotonic>>,
    },
    /// The witness saw the probe `cost` begin or end a measured stretch, by a call with the argument
    /// [`BATCH`](crate::ports::BATCH).
    Batch {
        /// When: the call is the next instruction.
        at: At,
        /// The series by its index.
        series: u16,
        /// Number of the batch in its series, from 0.
        number: u32,
        /// Whether the cost of the stretch counts for the series. Otherwise it is taken away from it.
        counts: bool,
        /// Whether the stretch ends. Otherwise it begins.
        ends: bool,
    },
    /// What the CPU executed of a function in the stretch whose end ([`Event::Batch`]) comes next. The witness tells
    /// all functions of a stretch, one after the other, if it counts by [`FunctionStarts`](crate::FunctionStarts).
    Spent {
        /// Where the function begins. Of programs and of code without a function,
        /// [`FunctionStarts`](crate::FunctionStarts) has the number.
        function: u64,
        /// How many instructions it executed itself, without those of the functions that it calls.
        insns: Insns,
    },
    /// The witness saw a thread of the guest return to user space from a system call that waits.
    Wake {
        /// When: the thread's first instruction is the next one.
        at: At,
        /// The number of the call.
        call: u8,
        /// Which thread.
        thread: u32,
        /// Instructions of user space from the thread's previous wake-up (or its first call) up to the call, including
        /// the call.
        own: Insns,
    },
    /// The follower saw a call stack for the first time, and tells one frame of it. All frames of a stack come one
    /// after the other, before anything refers to it.
    Frame {
        /// When.
        at: At,
        /// Of which stack.
        stack: StackId,
        /// Its index, from the innermost one (0).
        index: u8,
        /// Its address in the guest.
        address: u64,
    },
    /// The follower saw the CPU mask interrupts that were not masked.
    Masked {
        /// When.
        at: At,
        /// The instruction that did, or the entry of the kernel.
        by: u64,
    },
    /// The follower saw the CPU unmask interrupts. The stacks are told where they were masked for long enough.
    Unmasked {
        /// When.
        at: At,
        /// The stack there.
        stack: Option<StackId>,
        /// The one that had masked them.
        opened: Option<StackId>,
    },
    /// The follower saw the CPU's preemption count change (include/linux/preempt.h). The stacks are told where it
    /// came back to 0 and was other than that for long enough.
    Preempt {
        /// When.
        at: At,
        /// The new count, without the bit that stands for need_resched.
        count: u32,
        /// The stack there.
        stack: Option<StackId>,
        /// The one that had made it other than 0.
        opened: Option<StackId>,
    },
    /// The follower names a task, before anything refers to it, and again when its name or priority changed.
    Task {
        /// Which.
        task: TaskId,
        /// Its `pid`.
        pid: u32,
        /// Its priority as the kernel counts: 0 is the highest; 100 to 139 for other than real-time tasks.
        prio: u8,
        /// Its name, padded with zeros (include/linux/sched.h, `TASK_COMM_LEN`).
        name: [u8; 16],
    },
    /// The follower saw the CPU switch to a task.
    Run {
        /// When.
        at: At,
        /// Which.
        task: TaskId,
        /// Its `pid`.
        pid: u32,
    },
    /// The follower saw the CPU come to a watched place.
    Enter {
        /// When.
        at: At,
        /// The watch, by its place in the plan: below [`WATCHES_MAX`].
        watch: u8,
        /// What it was asked to take there: an argument, or a word in memory.
        taken: u64,
        /// The stack there, where it was asked to take that.
        stack: Option<StackId>,
    },
    /// The same, of a call that closes a stretch of its task. The stacks are told where that was long enough.
    Close {
        /// When.
        at: At,
        /// The watch.
        watch: u8,
        /// What was taken, of which there is no more.
        taken: u32,
        /// The stack there.
        stack: Option<StackId>,
        /// The one that had opened the stretch.
        opened: Option<StackId>,
    },
    /// The follower asked for a trigger, as a stretch opened.
    Aimed {
        /// When.
        at: At,
        /// Its kind.
        kind: Stretch,
        /// What opened it.
        stack: Option<StackId>,
    },
    /// The follower saw the CPU return from an interrupt, an exception or a system call.
    Leave {
        /// When.
        at: At,
        /// To user space; else to the kernel.
        user: bool,
        /// To which address; 0 where that was not looked at.
        to: u64,
    },
    /// A scout saw a long stretch, and tells it when it closes.
    Stretch {
        /// When it had opened.
        opened: Stamp<Virtual>,
        /// On which vCPU.
        cpu: u8,
        /// How long it was.
        length: Insns,
        /// Which it was.
        occurrence: Occurrence,
    },
    /// The follower looked where the CPU is, in a stretch that had become long. It looks when a stretch is as long as
    /// a given number of instructions, twice that, four times that, and so on: the last look of a stretch that is
    /// long enough for one lies in its second half.
    Inside {
        /// When.
        at: At,
        /// For which of the open stretches it was time.
        kinds: Stretches,
        /// How long the stretch [`Stretch::Unscheduled`] is, 0 where none is open: the lengths of the others are
        /// known from when they opened.
        unscheduled: Insns,
        /// The stack there.
        stack: Option<StackId>,
    },
    /// The follower saw the CPU come to the first instruction of a function of the kernel.
    Function {
        /// When.
        at: At,
        /// The function.
        address: u64,
        /// The lower half of the stack pointer there, which points at where the function returns to.
        stack_pointer: u32,
    },
    /// The follower saw the CPU return from all functions whose stack pointer was this or less on the same stack.
    Return {
        /// When.
        at: At,
        /// The instruction that returns.
        address: u64,
        /// The lower half of the stack pointer.
        stack_pointer: u32,
    },
}

impl Event {
    /// Whether nothing comes after it from whoever reports it.
    pub const fn is_last(&self) -> bool {
        matches!(self, Event::End { .. } | Event::ProbeEnd)
    }

    /// Level of the pins after it, and how many triggers had been raised before it; `None` where it does not tell.
    pub const fn port(&self) -> Option<(u16, u64)> {
        match *self {
            Event::Trigger { level, number: raised, .. }
            | Event::Pins { level, raised, .. }
            | Event::Disturbance { level, raised, .. }
            | Event::Mark { level, raised, .. }
            | Event::End { level, raised, .. } => Some((level, raised)),
            _ => None,
        }
    }

    /// Tells `answers` of it, where it is a trigger or a level of the pins, and hands on what that means.
    pub fn tell(&self, answers: &mut Answers, each: impl FnMut(Observation)) {
        match *self {
            Event::Trigger { at, .. } => answers.raise(at),
            Event::Pins { at, level, .. } => answers.write(at, level, each),
            _ => {}
        }
    }
}
