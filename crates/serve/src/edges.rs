// SPDX-License-Identifier: GPL-2.0-or-later
//! The latest edges of a live generator, for the page's oscilloscope. What comes faster than a page can draw is left
//! out and counted.

use lab::live::Live;
use sample::{Nanos, Observation};
use serde::Serialize;
use view::edges::{Edges, LINE};

/// The most edges that a page is told at once; four times a second.
const EDGES_MAX: usize = 1 << 14;

/// What a page is told of the edges since it was told before.
#[derive(Clone, Debug, Serialize)]
pub struct EdgesTold {
    /// How often pages were told before: who misses a number misses edges.
    pub number: u64,
    /// The names of the pins; the first is the trigger's line.
    pub pins: Vec<String>,
    /// The edges, as [`Edges::encode`] writes them.
    pub edges: String,
    /// How many answers were left out since the last time.
    pub left_out: u64,
}

/// The edges since pages were told.
pub struct Latest {
    number: u64,
    pins: Vec<String>,
    /// How many answers each responder has given: a pin toggles with each.
    answers: Vec<u64>,
    edges: Edges,
    left_out: u64,
}

impl Latest {
    /// Those of a conversation that begins.
    pub fn of(live: &Live) -> Latest {
        Latest::named(live.channels().iter().map(|c| c.responder.name().to_owned()))
    }

    fn named(responders: impl Iterator<Item = String>) -> Latest {
        let pins: Vec<String> = std::iter::once("trigger".to_owned()).chain(responders).collect();
        let answers = vec![0; pins.len() - 1];
        Latest { number: 0, pins, answers, edges: Edges::default(), left_out: 0 }
    }

    /// Takes an answer.
    pub fn take(&mut self, heard: &Observation) {
        let Observation::Sample(sample) = heard else { return };
        let index = sample.series.index();
        let Some(answers) = self.answers.get_mut(index) else { return };
        *answers += 1;
        if self.edges.len() + 3 > EDGES_MAX {
            self.left_out += 1;
            return;
        }
        // Nobody says for how long the line was high: it is drawn as a needle.
        self.edges.add(sample.at, LINE, true);
        self.edges.add(sample.at.saturating_add(Nanos(1)), LINE, false);
        let made = sample.at.saturating_add(sample.latency);
        self.edges.add(made, index as u8 + 1, *answers % 2 == 1);
    }

    /// What is told now, and begins anew.
    pub fn tell(&mut self) -> EdgesTold {
        let (number, left_out) = (self.number, std::mem::take(&mut self.left_out));
        self.number += 1;
        let edges = std::mem::take(&mut self.edges).encode();
        EdgesTold { number, pins: self.pins.clone(), edges, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Sample, SeriesId};

    fn answer(trigger: u64) -> Observation {
        let (series, at, latency) = (SeriesId(0), Nanos(trigger * 1_000), Nanos(100));
        Observation::Sample(Sample { series, trigger, at, latency, path: None })
    }

    #[test]
    fn pages_are_told_each_edge_once_and_what_is_too_much_is_counted() {
        let mut latest = Latest::named(["task".to_owned()].into_iter());
        latest.take(&answer(0));
        let first = latest.tell();
        let mut expected = Edges::default();
        for (at, pin, is_high) in [(0, 0, true), (1, 0, false), (100, 1, true)] {
            expected.add(Nanos(at), pin, is_high);
        }
        assert_eq!((first.number, first.left_out), (0, 0));
        assert_eq!(first.edges, expected.encode());
        let many = EDGES_MAX as u64;
        (1..=many).for_each(|trigger| latest.take(&answer(trigger)));
        let second = latest.tell();
        assert_eq!((second.number, second.left_out), (1, many - many / 3));
        assert_eq!((latest.tell().edges.as_str(), latest.tell().left_out), ("", 0));
    }
}
