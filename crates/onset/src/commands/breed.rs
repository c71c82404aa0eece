// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset breed`: searches for the load under which answers come latest.

use super::guest::Asked;
use super::hunt::{write_finds, write_json};
use super::shards::jobs;
use super::{SystemClock, bench, print, print_json, tell_missing};
use crate::arguments::Breed;
use crate::failure::{Exit, Failure};
use bundle::RunId;
use experiment::{Experiment, Load};
use hunt::{Breeding, Genome};
use lab::atlas::chosen;
use lab::breeding::{
    BRED_FILE, Bred, Ended, Ground, Kept, Told, Until, all, breed, corpus, finds, is_calm,
};
use lab::followed::shell_word;
use lab::hunting::explain_finds;
use lab::matrix::Issuer;
use lab::pieces::Directory;
use lab::target::Rig;
use sample::Responder;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use view::results;
use view::terminal::{self, Shown};
use view::visible::{tell, tell_line};

pub fn run(arguments: &Breed) -> Result<Exit, Failure> {
    let breeding = breeding(arguments)?;
    let experiment = experiment(arguments, &breeding.responders)?;
    let rig = Rig::new(bench()?, &experiment)?;
    tell_missing(&rig, &experiment);
    let cell = experiment.cells().next().expect("one flavour, one load");
    let ground = Shown::during(cell.flavour.to_string(), ["ready", "failed"], |progress| {
        Ground::new(rig.bench(), (&rig, &experiment, cell), &breeding, progress)
    })?;
    let path = directory(arguments);
    let directory: Directory<Kept> = Directory::open(&path, ground.about())?;
    tell!(
        "{}: the search keeps its loads here; to go on with it later, give the same command and --directory {}",
        path.display(),
        shell_word(&path)
    );
    let until = match arguments.loads {
        Some(loads) => Until::Genomes(loads.get() as u64),
        None => Until::At(Instant::now() + Duration::from_nanos(arguments.budget.0)),
    };
    let jobs = jobs(arguments.jobs);
    let told = Told {
        kept: &|kept| tell!("{}", terminal::bred_load(kept)),
        round: &|population| tell!("{}", terminal::breeding_progress(population)),
        say: &tell_line,
    };
    let Bred { population, ended } = breed(&ground, &breeding, &directory, (until, jobs), &told);
    let kept = all(&directory, &population);
    let mut is_interrupted = matches!(ended, Ok(Ended::Interrupted));
    let mut found = finds(&kept, &breeding.responders, |finds| {
        // To explain them takes the rig, too.
        if matches!(ended, Ok(Ended::Budget)) {
            is_interrupted = explain_finds(ground.bench(), finds, jobs, &tell_line).is_err();
        }
    });
    if !kept.is_empty() {
        write_finds(found.iter_mut().map(|bred| &mut bred.find), &path)?;
        let printed = results::Bred::of(ground.about(), &path, &population, (&found, &kept));
        write_json(&path.join(BRED_FILE), &printed)?;
        if arguments.json {
            print_json(&printed)?;
        } else {
            print(&terminal::bred(ground.about(), &path, &population, (&found, &kept)))?;
        }
    }
    match ended {
        Err(failure) => {
            let Failure { exit, message } = failure.into();
            let again = shell_word(&path);
            let message =
                format!("{message}\nTo go on, give the same command and --directory {again}");
            Err(Failure { exit, message })
        }
        Ok(_) if is_interrupted => Ok(Exit::Interrupted),
        Ok(_) if kept.iter().any(|one| one.forked_otherwise) => Ok(Exit::Undecided),
        Ok(_) => Ok(Exit::Success),
    }
}

fn breeding(arguments: &Breed) -> Result<Breeding, Failure> {
    let all = chosen(&arguments.stressors)?.tried.into_iter();
    let is_asked = !arguments.stressors.is_empty();
    let stressors: Vec<String> = all.filter(|name| is_asked || is_calm(name)).collect();
    let responders = match arguments.responders.as_slice() {
        [] => vec![Responder::Hardirq, Responder::Task],
        some => some
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()
            .map_err(Failure::usage)?,
    };
    let mut known: Vec<Genome> = Vec::new();
    for directory in &arguments.corpus {
        known.extend(corpus(directory, &stressors)?);
    }
    known.sort();
    known.dedup();
    Ok(Breeding { seed: arguments.seed, stressors, responders, corpus: known })
}

/// The experiment whose guest it is.
fn experiment(arguments: &Breed, responders: &[Responder]) -> Result<Experiment, Failure> {
    let names: Vec<String> = responders.iter().map(|r| r.name().to_owned()).collect();
    let (flavour, loads) = (arguments.flavour.to_string(), [Load::Idle]);
    let asked = Asked { title: "breed", flavour: &flavour, loads: &loads, responders: &names };
    // The search chooses its instants itself, but [trigger] has to have some.
    let text = format!("{}\n[trigger]\nperiod = \"1ms\"\ncount = 1\n", asked.root());
    Ok(Experiment::parse(Path::new("onset breed"), &text)?)
}

fn directory(arguments: &Breed) -> PathBuf {
    arguments.directory.clone().unwrap_or_else(|| {
        let title = arguments.flavour.to_string();
        let id = RunId::new(SystemClock.now(), &title, std::process::id() as u16);
        arguments.store.store.join("bred").join(id.as_str())
    })
}
