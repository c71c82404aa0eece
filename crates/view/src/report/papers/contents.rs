// SPDX-License-Identifier: GPL-2.0-or-later
//! Every table and figure of the five papers, in the order of the papers: what became of it, the paper's figure and
//! onset's, and the command that makes it again. [`entries`](super::entries) is the list.
//!
//! An item has one claim as its lead. Its outcome is the item's, and the other claims of the table are counted beside
//! it. An item that no experiment makes has a reason, or the command that shows it.

use super::Table;
use super::claim::{Claim, Outcome};
use super::entries::{ENTRIES, Entry, Made};
use bundle::{Bundle, BundleError};
use serde::Serialize;
use std::collections::BTreeSet;

/// What became of a table or figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ItemStatus"))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The outcome of the claim that leads.
    Alike,
    /// As above.
    Changed,
    /// As above.
    NoDifference,
    /// As above.
    CannotBeTold,
    /// An experiment makes it again, of which this report has no run.
    NotInThisReport,
    /// A command shows what the paper shows, and the paper claims nothing that a run could decide.
    ByCommand,
    /// Nobody made it again yet.
    NotYet,
    /// It has nothing that onset could measure.
    NoMeasurement,
}

/// The claims of one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OtherClaims"))]
pub struct Others {
    /// The outcome.
    pub outcome: Outcome,
    /// How many have it.
    pub count: u64,
}

/// A table or figure of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PaperItem"))]
pub struct Item {
    /// The paper, as the pages cite it.
    pub paper: &'static str,
    /// Its table or figure.
    pub place: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What became of it.
    pub status: Status,
    /// Why that, if no claim decides it.
    pub why: &'static str,
    /// The paper's figure, as printed or as a relation of figures that it prints.
    pub theirs: &'static str,
    /// The same relation between onset's figures, of the repetition in the middle.
    pub ours: Option<String>,
    /// How many claims of the same table have which outcome, beside the one that leads.
    pub others: Vec<Others>,
    /// The command that makes it again; empty if there is none.
    pub command: String,
    /// The table of this report, for a link.
    pub table: Option<&'static str>,
}

/// All tables and figures, with what `tables` say of them; nothing if there is no table.
pub fn contents(tables: &[Table]) -> Vec<Item> {
    if tables.is_empty() {
        return Vec::new();
    }
    ENTRIES.iter().map(|entry| item(entry, tables)).collect()
}

/// The items for a terminal: all of them if there are runs of several papers' experiments, else those of the one
/// experiment. None if no run belongs to a paper.
///
/// # Errors
/// [`BundleError`] where a bundle cannot be read.
pub fn contents_of(bundles: &[Bundle]) -> Result<Vec<Item>, BundleError> {
    let papers = bundles.iter().filter_map(|b| b.manifest().about.experiment.paper.as_deref());
    let papers: BTreeSet<&str> = papers.collect();
    if papers.is_empty() {
        return Ok(Vec::new());
    }
    let mut items = contents(&super::tables(bundles)?);
    items.retain(|item| papers.len() > 1 || item.table.is_some());
    Ok(items)
}

fn item(entry: &Entry, tables: &[Table]) -> Item {
    let mut item = Item {
        paper: entry.paper,
        place: entry.place,
        shows: entry.shows,
        status: Status::NotInThisReport,
        why: "",
        theirs: "",
        ours: None,
        others: Vec::new(),
        command: String::new(),
        table: None,
    };
    match entry.made {
        Made::Experiment { file, table, lead, theirs } => {
            item.theirs = theirs;
            item.command = format!("onset run experiments/papers/{file}.toml");
            if let Some(table) = tables.iter().find(|t| t.id == table) {
                item.table = Some(table.id);
                tell(&mut item, table, lead);
            }
        }
        Made::Command { command, why } => {
            (item.status, item.why) = (Status::ByCommand, why);
            item.command = command.into();
        }
        Made::NotYet(why) => (item.status, item.why) = (Status::NotYet, why),
        Made::NoMeasurement(why) => (item.status, item.why) = (Status::NoMeasurement, why),
    }
    item
}

/// Enters what the claims of the table say.
fn tell(item: &mut Item, table: &Table, lead: &str) {
    let leads = |claim: &&Claim| claim.paper.contains(lead);
    let Some(claim) = table.claims.iter().find(leads) else { return };
    item.status = match claim.outcome {
        Outcome::Alike => Status::Alike,
        Outcome::Changed => Status::Changed,
        Outcome::NoDifference => Status::NoDifference,
        Outcome::CannotBeTold => Status::CannotBeTold,
    };
    item.ours = claim.figure.clone();
    for other in table.claims.iter().filter(|other| !std::ptr::eq(*other, claim)) {
        match item.others.iter_mut().find(|others| others.outcome == other.outcome) {
            Some(others) => others.count += 1,
            None => item.others.push(Others { outcome: other.outcome, count: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Experiment, Paper};
    use std::path::{Path, PathBuf};

    fn directory() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/papers")
    }

    fn files() -> BTreeSet<String> {
        let stem = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_string_lossy().into_owned()
        };
        std::fs::read_dir(directory()).unwrap().map(stem).collect()
    }

    #[test]
    fn every_experiment_of_the_papers_is_in_the_list_and_every_entry_names_a_file() {
        let named: BTreeSet<String> =
            ENTRIES.iter().filter_map(Entry::file).map(String::from).collect();
        let there = files();
        let is_of = |file: &str, entry: &str| match entry.strip_suffix('*') {
            Some(begin) => file.starts_with(begin),
            None => file == entry,
        };
        let mut papers = Vec::new();
        for entry in &named {
            assert!(
                there.iter().any(|file| is_of(file, entry)),
                "an entry names {entry}.toml, which does not exist"
            );
        }
        for file in &there {
            assert!(named.iter().any(|entry| is_of(file, entry)), "{file}.toml is in no entry");
            let path = directory().join(format!("{file}.toml"));
            papers.extend(Experiment::load(&path).unwrap().paper);
        }
        for paper in Paper::ALL {
            assert!(papers.contains(&paper), "no experiment is of {}", paper.name());
        }
    }

    /// `table 1` … `figures 2.1 to 2.6` of a paper, each by itself.
    fn expanded(place: &str) -> Vec<String> {
        let words: Vec<&str> = place.split(' ').collect();
        let Some(kind) = words[0].strip_suffix('s') else {
            return vec![place.into()];
        };
        let (chapter, first) = words[1].rsplit_once('.').unwrap_or(("", words[1]));
        let last = words[3].rsplit_once('.').map_or(words[3], |(_, last)| last);
        let dot = if chapter.is_empty() { "" } else { "." };
        let number = |n: u32| format!("{kind} {chapter}{dot}{n}");
        (first.parse::<u32>().unwrap()..=last.parse().unwrap()).map(number).collect()
    }

    #[test]
    fn each_table_and_figure_of_the_five_papers_is_listed_once() {
        // The captions of the papers.
        let all: [(&str, &[&str]); 5] = [
            // The slides have headings.
            (
                "2002",
                &[
                    "Interrupt Latency, four charts",
                    "Preemption Latency, two charts",
                    "System Call Tests",
                    "Context Switch Test",
                    "Scheduler",
                ],
            ),
            ("2001", &["tables 1 to 7"]),
            (
                "2006",
                &[
                    "tables 2.1 to 2.6",
                    "tables 3.1 to 3.7",
                    "figures 3.1 to 3.6",
                    "figures 4.1 to 4.10",
                    "figures 5.1 to 5.12",
                ],
            ),
            ("2007 internals", &["figures 1 to 8"]),
            ("2007 assessment", &["figures 1 to 26"]),
        ];
        for (paper, places) in all {
            let wanted: Vec<String> = places.iter().flat_map(|place| expanded(place)).collect();
            let of = ENTRIES.iter().filter(|e| e.paper == paper && !e.place.starts_with('§'));
            let mut listed: Vec<String> = of.flat_map(|e| expanded(e.place)).collect();
            listed.sort();
            let mut sorted = wanted.clone();
            sorted.sort();
            assert_eq!(listed, sorted, "{paper}");
        }
    }

    fn claim(paper: &str, outcome: Outcome, figure: Option<&str>) -> Claim {
        Claim {
            paper: paper.into(),
            outcome,
            here: String::new(),
            figure: figure.map(String::from),
            smallest_effect: None,
            spread: None,
        }
    }

    fn table(claims: Vec<Claim>) -> Table {
        Table {
            id: "t",
            heading: "",
            source: "",
            columns: Vec::new(),
            rows: Vec::new(),
            absent: Vec::new(),
            note: String::new(),
            claims,
            picture: None,
        }
    }

    const MADE: Entry = Entry {
        paper: "2001",
        place: "table 1",
        shows: "a delay",
        made: Made::Experiment { file: "x", table: "t", lead: "B is", theirs: "× 2" },
    };

    #[test]
    fn the_lead_gives_the_outcome_and_the_figure_and_the_others_are_counted() {
        let table = table(vec![
            claim("A is more.", Outcome::Alike, None),
            claim("B is more.", Outcome::Changed, Some("× 0.5")),
            claim("C is more.", Outcome::Alike, None),
        ]);
        let item = item(&MADE, &[table]);
        assert_eq!((item.status, item.ours.as_deref()), (Status::Changed, Some("× 0.5")));
        assert_eq!(item.others, [Others { outcome: Outcome::Alike, count: 2 }]);
        assert_eq!(item.command, "onset run experiments/papers/x.toml");
    }

    #[test]
    fn what_has_no_run_in_a_report_says_so_and_keeps_its_command() {
        assert!(contents(&[]).is_empty());
        let item = item(&MADE, &[]);
        assert_eq!((item.status, item.table), (Status::NotInThisReport, None));
        assert_eq!((item.ours, item.theirs), (None, "× 2"));
        assert_eq!(item.command, "onset run experiments/papers/x.toml");
    }
}
