// SPDX-License-Identifier: GPL-2.0-or-later
//! A note for runs side by side in which not the same responders answered, and how to measure with the same ones.

use bundle::company::{Lacking, Unequal};

/// The note below the runs that are compared.
pub fn company(unequal: &Unequal) -> String {
    let Unequal { lacking, setting, .. } = unequal;
    let mut text = String::from(
        "! Not the same responders answered in these runs. Each responder that answers makes the responders after it later: do not compare latencies of these runs with each other\n",
    );
    for Lacking { flavour, responders } in lacking {
        let names: Vec<&str> = responders.iter().map(|name| name.as_str()).collect();
        text += &format!("    {flavour} lacks {}\n", names.join(", "));
    }
    text + &format!(
        "  to measure with the responders that all runs have: onset run EXPERIMENT {setting}\n"
    )
}
