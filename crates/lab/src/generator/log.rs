// SPDX-License-Identifier: GPL-2.0-or-later
//! The triggers of a session as an experiment: `onset run` of it is a deterministic run with the samples of the
//! session.

use super::Fired;
use sample::Nanos;
use std::fmt::Write;

/// An experiment that raises these triggers, in the guest that `root` says: the keys of an experiment without a
/// `[trigger]`. Nothing where nothing was fired.
///
/// How long the line was high differs between the runs of a session, and an experiment has one `duty`. That changes no
/// sample: the guest's interrupt is raised by the rising edge alone. The log takes the shortest.
pub fn experiment(root: &str, fired: &[Fired]) -> Option<String> {
    let high = fired.iter().map(|fired| fired.high).min()?;
    let gaps = fired.windows(2).map(|pair| pair[1].at - pair[0].at);
    // Of a single trigger `duty` is a share of a millisecond.
    let distance = gaps.min().unwrap_or(Nanos::from_millis(1));
    let duty = (high.0 as f64 / distance.0 as f64).clamp(1e-6, 0.9);
    let mut text = String::from(
        "# The triggers of a session of `onset generator`, by their virtual times. `onset run` of this file gives the\n\
         # samples of the session again.\n",
    );
    let _ = write!(text, "{}\n\n[trigger]\nduty = {duty:.6}\ntimes = [\n", root.trim_end());
    for Fired { at, .. } in fired {
        let _ = writeln!(text, "    \"{}ns\",", at.0);
    }
    text += "]\n";
    Some(text)
}
