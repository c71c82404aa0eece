// SPDX-License-Identifier: GPL-2.0-or-later
//! A plan: which knobs are to get which values. As a file it can be read, altered, and carried out on many machines.

use crate::{Cpus, Knob, KnobKind, Sighting, State, boot, find};
use probes::context::cpu_list;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of the file's form.
const VERSION: u32 = 1;
const HEAD: &str = "# SPDX-License-Identifier: GPL-2.0-or-later
# A plan of onset tune. `onset tune apply --plan FILE` carries it out. Remove the lines of knobs that shall stay as they are.
# The CPUs in its values are those of the machine for which it was made.
";

/// Why a plan cannot be carried out. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// A knob and the value that it is to get.
#[derive(Clone, Debug)]
pub struct Change {
    /// The knob.
    pub knob: &'static Knob,
    /// The value.
    pub value: String,
}

/// Which knobs get which values, in the order in which they get them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    changes: Vec<Change>,
}

/// The file of a plan.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    knobs: BTreeMap<String, String>,
}

impl Plan {
    /// What onset proposes on a machine: every knob that is there, may be changed, and has another value.
    pub fn proposed(looks: &[Sighting]) -> Plan {
        let change = |look: &Sighting| {
            let value = look.proposed.clone()?;
            let is_open = look.knob.kind != KnobKind::Told
                && !matches!(look.state, State::NotHere(_))
                && !look.is_already(&value);
            is_open.then_some(Change { knob: look.knob, value })
        };
        Plan::of(looks.iter().filter_map(change).collect())
    }

    /// Isolation comes last, and a boot parameter after everything that takes effect at once.
    fn of(mut changes: Vec<Change>) -> Plan {
        changes.sort_by_key(|c| (c.knob.kind == KnobKind::Boot, c.knob.isolates));
        Plan { changes }
    }

    /// The changes, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The same plan with what the user says on the command line, as `NAME=VALUE`, or `NAME` for the proposed value.
    ///
    /// # Errors
    /// If there is no such knob, no value is proposed, or onset does not change the knob.
    pub fn with(self, said: &[String], cpus: &Cpus) -> Result<Plan, PlanError> {
        let mut changes = self.changes;
        for word in said {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let knob = find(name).map_err(PlanError)?;
            let proposed = || match knob.flag {
                true => Some(String::new()),
                false => knob.proposes.as_ref().and_then(|value| cpus.fill(value)),
            };
            let value = value.or_else(proposed).ok_or_else(|| {
                PlanError(format!(
                    "onset proposes no value for {name} here; name one: --knob {name}=VALUE"
                ))
            })?;
            changes.retain(|change| change.knob.name != knob.name);
            changes.push(checked(knob, value)?);
        }
        Ok(Plan::of(changes))
    }

    /// The same plan without what takes effect at the next boot alone.
    pub fn at_once(mut self) -> Plan {
        self.changes.retain(|change| !change.knob.reboot);
        self
    }

    /// The text of its file.
    pub fn text(&self) -> String {
        let knobs = self.changes.iter().map(|c| (c.knob.name.clone(), c.value.clone()));
        let file = File { version: VERSION, knobs: knobs.collect() };
        let text = toml_edit::ser::to_string_pretty(&file).expect("plain data");
        format!("{HEAD}{text}")
    }

    /// The plan in a file's text.
    ///
    /// # Errors
    /// If it is no plan, of a newer version, or names a knob that this onset does not know or change.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let no_plan = |e: toml_edit::de::Error| {
            PlanError(format!(
                "it is no plan: {}; onset tune --output FILE writes one",
                e.to_string().trim()
            ))
        };
        let Version { version } = toml_edit::de::from_str(text).map_err(no_plan)?;
        if version != VERSION {
            return Err(PlanError(format!(
                "it is a plan of version {version}, and this onset knows {VERSION}; take the onset that wrote it"
            )));
        }
        let file: File = toml_edit::de::from_str(text).map_err(no_plan)?;
        let change =
            |(name, value): (String, String)| checked(find(&name).map_err(PlanError)?, value);
        Ok(Plan::of(file.knobs.into_iter().map(change).collect::<Result<_, _>>()?))
    }

    /// Refuses two knobs of the plan that contradict each other.
    ///
    /// # Errors
    /// With both names.
    pub fn consistent(&self) -> Result<(), PlanError> {
        for change in &self.changes {
            let other = self
                .changes
                .iter()
                .find(|other| change.knob.contradicts.contains(&other.knob.name));
            if let Some(other) = other {
                return Err(PlanError(format!(
                    "{} and {} contradict each other; leave one out",
                    change.knob.name, other.knob.name
                )));
            }
        }
        Ok(())
    }
}

fn checked(knob: &'static Knob, value: String) -> Result<Change, PlanError> {
    let name = &knob.name;
    if knob.kind == KnobKind::Told {
        let how = knob.how.as_deref().unwrap_or_default();
        return Err(PlanError(format!("onset does not change {name}, it only tells how: {how}")));
    }
    let is_fit = match knob.kind {
        KnobKind::Boot => boot::is_plain(&value) && (knob.flag || !value.is_empty()),
        _ => !value.trim().is_empty() && !value.contains(|c: char| c.is_control()),
    };
    if !is_fit {
        return Err(PlanError(format!(
            "{value:?} cannot be the value of {name}; write one word, as the kernel takes it"
        )));
    }
    if knob.kind == KnobKind::Priority
        && let Err(e) = value.parse::<rt::Policy>()
    {
        return Err(PlanError(format!("{name}: {e}")));
    }
    if knob.kind == KnobKind::Cgroup && cpu_list(&value).is_none_or(|cpus| cpus.is_empty()) {
        return Err(PlanError(format!("{name}: {value:?} is no list of CPUs, as 2-3,5 is")));
    }
    Ok(Change { knob, value })
}
