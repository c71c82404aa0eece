// SPDX-License-Identifier: GPL-2.0-or-later
//! Work that goes on by steps, and the loop that carries it to its end.

use crate::{Progress, is_cancelled};
use std::time::{Duration, Instant};

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The target runs, and measuring has not begun.
    Begins,
    /// It is being measured.
    GoesOn {
        /// How much of the measurement is done: triggers, or milliseconds where a probe measures this machine.
        done: u64,
        /// Of how much; 0 where a probe measures a guest, 2⁶⁴−1 where nobody knows.
        of: u64,
    },
    /// Measuring has ended.
    Ended,
}

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// Takes steps until one is the last. A step is asked to end the work, each time, once this thread's work is cancelled.
///
/// # Errors
/// Those of a step.
pub fn to_the_end<E>(
    progress: &dyn Fn(Progress),
    mut step: impl FnMut(bool) -> Result<Step, E>,
) -> Result<(), E> {
    let mut told = Instant::now();
    let mut is_to_end = false;
    loop {
        match step(is_to_end)? {
            Step::Ended => return Ok(()),
            Step::GoesOn { done, of } if told.elapsed() > TOLD_EVERY => {
                told = Instant::now();
                progress(Progress::Measuring(done, of));
            }
            Step::Begins | Step::GoesOn { .. } => {}
        }
        is_to_end = is_cancelled();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cancel;

    #[test]
    fn work_is_asked_to_end_once_it_is_cancelled_and_goes_on_to_its_own_end() {
        let cancel = Cancel::default();
        let mut asked = Vec::new();
        let ended: Result<(), ()> = cancel.during(|| {
            to_the_end(&|_| (), |is_to_end| {
                asked.push(is_to_end);
                if asked.len() == 2 {
                    cancel.ask();
                }
                Ok(if asked.len() == 4 { Step::Ended } else { Step::Begins })
            })
        });
        assert_eq!((ended, asked), (Ok(()), vec![false, false, true, true]));
    }

    #[test]
    fn a_step_that_fails_is_the_last() {
        assert_eq!(to_the_end(&|_| (), |_| Err("told to")), Err("told to"));
    }
}
