// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of `onset patch`.

use clap::{Args, Subcommand};

/// What `onset patch` is given.
#[derive(Debug, Args)]
pub struct Patch {
    /// What to do.
    #[command(subcommand)]
    pub command: PatchCommand,
}

/// What to do with the patches.
#[derive(Debug, Subcommand)]
pub enum PatchCommand {
    /// List the patches by series, with what each cuts and what was measured.
    List,
    /// Build two kernels of Debian's sources, and add them to the cache: SERIES-onset-base without a patch,
    /// SERIES-onset with the patches. This takes about an hour on two processors, and 6 GB.
    Build(PatchBuild),
}

/// Which kernels to build.
#[derive(Debug, Args)]
pub struct PatchBuild {
    /// The series of the kernel, as in 6.12.
    #[arg(value_name = "SERIES")]
    pub series: String,
    /// The patches. [default: all of the series]
    #[arg(value_name = "PATCH")]
    pub patches: Vec<String>,
}
