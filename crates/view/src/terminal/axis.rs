// SPDX-License-Identifier: GPL-2.0-or-later
//! Tiny histograms on a logarithmic axis that all rows share. They show the differences of the responders at a glance.

use crate::screen;
use stats::Column;

/// Characters of an axis on a narrow terminal: about one for each third of a decade.
const WIDTH: usize = 24;
const WIDTH_NARROW: usize = 12;
/// The width of a terminal on which the table of a run fits with a wide axis.
const COLUMNS_WIDE: usize = 120;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A range of latencies, in whole decades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Decimal logarithms of both ends in ns.
    decades: (f64, f64),
    width: usize,
}

impl Axis {
    /// The axis that holds every latency from `min_ns` to `max_ns`.
    pub fn new(min_ns: u64, max_ns: u64) -> Axis {
        let low = (min_ns.max(1) as f64).log10().floor();
        let high = (max_ns.max(1) as f64).log10().ceil().max(low + 1.0);
        let is_narrow = screen::columns().is_some_and(|columns| columns < COLUMNS_WIDE);
        Axis { decades: (low, high), width: if is_narrow { WIDTH_NARROW } else { WIDTH } }
    }

    fn cell(&self, ns: u64) -> usize {
        let (low, high) = self.decades;
        let share = ((ns.max(1) as f64).log10() - low) / (high - low);
        ((share * self.width as f64) as usize).min(self.width - 1)
    }

    /// Both ends, as a heading that is as wide as the axis.
    pub fn heading(&self) -> String {
        let end = |decade: f64| sample::Nanos(10f64.powf(decade) as u64);
        let plain =
            |n: sample::Nanos| n.to_string().replace(".00", "").replace(".0", "").replace(' ', "");
        let (low, high) = (plain(end(self.decades.0)), plain(end(self.decades.1)));
        let gap = self.width.saturating_sub(low.chars().count() + high.chars().count());
        format!("{low}{}{high}", "·".repeat(gap))
    }

    /// The columns as bars. Heights are logarithmic, so that a single sample is visible beside a million.
    pub fn bars(&self, columns: &[Column]) -> String {
        let mut counts = vec![0u64; self.width];
        for column in columns {
            // The geometric middle decides where a column belongs, so that a column at a boundary is not drawn twice.
            let middle =
                ((column.low.0.max(1) as f64) * (column.high.0.max(1) as f64)).sqrt() as u64;
            counts[self.cell(middle)] += column.count;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let bar = |n: u64| match n {
            0 => ' ',
            n => {
                let height = (n as f64 + 1.0).ln() / (most + 1.0).ln();
                BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
            }
        };
        counts.into_iter().map(bar).collect()
    }
}

/// One bar for each latency, from the lowest at the shortest of them to full at the longest, on a logarithmic scale.
pub fn sparkline(latencies: impl Iterator<Item = u64> + Clone) -> String {
    let least = latencies.clone().min().unwrap_or(1).max(1) as f64;
    let most = latencies.clone().max().unwrap_or(1) as f64;
    let decades = (most / least).ln().max(f64::MIN_POSITIVE);
    let bar = |ns: u64| {
        let height = (ns.max(1) as f64 / least).ln() / decades;
        BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    latencies.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Nanos;

    fn column(ns: u64, count: u64) -> Column {
        Column { low: Nanos(ns), high: Nanos(ns + 1), count }
    }

    #[test]
    fn one_sample_in_a_million_is_still_seen_at_its_place() {
        let axis = Axis::new(150, 900_000);
        let bars: Vec<char> =
            axis.bars(&[column(272, 1_000_000), column(500_000, 1)]).chars().collect();
        assert_eq!(bars.len(), WIDTH);
        assert_eq!(bars.iter().filter(|c| **c != ' ').count(), 2);
        assert_eq!(bars[axis.cell(272)], '█');
        assert_eq!(bars[axis.cell(500_000)], '▁');
    }

    #[test]
    fn the_heading_names_whole_decades() {
        let heading = Axis::new(150, 900_000).heading();
        assert!(heading.starts_with("100ns") && heading.ends_with("1ms"), "{heading}");
        assert_eq!(heading.chars().count(), WIDTH);
    }

    #[test]
    fn a_course_goes_from_the_lowest_bar_to_the_highest() {
        assert_eq!(sparkline([100, 1_000, 10_000].into_iter()), "▁▅█");
        assert_eq!(sparkline([7, 7].into_iter()), "▁▁");
        assert_eq!(sparkline([].into_iter()), "");
    }

    #[test]
    fn a_degenerate_range_is_drawn_too() {
        let axis = Axis::new(0, 0);
        assert_eq!(axis.bars(&[column(0, 1)]).trim(), "█");
        assert_eq!(axis.bars(&[]).trim(), "");
    }
}
