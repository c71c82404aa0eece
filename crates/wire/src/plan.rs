// SPDX-License-Identifier: GPL-2.0-or-later
//! What the follower is told: where the guest's kernel keeps and does what is followed. The plan is a text of lines,
//! each of which has a word and numbers (hexadecimal after `0x`). The host knows the kernel and writes the plan; the
//! plugin reads it.
//!
//! The module cannot see whether the places are those of the guest that is followed.

use crate::{Take, WATCHES_MAX};
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::str::FromStr;
use sample::{Insns, Nanos, Stretches};

/// Where a field lies in a structure, or a variable from the gs base.
pub type Offset = u64;

/// A kind of stretches that tasks open and close by calls, by whatever number stands for it.
pub type Nesting = u8;

/// Where to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As the CPU comes to the instruction at this address.
    Address(u64),
    /// Where the running task's [counter](Plan::counter) rises.
    Rises,
    /// Where it falls.
    Falls,
}

/// When a stack is taken at a watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Never.
    Never,
    /// Each time.
    Always,
    /// When the stretch of this kind that opens here has closed and was long enough. The stack that closes it is told
    /// with it.
    Opens(Nesting),
    /// When a stretch of this kind closes here that was long enough.
    Closes(Nesting),
}

/// A watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Where.
    pub place: Place,
    /// What to take there.
    pub take: Take,
    /// Whether to take the stack.
    pub stack: Stack,
}

/// The CPU's preemption count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// From the gs base.
    pub offset: Offset,
    /// Whether it counts interrupts that are disabled, too, and is of 64 bits.
    pub counts_irqs: bool,
}

/// Fields of `task_struct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskFields {
    /// `pid`, 4 bytes.
    pub pid: Offset,
    /// `comm`, 16 bytes.
    pub comm: Offset,
    /// `prio`, 4 bytes.
    pub prio: Offset,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Path of the map on the host, by which stacks are unwound. The path has no end of a line in it. Without a map, a
    /// stack is its innermost address.
    pub map: Option<String>,
    /// Stretches shorter than this get no stack.
    pub stacks_from: Insns,
    /// In stretches as long as this the follower looks where the CPU is; 0: in none.
    pub inside_from: Insns,
    /// Kinds of stretches in which it looks.
    pub inside_kinds: Stretches,
    /// Whether stretches are numbered by their openers even if nothing is aimed, so that a copy of the guest can be
    /// aimed later.
    pub numbers: bool,
    /// Where gates of the interrupt table, and `syscall`, lead to: interrupts are masked there.
    pub gates: Vec<Range<u64>>,
    /// The preemption count.
    pub preempt: Option<Count>,
    /// The pointer to the current task, from the gs base.
    pub current: Option<Offset>,
    /// Where a task's name is.
    pub task: TaskFields,
    /// Places where the kernel would schedule if it were asked to.
    pub points: BTreeSet<u64>,
    /// The function that disables bottom halves, where that takes a lock. Its second argument says what for.
    pub holds: Option<u64>,
    /// The function that enables them again; as `holds`.
    pub releases: Option<u64>,
    /// From when on, since measuring began, every call of a function and its return are told.
    pub functions_from: Option<Nanos>,
    /// A number of 16 bits in `task_struct` that counts. It is followed where no calls tell of it, because the compiler
    /// put their code into the callers.
    pub counter: Option<Offset>,
    /// Watched places, at most [`WATCHES_MAX`]. Events name one by its place in this list.
    pub watches: Vec<Watch>,
}

impl Plan {
    /// Whether a gate leads to `address`.
    pub fn is_gate(&self, address: u64) -> bool {
        self.gates.iter().any(|gate| gate.contains(&address))
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (key, rest) = line.split_once(' ')?;
        if key == "map" {
            self.map = Some(rest.into());
            return Some(());
        }
        let words: Vec<&str> = rest.split(' ').collect();
        let n = |i: usize| words.get(i).and_then(|w| number(w));
        match key {
            "stacks_from" => self.stacks_from = Insns(n(0)?),
            "inside" => {
                self.inside_from = Insns(n(0)?);
                self.inside_kinds = Stretches::from_mask(u8::try_from(n(1)?).ok()?);
            }
            "numbers" if words == ["stretches"] => self.numbers = true,
            "gate" => self.gates.push(n(0)?..n(1)?),
            "point" => drop(self.points.insert(n(0)?)),
            "holds" => self.holds = Some(n(0)?),
            "releases" => self.releases = Some(n(0)?),
            "functions" => self.functions_from = Some(Nanos(n(0)?)),
            "preempt" => {
                let counts_irqs = match words[1..] {
                    [] => false,
                    ["irqs"] => true,
                    _ => return None,
                };
                self.preempt = Some(Count { offset: n(0)?, counts_irqs });
            }
            "counter" => self.counter = Some(n(0)?),
            "rises" => self.watch(Place::Rises, &words)?,
            "falls" => self.watch(Place::Falls, &words)?,
            "current" => self.current = Some(n(0)?),
            "task" => self.task = TaskFields { pid: n(0)?, comm: n(1)?, prio: n(2)? },
            "watch" => self.watch(Place::Address(n(0)?), words.get(1..)?)?,
            _ => return None,
        }
        Some(())
    }

    /// Adds a watch: what to take, and the stack.
    fn watch(&mut self, place: Place, words: &[&str]) -> Option<()> {
        let (take, stack) = words.split_first()?;
        let (take, stack) = (take.parse().ok()?, Stack::of(stack)?);
        self.watches.push(Watch { place, take, stack });
        (self.watches.len() <= WATCHES_MAX).then_some(())
    }
}

impl Stack {
    fn of(words: &[&str]) -> Option<Stack> {
        match words {
            [] => Some(Stack::Never),
            ["stack"] => Some(Stack::Always),
            ["opens", kind] => kind.parse().ok().map(Stack::Opens),
            ["closes", kind] => kind.parse().ok().map(Stack::Closes),
            _ => None,
        }
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPlan(String);

impl fmt::Display for NotAPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "follow: \"{}\"", self.0)
    }
}

impl core::error::Error for NotAPlan {}

impl FromStr for Plan {
    type Err = NotAPlan;

    fn from_str(text: &str) -> Result<Plan, NotAPlan> {
        let mut plan = Plan::default();
        for line in text.lines() {
            plan.line(line).ok_or_else(|| NotAPlan(line.to_string()))?;
        }
        Ok(plan)
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "stacks_from {}", self.stacks_from.0)?;
        if let Some(map) = &self.map {
            writeln!(f, "map {map}")?;
        }
        if self.inside_from != Insns(0) || self.inside_kinds.mask() != 0 {
            writeln!(f, "inside {} {}", self.inside_from.0, self.inside_kinds.mask())?;
        }
        if self.numbers {
            writeln!(f, "numbers stretches")?;
        }
        for Range { start, end } in &self.gates {
            writeln!(f, "gate {start:#x} {end:#x}")?;
        }
        if let Some(Count { offset, counts_irqs }) = self.preempt {
            writeln!(f, "preempt {offset:#x}{}", if counts_irqs { " irqs" } else { "" })?;
        }
        let TaskFields { pid, comm, prio } = self.task;
        if self.task != TaskFields::default() {
            writeln!(f, "task {pid} {comm} {prio}")?;
        }
        for point in &self.points {
            writeln!(f, "point {point:#x}")?;
        }
        for (word, address) in [
            ("current", self.current),
            ("holds", self.holds),
            ("releases", self.releases),
            ("counter", self.counter),
        ] {
            if let Some(address) = address {
                writeln!(f, "{word} {address:#x}")?;
            }
        }
        if let Some(from) = self.functions_from {
            writeln!(f, "functions {}", from.0)?;
        }
        self.watches.iter().try_for_each(|watch| writeln!(f, "{watch}"))
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Address(address) => write!(f, "watch {address:#x} {}", self.take),
            Place::Rises => write!(f, "rises {}", self.take),
            Place::Falls => write!(f, "falls {}", self.take),
        }?;
        match self.stack {
            Stack::Never => Ok(()),
            Stack::Always => f.write_str(" stack"),
            Stack::Opens(kind) => write!(f, " opens {kind}"),
            Stack::Closes(kind) => write!(f, " closes {kind}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    #[test]
    fn every_line_arrives() {
        let text = "map /a b\nstacks_from 1000\ninside 4000 3\nnumbers stretches\ngate 0xff00 0xff10\ngate 0x20 0x21\npreempt 0x33c88\n\
                    current 0x33c80\ntask 8 16 4\nwatch 0x10 first\nwatch 0x10 24 stack\nwatch 0x11 top\n\
                    watch 0x12 nothing opens 3\nwatch 0x13 count closes 3\npoint 0x77\nfunctions 250\nholds 0x78\n\
                    releases 0x79\ncounter 0x4c0\nrises nothing opens 2\nfalls nothing closes 2\nwatch 0x14 first\n";
        let plan: Plan = text.parse().unwrap();
        let counts_irqs = false;
        assert_eq!((plan.map.as_deref(), plan.stacks_from), (Some("/a b"), Insns(1000)));
        assert_eq!(plan.preempt, Some(Count { offset: 0x33c88, counts_irqs }));
        assert_eq!(plan.current, Some(0x33c80));
        assert_eq!((plan.inside_from, plan.inside_kinds.mask()), (Insns(4000), 3));
        assert!(plan.numbers);
        assert!(plan.is_gate(0xff0f) && plan.is_gate(0x20));
        assert!(!plan.is_gate(0xff10) && !plan.is_gate(0x21));
        assert!(plan.points.contains(&0x77));
        assert_eq!(plan.functions_from, Some(Nanos(250)));
        assert_eq!((plan.holds, plan.releases), (Some(0x78), Some(0x79)));
        assert_eq!(plan.task, TaskFields { pid: 8, comm: 16, prio: 4 });
        assert_eq!(plan.counter, Some(0x4c0));
        let watch = |place, take, stack| Watch { place, take, stack };
        let watches = [
            watch(Place::Address(0x10), Take::First, Stack::Never),
            watch(Place::Address(0x10), Take::Word(24), Stack::Always),
            watch(Place::Address(0x11), Take::Top, Stack::Never),
            watch(Place::Address(0x12), Take::Nothing, Stack::Opens(3)),
            watch(Place::Address(0x13), Take::Count, Stack::Closes(3)),
            watch(Place::Rises, Take::Nothing, Stack::Opens(2)),
            watch(Place::Falls, Take::Nothing, Stack::Closes(2)),
            watch(Place::Address(0x14), Take::First, Stack::Never),
        ];
        assert_eq!(plan.watches, watches, "they are numbered in one list");
        assert!("preempt 0x10 irqs\n".parse::<Plan>().unwrap().preempt.unwrap().counts_irqs);
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for line in [
            "colour red",
            "gate 5",
            "numbers triggers",
            "watch 0x1 third",
            "watch 0x1 top opens",
            "preempt x",
            "preempt 0x1 more",
            "rises third",
            "",
        ] {
            let error = format!("stacks_from 1\n{line}\n").parse::<Plan>().unwrap_err();
            assert!(error.to_string().contains(&format!("\"{line}\"")), "{error}");
        }
    }

    #[test]
    fn more_places_than_an_event_can_name_are_refused() {
        let text = "watch 0x1 first\n".repeat(WATCHES_MAX);
        assert_eq!(text.parse::<Plan>().unwrap().watches.len(), WATCHES_MAX);
        assert!((text + "rises first\n").parse::<Plan>().is_err());
    }

    fn watch() -> impl Strategy<Value = Watch> {
        let place = prop_oneof![
            any::<u64>().prop_map(Place::Address),
            Just(Place::Rises),
            Just(Place::Falls)
        ];
        let plain = [Take::Nothing, Take::First, Take::Second, Take::Count, Take::Top];
        let take =
            prop_oneof![prop::sample::select(plain.to_vec()), any::<u64>().prop_map(Take::Word)];
        let stack = prop_oneof![
            Just(Stack::Never),
            Just(Stack::Always),
            any::<u8>().prop_map(Stack::Opens),
            any::<u8>().prop_map(Stack::Closes),
        ];
        (place, take, stack).prop_map(|(place, take, stack)| Watch { place, take, stack })
    }

    pub(crate) fn plan() -> impl Strategy<Value = Plan> {
        use prop::collection::{btree_set, vec};
        let found = any::<[Option<u64>; 6]>();
        let numbers = any::<(u64, u64, u8, [u64; 3], bool, bool)>();
        let gates = vec(any::<(u64, u64)>().prop_map(|(from, to)| from..to), 0..4);
        let lists = (gates, btree_set(any::<u64>(), 0..4), vec(watch(), 0..9));
        (prop::option::of("/\\PC{0,20}"), numbers, found, lists).prop_map(
            |(map, numbers, found, (gates, points, watches))| {
                let (stacks_from, inside_from, kinds, [pid, comm, prio], counts_irqs, numbers) =
                    numbers;
                let [preempt, current, holds, releases, functions, counter] = found;
                Plan {
                    map,
                    stacks_from: Insns(stacks_from),
                    inside_from: Insns(inside_from),
                    inside_kinds: Stretches::from_mask(kinds),
                    numbers,
                    gates,
                    preempt: preempt.map(|offset| Count { offset, counts_irqs }),
                    current,
                    task: TaskFields { pid, comm, prio },
                    points,
                    holds,
                    releases,
                    functions_from: functions.map(Nanos),
                    counter,
                    watches,
                }
            },
        )
    }

    /// Lines of anything, or of words that are known and numbers.
    const TEXT: &str = "(\\PC{0,12}|\
        (watch|gate|inside|preempt|task)( (0x)?[0-9a-f]{1,3}| top){0,3}\n){0,4}";

    proptest! {
        #[test]
        fn a_plan_survives_its_text(plan in plan()) {
            prop_assert_eq!(plan.to_string().parse(), Ok(plan));
        }

        #[test]
        fn any_text_is_a_plan_or_an_error(text in TEXT) {
            if let Ok(plan) = text.parse::<Plan>() {
                prop_assert_eq!(plan.to_string().parse(), Ok(plan));
            }
        }
    }
}
