// SPDX-License-Identifier: GPL-2.0-or-later
//! The knobs: what knobs/*.toml say of each setting. docs/tuning.md has the form of the files.

use crate::{Cpus, Notation};
use probes::context::show_cpu_list;
use serde::Deserialize;
use std::fmt;
use std::sync::OnceLock;

/// The files of the knobs, with their texts.
macro_rules! files {
    ($($name:literal)*) => {
        pub(crate) const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../knobs/", $name, ".toml")))),*];
    };
}
files! {
    "preemption" "scheduler" "threads" "workqueue" "rcu" "watchdog" "clock" "memory" "pages" "idle" "frequency" "siblings"
    "machine_check" "kernel" "network" "interrupts" "isolation" "firmware"
}

/// Where a knob lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KnobKind {
    /// A parameter of the kernel's command line. Its name is the knob's name.
    Boot,
    /// A file of /proc/sys.
    Sysctl,
    /// Files of /sys.
    Sysfs,
    /// Files of /sys/kernel/debug.
    Debugfs,
    /// Other files of /proc.
    Procfs,
    /// The policy and priority of kernel threads. The paths are patterns of their names.
    Priority,
    /// onset's isolated partition of CPUs.
    Cgroup,
    /// The coalescing of network cards. The paths are its settings, as ethtool(8) names them.
    Ethtool,
    /// onset says how it is changed, and does not change it. The paths, if any, are only read.
    Told,
}

impl KnobKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            KnobKind::Boot => "boot",
            KnobKind::Sysctl => "sysctl",
            KnobKind::Sysfs => "sysfs",
            KnobKind::Debugfs => "debugfs",
            KnobKind::Procfs => "procfs",
            KnobKind::Priority => "priority",
            KnobKind::Cgroup => "cgroup",
            KnobKind::Ethtool => "ethtool",
            KnobKind::Told => "told",
        }
    }
}

/// A setting of a machine on which latencies depend.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name, which no other knob has. That of a boot parameter is the parameter.
    pub name: String,
    /// Where it lives.
    pub kind: KnobKind,
    /// Its files, as absolute patterns: `*` stands for any part of a name, `{measured}` for each measured CPU.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How it is read back.
    #[serde(default)]
    pub reads: Notation,
    /// The value that onset proposes, with placeholders for CPUs ([`crate::Cpus::fill`]). Without it, only a user who
    /// names the knob changes it.
    #[serde(default)]
    pub proposes: Option<String>,
    /// The value that is tried where onset proposes none, and whoever tries all knobs asks for one: one that guides to
    /// tuning name, and that is not the kernel's own where the kernel has another.
    #[serde(default)]
    pub tries: Option<String>,
    /// Knobs without which it does nothing.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Knobs that make it pointless, or that it makes pointless.
    #[serde(default)]
    pub contradicts: Vec<String>,
    /// Knobs whose values the kernel may change together with this one. An undo gives them back after it.
    #[serde(default)]
    pub moves: Vec<String>,
    /// Whether it is a boot parameter that takes no value. Its value is then the empty text.
    #[serde(default)]
    pub flag: bool,
    /// Whether it takes effect at the next boot alone.
    #[serde(default)]
    pub reboot: bool,
    /// Whether nothing can take it back before the next boot, once it is in effect.
    #[serde(default)]
    pub irreversible: bool,
    /// Whether the kernel may refuse it for some files, which then keep their values. Otherwise all files change, or
    /// none.
    #[serde(default)]
    pub each: bool,
    /// Whether it keeps work away from the measured CPUs. Such knobs are changed last, and taken back first.
    #[serde(default)]
    pub isolates: bool,
    /// The first kernel that has it.
    #[serde(default)]
    pub from: Option<KernelSeries>,
    /// The last kernel that has it.
    #[serde(default)]
    pub until: Option<KernelSeries>,
    /// The option of the kernel's configuration without which it does nothing.
    #[serde(default)]
    pub option: Option<String>,
    /// The option with which the kernel always does what the knob asks for.
    #[serde(default)]
    pub unless: Option<String>,
    /// What is expected of it, in a sentence.
    pub why: String,
    /// Of a knob that is only told: what to do.
    #[serde(default)]
    pub how: Option<String>,
    /// Where that is from: a file of the kernel's documentation, a commit or a paper.
    pub source: String,
}

impl Knob {
    /// The knob with a value to try, as [`crate::Plan::with`] reads it: the proposed value or the one in `tries`.
    /// `None` if it has neither, or if its value is of CPUs that keep house and no CPU does.
    pub fn trial(&self, cpus: &Cpus) -> Option<String> {
        if self.flag {
            return Some(self.name.clone());
        }
        let value = self.proposes.as_ref().or(self.tries.as_ref())?;
        let value = match value.contains("{housekeeping") {
            true => cpus.fill(value)?,
            false => value.replace("{measured}", &show_cpu_list(&cpus.measured)),
        };
        Some(format!("{}={value}", self.name))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    knob: Vec<Knob>,
}

/// The knobs in a file's text.
pub(crate) fn parsed(text: &str) -> Result<Vec<Knob>, toml_edit::de::Error> {
    toml_edit::de::from_str::<File>(text).map(|file| file.knob)
}

/// All knobs, in the order of their files.
pub fn knobs() -> &'static [Knob] {
    static KNOBS: OnceLock<Vec<Knob>> = OnceLock::new();
    KNOBS.get_or_init(|| {
        let of = |(name, text): &(&str, &str)| {
            parsed(text).unwrap_or_else(|e| panic!("knobs/{name}.toml: {e}"))
        };
        FILES.iter().flat_map(of).collect()
    })
}

/// The knob that a user means: by its name, or by the end of its name after a point (`timer_migration`).
///
/// # Errors
/// If there is none, with the most similar name.
pub fn find(name: &str) -> Result<&'static Knob, String> {
    let end = format!(".{name}");
    let ending: Vec<&Knob> = knobs().iter().filter(|knob| knob.name.ends_with(&end)).collect();
    let exact = knobs().iter().find(|knob| knob.name == name);
    if let Some(knob) = exact.or(match ending[..] {
        [only] => Some(only),
        _ => None,
    }) {
        return Ok(knob);
    }
    let alike = knobs().iter().min_by_key(|knob| strsim::damerau_levenshtein(&knob.name, name));
    let alike = alike.map_or("none", |knob| &knob.name);
    Err(format!(
        "there is no knob {name:?}; the most similar name is {alike:?}, and `onset tune` lists all"
    ))
}

/// The number of a kernel's series, as in `6.12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct KernelSeries(u32, u32);

impl KernelSeries {
    /// The series in a kernel's release, as `6.12` in `6.12.8-amd64`.
    pub fn of(text: &str) -> Option<KernelSeries> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        Some(KernelSeries(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

impl TryFrom<String> for KernelSeries {
    type Error = String;

    fn try_from(text: String) -> Result<KernelSeries, String> {
        KernelSeries::of(&text).ok_or_else(|| format!("{text:?} is no series of kernels"))
    }
}

impl fmt::Display for KernelSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}
