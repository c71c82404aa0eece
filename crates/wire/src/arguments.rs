// SPDX-License-Identifier: GPL-2.0-or-later
//! The plugin's arguments: `key=value` words after `-plugin file=…`. Long values are in files, which words name. The
//! host writes words and files, and the plugin reads them.
//!
//! The module does not touch the files: its caller writes and reads them.

use crate::{FunctionStarts, Plan};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt;
use core::ops::RangeInclusive;
use sample::{Aim, Disturbance, Nanos, Occurrence, ResponderSet, Rule, Schedule, Stretch, When};

/// The one word with which QEMU is tried and nothing is measured. QEMU then ends, and says [`PASSED`] where it passes
/// what can be checked before there is a machine.
pub const TRIAL: &str = "trial";
/// What a QEMU that passes says, before the version of the plugin interface.
pub const PASSED: &str = "onset plugin: passed, with version ";
/// The variable of the environment that says which version of QEMU's plugin interface the plugin is to declare.
pub const DECLARES: &CStr = c"ONSET_PLUGIN_INTERFACE";
/// The versions that the plugin knows. The first one is the first that reads the guest's memory.
pub const INTERFACES: RangeInclusive<u32> = 4..=7;
/// The versions of QEMU (major and minor number) that onset was tried with, rising. Host and plugin both ask.
pub const QEMUS_TRIED: [&str; 2] = ["10.0", "11.1"];

/// How the machine comes to the point where measuring begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A booting machine: stop it where measuring would begin, so that it can be saved.
    Boot,
    /// A restored machine: begin to trigger as soon as it runs.
    Restore,
    /// A restored machine: trigger nothing, and stop it after this time, so that it can be saved there.
    Advance(Nanos),
    /// A restored machine: trigger nothing, and serve [requests](crate::WalkRequest).
    Walk,
}

/// What a QEMU needs that forks, or was forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forking {
    /// Inherited descriptor of the socket that [`WalkRequest`](crate::WalkRequest)s come through. A QEMU that serves
    /// none ends when the other end is closed.
    pub requests_fd: i32,
    /// The directory with the machine's files: `console`, `wire`, and those of children
    /// ([`WalkRequest::file`](crate::WalkRequest::file)).
    pub directory: String,
}

/// What is measured once the machine is where measuring begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// The plugin triggers, and ends the run.
    Triggers(Triggers),
    /// The guest runs the probe of this plan, whose bytes it reads from a port, and ends the run.
    Probe(Vec<u8>),
}

/// When to trigger, and whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// When to trigger.
    pub when: When,
    /// How long the line stays high, in ns after each trigger.
    pub high: Nanos,
    /// How long to wait for answers after the last trigger.
    pub grace: Nanos,
    /// Who is going to answer.
    pub responders: ResponderSet,
    /// What disturbs meanwhile: rising.
    pub disturbances: Vec<Disturbance>,
    /// What the guest does meanwhile, as bytes that it reads from a port. `None` if it does what it did before.
    pub work: Option<Vec<u8>>,
}

/// Everything the plugin is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Inherited descriptor of the channel (a memfd that holds an initialised ring).
    pub ring_fd: i32,
    /// Inherited descriptor of the pipe that [`Command`](crate::Command)s come through, where triggers are commanded.
    pub commands_fd: Option<i32>,
    /// See [`Start`].
    pub start: Start,
    /// See [`Stimulus`].
    pub stimulus: Stimulus,
    /// Whether to record the guest's wake-ups.
    pub witness: bool,
    /// The functions by which the witness counts the instructions of a stretch, if it is to count them.
    pub functions: Option<FunctionStarts>,
    /// What to follow of the guest's kernel, if anything.
    pub follow: Option<Plan>,
    /// Level of the pins, and the control register, when a restored machine was saved.
    pub registers: (u16, u8),
    /// See [`Forking`].
    pub forking: Option<Forking>,
}

/// A wrong argument; says which and why.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongArgument(String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "onset plugin: {}", self.0)
    }
}

impl core::error::Error for WrongArgument {}

struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl Words<'_> {
    fn number(&mut self, key: &str) -> Result<u64, WrongArgument> {
        let text = self.0.remove(key).ok_or_else(|| WrongArgument(format!("{key}= is missing")))?;
        text.parse().map_err(|_| WrongArgument(format!("{key}={text} is not a whole number")))
    }

    fn optional(&mut self, key: &str) -> Result<Option<u64>, WrongArgument> {
        if self.0.contains_key(key) { self.number(key).map(Some) } else { Ok(None) }
    }

    /// The triggers, where the words give no plan.
    fn triggers<E: fmt::Display>(
        &mut self,
        is_commanded: bool,
        read: impl Fn(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Triggers, WrongArgument> {
        let when = match (self.0.remove("times"), self.0.remove("aim")) {
            (None, None) if is_commanded => When::Commanded,
            (Some(path), _) => {
                let time = |bytes: &[u8; 8]| Some(Nanos(u64::from_le_bytes(*bytes)));
                When::Planned(explicit(decoded(path, &read, time)?)?)
            }
            (None, Some(rule)) => When::Aimed(Aim {
                rule: match rule {
                    "listed" => Rule::Listed(self.list(&read)?),
                    name => name.parse().map_err(|e| WrongArgument(format!("aim={name} {e}")))?,
                },
                kinds: self.byte("kinds")?,
                gap: Nanos(self.number("gap_ns")?),
                count: self.number("count")?,
                until: Nanos(self.number("until_ns")?),
                seed: self.number("seed")?,
            }),
            (None, None) => When::Planned(Schedule::Periodic {
                phase: Nanos(self.number("phase_ns")?),
                period: Nanos(self.number("period_ns")?),
                jitter: Nanos(self.number("jitter_ns")?),
                seed: self.number("seed")?,
                count: self.number("count")?,
            }),
        };
        let disturbances = match self.0.remove("disturbances") {
            Some(path) => decoded(path, &read, disturbance_of)?
                .filter(|list| Disturbance::rise(list))
                .ok_or_else(|| {
                    let wrong = "is truncated, does not rise, or is no such list";
                    WrongArgument(format!("disturbances={path} {wrong}"))
                })?,
            None => Vec::new(),
        };
        let work = match self.0.remove("work") {
            Some(path) => Some(read(path).map_err(|e| WrongArgument(format!("{path}: {e}")))?),
            None => None,
        };
        Ok(Triggers {
            when,
            disturbances,
            work,
            high: Nanos(self.number("high_ns")?),
            grace: Nanos(self.number("grace_ns")?),
            responders: self.responders()?,
        })
    }

    /// The stretches of a list.
    fn list<E: fmt::Display>(
        &mut self,
        read: impl Fn(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<Occurrence>, WrongArgument> {
        let path = self.0.remove("list");
        let path = path.ok_or_else(|| WrongArgument("aim=listed needs list=".into()))?;
        decoded(path, read, occurrence_of)?.ok_or_else(|| {
            WrongArgument(format!("list={path} is truncated or no list of stretches"))
        })
    }

    /// Where functions begin, if the witness is to count by them.
    fn functions<E: fmt::Display>(
        &mut self,
        read: impl Fn(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Option<FunctionStarts>, WrongArgument> {
        let Some(path) = self.0.remove("functions") else { return Ok(None) };
        let word = |bytes: &[u8; 8]| Some(u64::from_le_bytes(*bytes));
        let starts = decoded(path, &read, word)?.and_then(|words| FunctionStarts::of_words(&words));
        let wrong = || WrongArgument(format!("functions={path} is truncated or does not rise"));
        starts.ok_or_else(wrong).map(Some)
    }

    fn forking(&mut self) -> Result<Option<Forking>, WrongArgument> {
        match (self.optional("requests_fd")?, self.0.remove("forks")) {
            (Some(fd), Some(directory)) => {
                Ok(Some(Forking { requests_fd: fd as i32, directory: directory.into() }))
            }
            (None, None) => Ok(None),
            _ => Err(WrongArgument("requests_fd= and forks= need each other".into())),
        }
    }

    fn responders(&mut self) -> Result<ResponderSet, WrongArgument> {
        let mask = self.pins("responders")?;
        let wrong = || WrongArgument(format!("responders={mask} has a bit of no responder"));
        ResponderSet::from_mask(mask).ok_or_else(wrong)
    }

    fn pins(&mut self, key: &str) -> Result<u16, WrongArgument> {
        let n = self.number(key)?;
        u16::try_from(n).map_err(|_| WrongArgument(format!("{key}={n} is above 65535")))
    }

    fn byte(&mut self, key: &str) -> Result<u8, WrongArgument> {
        let n = self.number(key)?;
        u8::try_from(n).map_err(|_| WrongArgument(format!("{key}={n} is above 255")))
    }
}

impl Arguments {
    /// The aim, where triggers have one.
    pub fn aim(&self) -> Option<Aim> {
        match &self.stimulus {
            Stimulus::Triggers(Triggers { when: When::Aimed(aim), .. }) => Some(aim.clone()),
            _ => None,
        }
    }

    fn is_commanded(&self) -> bool {
        matches!(&self.stimulus, Stimulus::Triggers(Triggers { when: When::Commanded, .. }))
    }

    /// Whether this is for a child that was forked, which goes on to follow what its parent followed.
    fn is_forked(&self) -> bool {
        self.forking.is_some() && self.start == Start::Restore
    }

    /// Refuses what does not go together.
    fn check(&self) -> Result<(), WrongArgument> {
        let wrong = [
            (
                self.commands_fd.is_some() && !self.is_commanded(),
                "commands_fd= needs triggers that nothing else plans",
            ),
            (
                self.aim().is_some() && self.follow.is_none() && !self.is_forked(),
                "aim= needs follow=, which sees where to",
            ),
            (self.witness && self.follow.is_some(), "witness= and follow= exclude each other"),
            (self.functions.is_some() && !self.witness, "functions= needs witness=, which counts"),
            (
                self.start == Start::Walk && self.forking.is_none(),
                "start=walk needs requests_fd= and forks=",
            ),
        ];
        match wrong.iter().find(|(is_so, _)| *is_so) {
            Some((_, why)) => Err(WrongArgument((*why).into())),
            None => Ok(()),
        }
    }

    /// Reads `key=value` words; `read` fetches the files that they name.
    ///
    /// # Errors
    /// The word that is wrong, or what is missing.
    pub fn parse<'a, E: fmt::Display>(
        words: impl IntoIterator<Item = &'a str>,
        read: impl Fn(&str) -> Result<Vec<u8>, E>,
    ) -> Result<Arguments, WrongArgument> {
        let mut map = BTreeMap::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| WrongArgument(format!("\"{word}\" is not key=value")))?;
            map.insert(key, value);
        }
        let mut words = Words(map);
        let start = match words.0.remove("start") {
            Some("boot") => Start::Boot,
            Some("restore") => Start::Restore,
            Some("advance") => Start::Advance(Nanos(words.number("advance_ns")?)),
            Some("walk") => Start::Walk,
            other => {
                return Err(WrongArgument(format!(
                    "start={other:?} is none of boot, restore, advance, walk"
                )));
            }
        };
        let commands_fd = words.optional("commands_fd")?.map(|fd| fd as i32);
        let stimulus = match words.0.remove("plan") {
            Some(path) => {
                let plan = read(path).map_err(|e| WrongArgument(format!("{path}: {e}")))?;
                if plan.is_empty() || u32::try_from(plan.len()).is_err() {
                    return Err(WrongArgument(format!("plan={path} holds {} bytes", plan.len())));
                }
                Stimulus::Probe(plan)
            }
            None => Stimulus::Triggers(words.triggers(commands_fd.is_some(), &read)?),
        };
        let witness = match words.0.remove("witness") {
            None => false,
            Some("on") => true,
            Some(other) => return Err(WrongArgument(format!("witness={other} is not on"))),
        };
        let functions = words.functions(&read)?;
        let follow = match words.0.remove("follow") {
            Some(path) => {
                let text = read(path).map_err(|e| WrongArgument(format!("{path}: {e}")))?;
                let plan = String::from_utf8_lossy(&text).parse::<Plan>();
                Some(plan.map_err(|e| WrongArgument(e.to_string()))?)
            }
            None => None,
        };
        let arguments = Arguments {
            follow,
            ring_fd: words.number("ring_fd")? as i32,
            commands_fd,
            start,
            stimulus,
            witness,
            functions,
            registers: (words.pins("pins")?, words.byte("control")?),
            forking: words.forking()?,
        };
        arguments.check()?;
        match words.0.keys().next() {
            Some(key) => Err(WrongArgument(format!("unknown argument {key}="))),
            None => Ok(arguments),
        }
    }

    /// As words of `key=value`, which [`Arguments::parse`] reads. `file` writes a file of a given name and says its
    /// path.
    ///
    /// # Errors
    /// Those of `file`.
    pub fn words<E>(
        &self,
        mut file: impl FnMut(&str, &[u8]) -> Result<String, E>,
    ) -> Result<Vec<String>, E> {
        let mut words = Vec::from([format!("ring_fd={}", self.ring_fd)]);
        words.extend(self.commands_fd.map(|fd| format!("commands_fd={fd}")));
        match self.start {
            Start::Boot => words.push("start=boot".into()),
            Start::Restore => words.push("start=restore".into()),
            Start::Advance(time) => {
                words.extend(["start=advance".into(), format!("advance_ns={}", time.0)]);
            }
            Start::Walk => words.push("start=walk".into()),
        }
        if let Some(Forking { requests_fd, directory }) = &self.forking {
            words.extend([format!("requests_fd={requests_fd}"), format!("forks={directory}")]);
        }
        match &self.stimulus {
            Stimulus::Triggers(triggers) => triggers.words(&mut words, &mut file)?,
            Stimulus::Probe(plan) => words.push(format!("plan={}", file("plan", plan)?)),
        }
        if self.witness {
            words.push("witness=on".into());
        }
        if let Some(functions) = &self.functions {
            words.push(format!("functions={}", file("functions", &functions.to_bytes())?));
        }
        if let Some(plan) = &self.follow {
            words.push(format!("follow={}", file("follow", plan.to_string().as_bytes())?));
        }
        let (pins, control) = self.registers;
        words.extend([format!("pins={pins}"), format!("control={control}")]);
        Ok(words)
    }
}

impl Triggers {
    fn words<E>(
        &self,
        words: &mut Vec<String>,
        file: &mut impl FnMut(&str, &[u8]) -> Result<String, E>,
    ) -> Result<(), E> {
        match &self.when {
            When::Planned(Schedule::Periodic { phase, period, jitter, seed, count }) => {
                words.extend([
                    format!("phase_ns={}", phase.0),
                    format!("period_ns={}", period.0),
                    format!("jitter_ns={}", jitter.0),
                    format!("seed={seed}"),
                    format!("count={count}"),
                ]);
            }
            When::Planned(Schedule::Explicit(times)) => {
                let bytes: Vec<u8> = times.iter().flat_map(|t| t.0.to_le_bytes()).collect();
                words.push(format!("times={}", file("times", &bytes)?));
            }
            // The descriptor says it.
            When::Commanded => {}
            When::Aimed(Aim { rule, kinds, gap, count, until, seed }) => {
                if let Rule::Listed(list) = rule {
                    let bytes: Vec<u8> = list.iter().flat_map(bytes_of_occurrence).collect();
                    words.push(format!("list={}", file("list", &bytes)?));
                }
                words.extend([
                    format!("aim={}", rule.name()),
                    format!("kinds={kinds}"),
                    format!("gap_ns={}", gap.0),
                    format!("count={count}"),
                    format!("until_ns={}", until.0),
                    format!("seed={seed}"),
                ]);
            }
        }
        words.extend([
            format!("high_ns={}", self.high.0),
            format!("grace_ns={}", self.grace.0),
            format!("responders={}", self.responders.mask()),
        ]);
        if !self.disturbances.is_empty() {
            let all = self.disturbances.iter().flat_map(bytes_of_disturbance);
            let bytes: Vec<u8> = all.collect();
            words.push(format!("disturbances={}", file("disturbances", &bytes)?));
        }
        if let Some(work) = &self.work {
            words.push(format!("work={}", file("work", work)?));
        }
        Ok(())
    }
}

/// An occurrence in a list, little endian: `key:u64 ordinal:u32 kind:u8`, and three bytes that are 0.
fn bytes_of_occurrence(Occurrence { kind, key, ordinal }: &Occurrence) -> [u8; 16] {
    let mut b = [0; 16];
    b[..8].copy_from_slice(&key.to_le_bytes());
    b[8..12].copy_from_slice(&ordinal.to_le_bytes());
    b[12] = *kind as u8;
    b
}

/// What `b` says; `None` where it is no encoding.
fn occurrence_of(b: &[u8; 16]) -> Option<Occurrence> {
    let [key @ .., _, _, _, _, _, _, _, _] = *b;
    let [_, _, _, _, _, _, _, _, ordinal @ .., kind, 0, 0, 0] = *b else { return None };
    let kind = Stretch::from_bit(kind)?;
    Some(Occurrence { kind, key: u64::from_le_bytes(key), ordinal: u32::from_le_bytes(ordinal) })
}

/// A disturbance in a list, little endian: `at_ns:u64 timers:u8`, and seven bytes that are 0.
fn bytes_of_disturbance(Disturbance { at, timers }: &Disturbance) -> [u8; 16] {
    let mut b = [0; 16];
    b[..8].copy_from_slice(&at.0.to_le_bytes());
    b[8] = *timers;
    b
}

/// What `b` says; `None` where it is no encoding.
fn disturbance_of(b: &[u8; 16]) -> Option<Disturbance> {
    const MAX: u8 = Disturbance::TIMERS_MAX;
    let [at @ .., _, _, _, _, _, _, _, _] = *b;
    let [_, _, _, _, _, _, _, _, timers @ 0..=MAX, 0, 0, 0, 0, 0, 0, 0] = *b else { return None };
    Some(Disturbance { at: Nanos(u64::from_le_bytes(at)), timers })
}

/// The items of a file, of `N` bytes each; `None` where it is truncated or holds something else.
fn decoded<const N: usize, T, E: fmt::Display>(
    path: &str,
    read: impl Fn(&str) -> Result<Vec<u8>, E>,
    decode: impl Fn(&[u8; N]) -> Option<T>,
) -> Result<Option<Vec<T>>, WrongArgument> {
    let bytes = read(path).map_err(|e| WrongArgument(format!("{path}: {e}")))?;
    let (chunks, rest) = bytes.as_chunks();
    let items: Option<Vec<T>> = chunks.iter().map(decode).collect();
    Ok(items.filter(|_| rest.is_empty()))
}

/// Explicit times: little-endian u64 nanoseconds, strictly rising.
fn explicit(times: Option<Vec<Nanos>>) -> Result<Schedule, WrongArgument> {
    times
        .filter(|times| times.windows(2).all(|w| w[0] < w[1]))
        .map(Schedule::Explicit)
        .ok_or_else(|| WrongArgument("the trigger times are truncated or do not rise".into()))
}

#[cfg(test)]
mod tests;
