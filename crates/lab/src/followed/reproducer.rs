// SPDX-License-Identifier: GPL-2.0-or-later
//! A small JSON file with all that is needed to replay one latency to the instruction.

use super::{MadeWith, Subject};
use crate::Error;
use agent::{TaskProcess, Work};
use experiment::{
    GUEST_SEED, Load, MEMORY_MAX, MEMORY_MIN, Mebibytes, RUN_MAX, SHIFT_MAX, WARM_UP_MAX,
};
use rig::{Bench, Cache, Contents, Generator, Guest, Stimulus};
use sample::{Disturbance, Insns, Nanos, Responder, ResponderSet, Sample, Schedule, When};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The number of the format that this version writes and reads.
const SCHEMA: u64 = 2;
/// How much longer than the latency the replay waits for an answer, at least. The wait does not depend on that of the
/// run with the find: there, more triggers came after the answer, or a hunt waited for longer than its experiment says.
const GRACE_BEYOND: Nanos = Nanos::from_millis(1);
/// The most bytes of a find. A trigger takes 20 bytes, and a run of a million is in a bundle.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One latency that can be reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproducer {
    /// The number of the format, 2.
    pub schema: u64,
    /// The name of the kernel in the cache, as in `6.12-rt`.
    pub kernel: String,
    /// The kernel's `uname -r`.
    pub release: String,
    /// The words for the kernel's command line.
    pub parameters: Vec<String>,
    /// The load that keeps the guest busy.
    #[serde(with = "by_name")]
    pub load: Load,
    /// The time under load before measuring.
    pub warm_up_ns: Nanos,
    /// How long after the warm-up measuring begins, from a snapshot of its own.
    #[serde(default)]
    pub begin_after_ns: Nanos,
    /// The guest's memory in MiB.
    pub memory_mib: u32,
    /// An instruction takes 2^icount_shift ns of virtual time.
    pub icount_shift: u8,
    /// The seed of the random numbers with which the guest's kernel begins.
    #[serde(default = "seed")]
    pub guest_seed: u32,
    /// The parameters of the driver.
    pub driver: Option<String>,
    /// Modules on the host. Below, programs of the host, and files of the host with their paths in the guest.
    pub modules: Vec<PathBuf>,
    /// Programs of the host.
    pub programs: Vec<String>,
    /// Files of the host, with their paths in the guest.
    pub files: Vec<(PathBuf, String)>,
    /// The program that is the responder `task`: its path in the guest, and its arguments. If absent, onset's own task
    /// answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<Vec<String>>,
    /// The key of the snapshot.
    pub snapshot: String,
    /// The parts that make up the guest: the hash of each by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub contents_blake3: BTreeMap<String, String>,
    /// The version of QEMU.
    pub qemu: String,
    /// The version of the plugin, and the beginning of its hash.
    pub plugin: String,
    /// The times of all triggers until the answer, since measuring began.
    pub times_ns: Vec<Nanos>,
    /// The disturbances until then.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub disturbances: Vec<Disturbance>,
    /// The script of what the guest does from the beginning of measuring on, besides its load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<String>,
    /// How long the line stays high.
    pub high_ns: Nanos,
    /// How long the replay waits for an answer to the last trigger. It is longer than the latency.
    pub grace_ns: Nanos,
    /// The responders.
    #[serde(with = "names")]
    pub responders: ResponderSet,
    /// The latency.
    pub answer: Answer,
}

/// The latency that a [`Reproducer`] produces again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The responder.
    #[serde(with = "by_name")]
    pub responder: Responder,
    /// The trigger, as an index into the reproducer's times.
    pub trigger: u64,
    /// The time from the trigger to the answer.
    pub latency_ns: Nanos,
    /// The instructions between trigger and answer.
    pub insns: Insns,
}

impl Answer {
    /// How long the replay waits for the answer, at least `grace`. The answered trigger is the last one, or an earlier
    /// one.
    fn waited_for(&self, grace: Nanos) -> Nanos {
        grace.max(self.latency_ns.saturating_add(GRACE_BEYOND))
    }
}

/// The seed of finds that do not have one.
fn seed() -> u32 {
    GUEST_SEED
}

/// The most bytes of a find's script. The guest reads them by four from a port. A genome's script has some hundred.
const WORK_BYTES_MAX: usize = 64 << 10;
/// How long the work of a find may go on: until the guest ends.
const WORKS_FOR_NS: u64 = 3_600_000_000_000;

/// What tells the guest to run this script from the beginning of measuring on.
pub fn order(script: &str) -> Vec<u8> {
    let work = Work { script: script.into(), for_ns: WORKS_FOR_NS };
    serde_json::to_vec(&work).expect("plain data")
}

/// The script of an order.
fn script(order: &[u8]) -> Option<String> {
    serde_json::from_slice::<Work>(order).ok().map(|work| work.script)
}

impl Reproducer {
    /// The reproducer of an `answer` of a guest to triggers that were raised at these `times` since measuring began.
    /// The times are all until the answer, also those after the trigger that was answered. Later triggers of the
    /// generator do not matter. Of its disturbances, those until the answer are kept.
    pub fn of(
        guest: &Guest,
        generator: &Generator,
        made_with: &MadeWith,
        times: Vec<Nanos>,
        answer: Answer,
    ) -> Reproducer {
        let Guest { kernel, contents, .. } = guest;
        let late = times.get(answer.trigger as usize).map_or(0, |at| at.0);
        let until = late.saturating_add(answer.latency_ns.0);
        let disturbances = generator.disturbances.iter().filter(|d| d.at.0 <= until);
        Reproducer {
            schema: SCHEMA,
            kernel: kernel.record.name.clone(),
            release: made_with.release.clone(),
            parameters: guest.parameters.clone(),
            load: contents.load,
            warm_up_ns: Nanos(contents.warm_up_ns),
            begin_after_ns: guest.begin_after,
            memory_mib: guest.memory_mib,
            icount_shift: guest.shift,
            guest_seed: guest.seed,
            driver: contents.driver.clone(),
            modules: contents.modules.clone(),
            programs: contents.programs.clone(),
            files: contents.files.clone(),
            program: match &contents.task {
                Some(TaskProcess::Program(command)) => Some(command.clone()),
                Some(TaskProcess::Agent) | None => None,
            },
            snapshot: made_with.snapshot.clone(),
            contents_blake3: made_with.contents.clone(),
            qemu: made_with.qemu.clone(),
            plugin: made_with.plugin.clone(),
            times_ns: times,
            disturbances: disturbances.copied().collect(),
            work: generator.work.as_deref().and_then(script),
            high_ns: generator.high,
            grace_ns: answer.waited_for(generator.grace),
            responders: generator.responders,
            answer,
        }
    }

    /// Reads a reproducer from its file.
    ///
    /// # Errors
    /// If the file is not readable, has another schema, or is no reproducer.
    pub fn read(path: &Path) -> Result<Reproducer, Error> {
        let shown = path.display();
        let unreadable = |e| Error::File(format!("cannot read the find {shown}: {e}"));
        let corrupt = |why: String| {
            Error::File(format!(
                "{shown} is no find, or a damaged one: {why}; take another file of the hunt, or a run"
            ))
        };
        let bytes = match confined::read(path, FILE_BYTES_MAX) {
            Err(e) if e.kind() == ErrorKind::FileTooLarge => {
                return Err(corrupt(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
            }
            read => read.map_err(unreadable)?,
        };
        /// The one key that a file of every schema has.
        #[derive(Deserialize)]
        struct Any {
            schema: u64,
        }
        let Any { schema } = serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
        if schema != SCHEMA {
            return Err(Error::File(format!(
                "the find {shown} has schema {schema}, and this onset reads {SCHEMA}; replay it with the onset that wrote it"
            )));
        }
        let read: Reproducer =
            serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
        read.check().map_err(|why| corrupt(why.into()))?;
        Ok(read)
    }

    /// Checks what the types do not say.
    fn check(&self) -> Result<(), &'static str> {
        let trigger = usize::try_from(self.answer.trigger).ok();
        if trigger.and_then(|t| self.times_ns.get(t)).is_none() {
            return Err("the trigger of its answer is not among its times");
        }
        if !self.times_ns.windows(2).all(|w| w[0] < w[1]) {
            return Err("its times do not rise");
        }
        if !Disturbance::rise(&self.disturbances) {
            return Err("its disturbances do not rise");
        }
        if self.disturbances.iter().any(|d| d.timers > Disturbance::TIMERS_MAX) {
            return Err("it disturbs with more timers than the driver has");
        }
        if !self.responders.contains(self.answer.responder) {
            return Err("its answer is by none of its responders");
        }
        if self.high_ns.0 == 0 {
            return Err("its line is never high");
        }
        let last = self.times_ns.last().and_then(|at| at.checked_add(self.grace_ns));
        if last.is_none_or(|end| end > RUN_MAX) || self.high_ns > RUN_MAX {
            return Err("its last trigger and its grace come later than a run of 31 days ends");
        }
        if self.warm_up_ns > WARM_UP_MAX || self.begin_after_ns > RUN_MAX {
            return Err(
                "its warm-up is longer than a day, or it begins later than a run of 31 days ends",
            );
        }
        if self.answer.latency_ns > RUN_MAX {
            return Err("its answer is later than a run of 31 days ends");
        }
        if !(MEMORY_MIN..=MEMORY_MAX).contains(&Mebibytes(self.memory_mib)) {
            return Err("its guest has a memory_mib that no guest can have");
        }
        if u64::from(self.icount_shift) > SHIFT_MAX {
            return Err("its icount_shift is more than QEMU takes");
        }
        if self.work.as_ref().is_some_and(|script| script.len() > WORK_BYTES_MAX) {
            return Err("its work is a longer script than the guest reads");
        }
        Ok(())
    }

    /// The answer as a run measures it. Trigger and series are those of the reproducer's own run.
    pub fn sample(&self) -> Sample {
        let Answer { responder, trigger, latency_ns, insns } = self.answer;
        // This was checked when the file was read. For a run that was found just now it cannot be otherwise.
        let at = self.times_ns.get(trigger as usize).copied().unwrap_or_default();
        let series = self.responders.rank(responder);
        Sample { series, trigger, at, latency: latency_ns, path: Some(insns) }
    }

    fn task(&self) -> Option<TaskProcess> {
        let task = self.program.clone().map_or(TaskProcess::Agent, TaskProcess::Program);
        self.responders.contains(Responder::Task).then_some(task)
    }

    /// The guest and the triggers, for [`Ready::new`](super::Ready::new).
    ///
    /// # Errors
    /// If the kernel is not in the cache.
    pub fn subject(&self, bench: &Bench) -> Result<Subject, Error> {
        let kernel = Cache::kernels(bench.cache())?.get(&self.kernel)?;
        let contents = Contents {
            agent: bench.parts().agent.clone(),
            load: self.load,
            driver: self.driver.clone(),
            task: self.task(),
            warm_up_ns: self.warm_up_ns.0,
            ends_after_ns: None,
            modules: self.modules.clone(),
            programs: self.programs.clone(),
            files: self.files.clone(),
        };
        let guest = Guest {
            kernel,
            parameters: self.parameters.clone(),
            contents,
            memory_mib: self.memory_mib,
            shift: self.icount_shift,
            seed: self.guest_seed,
            begin_after: self.begin_after_ns,
        };
        let generator = Generator {
            when: When::Planned(Schedule::Explicit(self.times_ns.clone())),
            high: self.high_ns,
            // Older files may have a shorter time.
            grace: self.answer.waited_for(self.grace_ns),
            responders: self.responders,
            disturbances: self.disturbances.clone(),
            work: self.work.as_ref().map(|script| order(script)),
        };
        let made_with = MadeWith {
            qemu: self.qemu.clone(),
            plugin: self.plugin.clone(),
            release: self.release.clone(),
            snapshot: self.snapshot.clone(),
            contents: self.contents_blake3.clone(),
        };
        let stimulus = Stimulus::Triggers(generator);
        Ok(Subject { guest, stimulus, made_with: Some(made_with) })
    }
}

/// Reads and writes a thing by its name in files.
mod by_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Reads and writes a set of responders as the list of their names.
mod names {
    use sample::{Responder, ResponderSet};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(set: &ResponderSet, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(Responder::name))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ResponderSet, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        names.iter().map(|n| n.parse::<Responder>().map_err(D::Error::custom)).collect()
    }
}

#[cfg(any(test, feature = "examples"))]
impl Reproducer {
    /// A reproducer for tests.
    pub fn example() -> Reproducer {
        Reproducer {
            schema: SCHEMA,
            kernel: "6.12".into(),
            release: "6.12.0".into(),
            parameters: vec!["preempt=full".into()],
            load: Load::Mixed,
            warm_up_ns: Nanos(1),
            begin_after_ns: Nanos(2),
            memory_mib: 256,
            icount_shift: 0,
            guest_seed: 2,
            driver: Some("responders=hardirq,task".into()),
            modules: Vec::new(),
            programs: Vec::new(),
            files: Vec::new(),
            program: None,
            snapshot: "key".into(),
            contents_blake3: BTreeMap::new(),
            qemu: "10.0.2".into(),
            plugin: "0.1.0 00".into(),
            times_ns: vec![Nanos(5), Nanos(9)],
            disturbances: vec![Disturbance { at: Nanos(8), timers: 2 }],
            work: Some("sleep 1".into()),
            high_ns: Nanos(1),
            grace_ns: Nanos(1),
            responders: [Responder::Hardirq, Responder::Task].into_iter().collect(),
            answer: Answer {
                responder: Responder::Task,
                trigger: 1,
                latency_ns: Nanos(7),
                insns: Insns(7),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Reproducer, String> {
        let file = tempfile::NamedTempFile::new().expect("writable");
        std::fs::write(file.path(), text).expect("writable");
        Reproducer::read(file.path()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_find_reads_back_as_it_was_written() {
        let text = serde_json::to_string(&Reproducer::example()).expect("JSON");
        assert!(text.contains("\"load\":\"mixed\""), "{text}");
        assert!(text.contains("\"responders\":[\"hardirq\",\"task\"]"), "{text}");
        assert!(text.contains("\"disturbances\":[{\"at_ns\":8,\"timers\":2}]"), "{text}");
        assert_eq!(read(&text), Ok(Reproducer::example()));
    }

    #[test]
    fn an_answer_is_waited_for_however_short_the_grace_of_its_experiment_is() {
        let late = Answer { latency_ns: Nanos(3_000_000), ..Reproducer::example().answer };
        assert_eq!(late.waited_for(Nanos(1)), Nanos(4_000_000));
        assert_eq!(late.waited_for(Nanos(9_000_000)), Nanos(9_000_000));
        let never = Answer { latency_ns: Nanos(u64::MAX), ..late };
        assert_eq!(never.waited_for(Nanos(1)), Nanos(u64::MAX));
    }

    #[test]
    fn a_find_that_nothing_disturbs_does_not_speak_of_it() {
        let calm = Reproducer { disturbances: Vec::new(), ..Reproducer::example() };
        let text = serde_json::to_string(&calm).expect("JSON");
        assert!(!text.contains("disturbances"), "{text}");
        assert_eq!(read(&text), Ok(calm));
    }

    #[test]
    fn a_damaged_find_is_refused_with_what_is_wrong() {
        let mut wrong = Vec::new();
        let mut damage = |change: fn(&mut Reproducer), why: &'static str| {
            let mut r = Reproducer::example();
            change(&mut r);
            wrong.push((serde_json::to_string(&r).expect("JSON"), why));
        };
        damage(|r| r.answer.trigger = 2, "not among its times");
        damage(|r| r.work = Some("x".repeat(70_000)), "longer script");
        damage(|r| r.times_ns.reverse(), "its times do not rise");
        damage(|r| r.disturbances.push(r.disturbances[0]), "its disturbances do not rise");
        damage(|r| r.disturbances[0].timers = 65, "more timers");
        damage(|r| r.answer.responder = Responder::Work, "none of its responders");
        damage(|r| r.high_ns = Nanos(0), "never high");
        damage(|r| *r.times_ns.last_mut().unwrap() = Nanos(u64::MAX - 1), "31 days");
        damage(|r| r.grace_ns = Nanos(u64::MAX), "31 days");
        damage(|r| r.high_ns = Nanos(u64::MAX), "31 days");
        damage(|r| r.begin_after_ns = Nanos(u64::MAX), "31 days");
        damage(|r| r.answer.latency_ns = Nanos(u64::MAX), "31 days");
        damage(|r| r.warm_up_ns = Nanos(u64::MAX), "longer than a day");
        damage(|r| r.memory_mib = 1, "memory_mib");
        damage(|r| r.icount_shift = 11, "icount_shift");
        damage(|r| r.schema = 9, "schema 9");
        let whole = serde_json::to_string(&Reproducer::example()).expect("JSON");
        wrong.push((whole[..whole.len() / 2].into(), "EOF"));
        wrong.push((whole.replace("\"mixed\"", "\"heavy\""), "unknown load"));
        for (text, why) in wrong {
            let message = read(&text).expect_err(why);
            assert!(message.contains(why), "{message}");
        }
    }
}
