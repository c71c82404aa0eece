// SPDX-License-Identifier: GPL-2.0-or-later
//! The first sentences of a report: within what time the most important responder answered, how many losses are not in
//! that number, and the outcomes of the limits. One sentence has only maxima of runs of one experiment, one load and
//! one clock. It says how many times one is as long as another only if nothing speaks against the comparison.

use super::Material;
use crate::costs;
use crate::price::hides_nothing;
use bundle::company::unequal;
use bundle::{Bundle, Manifest};
use sample::{Clock, Losses, Nanos};
use stats::Verdict;

/// The most important responder: a task in user space, since an application is one.
const TASK: &str = "task";
/// How many flavours one sentence names. If there are more, it names the best and the worst.
const FLAVOURS_NAMED: usize = 4;
/// How many hunts have a sentence here. Each hunt has its section below.
const HUNTS_NAMED: usize = 3;

/// The sentences in their order. `experiments` names the experiment of each bundle, as on the page.
pub fn lead(material: &Material, experiments: &[String]) -> Vec<String> {
    let runs: Vec<&Manifest> = material.bundles.iter().map(Bundle::manifest).collect();
    let mut lead = of_runs(&runs, experiments);
    lead.extend(material.hunts.iter().filter_map(of_hunt).take(HUNTS_NAMED));
    lead.extend(material.proof.and_then(|proof| proof.machine.as_ref()).map(|machine| {
        match machine.chosen.is_empty() {
            true => "The proof shows no knob that helps; the machine is as it was.".into(),
            false => format!(
                "The proof shows that these knobs help: {}; the machine is as it was.",
                machine.chosen.join(", ")
            ),
        }
    }));
    lead
}

fn of_runs(runs: &[&Manifest], experiments: &[String]) -> Vec<String> {
    let named = runs.iter().copied().zip(experiments);
    let (paid, answered): (Vec<_>, Vec<_>) = named.partition(|(run, _)| costs::of(run).is_some());
    let (paid, _): (Vec<&Manifest>, Vec<_>) = paid.into_iter().unzip();
    let (answered, names): (Vec<&Manifest>, Vec<_>) = answered.into_iter().unzip();
    let one = names.iter().all(|name| Some(name) == names.first());
    let answers = if one { answers(&answered) } else { Vec::new() };
    answers.into_iter().chain(costs::sentence(&paid)).chain(verdicts(runs)).collect()
}

/// The answers of all runs of a flavour.
struct Answered<'a> {
    flavour: &'a str,
    runs: Vec<&'a Manifest>,
    /// The longest latency; absent if there was no answer.
    max: Option<Nanos>,
    count: u64,
    losses: Losses,
}

/// For the runs of one experiment: the maximum of the responder on each flavour, under the load with its longest
/// latency.
fn answers(runs: &[&Manifest]) -> Vec<String> {
    let sound = |run: &&&Manifest| run.conclusion.verdict != Verdict::Invalid;
    let runs: Vec<&Manifest> = runs.iter().filter(sound).copied().collect();
    let (Some(first), Some(responder)) = (runs.first(), responder(&runs)) else {
        return Vec::new();
    };
    let latest = |run: &&&Manifest| summary(run, responder).and_then(|s| s.max);
    // Of equal ones the first.
    let worst = runs.iter().rev().max_by_key(latest).unwrap_or(first);
    let load = worst.about.load.as_str();
    let mut flavours: Vec<Answered> = Vec::new();
    for run in runs.iter().filter(|run| run.about.load == load) {
        add(&mut flavours, run, responder);
    }
    // No trigger was answered, which counts as later than any time.
    flavours.sort_by_key(|f| f.max.map_or(u64::MAX, |max| max.0));
    let mut sentences = vec![sentence(&flavours, responder, load, worst)];
    sentences.extend(lost(&flavours));
    sentences
}

/// `task`, or the first with a limit, or the last.
fn responder<'a>(runs: &[&'a Manifest]) -> Option<&'a str> {
    let names = || runs.iter().flat_map(|run| run.series.iter().map(|s| s.responder.as_str()));
    let limited = || runs.iter().flat_map(|run| run.conclusion.limits.iter());
    let limited = || limited().map(|limit| limit.responder.as_str());
    let task = names().find(|name| *name == TASK);
    task.or_else(|| limited().find(|name| names().any(|n| n == *name)))
        .or_else(|| names().next_back())
}

fn summary<'a>(run: &'a Manifest, responder: &str) -> Option<&'a stats::Summary> {
    run.series.iter().find(|s| s.responder.as_str() == responder)
}

fn add<'a>(flavours: &mut Vec<Answered<'a>>, run: &'a Manifest, responder: &str) {
    let Some(summary) = summary(run, responder) else { return };
    let flavour = run.about.flavour.as_str();
    let known = flavours.iter().position(|f| f.flavour == flavour);
    let known = known.unwrap_or_else(|| {
        let (runs, losses) = (Vec::new(), Losses::default());
        flavours.push(Answered { flavour, runs, max: None, count: 0, losses });
        flavours.len() - 1
    });
    let of = &mut flavours[known];
    of.runs.push(run);
    of.max = of.max.max(summary.max);
    of.count += summary.count;
    of.losses.merge(&summary.losses);
}

/// A time that is no shorter, of three digits, as a time is written: nobody answered within 16.9 µs who took 16.949 µs.
fn rounded_up(Nanos(ns): Nanos) -> Nanos {
    let step = 10u64.pow(ns.checked_ilog10().unwrap_or_default().saturating_sub(2));
    if ns < 1_000 { Nanos(ns) } else { Nanos(ns.next_multiple_of(step)) }
}

/// `Under mixed load, task answered within 16.9 µs of virtual time on 6.12-rt and within 1.71 ms on 6.12, …`.
fn sentence(flavours: &[Answered], responder: &str, load: &str, run: &Manifest) -> String {
    let mut answered: Vec<&Answered> = flavours.iter().filter(|f| f.max.is_some()).collect();
    let silent = flavours.iter().filter(|f| f.max.is_none()).map(|f| f.flavour);
    let silent = listed(&silent.map(str::to_owned).collect::<Vec<_>>());
    let under = under(load);
    let (Some(best), Some(worst)) = (answered.first().copied(), answered.last().copied()) else {
        return format!("{under}, {responder} never answered on {silent}.");
    };
    let all = answered.len();
    let counts = || answered.iter().map(|f| f.count);
    let basis = basis(counts().min(), counts().max(), all);
    if all > FLAVOURS_NAMED {
        answered = vec![best, worst];
    }
    // The series of a probe are methods, which do not answer.
    let verb = if run.about.experiment.probe.is_some() { "stayed" } else { "answered" };
    let time = if run.clock == Clock::Virtual { " of virtual time" } else { "" };
    let within = answered.iter().zip(0..).map(|(f, n)| {
        let max = f.max.unwrap_or_default();
        let max = rounded_up(max);
        format!("within {max}{} on {}", if n == 0 { time } else { "" }, f.flavour)
    });
    let within = listed(&within.collect::<Vec<_>>());
    let extremes = if all > FLAVOURS_NAMED {
        format!(", the best and the worst of {all}")
    } else {
        String::new()
    };
    let never = if silent.is_empty() { String::new() } else { format!(", and never on {silent}") };
    let times =
        times(best, worst).map_or(String::new(), |times| format!(": {times} times as long"));
    format!("{under}, {responder} {verb} {within}{extremes}{never}, in {basis}{times}.")
}

/// How many times the worst is as long as the best; none if their comparison would be misleading.
fn times(best: &Answered, worst: &Answered) -> Option<String> {
    let whole = |f: &Answered| hides_nothing(&f.losses);
    let alike = unequal(best.runs.iter().chain(&worst.runs).copied()).is_none();
    let times = worst.max?.0 as f64 / best.max?.0.max(1) as f64;
    let told = whole(best) && whole(worst) && alike && times >= 1.05;
    told.then(|| if times < 9.95 { format!("{times:.1}") } else { format!("{times:.0}") })
}

/// The losses, by flavour and kind.
fn lost(flavours: &[Answered]) -> Option<String> {
    let of = |f: &Answered| kinds(&f.losses).map(|kinds| format!("{kinds} on {}", f.flavour));
    let lost: Vec<String> = flavours.iter().filter_map(of).collect();
    (!lost.is_empty()).then(|| format!("These numbers do not contain: {}.", lost.join("; ")))
}

fn kinds(losses: &Losses) -> Option<String> {
    let some = losses.named().into_iter().filter(|(_, n)| *n > 0);
    let some: Vec<String> = some.map(|(kind, n)| format!("{} {kind}", grouped(n))).collect();
    (!some.is_empty()).then(|| some.join(", "))
}

/// The outcomes of the limits.
fn verdicts(runs: &[&Manifest]) -> Vec<String> {
    let all = runs.len();
    // A run without a limit has kept none, and leaves none open.
    let limited = runs.iter().filter(|run| !run.conclusion.limits.is_empty()).count();
    let of = |verdict| {
        let is = |run: &&&Manifest| run.conclusion.verdict == verdict;
        let counts = |run: &&&Manifest| {
            verdict != Verdict::Inconclusive || !run.conclusion.limits.is_empty()
        };
        runs.iter().filter(is).filter(counts).count()
    };
    let noun = if limited == all { "runs" } else { "runs with a limit" };
    let some = |n: usize, alone: &str, of_one: &str, of_several: &str| {
        let (all, noun) = if alone.contains("limit") { (limited, noun) } else { (all, "runs") };
        match (n, all) {
            (0, _) => None,
            (1, 1) if noun == "runs" => Some(alone.to_owned()),
            (1, 1) => Some(format!("The run with a limit {of_one}.")),
            (1, _) => Some(format!("1 of {all} {noun} {of_one}.")),
            (n, all) if n == all => Some(format!("All {all} {noun} {of_several}.")),
            (n, _) => Some(format!("{n} of {all} {noun} {of_several}.")),
        }
    };
    let unsound = "unsound: do not use";
    let sentences = [
        some(of(Verdict::Fail), "It exceeded a limit.", "exceeded a limit", "exceeded a limit"),
        some(
            of(Verdict::Invalid),
            "The run is unsound: do not use its numbers.",
            &format!("is {unsound} its numbers"),
            &format!("are {unsound} their numbers"),
        ),
        some(of(Verdict::Inconclusive), "Its limit is undecided.", "is undecided", "are undecided"),
        some(of(Verdict::Pass), "It kept its limit.", "kept its limit", "kept their limits")
            .filter(|_| of(Verdict::Pass) == limited),
    ];
    sentences.into_iter().flatten().collect()
}

/// `The hunt of 6.12 under mixed load made task answer as late as 2.00 ms of virtual time, the worst of 5 673
/// triggers.`
fn of_hunt(hunted: &super::Hunted) -> Option<String> {
    let (about, known) = (&hunted.kept.about, &hunted.kept.known);
    let names = || about.responders.iter().map(String::as_str);
    let responder = names().find(|name| *name == TASK).or_else(|| names().next_back())?;
    let losses = known.losses.get(responder).copied().unwrap_or_default();
    let worst = known.worst(responder).map(|found| found.answer.latency_ns);
    Some(hunt_sentence(&about.flavour, &about.loads(), responder, worst, known.triggers, &losses))
}

fn hunt_sentence(
    flavour: &str,
    load: &str,
    responder: &str,
    worst: Option<Nanos>,
    triggers: u64,
    losses: &Losses,
) -> String {
    let under = lowered(&under(load));
    let of = format!("The hunt of {flavour} {under}");
    let lost = kinds(losses)
        .map_or(String::new(), |kinds| format!(" This number does not contain: {kinds}."));
    let triggers = grouped(triggers);
    match worst {
        Some(ns) => format!(
            "{of} made {responder} answer as late as {ns} of virtual time, the worst of {triggers} triggers.{lost}"
        ),
        None => format!("{of} had no answer of {responder} to {triggers} triggers.{lost}"),
    }
}

/// `Under mixed load`.
fn under(load: &str) -> String {
    match load {
        "idle" => "Without load".to_owned(),
        several if several.contains(',') => format!("Under the loads {several}"),
        load => format!("Under {load} load"),
    }
}

fn lowered(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// `500 answers`, `500 answers each`, `412 to 500 answers each`.
fn basis(least: Option<u64>, most: Option<u64>, flavours: usize) -> String {
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    let each = if flavours > 1 { " each" } else { "" };
    let noun = if most == 1 { "answer" } else { "answers" };
    let from = if least == most { String::new() } else { format!("{} to ", grouped(least)) };
    format!("{from}{} {noun}{each}", grouped(most))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Digits in groups of three, as on the rest of the page.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let group = |(i, digit): (usize, char)| {
        let gap = (i > 0 && (digits.len() - i).is_multiple_of(3)).then_some('\u{202f}');
        gap.into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_within_which_somebody_answered_is_no_shorter_than_the_answer() {
        let up = |ns| rounded_up(Nanos(ns)).to_string();
        assert_eq!([16_949, 100_499, 100_000].map(up), ["17.0 µs", "101 µs", "100 µs"]);
        assert_eq!([0, 999, 1_001, 999_900].map(up), ["0 ns", "999 ns", "1.01 µs", "1.00 ms"]);
    }
}
