// SPDX-License-Identifier: GPL-2.0-or-later
//! Windows by rank and with names, in the form in which they are shown and written as JSON.

use super::origin::Origin;
use super::{Cuts, Tally, WindowKind, Windows};
use crate::entries::is_one_of;
use crate::{Stacks, Symbols};
use sample::{Insns, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The order by which windows are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The row with the longest single window is first.
    Longest,
    /// The row with the greatest sum is first.
    Total,
}

/// One bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowBucket {
    /// Lengths below this one, and not below half of it; absent for those of 2⁶³ ns and more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub below_ns: Option<Nanos>,
    /// How many.
    pub count: u64,
}

/// All windows of a kind that one stack opened; of those that an interrupt's entry opened or that were opened in an
/// interrupt, whatever it interrupted, and of these and of softirqs those in which one handler ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowRow {
    /// What they kept from happening.
    pub kind: WindowKind,
    /// How many.
    pub count: u64,
    /// All lengths together.
    pub total_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
    /// Instructions in the longest.
    pub max_insns: Insns,
    /// When the longest opened, on the virtual clock.
    pub max_at_ns: Nanos,
    /// Of the total, hard and non-maskable interrupts; 0 where interrupts were masked.
    pub hardirq_ns: Nanos,
    /// Of the total, softirqs being served; 0 where interrupts were masked, or a thread serves them.
    pub softirq_ns: Nanos,
    /// Of the total, other tasks; 0 where these could not run.
    pub other_tasks_ns: Nanos,
    /// Of the longest, the same three.
    pub max_hardirq_ns: Nanos,
    /// Softirqs.
    pub max_softirq_ns: Nanos,
    /// Other tasks.
    pub max_other_tasks_ns: Nanos,
    /// Counts by length.
    pub histogram: Vec<WindowBucket>,
    /// Who opened them, innermost first, up to an interrupt's entry.
    pub stack: Vec<String>,
    /// Where the CPU was in the longest when the follower looked last (in its longest stretch where other tasks ran
    /// meanwhile), innermost first; empty where it was too short for a look.
    pub inside: Vec<String>,
    /// Who closed most of them.
    pub closed_by: Vec<String>,
    /// Who closed the longest.
    pub max_closed_by: Vec<String>,
}

impl WindowRow {
    /// The function that the interrupt or the softirqs called, if these opened the windows.
    pub fn handler(&self) -> Option<String> {
        Origin::of(self.stack.clone(), &self.inside).handler
    }

    /// The longest of these windows, if `function` or something that it called opened them, or if they are softirqs
    /// that it served. What came meanwhile does not count: interrupts, other softirqs, other tasks.
    pub fn longest_of(&self, function: &str) -> Option<Nanos> {
        let is_served = self.handler().is_some_and(|handler| is_one_of(&handler, &[function]));
        let opened = self.stack.iter().any(|frame| is_one_of(frame, &[function]));
        let softirqs = if is_served { 0 } else { self.max_softirq_ns.0 };
        let others = self.max_hardirq_ns.0 + softirqs + self.max_other_tasks_ns.0;
        (is_served || opened).then(|| Nanos(self.max_ns.0.saturating_sub(others)))
    }
}

/// The ranked windows, and those without a length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowsReport {
    /// The rows, ranked.
    pub windows: Vec<WindowRow>,
    /// For each kind, the windows that have no length.
    pub cut: BTreeMap<WindowKind, Cuts>,
}

impl Windows {
    /// The windows, ranked by `order`, and rows of equal rank by name. At most `limit` rows.
    pub fn report(
        &self,
        order: Order,
        limit: usize,
        stacks: &Stacks,
        symbols: &dyn Symbols,
    ) -> WindowsReport {
        let mut merged: BTreeMap<(WindowKind, Origin), Tally> = BTreeMap::new();
        for (key, tally) in self.tallies() {
            let [opener, inside] =
                [key.opened_by, key.inside].map(|place| stacks.names(place, symbols));
            let origin = Origin::of(opener, &inside);
            merged.entry((key.kind, origin)).or_default().merge(tally);
        }
        let mut all: Vec<_> = merged.into_iter().collect();
        all.sort_by_key(|(_, tally)| {
            std::cmp::Reverse(match order {
                Order::Longest => tally.longest().length,
                Order::Total => tally.total(),
            })
        });
        let row = |((kind, origin), tally)| row(kind, origin, &tally, stacks, symbols);
        WindowsReport {
            windows: all.into_iter().take(limit).map(row).collect(),
            cut: WindowKind::ALL.into_iter().map(|kind| (kind, self.cuts(kind))).collect(),
        }
    }
}

fn row(
    kind: WindowKind,
    origin: Origin,
    tally: &Tally,
    stacks: &Stacks,
    symbols: &dyn Symbols,
) -> WindowRow {
    let (longest, parts) = (tally.longest(), tally.parts());
    WindowRow {
        kind,
        count: tally.count(),
        total_ns: tally.total().time,
        max_ns: longest.length.time,
        max_insns: longest.length.insns,
        max_at_ns: Nanos(longest.at.time.ns()),
        hardirq_ns: parts.interrupts(),
        softirq_ns: parts.softirq,
        other_tasks_ns: parts.others,
        max_hardirq_ns: longest.parts.interrupts(),
        max_softirq_ns: longest.parts.softirq,
        max_other_tasks_ns: longest.parts.others,
        histogram: tally
            .histogram()
            .map(|(below_ns, count)| WindowBucket { below_ns, count })
            .collect(),
        stack: origin.stack,
        inside: stacks.names(longest.inside, symbols),
        closed_by: stacks.names(tally.closed_by(), symbols),
        max_closed_by: stacks.names(longest.closed_by, symbols),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: &[&str], inside: &[&str]) -> WindowRow {
        let names = |frames: &[&str]| frames.iter().map(|frame| frame.to_string()).collect();
        let mut row = serde_json::json!({
            "kind": "preempt_off", "count": 1, "total_ns": 900, "max_ns": 900, "max_insns": 900,
            "max_at_ns": 0, "hardirq_ns": 0, "softirq_ns": 0, "other_tasks_ns": 0,
            "max_hardirq_ns": 100, "max_softirq_ns": 300, "max_other_tasks_ns": 0,
            "histogram": [], "stack": [], "inside": [], "closed_by": [], "max_closed_by": [],
        });
        let frames: Vec<String> = names(stack);
        row["stack"] = frames.into();
        let frames: Vec<String> = names(inside);
        row["inside"] = frames.into();
        serde_json::from_value(row).expect("a row")
    }

    #[test]
    fn a_function_has_the_windows_that_it_or_a_callee_opened_and_the_softirqs_that_it_served() {
        let lock =
            row(&["_raw_spin_lock+0x9", "reclaim_list_global.part.0+0x1f", "vfree+0x1"], &[]);
        assert_eq!(lock.longest_of("reclaim_list_global"), Some(Nanos(500)));
        assert_eq!(lock.longest_of("reclaim_list"), None);
        let inside = ["__free_frozen_pages+0x1", "rcu_core+0x1bf", "handle_softirqs+0xd8"];
        let softirqs = row(&["handle_softirqs+0x42", "run_ksoftirqd+0x2f"], &inside);
        // What it serves is its own.
        assert_eq!(softirqs.longest_of("rcu_core"), Some(Nanos(800)));
        assert_eq!(softirqs.longest_of("__free_frozen_pages"), None);
    }
}
