// SPDX-License-Identifier: GPL-2.0-or-later
//! Brings the results of shards together that were made on machines without a common directory. A result is a file or
//! a directory of files that appears whole. One that is there already counts once; one that differs is refused, since
//! shards that are made twice are equal.

use super::work_file::{SHARDS, WORK_FILE, WorkFile, place_of};
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
/// If `from` has no results, or if the two are of different works, or made by different parts. If a result is another
/// in each: then what was added before stays. If a file cannot be read or written.
pub fn merge(from: &Path, into: &Path) -> Result<Merged, Error> {
    let open = |path: &Path| Directory::open(path).map_err(|e| failed(path, &e));
    let was_there = into.exists();
    std::fs::create_dir_all(into).map_err(|e| failed(into, &e))?;
    let (theirs, ours) = (open(from)?, open(into)?);
    if theirs.is_same(&ours) {
        return Err(Error::Unfit(format!("{} is to be merged into itself", from.display())));
    }
    let mut merged = Merged::default();
    let is_bundle = |name: &String| theirs.directory(name).is_ok_and(|it| it.has(MANIFEST));
    let bundles: Vec<String> = sorted_names(&theirs)?.into_iter().filter(is_bundle).collect();
    take_bundles(&theirs, &ours, &bundles, &mut merged)?;
    if let Ok(shards) = theirs.directory(SHARDS) {
        take_shards(&shards, into, &mut merged)?;
    }
    if let Ok(stressors) = theirs.directory(STRESSORS) {
        take(&theirs, &ours, ATLAS_ABOUT, &mut Merged::default())?;
        let into = made(&ours, STRESSORS).map_err(|e| failed(&ours.at(STRESSORS), &e))?;
        for name in sorted_names(&stressors)? {
            take(&stressors, &into, &name, &mut merged)?;
        }
    }
    if merged != Merged::default() {
        return Ok(merged);
    }
    if !was_there {
        let _ = std::fs::remove_dir(into);
    }
    Err(Error::Unfit(format!(
        "{} has no results: give the directory of a hunt, a census or an atlas, or a store",
        from.display()
    )))
}

fn failed(path: &Path, e: &io::Error) -> Error {
    Error::File(format!("{}: {e}", path.display()))
}

/// Takes the results of a divided work, and those of the works below it.
fn take_shards(theirs: &Directory, into: &Path, merged: &mut Merged) -> Result<(), Error> {
    let into = place_of(into);
    let agree = |at: &Path, into: &Path| match WorkFile::read(at) {
        Ok(work) => work.agree(into).map(|_| ()),
        Err(Error::Unfit(_)) => Ok(()),
        Err(e) => Err(e),
    };
    std::fs::create_dir_all(&into).map_err(|e| failed(&into, &e))?;
    agree(theirs.path(), &into)?;
    let ours = Directory::open(&into).map_err(|e| failed(&into, &e))?;
    let names = sorted_names(theirs)?;
    for name in &names {
        match theirs.directory(name) {
            Ok(work) if work.has(WORK_FILE) => agree(work.path(), &into.join(name))?,
            // A shard that has ended is a file. Its directory may be left.
            Ok(_) if name.contains("-of-") && !names.contains(&format!("{name}.jsonl")) => {
                merged.unfinished.push(name.clone());
            }
            Err(_) if name.contains("-of-") => take(theirs, &ours, name, merged)?,
            _ => {}
        }
    }
    Ok(())
}

/// Takes those bundles of whose run and samples the store has none.
fn take_bundles(
    theirs: &Directory,
    ours: &Directory,
    names: &[String],
    merged: &mut Merged,
) -> Result<(), Error> {
    if names.is_empty() {
        return Ok(());
    }
    let of = |path: &Path| -> Result<_, Error> {
        let bundle = Bundle::open(path)?;
        let manifest = bundle.manifest();
        let about = &manifest.about;
        let asked =
            (about.flavour.clone(), about.load.clone(), about.seed, about.experiment.clone());
        Ok((manifest.samples.blake3.clone(), asked, manifest.complete))
    };
    let runs = Store::at(ours.path()).list()?.into_iter();
    let mut known: Vec<_> =
        runs.filter_map(|entry| of(&ours.at(entry.run.to_string())).ok()).collect();
    for name in names {
        let one = of(&theirs.at(name))?;
        if known.contains(&one) {
            merged.known += 1;
            continue;
        }
        take(theirs, ours, name, merged)?;
        known.push(one);
    }
    Ok(())
}

/// Takes one result: a file, or a directory.
fn take(
    theirs: &Directory,
    ours: &Directory,
    name: &str,
    merged: &mut Merged,
) -> Result<(), Error> {
    let failed = |e: io::Error| {
        let (from, into) = (theirs.at(name), ours.at(name));
        Error::File(format!("{} to {}: {e}", from.display(), into.display()))
    };
    if ours.has(name) {
        if !is_equal(theirs, ours, name, DEEP).map_err(failed)? {
            return Err(Error::MadeOtherwise(format!(
                "{} and {} differ: they were made by other parts, or a budget of time ended them at other trials; keep one, and remove the other",
                theirs.at(name).display(),
                ours.at(name).display()
            )));
        }
        merged.known += 1;
        return Ok(());
    }
    let unfinished = format!(".merging-{name}");
    ours.remove_all(&unfinished).or_else(absent).map_err(failed)?;
    let copied = copy(theirs, name, ours, &unfinished, DEEP)
        .and_then(|()| ours.rename(&unfinished, name))
        .and_then(|()| ours.sync());
    if copied.is_err() {
        let _ = ours.remove_all(&unfinished);
    }
    copied.map_err(failed)?;
    merged.taken += 1;
    Ok(())
}

/// How deep a result may be: a bundle has a directory of histograms.
const DEEP: u32 = 3;

fn copy(theirs: &Directory, name: &str, ours: &Directory, to: &str, deep: u32) -> io::Result<()> {
    let Ok(directory) = theirs.directory(name) else {
        let mut from = theirs.file(name)?;
        let mut made = ours.create(to)?;
        io::copy(&mut from, &mut made)?;
        return made.sync_all();
    };
    let deep = deep.checked_sub(1).ok_or_else(|| io::Error::other("it is too deep"))?;
    let made = ours.make_directory(to)?;
    for name in names(&directory)? {
        copy(&directory, &name, &made, &name, deep)?;
    }
    made.sync()
}

/// Whether a result is the same in both. Files are compared by their bytes.
fn is_equal(theirs: &Directory, ours: &Directory, name: &str, deep: u32) -> io::Result<bool> {
    let (Ok(a), Ok(b)) = (theirs.directory(name), ours.directory(name)) else {
        return same(theirs.file(name)?, ours.file(name)?);
    };
    let deep = deep.checked_sub(1).ok_or_else(|| io::Error::other("it is too deep"))?;
    let [all, others] = [names(&a)?, names(&b)?];
    if all != others {
        return Ok(false);
    }
    for name in all {
        if !is_equal(&a, &b, &name, deep)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn same(a: File, b: File) -> io::Result<bool> {
    let (mut a, mut b) = (io::BufReader::new(a).bytes(), io::BufReader::new(b).bytes());
    loop {
        match (a.next().transpose()?, b.next().transpose()?) {
            (None, None) => return Ok(true),
            (a, b) if a != b => return Ok(false),
            _ => {}
        }
    }
}

/// The names in a directory, but for locks and what is being written.
fn names(directory: &Directory) -> io::Result<BTreeSet<String>> {
    let names = directory.names()?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

fn sorted_names(directory: &Directory) -> Result<BTreeSet<String>, Error> {
    names(directory).map_err(|e| failed(directory.path(), &e))
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
        let Merged { taken, known, unfinished } = merge(from, into).map_err(|e| e.to_string())?;
        Ok((taken, known, unfinished))
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
        assert!(merged(&a.join("shards"), &all).unwrap_err().contains("has no results"));
    }
}
