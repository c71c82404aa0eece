// SPDX-License-Identifier: GPL-2.0-or-later
//! Tells which functions of the kernel the CPU is in, from their calls and returns.
//!
//! A call is over when a return comes from it or from a call further out. It is also over when another call is made
//! with no more on the stack: then the function has jumped to the other one as its last step. Calls before the first
//! event are not seen. Neither is assembly that changes stacks by itself.

use crate::What;
use crate::x86_64::STACK_SHIFT;
use rustc_hash::FxHashMap;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The number of the call, which tells it from every other.
    number: u64,
    /// The address of the function.
    pub address: u64,
    /// The lower half of the stack pointer at the function's first instruction. The return address lies there.
    stack_pointer: u32,
}

/// A task's stack, by its place in memory. The stack is aligned to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TaskStack(u32);

impl TaskStack {
    fn of(stack_pointer: u32) -> TaskStack {
        TaskStack(stack_pointer >> STACK_SHIFT)
    }
}

/// Follows calls and returns. Memory grows with the number of tasks that are in the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    /// The calls of each task, the innermost last.
    tasks: FxHashMap<TaskStack, Vec<Call>>,
    /// The stack of the running task. `None` until it calls or returns.
    running: Option<TaskStack>,
    /// The calls on another stack, which belongs to the CPU: those in interrupts.
    interrupt: Vec<Call>,
    calls: u64,
}

impl Functions {
    /// Follows one event. Returns whether the event is a call, a return or a switch to another task.
    pub fn event(&mut self, what: &What) -> bool {
        match *what {
            What::Function { address, stack_pointer } => {
                self.calls += 1;
                let call = Call { number: self.calls, address, stack_pointer };
                let calls = self.returned(stack_pointer);
                calls.push(call);
            }
            What::Return { stack_pointer } => {
                self.returned(stack_pointer);
            }
            What::Run { .. } => {
                self.running = None;
                self.interrupt.clear();
            }
            // No function of the kernel is called in user space.
            What::Leave { user: true, .. } => {
                self.interrupt.clear();
                if let Some(calls) = self.running.and_then(|stack| self.tasks.get_mut(&stack)) {
                    calls.clear();
                }
            }
            What::Gap => *self = Functions { calls: self.calls, ..Functions::default() },
            _ => return false,
        }
        true
    }

    /// The calls on the stack into which this pointer points, without those that are over.
    fn returned(&mut self, stack_pointer: u32) -> &mut Vec<Call> {
        let stack = TaskStack::of(stack_pointer);
        let calls = if *self.running.get_or_insert(stack) == stack {
            // An interrupt is over when the task that it interrupted goes on.
            self.interrupt.clear();
            self.tasks.entry(stack).or_default()
        } else {
            &mut self.interrupt
        };
        while calls.pop_if(|call| call.stack_pointer <= stack_pointer).is_some() {}
        calls
    }

    /// The functions that the CPU is in, from the outermost in.
    pub fn now(&self) -> impl Iterator<Item = Call> {
        let own = self.running.and_then(|stack| self.tasks.get(&stack));
        own.into_iter().flatten().chain(&self.interrupt).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;

    const STACK: u32 = 0x8000;
    const OTHER: u32 = 0x2_0000;
    const INTERRUPT: u32 = 0x1000;

    fn call(address: u64, stack_pointer: u32) -> What {
        What::Function { address, stack_pointer }
    }

    fn returns(stack_pointer: u32) -> What {
        What::Return { stack_pointer }
    }

    fn run(task: u64) -> What {
        What::Run { task: TaskId(task), pid: 1 }
    }

    /// The functions that the CPU is in after each of these events.
    fn after(events: &[What]) -> Vec<Vec<u64>> {
        let mut functions = Functions::default();
        let each = events.iter().map(|what| {
            functions.event(what);
            functions.now().map(|call| call.address).collect()
        });
        each.collect()
    }

    #[test]
    fn calls_nest_and_returns_end_them() {
        let events = [
            call(1, STACK + 80),
            call(2, STACK + 40),
            call(3, STACK + 20),
            returns(STACK + 20),
            call(4, STACK + 20),
            // A return from a function whose call was not seen.
            returns(STACK + 40),
            returns(STACK + 80),
        ];
        let expected: [&[u64]; 7] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2], &[1, 2, 4], &[1], &[]];
        assert_eq!(after(&events), expected);
    }

    #[test]
    fn who_jumps_to_another_function_as_its_last_step_is_over() {
        let events = [call(1, STACK + 80), call(2, STACK + 40), call(3, STACK + 40)];
        assert_eq!(after(&events)[2], [1, 3]);
    }

    #[test]
    fn an_interrupt_has_a_stack_of_its_own_and_is_over_when_its_task_goes_on() {
        let events = [
            call(1, STACK + 80),
            call(2, STACK + 40),
            call(7, INTERRUPT + 80),
            call(8, INTERRUPT + 40),
            returns(INTERRUPT + 40),
            // A return from the interrupt itself.
            returns(STACK + 44),
        ];
        let expected: [&[u64]; 6] = [&[1], &[1, 2], &[1, 2, 7], &[1, 2, 7, 8], &[1, 2, 7], &[1]];
        assert_eq!(after(&events), expected);
    }

    #[test]
    fn a_task_that_runs_again_is_where_it_was() {
        let events = [
            call(1, STACK + 80),
            call(2, STACK + 40),
            run(9),
            call(5, OTHER + 80),
            run(8),
            returns(STACK + 40),
            What::Leave { user: true, to: 0 },
        ];
        let expected: [&[u64]; 7] = [&[1], &[1, 2], &[], &[5], &[], &[1], &[]];
        assert_eq!(after(&events), expected);
    }
}
