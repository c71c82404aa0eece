// SPDX-License-Identifier: GPL-2.0-or-later
//! An interval that is cut into consecutive segments. Their lengths therefore add up to the interval exactly.

use crate::{At, Length};

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a, T> {
    /// Its beginning: the end of the one before it.
    pub from: At,
    /// Its end.
    pub to: At,
    /// Its length by both clocks.
    pub length: Length,
    /// What it is.
    pub label: &'a T,
}

/// An interval and its cuts. A segment has an end only, its beginning being the end of the one before, so segments can
/// neither overlap nor leave anything out: their lengths add up to [`Partition::total`] whatever the cuts are.
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

    /// Continues the interval to `to`, as `label`. The new part joins the last segment where the label is the same.
    /// Where `to` is before the end so far, it is refused and nothing changes.
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

    /// The segments in their order; none of them is empty.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_, T>> {
        let begins = std::iter::once(self.from).chain(self.ends.iter().map(|&(end, _)| end));
        begins.zip(&self.ends).map(|(from, &(to, ref label))| Segment {
            from,
            to,
            length: length(from, to),
            label,
        })
    }

    /// The whole interval's length.
    pub fn total(&self) -> Length {
        length(self.from, self.end())
    }

    /// Where the interval begins.
    pub fn from(&self) -> At {
        self.from
    }

    /// Where it ends.
    pub fn end(&self) -> At {
        self.ends.last().map_or(self.from, |&(end, _)| end)
    }
}

/// A cut that lies before the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backwards;

/// `until` lets no end be before its beginning.
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
