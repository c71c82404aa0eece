// SPDX-License-Identifier: GPL-2.0-or-later
//! That runs side by side did not answer in the same company, and how to have it so.

use crate::company::{Lacking, Unequal};

/// The note below what is compared.
pub fn company(unequal: &Unequal) -> String {
    let Unequal { lacking, setting, .. } = unequal;
    let mut text = String::from(
        "! Not the same responders answered, and each that answers makes those after it later: do not compare across these\n",
    );
    for Lacking { flavour, responders } in lacking {
        let names: Vec<&str> = responders.iter().map(|name| name.as_str()).collect();
        text += &format!("    {flavour} lacks {}\n", names.join(", "));
    }
    text + &format!("  with the set that all have: onset run EXPERIMENT {setting}\n")
}
