// SPDX-License-Identifier: GPL-2.0-or-later
//! The second device: one register, and an interrupt that nobody answers.
//!
//! The device's line rises at planned instants and stays high until the register is read. An ISA device holds its
//! request in the same way until it is served. (QEMU's PC tells the guest that pin 5 is level-triggered; the same works
//! with an edge-triggered pin.) The register reads as the number of timers that the driver is to start.
//!
//! A disturbance may come before the previous one was served. Then it waits for that: the line falls at the read and
//! rises again, so each disturbance is served once. No disturbance that is due while measuring is lost.
//!
//! Disturbances are not measured. Events tell when the line was to rise, for explanations and traces.

use sample::{Disturbance, Nanos};

/// The plan of disturbances, and how far it has come.
pub(crate) struct Disturbances {
    /// The disturbances, by rising time.
    plan: Vec<Disturbance>,
    /// How many disturbances of the plan have raised the line.
    raised: usize,
    /// How many of the raised disturbances the guest has served.
    served: usize,
}

impl Disturbances {
    pub(crate) fn new(plan: Vec<Disturbance>) -> Disturbances {
        Disturbances { plan, raised: 0, served: 0 }
    }

    /// When the next disturbance is due, counted from the beginning of measuring.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.plan.get(self.raised).map(|next| next.at)
    }

    /// Takes the next disturbance, which is due now. The caller raises the line. Returns how many timers it starts.
    pub(crate) fn raise(&mut self) -> u8 {
        let timers = self.plan[self.raised].timers;
        self.raised += 1;
        timers
    }

    /// Serves a read of the register. The caller lowers the line. Returns the value that the guest reads, and whether
    /// the line has to rise again.
    pub(crate) fn serve(&mut self) -> (u8, bool) {
        if self.served == self.raised {
            return (0, false);
        }
        let timers = self.plan[self.served].timers;
        self.served += 1;
        (timers, self.served < self.raised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disturbances() -> Disturbances {
        let plan = [(5, 0), (6, 64), (9, 7)];
        Disturbances::new(plan.map(|(at, timers)| Disturbance { at: Nanos(at), timers }).into())
    }

    #[test]
    fn each_disturbance_is_served_once_also_where_the_next_comes_before() {
        let mut d = disturbances();
        assert_eq!(d.due(), Some(Nanos(5)));
        assert_eq!(d.raise(), 0);
        assert_eq!(d.due(), Some(Nanos(6)));
        assert_eq!(d.raise(), 64);
        assert_eq!(d.serve(), (0, true));
        assert_eq!(d.serve(), (64, false));
        d.raise();
        assert_eq!((d.due(), d.serve()), (None, (7, false)));
    }

    #[test]
    fn a_register_that_is_read_without_an_interrupt_asks_for_no_timers() {
        let mut d = disturbances();
        assert_eq!(d.serve(), (0, false));
        d.raise();
        d.serve();
        assert_eq!(d.serve(), (0, false));
        assert_eq!(d.due(), Some(Nanos(6)));
    }
}
