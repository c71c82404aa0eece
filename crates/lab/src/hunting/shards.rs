// SPDX-License-Identifier: GPL-2.0-or-later
//! Hunts that are divided into shards. A shard is a hunt with a seed of its own. When it has ended, its trials are in a
//! file by their numbers. The whole has the trials of all shards, as if one hunt had made them one after the other.

use super::about::{About, difference};
use super::journal::{BYTES_MAX, Contents, Journal, Say, bytes, contents};
use super::past::JOURNAL;
use crate::Error;
use crate::shards::{Shard, missing};
use confined::Directory;
use hunt::Knowledge;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The directory in which a shard's hunt goes on, in the directory for what concerns shards.
pub fn working_directory(shards: &Path, shard: Shard) -> PathBuf {
    shards.join(shard.file_name())
}

fn file(shard: Shard) -> String {
    format!("{}.jsonl", shard.file_name())
}

/// Those shards whose trials are not all there.
pub fn missing_shards(shards: &Path, all: &[Shard]) -> Vec<Shard> {
    missing(shards, all, file)
}

/// The last line of a shard's file. Without it the file was cut off on its way from another machine.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    /// How many trials there are.
    trials: u64,
}

/// Keeps the trials of a shard that has ended, and removes the directory in which its hunt went on.
///
/// # Errors
/// If its journal cannot be read, or the file cannot be written.
pub fn keep_shard(shards: &Path, shard: Shard, say: Say) -> Result<(), Error> {
    let working = working_directory(shards, shard);
    let (about, results) = Journal::read(&working.join(JOURNAL), say)?;
    let failed = |e| Error::File(format!("{}: {e}", shards.display()));
    let open = Directory::open(shards).map_err(failed)?;
    // By number and not as they ended: a shard that is made twice has the same bytes.
    let end = serde_json::to_string(&End { trials: results.len() as u64 }).expect("plain data");
    let bytes = [&bytes(&about, results.values())[..], end.as_bytes(), b"\n"].concat();
    open.replace(file(shard), &bytes).map_err(failed)?;
    if let Err(e) = open.remove_all(shard.file_name()) {
        say(&format!("! {}: it is of no use any more, and stays: {e}", working.display()));
    }
    Ok(())
}

/// The trials of a shard.
fn read(path: &Path) -> Result<Contents, Error> {
    let refused = |why: String| {
        Error::File(format!("{}: {why}; remove it, and the shard is made again", path.display()))
    };
    let bytes = confined::read(path, BYTES_MAX).map_err(|e| refused(e.to_string()))?;
    let last = bytes.iter().rev().skip(1).position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (trials, end) = bytes.split_at(bytes.len().saturating_sub(last + 1));
    let end: Result<End, _> = serde_json::from_slice(end);
    let contents = contents(trials).map_err(&refused)?;
    match end {
        Ok(End { trials }) if trials == contents.1.len() as u64 => Ok(contents),
        _ => Err(refused("it was cut off".into())),
    }
}

/// Puts the trials of all shards into one journal in `directory`, in the order of the shards. Returns what they know
/// together. `about` is what the whole is about.
///
/// # Errors
/// If a shard is missing, damaged or of another hunt. If the journal cannot be written.
pub fn whole(
    directory: &Path,
    (shards, all): (&Path, &[Shard]),
    about: &About,
) -> Result<Knowledge, Error> {
    let mut known = Knowledge::default();
    let mut results = Vec::new();
    for shard in all {
        let path = shards.join(file(*shard));
        let (its, trials) = read(&path)?;
        let asked = About { seed: shard.seed(about.seed), shards: None, ..about.clone() };
        if let Some(difference) = difference(&its, &asked) {
            return Err(Error::Unfit(format!(
                "{} is of another hunt ({difference}); choose another directory, or remove the file",
                path.display()
            )));
        }
        for mut result in trials.into_values() {
            result.number = results.len() as u64;
            known.take(&result);
            results.push(result);
        }
    }
    let failed = |e| Error::File(format!("{}: {e}", directory.display()));
    Directory::open(directory)
        .and_then(|open| open.replace(JOURNAL, &bytes(about, results.iter())))
        .map_err(failed)?;
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::super::tests::about;
    use super::*;
    use hunt::Hunt;
    use hunt::examples::{hunt, result};

    #[test]
    fn the_whole_has_the_trials_of_all_shards_in_their_order() {
        let root = tempfile::tempdir().unwrap();
        let shards = root.path().join("shards");
        let all = Shard::all(3).unwrap();
        let whole_about = About { shards: Some(3), ..about(5) };
        // They end in any order, and so do their trials.
        for shard in [all[2], all[0], all[1]] {
            let seed = shard.seed(5);
            let working = working_directory(&shards, shard);
            std::fs::create_dir_all(&working).unwrap();
            let mut journal = Journal::open(&working.join(JOURNAL), &about(seed), &|_| ()).unwrap();
            let round = Hunt { seed, ..hunt(1, 2) }.round(0, &Knowledge::default());
            round.iter().rev().for_each(|trial| journal.append(&result(trial)).unwrap());
            assert!(missing_shards(&shards, &all).contains(&shard));
            keep_shard(&shards, shard, &|_| ()).unwrap();
            assert!(!working.exists());
        }
        assert!(missing_shards(&shards, &all).is_empty());
        let put = || whole(root.path(), (&shards, &all), &whole_about);
        let known = put().unwrap();
        let (read, trials) = Journal::read(&root.path().join(JOURNAL), &|_| ()).unwrap();
        assert_eq!((read, trials.len() as u64), (whole_about.clone(), known.trials));
        assert_eq!(known.trials, 6);
        let numbers: Vec<u64> = trials.values().map(|result| result.number).collect();
        assert_eq!(numbers, (0..6).collect::<Vec<u64>>());
        let once = std::fs::read(root.path().join(JOURNAL)).unwrap();
        put().unwrap();
        assert_eq!(std::fs::read(root.path().join(JOURNAL)).unwrap(), once);
        // Another seed is another hunt.
        let other = About { seed: 6, ..whole_about.clone() };
        let why = whole(root.path(), (&shards, &all), &other).unwrap_err().to_string();
        assert!(why.contains("its seed is 15, not 18"), "{why}");
        // A file that lost its end on its way, at the end of a line or within it.
        let path = shards.join("2-of-3.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for cut in
            [lines[..lines.len() - 1].concat(), lines[..2].concat(), text[..text.len() - 5].into()]
        {
            std::fs::write(&path, cut).unwrap();
            let why = put().unwrap_err().to_string();
            assert!(why.contains("2-of-3.jsonl") && why.contains("made again"), "{why}");
        }
    }
}
