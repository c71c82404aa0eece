// SPDX-License-Identifier: GPL-2.0-or-later
//! The windows of a run, by kind and by the stacks that opened them.

use super::Watcher;
use sample::{Insns, Nanos, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trace::{At, Event, Order, Reader, Stacks, Symbols, What, WindowKind, Windows, WindowsReport};

/// The windows that are to be shown.
#[derive(Clone, Debug)]
pub struct Which {
    /// The kinds of the windows.
    pub kinds: Vec<WindowKind>,
    /// The order of the windows.
    pub order: Order,
    /// How many windows of each kind, at the most.
    pub top: usize,
}

/// The length of a stretch at the first look inside. Each look costs as much as a stack. Shorter stretches are the
/// interrupts' own paths.
pub const INSIDE_FROM: Insns = Insns(4_000);
/// The least length of a stretch that gets a stack. Taking a stack costs the host more than running the guest in this
/// time. An interrupt's own path takes a microsecond.
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

/// Follows the windows of a whole run. The result is the same, however closely the run is followed.
pub struct Stretches {
    windows: Windows,
    triggers: u64,
    /// The first event and the last one.
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
    /// Ends the windows after the last event. Windows that are still open have no length.
    pub fn finish(&mut self) {
        self.windows.finish();
    }

    /// How long the run was followed.
    pub fn span(&self) -> Nanos {
        let Some((from, to)) = self.ends else { return Nanos(0) };
        // The reader lets no event go back in time.
        to.time.since(from.time).unwrap_or_default()
    }

    /// The number of triggers in that time.
    pub fn triggers(&self) -> u64 {
        self.triggers
    }

    /// The rows that were asked for. Also all windows of each kind that has any.
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
