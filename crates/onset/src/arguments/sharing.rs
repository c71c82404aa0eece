// SPDX-License-Identifier: GPL-2.0-or-later
//! The options by which several machines share one work.

use super::at_least_one;
use clap::{Args, ValueEnum};
use lab::shards::{Shard, ShardRange};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Into how many shards a work is divided if nobody says it.
const SHARDS: u32 = 64;

/// How a work is shared.
#[derive(Debug, Default, Args)]
pub struct Sharing {
    /// Share the work: have the nodes of a cluster make its shards, wait for them, and put them together. The cluster
    /// is that of a scheduler on this machine: slurm. [default: the work is done here]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "SCHEDULER")]
    pub on: Option<Scheduler>,
    /// Divide the work into so many shards. What they find together depends on this number, and not on the machines
    /// that make them. [default: 64 with --on, otherwise the work is not divided]
    #[arg(long, value_name = "N", value_parser = shards)]
    pub shards: Option<u32>,
    /// How many tasks of the cluster run at once at most. [default: as many as it has room for]
    #[arg(long, value_name = "N", requires = "on", value_parser = at_least_one)]
    pub tasks: Option<NonZeroUsize>,
    /// The partition of the cluster. [default: the cluster's own choice]
    #[arg(long, value_name = "NAME", requires = "on")]
    pub partition: Option<String>,
    /// Make this shard alone, and print nothing of the whole: 3/64 is the third of 64, and 3-7/64 are five of them. For
    /// machines without a scheduler in common (docs/cluster.md). [default: all shards]
    #[arg(long, value_name = "K/N", conflicts_with_all = ["on", "shards"])]
    pub shard: Option<ShardRange>,
}

/// A scheduler of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheduler {
    /// Slurm.
    Slurm,
}

impl Sharing {
    /// The options that are not those of a shard.
    pub const OPTIONS: [&str; 5] = ["--on", "--shards", "--tasks", "--partition", "--shard"];

    /// Into how many shards the work is divided. `None` if it is not.
    pub fn of(&self) -> Option<u32> {
        let with_scheduler = self.on.map(|_| SHARDS);
        self.shard.map(ShardRange::of).or(self.shards).or(with_scheduler)
    }
}

fn shards(text: &str) -> Result<u32, String> {
    let number =
        text.parse().map_err(|_| format!("it is a whole number from 1 up, not {text:?}"))?;
    Shard::all(number).map_err(|e| e.to_string())?;
    Ok(number)
}

/// `onset merge …`
#[derive(Debug, Args)]
pub struct Merge {
    /// Directories with results of shards: those of hunts, censuses and atlases, and stores.
    #[arg(required = true, value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// The directory to which the results are added.
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
}
