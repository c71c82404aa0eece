// SPDX-License-Identifier: GPL-2.0-or-later
//! What is left of a find.

use crate::commands::Minimised;

/// Its triggers and its latency, before and after.
pub fn minimised(minimised: &Minimised) -> String {
    let Minimised { find, responder, before, after, trials, .. } = minimised;
    let mut text = format!(
        "{responder} is late by {} ({} ns) with {} of {} triggers; with all of them by {} ({} ns)\n",
        after.latency_ns,
        after.latency_ns.0,
        after.triggers,
        before.triggers,
        before.latency_ns,
        before.latency_ns.0
    );
    text += &if minimised.minimal {
        format!("  {trials} trials; without any other one of them it is earlier\n")
    } else {
        format!("  interrupted after {trials} trials: fewer may do\n")
    };
    text + &format!("  {}\n", find.display())
}
