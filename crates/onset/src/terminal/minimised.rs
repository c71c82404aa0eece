// SPDX-License-Identifier: GPL-2.0-or-later
//! What is left of a find.

use super::count::several;
use crate::commands::{Minimised, Size};

/// So many triggers, and disturbances where there were any.
pub fn kept(of: Size, all: Size) -> String {
    let mut text = format!("{} of {}", of.triggers, several(all.triggers, "trigger"));
    if all.disturbances > 0 {
        let disturbances = several(all.disturbances, "disturbance");
        text += &format!(" and {} of {disturbances}", of.disturbances);
    }
    text
}

/// Its triggers and its latency, before and after.
pub fn minimised(minimised: &Minimised) -> String {
    let Minimised { find, responder, before, after, trials, .. } = minimised;
    let mut text = format!(
        "{responder} is late by {} ({} ns) with {}; with all of them by {} ({} ns)\n",
        after.latency_ns,
        after.latency_ns.0,
        kept(*after, *before),
        before.latency_ns,
        before.latency_ns.0
    );
    if after.load != before.load {
        text += &format!("  found again under {} instead of {}\n", after.load, before.load);
    }
    let trials = several(*trials, "trial");
    text += &match (minimised.minimal, minimised.replayed) {
        (true, true) => {
            format!("  {trials} trials; without any other one of the triggers it is earlier\n")
        }
        (true, false) => format!("  interrupted after {trials} trials, and not replayed\n"),
        (false, _) => format!("  interrupted after {trials} trials: fewer may do\n"),
    };
    text + &format!("  {}\n", find.display())
}
