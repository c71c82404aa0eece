// SPDX-License-Identifier: GPL-2.0-or-later
//! An atlas of the longest stretches of a kernel: the guest does the work of one stressor of stress-ng after the other,
//! each from the same saved guest, with its kernel followed.
//!
//! The guest is booted and saved once, before any work. Init learns what to do after it was restored. So a stressor
//! takes no boot, and nothing that one stressor did is there when the next one begins.
//!
//! An atlas shows what these stressors reach in the guest in the given time. It does not show what a kernel could do
//! under other work, on other devices or on several processors.

#[cfg(test)]
pub(crate) mod examples;
mod merged;
mod said;
pub mod stressors;

pub use merged::{Atlas, Idle, Place, Worker};
pub use stressors::{Chosen, chosen};

use crate::Error;
use crate::followed::{INSIDE_FROM, Ready, Stretches, Subject, WINDOWS_FROM, Watcher, Which};
use crate::hunting::at_once;
use crate::pieces::{Directory, Piece};
use agent::Work;
use experiment::{Flavour, Load};
use rig::{Bench, Calls, Ending, Follow, Guest, Outcome, Stimulus};
use sample::{Insns, Nanos, Sample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use trace::{
    Cuts, Event, Order, Reader, ReaderLosses, Stacks, Symbols, Wait, Waits, WindowKind, WindowRow,
};
use vmlinux::Map;
use work::Progress;

/// A kind of stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = trace::words))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Interrupts are masked.
    IrqsOff,
    /// The preemption count is not 0: no other task gets the CPU.
    PreemptOff,
    /// Somebody asked for another task, and the kernel has not come to a place at which it schedules.
    Unscheduled,
}

/// The kinds of stretches that are kept.
pub const KINDS: [Kind; 3] = [Kind::IrqsOff, Kind::PreemptOff, Kind::Unscheduled];
/// Those of them that are windows.
const WINDOWS: [WindowKind; 2] = [WindowKind::IrqsOff, WindowKind::PreemptOff];

impl Kind {
    /// The kind's word in files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::IrqsOff => "irqs_off",
            Kind::PreemptOff => "preempt_off",
            Kind::Unscheduled => "unscheduled",
        }
    }
}

/// How many stretches of each kind are kept of a stressor, each of another stack. It bounds the size of a file. A stack
/// that is longer than all others under any stressor is among the longest under that stressor, and so is kept.
const KEPT: usize = 50;
/// The guest's memory. Many stressors map 256 MiB unless they are told otherwise, and the kernel grants no mapping that
/// is larger than the whole memory.
pub(crate) const MEMORY_MIB: u32 = 1024;
/// How many frames of a stack are kept.
const FRAMES: usize = 32;

/// What an atlas is about. Only with the same can it be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of the files in the directory of an atlas.
    pub files: u32,
    /// Kernel and boot options (the flavour).
    pub flavour: String,
    /// The kernel's release.
    pub release: String,
    /// Key of the snapshot of the guest before any work: a hash of kernel, guest, QEMU and plugin.
    pub snapshot: String,
    /// The version of stress-ng.
    pub stress_ng: String,
    /// The seed of the guest's kernel and of stress-ng.
    pub seed: u32,
    /// How long each stressor may work.
    pub duration_ns: Nanos,
    /// The guest's memory in MiB.
    pub memory_mib: u32,
}

/// The version of the files in the directory of an atlas.
const FILES: u32 = 1;

/// The longest stretch of one kind that one stack opened, under one stressor. Of the kind `unscheduled`, the longest
/// that ended and was last seen at the same places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// What it kept from happening.
    pub kind: Kind,
    /// Its length.
    pub ns: Nanos,
    /// Its length in instructions.
    pub insns: Insns,
    /// When it opened, on the virtual clock.
    pub at_ns: Nanos,
    /// Of its length, hard and non-maskable interrupts; 0 where interrupts were masked. Not known of `unscheduled`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hardirq_ns: Option<Nanos>,
    /// Of its length, softirqs; 0 where interrupts were masked, or a thread serves them. Not known of `unscheduled`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub softirq_ns: Option<Nanos>,
    /// The function that the interrupt or the softirqs called, where these opened it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handler: Option<String>,
    /// Who opened it, innermost first, up to an interrupt's entry. At most 32 frames. Empty for `unscheduled`.
    pub opened_by: Vec<String>,
    /// Where the CPU was when the follower looked last; empty where it was too short for a look.
    pub inside: Vec<String>,
    /// Who closed it: turned interrupts or preemption on again, or called the scheduler.
    pub closed_by: Vec<String>,
}

impl Long {
    fn of_window(kind: Kind, row: WindowRow) -> Long {
        Long {
            kind,
            ns: row.max_ns,
            insns: row.max_insns,
            at_ns: row.max_at_ns,
            hardirq_ns: Some(row.max_hardirq_ns),
            softirq_ns: Some(row.max_softirq_ns),
            handler: row.handler(),
            opened_by: cut(row.stack),
            inside: cut(row.inside),
            closed_by: cut(row.max_closed_by),
        }
    }

    fn of_wait(wait: &Wait, stacks: &Stacks, symbols: &dyn Symbols) -> Long {
        let [inside, closed_by] =
            [wait.inside, wait.closed_by].map(|place| cut(stacks.names(place, symbols)));
        Long {
            kind: Kind::Unscheduled,
            ns: wait.length.time,
            insns: wait.length.insns,
            at_ns: Nanos(wait.at.time.ns()),
            hardirq_ns: None,
            softirq_ns: None,
            handler: None,
            opened_by: Vec::new(),
            inside,
            closed_by,
        }
    }
}

fn cut(mut stack: Vec<String>) -> Vec<String> {
    stack.truncate(FRAMES);
    stack
}

/// What became of a stressor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Became {
    /// It worked.
    Worked {
        /// Its units of work, as stress-ng counts them. `None` if stress-ng did not say.
        ops: Option<u64>,
        /// How long it was followed.
        virtual_ns: Nanos,
        /// For each kind, the stretches that have no length, since they were open when following began or ended.
        cut: BTreeMap<WindowKind, Cuts>,
        /// What the follower's records lost.
        losses: ReaderLosses,
        /// The longest stretches of each kind, the longest first.
        longest: Vec<Long>,
    },
    /// It could not work here.
    Refused {
        /// Why.
        why: String,
    },
}

/// A stressor that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Its name.
    pub stressor: String,
    /// What became of it.
    pub became: Became,
}

/// The file of the whole atlas.
pub const ATLAS_FILE: &str = "atlas.json";

impl Piece for Tried {
    type About = About;
    const WORK: &'static str = "atlas";
    const OPTION: &'static str = "--output";
    const PLACE: &'static str = "stressors";

    fn name(&self) -> String {
        self.stressor.clone()
    }
}

/// Hears of a stressor: how many are done, its name, and what became of it.
pub type Told<'a> = &'a (dyn Fn(usize, &str, Result<&Tried, &Error>) + Sync);

/// A guest in which stressors can be tried.
pub struct Ground<'a> {
    ready: Ready<'a>,
    map: Map<Vec<u8>>,
    follow: Follow,
    about: About,
}

impl<'a> Ground<'a> {
    /// Boots the guest, or finds it in the cache.
    ///
    /// # Errors
    /// If the kernel is not in the cache, or the machine lacks a program. Also the errors of [`Ready::new`].
    pub fn new(
        bench: &'a Bench,
        flavour: &Flavour,
        (seed, duration): (u32, Nanos),
        progress: &dyn Fn(Progress),
    ) -> Result<Ground<'a>, Error> {
        let stress_ng = stressors::version()?;
        let mut guest = Guest::plain(bench, &flavour.kernel, Load::Idle)?;
        guest.parameters.clone_from(&flavour.parameters);
        guest.contents.programs = stressors::PROGRAMS.map(String::from).into();
        guest.memory_mib = MEMORY_MIB;
        guest.seed = seed;
        let stimulus = Stimulus::Work(Work { script: String::new(), for_ns: 0 });
        let ready = Ready::new(bench, Subject { guest, stimulus, made_with: None }, progress)?;
        let (map, follow) = ready.follow(WINDOWS_FROM, Calls::Scheduling)?;
        let guest = ready.guest();
        let about = About {
            files: FILES,
            flavour: flavour.to_string(),
            release: guest.kernel.record.release.clone(),
            snapshot: ready.made_with().snapshot,
            stress_ng,
            seed,
            duration_ns: duration,
            memory_mib: guest.memory_mib,
        };
        Ok(Ground { map, follow: follow.looking_inside(INSIDE_FROM), about, ready })
    }

    /// What an atlas of this guest is about.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What cannot be seen in this kernel, and why.
    pub fn missing(&self) -> &[String] {
        &self.follow.missing
    }

    /// Lets the guest do the work of one stressor.
    ///
    /// # Errors
    /// If the machine failed, if records were lost, or if the user interrupts: nothing is then known of the stressor.
    pub fn try_stressor(&self, name: &str) -> Result<Tried, Error> {
        let for_ns = self.about.duration_ns.0;
        let work = Work { script: stressors::script(name, self.about.seed), for_ns };
        let mut seen = Seen::default();
        let (reader, outcome) = self.ready.work(work, &self.follow, &mut seen, &|_| ())?;
        seen.stretches.finish();
        let (longest, cut) = seen.longest(reader.stacks(), &self.map);
        let worked = Became::Worked {
            ops: outcome.worked.as_ref().and_then(|worked| said::ops(name, &worked.said)),
            virtual_ns: seen.stretches.span(),
            cut,
            losses: reader.losses(),
            longest,
        };
        let became = refusal(&outcome, &worked)?.map_or(worked, |why| Became::Refused { why });
        Ok(Tried { stressor: name.into(), became })
    }

    /// Tries those of these stressors that the directory has not, up to `jobs` of them at once. `told` hears of each,
    /// with the number of those that are done. Returns the names of those that failed, with the reason.
    ///
    /// # Errors
    /// If the user interrupts, or if the directory cannot be written.
    pub fn fill(
        &self,
        directory: &Directory<Tried>,
        names: &[String],
        jobs: usize,
        told: Told,
    ) -> Result<Vec<(String, Error)>, Error> {
        let open: Vec<&String> = names.iter().filter(|name| !directory.has(name)).collect();
        let done = Mutex::new((names.len() - open.len(), Vec::new(), None));
        at_once(jobs, open.len(), |number| {
            let name = open[number];
            let tried = self.try_stressor(name);
            let (count, failed, stops) = &mut *done.lock().expect("no thread panics");
            let kept = match tried {
                Ok(tried) => directory.keep(&tried).map(|()| tried),
                Err(Error::Interrupted) => Err(Error::Interrupted),
                Err(e) => {
                    told(*count, name, Err(&e));
                    failed.push((name.clone(), e));
                    return ControlFlow::Continue(());
                }
            };
            match kept {
                Ok(tried) => {
                    *count += 1;
                    told(*count, name, Ok(&tried));
                    ControlFlow::Continue(())
                }
                Err(e) => {
                    stops.get_or_insert(e);
                    ControlFlow::Break(())
                }
            }
        });
        let (_, failed, stops) = done.into_inner().expect("no thread panics");
        stops.map_or(Ok(failed), Err)
    }
}

/// What is seen of a stressor.
struct Seen {
    stretches: Stretches,
    waits: Waits,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { stretches: Stretches::default(), waits: Waits::new(WINDOWS_FROM, INSIDE_FROM) }
    }
}

impl Watcher for Seen {
    fn event(&mut self, event: &Event, reader: &Reader) {
        self.stretches.event(event, reader);
        self.waits.event(event);
    }

    fn answer(&mut self, _: &Sample, _: &Reader) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Seen {
    /// The longest stretches of each kind, the longest first, and those without a length.
    fn longest(
        &self,
        stacks: &Stacks,
        symbols: &dyn Symbols,
    ) -> (Vec<Long>, BTreeMap<WindowKind, Cuts>) {
        let which = Which { kinds: WINDOWS.into(), order: Order::Longest, top: KEPT };
        let (report, _) = self.stretches.report(&which, stacks, symbols);
        let mut cut = report.cut;
        cut.retain(|kind, _| WINDOWS.contains(kind));
        let kind = |window| match window {
            WindowKind::IrqsOff => Kind::IrqsOff,
            _ => Kind::PreemptOff,
        };
        // Short stretches have no stack, and are one row.
        let windows = report.windows.into_iter().filter(|row| !row.stack.is_empty());
        let windows = windows.map(|row| Long::of_window(kind(row.kind), row));
        let mut waits: Vec<&Wait> = self.waits.longest().collect();
        // Of equally long ones the first that began, in whatever order they are kept.
        waits.sort_by_key(|wait| (std::cmp::Reverse(wait.length), wait.at.time.ns()));
        let waits = waits.into_iter().take(KEPT).map(|wait| Long::of_wait(wait, stacks, symbols));
        (windows.chain(waits).collect(), cut)
    }
}

/// Why the stressor did not work. `None` if it did, by what the guest said and by what was seen until its end.
fn refusal(outcome: &Outcome, worked: &Became) -> Result<Option<String>, Error> {
    match &outcome.ending {
        Ending::Interrupted => return Err(Error::Interrupted),
        Ending::Failed(why) => {
            return Err(Error::MachineFailed(format!("the machine failed: {why}")));
        }
        Ending::Died(why) => {
            let first = why.lines().next().unwrap_or_default();
            return Ok(Some(format!("the guest died: {first}")));
        }
        Ending::Whole => {}
    }
    // A guest that died, or hung, after the time was over says nothing. What was seen until then is sound.
    let Some(said) = &outcome.worked else { return Ok(None) };
    let did_any = matches!(worked, Became::Worked { ops: Some(1..), .. });
    if said.was_interrupted || (said.status == Some(0) && did_any) {
        return Ok(None);
    }
    Ok(Some(said::why(&said.said, said.status)))
}
