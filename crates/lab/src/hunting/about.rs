// SPDX-License-Identifier: GPL-2.0-or-later
//! The subject of a hunt. It is the first line of the hunt's journal, and a part of what is printed of the hunt.

use crate::followed::Ready;
use hunt::{Hunt, StrategyName};
use serde::{Deserialize, Serialize};

/// What a hunt is about. Only with the same can it be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct About {
    /// Version of this file.
    pub journal: u32,
    /// The experiment's text, with what the command line replaced.
    pub experiment: String,
    /// The flavour.
    pub flavour: String,
    /// Where it hunts; at least one.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub guests: Vec<AboutGuest>,
    /// Names of responders whose worst is looked for.
    pub responders: Vec<String>,
    /// Names of strategies.
    pub strategies: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// What tells the finds from others from which the hunt starts. Absent if it starts from none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// Into how many shards the hunt is divided, each of which is a hunt with a seed of its own. Absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shards: Option<u32>,
}

/// One of the guests that a hunt is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AboutGuest {
    /// What keeps it busy.
    pub load: String,
    /// Of the random numbers that its kernel begins with.
    pub seed: u32,
    /// Key of its snapshot at the warm-up's end.
    pub snapshot: String,
}

impl AboutGuest {
    fn of(ready: &Ready) -> AboutGuest {
        let guest = ready.guest();
        AboutGuest {
            load: guest.contents.load.to_string(),
            seed: guest.seed,
            snapshot: ready.made_with().snapshot,
        }
    }
}

impl About {
    /// The version of the journal that this version writes.
    pub const JOURNAL: u32 = 13;

    /// A hunt in these guests of a flavour, which are at the end of the warm-up. `experiment` is empty if no experiment
    /// says more about the hunt.
    pub fn of<'a, 'b: 'a>(
        hunt: &Hunt,
        experiment: &str,
        flavour: String,
        guests: impl Iterator<Item = &'a Ready<'b>>,
    ) -> About {
        About {
            journal: About::JOURNAL,
            experiment: experiment.into(),
            flavour,
            guests: guests.map(AboutGuest::of).collect(),
            responders: hunt.responders.iter().map(|r| r.name().to_string()).collect(),
            strategies: hunt.strategies.iter().map(StrategyName::to_string).collect(),
            seed: hunt.seed,
            from: None,
            shards: None,
        }
    }

    /// The name of the guest with this number. `None` if it is the only one.
    pub fn guest(&self, number: usize) -> Option<String> {
        let guest = self.guests.get(number).filter(|_| self.guests.len() > 1)?;
        let alike = self.guests.iter().filter(|other| other.load == guest.load).count();
        Some(match alike {
            1 => guest.load.clone(),
            _ => format!("{}, guest seed {}", guest.load, guest.seed),
        })
    }

    /// The hunt's loads, each once, with commas.
    pub fn loads(&self) -> String {
        let mut loads: Vec<&str> = self.guests.iter().map(|guest| &*guest.load).collect();
        loads.dedup();
        loads.join(", ")
    }
}

/// The first thing in which two hunts differ.
pub fn difference(known: &About, about: &About) -> Option<String> {
    let told = |about: &About| {
        let guests = |of: fn(&AboutGuest) -> String| {
            about.guests.iter().map(of).collect::<Vec<_>>().join(",")
        };
        [
            ("flavour", about.flavour.clone()),
            ("load", guests(|guest| guest.load.clone())),
            ("guest seed", guests(|guest| guest.seed.to_string())),
            ("seed", about.seed.to_string()),
            ("number of shards", about.shards.unwrap_or(1).to_string()),
            ("responders", about.responders.join(",")),
            ("strategies", about.strategies.join(",")),
            ("set of finds to start from", about.from.clone().unwrap_or_else(|| "none".into())),
            ("snapshot", guests(|guest| guest.snapshot.clone())),
            ("experiment", about.experiment.clone()),
        ]
    };
    let mut both = told(known).into_iter().zip(told(about));
    let ((what, a), (_, b)) = both.find(|(a, b)| a != b)?;
    Some(match what {
        "experiment" => "its experiment is another".to_string(),
        _ => format!("its {what} is {a}, not {b}"),
    })
}
