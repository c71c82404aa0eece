// SPDX-License-Identifier: GPL-2.0-or-later
//! The latest answer that a hunt finds without a change, and the one that it finds with all helping knobs.

use super::{CONTROL_ROW, Proving, TOGETHER};
use crate::commands::{bench, hunt as hunting, run::processors};
use crate::failure::Failure;
use experiment::{Experiment, Flavour};
use hunt::{Budget, Hunt, HuntFailure, STRATEGIES};
use lab::followed::Subject;
use lab::hunting::{About, Grounds, JOURNAL, Journal};
use lab::shards::name_of;
use lab::target::Rig;
use sample::Responder;
use view::results::{Hunted, HuntedWorst, KernelProof, ProofRow};
use view::visible::{tell, tell_line};

/// The seed of both hunts.
const SEED: u64 = 1;

/// Hunts without a change and with all helping knobs at once. `None` if no knob helps.
pub fn hunt(
    proving: &Proving,
    kernel: &KernelProof,
    budget: Budget,
) -> Result<Option<Hunted>, Failure> {
    let helps =
        |row: &&ProofRow| row.change != CONTROL_ROW && row.change != TOGETHER && row.helps();
    let words: Vec<&str> = kernel.rows.iter().filter(helps).map(|row| row.words.as_str()).collect();
    if words.is_empty() {
        return Ok(None);
    }
    // A row of a knob that needs another one has the words of both.
    let mut all: Vec<&str> = Vec::new();
    for word in words.iter().flat_map(|words| words.split(' ')) {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    let words = all.join(" ");
    let without = worst(proving, &kernel.flavour, budget)?;
    let with = worst(proving, &format!("{} {words}", kernel.flavour), budget)?;
    Ok(Some(Hunted { words, without, with }))
}

pub fn worst(proving: &Proving, flavour: &str, budget: Budget) -> Result<HuntedWorst, Failure> {
    let flavour: Flavour = flavour.parse().map_err(Failure::usage)?;
    let responder: Responder = proving.responder.parse().map_err(Failure::usage)?;
    let experiment = proving.latencies(&[(flavour.to_string(), Vec::new())])?;
    let rig = Rig::new(bench()?, &experiment)?;
    let ready = hunting::ready(rig.bench(), subject(&rig, &experiment)?, &flavour)?;
    let grounds = Grounds::new(vec![ready]);
    let hunt = Hunt {
        guests: 1,
        responders: vec![responder],
        strategies: STRATEGIES.iter().map(|strategy| strategy.name()).collect(),
        seed: SEED,
        budget,
        jobs: proving.jobs.map_or_else(processors, usize::from),
        corpus: Vec::new(),
        enough: None,
    };
    let about = About::of(&hunt, &experiment.source, flavour.to_string(), grounds.first());
    // The same hunt of an earlier proof is gone on with, which has nothing to do if it had the same budget.
    // Two kernels may be the same and have different names.
    let name = name_of(&format!("{flavour} {}", about.guests[0].snapshot));
    let directory = proving.store.store.join("hunts").join(format!("prove-{responder}-{name}"));
    std::fs::create_dir_all(&directory)
        .map_err(|e| Failure::unavailable(format!("{}: {e}", directory.display())))?;
    tell!("{flavour} · {}: hunts in {}", proving.load, directory.display());
    let mut journal = Journal::open(&directory.join(JOURNAL), &about, &tell_line)?;
    let (known, _) = hunting::search(&hunt, &grounds, &mut journal)
        .map_err(|HuntFailure { failure, .. }| Failure::from(failure))?;
    if work::is_cancelled() {
        return Err(rig::Error::Interrupted.into());
    }
    let finds = known.finds.get(responder.name());
    Ok(HuntedWorst {
        worst_ns: finds.and_then(|finds| finds.first()).map(|find| find.answer.latency_ns),
        trials: known.trials,
        triggers: known.triggers,
        directory: directory.display().to_string(),
    })
}

fn subject(rig: &Rig, experiment: &Experiment) -> Result<Subject, Failure> {
    let cell = experiment.cells().next().expect("the experiment has a flavour and a load");
    Ok(Subject::of_cell(rig, experiment, cell))
}
