// SPDX-License-Identifier: GPL-2.0-or-later
//! Breeds loads: searches for the load under which answers come latest. Loads are made of stressors of stress-ng, mixed
//! and timed by a seed (`hunt::Breeding`).
//!
//! The guest is booted and saved once, before any work, as for an atlas. Init learns the genome's script after it was
//! restored. A scout follows the kernel once for the genome's span. Forks of a guest that walks along it fire into the
//! longest stretches that the scout saw.

mod finds;
mod script;

pub use finds::{BredFind, finds};
pub use script::is_calm;

use crate::Error;
use crate::atlas::MEMORY_MIB;
use crate::atlas::stressors::{PROGRAMS, version};
use crate::followed::{Ready, Reproducer, Subject, order};
use crate::hunting::{
    Field, Grounds, HIGH, OTHERWISE, STACKS_FROM, Say, View, Walkers, at_once, lock,
};
use crate::pieces::{Directory, Piece};
use crate::shards::name_of;
use crate::target::Rig;
use experiment::{Cell, Experiment};
use hunt::{Breeding, Genome, Knowledge, Lived, Population, ROUND};
use rig::{Bench, Calls, Follow, Guest, Stimulus};
use sample::Responder;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use vmlinux::Map;
use work::Progress;

/// Each genome's trials have numbers of their own: this many, which are more than it has trials.
const NUMBERS: u64 = 32;
/// How many of the latest answers of a responder are kept of a genome, each of another place.
const KEPT: usize = 3;

/// What a search for loads is about. Only with the same can it be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of the files in the directory.
    pub files: u32,
    /// Kernel and boot options (the flavour).
    pub flavour: String,
    /// The kernel's release.
    pub release: String,
    /// Key of the snapshot of the guest before any work: a hash of kernel, guest, QEMU and plugin.
    pub snapshot: String,
    /// The version of stress-ng.
    pub stress_ng: String,
    /// Names of responders whose worst is looked for.
    pub responders: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The hash of the names of the stressors that genes may have.
    pub stressors: String,
    /// The hash of the corpus with which it began.
    pub corpus: String,
}

/// The file of all that is printed of a search.
pub const BRED_FILE: &str = "bred.json";
/// The version of the files in the directory.
const FILES: u32 = 1;

/// A genome that had its trials, in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// What became of it.
    pub lived: Lived,
    /// Its latest answers, the latest of each responder first.
    pub finds: Vec<Late>,
    /// If the guest died: what is known of it.
    pub died: Option<String>,
    /// Whether a trial came out otherwise in a fork than in a restored guest, which is a fault of onset.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub forked_otherwise: bool,
}

/// A late answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Late {
    /// The stack that opened the stretch that was fired into, innermost first.
    pub stack: Vec<String>,
    /// All that it takes to have the answer again.
    pub find: Reproducer,
}

impl Piece for Kept {
    type About = About;
    const WORK: &'static str = "search for loads";
    const OPTION: &'static str = "--directory";
    const PLACE: &'static str = "genomes";

    fn name(&self) -> String {
        name(self.lived.number)
    }
}

fn name(number: u64) -> String {
    format!("{number:06}")
}

/// The genomes in the directory of an earlier search that are made of these stressors: those that came latest, and
/// those that saw what none before them had seen.
///
/// # Errors
/// If the directory cannot be read, or has no such genome.
pub fn corpus(directory: &Path, stressors: &[String]) -> Result<Vec<Genome>, Error> {
    let failed = |e: std::io::Error| Error::File(format!("{}: {e}", directory.display()));
    let open = confined::Directory::open(directory).map_err(failed)?;
    let none = || {
        Error::Unfit(format!(
            "{} has no genomes of stressors that are here: name the directory of a search for loads",
            directory.display()
        ))
    };
    let genomes = open.directory(Kept::PLACE).map_err(|_| none())?;
    let mut names = genomes.names().map_err(failed)?;
    names.sort();
    let read = |name| serde_json::from_slice::<Kept>(&genomes.read(name, 1 << 24).ok()?).ok();
    let mut kept: Vec<Kept> = names.into_iter().filter_map(read).collect();
    kept.sort_by_key(|one| one.lived.number);
    kept.retain(|one| one.lived.genome.is_sound(stressors));
    let mut population = Population::default();
    let worth = |one: Kept| population.take_if_new(&one.lived).then_some(one.lived.genome);
    let all: Vec<Genome> = kept.into_iter().filter_map(worth).collect();
    if all.is_empty() { Err(none()) } else { Ok(all) }
}

/// The guest in which genomes live.
pub struct Ground<'a> {
    ready: Ready<'a>,
    map: Map<Vec<u8>>,
    follow: Follow,
    about: About,
    /// Why the trials of a load are not forked, if those of one before it were not.
    refused: Mutex<Option<String>>,
}

impl<'a> Ground<'a> {
    /// Boots the guest of an experiment's only cell, or finds it in the cache. It gets the programs that genomes need.
    ///
    /// # Errors
    /// If the machine has no stress-ng. Also the errors of [`Ready::new`].
    pub fn new(
        bench: &'a Bench,
        (rig, experiment, cell): (&Rig, &Experiment, Cell),
        breeding: &Breeding,
        progress: &dyn Fn(Progress),
    ) -> Result<Ground<'a>, Error> {
        let stress_ng = version()?;
        let flavour = cell.flavour;
        let mut subject = Subject::of_cell(rig, experiment, cell);
        let Guest { contents, memory_mib, .. } = &mut subject.guest;
        contents.programs.extend(PROGRAMS.map(String::from));
        contents.programs.push("sleep".into());
        *memory_mib = MEMORY_MIB;
        if let Some(generator) = subject.generator_mut() {
            generator.high = HIGH;
        }
        let ready = Ready::new(bench, subject, progress)?;
        let (map, follow) = ready.follow(STACKS_FROM, Calls::None)?;
        let corpus = serde_json::to_string(&breeding.corpus).expect("plain data");
        let about = About {
            files: FILES,
            flavour: flavour.to_string(),
            release: ready.guest().kernel.record.release.clone(),
            snapshot: ready.made_with().snapshot,
            stress_ng,
            responders: breeding.responders.iter().map(|r| r.name().to_owned()).collect(),
            seed: breeding.seed,
            stressors: name_of(&breeding.stressors.join(" ")),
            corpus: name_of(&corpus),
        };
        let follow = follow.numbering_stretches();
        Ok(Ground { ready, map, follow, about, refused: Mutex::default() })
    }

    /// What the search is about.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The bench on which the guest runs.
    pub fn bench(&self) -> &'a Bench {
        self.ready.bench()
    }

    /// Lets a genome live: has its trials made. `None` if somebody asked to stop, or at the deadline.
    ///
    /// # Errors
    /// The errors of the rig. A guest that dies is none.
    fn live(
        &self,
        breeding: &Breeding,
        number: u64,
        genome: Genome,
        (deadline, say): (Option<Instant>, Say),
    ) -> Result<Option<Kept>, Error> {
        let mut generator = self.ready.generator().clone();
        generator.work = Some(order(&script::of(&genome)));
        let grounds = Grounds::new([self.ready.with(Stimulus::Triggers(generator))]);
        let views = vec![View { follow: &self.follow, symbols: &self.map }];
        let field = Field {
            grounds: &grounds,
            views,
            walkers: Walkers::after(lock(&self.refused).clone()),
        };
        let first = number * NUMBERS;
        let mut known = Knowledge::default();
        let Some(scout) = field.run(&breeding.scout(first), deadline)? else { return Ok(None) };
        known.take(&scout);
        let scouted = scout.scouted.unwrap_or_default();
        let is_dead = scout.died.is_some();
        let fires = if is_dead { Vec::new() } else { breeding.fires(&scouted, first + 1) };
        for trial in &fires {
            let Some(made) = field.run(trial, deadline)? else { return Ok(None) };
            known.take(&made);
        }
        if let Some(news) = field.walkers.news() {
            say(&format!("! load {number}: {news}"));
        }
        if let Some(why) = field.walkers.refused() {
            *lock(&self.refused) = Some(why);
        }
        let died = known.died.first().map(|(_, death)| death.text.clone());
        let late = |responder: &Responder| {
            Some((responder.name().to_owned(), known.worst(responder.name())?.answer.latency_ns))
        };
        let lived = Lived {
            number,
            genome,
            stacks: known.seen.union(&known.fired).copied().collect(),
            late: breeding.responders.iter().filter_map(late).collect(),
            trials: known.trials,
        };
        let forked_otherwise = !known.forked_otherwise.is_empty();
        Ok(Some(Kept { lived, finds: latest(&grounds, &known, breeding), died, forked_otherwise }))
    }
}

/// The latest answers of each responder.
fn latest(grounds: &Grounds, known: &Knowledge, breeding: &Breeding) -> Vec<Late> {
    let of = |responder: &Responder| {
        let finds = crate::hunting::Find::all(grounds, known, std::slice::from_ref(responder));
        finds
            .into_iter()
            .take(KEPT)
            .map(|find| Late { stack: find.found.answer.stack, find: find.reproducer })
    };
    breeding.responders.iter().flat_map(of).collect()
}

/// All genomes of a population, by their numbers.
pub fn all(directory: &Directory<Kept>, population: &Population) -> Vec<Kept> {
    (0..population.count()).filter_map(|number| directory.get(&name(number))).collect()
}

/// Why a search for loads ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The budget was used up.
    Budget,
    /// Somebody asked to stop.
    Interrupted,
}

/// Until when a search goes on: a number of genomes, or an instant.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// So many genomes.
    Genomes(u64),
    /// This instant.
    At(Instant),
}

/// A search that ended, or that failed: all that is known then.
pub struct Bred {
    /// The genomes that had their trials.
    pub population: Population,
    /// Why it ended.
    pub ended: Result<Ended, Error>,
}

/// Hears how a search goes on.
pub struct Told<'a> {
    /// Hears of each genome, as it has had its trials, and of those of an earlier command.
    pub kept: &'a (dyn Fn(&Kept) + Sync),
    /// Hears how many genomes there are after a round, and how many stacks they saw.
    pub round: &'a dyn Fn(&Population),
    /// Hears what else people are told.
    pub say: Say<'a>,
}

/// Breeds, round after round, and keeps each genome in the directory, where those of an earlier command are not made
/// again.
pub fn breed(
    ground: &Ground,
    breeding: &Breeding,
    directory: &Directory<Kept>,
    (until, jobs): (Until, usize),
    told: &Told,
) -> Bred {
    let mut population = Population::default();
    let ended = loop {
        let (count, deadline) = match until {
            Until::Genomes(all) => (all.saturating_sub(population.count()).min(ROUND), None),
            // A search that has no time left still has what an earlier command made.
            Until::At(at) => (ROUND, Some(at)),
        };
        if count == 0 {
            break Ok(Ended::Budget);
        }
        let (kept, failure) =
            round(ground, breeding, directory, (&population, count, deadline, jobs), told);
        let whole = kept.len() as u64 == count;
        kept.iter().for_each(|one| population.take(&one.lived));
        if !kept.is_empty() {
            (told.round)(&population);
        }
        if let Some(failure) = failure {
            break Err(failure);
        }
        if !whole {
            let is_spent = deadline.is_some_and(|at| Instant::now() >= at);
            break Ok(if is_spent { Ended::Budget } else { Ended::Interrupted });
        }
    };
    Bred { population, ended }
}

/// The genomes of a round, up to the first that did not come to its end, and the failure if there was one.
fn round(
    ground: &Ground,
    breeding: &Breeding,
    directory: &Directory<Kept>,
    (population, count, deadline, jobs): (&Population, u64, Option<Instant>, usize),
    told: &Told,
) -> (Vec<Kept>, Option<Error>) {
    let first = population.count();
    let made: Mutex<(Vec<Option<Kept>>, Option<Error>)> =
        Mutex::new((vec![None; count as usize], None));
    let one = |number: u64| -> Result<Option<Kept>, Error> {
        if let Some(kept) = directory.get(&name(number)) {
            if !kept.lived.genome.is_sound(&breeding.stressors) {
                return Err(Error::File(format!(
                    "{}: load {number} is none that this search could make; remove its file, and it is made again",
                    directory.path().display()
                )));
            }
            if kept.forked_otherwise {
                lock(&ground.refused).get_or_insert(OTHERWISE.into());
            }
            return Ok(Some(kept));
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Ok(None);
        }
        let genome = breeding.genome(number, population);
        let Some(kept) = ground.live(breeding, number, genome, (deadline, told.say))? else {
            return Ok(None);
        };
        directory.keep(&kept)?;
        Ok(Some(kept))
    };
    at_once(jobs, count as usize, |index| {
        let lived = one(first + index as u64);
        if let Ok(Some(kept)) = &lived {
            (told.kept)(kept);
        }
        let mut made = lock(&made);
        match lived {
            Ok(kept) => made.0[index] = kept,
            Err(failure) => drop(made.1.get_or_insert(failure)),
        }
        match made.0[index].is_none() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let (kept, failure) = made.into_inner().unwrap_or_else(|p| p.into_inner());
    (kept.into_iter().map_while(|one| one).collect(), failure)
}
