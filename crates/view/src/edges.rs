// SPDX-License-Identifier: GPL-2.0-or-later
//! The edges of a trigger's line and of pins, as the page's oscilloscope takes them: what happened, and when, without
//! any statistic. The report has those of a run, and `onset serve` tells the latest of a live generator.

use base64::{Engine, engine::general_purpose::STANDARD};
use sample::Nanos;

/// The trigger's line is the first of all pins.
pub const LINE: u8 = 0;
/// The most pins, the trigger's line included: a byte holds a pin and its level.
pub const PINS_MAX: usize = 128;

/// Edges of several pins, in any order.
#[derive(Clone, Debug, Default)]
pub struct Edges(Vec<(Nanos, u8)>);

impl Edges {
    /// Adds that `pin` has this level from `at` on.
    pub fn add(&mut self, at: Nanos, pin: u8, is_high: bool) {
        self.0.push((at, pin << 1 | u8::from(is_high)));
    }

    /// How many edges there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The edges in the order of time, each once, as base64 of: the time since the edge before, in ns, seven bits a
    /// byte from the lowest on, with the top bit set in all bytes but the last; then a byte of twice the pin, plus one
    /// for high.
    pub fn encode(mut self) -> String {
        self.0.sort_unstable();
        self.0.dedup();
        let mut bytes = Vec::with_capacity(4 * self.0.len());
        let mut before = 0;
        for (Nanos(at), code) in self.0 {
            let mut since = at - before;
            before = at;
            while since >= 0x80 {
                bytes.push(since as u8 | 0x80);
                since >>= 7;
            }
            bytes.extend([since as u8, code]);
        }
        STANDARD.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_in_the_order_of_time_each_once_with_long_times_in_several_bytes() {
        let mut edges = Edges::default();
        edges.add(Nanos(300), 1, true);
        edges.add(Nanos(5), LINE, true);
        edges.add(Nanos(5), LINE, true);
        edges.add(Nanos(1 << 20), LINE, false);
        let bytes = STANDARD.decode(edges.encode()).unwrap();
        // 5; then 295 = 2 · 128 + 39; then 1048276 = 63 · 16384 + 125 · 128 + 84.
        assert_eq!(bytes, [5, 1, 0x80 | 39, 2, 3, 0x80 | 84, 0x80 | 125, 63, 0]);
    }
}
