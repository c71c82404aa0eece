// SPDX-License-Identifier: GPL-2.0-or-later
//! Brings the results of shards together that were made on machines without a common directory. A result is a file or
//! a directory of files that appears whole. One that is there already counts once; one that differs is refused, since
//! shards that are made twice are equal.

use super::work_file::{SHARDS, WORK_FILE, WorkFile, hidden};
use crate::Error;
use bundle::Bundle;
use bundle::store::Store;
use confined::Directory;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A bundle's file that says what it is.
const MANIFEST: &str = "manifest.json";
/// The directories of a work that hold a file for each result: those of an atlas.
const STRESSORS: &str = "stressors";
/// The file that says what an atlas is about.
const ATLAS_ABOUT: &str = "about.json";

/// What came of bringing results together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The results that were not there before.
    pub taken: usize,
    /// The results that were there.
    pub known: usize,
    /// The names of shards that have not ended, and so have no result.
    pub unfinished: Vec<String>,
}

/// Adds the results in the directory `from` to those in the directory `into`, which is made if there is none.
///
/// # Errors
/// If the two are of different works, or made by different parts. If a result is another in each: then what was added
/// before stays. If a file cannot be read or written.
pub fn merge(from: &Path, into: &Path, merged: &mut Merged) -> Result<(), Error> {
    let failed = |e: io::Error| Error::File(format!("{}: {e}", from.display()));
    std::fs::create_dir_all(into).map_err(failed)?;
    let [theirs, ours] = [from, into].map(Directory::open);
    let (theirs, ours) = (theirs.map_err(failed)?, ours.map_err(failed)?);
    if theirs.is_same(&ours) {
        return Err(Error::Unfit(format!("{} is to be merged into itself", from.display())));
    }
    let names = sorted_names(&theirs).map_err(failed)?;
    for name in &names {
        let is_bundle = theirs.directory(name).is_ok_and(|there| there.has(MANIFEST));
        if is_bundle {
            take_bundle(&theirs, &ours, name, merged)?;
        }
    }
    if let Ok(shards) = theirs.directory(SHARDS) {
        take_shards(&shards, into, merged)?;
    }
    if let Ok(stressors) = theirs.directory(STRESSORS) {
        take(&theirs, &ours, ATLAS_ABOUT, &mut Merged::default())?;
        let into = made(&ours, STRESSORS).map_err(failed)?;
        for name in sorted_names(&stressors).map_err(failed)? {
            take(&stressors, &into, &name, merged)?;
        }
    }
    Ok(())
}

/// Takes the results of a divided work, and those of the works below it.
fn take_shards(theirs: &Directory, into: &Path, merged: &mut Merged) -> Result<(), Error> {
    let failed = |e: io::Error| Error::File(format!("{}: {e}", theirs.path().display()));
    let into = hidden(into);
    let agree = |at: &Path, into: &Path| match WorkFile::read(at) {
        Ok(work) => work.agree(into),
        Err(Error::Unfit(_)) => Ok(()),
        Err(e) => Err(e),
    };
    std::fs::create_dir_all(&into).map_err(failed)?;
    agree(theirs.path(), &into)?;
    let ours = Directory::open(&into).map_err(failed)?;
    for name in sorted_names(theirs).map_err(failed)? {
        match theirs.directory(&name) {
            Ok(work) if work.has(WORK_FILE) => agree(work.path(), &into.join(&name))?,
            // A shard that has ended is a file.
            Ok(_) if name.contains("-of-") => merged.unfinished.push(name),
            Err(_) if name.contains("-of-") => take(theirs, &ours, &name, merged)?,
            _ => {}
        }
    }
    Ok(())
}

/// Takes a bundle, unless the store has one of the same run with the same samples.
fn take_bundle(
    theirs: &Directory,
    ours: &Directory,
    name: &str,
    merged: &mut Merged,
) -> Result<(), Error> {
    let of = |bundle: &Bundle| {
        let manifest = bundle.manifest();
        let about = &manifest.about;
        let asked =
            (about.flavour.clone(), about.load.clone(), about.seed, about.experiment.clone());
        (manifest.samples.blake3.clone(), asked, manifest.complete)
    };
    let theirs_is = of(&Bundle::open(&theirs.at(name))?);
    let runs = Store::at(ours.path()).list()?;
    let known = runs.into_iter().filter_map(|entry| {
        Bundle::open(&ours.path().join(entry.run.to_string())).ok().map(|bundle| of(&bundle))
    });
    if known.into_iter().any(|ours_is| ours_is == theirs_is) {
        merged.known += 1;
        return Ok(());
    }
    take(theirs, ours, name, merged)
}

/// Takes one result: a file, or a directory of files.
fn take(
    theirs: &Directory,
    ours: &Directory,
    name: &str,
    merged: &mut Merged,
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::File(format!("{}: {e}", theirs.at(name).display()));
    if ours.has(name) {
        if !is_equal(theirs, ours, name).map_err(failed)? {
            return Err(Error::MadeOtherwise(format!(
                "{} and {} differ, so they were not made by the same parts; keep the one that you trust, and remove the other",
                theirs.at(name).display(),
                ours.at(name).display()
            )));
        }
        merged.known += 1;
        return Ok(());
    }
    let unfinished = format!(".merging-{name}");
    ours.remove_all(&unfinished).or_else(absent).map_err(failed)?;
    copy(theirs, ours, name, &unfinished).map_err(failed)?;
    ours.rename(&unfinished, name).and_then(|()| ours.sync()).map_err(failed)?;
    merged.taken += 1;
    Ok(())
}

fn copy(theirs: &Directory, ours: &Directory, name: &str, to: &str) -> io::Result<()> {
    let one = |from: &Directory, name: &str, into: &Directory, to: &str| {
        let mut made = into.create(to)?;
        io::copy(&mut from.file(name)?, &mut made)?;
        made.sync_all()
    };
    let Ok(directory) = theirs.directory(name) else { return one(theirs, name, ours, to) };
    let made = ours.make_directory(to)?;
    for file in sorted_names(&directory)? {
        one(&directory, &file, &made, &file)?;
    }
    made.sync()
}

/// Whether a result is the same in both. Files are compared by their bytes.
fn is_equal(theirs: &Directory, ours: &Directory, name: &str) -> io::Result<bool> {
    let same = |a: File, b: File| -> io::Result<bool> {
        let (mut a, mut b) = (io::BufReader::new(a).bytes(), io::BufReader::new(b).bytes());
        loop {
            match (a.next().transpose()?, b.next().transpose()?) {
                (None, None) => return Ok(true),
                (a, b) if a != b => return Ok(false),
                _ => {}
            }
        }
    };
    let (Ok(a), Ok(b)) = (theirs.directory(name), ours.directory(name)) else {
        return same(theirs.file(name)?, ours.file(name)?);
    };
    let [files, others] = [sorted_names(&a)?, sorted_names(&b)?];
    if files != others {
        return Ok(false);
    }
    for file in files {
        if !same(a.file(&file)?, b.file(&file)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names in a directory, but for locks and what is being written.
fn sorted_names(directory: &Directory) -> io::Result<BTreeSet<String>> {
    let names = directory.names()?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

fn made(parent: &Directory, name: &str) -> io::Result<Directory> {
    match parent.directory(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => parent.make_directory(name),
        other => other,
    }
}

fn absent(e: io::Error) -> io::Result<()> {
    if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn merged(from: &Path, into: &Path) -> Result<(usize, usize, Vec<String>), String> {
        let mut merged = Merged::default();
        merge(from, into, &mut merged).map_err(|e| e.to_string())?;
        Ok((merged.taken, merged.known, merged.unfinished))
    }

    #[test]
    fn each_result_counts_once_and_what_has_not_ended_is_named() {
        let root = tempfile::tempdir().unwrap();
        let [a, b, all] = ["a", "b", "all"].map(|name| root.path().join(name));
        write(
            &a,
            &[("shards/1-of-4.json", "1"), ("shards/2-of-4.json", "2"), ("shards/2.log", "x")],
        );
        write(&b, &[("shards/2-of-4.json", "2"), ("shards/3-of-4.jsonl", "3")]);
        write(&b, &[("shards/4-of-4/trials.jsonl", "4")]);
        assert_eq!(merged(&a, &all), Ok((2, 0, vec![])));
        assert_eq!(merged(&b, &all), Ok((1, 1, vec!["4-of-4".into()])));
        assert_eq!(merged(&b, &all), Ok((0, 2, vec!["4-of-4".into()])));
        let read = |name: &str| fs::read_to_string(all.join("shards").join(name)).ok();
        assert_eq!(read("1-of-4.json").as_deref(), Some("1"));
        assert_eq!(read("3-of-4.jsonl").as_deref(), Some("3"));
        assert_eq!((read("2.log"), read("4-of-4/trials.jsonl")), (None, None));
    }

    #[test]
    fn a_result_that_differs_is_refused_and_both_stay() {
        let root = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| root.path().join(name));
        write(&a, &[("stressors/mmap.json", "1"), ("about.json", "x")]);
        write(
            &b,
            &[("stressors/mmap.json", "2"), ("stressors/fork.json", "3"), ("about.json", "x")],
        );
        let why = merged(&a, &b).unwrap_err();
        assert!(why.contains("mmap.json") && why.contains("differ"), "{why}");
        assert_eq!(fs::read_to_string(b.join("stressors/mmap.json")).unwrap(), "2");
        write(&a, &[("stressors/mmap.json", "2")]);
        assert_eq!(merged(&b, &a), Ok((1, 1, vec![])));
        write(&a, &[("about.json", "y")]);
        assert!(merged(&a, &b).unwrap_err().contains("about.json"));
        assert!(merged(&a, &a).unwrap_err().contains("itself"));
    }

    #[test]
    fn links_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let [a, all] = ["a", "all"].map(|name| root.path().join(name));
        write(&a, &[("secret", "s")]);
        fs::create_dir(a.join("shards")).unwrap();
        std::os::unix::fs::symlink("../secret", a.join("shards/1-of-1.json")).unwrap();
        merged(&a, &all).unwrap_err();
        assert!(!all.join("shards/1-of-1.json").exists());
    }
}
