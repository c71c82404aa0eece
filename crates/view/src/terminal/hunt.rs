// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of a hunt, as text.

use super::causes::share;
use super::count::several;
use super::stack;
use super::table::{Align, Table};
use hunt::{Discovery, HuntEnd, Knowledge, Share};
use lab::followed::{CauseShare, replay_of_find, shell_word};
use lab::hunting::{About, DeathFiles, Find};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How many frames of a stack the text shows; JSON has all.
const FRAMES: usize = 6;
/// The same for a find that is not the worst.
const FRAMES_OTHER: usize = 2;
/// How many causes of the worst find the text shows, each with at least this share; `onset explain` shows all.
const CAUSES: usize = 3;
const SHARE_SHOWN: f64 = 0.05;
/// Columns before a stack.
const INDENT: usize = 23;

/// The line after each round.
pub fn progress(known: &Knowledge) -> String {
    let worst: Vec<String> = known
        .finds
        .iter()
        .filter_map(|(name, finds)| Some(format!("{name} {}", finds.first()?.answer.latency_ns)))
        .collect();
    format!(
        "{}, {}, {} of virtual time, triggers aimed at {}; worst: {}",
        several(known.trials, "trial"),
        several(known.triggers, "trigger"),
        known.virtual_ns,
        several(known.fired.len() as u64, "stack"),
        worst.join(", ")
    )
}

/// The results at the end of a hunt.
pub fn hunted(
    about: &About,
    known: &Knowledge,
    (finds, deaths): (&[Find], &BTreeMap<u64, DeathFiles>),
    ended: HuntEnd,
    directory: &Path,
) -> String {
    let (flavour, loads) = (&about.flavour, about.loads());
    let mut text = format!("{flavour} · {loads}   hunt, seed {}\n", about.seed);
    let why = match ended {
        HuntEnd::Budget => "the budget was used up",
        HuntEnd::Stale => "the hunt found nothing new any more",
        HuntEnd::Enough => "it found a latency that is long enough",
        HuntEnd::Interrupted => "the user interrupted it",
        HuntEnd::Failed => "a failure ended it",
    };
    let line = format!(
        "{} with {} in {} of virtual time; triggers aimed at {} of {} stacks that opened a stretch; {why}\n",
        several(known.trials, "trial"),
        several(known.triggers, "trigger"),
        known.virtual_ns,
        known.fired.len(),
        known.seen.union(&known.fired).count(),
    );
    text += &line;
    let _ = writeln!(text, "{}", directory.display());
    for name in &about.responders {
        let own: Vec<&Find> = finds.iter().filter(|f| f.responder.name() == *name).collect();
        text += &worst(about, name, &own);
    }
    let strategies = known.by_strategy().into_iter().map(|(strategy, s)| (strategy.to_string(), s));
    text += &shares(about, "strategy", strategies);
    let guests =
        known.by_guest().into_iter().filter_map(|(n, share)| Some((about.guest(n)?, share)));
    let mut guests = guests.peekable();
    if guests.peek().is_some() {
        text += &shares(about, "guest", guests);
    }
    for (name, lost) in known.losses.iter().filter(|(_, lost)| lost.total() > 0) {
        let kinds = lost.named().into_iter().filter(|(_, n)| *n > 0);
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
        let _ = writeln!(
            text,
            "\n  {name}: triggers without an answer of their own: {}",
            kinds.join(", ")
        );
    }
    for (trial, died) in &known.died {
        let guest = about.guest(died.begin.guest).map(|guest| format!(" under {guest}"));
        let guest = guest.unwrap_or_default();
        let _ = writeln!(text, "\nThe guest{guest} died in trial {trial}: {}", died.text);
        let Some(DeathFiles { experiment, console }) = deaths.get(trial) else { continue };
        if let Some(console) = console {
            let _ = writeln!(text, "      the output of its console: {}", console.display());
        }
        if let Some(experiment) = experiment {
            let _ = writeln!(text, "      onset run {}", shell_word(experiment));
        }
    }
    for trial in &known.forked_otherwise {
        let _ = writeln!(
            text,
            "\n! Trial {trial} came out otherwise in a fork than in a restored guest, which is a fault of onset. Replay the finds before you believe them: onset replay FIND"
        );
    }
    text
}

/// The worst find of a responder as a paragraph, and its other finds as lines.
fn worst(about: &About, name: &str, finds: &[&Find]) -> String {
    let Some((first, others)) = finds.split_first() else {
        return format!("\n  {name}: no answer\n");
    };
    let Discovery { trial, strategy, answer: best } = &first.found;
    let mut text = format!("\n  {name}: {} by {strategy}, trial {trial}", best.latency_ns);
    if let Some(guest) = about.guest(best.begin.guest) {
        let _ = write!(text, ", under {guest}");
    }
    if best.begin.is_later() {
        let _ = write!(text, ", from {} after the warm-up", best.begin.after);
    }
    text += "\n";
    if let Some(path) = &first.path {
        let _ = writeln!(text, "      {}", replay_of_find(path));
    }
    for disturbance in &best.disturbances {
        let _ = writeln!(text, "      disturbed at {disturbance}");
    }
    text += &causes(first);
    others.iter().for_each(|find| text += &other(find));
    text
}

/// The causes of a find, a paragraph each, with their stacks.
pub(super) fn causes(first: &Find) -> String {
    let (mut text, best) = (String::new(), &first.found.answer);
    let worth = first.causes.iter().take(CAUSES).take_while(|cause| cause.share >= SHARE_SHOWN);
    for CauseShare { cause, sum, .. } in worth {
        let (time, share) = (sum.time.to_string(), share(sum.time, best.latency_ns));
        let (cause, stack) = ([&*cause.cause, &*cause.who], &cause.stack);
        let _ = writeln!(text, "      {time:>7}  {share:>6}  {}", cause.join(" ").trim_end());
        if sum.stretches != 1 {
            let _ = writeln!(text, "{:INDENT$}{sum}", "");
        }
        let frames = &stack[..stack.len().min(FRAMES)];
        stack::lines(frames, INDENT).iter().for_each(|line| text += &format!("{line}\n"));
    }
    if first.causes.is_empty() {
        best.stack.iter().take(FRAMES).for_each(|frame| text += &format!("      {frame}\n"));
    }
    text
}

/// A find that is not the worst, in one line: its latency, its cause, and its file.
pub(super) fn other(find: &Find) -> String {
    let best = &find.found.answer;
    let (why, stack) = match find.causes.first() {
        Some(CauseShare { cause, sum, .. }) => {
            let share = share(sum.time, best.latency_ns);
            let stretches = match sum.stretches {
                0 | 1 => String::new(),
                n => format!(" in {}", several(n, "stretch")),
            };
            let why = format!("{share}{stretches} {} {}", cause.cause, cause.who);
            (why.trim_end().to_string(), &cause.stack)
        }
        // There were too many finds to explain all of them, and a trigger without an aim has no place in the code
        // either.
        None if best.stack.is_empty() => ("not explained".into(), &best.stack),
        None => ("at".into(), &best.stack),
    };
    // The function that an interrupt or a softirq called is also the innermost frame.
    let frames = stack.iter().filter(|frame| !why.ends_with(frame.as_str()));
    let frames: Vec<&str> = frames.take(FRAMES_OTHER).map(String::as_str).collect();
    let file = find.path.as_ref().and_then(|path| path.file_name()).unwrap_or_default();
    let latency = best.latency_ns.to_string();
    let (file, frames) = (file.to_string_lossy(), frames.join(" < "));
    let disturbed = if best.disturbances.is_empty() { "" } else { " disturbed," };
    let line = format!("    {latency:>7}  {file} {disturbed} {why}  {frames}");
    format!("{}\n", line.trim_end())
}

/// A table that compares strategies, or guests.
fn shares(about: &About, what: &str, shares: impl Iterator<Item = (String, Share)>) -> String {
    let mut columns = vec![(what, Align::Left), ("trials", Align::Right)];
    columns.extend([("triggers", Align::Right), ("virtual", Align::Right)]);
    columns.extend(about.responders.iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&columns).indented(2).sparing(&["virtual", "triggers", "trials"]);
    for (name, share) in shares {
        let mut row = vec![
            name,
            share.trials.to_string(),
            share.triggers.to_string(),
            share.virtual_ns.to_string(),
        ];
        row.extend(
            about.responders.iter().map(|name| {
                share.worst_ns.get(name).map_or_else(|| "–".into(), ToString::to_string)
            }),
        );
        table.row(row);
    }
    format!("\n{}", table.text())
}
