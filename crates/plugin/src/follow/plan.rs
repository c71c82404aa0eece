// SPDX-License-Identifier: GPL-2.0-or-later
//! What the follower is told: where the guest's kernel keeps and does what is followed. A text of lines, each a word
//! and numbers (hexadecimal after `0x`), written by the host, which knows the kernel.

use super::nests::Nesting;
use sample::{Nanos, Take};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

/// Where a field lies in a structure, or a variable from the gs base.
pub type Offset = u64;

/// A watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What to take there.
    pub take: Take,
    /// Whether to take the stack.
    pub stack: Stack,
}

/// When a stack is taken at a watched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Never.
    Never,
    /// Each time.
    Always,
    /// When the stretch of this kind that opens here has closed, and was long enough: with the one that closes it.
    Opens(Nesting),
    /// When a stretch of this kind closes here that was long enough.
    Closes(Nesting),
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
    /// The file that unwinds stacks ([`vmlinux::Map`]); without it, a stack is its innermost address.
    pub map: Option<PathBuf>,
    /// Stretches shorter than this get no stack, in instructions.
    pub stacks_from: u64,
    /// In stretches as long as this, in instructions, it is looked where the CPU is ([`super::looks`]); 0: in none.
    pub inside_from: u64,
    /// Kinds of stretches in which it is looked, as a sum of [`sample::Stretch`].
    pub inside_kinds: u8,
    /// Where gates of the interrupt table, and `syscall`, lead to: interrupts are masked there.
    pub gates: Vec<Range<u64>>,
    /// The preemption count, from the gs base.
    pub preempt: Option<Offset>,
    /// Whether that counts interrupts that are disabled, too, and is of 64 bits.
    pub counts_irqs: bool,
    /// The pointer to the current task, from the gs base.
    pub current: Option<Offset>,
    /// Where a task's name is.
    pub task: TaskFields,
    /// Places where the kernel would schedule if it were asked to.
    pub points: BTreeSet<u64>,
    /// The function that disables bottom halves, where that takes a lock, and the one that enables them: the second
    /// argument says what for.
    pub holds: Option<u64>,
    /// See `holds`.
    pub releases: Option<u64>,
    /// From when on, since measuring began, every call of a function and its return are told.
    pub functions_from: Option<Nanos>,
    /// A number of 16 bits in `task_struct` that counts, where calls do not tell of it: they are compiled into who calls.
    pub counter: Option<Offset>,
    /// What to take where the running task's counter rises.
    pub rises: Option<(u8, Watch)>,
    /// See `rises`.
    pub falls: Option<(u8, Watch)>,
    /// Watched places by address: index and what to take.
    pub watches: BTreeMap<u64, Vec<(u8, Watch)>>,
}

impl Plan {
    /// Reads the text.
    ///
    /// # Errors
    /// The line that is not understood.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut watches = 0;
        for line in text.lines() {
            plan.line(line, &mut watches).ok_or_else(|| format!("follow: \"{line}\""))?;
        }
        Ok(plan)
    }

    fn line(&mut self, line: &str, watches: &mut u8) -> Option<()> {
        let (key, rest) = line.split_once(' ')?;
        if key == "map" {
            self.map = Some(rest.into());
            return Some(());
        }
        let words: Vec<&str> = rest.split(' ').collect();
        let n = |i: usize| words.get(i).and_then(|w| number(w));
        match key {
            "stacks_from" => self.stacks_from = n(0)?,
            "inside" => {
                self.inside_from = n(0)?;
                self.inside_kinds = u8::try_from(n(1)?).ok()?;
            }
            "gate" => self.gates.push(n(0)?..n(1)?),
            "point" => drop(self.points.insert(n(0)?)),
            "holds" => self.holds = Some(n(0)?),
            "releases" => self.releases = Some(n(0)?),
            "functions" => self.functions_from = Some(Nanos(n(0)?)),
            "preempt" => {
                self.preempt = Some(n(0)?);
                self.counts_irqs = match words[1..] {
                    [] => false,
                    ["irqs"] => true,
                    _ => return None,
                };
            }
            "counter" => self.counter = Some(n(0)?),
            "rises" => self.rises = Some((numbered(watches)?, watch(&words)?)),
            "falls" => self.falls = Some((numbered(watches)?, watch(&words)?)),
            "current" => self.current = Some(n(0)?),
            "task" => self.task = TaskFields { pid: n(0)?, comm: n(1)?, prio: n(2)? },
            "watch" => {
                let watch = watch(words.get(1..)?)?;
                self.watches.entry(n(0)?).or_default().push((numbered(watches)?, watch));
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether a gate leads to `address`.
    pub fn is_gate(&self, address: u64) -> bool {
        self.gates.iter().any(|gate| gate.contains(&address))
    }
}

/// What to take, and the stack.
fn watch(words: &[&str]) -> Option<Watch> {
    let (take, stack) = words.split_first()?;
    Some(Watch { take: take.parse().ok()?, stack: Stack::of(stack)? })
}

/// The number of the next watch: events name it by that.
fn numbered(watches: &mut u8) -> Option<u8> {
    let number = *watches;
    *watches = watches.checked_add(1)?;
    Some(number)
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_arrives() {
        let text = "map /a b\nstacks_from 1000\ninside 4000 3\ngate 0xff00 0xff10\ngate 0x20 0x21\npreempt 0x33c88\ncurrent 0x33c80\n\
                    task 8 16 4\nwatch 0x10 first\nwatch 0x10 24 stack\nwatch 0x11 top\nwatch 0x12 nothing opens 3\nwatch 0x13 count closes 3\npoint 0x77\nfunctions 250\nholds 0x78\nreleases 0x79\n\
                    counter 0x4c0\nrises nothing opens 2\nfalls nothing closes 2\nwatch 0x14 first\n";
        let plan = Plan::parse(text).unwrap();
        assert_eq!(plan.map, Some("/a b".into()));
        assert_eq!(
            (plan.stacks_from, plan.preempt, plan.current),
            (1000, Some(0x33c88), Some(0x33c80))
        );
        assert_eq!((plan.inside_from, plan.inside_kinds), (4000, 3));
        assert!(plan.is_gate(0xff0f) && plan.is_gate(0x20));
        assert!(!plan.is_gate(0xff10) && !plan.is_gate(0x21));
        assert!(plan.points.contains(&0x77));
        assert_eq!(plan.functions_from, Some(Nanos(250)));
        assert_eq!((plan.holds, plan.releases), (Some(0x78), Some(0x79)));
        assert_eq!(plan.task, TaskFields { pid: 8, comm: 16, prio: 4 });
        let first = (0, Watch { take: Take::First, stack: Stack::Never });
        let word = (1, Watch { take: Take::Word(24), stack: Stack::Always });
        assert_eq!(plan.watches[&0x10], vec![first, word]);
        let top = (2, Watch { take: Take::Top, stack: Stack::Never });
        assert_eq!(plan.watches[&0x11], vec![top]);
        let opens = (3, Watch { take: Take::Nothing, stack: Stack::Opens(3) });
        let closes = (4, Watch { take: Take::Count, stack: Stack::Closes(3) });
        assert_eq!((&plan.watches[&0x12], &plan.watches[&0x13]), (&vec![opens], &vec![closes]));
        assert_eq!(plan.counter, Some(0x4c0));
        let rises = (5, Watch { take: Take::Nothing, stack: Stack::Opens(2) });
        let falls = (6, Watch { take: Take::Nothing, stack: Stack::Closes(2) });
        assert_eq!((plan.rises, plan.falls), (Some(rises), Some(falls)));
        let last = (7, Watch { take: Take::First, stack: Stack::Never });
        assert_eq!(plan.watches[&0x14], vec![last], "they are numbered with the others");
        assert!(!plan.counts_irqs && Plan::parse("preempt 0x10 irqs\n").unwrap().counts_irqs);
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for line in [
            "colour red",
            "gate 5",
            "watch 0x1 third",
            "watch 0x1 top opens",
            "preempt x",
            "preempt 0x1 more",
            "rises third",
            "",
        ] {
            let error = Plan::parse(&format!("stacks_from 1\n{line}\n")).unwrap_err();
            assert!(error.contains(&format!("\"{line}\"")), "{error}");
        }
    }
}
