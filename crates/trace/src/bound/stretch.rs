// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps the longest stretch of one term, with the place where it was opened and the code that ran in it.

use super::Term;
use crate::Place;
use sample::{Nanos, Stamp, Virtual};

/// The event that tells which stack opened a stretch. It comes when interrupts or preemption are on again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Interrupts are on again.
    Irqs,
    /// Preemption is on again.
    Preempt,
}

/// The opener of a stretch, as far as it is known at the opening, and the event that will tell more.
pub(super) type Opener = (Place, Option<Told>);

/// Measures the stretches of one term.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    open: Option<(Term, Option<Told>)>,
    longest: Term,
}

impl Stretch {
    /// Adds `time`. The stretch goes on, or it begins at `from` with this opener.
    pub fn add(&mut self, from: Stamp<Virtual>, time: Nanos, opener: Opener) {
        let (term, _) = self.open.get_or_insert_with(|| {
            let (opened, told) = opener;
            (Term { at_ns: Nanos(from.ns()), opened, ..Term::default() }, told)
        });
        term.ns += time;
    }

    /// Learns that interrupts or preemption, for which a stretch may wait, are on again, and which stack had turned
    /// them off.
    pub fn told(&mut self, by: Told, opened: Place) {
        if let Some((term, told)) = &mut self.open
            && *told == Some(by)
        {
            *told = None;
            if let Place::Stack(_) = opened {
                term.opened = opened;
            }
        }
    }

    /// Learns where the CPU was when the follower looked.
    pub fn look(&mut self, place: Place) {
        if let Some((term, _)) = &mut self.open {
            term.inside = place;
        }
    }

    /// Ends the stretch. What comes now is another stretch.
    pub fn end(&mut self) {
        self.longest = self.longest();
        self.open = None;
    }

    /// The longest stretch so far. If several are equally long, the first of them.
    pub fn longest(&self) -> Term {
        let open = self.open.map(|(term, _)| term).filter(|term| term.ns > self.longest.ns);
        open.unwrap_or(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StackId;

    fn on(stack: u32) -> Place {
        Place::Stack(StackId(stack))
    }

    #[test]
    fn the_longest_has_the_stack_that_is_told_when_what_opened_it_is_on_again_and_the_last_look() {
        let mut stretch = Stretch::default();
        let at = Stamp::from_ns;
        let opener = (Place::Address(5), Some(Told::Preempt));
        stretch.add(at(10), Nanos(20), opener);
        stretch.look(on(2));
        stretch.look(on(3));
        // Interrupts were off in the stretch as well.
        stretch.told(Told::Irqs, on(4));
        stretch.told(Told::Preempt, on(1));
        stretch.told(Told::Preempt, on(5));
        stretch.end();
        let longest = Term { ns: Nanos(20), at_ns: Nanos(10), opened: on(1), inside: on(3) };
        assert_eq!(stretch.longest(), longest);
        for (from, opened) in [(40, on(6)), (70, on(7))] {
            stretch.add(at(from), Nanos(20), (opened, None));
            stretch.end();
            assert_eq!(stretch.longest(), longest, "as long is not longer");
        }
        stretch.look(on(8));
        stretch.add(at(90), Nanos(21), opener);
        stretch.told(Told::Preempt, Place::Unknown);
        let short =
            Term { ns: Nanos(21), at_ns: Nanos(90), opened: opener.0, inside: Place::Unknown };
        assert_eq!(stretch.longest(), short);
    }
}
