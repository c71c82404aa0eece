// SPDX-License-Identifier: GPL-2.0-or-later
//! The windows of a run, by kind and by the stacks that opened them.

use sample::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{At, Event, Order, Stacks, Symbols, What, WindowKind, Windows, WindowsReport};

/// All windows of a kind together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Total {
    /// How many windows.
    pub count: u64,
    /// How many stacks opened them.
    pub stacks: u64,
    /// All lengths together.
    pub total_ns: Nanos,
}

/// Follows the windows of a whole run.
#[derive(Default)]
pub struct Stretches {
    windows: Windows,
    triggers: u64,
    /// The first event and the last.
    ends: Option<(At, At)>,
}

impl Stretches {
    /// Follows one event.
    pub fn event(&mut self, event: &Event) {
        self.windows.event(event);
        self.triggers += u64::from(matches!(event.what, What::Trigger { .. }));
        let first = self.ends.map_or(event.at, |(first, _)| first);
        self.ends = Some((first, event.at));
    }

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

    /// By kind, all windows; a kind that had none is absent.
    pub fn totals(&self) -> BTreeMap<WindowKind, Total> {
        let mut totals: BTreeMap<WindowKind, Total> = BTreeMap::new();
        for (kind, _, tally) in self.windows.tallies() {
            let total = totals.entry(kind).or_default();
            total.count += tally.count();
            total.stacks += 1;
            total.total_ns.0 += tally.total().time.0;
        }
        totals
    }

    /// The first `top` stacks of each of these kinds, by `order`, and by kind what has no length.
    pub fn report(
        &self,
        (kinds, order, top): (&[WindowKind], Order, usize),
        stacks: &Stacks,
        symbols: &dyn Symbols,
    ) -> WindowsReport {
        let mut report = self.windows.report(order, usize::MAX, stacks, symbols);
        let mut left: BTreeMap<WindowKind, usize> = kinds.iter().map(|kind| (*kind, top)).collect();
        report.windows.retain(|row| match left.get_mut(&row.kind) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        report
    }
}
