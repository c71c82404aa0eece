// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset compare`: two runs, responder by responder. If the store knows both latencies and costs of their kernels,
//! also what these get and what they pay.

use super::{open, print, print_json};
use crate::failure::{Exit, Failure};
use bundle::settings::ns_per_insn;
use bundle::store::{Headline, Store};
use bundle::{Bundle, Manifest};
use stats::{Condition, ConditionOutcome, Summary, Verdict};
use std::path::Path;
use view::results::Compare;
use view::terminal;

pub fn run(
    (before, after): (&str, &str),
    fail_if: &[Condition],
    store: &Path,
    json: bool,
) -> Result<Exit, Failure> {
    let pair = [open(before, store)?, open(after, store)?];
    let [before, after] = pair.each_ref().map(Bundle::manifest);
    let insn = [before, after].map(ns_per_insn);
    if let [Some(then), Some(now)] = insn
        && then != now
    {
        return Err(Failure::usage(format!(
            "an instruction takes {then} ns in the earlier run and {now} ns in the later one (guest.shift), so their times cannot be compared; run one of them again with the other's shift"
        )));
    }
    let is_sound = |run: &Manifest| run.complete && run.conclusion.verdict != Verdict::Invalid;
    let are_sound = is_sound(before) && is_sound(after);
    let are_identical = before.samples.blake3 == after.samples.blake3;
    let judged = fail_if.iter().map(|condition| {
        let outcome = condition.judge(&before.series, &after.series, are_identical);
        let outcome = outcome.map_err(Failure::usage)?;
        // What an invalid run says proves nothing, in either direction.
        Ok((condition, if are_sound { outcome } else { ConditionOutcome::Undecided }))
    });
    let judged: Vec<(&Condition, ConditionOutcome)> = judged.collect::<Result<_, Failure>>()?;
    let others = others(&Store::at(store), [before, after]);
    let known: Vec<&Manifest> =
        [before, after].into_iter().chain(others.iter().map(Bundle::manifest)).collect();
    if json {
        print_json(&Compare::of(before, after, &judged, &known).map_err(Failure::usage)?)?;
    } else {
        let text = terminal::comparison(before, after, &judged).map_err(Failure::usage)?;
        print(&(text + &terminal::price(&known)))?;
    }
    let any = |wanted| judged.iter().any(|(_, outcome)| *outcome == wanted);
    let in_common = |s: &Summary| {
        let answers = |other: &Summary| other.responder == s.responder && other.count > 0;
        s.count > 0 && after.series.iter().any(answers)
    };
    Ok(if any(ConditionOutcome::Exceeded) {
        Exit::Exceeded
    } else if any(ConditionOutcome::Undecided) || !before.series.iter().any(in_common) {
        Exit::Undecided
    } else {
        Exit::Success
    })
}

/// What measures latencies, and what measures costs, as a headline names them.
const INSTRUMENTS: [&str; 2] = ["trigger", "cost"];

/// Of two runs with different kernels that measured latencies, the newest runs of the store that measured the costs of
/// these kernels; of two that measured costs, those that measured latencies, under one load. Empty if there are none: a
/// comparison does without.
fn others(store: &Store, pair: [&Manifest; 2]) -> Vec<Bundle> {
    let [before, after] = pair.map(|run| run.about.flavour.as_str());
    let [one, other] = pair.map(|run| run.about.instrument());
    if before == after || one != other || !INSTRUMENTS.contains(&one) {
        return Vec::new();
    }
    let Ok(entries) = store.list() else { return Vec::new() };
    let wanted = |headline: &Headline| {
        let is_other = INSTRUMENTS.contains(&headline.instrument.as_str());
        // Costs are those of an idle system.
        let counts = headline.instrument != "cost" || headline.load == "idle";
        let is_sound = headline.complete && headline.verdict != Verdict::Invalid;
        is_other && headline.instrument != one && counts && is_sound
    };
    let all: Vec<_> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.run, entry.state.ok()?)))
        .filter(|(_, headline)| wanted(headline))
        .collect();
    let newest = |flavour: &str, load: &str| {
        all.iter().find(|(_, h)| h.flavour == flavour && h.load == load).map(|(run, _)| run)
    };
    let loads = all.iter().map(|(_, headline)| headline.load.as_str());
    let found = loads
        .filter_map(|load| Some([newest(before, load)?, newest(after, load)?]))
        .next()
        .into_iter()
        .flatten();
    let root = store.root();
    found.filter_map(|run| Bundle::open(&root.join(run.as_str())).ok()).collect()
}
