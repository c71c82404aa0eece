// SPDX-License-Identifier: GPL-2.0-or-later
//! Licences, lengths of files and lines, and names of files.

use crate::sources::{all, none_of, written_in};

/// What people write by hand. Documents are folded by whoever reads them.
const CODE: [&str; 8] = [".rs", ".c", ".h", ".ts", ".mjs", ".sh", ".py", ".S"];
/// Of these, what is checked for wide lines. A shell has no good way to fold.
const FOLDED: [&str; 5] = [".rs", ".c", ".h", ".ts", ".mjs"];
/// A line may be wider for texts of so many characters: who looks for a message finds it whole, and data stay in rows.
const TEXT_MIN: usize = 60;
/// Lines of a file at the most.
const LINES_MAX: usize = 500;
/// Files that were longer when the rule was made, and how long they may be until they are taken apart.
const LONGER: [(&str, usize); 5] = [
    ("crates/experiment/src/tests.rs", 501),
    ("crates/rig/src/kernel/import.rs", 532),
    ("crates/view/src/report/mod.rs", 543),
    ("web/test/browser.test.ts", 634),
    ("web/test/fixture.ts", 550),
];
/// Characters of a line at the most.
const COLUMNS_MAX: usize = 120;
/// Words that say of a file that it holds what belongs nowhere.
const NAMELESS: [&str; 7] = ["util", "utils", "common", "shared", "misc", "helper", "helpers"];
/// Ends of the names of files that carry no licence, and why.
const WITHOUT_LICENCE: [(&str, &str); 7] = [
    (".json", "JSON has no comments"),
    (".lock", "a program writes it"),
    (".png", "a picture"),
    (".txt", "seeds that proptest writes"),
    (".gitignore", "it lists names, and nothing in it is anybody's work"),
    (".bin", "bytes that a test compares with"),
    ("LICENSE", "it is the licence"),
];

/// Files that a program writes: nobody reads them line by line.
fn is_generated(text: &str) -> bool {
    text.lines().take(4).any(|line| line.contains("@generated"))
}

#[test]
fn every_file_begins_with_its_licence() {
    let is_exempt = |name: &str| WITHOUT_LICENCE.iter().any(|(end, _)| name.ends_with(end));
    // The first line may say how the file is run.
    let says = |text: &str| {
        text.lines().take(2).any(|line| line.contains("SPDX-License-Identifier: GPL-2.0-or-later"))
    };
    let without = all().into_iter().filter(|(name, text)| !is_exempt(name) && !says(text));
    none_of(without.map(|(name, _)| name).collect());
}

#[test]
fn no_file_is_longer_than_what_one_takes_in_at_once() {
    let mut long = Vec::new();
    for (name, text) in written_in(&CODE) {
        let lines = text.lines().count();
        let known = LONGER.iter().find(|(longer, _)| *longer == name);
        let most = known.map_or(LINES_MAX, |(_, lines)| *lines);
        if lines > most && !is_generated(&text) {
            long.push(format!("{name}: {lines} lines, {most} at the most"));
        }
    }
    none_of(long);
}

/// About how many characters of a line are texts in quotes; to its end where a text goes on in the next line.
fn quoted(line: &str) -> usize {
    let parts: Vec<&str> = line.split(['"', '`']).collect();
    parts.iter().skip(1).map(|part| part.chars().count()).sum()
}

#[test]
fn no_line_is_wider_than_a_window() {
    let mut wide = Vec::new();
    for (name, text) in written_in(&FOLDED) {
        if is_generated(&text) {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            let columns = line.chars().count();
            let is_comment = line.trim_start().starts_with(['/', '*']);
            // A text that goes on from the line before has no quote in front.
            let is_text = !is_comment && (quoted(line) >= TEXT_MIN || !line.contains(['(', '=']));
            if columns > COLUMNS_MAX && !is_text {
                wide.push(format!("{name}:{number}: {columns} columns, {COLUMNS_MAX} at the most"));
            }
        }
    }
    none_of(wide);
}

#[test]
fn every_file_is_named_for_what_is_in_it() {
    let is_nameless = |name: &str| {
        name.split(['/', '.']).any(|part| NAMELESS.contains(&part.to_lowercase().as_str()))
    };
    let nameless = all().into_iter().filter(|(name, _)| is_nameless(name));
    none_of(nameless.map(|(name, _)| name).collect());
}

/// Rooms whose words people read in their own terminal. The others print in the guest, or into a pipe of ours.
const HEARD: [&str; 11] = [
    "bundle",
    "experiment",
    "hunt",
    "lab",
    "onset",
    "rig",
    "sample",
    "stats",
    "trace",
    "view",
    "wire",
];

/// Foreign text reaches a terminal only where it is written out.
#[test]
fn one_place_prints() {
    let is_heard = |name: &str| {
        let room = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        room.is_some_and(|(room, file)| HEARD.contains(&room) && file != "visible.rs")
    };
    let prints = |text: &str| text.contains("println!(") || text.contains("print!(");
    let sources = written_in(&[".rs"]).into_iter();
    let printing = sources.filter(|(name, text)| is_heard(name) && prints(text));
    none_of(
        printing.map(|(name, _)| format!("{name} prints by itself; take view::visible")).collect(),
    );
}
