// SPDX-License-Identifier: GPL-2.0-or-later
//! Two runs side by side: first a sentence, then for each responder and statistic the earlier number, the later number
//! and the difference. The responder that got worst comes first.

use super::company::company;
use super::costs;
use super::table::{Align, Table};
use crate::screen::{Tone, toned};
use bundle::Manifest;
use bundle::company::unequal;
use bundle::settings::{OtherSetting, differing};
use sample::{Nanos, SeriesName};
use stats::{Comparison, Condition, ConditionOutcome, Difference, Mismatch, Verdict, compare};

/// How many settings in which runs differ are shown.
const SETTINGS: usize = 8;
/// A number that grew by more than this share is in colour.
const LATER: f64 = 0.05;

/// A responder that both runs have.
struct Compared<'a> {
    responder: &'a SeriesName,
    comparison: Comparison,
}

impl Compared<'_> {
    /// Its statistic that grew most, and by which share.
    fn worst(&self) -> Option<(&Difference, f64)> {
        let relative = self.comparison.differences.iter().filter_map(|d| Some((d, d.relative()?)));
        relative.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The comparison as text, and the outcomes of the `--fail-if` conditions.
///
/// # Errors
/// When the runs were measured with different clocks.
pub fn comparison(
    before: &Manifest,
    after: &Manifest,
    judged: &[(&Condition, ConditionOutcome)],
) -> Result<String, Mismatch> {
    let mut compared = Vec::new();
    let mut only = Vec::new();
    for one in &before.series {
        match after.series.iter().find(|s| s.responder == one.responder) {
            Some(other) => compared
                .push(Compared { responder: &one.responder, comparison: compare(one, other)? }),
            None => only.push(format!("{} is only in the earlier run", one.responder)),
        }
    }
    let missing =
        after.series.iter().filter(|s| !before.series.iter().any(|b| b.responder == s.responder));
    only.extend(missing.map(|s| format!("{} is only in the later run", s.responder)));
    // The sort is stable: responders without a change stay in the order of the run.
    let worst = |c: &Compared| c.worst().map_or(f64::NEG_INFINITY, |(_, share)| share);
    compared.sort_by(|a, b| worst(b).total_cmp(&worst(a)));

    let name = |m: &Manifest| {
        format!("{} · {} · seed {} ({})", m.about.flavour, m.about.load, m.about.seed, m.run)
    };
    let same = before.samples.blake3 == after.samples.blake3;
    let answered = |run: &Manifest| run.series.iter().any(|series| series.count > 0);
    let nobody = !answered(before) && !answered(after);
    let (said, table) = costs::compared(before, after)
        .filter(|_| !same)
        .unwrap_or_else(|| (sentence(&compared, same, nobody), table(&compared)));
    let mut text = format!("{said}\n\n");
    judged.iter().for_each(|(condition, outcome)| text += &told(condition, *outcome));
    if !judged.is_empty() {
        text += "\n";
    }
    text += &format!("before  {}\nafter   {}\n", name(before), name(after));
    text += &doubts(before, after);
    text += "\n";
    text += &table.text();
    only.iter().for_each(|line| text += &format!("{line}\n"));
    if let Some(unequal) = unequal([before, after]) {
        text += &company(&unequal);
    }
    Ok(text)
}

/// What makes a comparison worth less: runs that prove nothing, and settings in which they differ.
fn doubts(before: &Manifest, after: &Manifest) -> String {
    let mut text = String::new();
    for (run, which) in [(before, "earlier"), (after, "later")] {
        let why = match run.conclusion.verdict {
            Verdict::Invalid => "invalid",
            _ if !run.complete => "incomplete",
            _ => continue,
        };
        text += &toned(Tone::Doubt, "!");
        text += &format!(
            " The {which} run is {why}, so its numbers prove nothing: onset show {}\n",
            run.run
        );
    }
    let differ = differing(before, after);
    let shown = differ.iter().take(SETTINGS).map(|OtherSetting { setting, before, after }| {
        format!("    {setting}: {before} in the earlier run, {after} in the later one\n")
    });
    if !differ.is_empty() {
        text += &toned(Tone::Doubt, "!");
        text += " The runs differ in more than kernel, load and seed:\n";
        text += &shown.collect::<String>();
    }
    match differ.len().saturating_sub(SETTINGS) {
        0 => text,
        more => text + &format!("    and in {more} more settings (--json)\n"),
    }
}

/// The result in one sentence.
fn sentence(compared: &[Compared], same: bool, nobody: bool) -> String {
    if nobody {
        return "Neither run has a sample, so there is nothing to compare.".into();
    }
    if same {
        return "The samples are identical.".into();
    }
    if compared.is_empty() {
        return "The runs have no responder in common, so there is nothing to compare.".into();
    }
    if compared.iter().all(|responder| responder.worst().is_none()) {
        return "No responder has a number in both runs, so there is nothing to compare.".into();
    }
    let first = compared.first().and_then(|c| Some((c.responder, c.worst()?)));
    match first.filter(|(_, (_, share))| *share > 0.0) {
        None => "No number of the later run is longer than in the earlier run.".into(),
        Some((responder, (difference, share))) => format!(
            "The largest increase from the earlier to the later run is in {responder}.{}: {} instead of {} ({}).",
            difference.statistic,
            time(difference.after),
            time(difference.before),
            percent(share)
        ),
    }
}

fn told(condition: &Condition, outcome: ConditionOutcome) -> String {
    match outcome {
        ConditionOutcome::Exceeded => format!("{} {condition}: yes\n", toned(Tone::Bad, "✗")),
        ConditionOutcome::Kept => format!("{} {condition}: no\n", toned(Tone::Good, "✓")),
        ConditionOutcome::Undecided => format!(
            "{} {condition}: undecided: a run has no such number (it lacks the responder, or has too few samples), or is invalid or incomplete, or what it lost could be beyond the bound, or the bound is within 0.1 % of a quantile\n",
            toned(Tone::Doubt, "?")
        ),
    }
}

fn table(compared: &[Compared]) -> Table {
    let columns = [
        ("responder", Align::Left),
        ("statistic", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("difference", Align::Right),
        ("", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for Compared { responder, comparison } in compared {
        let known = comparison.differences.iter();
        let known = known.filter(|d| d.before.is_some() || d.after.is_some());
        for (row, difference) in known.enumerate() {
            table.row([
                if row == 0 { responder.to_string() } else { String::new() },
                difference.statistic.to_string(),
                time(difference.before),
                time(difference.after),
                difference.absolute().map_or_else(|| "–".into(), signed),
                difference.relative().map_or_else(
                    || "–".into(),
                    |share| match share > LATER {
                        true => toned(Tone::Bad, &percent(share)),
                        false => percent(share),
                    },
                ),
            ]);
        }
        let losses = (comparison.losses.0.total(), comparison.losses.1.total());
        if losses != (0, 0) {
            let (more, fewer) =
                (losses.1.saturating_sub(losses.0), losses.0.saturating_sub(losses.1));
            let difference = match (more, fewer) {
                (0, 0) => "0".into(),
                (0, fewer) => format!("−{fewer}"),
                (more, _) => format!("+{more}"),
            };
            let (before, after) = (losses.0.to_string(), losses.1.to_string());
            table.row(["".into(), "lost".into(), before, after, difference, "".into()]);
        }
    }
    table
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| Nanos(ns.round() as u64).to_string())
}

fn signed(ns: f64) -> String {
    let size = Nanos(ns.abs().round() as u64);
    if size.0 == 0 { "0".into() } else { format!("{}{size}", sign(ns)) }
}

pub(super) fn percent(share: f64) -> String {
    let percent = format!("{:.1}", (share * 100.0).abs());
    if percent == "0.0" { "0 %".into() } else { format!("{}{percent} %", sign(share)) }
}

fn sign(number: f64) -> char {
    if number < 0.0 { '−' } else { '+' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::examples::manifest_of;

    #[test]
    fn runs_in_unequal_company_are_compared_with_a_warning_and_the_way_to_equal_one() {
        let old = manifest_of("6.1", &["hardirq", "task"]);
        let new = manifest_of("6.12", &["hardirq", "bh_work", "task"]);
        let text = comparison(&old, &new, &[]).unwrap();
        assert!(text.contains("6.1 lacks bh_work"), "{text}");
        assert!(text.contains("--set 'responders=[\"hardirq\", \"task\"]'"), "{text}");
        assert!(!comparison(&new, &new, &[]).unwrap().contains("lacks"));
    }

    #[test]
    fn what_makes_a_comparison_worth_less_is_said_before_its_numbers() {
        let old = manifest_of("6.1", &["task"]);
        let mut new = manifest_of("6.12", &["task"]);
        new.samples.blake3 = "other".into();
        let said = |old: &Manifest, new: &Manifest| {
            crate::screen::shown(&comparison(old, new, &[]).unwrap())
        };
        assert!(!said(&old, &new).contains('!'), "{}", said(&old, &new));
        new.conclusion.verdict = Verdict::Invalid;
        new.about.experiment.trigger = None;
        let text = said(&old, &new);
        assert!(
            text.contains("! The later run is invalid, so its numbers prove nothing"),
            "{text}"
        );
        assert!(text.contains("differ in more than kernel, load and seed"), "{text}");
        assert!(text.contains("experiment.trigger"), "{text}");
        let nothing = |mut run: Manifest| {
            run.series[0].count = 0;
            run
        };
        let text = said(&nothing(old.clone()), &nothing(old));
        assert!(text.starts_with("Neither run has a sample"), "{text}");
    }

    #[test]
    fn a_sentence_comes_first_and_what_got_worst_and_nothing_that_nobody_has() {
        let old = manifest_of("6.1", &["hardirq", "task"]);
        let mut new = manifest_of("6.12", &["hardirq", "task"]);
        new.samples.blake3 = "other".into();
        new.series[1].max = new.series[1].max.map(|max| max * 2);
        new.series[0].max = new.series[0].max.map(|max| max / 2);
        let condition: Condition = "task.max > +5%".parse().unwrap();
        let text = comparison(&old, &new, &[(&condition, ConditionOutcome::Exceeded)]).unwrap();
        assert!(
            text.starts_with(
                "The largest increase from the earlier to the later run is in task.max:"
            ),
            "{text}"
        );
        assert!(
            text.contains("(+100.0 %)")
                && crate::screen::shown(&text).contains("✗ task.max > +5 %: yes"),
            "{text}"
        );
        assert!(
            text.contains("−50.0 %") && !text.contains('-'.to_string().repeat(2).as_str()),
            "{text}"
        );
        let place = |name: &str| text.find(&format!("\n{name} ")).unwrap();
        assert!(place("task") < place("hardirq"), "{text}");
        // Ten samples support no p99.9, and nothing was lost.
        assert!(!text.contains("p99.9") && !text.contains("lost"), "{text}");
        let mut apart = manifest_of("6.12", &["work"]);
        apart.samples.blake3 = "other".into();
        let apart = comparison(&old, &apart, &[]).unwrap();
        assert!(apart.starts_with("The runs have no responder in common"), "{apart}");
    }
}
