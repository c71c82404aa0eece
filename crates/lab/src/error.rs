// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of the lab. Each variant names the thing that failed, and its text names the remedy. The command chooses
//! the exit status.

use bundle::BundleError;
use bundle::store::StoreError;
use experiment::{ExperimentError, Problems};
use std::path::PathBuf;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user, or the calling program, asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The rig failed.
    #[error(transparent)]
    Rig(rig::Error),
    /// A bundle cannot be read or written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The store has no such run, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An experiment cannot be read.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An experiment has mistakes.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// The user named or chose something that does not exist here; the text says what exists.
    #[error("{0}")]
    Unfit(String),
    /// A file of a run, a find or a hunt cannot be read or written, or is damaged.
    #[error("{0}")]
    File(String),
    /// The guest does not run what its flavour says.
    #[error("{0}")]
    OtherBoot(String),
    /// The run was made with other parts than the ones that this machine has now.
    #[error("{0}")]
    MadeOtherwise(String),
    /// A replay with the same instructions had another result.
    #[error(
        "the replay differs from the run: {how}; `onset replay` of this run fails too, since something on which the instructions depend is not in the snapshot's key: please report it"
    )]
    CameOutOtherwise {
        /// What differs.
        how: String,
    },
    /// The replay of a find differs from its file.
    #[error("{0}")]
    FindDiffers(String),
    /// What happened between the beginning and the end of a latency does not add up to it.
    #[error("onset cannot explain {what}: {why}")]
    Unexplained {
        /// The latency.
        what: String,
        /// What is missing.
        why: String,
    },
    /// The kernel says too little about itself to do what the user asked for.
    #[error("{0}")]
    KernelUnseen(String),
    /// The follower lost records of a run.
    #[error(
        "onset lost {0} records of the run, because this machine had no time to take them; so it cannot join the records before and after the gap: run the command again while the machine does less other work"
    )]
    RecordsLost(u64),
    /// The guest ended before the run did.
    #[error("the guest died: {0}")]
    GuestDied(String),
    /// The machine that runs the guest failed, and nothing is known of the guest.
    #[error("{0}")]
    MachineFailed(String),
    /// A generator of triggers on a line cannot be reached, or does not keep to the protocol.
    #[error("{0}")]
    Generator(String),
    /// The process of a probe failed.
    #[error("{0}")]
    Probe(String),
    /// A load cannot run, or ended too early.
    #[error("{0}")]
    Load(String),
    /// The target cannot measure with this instrument.
    #[error("{0}")]
    Instrument(String),
    /// A measurement failed after it had yielded samples, and there is a bundle of these samples.
    #[error("{cause}; the samples until then are in {}", bundle.display())]
    KeptAsBundle {
        /// Why it failed.
        cause: Box<Error>,
        /// The bundle, which is marked as incomplete.
        bundle: PathBuf,
    },
    /// A measurement failed after it had yielded samples, and onset could not make a bundle of them.
    #[error(
        "{cause}; the samples until then are in {}, and the next onset command that uses this store makes a bundle of them",
        partial.display()
    )]
    KeptAsPartial {
        /// Why it failed.
        cause: Box<Error>,
        /// The directory in the store.
        partial: PathBuf,
    },
}

impl Error {
    /// The original error, without the place where samples are kept.
    pub fn cause(&self) -> &Error {
        match self {
            Error::KeptAsBundle { cause, .. } | Error::KeptAsPartial { cause, .. } => cause.cause(),
            other => other,
        }
    }

    /// Whether somebody asked to stop.
    pub fn is_interruption(&self) -> bool {
        matches!(self.cause(), Error::Interrupted)
    }
}

impl From<rig::Error> for Error {
    fn from(e: rig::Error) -> Error {
        match e {
            rig::Error::Interrupted => Error::Interrupted,
            other => Error::Rig(other),
        }
    }
}
