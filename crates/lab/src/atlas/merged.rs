// SPDX-License-Identifier: GPL-2.0-or-later
//! The stretches of all stressors together, by the place that opened them.

use super::{About, Became, KINDS, Kind, Long, Tried};
use sample::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{Cuts, ReaderLosses, WindowKind};

/// One place of the kernel: the innermost four functions that opened a stretch, and the handler that an interrupt or
/// softirqs called. Of the kind `unscheduled`, the innermost six functions that called the scheduler, and the outermost
/// six of those that went on until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Its rank among the places of its kind, from 1 on.
    pub rank: usize,
    /// The stressor under which it was longest. Of equally long ones, the first by name.
    pub stressor: String,
    /// Under how many stressors it was among the longest that are kept.
    pub stressors: usize,
    /// The longest stretch that opened there.
    #[serde(flatten)]
    pub longest: Long,
}

/// A stressor that worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// Its name.
    pub stressor: String,
    /// Its units of work in the time, as stress-ng counts them; absent where stress-ng did not say. 0 says that the
    /// time was too short for a unit, and not that nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// How long it was followed.
    pub virtual_ns: Nanos,
    /// For each kind, the stretches that have no length, since they were open when following began or ended.
    pub cut: BTreeMap<WindowKind, Cuts>,
    /// What the follower's records lost.
    pub losses: ReaderLosses,
    /// For each kind, its longest stretch.
    pub longest_ns: BTreeMap<Kind, Nanos>,
}

/// A stressor that did not work, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Idle {
    /// Its name.
    pub stressor: String,
    /// Why.
    pub why: String,
}

/// An atlas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Atlas {
    /// What it is about.
    pub about: About,
    /// What cannot be seen in this kernel, and why.
    pub missing: Vec<String>,
    /// For each kind, how many places there are. `places` may have fewer of them.
    pub totals: BTreeMap<Kind, usize>,
    /// The places of each kind, the longest first.
    pub places: Vec<Place>,
    /// The stressors that worked, by name.
    pub worked: Vec<Worker>,
    /// The stressors that could not work in this guest, by name.
    pub refused: Vec<Idle>,
    /// The stressors that onset did not try, by name.
    pub left_out: Vec<Idle>,
}

/// How many functions at either end of what is unscheduled make its place.
const SIX: usize = 6;

/// What the stretches of one place have in common.
type Key = (Kind, Vec<String>, Option<String>);

impl Atlas {
    /// The atlas of these stressors. At most `top` places of each kind.
    pub fn of(about: About, mut tried: Vec<Tried>, top: usize) -> Atlas {
        tried.sort_by(|a, b| a.stressor.cmp(&b.stressor));
        let mut merged: BTreeMap<Key, Place> = BTreeMap::new();
        let (mut worked, mut refused) = (Vec::new(), Vec::new());
        for Tried { stressor, became } in tried {
            match became {
                Became::Refused { why } => refused.push(Idle { stressor, why }),
                Became::Worked { ops, virtual_ns, cut, losses, longest } => {
                    let longest_ns = longest_of(&longest);
                    let of_this = by_place(longest);
                    of_this
                        .into_iter()
                        .for_each(|(key, long)| add(&mut merged, key, long, &stressor));
                    worked.push(Worker { stressor, ops, virtual_ns, cut, losses, longest_ns });
                }
            }
        }
        let totals = KINDS.map(|kind| (kind, merged.keys().filter(|key| key.0 == kind).count()));
        let places = KINDS.iter().flat_map(|kind| ranked(&merged, *kind, top)).collect();
        let (missing, left_out) = (Vec::new(), Vec::new());
        Atlas { about, missing, totals: totals.into(), places, worked, refused, left_out }
    }
}

fn longest_of(stretches: &[Long]) -> BTreeMap<Kind, Nanos> {
    let mut longest: BTreeMap<Kind, Nanos> = BTreeMap::new();
    for stretch in stretches {
        let most = longest.entry(stretch.kind).or_default();
        *most = stretch.ns.max(*most);
    }
    longest
}

/// The longest stretch of each place.
fn by_place(stretches: Vec<Long>) -> BTreeMap<Key, Long> {
    let mut places: BTreeMap<Key, Long> = BTreeMap::new();
    for long in stretches {
        let key = (long.kind, place(&long), long.handler.clone());
        match places.get(&key) {
            Some(known) if length(known) >= length(&long) => {}
            _ => drop(places.insert(key, long)),
        }
    }
    places
}

/// The functions by which stretches are of one place. What is unscheduled has no opener: there these are the functions
/// that called the scheduler, and the outermost ones of those that went on until then, which tell the system call.
fn place(long: &Long) -> Vec<String> {
    match long.kind {
        Kind::IrqsOff | Kind::PreemptOff => hunt::place(&long.opened_by),
        Kind::Unscheduled => {
            let outermost = long.inside.len().saturating_sub(SIX);
            let inside = hunt::functions(&long.inside[outermost..], SIX);
            hunt::functions(&long.closed_by, SIX).into_iter().chain(inside).collect()
        }
    }
}

fn length(long: &Long) -> (Nanos, u64) {
    (long.ns, long.insns.0)
}

fn add(merged: &mut BTreeMap<Key, Place>, key: Key, long: Long, stressor: &str) {
    let new = |longest| Place { rank: 0, stressor: stressor.into(), stressors: 1, longest };
    match merged.get_mut(&key) {
        None => drop(merged.insert(key, new(long))),
        Some(known) if length(&known.longest) >= length(&long) => known.stressors += 1,
        Some(known) => *known = Place { stressors: known.stressors + 1, ..new(long) },
    }
}

/// The places of a kind, the longest first, and equally long ones by name.
fn ranked(merged: &BTreeMap<Key, Place>, kind: Kind, top: usize) -> Vec<Place> {
    let mut places: Vec<&Place> = merged.values().filter(|p| p.longest.kind == kind).collect();
    places.sort_by_key(|place| std::cmp::Reverse(length(&place.longest)));
    let ranks = (1..).zip(places).take(top);
    ranks.map(|(rank, place)| Place { rank, ..place.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::examples::{about, long, worked};
    use super::*;
    use Kind::{IrqsOff, PreemptOff, Unscheduled};

    fn ranks(atlas: &Atlas, kind: Kind) -> Vec<(usize, &str, u64, usize)> {
        let of_kind = atlas.places.iter().filter(|place| place.longest.kind == kind);
        of_kind.map(|p| (p.rank, &*p.stressor, p.longest.ns.0, p.stressors)).collect()
    }

    #[test]
    fn a_place_has_the_stressor_under_which_it_was_longest_whatever_calls_its_four_functions() {
        let fork =
            worked("fork", 3, vec![long(IrqsOff, 700, &["a+1", "b+1", "c+1", "d+1", "x+1"])]);
        let mmap = worked(
            "mmap",
            3,
            vec![
                long(IrqsOff, 900, &["a+7", "b+2", "c+3", "d+4", "y+1"]),
                long(IrqsOff, 800, &["a+1", "b+2", "c+3", "e+4"]),
            ],
        );
        for order in [vec![fork.clone(), mmap.clone()], vec![mmap, fork]] {
            let atlas = Atlas::of(about(), order, 10);
            assert_eq!(ranks(&atlas, IrqsOff), [(1, "mmap", 900, 2), (2, "mmap", 800, 1)]);
            assert_eq!(atlas.totals, [(IrqsOff, 2), (PreemptOff, 0), (Unscheduled, 0)].into());
        }
    }

    #[test]
    fn kinds_and_handlers_are_places_of_their_own_and_of_equal_ones_the_first_name_counts() {
        let entry = ["asm_sysvec_apic_timer_interrupt+0"];
        let tick = Long { handler: Some("tick_nohz_handler".into()), ..long(IrqsOff, 500, &entry) };
        let wake = Long { handler: Some("hrtimer_wakeup".into()), ..long(IrqsOff, 400, &entry) };
        let off = long(PreemptOff, 600, &entry);
        let all = [tick, wake, off];
        let tried = ["b", "a"].map(|name| worked(name, 1, all.to_vec())).into();
        let atlas = Atlas::of(about(), tried, 1);
        assert_eq!(ranks(&atlas, IrqsOff), [(1, "a", 500, 2)]);
        assert_eq!(ranks(&atlas, PreemptOff), [(1, "a", 600, 2)]);
        assert_eq!(atlas.totals[&IrqsOff], 2);
    }

    #[test]
    fn what_is_unscheduled_is_told_apart_by_the_scheduling_point_and_the_system_call() {
        let wait = |ns, inside: &[&str]| Long {
            inside: inside.iter().map(|frame| frame.to_string()).collect(),
            ..long(Unscheduled, ns, &[])
        };
        let waits = vec![
            wait(
                900,
                &[
                    "clear_page+1",
                    "f+1",
                    "e+1",
                    "munmap+1",
                    "x64_sys_call+1",
                    "do_syscall_64+1",
                    "entry+1",
                ],
            ),
            wait(
                800,
                &[
                    "free_page+1",
                    "f+9",
                    "e+1",
                    "munmap+1",
                    "x64_sys_call+1",
                    "do_syscall_64+1",
                    "entry+1",
                ],
            ),
            wait(700, &["f+9", "e+1", "mmap+1", "x64_sys_call+1", "do_syscall_64+1", "entry+1"]),
        ];
        let atlas = Atlas::of(about(), vec![worked("mmap", 1, waits)], 5);
        assert_eq!(ranks(&atlas, Unscheduled), [(1, "mmap", 900, 1), (2, "mmap", 700, 1)]);
    }

    #[test]
    fn who_worked_and_who_did_not_are_listed_by_name() {
        let why = "needs more than one processor".to_owned();
        let refused = Tried { stressor: "cpu-online".into(), became: Became::Refused { why } };
        let tried = vec![
            worked("pipe", 0, vec![long(IrqsOff, 5, &["a+1"])]),
            refused,
            worked("af", 2, vec![]),
        ];
        let atlas = Atlas::of(about(), tried, 5);
        let names: Vec<&str> = atlas.worked.iter().map(|worker| &*worker.stressor).collect();
        assert_eq!((names, atlas.worked[1].ops), (vec!["af", "pipe"], Some(0)));
        assert_eq!(atlas.worked[1].longest_ns, [(IrqsOff, Nanos(5))].into());
        assert_eq!(atlas.refused[0].stressor, "cpu-online");
    }
}
