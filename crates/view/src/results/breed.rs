// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset breed --json` prints, and `bred.json` holds.

use hunt::{Gene, Population};
use lab::breeding::{About, BredFind, Kept};
use lab::followed::CauseShare;
use sample::Nanos;
use serde::Serialize;
use std::path::Path;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bred<'a> {
    /// Number of this format.
    schema: u32,
    /// The directory that holds the loads and the finds.
    directory: String,
    #[serde(flatten)]
    about: &'a About,
    /// How many loads (genomes) were tried.
    loads: u64,
    /// How many trials they had together.
    trials: u64,
    /// How many different call stacks opened a stretch with interrupts or preemption off in them, as far as onset knows
    /// them: of stretches of at least 5,000 instructions, and of those that were fired into.
    stacks: usize,
    /// The longest latencies of each responder, the longest first, each of another place. One with the same main cause
    /// as a longer one is absent, unless the command was interrupted before it explained them.
    worst: Vec<WorstBred<'a>>,
    /// The loads under which the guest died.
    died: Vec<DeadLoad<'a>>,
}

/// One of the longest latencies.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorstBred<'a> {
    /// The responder that answered.
    responder: &'static str,
    /// The latency.
    latency_ns: Nanos,
    /// The file that `onset replay` takes.
    find: Option<String>,
    /// The number of the load.
    load: u64,
    /// What the load is made of.
    genes: &'a [Gene],
    /// The call stack that opened the stretch that was fired into, innermost first.
    stack: &'a [String],
    /// Where the time of the latency went, by cause, the longest first.
    causes: &'a [CauseShare],
}

/// A load under which the guest died.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeadLoad<'a> {
    /// The number of the load.
    load: u64,
    /// What the load is made of.
    genes: &'a [Gene],
    /// What is known of the death.
    text: &'a str,
}

impl<'a> Bred<'a> {
    /// Version of the format (docs/breed.schema.json).
    pub const SCHEMA: u32 = 1;

    /// The output about a search.
    pub fn of(
        about: &'a About,
        directory: &Path,
        population: &Population,
        (finds, kept): (&'a [BredFind], &'a [Kept]),
    ) -> Bred<'a> {
        let dead = |one: &'a Kept| {
            Some(DeadLoad {
                load: one.lived.number,
                genes: &one.lived.genome.genes,
                text: one.died.as_deref()?,
            })
        };
        Bred {
            schema: Self::SCHEMA,
            directory: directory.display().to_string(),
            about,
            loads: population.count(),
            trials: population.trials,
            stacks: population.stacks(),
            worst: finds.iter().map(worst).collect(),
            died: kept.iter().filter_map(dead).collect(),
        }
    }
}

fn worst(BredFind { number, genome, find }: &BredFind) -> WorstBred<'_> {
    WorstBred {
        responder: find.responder.name(),
        latency_ns: find.found.answer.latency_ns,
        find: find.path.as_ref().map(|path| path.display().to_string()),
        load: *number,
        genes: &genome.genes,
        stack: &find.found.answer.stack,
        causes: &find.causes,
    }
}
