// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures how much of an interval interrupts take: the paper's sliding window, separately for each pair of entry and
//! vector.

use std::collections::VecDeque;

/// The widths of the sliding windows: 2¹⁰ to 2²⁴ ns. An interval is rounded up to the next width, so that I(L) is never
/// too small. The number of interrupts that fit into the widest window bounds the memory.
pub(super) const NARROWEST: u32 = 10;
pub(super) const WINDOWS: usize = 15;

/// The interrupts of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// The beginning and the length of each interrupt that reaches into the widest window.
    recent: VecDeque<(u64, u64)>,
    /// For each width, the most interrupt time that a window of this width had.
    pub most: [u64; WINDOWS],
}

impl Source {
    /// Adds an interrupt that begins at `begin` and lasts for `length`. The window that ends at this beginning counts
    /// the whole interrupt, and the whole of each earlier interrupt that ends inside the window.
    pub fn add(&mut self, begin: u64, length: u64) {
        let width = |window: usize| 1u64 << (NARROWEST as usize + window);
        let ends_after = |of: &(u64, u64), from: u64| of.0 + of.1 > from;
        let widest = begin.saturating_sub(width(WINDOWS - 1));
        while self.recent.front().is_some_and(|first| !ends_after(first, widest)) {
            self.recent.pop_front();
        }
        self.recent.push_back((begin, length));
        let (mut sum, mut window) = (0, 0);
        for of in self.recent.iter().rev() {
            while window < WINDOWS && !ends_after(of, begin.saturating_sub(width(window))) {
                self.most[window] = self.most[window].max(sum);
                window += 1;
            }
            sum += of.1;
        }
        for most in &mut self.most[window..] {
            *most = (*most).max(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_never_has_less_than_any_interval_of_its_width(
            interrupts in prop::collection::vec((0u64..3_000, 1u64..800), 1..60),
            from in 0u64..100_000, window in 0usize..6,
        ) {
            let (mut now, mut source, mut all) = (0, Source::default(), Vec::new());
            for (pause, length) in interrupts {
                now += pause;
                source.add(now, length);
                all.push((now, now + length));
                now += length;
            }
            let to = from + (1 << (NARROWEST as usize + window));
            let overlap = |&(a, b): &(u64, u64)| b.min(to).saturating_sub(a.max(from));
            prop_assert!(all.iter().map(overlap).sum::<u64>() <= source.most[window]);
        }
    }
}
