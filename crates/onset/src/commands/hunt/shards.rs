// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt that is divided into shards, each of which is a hunt with a seed of its own.

use super::{Place, finish, search};
use crate::arguments::Hunt as Arguments;
use crate::commands::shards::{Divided, Next, Work};
use crate::failure::{Exit, Failure};
use ::rig::Bench;
use experiment::Flavour;
use hunt::{Hunt, HuntEnd};
use lab::hunting::{
    About, Grounds, JOURNAL, Journal, keep_shard, missing_shards, whole, working_directory,
};
use lab::shards::{Shard, hidden};
use std::path::Path;
use view::visible::{tell, tell_line};

/// Begins a divided hunt, or goes on with it. `None` if the hunt is not divided.
pub fn begin(
    arguments: &Arguments,
    flavour: &Flavour,
    directory: &Path,
    bench: &Bench,
) -> Result<Option<Divided>, Failure> {
    let work = Work {
        sharing: &arguments.sharing,
        directory: hidden(directory),
        named_by: ("--directory", directory),
        kernels: [flavour.kernel.as_str()].into(),
        jobs: arguments.jobs,
    };
    Divided::begin(&work, bench)
}

/// Has the shards made that are missing, and prints what all found together.
pub fn run(
    json: bool,
    divided: Divided,
    hunt: &Hunt,
    grounds: &Grounds<'_>,
    place: Place,
) -> Result<Exit, Failure> {
    let (_, about, directory) = place;
    let shards = hidden(directory);
    let missing = |all: &[Shard]| Ok(missing_shards(&shards, all));
    let make = |shard: Shard| make(&shards, shard, hunt, grounds, about);
    let Next::Whole(all) = divided.run(&missing, &make)? else { return Ok(Exit::Success) };
    let about = About { shards: Some(all.len() as u32), ..about.clone() };
    let known = whole(directory, (&shards, &all), &about, &tell_line)?;
    tell!("{}: {} trials of {} shards", directory.display(), known.trials, all.len());
    let place = (place.0, &about, directory);
    finish(json, (hunt, grounds), place, (&known, HuntEnd::Budget), None)
}

fn make(
    shards: &Path,
    shard: Shard,
    hunt: &Hunt,
    grounds: &Grounds<'_>,
    about: &About,
) -> Result<(), Failure> {
    let working = working_directory(shards, shard);
    std::fs::create_dir_all(&working)
        .map_err(|e| Failure::unavailable(format!("{}: {e}", working.display())))?;
    let hunt = Hunt { seed: shard.seed(hunt.seed), ..hunt.clone() };
    let about = About { seed: hunt.seed, ..about.clone() };
    let mut journal = Journal::open(&working.join(JOURNAL), &about, &tell_line)?;
    let (_, ended) = search(&hunt, grounds, &mut journal)?;
    if ended == HuntEnd::Interrupted {
        return Err(lab::Error::Interrupted.into());
    }
    keep_shard(shards, shard, &tell_line)?;
    Ok(())
}
