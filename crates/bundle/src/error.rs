// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of bundles. Each names the file, the reason, and what to do.

use super::manifest::{OLDEST, SCHEMA};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a bundle cannot be written or read.
#[derive(Debug)]
pub enum BundleError {
    /// The operating system refused.
    Io {
        /// What onset tried to do, as in "cannot *write*".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason of the system.
        source: io::Error,
    },
    /// The bundle is complete, but the system did not confirm that it would survive a power loss.
    NotDurable {
        /// The bundle.
        path: PathBuf,
        /// The reason of the system.
        source: io::Error,
    },
    /// The store already has a run of this name.
    Exists {
        /// The directory of that run.
        path: PathBuf,
    },
    /// The directory has no manifest, so it is not a bundle.
    NotABundle {
        /// The directory.
        path: PathBuf,
    },
    /// An onset with another file format wrote the bundle.
    ForeignSchema {
        /// The manifest.
        path: PathBuf,
        /// The number of the format in that manifest.
        found: u64,
    },
    /// A file of the bundle is missing, cut short or altered.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The sign of the damage.
        why: String,
    },
}

impl BundleError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| BundleError::Io { action, path, source }
    }

    pub(super) fn damaged(path: &Path, why: impl fmt::Display) -> Self {
        BundleError::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, source } => {
                write!(f, "cannot {action} {}: {source}", path.display())?;
                f.write_str(remedy(source.kind()))
            }
            Self::NotDurable { path, source } => write!(
                f,
                "the bundle {} is complete, but the system could not make it durable ({source}): a power loss may destroy it; copy \
                 it elsewhere",
                path.display()
            ),
            Self::Exists { path } => {
                write!(
                    f,
                    "{} exists already, and onset never overwrites a bundle; remove it, or name another store with --store",
                    path.display()
                )
            }
            Self::NotABundle { path } => {
                write!(f, "{} is not a bundle: it has no manifest.json", path.display())
            }
            Self::ForeignSchema { path, found } => write!(
                f,
                "{} has schema {found}, and this onset reads only {OLDEST} to {SCHEMA}: use the version of onset that wrote it",
                path.display()
            ),
            Self::Damaged { path, why } => write!(
                f,
                "{} is damaged: {why}; restore the bundle from a copy, or remove its directory and \
                 repeat the run",
                path.display()
            ),
        }
    }
}

impl std::error::Error for BundleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::NotDurable { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What to do next, if the kind of the error tells.
fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or name another store with --store"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "; name a store that you may write to with --store"
        }
        _ => "",
    }
}
