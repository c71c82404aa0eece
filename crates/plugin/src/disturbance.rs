// SPDX-License-Identifier: GPL-2.0-or-later
//! The second device: one register, and an interrupt that nobody answers.
//!
//! Its line rises at planned instants and stays high until the register is read, as that of an ISA device which holds its
//! request until it is served. (On QEMU's PC pin 5 is told to the guest as level-triggered; on an edge-triggered one the same
//! works.) What it reads is how many timers the driver is to start. A disturbance that comes before the one before it was
//! served waits for that: the line falls at the read and rises again, so each is served once. None that is due while
//! measuring is lost. Nothing is measured of them: records tell when the line was to rise, for explanations and traces.

use sample::{Disturbance, Nanos};

/// The register, 8 bits wide: "OD", as `ONSET_DISTURBANCE_PORT` in driver/onset_port.h.
pub const DISTURBANCE_PORT: u16 = 0x4f44;
/// Its interrupt: pin of the I/O APIC; free in the rig's guest, which has no PCI device that interrupts.
pub(crate) const DISTURBANCE_IRQ: i32 = 5;

/// How far the plan has come.
pub(crate) struct Disturbances {
    /// Rising.
    plan: Vec<Disturbance>,
    /// Of the plan, how many have raised the line.
    raised: usize,
    /// Of those, how many the guest has served.
    served: usize,
}

impl Disturbances {
    pub(crate) fn new(plan: Vec<Disturbance>) -> Disturbances {
        Disturbances { plan, raised: 0, served: 0 }
    }

    /// When the next is due, since measuring began.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.plan.get(self.raised).map(|next| next.at)
    }

    /// The next is due now: the line has to be high. How many timers it starts.
    pub(crate) fn raise(&mut self) -> u8 {
        let timers = self.plan[self.raised].timers;
        self.raised += 1;
        timers
    }

    /// The guest reads the register, upon which the line has to fall: what it reads, and whether the line has to rise again.
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
