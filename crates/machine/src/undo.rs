// SPDX-License-Identifier: GPL-2.0-or-later
//! Takes changes back: the last one first, and each only if its place still holds what onset wrote there.

use crate::journal::{Change, Journal, JournalError, Record};
use crate::{Spot, System, boot};
use std::collections::{BTreeMap, BTreeSet};

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has its old value again.
    Restored,
    /// It had its old value already.
    Already,
    /// Somebody else has changed it since. It keeps this value.
    Left(String),
    /// Its thread has ended, or its file on disk is gone: nothing is in effect any more.
    Gone,
    /// It is GRUB's menu, which somebody else has made since. GRUB's programs made it anew, without onset's entry.
    Anew,
    /// It could not be taken back, and why. The journal keeps it.
    Failed(String),
}

/// A change, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The change.
    pub change: Change,
    /// What became of it.
    pub end: End,
}

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// The changes in the order in which they were taken back.
    pub ended: Vec<Ended>,
    /// What GRUB's programs said against it.
    pub boot: Option<String>,
}

impl Undone {
    /// Whether nothing is left to undo.
    pub fn is_whole(&self) -> bool {
        self.boot.is_none() && !self.ended.iter().any(|ended| matches!(ended.end, End::Failed(_)))
    }
}

/// The changes in records that nobody has settled, and what the kernel gave back of each where that was another value.
pub(crate) fn open_changes(records: &[Record]) -> (Vec<Change>, BTreeMap<u64, String>) {
    let settled = |record: &Record| match record {
        Record::Settled { number } => Some(*number),
        _ => None,
    };
    let settled: BTreeSet<u64> = records.iter().filter_map(settled).collect();
    let (mut changes, mut read_back) = (Vec::new(), BTreeMap::new());
    for record in records {
        match record {
            Record::Change(change) if !settled.contains(&change.number) => {
                changes.push(change.clone())
            }
            Record::ReadBack { number, text } => drop(read_back.insert(*number, text.clone())),
            _ => {}
        }
    }
    (changes, read_back)
}

/// Takes these changes back, the last one first. What is settled is marked in the journal.
pub(crate) fn take_back(system: &System, journal: &mut Journal, from: u64) -> Undone {
    let (changes, read_back) = open_changes(journal.records());
    let (mut undone, mut of_boot) = (Undone::default(), Vec::new());
    // An older change of such a place would find the value of the newer one there, and take it for somebody else's.
    let mut stuck = BTreeSet::new();
    for change in changes.into_iter().rev().filter(|change| change.number >= from) {
        let (number, path) = (change.number, system.resolved(&change.place));
        let end = match stuck.contains(&path) {
            true => End::Failed(format!("a later change of {} is not taken back", change.place)),
            false => settle(system, journal, &change, read_back.get(&number)),
        };
        let end = match end {
            End::Left(_) | End::Gone | End::Failed(_) if boot::is_menu(&change.place) => End::Anew,
            end => end,
        };
        match &end {
            End::Failed(_) => drop(stuck.insert(path)),
            _ if change.place.persists() => of_boot.push(number),
            // The value is back even if the mark cannot be written, for example on a full disk. The next undo finds
            // the old value.
            _ => drop(journal.add(Record::Settled { number })),
        }
        undone.ended.push(Ended { change, end });
    }
    if !of_boot.is_empty() {
        undone.boot = refresh(system, &mut undone).err();
        if undone.boot.is_none() {
            // The oldest change of the menu is marked last: it says of all others that the menu is back.
            of_boot.into_iter().for_each(|number| drop(journal.add(Record::Settled { number })));
        }
    }
    undone
}

/// Brings GRUB's menu to what the files say now, unless it has its old bytes again. The oldest change of the menu knows
/// these. An undo that was cut short may have given them back already, which no newer change knows.
fn refresh(system: &System, undone: &mut Undone) -> Result<(), String> {
    boot::unchoose(system)?;
    let mut menus = undone.ended.iter_mut().filter(|ended| boot::is_menu(&ended.change.place));
    let is_back = |ended: &Ended| matches!(ended.end, End::Restored | End::Already);
    // An onset that wrote no menu to its journal may have made the entry in these bytes.
    let is_clean = boot::has_entry(system) || !boot::is_in_menu(system);
    if let Some(oldest) = menus.next_back()
        && is_back(oldest)
        && is_clean
    {
        menus.filter(|ended| !is_back(ended)).for_each(|ended| ended.end = End::Already);
        return boot::make_durable(system);
    }
    match boot::hindrance(system) {
        None => boot::refresh(system),
        // Whoever took GRUB away has taken the menu away.
        Some(_) => Ok(()),
    }
}

/// Whether onset changes such a place. A journal may be from anybody, and its undo runs as root.
fn may_change(place: &Spot) -> bool {
    match place {
        Spot::Disk(_) => boot::places().contains(place),
        Spot::Kernel(path) => {
            let is_below = ["/proc/", "/sys/"].iter().any(|start| path.starts_with(start));
            is_below && path.split('/').all(|part| part != "..")
        }
        Spot::Thread { .. } | Spot::Partition => true,
        // These are arguments of a program.
        Spot::Card { interface, setting } => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let is_name = |name: &String| !name.starts_with('-') && name.chars().all(is_plain);
            is_name(interface) && is_name(setting)
        }
    }
}

/// Takes one change back, if its place still holds what was written there, or what the kernel made of that.
fn settle(
    system: &System,
    journal: &mut Journal,
    change: &Change,
    read_back: Option<&String>,
) -> End {
    let place = &change.place;
    if !may_change(place) {
        return End::Failed(format!(
            "{place} is no place that onset changes, so onset did not write this record"
        ));
    }
    system.tidy(place);
    let now = match system.read(place) {
        Ok(now) => now,
        Err(e) => return End::Failed(format!("{place} cannot be read: {e}")),
    };
    let is = |text: Option<&String>| match (&now, text) {
        (Some(now), Some(text)) => change.reads.is_same(now, text),
        (now, text) => now.is_none() && text.is_none(),
    };
    if is(change.old.as_ref()) {
        return End::Already;
    }
    if now.is_none() {
        return match place {
            Spot::Thread { .. } | Spot::Disk(_) => End::Gone,
            // What is not there now may come back with its value: a CPU that is offline, a file system that is not
            // mounted, a card that does not answer.
            Spot::Kernel(_) | Spot::Partition | Spot::Card { .. } => {
                let old =
                    change.old.as_ref().map(|old| change.reads.value(old)).unwrap_or_default();
                End::Failed(format!(
                    "{place} is not there now; undo again when it is, and it gets {old:?} back; a reboot takes it back, too"
                ))
            }
        };
    }
    // A change of several steps may have been cut short between two of them.
    let is_begun = match (&now, &change.new) {
        (Some(now), Some(new)) => change.reads.is_step(now, new),
        _ => false,
    };
    let is_ours = is_begun || is(change.new.as_ref()) || (read_back.is_some() && is(read_back));
    if !is_ours {
        return End::Left(now.map(|now| change.reads.value(&now)).unwrap_or_default());
    }
    let old = change.old.as_ref().map(|old| change.reads.written(old));
    if let Err(e) = system.write(place, old.as_deref()) {
        return End::Failed(format!("{place} does not take its old value: {e}"));
    }
    match (system.read(place), &change.old) {
        (Ok(Some(now)), Some(old)) if change.reads.is_same(&now, old) => return End::Restored,
        (Ok(None), None) => return End::Restored,
        // With this, the next undo knows the other value as one of ours.
        (Ok(Some(text)), _) => {
            drop(journal.add(Record::ReadBack { number: change.number, text }));
        }
        _ => {}
    }
    End::Failed(format!("{place} reads back another value than the old one"))
}

/// Undoes everything in a journal, and closes it if nothing is left.
pub(crate) fn all(system: &System, mut journal: Journal) -> Result<Undone, JournalError> {
    let undone = take_back(system, &mut journal, 0);
    if undone.is_whole() {
        journal.close()?;
    }
    Ok(undone)
}
