// SPDX-License-Identifier: GPL-2.0-or-later
//! Slurm, a scheduler of clusters: runs shards as the tasks of one array. onset calls its programs (sbatch, squeue,
//! srun, scancel, sinfo) as a user would, so it needs no rights and no library.

use super::{name_of, number_of_its_own};
use crate::Error;
use crate::followed::{shell_word, shell_words};
use crate::hunting::Say;
use confined::Directory;
use rig::tool;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The package that has the programs.
pub(super) const PACKAGE: &str = "slurm-client";
/// How long a program that only asks may take.
const ASKING: Duration = Duration::from_secs(60);
/// How long Slurm may not answer while an array runs: its controller may be started anew.
const AWAY: Duration = Duration::from_secs(600);
/// How often Slurm is asked how far the array is.
const EVERY: Duration = Duration::from_secs(2);
/// How often people hear of it.
const TOLD: Duration = Duration::from_secs(10);
/// How many tasks come one after the other on a processor, if there are enough shards. The number is chosen: with more,
/// the guest is restored more often; with fewer, all wait longer for the last task.
const TURNS: u32 = 4;
/// The file with the number of the array that makes the shards.
const JOB_FILE: &str = "slurm.job";

/// A Slurm that this machine can reach.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// The partition in which it runs.
    pub(super) partition: String,
}

/// Which shards Slurm runs, and how.
#[derive(Clone, Debug)]
pub struct Tasks<'a> {
    /// The words of the command that makes a shard, but for its shard: the last option.
    pub command: &'a [String],
    /// Into how many shards the work is divided.
    pub of: u32,
    /// How many tasks run at once at most. `None` for as many as there is room for.
    pub at_once: Option<u32>,
    /// How many processors a task uses.
    pub processors: u32,
    /// The directory for what concerns shards.
    pub directory: &'a Path,
}

/// The tasks of an array, by their numbers. Each makes some shards that follow each other, of which the first has its
/// number: what the shards have in common, as the restored guest of a census, is then made once.
#[derive(Debug, PartialEq, Eq)]
struct Dealt {
    numbers: Vec<u32>,
    /// How many shards a task makes. Those that are there already are left out.
    each: u32,
}

impl Dealt {
    /// Deals shards, whose numbers rise, to tasks, so many of which run at once.
    fn to(shards: &[u32], at_once: u32) -> Dealt {
        let each = (shards.len() as u32 / (TURNS * at_once.max(1))).max(1);
        let mut numbers: Vec<u32> = shards.iter().map(|shard| shard - (shard - 1) % each).collect();
        numbers.dedup();
        Dealt { numbers, each }
    }
}

/// An array of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job(u64);

/// How many tasks of an array are in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Queue {
    running: usize,
    waiting: usize,
    /// Tasks that Slurm holds and will not run again by itself: their nodes died more often than its administrator
    /// allows (slurm.conf, MaxBatchRequeue; 5 times).
    held: usize,
}

impl Queue {
    /// Whether nothing more comes of the array.
    fn is_over(self) -> bool {
        self.running + self.waiting == 0
    }
}

impl Slurm {
    /// The Slurm of this machine, with the partition in which it is to run. `None` for Slurm's own choice.
    ///
    /// # Errors
    /// If there is no Slurm here, if it does not answer, or if it has no such partition.
    pub fn new(partition: Option<&str>) -> Result<Slurm, Error> {
        let known = ask("sinfo", &["--noheader", "--format=%P"]).map_err(|e| {
            Error::Unfit(format!(
                "Slurm does not answer on this machine: {e}\nGive the command on a machine from which sbatch works, or make the shards by --shard (docs/cluster.md)"
            ))
        })?;
        chosen(&known, partition).map(|partition| Slurm { partition })
    }

    pub(super) fn of_partition(&self) -> String {
        format!("--partition={}", self.partition)
    }

    /// How many processors its nodes have that run tasks or could.
    fn processors(&self) -> Result<u32, Error> {
        let of_partition = self.of_partition();
        ask("sinfo", &["--noheader", "--format=%C", &of_partition]).map(|said| usable(&said))
    }

    /// Runs these shards as an array, or goes on with the array that does, until none of its tasks is in the queue.
    /// Whether the shards are then done, their results tell. `say` hears how far it is.
    ///
    /// # Errors
    /// If Slurm refuses. An interruption: the array is then cancelled.
    pub fn run(&self, tasks: &Tasks, shards: &[u32], say: Say) -> Result<(), Error> {
        let open = Directory::open(tasks.directory).map_err(|e| failed(tasks.directory, &e))?;
        let job = match self.known(tasks.directory)? {
            Some(job) => {
                say(&format!("job {} of an earlier command makes shards; it goes on", job.0));
                job
            }
            None => {
                let there = self.processors()? / tasks.processors.max(1);
                let dealt = Dealt::to(shards, tasks.at_once.map_or(there, |most| most.min(there)));
                let job = in_any_case(|| {
                    let job = self.submit(tasks, &dealt)?;
                    let number = format!("{}\n", job.0);
                    let written = open.replace(JOB_FILE, number.as_bytes());
                    written.map(|()| job).map_err(|e| failed(tasks.directory, &e))
                })?;
                let (shards, dealt) = (shards.len(), dealt.numbers.len());
                say(&format!("job {} of Slurm makes {shards} shards in {dealt} tasks", job.0));
                job
            }
        };
        let waited = self.wait(&job, tasks.directory, say);
        match &waited {
            Ok(queue) if queue.held == 0 => {}
            Err(failure) if !failure.is_interruption() => {
                // The array may still run. The same command finds it by the file.
                return waited.map(drop);
            }
            _ => drop(in_any_case(|| ask("scancel", &[&job.0.to_string()]))?),
        }
        open.remove(JOB_FILE).or_else(gone).map_err(|e| failed(tasks.directory, &e))?;
        waited.map(drop)
    }

    /// The array that a command before this one submitted for this directory, if some of its tasks still run or wait.
    ///
    /// # Errors
    /// If Slurm does not answer.
    pub fn known(&self, directory: &Path) -> Result<Option<Job>, Error> {
        let Ok(number) = confined::read(&directory.join(JOB_FILE), 100) else { return Ok(None) };
        let number = String::from_utf8_lossy(&number).trim().parse().map(Job);
        let Ok(job) = number else { return Ok(None) };
        let queue = queue(&job, directory)?;
        if queue.is_over() && queue.held > 0 {
            ask("scancel", &[&job.0.to_string()])?;
        }
        Ok((!queue.is_over()).then_some(job))
    }

    fn submit(&self, tasks: &Tasks, dealt: &Dealt) -> Result<Job, Error> {
        let Tasks { command, of, at_once, processors, directory } = tasks;
        // The task has a copy of this file. A node that has another one at its place has a directory of its own there.
        let script = directory.join("slurm.sh");
        let text = format!(
            "#!/bin/sh\n# {:016x}\nlast=$((SLURM_ARRAY_TASK_ID + {}))\n[ $last -le {of} ] || last={of}\ncmp -s \"$0\" {} || {{ echo \"$SLURMD_NODENAME:\" {}: the directory is not shared with this node; exit 1; }}\nexec {} --shard \"$SLURM_ARRAY_TASK_ID-$last/{of}\"\n",
            number_of_its_own(),
            dealt.each - 1,
            shell_word(&script),
            shell_word(directory),
            shell_words(command)
        );
        confined::directory_of(&script)
            .and_then(|(open, name)| open.replace(name, text.as_bytes()))
            .map_err(|e| failed(&script, &e))?;
        let most = at_once.map_or(String::new(), |most| format!("%{most}"));
        let mut sbatch = Command::new("sbatch");
        sbatch.args(["--parsable", "--requeue", "--open-mode=append"]);
        sbatch.arg(format!("--job-name={}", job_name(directory)));
        sbatch.arg(format!("--array={}{most}", numbers(&dealt.numbers)));
        sbatch.arg(format!("--cpus-per-task={processors}"));
        // A percent sign in the path would be one of Slurm's patterns.
        let log = directory.join("%a.log").display().to_string();
        let plain = directory.display().to_string();
        sbatch.arg(format!("--output={}", log.replacen(&plain, &plain.replace('%', "%%"), 1)));
        sbatch.arg(self.of_partition()).arg(&script);
        let said = tool::run(&mut sbatch, PACKAGE, ASKING)?;
        let number = said.trim().split(';').next().unwrap_or_default();
        let number = number.parse().map(Job);
        number.map_err(|_| Error::MachineFailed(format!("sbatch named no job: {}", said.trim())))
    }

    /// Waits until nothing more comes of an array. Returns what is then left of it.
    fn wait(&self, job: &Job, directory: &Path, say: Say) -> Result<Queue, Error> {
        let mut told: Option<(Queue, Instant)> = None;
        let mut heard = Instant::now();
        loop {
            let queue = match queue(job, directory) {
                Ok(queue) => queue,
                Err(e) if e.is_interruption() || heard.elapsed() > AWAY => return Err(e),
                Err(e) => {
                    say(&format!("! Slurm does not say how far it is, and is asked again: {e}"));
                    pause(TOLD)?;
                    continue;
                }
            };
            heard = Instant::now();
            if queue.is_over() {
                return Ok(queue);
            }
            let Queue { running, waiting, .. } = queue;
            let is_news = told.is_none_or(|(before, at)| before != queue && at.elapsed() >= TOLD);
            if is_news {
                told = Some((queue, Instant::now()));
                say(&format!("{running} tasks run, {waiting} wait"));
            }
            pause(EVERY)?;
        }
    }
}

pub(super) fn ask(program: &str, words: &[&str]) -> Result<String, Error> {
    Ok(tool::run(Command::new(program).args(words), PACKAGE, ASKING)?)
}

/// Does what has to be done whole, also after somebody asked to stop.
pub(super) fn in_any_case<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    work::Cancel::default().during(work)
}

/// Waits, unless somebody asks to stop.
///
/// # Errors
/// If somebody does.
pub fn pause(time: Duration) -> Result<(), Error> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if work::is_cancelled() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(work::POLL);
    }
    Ok(())
}

/// The name of the jobs that make the shards in a directory. A job of another cluster or directory may have the same
/// number, and has another name.
pub(super) fn job_name(directory: &Path) -> String {
    format!("onset-{}", name_of(&directory.display().to_string()))
}

/// The tasks of an array that have not ended.
fn queue(job: &Job, directory: &Path) -> Result<Queue, Error> {
    let (number, name) = (job.0.to_string(), job_name(directory));
    let words = ["--noheader", "--array", "--format=%T", "--jobs", &number, "--name", &name];
    match ask("squeue", &words) {
        Ok(said) => Ok(counted(&said)),
        // Slurm forgets jobs some minutes after their end.
        Err(Error::Rig(rig::Error::Program { why, .. })) if why.contains("Invalid job id") => {
            Ok(Queue::default())
        }
        Err(e) => Err(e),
    }
}

/// The partition that is asked for, or else Slurm's own choice, which `sinfo` marks by a star.
fn chosen(known: &str, asked: Option<&str>) -> Result<String, Error> {
    let known: BTreeSet<&str> = known.split_whitespace().collect();
    let plain = |name: &str| name.trim_end_matches('*').to_owned();
    let found = match asked {
        Some(asked) => known.iter().find(|name| plain(name) == asked),
        None => known.iter().find(|name| name.ends_with('*')),
    };
    let names = known.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ");
    found.map(|name| plain(name)).ok_or_else(|| {
        Error::Unfit(match asked {
            Some(asked) => format!("Slurm has no partition {asked}; choose one of: {names}"),
            None => format!("Slurm has no default partition; name one by --partition: {names}"),
        })
    })
}

fn counted(said: &str) -> Queue {
    let mut queue = Queue::default();
    for state in said.split_whitespace() {
        match state {
            "RUNNING" | "COMPLETING" | "CONFIGURING" | "STAGE_OUT" | "SUSPENDED" => {
                queue.running += 1;
            }
            "PENDING" | "REQUEUED" | "REQUEUE_FED" => queue.waiting += 1,
            "REQUEUE_HOLD" | "SPECIAL_EXIT" => queue.held += 1,
            // The others are states of tasks that ended.
            _ => {}
        }
    }
    queue
}

/// The processors that are not out of use: `sinfo` counts those allocated, idle, others, and all, on a line for each
/// kind of node.
fn usable(said: &str) -> u32 {
    let count =
        |line: &str| line.split('/').take(2).filter_map(|n| n.parse::<u32>().ok()).sum::<u32>();
    said.split_whitespace().map(count).sum()
}

/// Numbers as Slurm writes them: `1-3,7`.
fn numbers(rising: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = rising;
    while let Some(first) = rest.first() {
        let length = rest.iter().zip(*first..).take_while(|(number, next)| *number == next).count();
        let last = rest[length - 1];
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match length {
            1 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{last}"),
        };
        rest = &rest[length..];
    }
    text
}

fn gone(e: std::io::Error) -> std::io::Result<()> {
    if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

fn failed(path: &Path, e: &std::io::Error) -> Error {
    Error::File(format!("{}: {e}", path.display()))
}

/// What the task that made this shard printed last.
pub fn last_words(directory: &Path, shard: u32) -> (PathBuf, String) {
    let log = |task: u32| directory.join(format!("{task}.log"));
    let path = (1..=shard).rev().map(log).find(|path| path.exists()).unwrap_or(log(shard));
    let bytes = confined::read(&path, 64 << 20).unwrap_or_default();
    (path, tool::last_lines(&String::from_utf8_lossy(&bytes), 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_ranges() {
        assert_eq!(numbers(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!((numbers(&[]), numbers(&[5])), (String::new(), "5".into()));
    }

    #[test]
    fn a_task_makes_the_more_shards_the_fewer_run_at_once() {
        let all: Vec<u32> = (1..=10).collect();
        assert_eq!(Dealt::to(&all, 100), Dealt { numbers: all.clone(), each: 1 });
        assert_eq!(Dealt::to(&all, 1), Dealt { numbers: vec![1, 3, 5, 7, 9], each: 2 });
        // A cluster that says nothing of its processors.
        assert_eq!(Dealt::to(&[2, 3, 4, 5, 6, 7, 8, 12], 0).numbers, [1, 3, 5, 7, 11]);
        assert_eq!(usable("3/1/4/8\n0/2/0/2\n"), 6);
        assert_eq!(usable("none\n"), 0);
    }

    #[test]
    fn a_shards_log_is_that_of_the_task_that_made_it() {
        let root = tempfile::tempdir().expect("a directory");
        for task in [1, 4] {
            std::fs::write(root.path().join(format!("{task}.log")), format!("of {task}"))
                .expect("room");
        }
        let said = |shard| last_words(root.path(), shard).1;
        assert_eq!([1, 3, 4, 9].map(said), ["of 1", "of 1", "of 4", "of 4"]);
    }

    #[test]
    fn the_partition_is_the_one_that_is_asked_for_or_the_default() {
        let known = "gpu\ncpu*\n";
        assert_eq!(chosen(known, None).ok().as_deref(), Some("cpu"));
        for asked in ["gpu", "cpu"] {
            assert_eq!(chosen(known, Some(asked)).ok().as_deref(), Some(asked));
        }
        let refused = |known, asked| chosen(known, asked).unwrap_err().to_string();
        assert!(refused(known, Some("x")).contains("choose one of: cpu, gpu"));
        assert!(refused("gpu", None).contains("--partition: gpu"));
    }

    #[test]
    fn only_tasks_that_have_not_ended_are_in_the_queue() {
        let said = "RUNNING\nPENDING\nPENDING\nCOMPLETED\nNODE_FAIL\nFAILED\nCOMPLETING\nREQUEUED\nREQUEUE_HOLD\n";
        assert_eq!(counted(said), Queue { running: 2, waiting: 3, held: 1 });
        assert!(!counted(said).is_over());
        assert!(counted("").is_over() && counted("REQUEUE_HOLD\nFAILED\n").is_over());
    }
}
