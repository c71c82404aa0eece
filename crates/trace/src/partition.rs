// SPDX-License-Identifier: GPL-2.0-or-later
//! An interval that is cut into consecutive segments. So the lengths of the segments add up to the interval exactly.

use crate::{At, Length};

/// One segment of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a, T> {
    /// The beginning, which is the end of the segment before.
    pub from: At,
    /// The end of the segment.
    pub to: At,
    /// The segment's length by both clocks.
    pub length: Length,
    /// The label of the segment.
    pub label: &'a T,
}

/// An interval and its cuts. A segment has only an end, and its beginning is the end of the segment before. So segments
/// can neither overlap nor leave anything out: their lengths add up to [`Partition::total`], whatever the cuts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition<T> {
    from: At,
    ends: Vec<(At, T)>,
}

impl<T: PartialEq> Partition<T> {
    /// The empty interval at `from`.
    pub fn new(from: At) -> Self {
        Partition { from, ends: Vec::new() }
    }

    /// Continues the interval to `to` with the label `label`. If the last segment has the same label, the new part
    /// joins it. If `to` is before the present end, it is refused and nothing changes.
    pub fn until(&mut self, to: At, label: T) -> Result<(), Backwards> {
        let end = self.end();
        to.since(end).ok_or(Backwards)?;
        match self.ends.last_mut() {
            Some((last, same)) if *same == label => *last = to,
            _ if to == end => {}
            _ => self.ends.push((to, label)),
        }
        Ok(())
    }

    /// The segments in their order. None of them is empty.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_, T>> {
        let begins = std::iter::once(self.from).chain(self.ends.iter().map(|&(end, _)| end));
        begins.zip(&self.ends).map(|(from, &(to, ref label))| Segment {
            from,
            to,
            length: length(from, to),
            label,
        })
    }

    /// The length of the whole interval.
    pub fn total(&self) -> Length {
        length(self.from, self.end())
    }

    /// The beginning of the interval.
    pub fn from(&self) -> At {
        self.from
    }

    /// The end of the interval.
    pub fn end(&self) -> At {
        self.ends.last().map_or(self.from, |&(end, _)| end)
    }
}

/// The error that a cut lies before the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backwards;

/// The length of an interval. `until` keeps each end from being before its beginning.
fn length(from: At, to: At) -> Length {
    let (time, insns) = to.since(from).expect("ends never go back");
    Length { time, insns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sample::{Insns, Nanos, Stamp};

    fn at(ns: u64) -> At {
        At::new(Stamp::from_ns(ns), Insns(ns))
    }

    proptest! {
        #[test]
        fn segments_add_up_to_the_interval_whatever_the_cuts_are(
            from in 0u64..1_000, cuts in prop::collection::vec((0u64..2_000, 0u8..3), 0..50)
        ) {
            let mut p = Partition::new(at(from));
            let mut end = from;
            for (ns, label) in cuts {
                let done = p.until(at(ns), label);
                prop_assert_eq!(done.is_ok(), ns >= end);
                end = end.max(ns);
            }
            let sum: Nanos = p.segments().map(|s| s.length.time).sum();
            prop_assert_eq!(sum, p.total().time);
            prop_assert_eq!(p.end(), at(end));
            prop_assert!(p.segments().all(|s| s.length.time.0 > 0));
            let labels: Vec<_> = p.segments().map(|s| *s.label).collect();
            prop_assert!(labels.windows(2).all(|l| l[0] != l[1]));
        }
    }
}
