// SPDX-License-Identifier: GPL-2.0-or-later
//! Each run as a table: every responder with a small histogram, its numbers and its losses.

use super::axis::Axis;
use super::company::company;
use super::costs;
use super::count::{named, several};
use super::findings;
use super::price::price;
use super::table::{Align, Table};
use super::truth;
use crate::screen::{Tone, toned};
use bundle::company::unequal_by_experiment;
use bundle::{Bundle, BundleError, Details, Evidence, Experiment, Manifest, Schedule, Warning};
use probes::context::keys;
use sample::{Clock, Nanos};
use stats::{Finding, Quantile, Statistic, Summary, Verdict};

/// The quantiles of a table.
pub(super) const QUANTILES: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];
/// How many lines of a kernel's complaint are shown; the bundle has all.
const SYMPTOM_LINES: usize = 4;

/// The tables of several runs on one axis, in the order given.
///
/// # Errors
/// When the details of a bundle cannot be read.
pub fn ladders(bundles: &[Bundle]) -> Result<String, BundleError> {
    // Costs have a table of their own, without an axis.
    let ladders =
        bundles.iter().map(Bundle::manifest).filter(|run| crate::costs::of(run).is_none());
    let summaries = ladders.flat_map(|run| &run.series);
    let (mut min, mut max) = (u64::MAX, 0);
    for summary in summaries {
        min = min.min(summary.min.map_or(min, |n| n.0));
        max = max.max(summary.max.map_or(max, |n| n.0));
    }
    let axis = Axis::new(min.min(max), max);
    let mut text = String::new();
    for bundle in bundles {
        text += &ladder(bundle.manifest(), &bundle.details()?, &axis);
        text.push('\n');
    }
    text += &costs::table(bundles);
    text += &price(&bundles.iter().map(Bundle::manifest).collect::<Vec<_>>());
    for unequal in unequal_by_experiment(bundles.iter().map(Bundle::manifest)) {
        text += &format!("{}\n", company(&unequal));
    }
    Ok(text)
}

fn ladder(manifest: &Manifest, details: &[Details], axis: &Axis) -> String {
    let about = &manifest.about;
    let verdict = manifest.conclusion.verdict;
    let evidence = evidence(manifest.evidence());
    let verdict = verdict_word(verdict);
    let mut text = format!("{} · {}   {verdict} ({evidence})\n", about.flavour, about.load);
    text += &format!("{}\n", subtitle(manifest));
    // Costs have a table of their own.
    if crate::costs::of(manifest).is_none() {
        text += &series(manifest, details, axis);
    }
    if let Some(truths) = &about.truth {
        text += &truth::table(truths);
    }
    if manifest.conclusion.findings.is_empty() {
        text += "  no limit\n";
    }
    manifest.conclusion.findings.iter().for_each(|f| text += &findings::line(f));
    text += &doubts(&manifest.conclusion.warnings);
    text
}

/// A line for each series.
fn series(manifest: &Manifest, details: &[Details], axis: &Axis) -> String {
    let mut columns = vec![("responder", Align::Left)];
    let heading = axis.heading();
    columns.push((&heading, Align::Left));
    columns.extend(["min", "mean"].map(|name| (name, Align::Right)));
    columns.extend(QUANTILES.map(|q| (q.name(), Align::Right)));
    columns.extend([("max", Align::Right), ("answers", Align::Right), ("lost", Align::Left)]);
    let spare = ["min", "answers", "p99.9", "mean", heading.as_str(), "p50"];
    let mut table = Table::new(&columns).indented(2).sparing(&spare);
    let breaks_off = |w: &Warning| matches!(w, Warning::Killed | Warning::Failed { .. });
    let is_broken_off = manifest.conclusion.warnings.iter().any(breaks_off);
    for summary in &manifest.series {
        let shape = details.iter().find(|d| d.responder == summary.responder);
        let bars = shape.map_or_else(String::new, |d| axis.bars(&d.columns));
        let mean = summary.mean.map(|mean| Nanos(mean.round() as u64));
        let mut row = vec![summary.responder.to_string(), bars, time(summary.min), time(mean)];
        row.extend(QUANTILES.map(|q| time(summary.quantile(q))));
        let is_over = |f: &Finding| match f {
            Finding::Statistic(f) => {
                f.verdict == Verdict::Fail
                    && f.responder == summary.responder
                    && f.statistic == Statistic::Max
            }
            Finding::Deadline(_) => false,
        };
        let max = time(summary.max);
        let max = match manifest.conclusion.findings.iter().any(is_over) {
            true => toned(Tone::Bad, &max),
            false => max,
        };
        // Who waited for an answer as the run broke off is in no count.
        let lost = match is_broken_off && summary.losses.total() == 0 {
            true => "not known".into(),
            false => losses(summary),
        };
        row.extend([max, summary.count.to_string(), lost]);
        table.row(row);
    }
    table.text()
}

fn verdict_word(verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Invalid => "INVALID",
    };
    toned(tone(verdict), word)
}

/// The colour of a verdict.
pub fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Fail | Verdict::Invalid => Tone::Bad,
        Verdict::Inconclusive => Tone::Doubt,
    }
}

/// `500 samples, 500 ms`. If not all series have as many samples: from the fewest to the most.
fn evidence(Evidence { samples_min, samples_max, measured }: Evidence) -> String {
    let samples = match samples_min == samples_max {
        true => several(samples_max, "sample"),
        false => format!("{samples_min} to {}", several(samples_max, "sample")),
    };
    measured.map_or_else(|| samples.clone(), |measured| format!("{samples}, {measured}"))
}

fn subtitle(manifest: &Manifest) -> String {
    let clock = match manifest.clock {
        Clock::Virtual => "virtual time (instructions; no caches, no bus)",
        Clock::Monotonic => "monotonic clock",
        Clock::Tsc => "time-stamp counter",
        Clock::Counter => "counter of the generator, outside the machine",
    };
    let asked = asked_for(&manifest.about.experiment);
    let preemption =
        preemption(manifest).map_or_else(String::new, |mode| format!(", preemption {mode}"));
    if manifest.is_imported() {
        return format!("{}, imported, {clock}\n{}", manifest.about.title, manifest.run);
    }
    format!("{asked}, seed {}{preemption}, {clock}\n{}", manifest.about.seed, manifest.run)
}

/// The preemption mode, as the kernel that ran names it: `lazy`, or `rt (full)` where a real-time kernel offers a
/// choice of modes.
fn preemption(manifest: &Manifest) -> Option<String> {
    let reported = &manifest.about.kernel.as_ref()?.reported;
    let preemption = reported.get(keys::PREEMPTION)?;
    Some(match reported.get(keys::PREEMPTION_MODE) {
        Some(mode) if mode != preemption => format!("{preemption} ({mode})"),
        _ => preemption.clone(),
    })
}

fn asked_for(experiment: &Experiment) -> String {
    if let Some(plan) = &experiment.probe {
        let cpus: Vec<String> = plan.cpus.iter().map(u32::to_string).collect();
        return format!("{}, {}, CPU {}", plan.probe.name(), plan.policy, cpus.join(","));
    }
    match experiment.trigger.as_ref().map(|t| &t.schedule) {
        Some(Schedule::Periodic { period, jitter, count, .. }) if jitter.0 > 0 => {
            format!("{count} triggers, one every {period} + 0…{jitter}")
        }
        Some(Schedule::Periodic { period, count, .. }) => {
            format!("{count} triggers, one every {period}")
        }
        Some(Schedule::Times { times_ns }) => format!("{} triggers at given times", times_ns.len()),
        None => "imported".into(),
    }
}

fn time(value: Option<Nanos>) -> String {
    value.map_or_else(|| "–".into(), |n| n.to_string())
}

/// `0`, or each kind of loss that occurred with its number.
fn losses(summary: &Summary) -> String {
    named(&summary.losses).unwrap_or_else(|| "0".into())
}

/// The warnings. Warnings of one kind share one text about the cause and the next action.
fn doubts(warnings: &[Warning]) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    for first in warnings {
        if told.contains(&first.code()) {
            continue;
        }
        told.push(first.code());
        for warning in warnings.iter().filter(|w| w.code() == first.code()) {
            let symptom = warning.symptom();
            let shown: Vec<&str> = symptom.lines().take(SYMPTOM_LINES).collect();
            text += &format!("  {} {}\n", toned(Tone::Doubt, "!"), shown.join("\n    "));
        }
        text += &format!("    {}; {}\n", first.cause(), first.action());
    }
    text
}

/// The whole configuration of a run, as lines.
pub fn configuration(manifest: &Manifest) -> String {
    let groups = crate::report::configuration(manifest);
    let width =
        groups.iter().flat_map(|g| &g.entries).map(|e| e.key.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for group in groups {
        text += &format!("{}\n", group.group);
        for entry in group.entries {
            text += &format!("  {:<width$}  {}\n", entry.key, entry.value);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::Conclusion;
    use bundle::examples::manifest_of;
    use sample::Responder;
    use stats::{Limit, Series};

    #[test]
    fn warnings_of_one_kind_share_their_cause_and_next_action() {
        let superseded = |responder, triggers| Warning::Superseded { responder, triggers };
        let warnings = [
            superseded(Responder::Work.into(), 3),
            Warning::GuestDidNotEnd { text: "hangs".into() },
            superseded(Responder::Task.into(), 1),
        ];
        let text = doubts(&warnings);
        assert_eq!(text.matches(warnings[0].cause()).count(), 1, "{text}");
        for warning in &warnings {
            assert_eq!(text.matches(&warning.symptom()).count(), 1, "{text}");
        }
    }

    #[test]
    fn a_verdict_shows_its_evidence_and_a_run_without_a_limit_says_so() {
        let mut manifest = manifest_of("6.12", &["hardirq", "task"]);
        let axis = Axis::new(100, 100_000);
        let said = |manifest: &Manifest| crate::screen::shown(&ladder(manifest, &[], &axis));
        let unlimited = said(&manifest);
        assert!(unlimited.contains("inconclusive (10 samples, 10.0 ms)\n"), "{unlimited}");
        assert!(unlimited.contains("\n  no limit\n"), "{unlimited}");
        let bound = Nanos::from_millis(1);
        let limits = vec![Limit::at_most(Responder::Task.into(), Statistic::Max, bound)];
        // Another series with more samples is not what is judged.
        manifest.series[0].count = 500;
        manifest.conclusion = Conclusion::of(&manifest.series, &[], limits, Vec::new());
        let limited = said(&manifest);
        assert!(limited.contains("PASS (10 samples, 10.0 ms)\n"), "{limited}");
        assert!(limited.contains("task keeps its limit, but has only 10 samples"), "{limited}");
        assert!(!limited.contains("no limit"), "{limited}");
    }

    #[test]
    fn a_responder_has_its_least_mean_and_greatest_latency_and_how_many_there_were() {
        let mut manifest = manifest_of("6.12", &["task"]);
        let told = |manifest: &Manifest| {
            let text = crate::screen::shown(&series(manifest, &[], &Axis::new(100, 100_000)));
            let row = |line: &str| line.split("  ").map(str::trim).map(str::to_owned).collect();
            let rows: Vec<Vec<String>> = text.lines().map(row).collect();
            rows.into_iter().map(|row| row.into_iter().filter(|cell| !cell.is_empty()).collect())
        };
        manifest.series[0].mean = Some(1_234.5);
        let rows: Vec<Vec<String>> = told(&manifest).collect();
        let [head, task] = &rows[..] else { panic!("{rows:?}") };
        let at = |name: &str| head.iter().rev().position(|cell| cell == name).expect("a column");
        let of = |name: &str| task[task.len() - 1 - at(name)].as_str();
        assert_eq!(of("mean"), "1.24 µs");
        assert_eq!(of("min"), time(manifest.series[0].min));
        assert_eq!((of("max"), of("answers")), (&*time(manifest.series[0].max), "10"));
        manifest.series[0] = Series::new(Responder::Task.into(), Clock::Virtual).summary();
        let rows: Vec<Vec<String>> = told(&manifest).collect();
        assert_eq!(rows[1], ["task", "–", "–", "–", "–", "–", "–", "0", "0"]);
        // Nobody knows who waited for an answer as onset was killed.
        manifest.conclusion.warnings = vec![Warning::Killed];
        let rows: Vec<Vec<String>> = told(&manifest).collect();
        assert_eq!(rows[1].last().map(String::as_str), Some("not known"));
    }

    #[test]
    fn what_ran_stands_beside_what_was_asked_for() {
        let mut manifest = manifest_of("7.3-rt", &["task"]);
        let mut says = |entries: &[(&str, &str)]| {
            let entries = entries.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            let kernel = manifest.about.kernel.as_mut().expect("a kernel");
            kernel.reported = entries.collect();
            subtitle(&manifest)
        };
        let rt = [(keys::PREEMPTION, "rt"), (keys::PREEMPTION_MODE, "full")];
        assert!(says(&rt).contains(", preemption rt (full), "));
        let lazy = [(keys::PREEMPTION, "lazy"), (keys::PREEMPTION_MODE, "lazy")];
        assert!(says(&lazy).contains(", preemption lazy, "));
        assert!(!says(&[]).contains("preemption"));
    }
}
