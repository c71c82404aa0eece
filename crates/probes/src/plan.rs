// SPDX-License-Identifier: GPL-2.0-or-later
//! The plan of a probe: one JSON object, which is the same on every target.

pub use crate::Probe;
pub use crate::async_handler::{Async, Mechanism, Placement};
pub use crate::cost::{Cost, Suite};
pub use crate::cycles::Cycles;
pub use crate::cyclictest::Cyclictest;
pub use crate::gtod::{Gtod, ReadClock};
pub use crate::inversion::Inversion;
pub use crate::ladder::Ladder;
pub use crate::noise::Noise;
pub use crate::periodic::{Periodic, SleepMethod};
pub use crate::rhealstone::{Component, Interface, Rhealstone};
pub use crate::rtc::Rtc;
pub use crate::toggle::{Line, Toggle};
pub use rt::Overrun;

use rt::Policy;
use sample::Nanos;
use serde::{Deserialize, Serialize};

/// The whole plan of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is measured, and how.
    pub probe: Probe,
    /// How the measuring threads are scheduled.
    pub policy: Policy,
    /// The measured CPUs, rising. A probe that measures one CPU takes the first; one that needs two, the first two.
    pub cpus: Vec<u32>,
    /// Whether the probe keeps the CPUs out of deep idle states while it measures, by `/dev/cpu_dma_latency`.
    pub pm_qos: bool,
    /// The user's program and its arguments, for the probe `cycles`. No other probe starts it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub program: Option<Vec<String>>,
}

impl Plan {
    /// The names of the series, in the order of their numbers.
    pub fn series(&self) -> Vec<String> {
        self.probe.series(self)
    }

    /// How many threads measure. [`run`](crate::run()) wants an output for each of them.
    pub fn threads(&self) -> usize {
        self.probe.threads(self)
    }

    /// About how long measuring takes at the least.
    pub fn duration(&self) -> Nanos {
        self.probe.duration()
    }
}
