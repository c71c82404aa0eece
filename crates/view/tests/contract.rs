// SPDX-License-Identifier: GPL-2.0-or-later
//! docs/*.schema.json are those of the types that are printed.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_schemas_in_the_documentation_are_those_of_the_types() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let files = view::contract::files();
    let made: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let there = std::fs::read_dir(&docs).expect("the documentation").flatten();
    let there: Vec<String> = there.filter_map(|e| e.file_name().into_string().ok()).collect();
    let there = there.iter().map(String::as_str).filter(|name| name.ends_with(".schema.json"));
    let changed = files.iter().filter(|(name, text)| {
        std::fs::read_to_string(docs.join(name)).ok().as_deref() != Some(text)
    });
    let mut stale: BTreeSet<&str> = changed.map(|(name, _)| name.as_str()).collect();
    stale.extend(there.filter(|name| !made.contains(name)));
    assert!(stale.is_empty(), "docs/ differs from the types in {stale:?}: run `make contract`");
}
