// SPDX-License-Identifier: GPL-2.0-or-later
//! The arguments of `onset breed`.

use super::{StoreArgument, at_least_one, seed};
use clap::Args;
use experiment::Flavour;
use sample::Nanos;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `onset breed …`
#[derive(Debug, Args)]
pub struct Breed {
    /// The flavour: a kernel of the cache and boot options.
    #[arg(long, default_value = "6.12 preempt=none")]
    pub flavour: Flavour,
    /// The responder (the mechanism that answers) whose longest latency is searched. May be repeated. [default:
    /// hardirq and task]
    #[arg(long = "responder", value_name = "NAME")]
    pub responders: Vec<String>,
    /// A stressor of stress-ng of which loads are made, by its name. May be repeated. [default: all that leave
    /// real-time priorities alone]
    #[arg(long = "stressor", value_name = "NAME")]
    pub stressors: Vec<String>,
    /// How long the command searches.
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub budget: Nanos,
    /// Search until so many loads were tried, however long that takes. [default: as long as --budget says]
    #[arg(long, value_name = "N", conflicts_with = "budget", value_parser = at_least_one)]
    pub loads: Option<NonZeroUsize>,
    /// Begin with the loads of an earlier search, in this directory: those that saw new stacks or came latest. They may
    /// be of another kernel. May be repeated. [default: none]
    #[arg(long, value_name = "DIR")]
    pub corpus: Vec<PathBuf>,
    /// The seed of everything random in the search. A search with the same seed finds the same.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// How many loads are tried at once. More than 8 are of no use. [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The directory of the search. If it holds this very search already, onset goes on with it. [default: a new
    /// directory among the bundles]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
