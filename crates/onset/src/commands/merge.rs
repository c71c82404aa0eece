// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset merge`: brings the results of shards together that were made on machines without a common directory.

use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::shell_word;
use lab::shards::{Merged, WorkFile, merge};
use std::path::Path;
use view::visible::tell;

pub fn run(arguments: &arguments::Merge) -> Result<Exit, Failure> {
    let arguments::Merge { from, into } = arguments;
    for from in from {
        if !from.is_dir() {
            return Err(Failure::usage(format!("{} is no directory", from.display())));
        }
        let mut merged = Merged::default();
        merge(from, into, &mut merged)?;
        let Merged { taken, known, unfinished } = merged;
        tell!("{}: {taken} results are new, {known} were there", from.display());
        if !unfinished.is_empty() {
            tell!("! {}: not ended, and left out: {}", from.display(), unfinished.join(", "));
        }
    }
    for work in works(into) {
        let WorkFile { command, named_by, .. } = &work;
        let place = [named_by.clone(), into.display().to_string()];
        let words = command.iter().chain(&place).map(|word| shell_word(Path::new(word)));
        let command = words.collect::<Vec<_>>().join(" ");
        tell!("what is missing is made, and the whole is shown, by: {command}");
    }
    Ok(Exit::Success)
}

/// The works that are divided in a directory.
fn works(directory: &Path) -> Vec<WorkFile> {
    let shards = lab::shards::hidden(directory);
    let below =
        std::fs::read_dir(&shards).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<_> = [shards].into_iter().chain(below).collect();
    all.sort();
    all.iter().filter_map(|directory| WorkFile::read(directory).ok()).collect()
}
