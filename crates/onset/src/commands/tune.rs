// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset tune`: what could be changed on this machine; changes it by a journal; takes it back.

use super::{print, print_json, write_file};
use crate::arguments::{CpusArgument, Tune, TuneApply, TuneCommand, TunePlan};
use crate::failure::{Exit, Failure};
use machine::journal::{Journal, JournalError};
use machine::{Applied, Cpus, End, Fate, Plan, Sighting, System, TuneError, Tuning, knobs, look};
use std::path::Path;
use view::results;
use view::terminal::{tuning_applied, tuning_plan, tuning_status, tuning_undone, tuning_unit};
use view::visible::tell;

/// The most bytes of a plan.
const PLAN_MAX: u64 = 1 << 20;

pub fn run(arguments: &Tune) -> Result<Exit, Failure> {
    let system = System::below("/");
    match &arguments.command {
        None => plan(&system, &arguments.plan),
        Some(TuneCommand::Prove(arguments)) => super::prove::run(arguments),
        Some(TuneCommand::Apply(arguments)) => apply(system, arguments),
        Some(TuneCommand::Status { unit: true, journal }) => unit(&journal.journal),
        Some(TuneCommand::Status { journal, .. }) => status(&system, &journal.journal),
        Some(TuneCommand::Undo { journal }) => undo(system, &journal.journal),
    }
}

fn plan(system: &System, arguments: &TunePlan) -> Result<Exit, Failure> {
    let cpus = cpus(system, &arguments.cpus)?;
    let looks = looks(system, &cpus);
    if let Some(path) = &arguments.output {
        write_file(path, &Plan::proposed(&looks).text())?;
        tell!("onset: the plan is in {}", path.display());
    }
    match arguments.json {
        true => print_json(&results::Tune::of(&looks, &cpus, system.release()))?,
        false => print(&tuning_plan(&looks, &cpus))?,
    }
    Ok(Exit::Success)
}

pub(super) fn cpus(system: &System, argument: &CpusArgument) -> Result<Cpus, Failure> {
    let cpus = Cpus::of(&system.online(), argument.cpus.as_deref());
    cpus.map_err(|why| Failure::usage(format!("--cpus: {why}")))
}

fn looks(system: &System, cpus: &Cpus) -> Vec<Sighting> {
    knobs().iter().map(|knob| look(system, knob, cpus)).collect()
}

fn apply(system: System, arguments: &TuneApply) -> Result<Exit, Failure> {
    let cpus = cpus(&system, &arguments.cpus)?;
    let (plan, exit) = match &arguments.goal {
        // A machine proves no knob that needs a reboot: all of them are of --only runtime.
        Some(goal) => super::prove::towards(goal, arguments, (&system, &cpus))?,
        None => (asked(&system, arguments, &cpus)?, Exit::Success),
    };
    if arguments.goal.is_some() && plan.changes().is_empty() {
        return Ok(exit);
    }
    let mut tuning = Tuning::begin(system, &arguments.journal.journal)?;
    tell_found(tuning.rebooted(), tuning.torn());
    let applied = tuning.apply(&plan, &cpus)?;
    print(&tuning_applied(&applied))?;
    let is_refused = |applied: &Applied| matches!(applied.fate, Fate::Refused(_));
    Ok(if applied.iter().any(is_refused) { Exit::Unavailable } else { exit })
}

/// The plan that the user asks for.
fn asked(system: &System, arguments: &TuneApply, cpus: &Cpus) -> Result<Plan, Failure> {
    let plan = match &arguments.plan {
        Some(path) => {
            let wrong =
                |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
            let bytes = confined::read(path, PLAN_MAX).map_err(|e| wrong(&e))?;
            Plan::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| wrong(&e))?
        }
        None if arguments.knobs.is_empty() => Plan::proposed(&looks(system, cpus)),
        None => Plan::default(),
    };
    let plan = plan.with(&arguments.knobs, cpus).map_err(Failure::usage)?;
    let plan = if arguments.only.is_some() { plan.at_once() } else { plan };
    plan.consistent().map_err(Failure::usage)?;
    Ok(plan)
}

/// Tells what of an earlier boot or of an interrupted write was found in the journal.
fn tell_found(rebooted: usize, torn: usize) {
    if rebooted > 0 {
        tell!(
            "onset: the journal had {rebooted} changes of an earlier boot; the reboot has taken them back"
        );
    }
    if torn > 0 {
        tell!(
            "onset: the journal ended in half a record ({torn} bytes), whose change had not begun; onset cut it off"
        );
    }
}

fn status(system: &System, journal: &Path) -> Result<Exit, Failure> {
    let changes = machine::status(system, journal)?;
    print(&tuning_status(&changes, &machine::entry(system)))?;
    Ok(Exit::Success)
}

fn unit(journal: &Path) -> Result<Exit, Failure> {
    let command = std::env::current_exe();
    let command =
        command.map_err(|e| Failure::unavailable(format!("this command has no path: {e}")))?;
    let journal = std::path::absolute(journal).map_err(Failure::unavailable)?;
    print(&tuning_unit(&command, &journal))?;
    Ok(Exit::Success)
}

fn undo(system: System, journal: &Path) -> Result<Exit, Failure> {
    let nothing = "nothing is changed: there is no journal to undo\n";
    if Journal::look(journal)?.is_none() {
        print(nothing)?;
        return Ok(Exit::Success);
    }
    let entry = machine::entry(&system);
    let tuning = Tuning::begin(system, journal)?;
    tell_found(tuning.rebooted(), tuning.torn());
    let undone = tuning.undo()?;
    print(&tuning_undone(&undone, &entry))?;
    let is_left = undone.ended.iter().any(|ended| matches!(ended.end, End::Left(_)));
    Ok(match (undone.is_whole(), is_left) {
        (false, _) => Exit::Unavailable,
        (true, true) => Exit::Undecided,
        (true, false) => Exit::Success,
    })
}

impl From<JournalError> for Failure {
    fn from(e: JournalError) -> Failure {
        Failure::unavailable(e)
    }
}

impl From<TuneError> for Failure {
    fn from(e: TuneError) -> Failure {
        match e {
            TuneError::Plan(e) => Failure::usage(e),
            e => Failure::unavailable(e),
        }
    }
}
