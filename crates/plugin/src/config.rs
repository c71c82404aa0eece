// SPDX-License-Identifier: GPL-2.0-or-later
//! The plugin's arguments, as `key=value` words after `-plugin file=…`.

use crate::follow::Plan;
use sample::{Aim, Disturbance, Nanos, Occurrence, ResponderSet, Rule, Schedule, When};
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::RawFd;

/// How the machine comes to the point where measuring begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A booting machine: stop it where measuring would begin, so that it can be saved.
    Boot,
    /// A restored machine: begin to trigger as soon as it runs.
    Restore,
    /// A restored machine: trigger nothing, and stop it after this time, so that it can be saved there.
    Advance(Nanos),
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
}

/// Everything the plugin is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Inherited descriptor of the record channel (a memfd that holds an initialised ring).
    pub ring_fd: RawFd,
    /// See [`Start`].
    pub start: Start,
    /// See [`Stimulus`].
    pub stimulus: Stimulus,
    /// Whether to record the guest's wake-ups.
    pub witness: bool,
    /// What to follow of the guest's kernel, if anything.
    pub follow: Option<Plan>,
    /// Level of the data pins, and the control register, when a restored machine was saved.
    pub registers: (u8, u8),
}

/// A wrong argument; says which and why.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "onset plugin: {}", self.0)
    }
}

impl std::error::Error for ConfigError {}

struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl Words<'_> {
    fn number(&mut self, key: &str) -> Result<u64, ConfigError> {
        let text = self.0.remove(key).ok_or_else(|| ConfigError(format!("{key}= is missing")))?;
        text.parse().map_err(|_| ConfigError(format!("{key}={text} is not a whole number")))
    }

    /// The triggers, where the words give no plan.
    fn triggers(
        &mut self,
        read: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Triggers, ConfigError> {
        let when = match (self.0.remove("times"), self.0.remove("aim")) {
            (Some(path), _) => {
                let time = |bytes: &[u8; 8]| Some(Nanos(u64::from_le_bytes(*bytes)));
                When::Planned(explicit(decoded(path, &read, time)?)?)
            }
            (None, Some(rule)) => When::Aimed(Aim {
                rule: match rule {
                    "listed" => Rule::Listed(self.list(&read)?),
                    name => name.parse().map_err(|e| ConfigError(format!("aim={name} {e}")))?,
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
            Some(path) => decoded(path, &read, Disturbance::decode)?
                .filter(|list| Disturbance::rise(list))
                .ok_or_else(|| {
                    let wrong = "is truncated, does not rise, or is no such list";
                    ConfigError(format!("disturbances={path} {wrong}"))
                })?,
            None => Vec::new(),
        };
        Ok(Triggers {
            when,
            disturbances,
            high: Nanos(self.number("high_ns")?),
            grace: Nanos(self.number("grace_ns")?),
            responders: ResponderSet::from_mask(self.byte("responders")?),
        })
    }

    /// The stretches of a list.
    fn list(
        &mut self,
        read: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Vec<Occurrence>, ConfigError> {
        let path = self.0.remove("list");
        let path = path.ok_or_else(|| ConfigError("aim=listed needs list=".into()))?;
        decoded(path, read, Occurrence::decode)?
            .ok_or_else(|| ConfigError(format!("list={path} is truncated or no list of stretches")))
    }

    fn byte(&mut self, key: &str) -> Result<u8, ConfigError> {
        let n = self.number(key)?;
        u8::try_from(n).map_err(|_| ConfigError(format!("{key}={n} is above 255")))
    }
}

impl Config {
    /// The aim, where triggers have one.
    pub fn aim(&self) -> Option<Aim> {
        match &self.stimulus {
            Stimulus::Triggers(Triggers { when: When::Aimed(aim), .. }) => Some(aim.clone()),
            _ => None,
        }
    }

    /// Reads `key=value` words. `read` fetches the files of explicit trigger times, of a plan, of a list.
    pub fn parse<'a>(
        words: impl IntoIterator<Item = &'a str>,
        read: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Config, ConfigError> {
        let mut map = BTreeMap::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| ConfigError(format!("\"{word}\" is not key=value")))?;
            map.insert(key, value);
        }
        let mut words = Words(map);
        let start = match words.0.remove("start") {
            Some("boot") => Start::Boot,
            Some("restore") => Start::Restore,
            Some("advance") => Start::Advance(Nanos(words.number("advance_ns")?)),
            other => {
                return Err(ConfigError(format!(
                    "start={other:?} is none of boot, restore, advance"
                )));
            }
        };
        let stimulus = match words.0.remove("plan") {
            Some(path) => {
                let plan = read(path).map_err(|e| ConfigError(format!("{path}: {e}")))?;
                if plan.is_empty() || u32::try_from(plan.len()).is_err() {
                    return Err(ConfigError(format!("plan={path} holds {} bytes", plan.len())));
                }
                Stimulus::Probe(plan)
            }
            None => Stimulus::Triggers(words.triggers(&read)?),
        };
        let witness = match words.0.remove("witness") {
            None => false,
            Some("on") => true,
            Some(other) => return Err(ConfigError(format!("witness={other} is not on"))),
        };
        let follow = match words.0.remove("follow") {
            Some(path) => {
                let text = read(path).map_err(|e| ConfigError(format!("{path}: {e}")))?;
                Some(Plan::parse(&String::from_utf8_lossy(&text)).map_err(ConfigError)?)
            }
            None => None,
        };
        let config = Config {
            follow,
            ring_fd: words.number("ring_fd")? as RawFd,
            start,
            stimulus,
            witness,
            registers: (words.byte("pins")?, words.byte("control")?),
        };
        if config.aim().is_some() && config.follow.is_none() {
            return Err(ConfigError("aim= needs follow=, which sees where to".into()));
        }
        if config.witness && config.follow.is_some() {
            return Err(ConfigError("witness= and follow= exclude each other".into()));
        }
        match words.0.keys().next() {
            Some(key) => Err(ConfigError(format!("unknown argument {key}="))),
            None => Ok(config),
        }
    }
}

/// The items of a file, of `N` bytes each; `None` where it is truncated or holds something else.
fn decoded<const N: usize, T>(
    path: &str,
    read: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    decode: impl Fn(&[u8; N]) -> Option<T>,
) -> Result<Option<Vec<T>>, ConfigError> {
    let bytes = read(path).map_err(|e| ConfigError(format!("{path}: {e}")))?;
    let (chunks, rest) = bytes.as_chunks();
    let items: Option<Vec<T>> = chunks.iter().map(decode).collect();
    Ok(items.filter(|_| rest.is_empty()))
}

/// Explicit times: little-endian u64 nanoseconds, strictly rising.
fn explicit(times: Option<Vec<Nanos>>) -> Result<Schedule, ConfigError> {
    times
        .filter(|times| times.windows(2).all(|w| w[0] < w[1]))
        .map(Schedule::Explicit)
        .ok_or_else(|| ConfigError("the trigger times are truncated or do not rise".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Stretch;

    const WORDS: &str = "start=restore ring_fd=5 phase_ns=10 period_ns=1000 jitter_ns=3 seed=9 \
                         count=7 high_ns=500 grace_ns=99 responders=129 pins=1 control=16";

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text.split_whitespace(), |_| Ok(7u64.to_le_bytes().to_vec()))
    }

    fn parse_following(text: &str) -> Result<Config, ConfigError> {
        let text = format!("{text} follow=/f");
        Config::parse(text.split_whitespace(), |_| Ok(b"stacks_from 5\n".into()))
    }

    fn triggers(text: &str) -> Triggers {
        match parse(text).unwrap().stimulus {
            Stimulus::Triggers(triggers) => triggers,
            Stimulus::Probe(_) => panic!("no plan was given"),
        }
    }

    #[test]
    fn all_arguments_arrive() {
        let c = parse(WORDS).unwrap();
        assert_eq!((c.ring_fd, c.start, c.registers), (5, Start::Restore, (1, 16)));
        let t = triggers(WORDS);
        assert_eq!((t.high, t.grace, t.responders.mask()), (Nanos(500), Nanos(99), 129));
        let When::Planned(schedule) = t.when else { panic!("there is no aim") };
        assert_eq!(schedule.due(0).map(|t| t.0 / 10), Some(1));
        assert_eq!(schedule.count(), 7);
    }

    #[test]
    fn a_machine_that_is_advanced_is_told_how_far() {
        let advance = WORDS.replace("start=restore", "start=advance advance_ns=70");
        assert_eq!(parse(&advance).unwrap().start, Start::Advance(Nanos(70)));
        let error = parse(&WORDS.replace("restore", "advance")).unwrap_err().to_string();
        assert!(error.contains("advance_ns= is missing"), "{error}");
    }

    #[test]
    fn an_aim_takes_the_place_of_a_schedule_and_needs_a_follower() {
        let text = "start=restore aim=longest kinds=3 gap_ns=5 count=7 until_ns=9 seed=1 ring_fd=1 high_ns=1 \
                    grace_ns=1 responders=1 pins=0 control=0";
        let Config { stimulus: Stimulus::Triggers(triggers), .. } = parse_following(text).unwrap()
        else {
            panic!("no plan was given")
        };
        let (rule, gap, until) = (Rule::Longest, Nanos(5), Nanos(9));
        let aim = Aim { rule, kinds: 3, gap, count: 7, until, seed: 1 };
        assert_eq!(triggers.when, When::Aimed(aim));
        assert!(parse(text).unwrap_err().to_string().contains("follow="));
        let wrong = parse(&text.replace("longest", "widest")).unwrap_err().to_string();
        assert!(wrong.contains("aim=widest"), "{wrong}");
    }

    #[test]
    fn listed_stretches_come_from_a_file() {
        let text = "start=restore aim=listed list=/l kinds=3 gap_ns=5 count=7 until_ns=9 seed=1 ring_fd=1 high_ns=1 \
                    grace_ns=1 responders=1 pins=0 control=0 follow=/f";
        let occurrence = Occurrence { kind: Stretch::IrqsOff, key: 5, ordinal: 3 };
        let parse = |list: &[u8], text: &str| {
            let read = |path: &str| match path {
                "/l" => Ok(list.to_vec()),
                _ => Ok(b"stacks_from 5\n".to_vec()),
            };
            Config::parse(text.split_whitespace(), read)
        };
        let whole = [occurrence.encode(), occurrence.encode()].concat();
        let aim = parse(&whole, text).unwrap().aim().unwrap();
        assert_eq!(aim.rule, Rule::Listed(vec![occurrence; 2]));
        let torn = parse(&whole[1..], text).unwrap_err().to_string();
        assert!(torn.contains("list=/l"), "{torn}");
        let missing = parse(&whole, &text.replace("list=/l", "")).unwrap_err().to_string();
        assert!(missing.contains("needs list="), "{missing}");
    }

    #[test]
    fn a_plan_takes_the_place_of_triggers() {
        let text = "start=restore plan=/p ring_fd=1 pins=0 control=0";
        assert_eq!(parse(text).unwrap().stimulus, Stimulus::Probe(7u64.to_le_bytes().to_vec()));
        assert!(parse(&format!("{text} witness=on")).unwrap().witness);
        let both = parse(&format!("{text} period_ns=5")).unwrap_err().to_string();
        assert!(both.contains("unknown argument period_ns="), "{both}");
        let empty = Config::parse(text.split_whitespace(), |_| Ok(Vec::new())).unwrap_err();
        assert!(empty.to_string().contains("plan=/p holds 0 bytes"), "{empty}");
    }

    #[test]
    fn a_missing_unknown_or_wrong_argument_is_named() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message(&WORDS.replace("grace_ns=99", "")).contains("grace_ns= is missing"));
        assert!(message(&format!("{WORDS} colour=red")).contains("unknown argument colour="));
        assert!(message(&WORDS.replace("pins=1", "pins=256")).contains("pins=256"));
        assert!(message(&WORDS.replace("seed=9", "seed=x")).contains("seed=x"));
        assert!(message(&WORDS.replace("restore", "now")).contains("start="));
        assert!(message(&format!("{WORDS} witness=off")).contains("witness=off"));
        assert!(message("nonsense").contains("\"nonsense\""));
    }

    #[test]
    fn explicit_times_come_from_a_file_and_must_rise() {
        let text =
            "start=boot times=/t ring_fd=1 high_ns=1 grace_ns=1 responders=1 pins=0 control=0";
        assert_eq!(triggers(text).when, When::Planned(Schedule::Explicit(vec![Nanos(7)])));
        for wrong in [[0; 9].as_slice(), &[0; 16]] {
            let read = |_: &str| Ok(wrong.to_vec());
            let message = Config::parse(text.split_whitespace(), read).unwrap_err().to_string();
            assert!(message.contains("trigger times are truncated"), "{message}");
        }
    }

    #[test]
    fn disturbances_come_from_a_file_and_must_rise() {
        let text = format!("{WORDS} disturbances=/d");
        let parse = |bytes: Vec<u8>| {
            Config::parse(text.split_whitespace(), |_| Ok(bytes.clone())).map(|c| c.stimulus)
        };
        let list = [(5, 0), (6, 64)].map(|(at, timers)| Disturbance { at: Nanos(at), timers });
        let bytes: Vec<u8> = list.iter().flat_map(Disturbance::encode).collect();
        let Ok(Stimulus::Triggers(read)) = parse(bytes.clone()) else { panic!("a whole list") };
        assert_eq!(read.disturbances, list);
        assert_eq!(triggers(WORDS).disturbances, []);
        let (first, second) = bytes.split_at(16);
        for wrong in [[second, first].concat(), first[1..].to_vec(), vec![65; 16]] {
            let message = parse(wrong).unwrap_err().to_string();
            assert!(message.contains("disturbances=/d"), "{message}");
        }
    }
}
