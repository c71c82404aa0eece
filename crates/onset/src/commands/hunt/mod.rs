// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset hunt`: searches for the longest latency, and keeps all that a replay of it needs.

mod corpus;
mod deaths;
mod shards;

use super::guest::Asked;
use super::words::{give, without};
use super::{SystemClock, print, print_json, write_file};
use crate::arguments::Hunt as Arguments;
use crate::failure::{Exit, Failure};
use ::rig::{Bench, Calls};
use bundle::RunId;
use experiment::{Experiment, Flavour, GUEST_SEED, Load};
use hunt::{Hunt, HuntEnd, HuntFailure, Knowledge, STRATEGIES, Trial};
use lab::followed::{Ready, Subject, narrow, shell_word, shell_words};
use lab::hunting::{
    self, About, CONCLUSION, Field, Find, Grounds, HIGH, JOURNAL, Journal, STACKS_FROM,
    SearchResult, View, Walkers, explain_finds, find_file,
};
use lab::matrix::Issuer;
use lab::target::Rig;
use sample::{Responder, ResponderSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{Item, Table, value};
use view::results;
use view::terminal::{self, Shown};
use view::visible::{tell, tell_line};

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let from = corpus::read(&arguments.from, arguments.directory.as_deref())?;
    let experiment = experiment(arguments)?;
    let flavour = only_flavour(&experiment)?;
    let rig = Rig::new(super::bench()?, &experiment)?;
    if arguments.responders.is_empty() {
        super::tell_missing(&rig, &experiment);
    }
    let subjects = subjects(&rig, &experiment, &arguments.guest_seeds);
    let hunt = Hunt {
        guests: subjects.len(),
        responders: responders(arguments, flavour, &subjects[0])?,
        strategies: match arguments.strategies.as_slice() {
            [] => STRATEGIES.iter().map(|strategy| strategy.name()).collect(),
            some => each_once(some),
        },
        seed: arguments.seed,
        budget: arguments.budget,
        jobs: super::shards::jobs(arguments.jobs),
        corpus: Vec::new(),
        enough: None,
    };
    if arguments.sharing.shard.is_some() && arguments.directory.is_none() {
        return Err(Failure::usage(
            "--shard needs --directory: the directory in which the shards of this hunt come together",
        ));
    }
    let directory = directory_of(arguments, flavour, &experiment.loads);
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::create_dir_all(&directory)
        .map_err(|e| Failure::unavailable(format!("{}: {e}", directory.display())))?;
    let place = (&experiment, flavour, &*directory);
    let hunted = begin(arguments, (hunt, &from), (rig.bench(), subjects), place);
    if hunted.is_err() {
        // A hunt that was refused leaves nothing. Of a directory that holds anything nothing is removed.
        missing.iter().take_while(|made| std::fs::remove_dir(made).is_ok()).for_each(drop);
    }
    hunted
}

/// Makes the guests ready, and hunts in them.
fn begin(
    arguments: &Arguments,
    (mut hunt, from): (Hunt, &[corpus::Found]),
    (bench, subjects): (&Bench, Vec<Subject>),
    (experiment, flavour, directory): (&Experiment, &Flavour, &Path),
) -> Result<Exit, Failure> {
    let finds: Vec<_> = from.iter().map(|(_, find)| find.clone()).collect();
    let digest = hunting::digest(&finds);
    let subject = (experiment, flavour, digest.as_deref());
    let ready = || -> Result<Grounds<'_>, Failure> {
        let guests = subjects.iter().map(|subject| ready(bench, subject.clone(), flavour));
        Ok(Grounds::new(guests.collect::<Result<Vec<_>, lab::Error>>()?))
    };
    // Finds of other guests are refused before anything is written, which takes the guests. Otherwise what cannot be
    // shared is refused before a guest boots.
    let ready_first = if from.is_empty() {
        None
    } else {
        super::shards::scheduler(&arguments.sharing)?;
        Some(ready()?)
    };
    if let Some(grounds) = &ready_first {
        hunt.corpus = corpus::recipes(grounds, from)?;
    }
    let divided = shards::begin(arguments, &hunt, subject, directory, bench)?;
    let grounds = ready_first.map_or_else(ready, Ok)?;
    let about = About::of(&hunt, &experiment.source, flavour.to_string(), grounds.first());
    let about = About { from: digest, ..about };
    let place = (experiment, &about, directory);
    match divided {
        None => alone(arguments.json, (&hunt, from), &grounds, place),
        Some(divided) => {
            corpus::keep(from, directory)?;
            shards::run(arguments.json, divided, &hunt, &grounds, place)
        }
    }
}

/// A hunt that is not divided: goes on with it until it ends, and prints what it found.
fn alone(
    json: bool,
    (hunt, from): (&Hunt, &[corpus::Found]),
    grounds: &Grounds<'_>,
    place: Place,
) -> Result<Exit, Failure> {
    let (_, about, directory) = place;
    // A directory of another hunt is refused first.
    let mut journal = Journal::open(&directory.join(JOURNAL), about, &tell_line)?;
    corpus::keep(from, directory)?;
    match journal.count() {
        0 => tell!(
            "{}: the hunt writes its finds here; to go on with it later, give the same command and --directory {}",
            directory.display(),
            shell_word(directory)
        ),
        trials => tell!("{}: the hunt goes on after {trials} trials", directory.display()),
    }
    let (known, ended, failure) = match search(hunt, grounds, &mut journal) {
        Ok((known, ended)) => (known, ended, None),
        Err(HuntFailure { known, failure }) => {
            (*known, HuntEnd::Failed, Some(Failure::from(failure)))
        }
    };
    finish(json, (hunt, grounds), place, (&known, ended), failure)
}

/// The experiment of a hunt, what the hunt is about, and its directory.
type Place<'a> = (&'a Experiment, &'a About, &'a Path);

/// Explains the finds, writes them, and prints what a hunt found.
fn finish(
    json: bool,
    (hunt, grounds): (&Hunt, &Grounds<'_>),
    place: Place,
    (known, ended): (&Knowledge, HuntEnd),
    failure: Option<Failure>,
) -> Result<Exit, Failure> {
    let mut finds = Find::all(grounds, known, &hunt.responders);
    let bench = grounds.first_of(0).bench();
    let interrupted = match ended {
        HuntEnd::Interrupted => true,
        // To explain the finds takes the rig, too.
        HuntEnd::Failed => false,
        _ => explain_finds(bench, &mut finds, hunt.jobs, &tell_line).is_err(),
    };
    // A hunt that failed before it found anything leaves the files of an earlier hunt as they are.
    let concluded = match known.trials {
        0 if failure.is_some() => Ok(()),
        _ => conclude(json, place, known, finds, ended),
    };
    match (failure, concluded) {
        (None, Ok(())) if interrupted => Ok(Exit::Interrupted),
        (None, Ok(())) if !known.forked_otherwise.is_empty() => Ok(Exit::Undecided),
        (None, Ok(())) => Ok(Exit::Success),
        (None, Err(failure)) => Err(failure),
        (Some(failure), concluded) => {
            let lost = concluded
                .err()
                .map(|e| format!("\nonset could not write all finds either: {}", e.message));
            let again = again(place.2);
            let Failure { exit, message } = failure;
            let message = format!("{message}{}\nTo go on: {again}", lost.unwrap_or_default());
            Err(Failure { exit, message })
        }
    }
}

/// The command with which the user goes on with a hunt, as a shell takes it.
fn again(directory: &Path) -> String {
    let words = without(std::env::args_os(), &[]);
    let words = give(words, "--directory", directory.as_os_str());
    shell_words(&words)
}

/// Writes the finds to the hunt's directory, and prints them.
fn conclude(
    json: bool,
    (experiment, about, directory): Place,
    known: &Knowledge,
    mut finds: Vec<Find>,
    ended: HuntEnd,
) -> Result<(), Failure> {
    write_finds(&mut finds, directory)?;
    let deaths = deaths::write(experiment, about, known, directory)?;
    let printed = results::Hunt::of(about, directory, known, (&finds, &deaths), ended);
    write_json(&directory.join(CONCLUSION), &printed)?;
    if json {
        print_json(&printed)
    } else {
        print(&terminal::hunted(about, known, (&finds, &deaths), ended, directory))
    }
}

/// Prepares a guest in which to hunt.
pub(super) fn ready<'a>(
    bench: &'a Bench,
    mut subject: Subject,
    flavour: impl std::fmt::Display,
) -> Result<Ready<'a>, lab::Error> {
    let mut name = format!("{flavour} · {}", subject.guest.contents.load);
    if subject.guest.seed != GUEST_SEED {
        name += &format!(", guest seed {}", subject.guest.seed);
    }
    // The line falls before the next trigger may come, however close that trigger is: the edge raises the interrupt.
    if let Some(generator) = subject.generator_mut() {
        generator.high = HIGH;
    }
    Shown::during(name, ["ready", "failed"], |progress| Ready::new(bench, subject, progress))
}

/// Hunts, and shows after each round what the hunt has found.
pub(super) fn search(hunt: &Hunt, grounds: &Grounds<'_>, journal: &mut Journal) -> SearchResult {
    let follow = |guest: &Ready| {
        let (map, follow) = guest.follow(STACKS_FROM, Calls::None)?;
        Ok((map, follow.numbering_stretches()))
    };
    let seen = grounds.first().map(follow).collect::<Result<Vec<_>, lab::Error>>()?;
    // The guests have one kernel.
    for missing in seen.iter().take(1).flat_map(|(_, follow)| &follow.missing) {
        tell!("! not seen in this kernel: {missing}");
    }
    let views = seen.iter().map(|(map, follow)| View { follow, symbols: map }).collect();
    let field = Field { grounds, views, walkers: Walkers::default() };
    if journal.has_other_forks() {
        field.walkers.refuse(hunting::OTHERWISE.into());
    }
    let run = |trial: &Trial, deadline| field.run(trial, deadline);
    let searched = hunting::search(hunt, &run, journal, &mut |known| {
        if let Some(news) = field.walkers.news() {
            tell!("! {news}");
        }
        tell!("{}", terminal::hunt_progress(known));
    });
    tell!("{} of the trials made now were forks", field.walkers.count());
    searched
}

/// Writes a file for each find, which `onset replay` takes. Removes the files that an earlier part of the hunt wrote
/// for finds that are no longer among them.
pub(super) fn write_finds<'a>(
    finds: impl IntoIterator<Item = &'a mut Find>,
    directory: &Path,
) -> Result<(), Failure> {
    let mut ranks: BTreeMap<Responder, usize> = BTreeMap::new();
    for find in finds {
        let rank = ranks.entry(find.responder).or_default();
        let path = directory.join(find_file(find.responder.name(), *rank));
        write_json(&path, &find.reproducer)?;
        find.path = Some(path);
        *rank += 1;
    }
    for (responder, rank) in ranks {
        let below = (rank..).map(|rank| directory.join(find_file(responder.name(), rank)));
        below.take_while(|path| std::fs::remove_file(path).is_ok()).for_each(drop);
    }
    Ok(())
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    write_file(path, &(serde_json::to_string_pretty(value).expect("plain data") + "\n"))
}

/// The names, each once.
fn each_once<T: Clone + PartialEq>(named: &[T]) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for item in named {
        if !once.contains(item) {
            once.push(item.clone());
        }
    }
    once
}

/// A guest for each load and seed.
fn subjects(rig: &Rig, experiment: &Experiment, seeds: &[u32]) -> Vec<Subject> {
    let seeds = if seeds.is_empty() { vec![experiment.guest.seed] } else { each_once(seeds) };
    let mut subjects: Vec<Subject> = Vec::new();
    for cell in experiment.cells() {
        let subject = Subject::of_cell(rig, experiment, cell);
        for seed in &seeds {
            let guest = ::rig::Guest { seed: *seed, ..subject.guest.clone() };
            subjects.push(Subject { guest, ..subject.clone() });
        }
    }
    subjects
}

/// The experiment with the flavour and the loads that the arguments choose.
fn experiment(arguments: &Arguments) -> Result<Experiment, Failure> {
    let mut experiment = match &arguments.experiment {
        Some(path) => Experiment::load(path)?,
        None => Experiment::parse(Path::new("onset hunt"), &text(arguments)?)?,
    };
    narrow(&mut experiment, arguments.flavour.as_deref(), &arguments.loads)?;
    Ok(experiment)
}

/// Makes an experiment from the options, when the user gave none.
fn text(arguments: &Arguments) -> Result<String, Failure> {
    let (Some(flavour), [_, ..]) = (&arguments.flavour, &*arguments.loads) else {
        return Err(Failure::usage(
            "a hunt needs --flavour and --load, or an experiment: onset hunt --flavour 6.12-rt --load mixed",
        ));
    };
    let responders = match arguments.responders.as_slice() {
        [] => vec!["hardirq".into(), "task".into()],
        some => each_once(some),
    };
    let loads = &each_once(&arguments.loads);
    let mut root = Asked { title: "hunt", flavour, loads, responders: &responders }.root();
    // A hunt chooses its instants itself, but [trigger] has to have some.
    let trigger = [("period", value("1ms")), ("count", value(1))];
    root["trigger"] = Item::Table(Table::from_iter(trigger));
    Ok(root.to_string())
}

fn only_flavour(experiment: &Experiment) -> Result<&Flavour, Failure> {
    match experiment.flavours.as_slice() {
        [flavour] => Ok(flavour),
        several => {
            let names: String = several.iter().map(|flavour| format!("\n  {flavour}")).collect();
            Err(Failure::usage(format!(
                "a hunt takes one flavour, and the experiment has {}; choose one by --flavour:{names}",
                several.len(),
            )))
        }
    }
}

fn responders(
    arguments: &Arguments,
    flavour: &Flavour,
    subject: &Subject,
) -> Result<Vec<Responder>, Failure> {
    let has = subject.generator().map_or_else(ResponderSet::default, |g| g.responders);
    let names = |set: ResponderSet| set.iter().map(Responder::name).collect::<Vec<_>>().join(", ");
    if arguments.responders.is_empty() {
        return Ok(has.iter().collect());
    }
    let named = each_once(&arguments.responders);
    let named = named.iter().map(|name| {
        let responder: Responder = name.parse().map_err(Failure::usage)?;
        if has.contains(responder) {
            return Ok(responder);
        }
        let there = if has.iter().next().is_none() { "none at all".into() } else { names(has) };
        Err(Failure::usage(format!(
            "{flavour} has no responder {name} here: either its kernel lacks it, or the experiment leaves it out; the responders here are: {there}; choose one of these, or another kernel (docs/experiments.md says which kernel has which responders)",
        )))
    });
    named.collect()
}

fn directory_of(arguments: &Arguments, flavour: &Flavour, loads: &[Load]) -> PathBuf {
    arguments.directory.clone().unwrap_or_else(|| {
        let loads: Vec<&str> = loads.iter().map(|load| load.name()).collect();
        let title = format!("{flavour} {}", loads.join(" "));
        let id = RunId::new(SystemClock.now(), &title, std::process::id() as u16);
        arguments.store.store.join("hunts").join(id.as_str())
    })
}
