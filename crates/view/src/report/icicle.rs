// SPDX-License-Identifier: GPL-2.0-or-later
//! A ledger as a tree: causes, then who took the time, then the functions of the stack from the outermost to the
//! innermost. Each node knows how much of the time is below it, and its place.

use super::code::{Code, FRAMES_KEPT, Frame};
use sample::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{LedgerRow, Sum};

/// A node with a smaller share of the time would be narrower than a line on the page.
const SHARE_KEPT: f64 = 0.002;

/// A box in the icicle of a ledger: a cause, who took the time, or a function (from the outermost to the innermost).
/// Each box comes before the boxes below it.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IcicleNode"))]
pub struct Node {
    /// The depth: 0 for causes.
    depth: usize,
    /// What the box stands for.
    what: What,
    /// Index of its name.
    frame: Frame,
    /// Where the box begins. The boxes below a box begin where it begins, the greatest first.
    from_ns: Nanos,
    #[serde(flatten)]
    sum: Sum,
    /// Its share of the ledger's total, with all boxes below it. A box with less than 0.2 % is absent.
    share: f64,
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IcicleWhat"))]
#[serde(rename_all = "snake_case")]
enum What {
    Cause,
    Who,
    Function,
}

#[derive(Default)]
struct Branch {
    sum: Sum,
    children: BTreeMap<(What, String), Branch>,
}

/// The tree of a ledger's rows, each node before those below it.
pub fn nodes(rows: &[LedgerRow], total: Nanos, code: &mut Code) -> Vec<Node> {
    let mut root = Branch::default();
    for row in rows {
        let mut branch = &mut root;
        for key in path(row) {
            branch = branch.children.entry(key).or_default();
            branch.sum.add(row.all());
        }
    }
    let mut nodes = Vec::new();
    place(&root, (0, 0), total, code, &mut nodes);
    nodes
}

fn path(row: &LedgerRow) -> impl Iterator<Item = (What, String)> + '_ {
    let cause = &row.cause;
    let who = (!cause.who.is_empty()).then(|| (What::Who, cause.who.clone()));
    let kept = &cause.stack[..cause.stack.len().min(FRAMES_KEPT)];
    let functions = kept.iter().rev().map(|name| (What::Function, function(name)));
    std::iter::once((What::Cause, cause.cause.clone())).chain(who).chain(functions)
}

/// `symbol [module]` of `symbol+0x12 [module]`: two calls of one function are one box.
fn function(name: &str) -> String {
    let Some((symbol, rest)) = name.split_once("+0x") else { return name.to_owned() };
    match rest.split_once(' ') {
        Some((_, module)) => format!("{symbol} {module}"),
        None => symbol.to_owned(),
    }
}

fn place(
    branch: &Branch,
    (depth, from): (usize, u64),
    total: Nanos,
    code: &mut Code,
    nodes: &mut Vec<Node>,
) {
    let mut children: Vec<_> = branch.children.iter().collect();
    children.sort_by_key(|&(key, child)| (std::cmp::Reverse(child.sum.time), key));
    let mut from = from;
    for ((what, name), child) in children {
        let share = child.sum.time.share_of(total);
        if share < SHARE_KEPT {
            // The nodes after it are not greater.
            break;
        }
        let frame = code.frame(name);
        nodes.push(Node { depth, what: *what, frame, from_ns: Nanos(from), sum: child.sum, share });
        place(child, (depth + 1, from), total, code, nodes);
        from += child.sum.time.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::CauseReport;

    fn row(cause: &str, who: &str, stack: &[&str], ns: u64) -> LedgerRow {
        let stack = stack.iter().map(ToString::to_string).collect();
        LedgerRow {
            cause: CauseReport { cause: cause.into(), who: who.into(), stack },
            count: 1,
            total_ns: Nanos(ns),
            stretches: 2,
            longest_ns: Nanos(ns - 1),
            share: 0.0,
            max_ns: Nanos(ns),
            max_stretches: 2,
            max_trigger: 0,
        }
    }

    #[test]
    fn stacks_that_begin_alike_share_their_outer_boxes_and_a_speck_is_left_out() {
        let rows = [
            row("irqs_off", "", &["lock+0x9", "write+0x1 [ext4]", "entry+0x7"], 500),
            row("irqs_off", "", &["copy+0x3", "write+0x44 [ext4]", "entry+0x7"], 300),
            row("task", "tar nice 0", &[], 199),
            row("switch", "", &[], 1),
        ];
        let mut code = Code::default();
        let nodes = nodes(&rows, Nanos(1_000), &mut code);
        let json = serde_json::to_value(&code).expect("JSON");
        let seen = nodes.iter().map(|n| {
            let name = json["frames"][n.frame].as_str().expect("a name");
            (n.depth, name, n.from_ns.0, n.sum.time.0)
        });
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                (0, "irqs_off", 0, 800),
                (1, "entry", 0, 800),
                (2, "write [ext4]", 0, 800),
                (3, "lock", 0, 500),
                (3, "copy", 500, 300),
                (0, "task", 800, 199),
                (1, "tar nice 0", 800, 199),
            ]
        );
        let outer = Sum { time: Nanos(800), stretches: 4, longest: Nanos(499) };
        assert_eq!(nodes[0].sum, outer, "a box knows of how many stretches it is");
    }
}
