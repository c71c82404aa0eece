// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset report`: writes a self-contained HTML page.

use super::{SystemClock, bench, open, print};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use bundle::Bundle;
use lab::followed::{Explanations, Inside, Named, Reproducer, explain};
use lab::hunting::{PastHunt, find_file};
use lab::matrix::Issuer;
use rig::Bench;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use view::report::{self, Hunted, Material, ReportError};
use view::results::Proof;
use view::terminal::Shown;
use view::visible::{tell, tell_line};

/// The last words of a look inside: when it succeeded, and when it did not.
const LOOKED: [&str; 2] = ["looked into", "not looked into"];
/// How many symbolic links are followed: as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

pub fn run(names: &[String], look: bool, output: &Path, store: &Path) -> Result<Exit, Failure> {
    let (hunts, runs): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| PastHunt::is_in(Path::new(name)));
    let bundles = runs.iter().map(|r| open(r, store)).collect::<Result<Vec<_>, _>>()?;
    let mut hunts = hunts.iter().map(|h| hunted(h)).collect::<Result<Vec<_>, _>>()?;
    let insides = if look { look_inside(&bundles, &mut hunts)? } else { BTreeMap::new() };
    let material = Material { bundles: &bundles, insides: &insides, hunts: &hunts, proof: None };
    print(&format!("{}\n", write_page(&material, output)?.display()))?;
    let exceeded = exceeded(&insides);
    exceeded.iter().for_each(|line| tell!("{line}"));
    Ok(if exceeded.is_empty() { Exit::Success } else { Exit::Exceeded })
}

/// Prints a line for each answer that exceeds the bound of its run.
fn exceeded(insides: &BTreeMap<String, Inside>) -> Vec<String> {
    let of_run = |(run, inside): (&String, &Inside)| {
        inside.exceeded.iter().map(|held| format!("{run}: {held}")).collect::<Vec<_>>()
    };
    insides.iter().flat_map(of_run).collect()
}

/// Writes the report of `bundles` and returns its path.
pub fn write(bundles: &[Bundle], output: &Path) -> Result<PathBuf, Failure> {
    let insides = &BTreeMap::new();
    write_page(&Material { bundles, insides, hunts: &[], proof: None }, output)
}

/// Writes the report of a proof and returns its path.
pub fn write_proof(proof: &Proof, output: &Path) -> Result<PathBuf, Failure> {
    let insides = &BTreeMap::new();
    write_page(&Material { bundles: &[], insides, hunts: &[], proof: Some(proof) }, output)
}

fn write_page(material: &Material, output: &Path) -> Result<PathBuf, Failure> {
    let viewer = Installation::find()?.viewer()?;
    let page = report::page(output, &viewer, material, (SystemClock.now(), &SystemClock.tool()))
        .map_err(|e| match e {
            ReportError::Bundle(e) => e.into(),
            ReportError::Clocks(..) | ReportError::Nothing => Failure::usage(e),
            ReportError::Viewer => Failure::unavailable(e),
        })?;
    write_chosen(output, page.as_bytes())?;
    Ok(output.canonicalize().unwrap_or_else(|_| output.into()))
}

fn hunted(name: &str) -> Result<Hunted, Failure> {
    let directory = PathBuf::from(name);
    let kept = PastHunt::read(&directory, &tell_line)?;
    let finds = kept.about.responders.iter().filter_map(|responder| {
        let path = directory.join(find_file(responder, 0));
        path.is_file().then(|| (responder.clone(), path))
    });
    let finds = finds.collect();
    Ok(Hunted { directory, kept, finds, explained: BTreeMap::new() })
}

/// Looks into all runs and finds that onset can replay. Tells the user of those that onset cannot replay; the report
/// has these as without `--inside`.
fn look_inside(
    bundles: &[Bundle],
    hunts: &mut [Hunted],
) -> Result<BTreeMap<String, Inside>, Failure> {
    let bench = bench()?;
    let mut insides = BTreeMap::new();
    for bundle in bundles {
        let about = &bundle.manifest().about;
        let run = bundle.manifest().run.as_str();
        if about.target != "rig" || about.experiment.trigger.is_none() {
            tell!(
                "{run}: not looked into, since onset can only replay runs of [trigger] in the rig"
            );
            continue;
        }
        let title = format!("{} · {}", about.flavour, about.load);
        let seen =
            Shown::during(title, LOOKED, |progress| Inside::of_run(&bench, bundle, progress))?;
        insides.insert(run.to_owned(), seen);
    }
    for hunted in hunts {
        hunted.explained = explain_finds(&bench, hunted)?;
    }
    Ok(insides)
}

fn explain_finds(
    bench: &Bench,
    hunted: &Hunted,
) -> Result<BTreeMap<String, Explanations>, Failure> {
    let mut explained = BTreeMap::new();
    for (responder, path) in &hunted.finds {
        let reproducer = Reproducer::read(path)?;
        let worst = hunted.kept.known.worst(responder);
        if worst.is_none_or(|worst| worst.answer.latency_ns != reproducer.answer.latency_ns) {
            let path = path.display();
            tell!(
                "{path}: not explained, since the hunt went on after it wrote this find; let the hunt end, then explain the find"
            );
            continue;
        }
        let find = Named::Find(Box::new(reproducer));
        let title = format!("{} · {responder}", find.title());
        let samples = find.samples(None, None)?;
        let explanations =
            Shown::during(title, LOOKED, |progress| explain(bench, &find, &samples, progress))?;
        explained.insert(responder.clone(), explanations);
    }
    Ok(explained)
}

/// Checks that a file that the user chose can be written: its directory exists.
pub(super) fn check_chosen(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !directory.is_dir() {
        let why =
            if path.is_dir() { "is a directory" } else { "is in a directory that does not exist" };
        return Err(Failure::usage(format!("{} {why}; choose another file", path.display())));
    }
    Ok(())
}

/// Writes a file that the user chose.
pub(super) fn write_chosen(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|e| {
        let path = path.display();
        Failure::unavailable(format!("cannot write {path}: {e}; choose another file"))
    })
}

/// Writes the whole file or nothing of it. A link stays, and the file to which it leads is written. Something else than
/// a regular file (a device, a pipe) is written directly.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = &end_of_links(path)?;
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    let mut file = file.permissions(permissions).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The path at the end of all links. There need not be a file.
fn end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        // /dev/stdout leads to a link of /proc, which can be a pipe that has no path.
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Ok(path);
        }
        match path.read_link() {
            // A relative target begins at the directory of the link.
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::followed::Held;
    use sample::Nanos;
    use trace::{ReaderLosses, WindowsReport};

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("there")).unwrap();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("there/second", at("first")).unwrap();
        link("page", at("there/second")).unwrap();
        // First where nothing is yet, then over what is there.
        for text in ["one", "another"] {
            write_whole(&at("first"), text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(at("there/page")).unwrap(), text);
            assert!(at("first").is_symlink() && at("there/second").is_symlink());
        }
        link("round", at("round")).unwrap();
        assert!(write_whole(&at("round"), b"").is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_written_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        let read = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        write_whole(&link, b"a page").unwrap();
        assert_eq!(read.join().unwrap(), "a page");
        let kind = |path: &Path| path.symlink_metadata().unwrap().file_type();
        use std::os::unix::fs::FileTypeExt;
        assert!(kind(&pipe).is_fifo() && kind(&link).is_symlink());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "and no debris");
        assert!(write_whole(directory.path(), b"").is_err());
    }

    fn inside(exceeded: Vec<Held>) -> Inside {
        Inside {
            missing: Vec::new(),
            losses: ReaderLosses::default(),
            virtual_ns: Nanos(0),
            triggers: 0,
            totals: BTreeMap::new(),
            windows: WindowsReport { windows: Vec::new(), cut: BTreeMap::new() },
            accounts: Vec::new(),
            worst: Vec::new(),
            bound: None,
            scheduling: BTreeMap::new(),
            exceeded,
        }
    }

    #[test]
    fn each_answer_that_exceeds_the_bound_is_told_with_its_run_and_its_trigger() {
        let held = |trigger| Held {
            responder: "task",
            trigger,
            at_ns: Nanos(0),
            scheduling_ns: Nanos(7_001),
            latency_ns: Nanos(9_000),
        };
        let insides = [("a", vec![]), ("b", vec![held(17), held(18)])];
        let insides = insides.map(|(run, held)| (run.to_owned(), inside(held))).into();
        let lines = exceeded(&insides);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("b: task was scheduled 7001 ns after trigger 17, which is"));
        assert!(lines[1].contains("trigger 18"));
    }
}
