// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of functions in the guests, which the parts of the page share. A frame's name, a stack or a cause is in the
//! page once, and an index stands for it. This keeps the page small, because most late answers are late for the same
//! few reasons.

use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;
use trace::CauseReport;

/// How many frames of a stack are kept. Frames further out are the way in from user space, or into a thread.
pub const FRAMES_KEPT: usize = 24;
/// The sign in place of the frames that are left out.
const LEFT_OUT: &str = "…";

/// Index of a name in [`Code`].
pub type Frame = usize;
/// Index of a stack in [`Code`].
pub type Stack = usize;

/// Names that the parts of the report share. Each is here once, and its index stands for it.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Code {
    /// Functions as `symbol+0x12 [module]`, as kernels print them. For icicles also causes, tasks, and functions
    /// without an offset.
    frames: Once<String>,
    /// The stacks: indices into `frames`, innermost first, at most 24 and then “…”. The stack without frames stands for
    /// "no stack".
    stacks: Once<Vec<Frame>>,
    /// The causes of parts of latencies.
    causes: Once<Cause>,
}

/// The cause of a part of a latency (docs/hunting.md).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// The cause in one word.
    cause: String,
    /// Who took the time; empty if the cause has nobody.
    who: String,
    /// Index of the stack by which the cause is known.
    stack: Stack,
}

impl Code {
    /// A name.
    pub fn frame(&mut self, name: &str) -> Frame {
        self.frames.index(name.to_owned())
    }

    /// A stack, innermost first.
    pub fn stack(&mut self, names: &[String]) -> Stack {
        let left_out = (names.len() > FRAMES_KEPT).then_some(LEFT_OUT);
        let kept = names.iter().take(FRAMES_KEPT).map(String::as_str).chain(left_out);
        let frames = kept.map(|name| self.frame(name)).collect();
        self.stacks.index(frames)
    }

    /// A cause.
    pub fn cause(&mut self, report: &CauseReport) -> usize {
        let CauseReport { cause, who, stack } = report;
        let stack = self.stack(stack);
        self.causes.index(Cause { cause: cause.clone(), who: who.clone(), stack })
    }
}

/// A list in which every entry is different.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
struct Once<T> {
    list: Vec<T>,
    #[serde(skip)]
    known: HashMap<T, usize>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once { list: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Once<T> {
    fn index(&mut self, item: T) -> usize {
        *self.known.entry(item).or_insert_with_key(|item| {
            self.list.push(item.clone());
            self.list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_twice_is_in_the_page_once_and_a_deep_stack_says_that_it_was_cut() {
        let mut code = Code::default();
        let names = |n: usize| (0..n).map(|i| format!("f{i}")).collect::<Vec<_>>();
        let deep = code.stack(&names(FRAMES_KEPT + 9));
        assert_eq!(code.stack(&names(FRAMES_KEPT + 5)), deep);
        let report = CauseReport { cause: "irqs_off".into(), who: "".into(), stack: names(2) };
        assert_eq!(code.cause(&report), code.cause(&report));
        let json = serde_json::to_value(&code).expect("JSON");
        assert_eq!(json["frames"].as_array().map(Vec::len), Some(FRAMES_KEPT + 1));
        assert_eq!(json["frames"][FRAMES_KEPT], LEFT_OUT);
        assert_eq!(json["stacks"][1], serde_json::json!([0, 1]));
        assert_eq!(
            json["causes"],
            serde_json::json!([{"cause": "irqs_off", "who": "", "stack": 1}])
        );
    }
}
