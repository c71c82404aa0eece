// SPDX-License-Identifier: GPL-2.0-or-later
//! A hunt as the page shows it: how its longest latencies grew, what each strategy did, and the finds.

use super::code::{Code, Stack};
use super::inside::{Latency, PARTS_KEPT, latency};
use super::place::Place;
use hunt::{Discovery, GrowthStep, HuntEnd, Share};
use lab::followed::{CauseShare, Explanations, replay_of_find};
use lab::hunting::{PastFind, PastHunt};
use sample::{Losses, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trace::Sum;

/// The smallest share of a cause that is shown of a find that is not explained here.
const SHARE_KEPT: f64 = 0.01;

/// A hunt, and the explanations of its finds.
#[derive(Debug)]
pub struct Hunted {
    /// Its directory, as the user named it.
    pub directory: PathBuf,
    /// What is in it.
    pub kept: PastHunt,
    /// By responder, the file of its find. Absent if the hunt ended before it wrote the file.
    pub finds: BTreeMap<String, PathBuf>,
    /// By responder, the explanation of its find. Empty if the user did not ask for explanations.
    pub explained: BTreeMap<String, Explanations>,
}

/// A search for the longest latencies in one guest, or in several.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hunt<'a> {
    /// The directory of the hunt, relative to the directory of the page, as all paths.
    directory: String,
    /// Kernel and boot options (the flavour).
    flavour: &'a str,
    /// The loads of the guests.
    load: String,
    /// The seed of everything random.
    seed: u64,
    /// Why the hunt ended. Null if it was killed, or still goes on.
    ended: Option<HuntEnd>,
    /// How many trials the hunt made.
    trials: u64,
    /// The triggers of all trials.
    triggers: u64,
    /// The virtual time of all trials together.
    virtual_ns: Nanos,
    /// How many stacks opened a stretch with interrupts or preemption off.
    stacks_seen: usize,
    /// At how many of these stacks a trigger was aimed.
    stacks_fired_into: usize,
    /// The responders whose longest latency the hunt searched for.
    responders: Vec<Grown<'a>>,
    /// What each strategy did by itself.
    strategies: Vec<Did>,
    /// Guests that died during a trial.
    died: Vec<Death<'a>>,
    /// Trials that came out otherwise in a fork than in a restored guest, which is a fault of onset.
    forked_otherwise: &'a [u64],
}

/// The longest latency of a responder, and how it grew.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Hunted"))]
struct Grown<'a> {
    /// The responder.
    responder: &'a str,
    /// The longest latency so far, in rising order.
    growth: Vec<Point>,
    /// The same for triggers at random instants alone, over their own virtual time.
    random: Vec<Point>,
    /// The virtual time of these triggers; 0 if there were none.
    random_ns: Nanos,
    /// Triggers of all trials that had no answer of their own.
    losses: Losses,
    /// The find with the longest latency; null if the responder never answered.
    find: Option<Find>,
    /// The other finds of a hunt that has ended: the longest latency first, finds with disturbances last.
    others: Vec<Other>,
}

/// The longest latency from a virtual time on.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GrowthPoint"))]
struct Point {
    /// The virtual time of all trials until then.
    virtual_ns: Nanos,
    /// The longest latency.
    latency_ns: Nanos,
    /// Number of the trial that found it.
    trial: u64,
}

/// The longest latency that a hunt found, and how to replay it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Find {
    /// The latency.
    latency_ns: Nanos,
    /// Number of the trial.
    trial: u64,
    /// The strategy that chose the instant.
    strategy: &'static str,
    /// The guest, if there are several.
    under: Option<String>,
    /// Index of the stack that opened the stretch at which the trigger was aimed. It has no frames if the trigger had
    /// no aim.
    stack: Stack,
    /// The command that replays it; null if the hunt ended before it wrote the find.
    replay: Option<String>,
    /// What onset cannot see in this kernel, and why.
    missing: Vec<String>,
    /// The causes that the hunt found for this latency, the longest first. Empty if the find is explained here, or has
    /// no known causes.
    causes: Vec<PartOf>,
    /// The explanation, if the user asked for one.
    explanation: Option<Latency>,
}

/// Another find than the worst.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OtherFind"))]
struct Other {
    /// The latency.
    latency_ns: Nanos,
    /// Number of the trial.
    trial: u64,
    /// The strategy that chose the instant.
    strategy: &'static str,
    /// The guest, if there are several.
    under: Option<String>,
    /// Whether another device disturbed the guest.
    disturbed: bool,
    /// Its main cause; null if the find is not explained.
    main: Option<PartOf>,
    /// Its file in the hunt's directory, for `onset replay`.
    file: Option<String>,
}

/// The part of a latency that one cause took.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FindCause", transform = uncounted))]
struct PartOf {
    /// Index of the cause.
    cause: usize,
    /// The share of the latency, 0 to 1.
    share: f64,
    #[serde(flatten)]
    sum: Sum,
}

/// A hunt of an older version did not count stretches.
#[cfg(feature = "schema")]
fn uncounted(schema: &mut schemars::Schema) {
    if let Some(least) = schema.pointer_mut("/properties/stretches/minimum") {
        *least = 0.into();
    }
}

impl PartOf {
    fn new(of: &CauseShare, code: &mut Code) -> PartOf {
        PartOf { cause: code.cause(&of.cause), share: of.share, sum: of.sum }
    }
}

/// The work of one strategy.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StrategyShare"))]
struct Did {
    /// Its name.
    strategy: &'static str,
    #[serde(flatten)]
    share: Share,
}

/// A guest that died during a trial.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DeadGuest"))]
struct Death<'a> {
    /// Number of the trial.
    trial: u64,
    /// The guest, if there are several.
    under: Option<String>,
    /// What is known of its death.
    text: &'a str,
}

/// The hunt as the page shows it.
pub fn hunt<'a>(hunted: &'a Hunted, place: &Place, code: &mut Code) -> Hunt<'a> {
    let PastHunt { about, known, random, conclusion } = &hunted.kept;
    let grown = |responder: &'a String, code: &mut Code| Grown {
        responder,
        growth: points(&known.growth, responder),
        random: points(&random.growth, responder),
        random_ns: random.virtual_ns,
        losses: known.losses.get(responder).copied().unwrap_or_default(),
        find: find(hunted, responder, place, code),
        others: others(hunted, responder, code),
    };
    Hunt {
        directory: place.path_to(&hunted.directory).display().to_string(),
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
            .map(|(s, share)| Did { strategy: s.as_str(), share })
            .collect(),
        died: known
            .died
            .iter()
            .map(|(trial, died)| {
                let under = about.guest(died.begin.guest);
                Death { trial: *trial, under, text: &died.text }
            })
            .collect(),
        forked_otherwise: &known.forked_otherwise,
    }
}

fn points(growth: &[GrowthStep], responder: &str) -> Vec<Point> {
    let own = growth.iter().filter(|step| step.responder == responder);
    own.map(|&GrowthStep { virtual_ns, latency_ns, trial, .. }| Point {
        virtual_ns,
        latency_ns,
        trial,
    })
    .collect()
}

fn find(hunted: &Hunted, responder: &str, place: &Place, code: &mut Code) -> Option<Find> {
    let found = hunted.kept.known.worst(responder)?;
    let seen = hunted.explained.get(responder);
    let explained = seen.and_then(|seen| seen.explained.first());
    let mut concluded = hunted.kept.conclusion.iter().flat_map(|conclusion| &conclusion.worst);
    // A hunt that went on and was then killed may have found a longer latency after it wrote that file.
    let written = concluded.find(|find| find.responder == responder);
    let written = written.filter(|find| is_same(find, found));
    let file = written.and(hunted.finds.get(responder));
    let causes = written.filter(|_| explained.is_none()).map(|find| &find.causes);
    let longest = causes.into_iter().flatten().take_while(|cause| cause.share >= SHARE_KEPT);
    Some(Find {
        latency_ns: found.answer.latency_ns,
        trial: found.trial,
        strategy: found.strategy.as_str(),
        under: hunted.kept.about.guest(found.answer.begin.guest),
        stack: code.stack(&found.answer.stack),
        replay: file.map(|path| replay_of_find(&place.path_to(path))),
        missing: seen.map_or_else(Vec::new, |seen| seen.missing.clone()),
        causes: longest.map(|cause| PartOf::new(cause, code)).collect(),
        explanation: explained.map(|explained| latency(explained, PARTS_KEPT, code)),
    })
}

/// Whether this is the find at the end of the hunt.
fn is_same(concluded: &PastFind, found: &Discovery) -> bool {
    (concluded.trial, concluded.latency_ns) == (found.trial, found.answer.latency_ns)
}

/// The other finds of this responder when the hunt ended.
fn others(hunted: &Hunted, responder: &str, code: &mut Code) -> Vec<Other> {
    let PastHunt { about, known, conclusion, .. } = &hunted.kept;
    let worst = known.worst(responder);
    let concluded = conclusion.iter().flat_map(|conclusion| &conclusion.worst);
    let below = concluded
        .filter(|find| find.responder == responder)
        .filter(|find| !worst.is_some_and(|worst| is_same(find, worst)));
    let other = below.map(|find| Other {
        latency_ns: find.latency_ns,
        trial: find.trial,
        strategy: find.at_strategy.as_str(),
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
