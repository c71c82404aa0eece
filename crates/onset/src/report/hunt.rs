// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt as the page has it: how its worst answers grew, what each strategy did, and what was found.

use super::code::{Code, Stack};
use super::inside::{Latency, PARTS_KEPT, latency};
use crate::followed::{CauseShare, Explanations, replay_of_find};
use crate::hunt::{Concluded, Ended, Found, Kept, Share, Step};
use sample::{Losses, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trace::Sum;

/// The least share of a cause in what a hunt knows of a find that is not explained here.
const SHARE_KEPT: f64 = 0.01;

/// A hunt and what was made of its finds.
#[derive(Debug)]
pub struct Hunted {
    /// Its directory, as it was named.
    pub directory: PathBuf,
    /// What is in it.
    pub kept: Kept,
    /// By responder, the file of its find; absent where the hunt ended before it was written.
    pub finds: BTreeMap<String, PathBuf>,
    /// By responder, its find explained; empty where nobody looked.
    pub explained: BTreeMap<String, Explanations>,
}

/// The hunt.
#[derive(Serialize)]
pub struct Hunt<'a> {
    directory: String,
    flavour: &'a str,
    load: String,
    seed: u64,
    ended: Option<Ended>,
    trials: u64,
    triggers: u64,
    virtual_ns: Nanos,
    stacks_seen: usize,
    stacks_fired_into: usize,
    responders: Vec<Grown<'a>>,
    strategies: Vec<Did>,
    died: Vec<Death<'a>>,
}

/// A responder's worst answer, and how it came to that.
#[derive(Serialize)]
struct Grown<'a> {
    responder: &'a str,
    growth: Vec<Point>,
    /// What triggers at random alone reached, over their own virtual time.
    random: Vec<Point>,
    /// Their virtual time; 0 where there were none.
    random_ns: Nanos,
    /// Triggers of all trials without an answer of their own.
    losses: Losses,
    find: Option<Find>,
    /// The finds below the worst, the latest first, those that were disturbed last.
    others: Vec<Other>,
}

#[derive(Serialize)]
struct Point {
    virtual_ns: Nanos,
    latency_ns: Nanos,
    trial: u64,
}

#[derive(Serialize)]
struct Find {
    latency_ns: Nanos,
    trial: u64,
    strategy: &'static str,
    /// In which guest, where there are several.
    under: Option<String>,
    /// What had opened the stretch that was fired into; of no frames where the trigger was not aimed.
    stack: Stack,
    /// How to have it again; none where its file is of an earlier find.
    replay: Option<String>,
    missing: Vec<String>,
    /// The longest of what the hunt found to have made it so late; none where it is explained here, or was not there.
    causes: Vec<PartOf>,
    explanation: Option<Latency>,
}

/// A find below the worst.
#[derive(Serialize)]
struct Other {
    latency_ns: Nanos,
    trial: u64,
    strategy: &'static str,
    under: Option<String>,
    disturbed: bool,
    /// Its main cause, where it was explained.
    main: Option<PartOf>,
    /// In the hunt's directory, for `onset replay`.
    file: Option<String>,
}

#[derive(Serialize)]
struct PartOf {
    cause: usize,
    /// Of the latency, 0 to 1.
    share: f64,
    #[serde(flatten)]
    sum: Sum,
}

impl PartOf {
    fn new(of: &CauseShare, code: &mut Code) -> PartOf {
        PartOf { cause: code.cause(&of.cause), share: of.share, sum: of.sum }
    }
}

/// What one strategy did.
#[derive(Serialize)]
struct Did {
    strategy: &'static str,
    #[serde(flatten)]
    share: Share,
}

#[derive(Serialize)]
struct Death<'a> {
    trial: u64,
    under: Option<String>,
    text: &'a str,
}

/// As the page has it.
pub fn hunt<'a>(hunted: &'a Hunted, code: &mut Code) -> Hunt<'a> {
    let Kept { about, known, random, conclusion } = &hunted.kept;
    let grown = |responder: &'a String, code: &mut Code| Grown {
        responder,
        growth: points(&known.growth, responder),
        random: points(&random.growth, responder),
        random_ns: random.virtual_ns,
        losses: known.losses.get(responder).copied().unwrap_or_default(),
        find: find(hunted, responder, code),
        others: others(hunted, responder, code),
    };
    Hunt {
        directory: hunted.directory.display().to_string(),
        flavour: &about.flavour,
        load: about.loads(),
        seed: about.seed,
        ended: conclusion.as_ref().map(|conclusion| conclusion.ended),
        trials: known.trials,
        triggers: known.triggers,
        virtual_ns: known.virtual_ns,
        stacks_seen: known.seen.union(&known.fired).count(),
        stacks_fired_into: known.fired.len(),
        responders: about.responders.iter().map(|r| grown(r, code)).collect(),
        strategies: known
            .by_strategy()
            .into_iter()
            .map(|(s, share)| Did { strategy: s.name(), share })
            .collect(),
        died: known
            .died
            .iter()
            .map(|(trial, died)| {
                let under = about.guest(died.begin.guest);
                Death { trial: *trial, under, text: &died.text }
            })
            .collect(),
    }
}

fn points(growth: &[Step], responder: &str) -> Vec<Point> {
    let own = growth.iter().filter(|step| step.responder == responder);
    own.map(|&Step { virtual_ns, latency_ns, trial, .. }| Point { virtual_ns, latency_ns, trial })
        .collect()
}

fn find(hunted: &Hunted, responder: &str, code: &mut Code) -> Option<Find> {
    let found = hunted.kept.known.worst(responder)?;
    let seen = hunted.explained.get(responder);
    let explained = seen.and_then(|seen| seen.explained.first());
    let mut concluded = hunted.kept.conclusion.iter().flat_map(|conclusion| &conclusion.worst);
    // A hunt that went on and was killed has found a later one since it wrote that file.
    let written = concluded.find(|find| find.responder == responder);
    let written = written.filter(|find| is_same(find, found));
    let causes = written.filter(|_| explained.is_none()).map(|find| &find.causes);
    let longest = causes.into_iter().flatten().take_while(|cause| cause.share >= SHARE_KEPT);
    Some(Find {
        latency_ns: found.best.latency_ns,
        trial: found.trial,
        strategy: found.strategy.name(),
        under: hunted.kept.about.guest(found.best.begin.guest),
        stack: code.stack(&found.best.stack),
        replay: written.and(hunted.finds.get(responder)).map(|path| replay_of_find(path)),
        missing: seen.map_or_else(Vec::new, |seen| seen.missing.clone()),
        causes: longest.map(|cause| PartOf::new(cause, code)).collect(),
        explanation: explained.map(|explained| latency(explained, PARTS_KEPT, code)),
    })
}

/// Whether this is how that find stood at the hunt's end.
fn is_same(concluded: &Concluded, found: &Found) -> bool {
    (concluded.trial, concluded.latency_ns) == (found.trial, found.best.latency_ns)
}

/// What the hunt had found of this responder below its worst when it ended.
fn others(hunted: &Hunted, responder: &str, code: &mut Code) -> Vec<Other> {
    let Kept { about, known, conclusion, .. } = &hunted.kept;
    let worst = known.worst(responder);
    let concluded = conclusion.iter().flat_map(|conclusion| &conclusion.worst);
    let below = concluded
        .filter(|find| find.responder == responder)
        .filter(|find| !worst.is_some_and(|worst| is_same(find, worst)));
    let other = below.map(|find| Other {
        latency_ns: find.latency_ns,
        trial: find.trial,
        strategy: find.at_strategy.name(),
        under: about.guest(find.guest),
        disturbed: !find.disturbances.is_empty(),
        main: find.causes.first().map(|main| PartOf::new(main, code)),
        file: find
            .find
            .as_ref()
            .and_then(|path| path.file_name())
            .map(|name| name.to_string_lossy().into_owned()),
    });
    other.collect()
}
