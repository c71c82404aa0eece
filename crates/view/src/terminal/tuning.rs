// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset tune` prints: the plan, what was changed, what is changed, and what was taken back.

use super::{Align, Table};
use crate::screen::{Tone, toned};
use machine::journal::Change;
use machine::{Applied, Cpus, End, Ended, Fate, KnobKind, Sighting, State, Undone};
use probes::context::show_cpu_list;
use std::path::Path;

/// What could be changed, by what onset says to it.
pub fn tuning_plan(looks: &[Sighting], cpus: &Cpus) -> String {
    let measured = show_cpu_list(&cpus.measured);
    let mut text = match cpus.housekeeping.is_empty() {
        true => format!("CPU {measured} is measured, and none is left for other work.\n"),
        false => {
            let others = show_cpu_list(&cpus.housekeeping);
            format!("CPU {measured} is measured, CPU {others} does all other work (--cpus).\n")
        }
    };
    text += "Nothing has been changed. Only a measurement before and after tells whether a change helps.\n";
    let is_here = |look: &&Sighting| !matches!(look.state, State::NotHere(_));
    let (told, here): (Vec<&Sighting>, Vec<&Sighting>) =
        looks.iter().filter(is_here).partition(|look| look.knob.kind == KnobKind::Told);
    let is_already =
        |look: &Sighting| look.proposed.as_ref().is_some_and(|value| look.is_already(value));
    let (already, rest): (Vec<&Sighting>, Vec<&Sighting>) =
        here.into_iter().partition(|look| is_already(look));
    let (proposed, open): (Vec<&Sighting>, Vec<&Sighting>) =
        rest.into_iter().partition(|look| look.proposed.is_some());
    let (boot, at_once): (Vec<&Sighting>, Vec<&Sighting>) =
        proposed.into_iter().partition(|look| look.knob.reboot);
    text += &section("Proposed, at once (onset tune apply --only runtime)", &at_once);
    text += &section("Proposed, at the next boot (onset tune apply)", &boot);
    text += &section("As proposed already", &already);
    text += &section("Without a proposal: onset tune apply --knob NAME=VALUE", &open);
    text += &section("Told only: onset does not change these", &told);
    text + &missing(looks)
}

/// Knobs, each with what is expected of it and where that is from.
fn section(title: &str, looks: &[&Sighting]) -> String {
    if looks.is_empty() {
        return String::new();
    }
    let columns = [("knob", Align::Left), ("now", Align::Left), ("proposed", Align::Left)];
    let mut table = Table::new(&columns).indented(2);
    for look in looks {
        let proposed = look.proposed.clone().unwrap_or_default();
        table.row([look.knob.name.clone(), look.now().unwrap_or_else(|| "?".into()), proposed]);
    }
    let mut lines = table.lines().into_iter();
    let mut text = format!("\n{title}\n{}\n", lines.next().unwrap_or_default());
    for (line, look) in lines.zip(looks) {
        let knob = look.knob;
        text += &format!("{line}\n      {}\n", knob.why);
        text += &knob.how.as_ref().map(|how| format!("      {how}\n")).unwrap_or_default();
        let irreversible = if knob.irreversible { "; only a reboot takes it back" } else { "" };
        text += &format!("      {}{irreversible}\n", knob.source);
    }
    text
}

fn missing(looks: &[Sighting]) -> String {
    let line = |look: &Sighting| match &look.state {
        State::NotHere(why) => Some(format!("  {}: {why}\n", look.knob.name)),
        _ => None,
    };
    let lines: String = looks.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\nNot here\n{lines}") }
}

/// What became of each knob of a plan.
pub fn tuning_applied(applied: &[Applied]) -> String {
    if applied.is_empty() {
        return "nothing to change: every proposed value is there already\n".into();
    }
    let mut text: String = applied.iter().map(line).collect();
    if applied.iter().any(|a| a.fate == Fate::NextBoot) {
        text += "the next boot, and only that one, takes the entry with these parameters; reboot to try it\n";
    }
    if applied
        .iter()
        .any(|a| matches!(a.fate, Fate::Changed { .. } | Fate::NextBoot | Fate::Entry(_)))
    {
        text += "take it back: onset tune undo\n";
    }
    text
}

fn line(applied: &Applied) -> String {
    let value = if applied.value.is_empty() { "set" } else { &applied.value };
    let name = format!("{} = {value}", applied.knob);
    match &applied.fate {
        Fate::Changed { places, refused } => {
            let places = match *places {
                0 => ": it is so already where it can be".into(),
                1 => String::new(),
                places => format!(" ({places} places)"),
            };
            let refused: String =
                refused.iter().map(|why| format!("    refused: {why}\n")).collect();
            format!("{} {name}{places}\n{refused}", toned(Tone::Good, "✓"))
        }
        Fate::Already => format!("{} {name}: it is so already\n", toned(Tone::Good, "✓")),
        Fate::NextBoot => format!("{} {name}: at the next boot\n", toned(Tone::Good, "✓")),
        Fate::Entry(why) => {
            let mark = toned(Tone::Doubt, "!");
            format!(
                "{mark} {name}: boot the entry `onset GNU/Linux` yourself, since it cannot be chosen: {why}\n"
            )
        }
        Fate::Refused(why) => format!("{} {name}: not changed: {why}\n", toned(Tone::Bad, "✗")),
    }
}

/// What is changed, and whether it still is.
pub fn tuning_status(changes: &[(Change, Option<String>)], entry: &[(String, bool)]) -> String {
    if changes.is_empty() {
        return "nothing is changed\n".into();
    }
    let columns = ["knob", "place", "before", "written", "now"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for (change, now) in changes {
        let shown = |text: Option<&String>| match (text, change.place.persists()) {
            (None, _) => "none".to_owned(),
            (Some(_), true) => "a file".into(),
            (Some(text), false) => change.reads.value(text),
        };
        let is_new = match (now, &change.new) {
            (Some(now), Some(new)) => change.reads.is_same(now, new),
            (now, new) => now.is_none() && new.is_none(),
        };
        let now = if is_new { "as written".into() } else { shown(now.as_ref()) };
        let (old, new) = (shown(change.old.as_ref()), shown(change.new.as_ref()));
        table.row([change.knob.clone(), change.place.to_string(), old, new, now]);
    }
    let mut text = table.text();
    if changes.iter().any(|(change, _)| change.place.persists()) {
        for (word, is_booted) in entry {
            let state = match is_booted {
                true => "in the command line of the running kernel",
                false => "not in this kernel; boot the entry `onset GNU/Linux`",
            };
            text += &format!("boot parameter {word}: {state}\n");
        }
    }
    text + "take it back: onset tune undo\n"
}

/// What was taken back. The running kernel keeps what it was booted with.
pub fn tuning_undone(undone: &Undone, entry: &[(String, bool)]) -> String {
    let is = |end: &End| undone.ended.iter().filter(|ended| ended.end == *end).count();
    let mut text = format!("{} restored", is(&End::Restored));
    let also = [
        (is(&End::Already), "had their old value already"),
        (is(&End::Gone), "are gone"),
        (is(&End::Anew), "made anew"),
    ];
    for (count, words) in also {
        if count > 0 {
            text += &format!(", {count} {words}");
        }
    }
    text += "\n";
    text += &undone.ended.iter().filter_map(remains).collect::<String>();
    if is(&End::Anew) > 0 && undone.boot.is_none() {
        text += "the boot menu was another one than onset had made; GRUB's programs made it once more, without onset's entry\n";
    }
    let booted = entry.iter().filter(|(_, is_booted)| *is_booted);
    let booted: Vec<&str> = booted.map(|(word, _)| word.as_str()).collect();
    if !booted.is_empty() && undone.is_whole() {
        text += &format!("the running kernel keeps {} until the next boot\n", booted.join(" "));
    }
    if let Some(why) = &undone.boot {
        text += &format!(
            "{} the menu of GRUB is not restored: {why}; mend it, then undo again\n",
            toned(Tone::Bad, "✗")
        );
    }
    text
}

/// What is not as it was before.
fn remains(ended: &Ended) -> Option<String> {
    let change = &ended.change;
    let old = change.old.as_ref().map_or("no file".into(), |old| change.reads.value(old));
    match &ended.end {
        End::Left(now) => {
            let now = if change.place.persists() {
                "another text".to_owned()
            } else {
                format!("{now:?}")
            };
            let mark = toned(Tone::Doubt, "!");
            Some(format!(
                "{mark} {} holds {now}, which is not what onset wrote; it stays. Before onset: {old:?}\n",
                change.place
            ))
        }
        End::Failed(why) => {
            let mark = toned(Tone::Bad, "✗");
            Some(format!("{mark} {}: {why}; mend it, then undo again\n", change.knob))
        }
        End::Gone => Some(format!("{} is not there any more\n", change.place)),
        End::Restored | End::Already | End::Anew => None,
    }
}

/// A unit of systemd that undoes at boot what a power failure left.
pub fn tuning_unit(command: &Path, journal: &Path) -> String {
    // A percent sign begins a specifier (systemd.unit(5)), and a quoted word has escapes (systemd.syntax(7)).
    let quoted = |path: &Path| {
        let text = path.display().to_string();
        text.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"")
    };
    let (command, journal) = (quoted(command), quoted(journal));
    format!(
        "# Undoes at boot what onset tune left when the power failed.
# Install it: save it as /etc/systemd/system/onset-tune-undo.service, then systemctl enable onset-tune-undo
[Unit]
Description=Undo changes of onset tune
RequiresMountsFor=\"{journal}\" /boot

[Service]
Type=oneshot
ExecStart=\"{command}\" tune undo --journal \"{journal}\"
# 3: somebody else has changed a setting since, which stays.
SuccessExitStatus=3

[Install]
WantedBy=multi-user.target
"
    )
}
