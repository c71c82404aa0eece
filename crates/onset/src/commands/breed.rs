// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset breed`: searches for the load under which answers come latest.

use super::guest::Asked;
use super::hunt::write_json;
use super::{SystemClock, bench, print, print_json, run::processors};
use crate::arguments::Breed;
use crate::failure::{Exit, Failure};
use bundle::RunId;
use experiment::{Experiment, Load};
use hunt::{Breeding, Genome, Population};
use lab::atlas::chosen;
use lab::breeding::{BRED_FILE, Ended, Ground, Kept, Until, all, breed, corpus, finds, is_calm};
use lab::followed::shell_word;
use lab::hunting::find_file;
use lab::matrix::Issuer;
use lab::pieces::Directory;
use lab::target::Rig;
use sample::Responder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use view::results;
use view::terminal::{self, Shown};
use view::visible::{tell, tell_line};

pub fn run(arguments: &Breed) -> Result<Exit, Failure> {
    let breeding = breeding(arguments)?;
    let experiment = experiment(arguments, &breeding.responders)?;
    let rig = Rig::new(bench()?, &experiment)?;
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
    let jobs = arguments.jobs.map_or_else(processors, usize::from);
    let told = |population: &Population, kept: &Kept| {
        tell!("{}", terminal::breeding_progress(population, kept));
    };
    let (population, ended) = breed(&ground, &breeding, &directory, (until, jobs), &told)?;
    let kept = all(&directory, &population);
    let (mut found, explained) = match ended {
        Ended::Interrupted => (Vec::new(), Ok(())),
        Ended::Budget => finds(ground.bench(), &kept, &breeding.responders, jobs, &tell_line),
    };
    let mut ranks: BTreeMap<Responder, usize> = BTreeMap::new();
    for one in &mut found {
        let rank = ranks.entry(one.find.responder).or_default();
        let file = path.join(find_file(one.find.responder.name(), *rank));
        write_json(&file, &one.find.reproducer)?;
        one.find.path = Some(file);
        *rank += 1;
    }
    let printed = results::Bred::of(ground.about(), &path, &population, (&found, &kept));
    write_json(&path.join(BRED_FILE), &printed)?;
    if arguments.json {
        print_json(&printed)?;
    } else {
        print(&terminal::bred(ground.about(), &path, &population, (&found, &kept)))?;
    }
    match ended == Ended::Interrupted || explained.is_err() {
        true => Ok(Exit::Interrupted),
        false => Ok(Exit::Success),
    }
}

fn breeding(arguments: &Breed) -> Result<Breeding, Failure> {
    let stressors = chosen(&arguments.stressors)?.tried;
    let is_asked = !arguments.stressors.is_empty();
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
        known.extend(corpus(directory)?);
    }
    known.sort();
    known.dedup();
    let stressors = stressors.into_iter().filter(|name| is_asked || is_calm(name)).collect();
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
