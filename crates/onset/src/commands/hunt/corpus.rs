// SPDX-License-Identifier: GPL-2.0-or-later
//! The finds from which a hunt starts: files, and directories of them.

use super::write_json;
use crate::failure::Failure;
use hunt::Recipe;
use lab::followed::Reproducer;
use lab::hunting::{self, Grounds};
use std::path::{Path, PathBuf};
use view::visible::tell;

/// How the name of a find's file ends.
const ENDING: &str = ".find.json";

/// The directory of the finds from which a hunt began, in its own.
const KEPT: &str = "from";

/// A find and its file.
pub type Found = (PathBuf, Reproducer);

/// The finds in these files and directories. A hunt in `directory` that began from finds goes on from the copies that
/// it has of them.
///
/// # Errors
/// If a file is no find, or a directory has none.
pub fn read(from: &[PathBuf], directory: Option<&Path>) -> Result<Vec<Found>, Failure> {
    let kept = directory.map(|directory| directory.join(KEPT)).filter(|kept| kept.is_dir());
    let from = match kept.filter(|_| !from.is_empty()) {
        Some(kept) => {
            tell!("the hunt goes on from the finds that it began with: {}", kept.display());
            vec![kept]
        }
        None => from.to_vec(),
    };
    let mut finds: Vec<Found> = Vec::new();
    for path in &from {
        for file in files(path)? {
            let find = Reproducer::read(&file)?;
            if !finds.iter().any(|(_, known)| *known == find) {
                finds.push((file, find));
            }
        }
    }
    Ok(finds)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path);
    let entries = entries.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let is_find = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(is_find);
    files.sort();
    match files.is_empty() {
        false => Ok(files),
        true => Err(Failure::usage(format!(
            "--from {}: the directory has no file *{ENDING}; name a find, or the directory of a hunt that found something",
            path.display()
        ))),
    }
}

/// Copies the finds into the directory of their hunt, unless it has them: who goes on with the hunt needs the same, and
/// the hunt that found them may go on, too.
///
/// # Errors
/// Of the operating system.
pub fn keep(finds: &[Found], directory: &Path) -> Result<(), Failure> {
    let kept = directory.join(KEPT);
    if kept.is_dir() || finds.is_empty() {
        return Ok(());
    }
    // Whole or not at all: several machines may begin at once.
    let draft = directory.join(format!("{KEPT}.{}", std::process::id()));
    let failed = |e| Failure::unavailable(format!("{}: {e}", kept.display()));
    std::fs::create_dir_all(&draft).map_err(failed)?;
    for (number, (_, find)) in finds.iter().enumerate() {
        write_json(&draft.join(format!("{number:04}{ENDING}")), find)?;
    }
    match std::fs::rename(&draft, &kept) {
        Err(_) if kept.is_dir() => std::fs::remove_dir_all(&draft).map_err(failed),
        renamed => renamed.map_err(failed),
    }
}

/// The finds as trials of a hunt in these guests.
///
/// # Errors
/// If none of them is of one of these guests, with the reasons.
pub fn recipes(grounds: &Grounds, finds: &[Found]) -> Result<Vec<Recipe>, Failure> {
    let (mut recipes, mut others) = (Vec::new(), Vec::new());
    for (file, find) in finds {
        match hunting::recipe(grounds, find) {
            Ok(recipe) => recipes.push(recipe),
            Err(why) => others.push(format!("{}: {why}", file.display())),
        }
    }
    if recipes.is_empty() && !others.is_empty() {
        let others = others.join("\n  ");
        return Err(Failure::usage(format!(
            "--from: no find is of a guest of this hunt, so it cannot start from them:\n  {others}"
        )));
    }
    others.iter().for_each(|why| tell!("! left out: {why}"));
    Ok(recipes)
}
