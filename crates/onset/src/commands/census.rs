// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset census`: the latency of a trigger at each instant of a window around a find.

use super::report::write_chosen;
use super::shards::{Divided, NamedBy, Next, Work, jobs};
use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::census::{Census, Counted, Part, Stretches, Window, stretches};
use lab::followed::{Choice, Ready, Reproducer, reproducer};
use lab::shards::{Shard, place_of};
use rig::Bench;
use sample::Nanos;
use std::fmt::Write;
use std::path::PathBuf;
use view::results;
use view::terminal::{self, Shown};
use view::visible::tell;

pub fn run(arguments: &arguments::Census) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    let choice = arguments.sample.map(Choice::Trigger);
    let find = reproducer(&bench, &named, arguments.latencies.series.as_ref(), choice)?;
    let window = Window::around(&find, arguments.around, arguments.every)?;
    let title = named.title();
    let Some((stretches, latencies)) = taken(arguments, &bench, (&find, window), &title)? else {
        return Ok(Exit::Success);
    };
    let responder = find.answer.responder.name();
    if let Some(path) = &arguments.picture {
        let heading = format!("{responder} · {title}: a trigger every {}", window.every);
        let picture = view::census_picture(&heading, window, &latencies, &stretches);
        write_chosen(path, picture.as_bytes())?;
    }
    if let Some(path) = &arguments.csv {
        write_chosen(path, csv(window, &latencies).as_bytes())?;
    }
    let counted = Counted::of(window, &latencies, &stretches);
    let census = results::Census { schema: results::Census::SCHEMA, title, responder, counted };
    if arguments.json {
        print_json(&census)?;
    } else {
        print(&terminal::census(&census))?;
    }
    if census.counted.latency.is_none() {
        tell!("! nobody answered: see what `onset replay` of the find says");
        return Ok(Exit::Undecided);
    }
    Ok(Exit::Success)
}

/// What was off in the window, and the latency of each of its instants.
type Taken = (Stretches, Vec<Option<Nanos>>);

/// Takes the census. `None` if this command made a shard alone.
fn taken(
    arguments: &arguments::Census,
    bench: &Bench,
    (find, window): (&Reproducer, Window),
    title: &str,
) -> Result<Option<Taken>, Failure> {
    if arguments.directory.is_some() && arguments.sharing.of().is_none() {
        return Err(Failure::usage(
            "--directory is for the results of shards: add --shards, --shard or --on, or leave it out",
        ));
    }
    let instants: Vec<Nanos> = window.instants().collect();
    let jobs = jobs(arguments.jobs);
    let directory = directory(arguments, find, window);
    let place = place_of(&directory);
    let has_all = |all: &[Shard]| Part::missing(&place, all).is_empty();
    let work = Work {
        sharing: &arguments.sharing,
        about: vec![
            ("find", Part::hash(find)),
            ("first instant", window.from.to_string()),
            ("last instant", window.until.to_string()),
            ("--every", window.every.to_string()),
        ],
        directory: place.clone(),
        named_by: NamedBy { options: &["--directory"], place: &directory },
        kernels: [find.kernel.as_str()].into(),
        jobs: arguments.jobs,
        has_all: &has_all,
    };
    let divided = Divided::begin(&work, bench)?;
    let subject = find.subject(bench)?;
    let ready = Shown::during(title.to_owned(), ["ready", "failed"], |progress| {
        Ready::new(bench, subject, progress)
    })?;
    let census = Census::new(&ready, find);
    let take = |name: String, instants: &[Nanos]| {
        let taken = Shown::during(name, ["counted", "not counted"], |progress| {
            census.take(instants, jobs, progress)
        });
        if let Some(news) = census.news() {
            tell!("! {news}");
        }
        taken
    };
    let Some(divided) = divided else {
        let stretches = stretches(&ready, find, window)?;
        return Ok(Some((stretches, take(title.to_owned(), &instants)?)));
    };
    let shards = &work.directory;
    let missing = |all: &[Shard]| Ok(Part::missing(shards, all));
    let make = |shard: Shard| {
        let its = &instants[shard.range(instants.len())];
        let latencies = take(format!("{title}, shard {shard}"), its)?;
        Ok(Part::of(find, window, latencies).keep(shards, shard)?)
    };
    let Next::Whole(all) = divided.run(&missing, &make)? else { return Ok(None) };
    Ok(Some((stretches(&ready, find, window)?, Part::all(shards, &all, find, window)?)))
}

/// The directory of the shards: the one that the user named, or one whose name is of this find and this window.
fn directory(arguments: &arguments::Census, find: &Reproducer, window: Window) -> PathBuf {
    arguments.directory.clone().unwrap_or_else(|| {
        let Window { from, until, every } = window;
        let name = format!("{}-{}-{}-{}", &Part::hash(find)[..16], from.0, until.0, every.0);
        arguments.latencies.store.store.join("censuses").join(name)
    })
}

/// The latency of each instant. A trigger without an answer has none.
fn csv(window: Window, latencies: &[Option<Nanos>]) -> String {
    let mut text = "at_ns,latency_ns\n".to_string();
    for (at, latency) in window.instants().zip(latencies) {
        let latency = latency.map_or(String::new(), |ns| ns.0.to_string());
        let _ = writeln!(text, "{},{latency}", at.0);
    }
    text
}
