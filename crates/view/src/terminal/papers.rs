// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables and figures of the papers after `onset run`: what became of each, the paper's figure and onset's, and the
//! command that makes it again. The report has the same list with the claims behind it.

use super::table::{Align, Table};
use crate::report::papers::{Item, Others, Outcome, Status, contents_of};
use bundle::{Bundle, BundleError};

/// The list; nothing if no run belongs to a paper.
///
/// # Errors
/// [`BundleError`] where a bundle cannot be read.
pub fn papers(bundles: &[Bundle]) -> Result<String, BundleError> {
    let items = contents_of(bundles)?;
    Ok(if items.is_empty() { String::new() } else { listed(&items) })
}

fn listed(items: &[Item]) -> String {
    let columns = [
        ("paper", Align::Left),
        ("", Align::Left),
        ("shows", Align::Left),
        ("outcome", Align::Left),
        ("paper's figure", Align::Left),
        ("here", Align::Left),
        ("again by, or why not", Align::Left),
    ];
    let spare = ["shows", "again by, or why not"];
    let mut table = Table::new(&columns).indented(2).sparing(&spare);
    for item in items {
        let dash = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
        table.row([
            item.paper.to_owned(),
            item.place.to_owned(),
            item.shows.to_owned(),
            outcomes(item),
            dash(item.theirs),
            dash(item.ours.as_deref().unwrap_or_default()),
            if item.command.is_empty() { item.why.to_owned() } else { item.command.clone() },
        ]);
    }
    format!("The papers:\n{}", table.text())
}

/// The outcome of the claim that leads, and how many others there are.
fn outcomes(item: &Item) -> String {
    let word = match item.status {
        Status::Alike => word(Outcome::Alike),
        Status::Changed => word(Outcome::Changed),
        Status::NoDifference => word(Outcome::NoDifference),
        Status::CannotBeTold => word(Outcome::CannotBeTold),
        Status::NotInThisReport => "not run here",
        Status::ByCommand => "see the command",
        Status::NotYet => "not yet",
        Status::NoMeasurement => "no measurement",
    };
    let other = |others: &Others| format!("{} {}", others.count, self::word(others.outcome));
    let others = item.others.iter().map(other);
    let others: Vec<String> = others.collect();
    if others.is_empty() { word.into() } else { format!("{word} (and {})", others.join(", ")) }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Alike => "alike",
        Outcome::Changed => "changed",
        Outcome::NoDifference => "no difference shown",
        Outcome::CannotBeTold => "cannot be told",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_outcome_both_figures_and_the_command_or_the_reason() {
        let told = Item {
            paper: "2001",
            place: "table 1",
            shows: "a delay",
            status: Status::Changed,
            why: "",
            theirs: "× 32.0",
            ours: Some("× 0.9".into()),
            others: vec![Others { outcome: Outcome::Alike, count: 3 }],
            command: "onset run x.toml".into(),
            table: Some("2001-1"),
        };
        let drawing = Item {
            status: Status::NoMeasurement,
            why: "a drawing",
            theirs: "",
            ours: None,
            others: Vec::new(),
            command: String::new(),
            table: None,
            ..told.clone()
        };
        let text = listed(&[told, drawing]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for part in ["changed (and 3 alike)", "× 32.0  ", "× 0.9  ", "onset run x.toml"] {
            assert!(lines[2].contains(part), "{part} in {text}");
        }
        for part in ["no measurement  ", "–  ", "a drawing"] {
            assert!(lines[3].contains(part), "{part} in {text}");
        }
    }
}
