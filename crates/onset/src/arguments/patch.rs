// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of `onset patch`.

use super::StoreArgument;
use clap::{Args, Subcommand};
use experiment::Load;
use hunt::Budget;

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
    /// Build two kernels of Debian's sources, and add them to the cache: SERIES-onset-base without a patch, and
    /// SERIES-onset with all patches of the series, or SERIES-onset-PATCH+PATCH with those that are named. This takes
    /// about half an hour on two processors, and 6 GB. A kernel that is there already is not built again.
    Build(PatchBuild),
    /// Show in the rig what patches do: to the stretches that they cut, to each responder, to the latest answer that a
    /// hunt finds, and to the costs. The kernels are built first if they are not there.
    Prove(PatchProve),
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

/// What to prove.
#[derive(Debug, Args)]
pub struct PatchProve {
    /// The series of the kernel, as in 6.12.
    #[arg(value_name = "SERIES")]
    pub series: String,
    /// The patches: each alone, and all of them together. [default: all of the series, together]
    #[arg(value_name = "PATCH")]
    pub patches: Vec<String>,
    /// The boot options of all kernels, as in preempt=full. [default: none, so the kernel's own preemption mode]
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub options: String,
    /// The load (background work).
    #[arg(long, default_value_t = Load::Mixed)]
    pub load: Load,
    /// Whose answers are judged, and by which statistic: RESPONDER.STATISTIC.
    #[arg(long, value_name = "GOAL", default_value = "task.p99")]
    pub goal: String,
    /// How many pairs of guests, each pair with another seed. With fewer than six no effect can be told from chance.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pairs: u16,
    /// How long the hunts for the latest answer last: a time (5min) or a number of trials (200trials).
    #[arg(long, value_name = "BUDGET", value_parser = str::parse::<Budget>, default_value = "250trials")]
    pub hunt: Budget,
    /// How many guests run at once. [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Where bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}
