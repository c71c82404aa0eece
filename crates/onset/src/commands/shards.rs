// SPDX-License-Identifier: GPL-2.0-or-later
//! Works that several machines share: `--on slurm`, `--shards` and `--shard` of several commands.

use super::run::processors;
use super::words::{give, without};
use crate::arguments::Sharing;
use crate::failure::{Exit, Failure};
use lab::followed::{shell_word, shell_words};
use lab::shards::{Parts, Shard, ShardRange, Sign, Slurm, Tasks, WorkFile, last_words, pause};
use rig::Bench;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use view::visible::{tell, tell_line};

/// How often a cluster tries to make a shard that is missing at the end of an array.
const TRIES: u32 = 3;
/// How much later than its end a shard's result may be seen.
const LATE: Duration = Duration::from_secs(10);

/// A work that is divided into shards.
pub struct Divided {
    all: Vec<Shard>,
    /// The shards that this command makes, if it does not make the whole.
    only: Option<ShardRange>,
    slurm: Option<(Slurm, Option<u32>)>,
    directory: PathBuf,
    /// The words of the command, but for how it is shared.
    command: Vec<String>,
    processors: u32,
}

/// Says which of these shards are missing.
pub type Missing<'a> = dyn Fn(&[Shard]) -> Result<Vec<Shard>, Failure> + 'a;

/// What is left to do.
pub enum Next {
    /// All shards are there: put them together.
    Whole(Vec<Shard>),
    /// Nothing: this command made some shards alone.
    Nothing,
}

/// How the user names the directory of a work.
pub struct NamedBy<'a> {
    /// The option, and then its other forms.
    pub options: &'static [&'static str],
    /// The directory.
    pub place: &'a Path,
}

/// How a command shares its work.
pub struct Work<'a> {
    /// What the user says of it.
    pub sharing: &'a Sharing,
    /// What is asked: all that its shards depend on and that their own files do not tell, by name.
    pub about: Vec<(&'static str, String)>,
    /// The directory for what concerns shards.
    pub directory: PathBuf,
    /// How the user names the directory of the work.
    pub named_by: NamedBy<'a>,
    /// The names of the kernels.
    pub kernels: BTreeSet<&'a str>,
    /// How many guests run at once.
    pub jobs: Option<u16>,
    /// Says whether all of these shards are made, as far as that is known before a guest boots.
    pub has_all: &'a dyn Fn(&[Shard]) -> bool,
}

impl Divided {
    /// Begins a work, or goes on with it. `None` if the work is not divided.
    ///
    /// # Errors
    /// If the directory is of another work, if there is no such Slurm, or if a node of it is unfit.
    pub fn begin(work: &Work, bench: &Bench) -> Result<Option<Divided>, Failure> {
        let Work { sharing, about, directory, named_by, kernels, jobs, has_all } = work;
        let (place, option) = (named_by.place, named_by.options[0]);
        let Some(of) = sharing.of() else { return Ok(None) };
        let all = Shard::all(of).map_err(Failure::usage)?;
        let slurm = scheduler(sharing)?;
        let place = std::path::absolute(place).map_err(Failure::unavailable)?;
        let directory = std::path::absolute(directory).map_err(Failure::unavailable)?;
        let words = without(std::env::args_os(), &[&Sharing::OPTIONS, named_by.options].concat());
        let whole = give(words.clone(), "--shards", of.to_string().as_ref());
        let file = WorkFile {
            command: in_text(whole)?,
            named_by: option.into(),
            about: about.iter().map(|(name, text)| (name.to_string(), text.clone())).collect(),
            shards: of,
            parts: Parts::here(bench, super::version(), kernels)?,
        };
        let is_new = file.agree(&directory)?;
        tell!(
            "{}: {of} shards; to go on with them later, give the same command and {option} {}",
            directory.display(),
            shell_word(&place)
        );
        // Of a work that only has to be put together nobody is asked.
        if let Some(slurm) = slurm.as_ref().filter(|_| !has_all(&all)) {
            check(slurm, &directory).inspect_err(|_| {
                if is_new {
                    WorkFile::withdraw(&directory);
                }
            })?;
        }
        let at_once = sharing.tasks.map(|tasks| u32::try_from(tasks.get()).unwrap_or(u32::MAX));
        Ok(Some(Divided {
            all,
            only: sharing.shard,
            slurm: slurm.map(|slurm| (slurm, at_once)),
            directory,
            command: in_text(give(words, option, place.as_os_str()))?,
            processors: u32::from(jobs.unwrap_or(1)),
        }))
    }

    /// Whether this command makes the whole, and not some shards alone.
    pub fn makes_the_whole(&self) -> bool {
        self.only.is_none()
    }

    /// Into how many shards the work is divided.
    pub fn count(&self) -> u32 {
        self.all.len() as u32
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
        let wanted = self.only.map(|only| only.shards().collect::<Vec<_>>());
        let wanted = wanted.as_ref().unwrap_or(&self.all);
        if let Some((slurm, at_once)) = &self.slurm {
            self.on_slurm(slurm, *at_once, missing)?;
        } else {
            let missing = missing(wanted)?;
            if self.only.is_some() && missing.is_empty() {
                tell!("what this command makes is there already");
            }
            for shard in missing {
                tell!("shard {shard}");
                make(shard)?;
            }
        }
        if self.makes_the_whole() {
            return Ok(Next::Whole(self.all));
        }
        // Nothing of the whole is written either: no picture, no report, no table.
        let words = self.command.iter().map(OsString::from).collect();
        let whole = give(words, "--shards", self.count().to_string().as_ref());
        tell!("to put all shards together, and to show the whole: {}", shell_words(&whole));
        Ok(Next::Nothing)
    }

    fn on_slurm(
        &self,
        slurm: &Slurm,
        at_once: Option<u32>,
        missing: &Missing,
    ) -> Result<(), Failure> {
        let mut left = missing(&self.all)?;
        if left.is_empty() {
            return Ok(());
        }
        let command: Vec<String> =
            [program()?].into_iter().chain(self.command.iter().skip(1).cloned()).collect();
        let jobs = give(
            command.iter().map(OsString::from).collect(),
            "--jobs",
            &OsString::from(self.processors.to_string()),
        );
        let command = in_text(jobs)?;
        let tasks = Tasks {
            command: &command,
            of: self.count(),
            at_once,
            processors: self.processors,
            directory: &self.directory,
        };
        for _ in 0..TRIES {
            let numbers: Vec<u32> = left.iter().map(|shard| shard.number()).collect();
            slurm.run(&tasks, &numbers, &tell_line)?;
            left = missing(&self.all)?;
            if left.is_empty() {
                return Ok(());
            }
            // A file system of the network may show the last results a moment later.
            pause(LATE)?;
            left = missing(&self.all)?;
            if left.is_empty() {
                return Ok(());
            }
        }
        let first = left[0].number();
        let (log, said) = last_words(&self.directory, first);
        let message = format!(
            "{} of {} shards are not done after {TRIES} tries. Shard {first} said last ({}):\n{said}\nTo go on, give the same command again, with the directory that was told above",
            left.len(),
            self.count(),
            log.display()
        );
        Err(Failure { exit: Exit::Unavailable, message })
    }
}

/// The scheduler that makes the shards, if one does.
///
/// # Errors
/// If it does not answer, or has no such partition.
pub fn scheduler(sharing: &Sharing) -> Result<Option<Slurm>, Failure> {
    Ok(sharing.on.map(|_| Slurm::new(sharing.partition.as_deref())).transpose()?)
}

/// Has the nodes say what they have, before anything runs anywhere. Where an array runs already, they have said it.
fn check(slurm: &Slurm, directory: &Path) -> Result<(), Failure> {
    if slurm.known(directory)?.is_some() {
        return Ok(());
    }
    let sign = Sign::put(directory)?;
    let place = directory.display().to_string();
    let words = ["doctor", "--shards", &place, "--sees", sign.name()].map(String::from);
    let words: Vec<String> = [program()?].into_iter().chain(words).collect();
    Ok(slurm.check(&words, directory, &tell_line)?)
}

/// This program, by its path.
fn program() -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(Failure::unavailable)?;
    Ok(program.display().to_string())
}

/// The words as text, which is what other machines are told.
fn in_text(words: Vec<OsString>) -> Result<Vec<String>, Failure> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            Failure::usage(format!("{}: a word of a shared work has to be UTF-8", word.display()))
        })
    };
    words.into_iter().map(text).collect()
}

/// How many guests run at once: as many as there are processors, if nobody says it.
pub fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(processors, usize::from)
}
