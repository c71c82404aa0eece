// SPDX-License-Identifier: GPL-2.0-or-later
//! Stretches that a task opens and closes by calls, some inside others, while other tasks run in between. On PREEMPT_RT
//! there are a million of them in a virtual second, and nearly all are over at once. So the stack of a stretch's opener
//! is copied at first. It is unwound only if the stretch was long.

use super::stacks::Capture;
use rustc_hash::FxHashMap;
use sample::Insns;
use wire::plan::Nesting;

/// A task, by the address of its `task_struct`.
pub type Task = u64;

/// The stretches of all tasks, with those that have closed.
#[derive(Default)]
pub struct Nests(FxHashMap<(Nesting, Task), Nest>);

/// A task's stretch. When it has closed, its room serves for the next one and for the next stack.
#[derive(Default)]
struct Nest {
    depth: u32,
    since: Insns,
    opener: Capture,
}

impl Nests {
    /// Learns that `task` calls a function that opens such a stretch. The outermost such call also calls `copy`.
    pub fn open(
        &mut self,
        nesting: Nesting,
        task: Task,
        now: Insns,
        copy: impl FnOnce(&mut Capture),
    ) {
        let nest = self.0.entry((nesting, task)).or_default();
        nest.depth += 1;
        if nest.depth == 1 {
            nest.since = now;
            copy(&mut nest.opener);
        }
    }

    /// Learns that `task` calls the function that closes the stretch. For the outermost: its length and its opener.
    pub fn close(&mut self, nesting: Nesting, task: Task, now: Insns) -> Option<(Insns, &Capture)> {
        // A task without an open stretch opened its stretch before the follower began.
        let nest = self.0.get_mut(&(nesting, task)).filter(|nest| nest.depth > 0)?;
        nest.depth -= 1;
        (nest.depth == 0).then(|| (now.saturating_sub(nest.since), &nest.opener))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a stretch whose opener is the instruction at `ip`.
    fn open(nests: &mut Nests, nesting: Nesting, task: Task, ip: u64) {
        nests.open(nesting, task, Insns(ip), |opener| opener.set_bare(ip));
    }

    fn close(nests: &mut Nests, nesting: Nesting, task: Task, now: u64) -> Option<(u64, u64)> {
        let closed = nests.close(nesting, task, Insns(now));
        closed.map(|(length, opener)| (length.0, opener.ip()))
    }

    #[test]
    fn a_stretch_is_as_long_as_its_outermost_and_each_task_has_its_own_of_each_kind() {
        let nests = &mut Nests::default();
        open(nests, 0, 1, 100);
        open(nests, 0, 1, 110);
        open(nests, 0, 2, 120);
        open(nests, 1, 1, 130);
        assert_eq!(close(nests, 0, 1, 140), None);
        assert_eq!(close(nests, 1, 1, 145), Some((15, 130)));
        assert_eq!(close(nests, 0, 2, 150), Some((30, 120)));
        assert_eq!(close(nests, 0, 1, 170), Some((70, 100)));
    }

    #[test]
    fn what_was_not_seen_to_open_has_no_length_and_the_next_one_has() {
        let nests = &mut Nests::default();
        assert_eq!(close(nests, 0, 1, 10), None);
        open(nests, 0, 1, 20);
        assert_eq!(close(nests, 0, 1, 30), Some((10, 20)));
        assert_eq!(close(nests, 0, 1, 40), None);
        open(nests, 0, 1, 50);
        assert_eq!(close(nests, 0, 1, 51), Some((1, 50)));
    }
}
