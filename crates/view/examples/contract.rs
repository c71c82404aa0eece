// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes docs/*.schema.json (`make contract`).

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    view::contract::files()
        .iter()
        .try_for_each(|(name, text)| std::fs::write(docs.join(name), text))
}
