// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes a machine by a plan, and undoes that, by a journal. One process at a time.

mod moved;

use crate::boot::{self, Parameters};
use crate::journal::{self, Journal, JournalError, Record};
use crate::lock::Lock;
use crate::plan;
use crate::undo::{self, Undone, open_changes};
use crate::{
    Cpus, Knob, KnobKind, Notation, Plan, PlanError, Setting, Spot, State, System, knobs, look,
};
use probes::context::{cpu_list, show_cpu_list};
use std::path::Path;

/// What stands in the journal in the place of a knob, for the files of an entry.
const BOOT_PARAMETERS: &str = "boot parameters";

/// Why a machine cannot be tuned. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another process changes this machine, by another journal.
    #[error(
        "another onset tune (process {process}) is at work on this machine; wait for its end, then try again"
    )]
    Busy {
        /// The number of the process, or `unknown`.
        process: String,
    },
    /// The machine cannot be locked.
    #[error("this machine cannot be locked against a second onset tune: {0}")]
    Lock(std::io::Error),
    /// The journal tells of another machine.
    #[error(
        "the journal in {directory} is of another machine ({machine}), and its old values are not those of this one; undo it there, or \
         name another directory: --journal DIR"
    )]
    OtherMachine {
        /// The directory.
        directory: String,
        /// The other machine's /etc/machine-id.
        machine: String,
    },
}

/// What became of a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The knob's name.
    pub knob: String,
    /// The value that it was to get.
    pub value: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a knob that was to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was changed in so many places. The kernel refused the others, of which the texts say where and why. Without a
    /// refused place, at least one was changed.
    Changed {
        /// How many places were changed; 0 where all but the refused ones had the value already.
        places: usize,
        /// What was refused.
        refused: Vec<String>,
    },
    /// It had the value already.
    Already,
    /// It takes effect at the next boot, and at that boot alone.
    NextBoot,
    /// It takes effect once the user boots onset's entry, which could not be chosen: why.
    Entry(String),
    /// It was not changed, and why. Its places have their old values.
    Refused(String),
}

/// The right to change a machine, with its journal.
pub struct Tuning {
    system: System,
    journal: Journal,
    /// It ends with the right.
    _lock: Option<Lock>,
    /// The changes of an earlier boot that were found in the journal.
    rebooted: usize,
}

impl Tuning {
    /// Takes the journal in a directory.
    ///
    /// # Errors
    /// If another process has it, or changes this machine by another journal; if it is damaged, newer or of another
    /// machine; if another user can write to its directory; and of the operating system.
    pub fn begin(system: System, directory: &Path) -> Result<Tuning, TuneError> {
        let lock = Lock::of_machine(&system).map_err(TuneError::Lock)?;
        let _lock = lock.map_err(|process| TuneError::Busy { process })?;
        let mut journal = Journal::open(directory)?;
        check_machine(&system, directory, journal.records())?;
        // A reboot has taken them back. Their old values are none that this boot has to get.
        let (boot, open) = (system.identity().0, open_changes(journal.records()).0);
        let gone = open.iter().filter(|change| !is_of(&boot, change));
        let gone: Vec<u64> = gone.map(|change| change.number).collect();
        for number in &gone {
            journal.add(Record::Settled { number: *number })?;
        }
        Ok(Tuning { system, journal, _lock, rebooted: gone.len() })
    }

    /// How many changes of an earlier boot were in the journal. The reboot has taken them back.
    pub fn rebooted(&self) -> usize {
        self.rebooted
    }

    /// How many bytes of a half record were cut off the journal.
    pub fn torn(&self) -> usize {
        self.journal.torn()
    }

    /// How many changes are in the journal that nobody has taken back.
    pub fn changed(&self) -> usize {
        open_changes(self.journal.records()).0.len()
    }

    /// Carries a plan out. A knob that is refused stays as it was, and the others go on.
    ///
    /// # Errors
    /// If the plan contradicts itself, before anything is changed.
    pub fn apply(&mut self, plan: &Plan, cpus: &Cpus) -> Result<Vec<Applied>, TuneError> {
        plan.consistent()?;
        let (boot, at_once): (Vec<_>, Vec<_>) =
            plan.changes().iter().partition(|change| change.knob.kind == KnobKind::Boot);
        let mut applied: Vec<Applied> = Vec::new();
        for change in at_once {
            let fate = self.knob(plan, change, cpus);
            applied.push(Applied {
                knob: change.knob.name.clone(),
                value: change.value.clone(),
                fate,
            });
        }
        applied.extend(self.boot(plan, &boot, cpus));
        Ok(applied)
    }

    /// Undoes everything, and closes the journal if nothing is left.
    ///
    /// # Errors
    /// Of the operating system, at the journal's end.
    pub fn undo(self) -> Result<Undone, TuneError> {
        Ok(undo::all(&self.system, self.journal)?)
    }

    /// Why a knob cannot get a value in this plan.
    fn hindrance(&self, plan: &Plan, change: &plan::Change, cpus: &Cpus) -> Option<String> {
        if let Some(why) = self.missing_cpu(change) {
            return Some(why);
        }
        // With a boot parameter, all that the entry has already is in effect.
        let entry = match change.knob.kind {
            KnobKind::Boot => boot::of_entry(&self.system),
            _ => Parameters::default(),
        };
        let is_entered = |knob: &Knob| entry.value(&knob.name).is_some();
        let is_effective = |knob| is_entered(knob) || look(&self.system, knob, cpus).is_in_effect();
        let is_named = |names: &[String], knob: &Knob| names.contains(&knob.name);
        let is_planned = |name: &str| plan.changes().iter().any(|c| c.knob.name == *name);
        let mut needed = knobs().iter().filter(|knob| is_named(&change.knob.needs, knob));
        if let Some(Knob { name, .. }) = needed.find(|k| !is_planned(&k.name) && !is_effective(k)) {
            return Some(format!("it does nothing without {name}; add --knob {name}"));
        }
        // It is enough if one of both names the other.
        let mut against = knobs().iter().filter(|knob| {
            is_named(&change.knob.contradicts, knob) || is_named(&knob.contradicts, change.knob)
        });
        let against = against.find(|knob| is_effective(knob));
        against.map(|knob @ Knob { name, .. }| {
            let state = if is_entered(knob) { "in onset's boot entry" } else { "in effect" };
            format!("{name} is {state}, which contradicts it; take that back first")
        })
    }

    /// Why a boot parameter that takes CPUs cannot get its value on this machine. The kernel itself would refuse it, or
    /// cut it down, at the next boot, where nobody sees it.
    fn missing_cpu(&self, change: &plan::Change) -> Option<String> {
        let proposes = change.knob.proposes.as_deref().unwrap_or_default();
        if change.knob.kind != KnobKind::Boot || !proposes.contains('{') {
            return None;
        }
        // Flags stand before the CPUs: managed_irq,domain,1-3.
        let is_number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        let named: Vec<&str> = change.value.split(',').filter(is_number).collect();
        let (named, there) = (cpu_list(&named.join(","))?, self.system.possible());
        let missing = named.iter().find(|cpu| !there.contains(cpu))?;
        let there = show_cpu_list(&there);
        Some(format!("it names CPU {missing}, and this machine has {there}"))
    }

    fn knob(&mut self, plan: &Plan, change: &plan::Change, cpus: &Cpus) -> Fate {
        let seen = look(&self.system, change.knob, cpus);
        if let Some(why) = self.hindrance(plan, change, cpus) {
            return Fate::Refused(why);
        }
        let spots = match seen.state {
            State::NotHere(why) => return Fate::Refused(format!("not here: {why}")),
            State::Here(spots) => spots,
            State::Booted(_) => return Fate::Refused("it is a boot parameter".into()),
        };
        let reads = change.knob.reads;
        let (already, other): (Vec<Setting>, Vec<Setting>) =
            spots.into_iter().partition(|spot| reads.is_same(&spot.text, &change.value));
        if other.is_empty() {
            return Fate::Already;
        }
        let first = self.next_number();
        let moved = match self.moved(change, cpus) {
            Ok(moved) => moved,
            Err(why) => {
                let back = undo::take_back(&self.system, &mut self.journal, first);
                return Fate::Refused(with_remains(why, &back));
            }
        };
        let (mut places, mut alike, mut refused) = (0, already.len(), Vec::new());
        for spot in other {
            match self.spot(change, spot.place) {
                Ok(true) => places += 1,
                Ok(false) => alike += 1,
                Err(why) if change.knob.each => refused.push(why),
                Err(why) => {
                    let back = undo::take_back(&self.system, &mut self.journal, first);
                    return Fate::Refused(with_remains(why, &back));
                }
            }
        }
        self.moved_to(moved);
        match (places, alike) {
            (0, 0) => Fate::Refused(refused.join("; ")),
            (0, _) if refused.is_empty() => Fate::Already,
            _ => Fate::Changed { places, refused },
        }
    }

    /// Changes one place, and says whether it had another value. On an error it has its old value again, or the journal
    /// keeps the change.
    fn spot(&mut self, change: &plan::Change, place: Spot) -> Result<bool, String> {
        let (reads, value) = (change.knob.reads, &change.value);
        // The change of another place, or somebody else, may have changed it since it was looked at.
        let text = match self.system.read(&place) {
            Ok(Some(text)) if reads.is_same(&text, value) => return Ok(false),
            Ok(Some(text)) => text,
            Ok(None) => return Err(format!("{place} is not there any more")),
            Err(e) => return Err(format!("{place} cannot be read: {e}")),
        };
        let number = self.announce(
            &change.knob.name,
            place.clone(),
            reads,
            (Some(text), Some(value.clone())),
        )?;
        let written = self.system.write(&place, Some(value));
        let now = self.system.read(&place);
        let why = match (written, &now) {
            (Ok(()), Ok(Some(now))) if reads.is_same(now, value) => return Ok(true),
            (Ok(()), Ok(Some(now))) => {
                let shown = reads.value(now);
                // With this, an undo after a kill knows the other value as one of ours.
                let told = self.journal.add(Record::ReadBack { number, text: now.clone() });
                let kept = told.err().map(|e| format!(" ({e})")).unwrap_or_default();
                format!("{place} reads back {shown:?} where {value:?} was written{kept}")
            }
            (Ok(()), _) => format!("{place} cannot be read back"),
            (Err(e), _) => format!("{place} does not take {value:?}: {e}{}", remedy(&e)),
        };
        let back = undo::take_back(&self.system, &mut self.journal, number);
        Err(with_remains(why, &back))
    }

    fn next_number(&self) -> u64 {
        let change = |record: &Record| match record {
            Record::Change(change) => Some(change.number),
            _ => None,
        };
        self.journal.records().iter().filter_map(change).max().unwrap_or(0) + 1
    }

    /// Writes to the journal what is about to be changed. When this returns, it is durable.
    fn announce(
        &mut self,
        knob: &str,
        place: Spot,
        reads: Notation,
        (old, new): (Option<String>, Option<String>),
    ) -> Result<u64, String> {
        let (boot, machine) = self.system.identity();
        let number = self.next_number();
        let knob = knob.to_owned();
        let change = journal::Change { number, knob, place, reads, old, new, boot, machine };
        self.journal.add(Record::Change(change)).map(|()| number).map_err(|e| e.to_string())
    }

    /// Writes the drop-in with all boot parameters of a plan, and chooses its entry for the next boot.
    fn boot(&mut self, plan: &Plan, changes: &[&plan::Change], cpus: &Cpus) -> Vec<Applied> {
        let mut fates: Vec<Option<Fate>> = Vec::new();
        for change in changes {
            let seen = look(&self.system, change.knob, cpus);
            fates.push(match (&seen.state, self.hindrance(plan, change, cpus)) {
                (State::NotHere(why), _) => Some(Fate::Refused(format!("not here: {why}"))),
                _ if seen.is_already(&change.value) => Some(Fate::Already),
                (_, Some(why)) => Some(Fate::Refused(why)),
                _ => None,
            });
        }
        let open = changes.iter().zip(&fates).filter(|(_, fate)| fate.is_none());
        let open: Vec<(&str, &str)> =
            open.map(|(change, _)| (change.knob.name.as_str(), change.value.as_str())).collect();
        let common = if open.is_empty() { Fate::Already } else { self.entry(&open) };
        let fates = fates.into_iter().map(|fate| fate.unwrap_or_else(|| common.clone()));
        let named = changes.iter().zip(fates);
        named
            .map(|(c, fate)| Applied { knob: c.knob.name.clone(), value: c.value.clone(), fate })
            .collect()
    }

    /// Makes the entry with these parameters, beside those that it has already.
    fn entry(&mut self, parameters: &[(&str, &str)]) -> Fate {
        let mut asked = Parameters::default();
        parameters.iter().for_each(|(name, value)| asked.set(name, value));
        let hindrance = boot::hindrance(&self.system);
        if let Some(why) = hindrance.or_else(|| boot::why_not_once(&self.system)) {
            return Fate::Refused(format!(
                "{why}; add to the kernel's command line yourself: {}",
                asked.line()
            ));
        }
        let first = self.next_number();
        if let Err(why) = self.write_entry(parameters) {
            let back = undo::take_back(&self.system, &mut self.journal, first);
            return Fate::Refused(with_remains(why, &back));
        }
        match boot::choose(&self.system) {
            Ok(()) => Fate::NextBoot,
            Err(why) => Fate::Entry(why),
        }
    }

    fn write_entry(&mut self, parameters: &[(&str, &str)]) -> Result<(), String> {
        let [of_parameters, of_script, of_menu] = boot::places();
        let read = |place: &Spot| self.system.read(place).map_err(|e| format!("{place}: {e}"));
        let (old, script, menu) = (read(&of_parameters)?, read(&of_script)?, read(&of_menu)?);
        let foreign = |place: &Spot| {
            format!("{place} is there, and onset did not write it; move it away first")
        };
        let mut all = match &old {
            Some(text) => boot::of_dropin(text).ok_or_else(|| foreign(&of_parameters))?,
            None => Parameters::default(),
        };
        if script.as_ref().is_some_and(|text| text != boot::SCRIPT_TEXT) {
            return Err(foreign(&of_script));
        }
        parameters.iter().for_each(|(name, value)| all.set(name, value));
        // The menu comes first, so that an undo gives its old bytes back last. Nobody knows the new text before GRUB's
        // programs have made it. Until it is in the journal, an undo takes it for somebody else's, and makes the menu
        // anew.
        let new = (menu, Some(String::new()));
        let number = self.announce(BOOT_PARAMETERS, of_menu.clone(), Notation::Exact, new)?;
        self.file(of_parameters, old, boot::dropin(&all))?;
        if script.is_none() {
            self.file(of_script, None, boot::SCRIPT_TEXT.into())?;
        }
        boot::refresh(&self.system)?;
        let text = self.system.read(&of_menu).map_err(|e| format!("{of_menu}: {e}"))?;
        if let Some(text) = text {
            let told = self.journal.add(Record::ReadBack { number, text });
            told.map_err(|e| e.to_string())?;
        }
        match boot::is_in_menu(&self.system) {
            true => Ok(()),
            false => Err("GRUB's menu has not got onset's entry".into()),
        }
    }

    fn file(&mut self, place: Spot, old: Option<String>, new: String) -> Result<(), String> {
        self.announce(BOOT_PARAMETERS, place.clone(), Notation::Exact, (old, Some(new.clone())))?;
        self.system.write(&place, Some(&new)).map_err(|e| format!("{place}: {e}{}", remedy(&e)))
    }
}

/// What is changed in a journal, without taking it: the changes that nobody has settled, in order, with what each place
/// holds now. What a reboot has taken back is not among them.
///
/// # Errors
/// As [`Tuning::begin`], but for a process that is at work.
pub fn status(
    system: &System,
    directory: &Path,
) -> Result<Vec<(journal::Change, Option<String>)>, TuneError> {
    let Some(read) = Journal::look(directory)? else { return Ok(Vec::new()) };
    check_machine(system, directory, &read.records)?;
    let (changes, mut read_back) = open_changes(&read.records);
    let boot = system.identity().0;
    Ok(changes
        .into_iter()
        .filter(|change| is_of(&boot, change))
        .map(|mut change| {
            let now = system.read(&change.place).ok().flatten();
            // What onset wrote to a file of the running kernel is a value. A menu is what GRUB made of onset's files.
            if let Some(text) = read_back.remove(&change.number).filter(|_| change.place.persists())
            {
                change.new = Some(text);
            }
            (change, now)
        })
        .collect())
}

/// The words of onset's boot entry, in order, each with whether the running kernel was booted with it. None without an
/// entry.
pub fn entry(system: &System) -> Vec<(String, bool)> {
    let line = system.text("/proc/cmdline").unwrap_or_default();
    let (entry, line) = (boot::of_entry(system), Parameters::of(&line));
    let is_booted = |(name, value): (&str, &str)| line.value(name) == Some(value);
    entry.words().map(|word| (Parameters::word(word), is_booted(word))).collect()
}

/// Whether a change may still be in effect at this boot.
fn is_of(boot: &str, change: &journal::Change) -> bool {
    change.place.persists() || change.boot == boot
}

fn check_machine(system: &System, directory: &Path, records: &[Record]) -> Result<(), TuneError> {
    let here = system.identity().1;
    let other = open_changes(records).0.into_iter().find(|change| change.machine != here);
    match other {
        None => Ok(()),
        Some(change) => Err(TuneError::OtherMachine {
            directory: directory.display().to_string(),
            machine: change.machine,
        }),
    }
}

fn with_remains(why: String, back: &Undone) -> String {
    let failed = back.ended.iter().filter_map(|ended| match &ended.end {
        undo::End::Failed(why) => Some(why.clone()),
        _ => None,
    });
    let failed: Vec<String> = failed.chain(back.boot.clone()).collect();
    match failed.is_empty() {
        true => why,
        false => format!(
            "{why}; and it could not be taken back: {}; the journal keeps it",
            failed.join("; ")
        ),
    }
}

fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            " (run the command as root, outside of a container)"
        }
        std::io::ErrorKind::ReadOnlyFilesystem => {
            " (it is mounted read-only, as in a container: tune the host)"
        }
        _ => "",
    }
}
