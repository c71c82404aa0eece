// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of the rig. Each variant names the thing that failed, and its message names the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use wire::ChannelError;

/// An error of the rig.
#[derive(Debug)]
pub enum Error {
    /// No kernel of that name is in the cache.
    UnknownKernel {
        /// The name that the user gave.
        name: String,
        /// The names of the kernels in the cache.
        known: Vec<String>,
    },
    /// A kernel cannot be used: something is missing from it or broken.
    Kernel {
        /// Its name.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A text that cannot be the name of a kernel.
    KernelName {
        /// The text.
        name: String,
    },
    /// The cache has a kernel of that name already, and the user did not ask to replace it.
    KernelExists {
        /// The name.
        name: String,
        /// Where the kernel in the cache came from; empty if that is not known.
        source: String,
    },
    /// onset cannot use Debian's archive, or the archive lacks what the user wants.
    Archive(String),
    /// The environment does not say where the user's cache is.
    NoCachePlace,
    /// A file or directory could not be read or written.
    File {
        /// The file or directory.
        path: PathBuf,
        /// The reason of the system.
        source: io::Error,
    },
    /// A program of the host is missing.
    NoProgram {
        /// Its name.
        name: String,
        /// The Debian package to install.
        package: &'static str,
    },
    /// A program of the host failed.
    Program {
        /// The command line.
        command: String,
        /// Its exit status and the end of its output.
        why: String,
    },
    /// QEMU refused to start, or does not suit.
    Qemu(String),
    /// The guest or its machine ended too early, or did not do what onset told it.
    Guest {
        /// What onset was doing.
        phase: &'static str,
        /// What onset knows of the reason.
        why: String,
    },
    /// A machine sent nothing for minutes of wall time.
    Stalled {
        /// What onset was doing.
        phase: &'static str,
        /// What onset knows of the reason.
        why: String,
    },
    /// A session got a command that it cannot carry out. The text says why.
    Command(String),
    /// The user asked to stop.
    Interrupted,
}

/// Result of the rig's operations.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownKernel { name, known } => {
                write!(f, "no kernel named {name:?} is in the cache")?;
                if known.is_empty() {
                    write!(f, ", which is empty")?;
                } else {
                    write!(f, "; there are {}", known.join(", "))?;
                }
                write!(
                    f,
                    ". Get it with `onset kernels fetch {name}`, or add your own: `onset kernels add --help`"
                )
            }
            Error::Kernel { name, why } => write!(f, "kernel {name}: {why}"),
            Error::KernelName { name } => write!(
                f,
                "{name:?} cannot be the name of a kernel: a name starts with a letter or digit and has letters, digits and .-_+~"
            ),
            Error::KernelExists { name, source } => {
                write!(f, "the cache has a kernel {name:?} already")?;
                if !source.is_empty() {
                    write!(f, " (from {source})")?;
                }
                write!(f, "; choose another --name, or give --replace to replace it")
            }
            Error::Archive(why) => write!(f, "Debian's archive: {why}"),
            Error::NoCachePlace => {
                write!(f, "neither XDG_CACHE_HOME nor HOME is an absolute path; set one of them")
            }
            Error::File { path, source } => {
                write!(f, "{}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::StorageFull => write!(
                        f,
                        ". Free some space, or choose another disk with XDG_CACHE_HOME or --store"
                    ),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                        write!(
                            f,
                            ". Choose a directory that you may write: XDG_CACHE_HOME for the cache, --store for the bundles"
                        )
                    }
                    _ => Ok(()),
                }
            }
            Error::NoProgram { name, package } => {
                write!(f, "the program {name:?} is missing; install it: apt-get install {package}")
            }
            Error::Program { command, why } => write!(f, "`{command}` failed: {why}"),
            Error::Qemu(why) => write!(f, "QEMU: {why}"),
            Error::Guest { phase, why } => write!(f, "the guest ended while {phase}: {why}"),
            Error::Stalled { phase, why } => write!(f, "the machine failed while {phase}: {why}"),
            Error::Command(why) => write!(f, "the session refuses a command: {why}"),
            Error::Interrupted => write!(f, "interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ChannelError> for Error {
    fn from(e: ChannelError) -> Self {
        Error::Qemu(e.to_string())
    }
}

/// Attaches the path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::File { path: path.to_path_buf(), source })
    }
}
