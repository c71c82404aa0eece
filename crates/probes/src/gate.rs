// SPDX-License-Identifier: GPL-2.0-or-later
//! A bare futex as a counting gate: the quickest way to hold one thread until another thread releases it.

use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A gate that is closed until a thread opens it. Each opening lets one thread pass. One thread waits at a time.
#[derive(Default)]
pub(crate) struct Gate {
    open: AtomicU32,
}

impl Gate {
    /// Lets one thread pass, now or when it comes. This takes one atomic addition and one system call.
    pub(crate) fn open(&self) {
        self.open.fetch_add(1, Ordering::Release);
        // The call fails for no address that is mapped.
        let _ = futex::wake(&self.open, futex::Flags::PRIVATE, 1);
    }

    /// Waits until the gate is open, and uses up one opening.
    pub(crate) fn pass(&self) {
        while self.open.load(Ordering::Acquire) == 0 {
            // The wait returns at once if the gate was opened in between, and early on a signal. Hence the loop.
            let _ = futex::wait(&self.open, futex::Flags::PRIVATE, 0, None);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opening_lets_exactly_one_passer_through() {
        let (gate, back) = (Gate::default(), Gate::default());
        gate.open();
        gate.open();
        gate.pass();
        gate.pass();
        std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..1000 {
                    gate.pass();
                    back.open();
                }
            });
            for _ in 0..1000 {
                gate.open();
                back.pass();
            }
        });
        assert_eq!(gate.open.load(Ordering::Relaxed), 0);
    }
}
