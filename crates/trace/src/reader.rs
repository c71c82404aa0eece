// SPDX-License-Identifier: GPL-2.0-or-later
//! From records to events: order checked, stacks and tasks kept in tables.
//!
//! What cannot be is not repaired. A record that goes back in time is refused and counted; one that refers to a stack
//! nobody defined keeps everything but its stack, and is counted. What the channel dropped is told by [`Reader::gap`], and
//! becomes an event, because whoever follows a state has to forget it then.

use crate::{Edge, LAZY, Role, WATCHED, Watch};
use rustc_hash::FxHashMap;
use sample::{Insns, Kind, Nanos, Record, Stamp, Stretch, Virtual};
use serde::{Deserialize, Serialize};

/// An instant, by both clocks of the rig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Virtual time.
    pub time: Stamp<Virtual>,
    /// Instructions that the vCPU had completed.
    pub insns: Insns,
}

impl At {
    /// Time and instructions since `earlier`; `None` where either went backwards.
    pub fn since(self, earlier: At) -> Option<(Nanos, Insns)> {
        let insns = self.insns.0.checked_sub(earlier.insns.0)?;
        Some((self.time.since(earlier.time)?, Insns(insns)))
    }
}

/// A call stack's number, from 1 on in the order in which the follower saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

/// Where something happened in the kernel, as exactly as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Not known.
    #[default]
    Unknown,
    /// At this address; no stack was taken.
    Address(u64),
    /// With this stack.
    Stack(StackId),
}

/// A task, by the address of its `task_struct`. The kernel reuses addresses: the same one may be another task later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// What the kernel says of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process id as `task_struct.pid`; 0 is the idle task.
    pub pid: u32,
    /// Its priority as the kernel counts (`task_struct.prio`): 0 is the highest, 100 to 139 are other than real-time.
    pub prio: u8,
    /// Its name, at most 16 bytes, with what is not UTF-8 replaced.
    pub name: String,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: At,
    /// What.
    pub what: What,
}

/// What happened. Fields are those of [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The generator raised the line.
    Trigger {
        /// Number of the trigger, from 0.
        number: u64,
        /// Level of the data pins then.
        level: u8,
    },
    /// The line of the device that disturbs was to rise.
    Disturbance {
        /// How many timers its handler starts.
        timers: u8,
    },
    /// The data pins changed.
    Pins {
        /// Their new level, D0 in bit 0.
        level: u8,
    },
    /// The CPU masked or unmasked interrupts.
    Irqs {
        /// Whether they are masked now.
        masked: bool,
        /// Where: by which instruction or at which entry of the kernel they were masked, and with which stack unmasked.
        place: Place,
        /// With which stack they had been masked; told only when they are unmasked, and the stretch was long enough.
        opened: Place,
    },
    /// The CPU's preemption count changed.
    Preempt {
        /// Its new value, without the bit for need_resched.
        count: u32,
        /// Where, when it came back to 0 and the stretch was long enough.
        place: Place,
        /// With which stack it had become other than 0; told as `place` is.
        opened: Place,
    },
    /// The CPU switched to a task.
    Run {
        /// Which.
        task: TaskId,
        /// Its process id.
        pid: u32,
    },
    /// The CPU came to a watched place.
    Enter {
        /// What that means.
        role: Role,
        /// The place's address.
        address: u64,
        /// What was taken there.
        taken: u64,
        /// Where.
        place: Place,
        /// Where it closes a stretch that was long enough: with which stack that had been opened.
        opened: Place,
    },
    /// The CPU returned from an interrupt, an exception or a system call.
    Leave {
        /// To user space; else to the kernel.
        user: bool,
        /// To which address.
        to: u64,
    },
    /// A function of the kernel was called, or jumped to as the last step of another.
    Function {
        /// The function.
        address: u64,
        /// The lower half of the stack pointer at its first instruction.
        stack_pointer: u32,
    },
    /// All functions have returned that were called with this stack pointer, or with more on the same stack.
    Return {
        /// Its lower half.
        stack_pointer: u32,
    },
    /// The follower looked where the CPU is, because a stretch had become long: of which kinds.
    Inside {
        /// Interrupts were masked.
        irqs_off: bool,
        /// The preemption count was not 0, that of the idle task not 1.
        preempt_off: bool,
        /// How long the kernel was not at a place where it would schedule; `None` where the look is not for that.
        unscheduled: Option<Insns>,
        /// Where the CPU was.
        place: Place,
    },
    /// Records are missing here: no state outlives this.
    Gap,
}

/// What was not understood, or did not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderLosses {
    /// Records that went back in time or in instructions, refused.
    pub backwards: u64,
    /// Events whose stack nobody defined; they were kept without it.
    pub unknown_stacks: u64,
    /// Calls of watched places that are not in the list of them.
    pub unknown_watches: u64,
    /// Frames that did not follow the one before them; they were left out.
    pub stray_frames: u64,
    /// Records that the channel says it dropped.
    pub dropped: u64,
}

/// All stacks of a run. Grows with the number of different stacks, not with time.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Vec<u64>,
    ranges: FxHashMap<StackId, (usize, usize)>,
}

impl Stacks {
    /// The addresses of a stack, innermost first; empty for an unknown one.
    pub fn frames(&self, stack: StackId) -> &[u64] {
        let range = self.ranges.get(&stack);
        range.map_or(&[], |&(from, to)| &self.frames[from..to])
    }

    /// Adds a frame; false where it does not continue the stack that was defined last.
    fn add(&mut self, id: StackId, index: usize, address: u64) -> bool {
        let end = self.frames.len();
        let fits = match self.ranges.get_mut(&id) {
            Some((from, to)) if *to == end && end - *from == index => {
                *to += 1;
                true
            }
            Some(_) => false,
            None if index == 0 => {
                self.ranges.insert(id, (end, end + 1));
                true
            }
            None => false,
        };
        if fits {
            self.frames.push(address);
        }
        fits
    }
}

/// All tasks that were named, as they were named last.
#[derive(Clone, Debug, Default)]
pub struct Tasks(FxHashMap<TaskId, Task>);

impl Tasks {
    /// What is known of a task.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.0.get(&id)
    }
}

/// The lower half of a record's number.
const LOWER: u64 = u32::MAX as u64;

/// Reads records one after the other.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    watches: Vec<(Role, u64)>,
    lazy: Option<u64>,
    stacks: Stacks,
    tasks: Tasks,
    losses: ReaderLosses,
    last: Option<At>,
}

impl Reader {
    /// A reader of what a follower sees that was told to watch these places, in this order.
    pub fn new(watches: &[Watch]) -> Self {
        let role = |w: &Watch| WATCHED.get(usize::from(w.index)).map(|of| (of.role, w.address));
        Reader { watches: watches.iter().filter_map(role).collect(), ..Reader::default() }
    }

    /// The same, of a kernel in which who asks for a task to be replaced names a flag of the task, and this one where that is
    /// not urgent.
    pub fn with_lazy_flag(self, flag: Option<u64>) -> Self {
        Reader { lazy: flag, ..self }
    }

    /// The stacks defined so far.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The tasks named so far.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// What was lost so far.
    pub fn losses(&self) -> ReaderLosses {
        self.losses
    }

    /// Reads one record; `None` where it is no event: a definition, something refused, or of a kind that this crate has
    /// no use for.
    pub fn read(&mut self, record: &Record) -> Option<Event> {
        match record.kind {
            Kind::Stack => {
                let id = StackId(record.value);
                if !self.stacks.add(id, usize::from(record.pins), record.number) {
                    self.losses.stray_frames += 1;
                }
                return None;
            }
            Kind::Task => {
                self.tasks.0.insert(TaskId(record.number), task(record));
                return None;
            }
            _ => {}
        }
        let what = self.what(record)?;
        let at = At { time: record.at, insns: record.insns };
        if self.last.is_some_and(|last| at.since(last).is_none()) {
            self.losses.backwards += 1;
            return None;
        }
        self.last = Some(at);
        Some(Event { at, what })
    }

    /// The channel lost `records` at this place. `None` where nothing was read before, so that there is no state to lose.
    pub fn gap(&mut self, records: u64) -> Option<Event> {
        self.losses.dropped += records;
        self.last.map(|at| Event { at, what: What::Gap })
    }

    fn what(&mut self, r: &Record) -> Option<What> {
        Some(match r.kind {
            Kind::Trigger => What::Trigger { number: r.number, level: r.pins },
            Kind::Disturbance => What::Disturbance { timers: u8::try_from(r.value).ok()? },
            Kind::Pins => What::Pins { level: r.pins },
            // The address of what masked them; of what unmasks them, the two stacks.
            Kind::Irqs if r.pins != 0 => {
                let place = Place::Address(r.number);
                What::Irqs { masked: true, place, opened: Place::Unknown }
            }
            Kind::Irqs => {
                let (place, opened) = (self.stack(r.value), self.stack(r.number as u32));
                What::Irqs { masked: false, place, opened }
            }
            Kind::Preempt => {
                let (count, opened) = (r.number as u32, self.stack((r.number >> 32) as u32));
                What::Preempt { count, place: self.stack(r.value), opened }
            }
            Kind::Run => What::Run { task: TaskId(r.number), pid: r.value },
            Kind::Enter => {
                let Some(&(role, address)) = self.watches.get(usize::from(r.pins)) else {
                    self.losses.unknown_watches += 1;
                    return None;
                };
                let (taken, opened) = match role.edge() {
                    // Of these no more than that is taken.
                    Some((_, Edge::Closes)) => {
                        (r.number & LOWER, self.stack((r.number >> 32) as u32))
                    }
                    None if role == Role::NeedResched => {
                        let is_lazy = self.lazy == Some(r.number);
                        (if is_lazy { LAZY } else { 0 }, Place::Unknown)
                    }
                    _ => (r.number, Place::Unknown),
                };
                What::Enter { role, address, taken, place: self.stack(r.value), opened }
            }
            Kind::Inside => {
                let of = |kind: Stretch| r.pins & kind as u8 != 0;
                What::Inside {
                    irqs_off: of(Stretch::IrqsOff),
                    preempt_off: of(Stretch::PreemptOff),
                    unscheduled: of(Stretch::Unscheduled).then_some(Insns(r.number)),
                    place: self.stack(r.value),
                }
            }
            Kind::Function => What::Function { address: r.number, stack_pointer: r.value },
            Kind::Return => What::Return { stack_pointer: r.value },
            Kind::Leave => What::Leave { user: r.pins != 0, to: r.number },
            _ => return None,
        })
    }

    fn stack(&mut self, value: u32) -> Place {
        let id = StackId(value);
        if value == 0 {
            return Place::Unknown;
        }
        if self.stacks.ranges.contains_key(&id) {
            return Place::Stack(id);
        }
        self.losses.unknown_stacks += 1;
        Place::Unknown
    }
}

/// The 16 bytes of the name stand where other records hold their time (include/linux/sched.h, `TASK_COMM_LEN`).
fn task(record: &Record) -> Task {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&record.at.ns().to_le_bytes());
    bytes[8..].copy_from_slice(&record.insns.0.to_le_bytes());
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Task { pid: record.value, prio: record.pins, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: Kind, pins: u8, value: u32, number: u64, ns: u64) -> Record {
        Record { kind, pins, value, number, at: Stamp::from_ns(ns), insns: Insns(ns) }
    }

    #[test]
    fn stacks_are_kept_and_named_when_a_stretch_ends() {
        let mut r = Reader::new(&[]);
        for (id, index, address) in [(1, 0, 0xa), (1, 1, 0xb), (2, 0, 0xc)] {
            assert_eq!(r.read(&record(Kind::Stack, index, id, address, 0)), None);
        }
        let mut what = |record| r.read(&record).map(|e| e.what);
        let (one, two) = (Place::Stack(StackId(1)), Place::Stack(StackId(2)));
        let (place, opened) = (Place::Address(0xa), Place::Unknown);
        let masked = what(record(Kind::Irqs, 1, 0, 0xa, 5));
        assert_eq!(masked, Some(What::Irqs { masked: true, place, opened }));
        let unmasked = what(record(Kind::Irqs, 0, 2, 1, 6));
        assert_eq!(unmasked, Some(What::Irqs { masked: false, place: two, opened: one }));
        let enabled = what(record(Kind::Preempt, 0, 2, 1 << 32, 7));
        assert_eq!(enabled, Some(What::Preempt { count: 0, place: two, opened: one }));
        assert_eq!(r.stacks().frames(StackId(1)), [0xa, 0xb]);
        assert_eq!(r.losses(), ReaderLosses::default());
    }

    #[test]
    fn a_look_into_stretches_says_into_which_and_where_the_cpu_was() {
        let mut r = Reader::new(&[]);
        assert_eq!(r.read(&record(Kind::Stack, 0, 1, 0xa, 0)), None);
        let looked = r.read(&record(Kind::Inside, 5, 1, 900, 7)).expect("an event");
        let place = Place::Stack(StackId(1));
        let inside = What::Inside {
            irqs_off: true,
            preempt_off: false,
            unscheduled: Some(Insns(900)),
            place,
        };
        assert_eq!(looked.what, inside);
    }

    #[test]
    fn a_watch_is_known_by_its_place_in_the_list_given() {
        let schedule = (0u8..).zip(WATCHED).find(|(_, w)| w.role == Role::Schedule);
        let index = schedule.expect("in the list").0;
        let mut r = Reader::new(&[Watch { index: 0, address: 1 }, Watch { index, address: 2 }]);
        let e = r.read(&record(Kind::Enter, 1, 0, 7, 5)).expect("an event");
        let place = Place::Unknown;
        assert_eq!(
            e.what,
            What::Enter { role: Role::Schedule, address: 2, taken: 7, place, opened: place }
        );
        assert_eq!(r.read(&record(Kind::Enter, 2, 0, 7, 5)), None);
        assert_eq!(r.losses().unknown_watches, 1);
    }

    #[test]
    fn a_request_is_lazy_where_it_is_made_by_the_flag_for_that() {
        let index = (0u8..).zip(WATCHED).find(|(_, w)| w.role == Role::NeedResched);
        let watches = [Watch { index: index.expect("in the list").0, address: 1 }];
        let taken = |flag: Option<u64>, given: u64| {
            let mut reader = Reader::new(&watches).with_lazy_flag(flag);
            match reader.read(&record(Kind::Enter, 0, 0, given, 5)).expect("an event").what {
                What::Enter { taken, .. } => taken,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([3, 4].map(|given| taken(Some(4), given)), [0, LAZY]);
        assert_eq!([4, 5].map(|given| taken(Some(5), given)), [0, LAZY]);
        assert_eq!([0, 4].map(|given| taken(None, given)), [0, 0]);
    }

    #[test]
    fn a_call_that_closes_a_stretch_has_what_opened_it_above_what_was_taken() {
        let watch = |role: Role| {
            let index = (0u8..).zip(WATCHED).find(|(_, w)| w.role == role).expect("in the list").0;
            Watch { index, address: 1 }
        };
        let mut r = Reader::new(&[watch(Role::BhEnable), watch(Role::BhDisable)]);
        assert_eq!(r.read(&record(Kind::Stack, 0, 1, 0xa, 0)), None);
        let of = |e: Option<Event>| match e.expect("an event").what {
            What::Enter { taken, opened, .. } => (taken, opened),
            other => panic!("{other:?}"),
        };
        let number = 1 << 32 | 0x200;
        let opener = Place::Stack(StackId(1));
        assert_eq!(of(r.read(&record(Kind::Enter, 0, 0, number, 5))), (0x200, opener));
        assert_eq!(of(r.read(&record(Kind::Enter, 0, 0, 0x200, 5))), (0x200, Place::Unknown));
        assert_eq!(of(r.read(&record(Kind::Enter, 1, 0, number, 5))), (number, Place::Unknown));
        assert_eq!(r.losses(), ReaderLosses::default());
    }

    #[test]
    fn an_undefined_stack_a_stray_frame_and_time_going_back_are_counted() {
        let mut r = Reader::new(&[]);
        let e = r.read(&record(Kind::Preempt, 0, 9, 0, 5)).expect("an event");
        let nowhere = Place::Unknown;
        assert_eq!(e.what, What::Preempt { count: 0, place: nowhere, opened: nowhere });
        assert_eq!(r.read(&record(Kind::Stack, 1, 2, 0xb, 0)), None);
        assert_eq!(r.read(&record(Kind::Leave, 1, 0, 0, 4)), None);
        assert_eq!(r.gap(3).map(|e| e.what), Some(What::Gap));
        let lost = ReaderLosses {
            backwards: 1,
            unknown_stacks: 1,
            unknown_watches: 0,
            stray_frames: 1,
            dropped: 3,
        };
        assert_eq!(r.losses(), lost);
    }

    #[test]
    fn a_disturbance_has_its_number_of_timers_and_one_with_more_than_there_can_be_is_none() {
        let mut r = Reader::new(&[]);
        let disturbance = |timers| record(Kind::Disturbance, 0, timers, 0, 1);
        let what = r.read(&disturbance(64)).map(|event| event.what);
        assert_eq!(what, Some(What::Disturbance { timers: 64 }));
        assert_eq!(r.read(&disturbance(256)), None);
    }

    #[test]
    fn a_task_has_the_name_that_stands_in_place_of_the_time() {
        let mut r = Reader::new(&[]);
        let mut named = record(Kind::Task, 49, 77, 0xffff_8880, 0);
        named.at = Stamp::from_ns(u64::from_le_bytes(*b"irq/7-on"));
        named.insns = Insns(u64::from_le_bytes(*b"set\0\0\0\0\0"));
        assert_eq!(r.read(&named), None);
        let task = Task { pid: 77, prio: 49, name: "irq/7-onset".into() };
        assert_eq!(r.tasks().get(TaskId(0xffff_8880)), Some(&task));
    }

    proptest! {
        #[test]
        fn no_record_makes_the_reader_panic_and_events_never_go_back(
            bytes in prop::collection::vec((1u8..=19, any::<[u8; 31]>()), 0..200)
        ) {
            let mut r = Reader::new(&[]);
            let mut last: Option<At> = None;
            for (kind, rest) in bytes {
                let mut b = [0; 32];
                b[0] = kind;
                b[1..].copy_from_slice(&rest);
                b[2..4].fill(0);
                let Ok(record) = Record::decode(&b) else { continue };
                if let Some(e) = r.read(&record) {
                    prop_assert!(last.is_none_or(|l| e.at.since(l).is_some()));
                    last = Some(e.at);
                }
            }
        }
    }
}
