// SPDX-License-Identifier: GPL-2.0-or-later
//! The windows of a run, by kind and by the stacks that opened them.

use super::Watcher;
use sample::{Insns, Nanos, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{At, Event, Order, Reader, Stacks, Symbols, What, WindowKind, Windows, WindowsReport};

/// Which windows are to be shown.
#[derive(Clone, Debug)]
pub struct Which {
    /// Of these kinds.
    pub kinds: Vec<WindowKind>,
    /// What comes first.
    pub order: Order,
    /// So many of each kind at the most.
    pub top: usize,
}

/// How long a stretch is when it is looked inside first: each look costs as much as a stack, and shorter ones are the
/// interrupts' own paths.
pub const INSIDE_FROM: Insns = Insns(4_000);
/// How long a stretch is that gets a stack: taking one costs the host more than the guest runs meanwhile, and a
/// microsecond is what an interrupt's own path takes.
pub const WINDOWS_FROM: Insns = Insns(1_000);

/// All windows of a kind together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Total {
    /// How many windows.
    pub count: u64,
    /// How many rows they are: the stacks that opened them, those of interrupts and softirqs by handler.
    pub stacks: u64,
    /// All lengths together.
    pub total_ns: Nanos,
}

/// Follows the windows of a whole run: the same, however closely it is followed.
pub struct Stretches {
    windows: Windows,
    triggers: u64,
    /// The first event and the last.
    ends: Option<(At, At)>,
}

impl Watcher for Stretches {
    fn event(&mut self, event: &Event, _: &Reader) {
        self.windows.event(event);
        self.triggers += u64::from(matches!(event.what, What::Trigger { .. }));
        let first = self.ends.map_or(event.at, |(first, _)| first);
        self.ends = Some((first, event.at));
    }

    fn answer(&mut self, _: &Sample, _: &Reader) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Default for Stretches {
    fn default() -> Self {
        let windows = Windows::new(WINDOWS_FROM, INSIDE_FROM);
        Stretches { windows, triggers: 0, ends: None }
    }
}

impl Stretches {
    /// After the last event: windows that are still open have no length.
    pub fn finish(&mut self) {
        self.windows.finish();
    }

    /// How long was followed.
    pub fn span(&self) -> Nanos {
        let Some((from, to)) = self.ends else { return Nanos(0) };
        // The reader lets no event go back in time.
        to.time.since(from.time).unwrap_or_default()
    }

    /// Triggers in that time.
    pub fn triggers(&self) -> u64 {
        self.triggers
    }

    /// The rows that were asked for; and by kind all windows, where there were any.
    pub fn report(
        &self,
        which: &Which,
        stacks: &Stacks,
        symbols: &dyn Symbols,
    ) -> (WindowsReport, BTreeMap<WindowKind, Total>) {
        let mut report = self.windows.report(which.order, usize::MAX, stacks, symbols);
        let mut totals: BTreeMap<WindowKind, Total> = BTreeMap::new();
        for row in &report.windows {
            let total = totals.entry(row.kind).or_default();
            total.count += row.count;
            total.stacks += 1;
            total.total_ns += row.total_ns;
        }
        let mut left: BTreeMap<WindowKind, usize> =
            which.kinds.iter().map(|kind| (*kind, which.top)).collect();
        report.windows.retain(|row| match left.get_mut(&row.kind) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        (report, totals)
    }
}
