// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt that is divided into shards, each of which is a hunt with a seed of its own.

use super::{Place, finish, search};
use crate::arguments::Hunt as Arguments;
use crate::commands::shards::{Divided, NamedBy, Next, Work};
use crate::failure::{Exit, Failure};
use ::rig::Bench;
use experiment::{Experiment, Flavour};
use hunt::{Budget, Hunt, HuntEnd};
use lab::hunting::{
    About, Grounds, JOURNAL, Journal, keep_shard, missing_shards, whole, working_directory,
};
use lab::shards::{Shard, place_of};
use std::path::Path;
use view::visible::{tell, tell_line};

/// Begins a divided hunt, or goes on with it. `None` if the hunt is not divided.
pub fn begin(
    arguments: &Arguments,
    hunt: &Hunt,
    (experiment, flavour, from): (&Experiment, &Flavour, Option<&str>),
    directory: &Path,
    bench: &Bench,
) -> Result<Option<Divided>, Failure> {
    if let (Budget::Time(_), Some(_)) = (hunt.budget, arguments.sharing.of()) {
        tell!(
            "! each shard hunts for {}, and a faster machine finds more in it; --budget 500trials gives the same finds on any machines",
            hunt.budget
        );
    }
    let place = place_of(directory);
    let has_all = |all: &[Shard]| missing_shards(&place, all).is_empty();
    let work = Work {
        sharing: &arguments.sharing,
        about: vec![
            ("flavour", flavour.to_string()),
            ("loads", comma(&experiment.loads)),
            ("guest seeds", comma(&arguments.guest_seeds)),
            ("responders", comma(hunt.responders.iter().map(|responder| responder.name()))),
            ("strategies", comma(&hunt.strategies)),
            ("seed", hunt.seed.to_string()),
            ("finds to start from", from.unwrap_or("none").into()),
            ("budget", hunt.budget.to_string()),
            ("experiment", experiment.source.clone()),
        ],
        directory: place.clone(),
        named_by: NamedBy { options: &["--directory"], place: directory },
        kernels: [flavour.kernel.as_str()].into(),
        jobs: arguments.jobs,
        has_all: &has_all,
    };
    Divided::begin(&work, bench)
}

/// Things by name, with commas.
fn comma<T: ToString>(of: impl IntoIterator<Item = T>) -> String {
    of.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(",")
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
    let shards = place_of(directory);
    let missing = |all: &[Shard]| Ok(missing_shards(&shards, all));
    let make = |shard: Shard| make(&shards, shard, hunt, grounds, about);
    let whole_about = About { shards: Some(divided.count()), ..about.clone() };
    // Another hunt in this directory is refused now. Nobody else puts the shards together meanwhile.
    let held = divided
        .makes_the_whole()
        .then(|| Journal::open(&directory.join(JOURNAL), &whole_about, &tell_line))
        .transpose()?;
    let Next::Whole(all) = divided.run(&missing, &make)? else { return Ok(Exit::Success) };
    let known = whole(directory, (&shards, &all), &whole_about)?;
    drop(held);
    let about = whole_about;
    tell!("{}: {} trials of {} shards", directory.display(), known.trials, all.len());
    let place = (place.0, &about, directory);
    // A shard that ended before it had made its trials had nothing new any more.
    let ended = match hunt.budget {
        Budget::Trials(each) if known.trials < each.saturating_mul(all.len() as u64) => {
            HuntEnd::Stale
        }
        Budget::Trials(_) | Budget::Time(_) => HuntEnd::Budget,
    };
    finish(json, (hunt, grounds), place, (&known, ended), None)
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
    // A file system of the network keeps the directory of an open file.
    drop(journal);
    keep_shard(shards, shard, &tell_line)?;
    Ok(())
}
