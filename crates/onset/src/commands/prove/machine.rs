// SPDX-License-Identifier: GPL-2.0-or-later
//! On this machine: a screening if there are many knobs, then knob by knob, then those that help together.

use super::blocks::{Blocks, Change, Subject, check_journal};
use super::{CONTROL_ROW, TOGETHER, goal, kept};
use crate::arguments::TuneProve;
use crate::commands::tune;
use crate::failure::Failure;
use machine::{Cpus, KnobKind, Plan, System};
use probes::context::show_cpu_list;
use stats::Statistic;
use std::hash::{BuildHasher, Hasher, RandomState};
use view::results::{KernelProof, MachineProof, Pairs, Proof, ProofRow};
use view::terminal::Shown;
use view::visible::tell;
use work::Progress;

/// How many pairs there are if nobody says a number. With blocks of 5 s these and those of the control take less than
/// 20 minutes, and find a change of 10 % where neighbouring blocks differ by 18 % (crates/stats/tests/proofs.rs).
const PAIRS: u16 = 50;
/// Whose answers are judged if nobody says so, and by which statistic.
const GOAL: &str = "periodic.p99";
/// From so many knobs on, a screening saves time: it has half as many pairs as one knob.
const SCREENED_MIN: usize = 4;

/// The blocks, and what of them is judged.
struct Proving<'a> {
    blocks: Blocks<'a>,
    statistic: Statistic,
    pairs: u64,
}

pub fn prove(arguments: &TuneProve) -> Result<Proof, Failure> {
    let system = System::below("/");
    let cpus = tune::cpus(&system, &arguments.cpus)?;
    let changes = changes(&arguments.knobs, &cpus)?;
    let (responder, statistic) = goal(arguments.goal.as_deref().unwrap_or(GOAL))?;
    let subject = Subject::find(&responder, &cpus)?;
    check_journal(&arguments.journal.journal)?;
    // The standard library's random keys for hash maps.
    let seed = RandomState::new().build_hasher().finish() >> 32;
    let places = (&cpus, arguments.journal.journal.as_path(), arguments.store.store.as_path());
    let blocks = Blocks::new(places, (arguments.load, arguments.block), (subject, seed))?;
    let pairs = u64::from(arguments.pairs.unwrap_or(PAIRS));
    let mut proving = Proving { blocks, statistic, pairs };
    let (open, refused) = proving.tried(changes)?;
    tell!("onset: the seed of the order is {seed}");
    let screening = match open.len() < SCREENED_MIN {
        true => Vec::new(),
        false => proving.screening(&open)?,
    };
    let is_ruled_out = |change: &Change| {
        let row = screening.iter().find(|row| row.change == change.name);
        row.is_some_and(|row| !row.latency.as_ref().is_some_and(|latency| latency.may_help()))
    };
    let kept: Vec<Change> = open.into_iter().filter(|change| !is_ruled_out(change)).collect();
    let (rows, chosen) = proving.rows(&kept)?;
    let Proving { blocks, .. } = proving;
    let proof = Proof {
        schema: Proof::SCHEMA,
        responder: blocks.subject.series,
        statistic: statistic.name(),
        load: arguments.load.name().into(),
        kernels: vec![KernelProof {
            flavour: system.release().unwrap_or_else(|| "unknown".into()),
            rows: rows.into_iter().chain(refused).collect(),
            groups: Vec::new(),
            hunted: None,
        }],
        untried: Vec::new(),
        machine: Some(MachineProof {
            machine: system.machine(),
            cpus: show_cpu_list(&cpus.measured),
            block: blocks.block,
            seed,
            screening,
            chosen,
        }),
    };
    kept::keep(&proof, &arguments.store.store)?;
    Ok(proof)
}

/// The knobs, each with a plan of its own.
fn changes(knobs: &[String], cpus: &Cpus) -> Result<Vec<Change>, Failure> {
    let change = |knob: &String| {
        let plan =
            Plan::default().with(std::slice::from_ref(knob), cpus).map_err(Failure::usage)?;
        let at_boot = plan
            .changes()
            .iter()
            .map(|change| change.knob)
            .find(|knob| knob.kind == KnobKind::Boot || knob.reboot || knob.irreversible);
        match at_boot {
            Some(knob) => Err(Failure::usage(format!(
                "{} needs a reboot, to change it or to take it back; prove it in the rig: --flavour FLAVOUR",
                knob.name
            ))),
            None => Ok(Change { name: knob.clone(), plan }),
        }
    };
    let changes = knobs.iter().map(change).collect::<Result<Vec<_>, _>>()?;
    let together = Plan::default().with(knobs, cpus).map_err(Failure::usage)?;
    if together.changes().len() < changes.len() {
        return Err(Failure::usage("a knob is named twice; prove its values one after the other"));
    }
    let consistent = together.consistent();
    consistent.map_err(|e| Failure::usage(format!("{e}; prove them one at a time")))?;
    Ok(changes)
}

impl Proving<'_> {
    /// Makes each change once and takes it back. Returns those that this machine takes, and rows of the others.
    fn tried(&self, changes: Vec<Change>) -> Result<(Vec<Change>, Vec<ProofRow>), Failure> {
        let (mut open, mut refused) = (Vec::new(), Vec::new());
        for change in changes {
            match self.blocks.hindrance(&change)? {
                None => open.push(change),
                Some(why) => refused.push((change, why)),
            }
        }
        if open.is_empty() {
            let why: Vec<&str> = refused.iter().map(|(_, why)| why.as_str()).collect();
            return Err(Failure::unavailable(format!("nothing can be proven: {}", why.join("; "))));
        }
        let row = |(change, why): (Change, String)| {
            self.row(&change, Pairs { absent: vec![why], ..Pairs::default() })
        };
        Ok((open, refused.into_iter().map(row).collect()))
    }

    fn row(&self, change: &Change, pairs: Pairs) -> ProofRow {
        let goal = (self.blocks.subject.series.as_str(), self.statistic);
        ProofRow::of((change.name.clone(), change.words()), goal, pairs)
    }

    /// Pairs of blocks, of which the one has a half of the changes, drawn by lot, and the other has the rest. So each
    /// pair tells something of every change.
    fn screening(&mut self, changes: &[Change]) -> Result<Vec<ProofRow>, Failure> {
        let mut shown = Shown::of(vec!["screening".into()]);
        let mut all: Vec<Pairs> = changes.iter().map(|_| Pairs::default()).collect();
        let pairs = self.pairs.div_ceil(2);
        for done in 0..pairs {
            shown.progress(0, Progress::Measuring(done, pairs));
            let number = self.blocks.draw();
            let is_in = stats::half(self.blocks.seed, number, changes.len());
            let part = |wanted: bool| {
                let of = changes.iter().zip(&is_in).filter(|(_, is)| **is == wanted);
                joined(of.map(|(change, _)| change), self.blocks.cpus)
            };
            let halves = [part(false)?, part(true)?];
            let mut pair = Pairs::default();
            self.blocks.pair(number, [&halves[0], &halves[1]], &mut pair)?;
            for (pairs, is_in) in all.iter_mut().zip(&is_in) {
                let turned = pair.latencies.iter().cloned();
                pairs.latencies.extend(turned.map(|(a, b)| if *is_in { (a, b) } else { (b, a) }));
                pairs.absent.extend(pair.absent.iter().cloned());
            }
        }
        shown.end(0, "done");
        Ok(changes.iter().zip(all).map(|(change, pairs)| self.row(change, pairs)).collect())
    }

    /// The control and each change, then those that help together. Returns the rows, and the names of what helps.
    fn rows(&mut self, changes: &[Change]) -> Result<(Vec<ProofRow>, Vec<String>), Failure> {
        let control = Change { name: CONTROL_ROW.into(), plan: Plan::default() };
        let mut rows = self.paired(&[&[control], changes].concat())?;
        let helping = rows.iter().filter(|row| row.change != CONTROL_ROW && row.helps());
        let chosen: Vec<String> = helping.map(|row| row.change.clone()).collect();
        if chosen.len() > 1 {
            let of = changes.iter().filter(|change| chosen.contains(&change.name));
            let together = Change { name: TOGETHER.into(), ..joined(of, self.blocks.cpus)? };
            rows.extend(self.paired(&[together])?);
        }
        Ok((rows, chosen))
    }

    /// A proof of each change. The changes take turns, so that all see the same hours of the machine.
    fn paired(&mut self, changes: &[Change]) -> Result<Vec<ProofRow>, Failure> {
        let without = Change { name: "without a change".into(), plan: Plan::default() };
        let mut shown = Shown::of(changes.iter().map(|change| change.name.clone()).collect());
        let mut all: Vec<Pairs> = changes.iter().map(|_| Pairs::default()).collect();
        for done in 0..self.pairs {
            for (index, (change, pairs)) in changes.iter().zip(&mut all).enumerate() {
                shown.progress(index, Progress::Measuring(done, self.pairs));
                let number = self.blocks.draw();
                self.blocks.pair(number, [&without, change], pairs)?;
            }
        }
        (0..changes.len()).for_each(|index| shown.end(index, "done"));
        Ok(changes.iter().zip(all).map(|(change, pairs)| self.row(change, pairs)).collect())
    }
}

/// Several changes at once.
fn joined<'a>(changes: impl Iterator<Item = &'a Change>, cpus: &Cpus) -> Result<Change, Failure> {
    let (mut names, mut words) = (Vec::new(), Vec::new());
    for change in changes {
        names.push(change.name.clone());
        words.push(change.words());
    }
    let plan = Plan::default().with(&words, cpus).map_err(Failure::usage)?;
    Ok(Change { name: names.join(" "), plan })
}
