// SPDX-License-Identifier: GPL-2.0-or-later
//! How many instructions the target completed between a trigger and its answer, as a table.

use super::ladder::QUANTILES;
use super::table::{Align, Table};
use bundle::Manifest;
use sample::Insns;

/// The table under its heading; empty for a run of which nobody counted instructions.
pub fn paths(manifest: &Manifest) -> String {
    let paths = manifest.paths.as_deref().unwrap_or_default();
    if paths.is_empty() {
        return String::new();
    }
    let mut columns = vec![("responder", Align::Left), ("min", Align::Right)];
    columns.extend(QUANTILES.map(|q| (q.name(), Align::Right)));
    columns.extend([("max", Align::Right), ("answers", Align::Right)]);
    let mut table = Table::new(&columns).indented(2).sparing(&["min", "p99.9"]);
    for path in paths {
        let number = |n: Option<Insns>| n.map_or_else(|| "–".into(), |n| n.0.to_string());
        let mut row = vec![path.responder.to_string(), number(path.min)];
        row.extend(QUANTILES.map(|q| number(path.quantile(q))));
        row.extend([number(path.max), path.count.to_string()]);
        table.row(row);
    }
    format!("Instructions from trigger to answer\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::examples::{run_id, write_bundle};

    #[test]
    fn each_responder_has_its_instructions_and_a_run_without_any_has_no_table() {
        let store = tempfile::tempdir().expect("a directory");
        let path = write_bundle(store.path(), &run_id(0), 100);
        let mut manifest = Manifest::read(&path).expect("a bundle");
        let text = paths(&manifest);
        let hardirq = text.lines().find(|line| line.contains("hardirq")).expect("its row");
        let of_hardirq = &manifest.paths.as_ref().expect("they were counted")[0];
        let max = of_hardirq.max.expect("a maximum").0.to_string();
        assert!(hardirq.contains(&max) && hardirq.ends_with("100"), "{text}");
        manifest.paths = None;
        assert_eq!(paths(&manifest), "");
    }
}
