// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a command failed, and the exit status by which scripts learn of it.

use bundle::BundleError;
use bundle::store::StoreError;
use experiment::{ExperimentError, Problems};
use hunt::HuntFailure;
use lab::Error;
use stats::Verdict;
use std::fmt;

/// Exit statuses (see `onset --help`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every limit was kept, or there was nothing to judge.
    Success = 0,
    /// A limit was exceeded.
    Exceeded = 1,
    /// Wrong usage, or a wrong experiment.
    Usage = 2,
    /// No verdict could be reached.
    Undecided = 3,
    /// Something outside failed.
    Unavailable = 69,
    /// The user asked to stop.
    Interrupted = 130,
}

impl Exit {
    /// The status of several runs: an exceeded limit outweighs an undecided run, and an undecided run outweighs a
    /// passed one.
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Exit {
        verdicts.into_iter().fold(Exit::Success, |exit, verdict| match (exit, verdict) {
            (_, Verdict::Fail) | (Exit::Exceeded, _) => Exit::Exceeded,
            (_, Verdict::Inconclusive | Verdict::Invalid) => Exit::Undecided,
            (exit, Verdict::Pass) => exit,
        })
    }
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    /// The status to exit with.
    pub exit: Exit,
    /// What failed, why, and what to do.
    pub message: String,
}

impl Failure {
    /// A failure that the user can correct: wrong usage.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Usage, message: message.to_string() }
    }

    /// A failure of something outside of onset.
    pub fn unavailable(message: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Unavailable, message: message.to_string() }
    }
}

impl From<rig::Error> for Failure {
    fn from(e: rig::Error) -> Failure {
        Failure { exit: of_rig(&e), message: e.to_string() }
    }
}

impl From<ExperimentError> for Failure {
    fn from(e: ExperimentError) -> Failure {
        Failure::usage(e)
    }
}

impl From<Problems> for Failure {
    fn from(e: Problems) -> Failure {
        Failure::usage(e)
    }
}

impl From<BundleError> for Failure {
    fn from(e: BundleError) -> Failure {
        Failure::unavailable(e)
    }
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Failure {
        Failure { exit: of_store(&e), message: e.to_string() }
    }
}

impl From<&Error> for Failure {
    fn from(e: &Error) -> Failure {
        let exit = match e.cause() {
            Error::Interrupted => Exit::Interrupted,
            Error::Rig(e) => of_rig(e),
            Error::Store(e) => of_store(e),
            Error::Experiment(_) | Error::Problems(_) | Error::Unfit(_) | Error::Instrument(_) => {
                Exit::Usage
            }
            Error::OtherBoot(_) => Exit::Undecided,
            Error::CameOutOtherwise { .. } | Error::FindDiffers(_) => Exit::Exceeded,
            // Something outside, or what was kept of an earlier run.
            _ => Exit::Unavailable,
        };
        Failure { exit, message: e.to_string() }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::from(&e)
    }
}

fn of_rig(e: &rig::Error) -> Exit {
    match e {
        rig::Error::UnknownKernel { .. } => Exit::Usage,
        rig::Error::Interrupted => Exit::Interrupted,
        _ => Exit::Unavailable,
    }
}

fn of_store(e: &StoreError) -> Exit {
    match e {
        StoreError::Io(_) => Exit::Unavailable,
        _ => Exit::Usage,
    }
}

impl From<HuntFailure<Error>> for Failure {
    fn from(broken: HuntFailure<Error>) -> Failure {
        broken.failure.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_limit_outweighs_an_undecided_run() {
        use Verdict::*;
        assert_eq!(Exit::of([Pass, Pass]), Exit::Success);
        assert_eq!(Exit::of([Pass, Inconclusive]), Exit::Undecided);
        assert_eq!(Exit::of([Invalid, Fail, Pass]), Exit::Exceeded);
        assert_eq!(Exit::of([]), Exit::Success);
    }
}
