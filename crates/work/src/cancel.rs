// SPDX-License-Identifier: GPL-2.0-or-later
//! How to ask work to stop. Whoever starts work gives it a [`Cancel`] and may ask it to stop at any time, from any
//! thread. One run of several can be stopped by itself. Wherever work waits, it looks at the token of its thread.
//!
//! A token is not passed through every signature: some forty functions wait for a program, a guest or a disk, down to
//! the function that hashes a file. A thread that is started for the work has to be given the token again
//! ([`Cancel::current`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

thread_local! {
    static CURRENT: RefCell<Cancel> = RefCell::default();
}

/// Asks work to stop.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
    deadline: Option<Instant>,
    /// Who asks this one asks all of its work.
    outer: Option<Arc<Cancel>>,
}

impl Cancel {
    /// What this thread works under; a token that nobody asks, where it works under none.
    pub fn current() -> Cancel {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Asks the work to stop. It stops at its next wait.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to stop, or its time is up.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|at| Instant::now() >= at)
            || self.outer.as_deref().is_some_and(Cancel::is_asked)
    }

    /// A token for a part of the work: asked when this one is, at `deadline`, or by itself.
    pub fn part(&self, deadline: Option<Instant>) -> Cancel {
        Cancel { asked: Arc::default(), deadline, outer: Some(Arc::new(self.clone())) }
    }

    /// Does `work` on this thread under this token.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Before(Cancel);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(std::mem::take(&mut self.0));
            }
        }
        let _before = Before(CURRENT.replace(self.clone()));
        work()
    }
}

/// Whether the work of this thread was asked to stop.
pub fn is_cancelled() -> bool {
    CURRENT.with_borrow(Cancel::is_asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_is_stopped_and_the_other_goes_on() {
        let (one, other) = (Cancel::default(), Cancel::default());
        one.ask();
        let under = |cancel: Cancel| std::thread::spawn(move || cancel.during(is_cancelled)).join();
        assert!(under(one).expect("no panic"));
        assert!(!under(other).expect("no panic"));
        assert!(!is_cancelled());
    }

    #[test]
    fn a_part_stops_with_the_whole_and_the_whole_goes_on_without_it() {
        let whole = Cancel::default();
        let part = whole.part(None);
        part.ask();
        assert!(part.is_asked() && !whole.is_asked());
        let late = whole.part(Some(Instant::now()));
        assert!(late.is_asked() && !whole.is_asked());
        let part = whole.part(None);
        whole.ask();
        assert!(part.is_asked());
    }

    #[test]
    fn what_a_thread_works_under_is_there_again_afterwards() {
        let outer = Cancel::default();
        outer.ask();
        outer.during(|| {
            assert!(!Cancel::default().during(is_cancelled));
            assert!(is_cancelled());
        });
        assert!(!is_cancelled());
    }
}
