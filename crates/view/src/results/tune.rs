// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset tune --json` prints.

use machine::{Cpus, KnobKind, Sighting, State};
use serde::Serialize;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tune<'a> {
    /// Number of this format.
    schema: u32,
    /// The release of the running kernel; null if it cannot be read.
    kernel: Option<String>,
    /// The CPUs on which somebody waits for answers. They rise.
    measured_cpus: &'a [u32],
    /// All other CPUs. They rise.
    housekeeping_cpus: &'a [u32],
    /// Every knob that onset knows.
    knobs: Vec<Tunable<'a>>,
}

/// A knob: a setting of the machine on which latencies depend.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Tunable<'a> {
    /// Its name.
    name: &'a str,
    /// Where it lives: `boot`, `sysctl`, `sysfs`, `debugfs`, `procfs`, `cgroup`, `ethtool`, `priority` (of kernel
    /// threads), or `told`: onset says how it is changed, and does not change it.
    kind: &'static str,
    /// What it is on this machine.
    state: Standing,
    /// Its value now, as the kernel shows it; several values each with the number of places that have it. Null if the
    /// machine lacks the knob, or if onset cannot read it.
    now: Option<String>,
    /// The value that onset proposes for this machine; null if it proposes none.
    proposed: Option<&'a str>,
    /// Whether it takes effect at the next boot alone.
    needs_reboot: bool,
    /// Whether nothing can take it back before the next boot, once it is in effect.
    irreversible_until_reboot: bool,
    /// Why this machine lacks it; null if the machine has it.
    missing: Option<&'a str>,
    /// What is expected of it.
    expected: &'a str,
    /// How it is changed, if onset does not change it; null otherwise.
    how: Option<&'a str>,
    /// The file of the kernel's documentation, the commit or the paper that says so.
    source: &'a str,
}

/// What a knob is on a machine.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// onset proposes another value than the one that it has.
    Proposed,
    /// It has the proposed value.
    Already,
    /// onset proposes no value. Whoever names the knob and a value changes it.
    Open,
    /// The machine lacks it.
    NotHere,
    /// onset says how it is changed, and does not change it.
    Told,
}

impl<'a> Tune<'a> {
    /// Version of the format (docs/tune.schema.json).
    pub const SCHEMA: u32 = 1;

    /// What the knobs of a machine are.
    pub fn of(looks: &'a [Sighting], cpus: &'a Cpus, kernel: Option<String>) -> Self {
        Tune {
            schema: Self::SCHEMA,
            kernel,
            measured_cpus: &cpus.measured,
            housekeeping_cpus: &cpus.housekeeping,
            knobs: looks.iter().map(Tunable::of).collect(),
        }
    }
}

impl<'a> Tunable<'a> {
    fn of(look: &'a Sighting) -> Self {
        let knob = look.knob;
        let missing = match &look.state {
            State::NotHere(why) => Some(why.as_str()),
            _ => None,
        };
        let state = match (missing, &look.proposed) {
            (Some(_), _) => Standing::NotHere,
            _ if knob.kind == KnobKind::Told => Standing::Told,
            (None, None) => Standing::Open,
            (None, Some(value)) if look.is_already(value) => Standing::Already,
            (None, Some(_)) => Standing::Proposed,
        };
        Tunable {
            name: &knob.name,
            kind: knob.kind.name(),
            state,
            now: look.now(),
            proposed: look.proposed.as_deref(),
            needs_reboot: knob.reboot,
            irreversible_until_reboot: knob.irreversible,
            missing,
            expected: &knob.why,
            how: knob.how.as_deref(),
            source: &knob.source,
        }
    }
}
