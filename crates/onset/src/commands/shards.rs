// SPDX-License-Identifier: GPL-2.0-or-later
//! Works that several machines share: `--on slurm`, `--shards` and `--shard` of several commands.

use super::run::processors;
use super::words::{give, without};
use crate::arguments::Sharing;
use crate::failure::{Exit, Failure};
use lab::shards::{Parts, Shard, Slurm, Tasks, WorkFile, last_words};
use rig::Bench;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use view::visible::{tell, tell_line};

/// How often a cluster tries to make a shard that is missing at the end of an array.
const TRIES: u32 = 3;

/// A work that is divided into shards.
pub struct Divided {
    all: Vec<Shard>,
    /// The shard that this command makes, if it makes one alone.
    only: Option<Shard>,
    slurm: Option<(Slurm, Option<u32>)>,
    directory: PathBuf,
    /// The words of the command that makes the whole.
    command: Vec<OsString>,
    processors: u32,
}

/// Says which of these shards are missing, by their numbers.
pub type Missing<'a> = dyn Fn(&[Shard]) -> Result<Vec<u32>, Failure> + 'a;

/// What is left to do.
pub enum Next {
    /// All shards are there: put them together.
    Whole(Vec<Shard>),
    /// Nothing: this command made a shard alone.
    Nothing,
}

/// How a command shares its work.
pub struct Work<'a> {
    /// What the user says of it.
    pub sharing: &'a Sharing,
    /// The directory for what concerns shards.
    pub directory: PathBuf,
    /// The option that names the directory of the work, with its value.
    pub named_by: (&'static str, &'a Path),
    /// The names of the kernels.
    pub kernels: BTreeSet<&'a str>,
    /// How many guests run at once.
    pub jobs: Option<u16>,
}

impl Divided {
    /// Begins a work, or goes on with it. Whatever unfits a machine for it is said now. `None` if the work is not
    /// divided.
    ///
    /// # Errors
    /// If the directory is of another work, or if Slurm or one of its nodes is unfit.
    pub fn begin(work: &Work, bench: &Bench) -> Result<Option<Divided>, Failure> {
        let Work { sharing, directory, named_by: (option, place), kernels, jobs } = work;
        let Some(of) = sharing.of() else { return Ok(None) };
        let all = Shard::all(of).map_err(Failure::usage)?;
        if sharing.shard.is_some() && !directory.parent().is_some_and(Path::is_dir) {
            let made = std::fs::create_dir_all(directory);
            made.map_err(|e| Failure::unavailable(format!("{}: {e}", directory.display())))?;
        }
        let place = std::path::absolute(place).map_err(Failure::unavailable)?;
        let directory = std::path::absolute(directory).map_err(Failure::unavailable)?;
        let words = without(std::env::args_os(), &[&Sharing::OPTIONS[..], &[option]].concat());
        let whole = give(words.clone(), "--shards", of.to_string().as_ref());
        let command = give(words, option, place.as_os_str());
        let slurm = sharing.on.map(|_| Slurm::new(sharing.partition.clone())).transpose()?;
        let file = WorkFile {
            command: whole.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            named_by: (*option).into(),
            shards: of,
            parts: Parts::here(bench, super::version(), kernels)?,
        };
        file.agree(&directory)?;
        if let Some(slurm) = &slurm {
            let check = ["doctor".into(), "--shards".into(), directory.display().to_string()];
            let program = std::env::current_exe().map_err(Failure::unavailable)?;
            let words: Vec<String> =
                [program.display().to_string()].into_iter().chain(check).collect();
            slurm.check(&words, &tell_line)?;
        }
        let at_once = sharing.tasks.map(|tasks| u32::try_from(tasks.get()).unwrap_or(u32::MAX));
        Ok(Some(Divided {
            all,
            only: sharing.shard,
            slurm: slurm.map(|slurm| (slurm, at_once)),
            directory,
            command,
            processors: u32::from(jobs.unwrap_or(1)),
        }))
    }

    /// Has the missing shards made, here or on the cluster. `missing` says which are, and `make` makes one here.
    ///
    /// # Errors
    /// Those of `missing` and `make`. If a shard is still missing after the cluster tried several times, with what its
    /// task said last.
    pub fn run(
        self,
        missing: &Missing,
        make: &dyn Fn(Shard) -> Result<(), Failure>,
    ) -> Result<Next, Failure> {
        if let Some(only) = self.only {
            match missing(&[only])?.is_empty() {
                true => tell!("shard {only} is there already"),
                false => make(only)?,
            }
            return Ok(Next::Nothing);
        }
        match &self.slurm {
            Some((slurm, at_once)) => self.on_slurm(slurm, *at_once, missing)?,
            None => {
                let numbers: BTreeSet<u32> = missing(&self.all)?.into_iter().collect();
                for shard in self.all.iter().filter(|shard| numbers.contains(&shard.number())) {
                    tell!("shard {shard}");
                    make(*shard)?;
                }
            }
        }
        Ok(Next::Whole(self.all))
    }

    fn on_slurm(
        &self,
        slurm: &Slurm,
        at_once: Option<u32>,
        missing: &Missing,
    ) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::unavailable)?;
        let words = self.command.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        let mut command: Vec<String> =
            [program.display().to_string()].into_iter().chain(words).collect();
        if !command.iter().any(|word| word == "--jobs" || word.starts_with("--jobs=")) {
            command.extend(["--jobs".into(), self.processors.to_string()]);
        }
        let tasks = Tasks {
            command: &command,
            of: self.all.len() as u32,
            at_once,
            processors: self.processors,
            directory: &self.directory,
        };
        let mut numbers = missing(&self.all)?;
        for _ in 0..TRIES {
            if numbers.is_empty() {
                return Ok(());
            }
            slurm.run(&tasks, &numbers, &tell_line)?;
            numbers = missing(&self.all)?;
        }
        let Some(first) = numbers.first() else { return Ok(()) };
        let (log, said) = last_words(&self.directory, *first);
        let message = format!(
            "{} of {} shards are not done after {TRIES} tries. Shard {first} said last ({}):\n{said}\nTo go on, give the same command again",
            numbers.len(),
            self.all.len(),
            log.display()
        );
        Err(Failure { exit: Exit::Unavailable, message })
    }
}

/// How many guests run at once: as many as there are processors, if nobody says it. A shard has one guest, since the
/// cluster makes several shards at once.
pub fn jobs(asked: Option<u16>, sharing: &Sharing) -> usize {
    let default = if sharing.shard.is_some() { 1 } else { processors() };
    asked.map_or(default, usize::from)
}
