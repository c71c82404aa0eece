// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of `onset minimise`.

use super::count::several;
use crate::results::Minimised;
use lab::minimise::Size;

/// How many triggers are left, and how many disturbances if there were any.
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
        "{responder} has a latency of {} ({} ns) with {}; with all of them it has {} ({} ns)\n",
        after.latency_ns,
        after.latency_ns.0,
        kept(*after, *before),
        before.latency_ns,
        before.latency_ns.0
    );
    if after.load != before.load {
        text += &format!(
            "  a hunt found the latency again under {} instead of {}\n",
            after.load, before.load
        );
    }
    let trials = several(*trials, "trial");
    text += &match (minimised.minimal, minimised.replayed) {
        (true, true) => {
            format!("  {trials} trials; without any one of these triggers the latency is shorter\n")
        }
        (true, false) => {
            format!("  interrupted after {trials} trials, before the result was replayed\n")
        }
        (false, _) => {
            format!("  interrupted after {trials} trials: fewer triggers may be enough\n")
        }
    };
    text + &format!("  {}\n", find.display())
}
