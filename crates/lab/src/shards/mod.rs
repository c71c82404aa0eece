// SPDX-License-Identifier: GPL-2.0-or-later
//! Long work that several machines share. The work is divided into shards, always into the same ones. Who makes a shard
//! leaves its result in the directory of the work, and the same command makes the whole of them once none is missing.
//!
//! What a shard finds depends on the work and on the shard's number alone: not on the machine that makes it, nor on how
//! many machines there are. So a shard that is made twice is made equally, and counts once.

mod merge;
mod nodes;
mod shard;
mod slurm;
mod work_file;

pub use merge::{Merged, merge};
pub use shard::{NotAShard, Shard, ShardRange};
pub use slurm::{Slurm, Tasks, last_words, pause};
use work_file::number_of_its_own;
pub use work_file::{Parts, Sign, WorkFile, missing, name_of, place_of};
