// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns the plugin's reports into what happened. It checks the order of events, and keeps stacks and tasks in tables.
//!
//! The reader repairs nothing. It refuses and counts an event that goes back in time. An event that refers to a stack
//! which nobody defined keeps everything but its stack, and is counted. The caller tells by [`Reader::gap`] what the
//! channel dropped. A gap becomes an event, because whoever follows a state has to forget the state then.

use crate::{LAZY, Role, WATCHED, Watch};
use rustc_hash::FxHashMap;
use sample::{At, Insns, Stretch};
use serde::{Deserialize, Serialize};
use wire::{StackId, TaskId};

/// The place in the kernel where something happened, as exactly as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The place is not known.
    #[default]
    Unknown,
    /// The place is this address. No stack was taken.
    Address(u64),
    /// The place has this stack.
    Stack(StackId),
}

/// The kernel's facts about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process id, `task_struct.pid`. 0 is the idle task.
    pub pid: u32,
    /// The priority as the kernel counts (`task_struct.prio`): 0 is the highest, and 100 to 139 are not real-time.
    pub prio: u8,
    /// The name, at most 16 bytes. Bytes that are not UTF-8 are replaced.
    pub name: String,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When the event happened.
    pub at: At,
    /// What happened.
    pub what: What,
}

/// What happened. It is what [`wire::Event`] tells, with the meaning of the watched places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The generator raised the line.
    Trigger {
        /// The number of the trigger, from 0.
        number: u64,
        /// The level of the pins at that moment.
        level: u16,
    },
    /// The line of the device that disturbs was to rise.
    Disturbance {
        /// How many timers the device's handler starts.
        timers: u8,
    },
    /// A task was due here. Nothing in the guest tells this: it is entered by whoever knows when a probe's task was due
    /// ([`History`](crate::History)).
    Due {
        /// A number that tells it from every other.
        number: u64,
    },
    /// The task that was due goes on here, at the end of what is explained. It is entered like `Due`.
    Done {
        /// The number of the `Due`.
        number: u64,
    },
    /// The data pins changed.
    Pins {
        /// The new level, with pin 0 in bit 0.
        level: u16,
    },
    /// The CPU masked or unmasked interrupts.
    Irqs {
        /// Whether interrupts are masked now.
        masked: bool,
        /// The instruction or the kernel's entry that masked them, or the stack that unmasked them.
        place: Place,
        /// The stack that had masked them. Told only when they are unmasked, if the stretch was long enough.
        opened: Place,
    },
    /// The CPU's preemption count changed.
    Preempt {
        /// The new value, without the bit for need_resched.
        count: u32,
        /// The place at which the count came back to 0, if the stretch was long enough.
        place: Place,
        /// The stack with which the count had become other than 0. Told as `place` is.
        opened: Place,
    },
    /// The CPU switched to a task.
    Run {
        /// The task.
        task: TaskId,
        /// The process id of the task.
        pid: u32,
    },
    /// The CPU came to a watched place.
    Enter {
        /// The meaning of the place.
        role: Role,
        /// The address of the place.
        address: u64,
        /// The value that was taken there.
        taken: u64,
        /// The place, with its stack if one was taken.
        place: Place,
        /// If the place closes a stretch that was long enough: the stack that had opened the stretch.
        opened: Place,
    },
    /// The CPU returned from an interrupt, an exception or a system call.
    Leave {
        /// Whether it returned to user space. Otherwise it returned to the kernel.
        user: bool,
        /// The address to which the CPU returned.
        to: u64,
    },
    /// A function of the kernel was called, or jumped to as the last step of another.
    Function {
        /// The address of the function.
        address: u64,
        /// The lower half of the stack pointer at the function's first instruction.
        stack_pointer: u32,
    },
    /// All functions returned that were called with this stack pointer, or with more on the same stack.
    Return {
        /// The lower half of the stack pointer.
        stack_pointer: u32,
    },
    /// The follower looked where the CPU is, because stretches of these kinds had become long.
    Inside {
        /// Whether interrupts were masked.
        irqs_off: bool,
        /// Whether the preemption count was not 0. For the idle task, whether it was not 1.
        preempt_off: bool,
        /// How long the kernel was at no place where it would schedule. `None` if the look is not for that.
        unscheduled: Option<Insns>,
        /// The place of the CPU.
        place: Place,
    },
    /// Events are missing here, so no state outlives this.
    Gap,
}

/// What was not understood, or did not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReaderLosses {
    /// Events that went back in time or in instructions, refused.
    pub backwards: u64,
    /// Events whose stack nobody defined; they were kept without it.
    pub unknown_stacks: u64,
    /// Calls of watched places that are not in the list of them.
    pub unknown_watches: u64,
    /// Frames that did not follow the one before them; they were left out.
    pub stray_frames: u64,
    /// Events that the channel says it dropped.
    pub dropped: u64,
}

/// All stacks of a run. Memory grows with the number of different stacks, not with time.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: Vec<u64>,
    ranges: FxHashMap<StackId, (usize, usize)>,
}

impl Stacks {
    /// The addresses of a stack, innermost first. Empty for an unknown stack.
    pub fn frames(&self, stack: StackId) -> &[u64] {
        let range = self.ranges.get(&stack);
        range.map_or(&[], |&(from, to)| &self.frames[from..to])
    }

    /// Adds a frame. Returns false if it does not continue the stack that was defined last.
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

/// All tasks that were named, with their last names.
#[derive(Clone, Debug, Default)]
pub struct Tasks(FxHashMap<TaskId, Task>);

impl Tasks {
    /// The known facts about a task.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.0.get(&id)
    }
}

/// Reads events one after the other.
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
    /// A reader of the events of a follower. The follower was told to watch these places, in this order.
    pub fn new(watches: &[Watch]) -> Self {
        let role = |w: &Watch| WATCHED.get(usize::from(w.index)).map(|of| (of.role, w.address));
        Reader { watches: watches.iter().filter_map(role).collect(), ..Reader::default() }
    }

    /// The same reader for a kernel in which a request to replace a task names a flag of the task. `flag` is the one of
    /// requests that are not urgent.
    pub fn with_lazy_flag(self, flag: Option<u64>) -> Self {
        Reader { lazy: flag, ..self }
    }

    /// The stacks that are defined so far.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The tasks that are named so far.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The losses so far.
    pub fn losses(&self) -> ReaderLosses {
        self.losses
    }

    /// Reads one event. `None` if it says nothing of the CPU: a definition, a refused event, or a kind that this crate
    /// does not use.
    pub fn read(&mut self, event: &wire::Event) -> Option<Event> {
        let (at, what) = self.what(event)?;
        if self.last.is_some_and(|last| at.since(last).is_none()) {
            self.losses.backwards += 1;
            return None;
        }
        self.last = Some(at);
        Some(Event { at, what })
    }

    /// Records that the channel lost `events` here. `None` if nothing was read before, so there is no state to lose.
    pub fn gap(&mut self, events: u64) -> Option<Event> {
        self.losses.dropped += events;
        self.last.map(|at| Event { at, what: What::Gap })
    }

    fn what(&mut self, event: &wire::Event) -> Option<(At, What)> {
        use wire::Event as Told;
        Some(match *event {
            Told::Frame { stack, index, address, .. } => {
                if !self.stacks.add(stack, usize::from(index), address) {
                    self.losses.stray_frames += 1;
                }
                return None;
            }
            Told::Task { task, pid, prio, name } => {
                self.tasks.0.insert(task, Task { pid, prio, name: text(&name) });
                return None;
            }
            Told::Trigger { at, number, level } => (at, What::Trigger { number, level }),
            Told::Disturbance { at, timers, .. } => (at, What::Disturbance { timers }),
            Told::Pins { at, level, .. } => (at, What::Pins { level }),
            Told::Masked { at, by } => {
                let (place, opened) = (Place::Address(by), Place::Unknown);
                (at, What::Irqs { masked: true, place, opened })
            }
            Told::Unmasked { at, stack, opened } => {
                let (place, opened) = (self.place(stack), self.place(opened));
                (at, What::Irqs { masked: false, place, opened })
            }
            Told::Preempt { at, count, stack, opened } => {
                let opened = self.place(opened);
                (at, What::Preempt { count, place: self.place(stack), opened })
            }
            Told::Run { at, task, pid } => (at, What::Run { task, pid }),
            Told::Enter { at, watch, taken, stack } => {
                (at, self.enter(watch, taken, (stack, None))?)
            }
            Told::Close { at, watch, taken, stack, opened } => {
                (at, self.enter(watch, taken.into(), (stack, opened))?)
            }
            Told::Aimed { .. } => {
                self.losses.unknown_watches += 1;
                return None;
            }
            Told::Inside { at, kinds, unscheduled, stack } => {
                let what = What::Inside {
                    irqs_off: kinds.contains(Stretch::IrqsOff),
                    preempt_off: kinds.contains(Stretch::PreemptOff),
                    unscheduled: kinds.contains(Stretch::Unscheduled).then_some(unscheduled),
                    place: self.place(stack),
                };
                (at, what)
            }
            Told::Function { at, address, stack_pointer } => {
                (at, What::Function { address, stack_pointer })
            }
            Told::Return { at, stack_pointer, .. } => (at, What::Return { stack_pointer }),
            Told::Leave { at, user, to } => (at, What::Leave { user, to }),
            _ => return None,
        })
    }

    /// The CPU came to a watched place. The stacks are the one there, and the one that opened what the place closes.
    fn enter(
        &mut self,
        watch: u8,
        taken: u64,
        (stack, opened): (Option<StackId>, Option<StackId>),
    ) -> Option<What> {
        let Some(&(role, address)) = self.watches.get(usize::from(watch)) else {
            self.losses.unknown_watches += 1;
            return None;
        };
        let taken = match role {
            Role::NeedResched if self.lazy == Some(taken) => LAZY,
            Role::NeedResched => 0,
            _ => taken,
        };
        let opened = self.place(opened);
        Some(What::Enter { role, address, taken, place: self.place(stack), opened })
    }

    fn place(&mut self, stack: Option<StackId>) -> Place {
        let Some(id) = stack else { return Place::Unknown };
        if self.stacks.ranges.contains_key(&id) {
            return Place::Stack(id);
        }
        self.losses.unknown_stacks += 1;
        Place::Unknown
    }
}

/// The text of a name that is padded with zeros.
fn text(name: &[u8; 16]) -> String {
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests;
