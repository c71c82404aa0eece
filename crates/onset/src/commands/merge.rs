// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset merge`: brings the results of shards together that were made on machines without a common directory.

use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::shell_words;
use lab::shards::{Merged, WorkFile, merge};
use std::path::Path;
use view::visible::tell;

/// The commands whose work can be divided.
const DIVIDED: [&str; 4] = ["atlas", "census", "hunt", "run"];
/// The options by which they name their directory.
const OPTIONS: [&str; 3] = ["--directory", "--output", "--store"];

pub fn run(arguments: &arguments::Merge) -> Result<Exit, Failure> {
    let arguments::Merge { from, into } = arguments;
    for from in from {
        if !from.is_dir() {
            return Err(Failure::usage(format!("{} is no directory", from.display())));
        }
        let Merged { taken, known, unfinished } = merge(from, into)?;
        tell!("{}: {taken} results are new, {known} were there", from.display());
        if !unfinished.is_empty() {
            tell!("! {}: not ended, and left out: {}", from.display(), unfinished.join(", "));
        }
    }
    for work in works(into) {
        let WorkFile { command, named_by, .. } = &work;
        let place = [named_by.clone(), into.display().to_string()];
        // The file may be anybody's, and the words are to be typed.
        let is_ours = matches!(command.as_slice(), [onset, name, ..] if onset == "onset" && DIVIDED.contains(&&**name));
        if !is_ours || OPTIONS.iter().all(|option| option != named_by) {
            continue;
        }
        let command = shell_words(&[&command[..], &place].concat());
        tell!("what is missing is made, and the whole is shown, by: {command}");
    }
    Ok(Exit::Success)
}

/// The works that are divided in a directory.
fn works(directory: &Path) -> Vec<WorkFile> {
    let shards = lab::shards::place_of(directory);
    let below =
        std::fs::read_dir(&shards).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<_> = [shards].into_iter().chain(below).collect();
    all.sort();
    all.iter().filter_map(|directory| WorkFile::read(directory).ok()).collect()
}
