// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset patch prove`: what preemption points of our own do to the stretches that they cut, to each rung of the
//! ladder, to the latest answer that a hunt finds, and to the costs.

use super::rig::screen::LADDER;
use super::rig::{Change, Chosen, Proving, base as flavour_of, few_batches, hunted, reasons};
use super::{TOGETHER, exit, goal};
use crate::arguments::PatchProve;
use crate::commands::{bench, print, print_json};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use lab::cells::FollowedCell;
use lab::windows::{Which, windows};
use sample::Responder;
use stats::Statistic;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace::{Order, WindowKind, WindowsReport};
use view::results::{
    Hunted, KernelProof, PatchProof, PatchedCost, PatchedKernel, PatchedRung, PatchedStretch, Proof,
};
use view::terminal;
use view::visible::tell;

/// How many triggers long the kernels are followed to see their stretches. The longest ones are rare: the kernel gives
/// vmalloc's areas back some times in 20 virtual seconds.
const FOLLOWED: i64 = 5_000;
/// The windows of so many stacks are looked through for those of a function: all of them.
const STACKS_MAX: usize = 100_000;

/// A proof that is to be made: all that was asked for makes sense.
pub struct Planned<'a> {
    arguments: &'a PatchProve,
    base: String,
    patched: Vec<Patched>,
    responder: String,
    statistic: Statistic,
}

/// One kernel with patches: the change, and the stretches that its patches cut.
struct Patched {
    change: Change,
    /// The patches as the user named them: none for all of the series.
    named: Vec<String>,
    stretches: Vec<(WindowKind, String)>,
}

impl Planned<'_> {
    /// The patches of each kernel that the proof needs; none for all of the series.
    pub fn kernels(&self) -> impl Iterator<Item = &[String]> {
        self.patched.iter().map(|patched| patched.named.as_slice())
    }
}

/// Plans the proof: each patch alone, and all of them together.
///
/// # Errors
/// If a patch, the goal or the boot options do not exist or make no sense.
pub fn planned(arguments: &PatchProve) -> Result<Planned<'_>, Failure> {
    let base = format!("{}-onset-base {}", arguments.series, arguments.options);
    let base = flavour_of(base.trim_end())?;
    let (responder, statistic) = goal(&arguments.goal)?;
    // A misspelt responder is found here, and not after the kernels were built.
    let known: Result<Responder, _> = responder.parse();
    known.map_err(|e| Failure::usage(format!("--goal {}: {e}", arguments.goal)))?;
    Ok(Planned { arguments, base, patched: patched(arguments)?, responder, statistic })
}

/// Proves the patches, whose kernels are in the cache.
pub fn patches(planned: Planned) -> Result<Exit, Failure> {
    let Planned { arguments, base, patched, responder, statistic } = planned;
    let proving = Proving {
        load: arguments.load,
        pairs: arguments.pairs,
        jobs: arguments.jobs,
        store: &arguments.store,
        responder,
        statistic,
        others: &LADDER,
        // Of the whole suite.
        costs: few_batches,
    };
    let changes = patched.iter().map(|patched| patched.change.clone());
    let changes: Vec<Change> = std::iter::once(Change::control()).chain(changes).collect();
    let chosen: Chosen = (base.clone(), changes.clone());
    let runs = proving.runs(std::slice::from_ref(&chosen), true)?;
    let mut kernel = KernelProof {
        rows: changes.iter().map(|change| proving.row(&runs, &base, change)).collect(),
        groups: Vec::new(),
        hunted: None,
        flavour: base.clone(),
    };
    let seen = stretches(&proving, &base, &patched)?;
    let kernels = patched.iter().map(|patched| {
        let pairs = runs.pairs(&base, &patched.change);
        let cost = |(before, after): &(_, _)| PatchedCost::of(before, after);
        let (costs, costs_measured) = pairs.costs.as_ref().map(cost).unwrap_or_default();
        let stretch = |(kind, function): &(WindowKind, String)| {
            let [before, after] = [&base, &patched.change.of(&base)].map(|flavour| &seen[flavour]);
            PatchedStretch::of(*kind, function.clone(), before, after)
        };
        PatchedKernel {
            change: patched.change.name.clone(),
            stretches: patched.stretches.iter().map(stretch).collect(),
            rungs: PatchedRung::of(&pairs.latencies),
            costs,
            costs_measured,
        }
    });
    let kernels: Vec<PatchedKernel> = kernels.collect();
    reasons::tell(&proving, &mut kernel)?;
    let last = &changes.last().expect("a patch or more").clone();
    kernel.hunted = Some(Hunted {
        words: last.words.clone(),
        without: hunted::worst(&proving, &base, arguments.hunt)?,
        with: hunted::worst(&proving, &last.of(&base), arguments.hunt)?,
    });
    let proof = Proof {
        schema: Proof::SCHEMA,
        statistic: statistic.name(),
        load: arguments.load.name().into(),
        kernels: vec![kernel],
        untried: Vec::new(),
        machine: None,
        responder: proving.responder,
    };
    let proof = PatchProof { schema: PatchProof::SCHEMA, proof, kernels };
    match arguments.json {
        true => print_json(&proof)?,
        false => print(&terminal::patches(&proof))?,
    }
    Ok(exit(&proof.proof))
}

/// Each patch alone, and together if there are several; all of the series if none is named.
fn patched(arguments: &PatchProve) -> Result<Vec<Patched>, Failure> {
    let PatchProve { series, patches, .. } = arguments;
    let directory = Installation::find()?.patches_of(series);
    let all = all(&directory)?;
    if all.is_empty() {
        return Err(Failure::usage(format!(
            "there are no patches of the series {series}; onset patch list has the names"
        )));
    }
    if let Some(unknown) = patches.iter().find(|patch| !all.contains(patch)) {
        return Err(Failure::usage(format!(
            "{series} has no patch {unknown}; onset patch list has the names"
        )));
    }
    let alone = patches.iter().map(|name| (name.clone(), vec![name.clone()]));
    let together = (patches.len() != 1).then(|| (TOGETHER.to_owned(), patches.clone()));
    let patched = |(name, named): (String, Vec<String>)| {
        // The names are those that the script gives.
        let (words, set) = match named.is_empty() {
            true => (format!("{series}-onset"), &all),
            false => (format!("{series}-onset-{}", named.join("+")), &named),
        };
        let stretches = set.iter().map(|patch| stretches_of(&directory.join(patch)));
        let stretches = stretches.collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Patched { change: Change { name, words, is_kernel: true }, named, stretches })
    };
    alone.chain(together).map(patched).collect()
}

/// The names of all patches in a directory, which need not exist.
fn all(directory: &Path) -> Result<Vec<String>, Failure> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |e| Failure::unavailable(format!("{}: {e}", directory.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".patch")).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The stretches that a patch cuts, by its header: `Stretch: preempt_off reclaim_list_global`.
fn stretches_of(patch: &Path) -> Result<Vec<(WindowKind, String)>, Failure> {
    let path = patch.with_extension("patch");
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::unavailable(format!("{}: {e}", path.display())))?;
    let header = text.lines().take_while(|line| *line != "---");
    let lines = header.filter_map(|line| line.strip_prefix("Stretch: "));
    let stretch = |line: &str| {
        let (kind, function) = line.split_once(' ')?;
        let kind = WindowKind::ALL.into_iter().find(|known| known.name() == kind)?;
        Some((kind, function.trim().to_owned()))
    };
    let wrong = || Failure::unavailable(format!("{}: Stretch: KIND FUNCTION", path.display()));
    lines.map(|line| stretch(line).ok_or_else(wrong)).collect()
}

/// All windows of each kernel, by flavour.
fn stretches(
    proving: &Proving,
    base: &str,
    patched: &[Patched],
) -> Result<BTreeMap<String, WindowsReport>, Failure> {
    let kinds: BTreeSet<WindowKind> =
        patched.iter().flat_map(|patched| &patched.stretches).map(|(kind, _)| *kind).collect();
    let kinds: Vec<WindowKind> = kinds.into_iter().collect();
    let changes: Vec<Change> = patched.iter().map(|patched| patched.change.clone()).collect();
    let experiment = proving.latencies(&[(base.to_owned(), changes)])?;
    let experiment = experiment.with_overrides(&[
        ("trigger.count".into(), FOLLOWED.to_string()),
        ("repeats".into(), "1".into()),
    ])?;
    let bench = bench()?;
    let (cells, _, _) = FollowedCell::of_experiment(&bench, experiment, None, None)?;
    let mut seen = BTreeMap::new();
    for cell in cells {
        let flavour = cell.flavour.clone();
        tell!("{flavour} · {}: follows {FOLLOWED} triggers", cell.load);
        let which = Which { kinds: kinds.clone(), order: Order::Longest, top: STACKS_MAX };
        seen.insert(flavour, windows(&bench, cell, which, &|_| ())?.report);
    }
    Ok(seen)
}
