// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset atlas`: finds the longest stretches of a kernel under every stressor of stress-ng.

use super::shards::{Divided, NamedBy, Next, Work, jobs};
use super::{bench, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::Error;
use lab::atlas::{ATLAS_FILE, Atlas, Chosen, Ground, Idle, Tried, chosen};
use lab::pieces::Directory;
use lab::shards::{Shard, place_of};
use std::path::PathBuf;
use view::results;
use view::terminal::{self, Shown};
use view::visible::tell;

pub fn run(arguments: &arguments::Atlas) -> Result<Exit, Failure> {
    let flavour = &arguments.flavour;
    let chosen = chosen(&arguments.stressors)?;
    let bench = bench()?;
    let place = directory(arguments);
    let work = Work {
        sharing: &arguments.sharing,
        // The atlas itself says of what it is, and each stressor has its file.
        about: Vec::new(),
        directory: place_of(&place),
        named_by: NamedBy { options: &["--output", "-o"], place: &place },
        kernels: [flavour.kernel.as_str()].into(),
        jobs: arguments.jobs,
        // Which stressors there are is known once the guest is.
        has_all: &|_| false,
    };
    let divided = Divided::begin(&work, &bench)?;
    let how = (arguments.seed, arguments.duration);
    let ground = Shown::during(flavour.to_string(), ["ready", "failed"], |progress| {
        Ground::new(&bench, flavour, how, progress)
    })?;
    let Chosen { tried: names, left_out } = chosen;
    let jobs = jobs(arguments.jobs);
    if let Some(divided) = divided {
        let shared = Directory::share(&place, ground.about())?;
        if let Next::Nothing = make_shards(divided, &ground, &shared, &names, jobs)? {
            return Ok(Exit::Success);
        }
    }
    let directory = Directory::open(&place, ground.about())?;
    let done = names.iter().filter(|name| directory.has(name)).count();
    tell!(
        "{}: {done} of {} stressors are done; the same command goes on with the others, also after Ctrl-C",
        directory.path().display(),
        names.len()
    );
    let failed = fill(&ground, &directory, &names, jobs);
    let (failed, interrupted) = match failed {
        Err(Error::Interrupted) => (Vec::new(), true),
        other => (other?, false),
    };
    let all = names.iter().filter_map(|name| directory.get(name)).collect();
    let left_out = left_out.into_iter().map(|(stressor, why)| Idle { stressor, why });
    let mut atlas = Atlas::of(ground.about().clone(), all, arguments.top.get());
    atlas.left_out = left_out.collect();
    atlas.missing = ground.missing().to_vec();
    let printed = results::Atlas::of(&atlas);
    super::hunt::write_json(&directory.path().join(ATLAS_FILE), &printed)?;
    if arguments.json {
        print_json(&printed)?;
    } else {
        print(&terminal::atlas(&atlas))?;
    }
    match failed.first() {
        _ if interrupted => Ok(Exit::Interrupted),
        None => Ok(Exit::Success),
        Some((name, e)) => Err(Failure::unavailable(format!(
            "{} of {} stressors are not done, the first is {name}: {e}\nTo go on, give the same command again",
            failed.len(),
            names.len()
        ))),
    }
}

/// Tries stressors, and says what became of each.
fn fill(
    ground: &Ground<'_>,
    directory: &Directory<Tried>,
    names: &[String],
    jobs: usize,
) -> Result<Vec<(String, Error)>, Error> {
    ground.fill(directory, names, jobs, &|done, name, tried| match tried {
        Ok(tried) => tell!("[{done}/{}] {name}: {}", names.len(), terminal::stressor(tried)),
        Err(e) => tell!("[{done}/{}] {name}: not done: {e}", names.len()),
    })
}

/// Has the missing stressors tried: each shard has some of them.
fn make_shards(
    divided: Divided,
    ground: &Ground<'_>,
    directory: &Directory<Tried>,
    names: &[String],
    jobs: usize,
) -> Result<Next, Failure> {
    let of = |shard: Shard| {
        let its = names.iter().enumerate().filter(move |(number, _)| shard.has(*number));
        its.map(|(_, name)| name.clone()).collect::<Vec<String>>()
    };
    let missing = |all: &[Shard]| {
        let is_missing = |shard: &&Shard| of(**shard).iter().any(|name| !directory.has(name));
        Ok(all.iter().filter(is_missing).copied().collect())
    };
    let makes_the_whole = divided.makes_the_whole();
    let make = |shard: Shard| match fill(ground, directory, &of(shard), jobs)?.first() {
        None => Ok(()),
        // The whole says it of all shards.
        Some(_) if makes_the_whole => Ok(()),
        Some((name, e)) => Err(Failure::unavailable(format!("{name}: {e}"))),
    };
    divided.run(&missing, &make)
}

/// The directory of the atlas: the one that the user named, or one whose name is that of the flavour.
fn directory(arguments: &arguments::Atlas) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| {
        let flavour = arguments.flavour.to_string().to_lowercase();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        arguments.store.store.join("atlas").join(flavour.chars().map(plain).collect::<String>())
    })
}
