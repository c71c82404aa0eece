// SPDX-License-Identifier: GPL-2.0-or-later
//! The subject of another run: a guest, and what is measured in it. They come from an experiment or from a bundle.

use super::in_rig;
use crate::Error;
use crate::target::Rig;
use bundle::{Bundle, Manifest};
use experiment::{Cell, Experiment, Guest as GuestSection, Instrument, Load};
use rig::{Bench, Generator, Guest, Stimulus};
use sample::ResponderSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A guest, and what is done to it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The guest.
    pub guest: Guest,
    /// The triggers, or the probe.
    pub stimulus: Stimulus,
    /// The parts that it was run with before. `None` if it was not run before.
    pub made_with: Option<MadeWith>,
}

impl Subject {
    /// The subject of a cell of an experiment for which `rig` was made.
    pub fn of_cell(rig: &Rig, experiment: &Experiment, cell: Cell) -> Subject {
        let (guest, stimulus) = (rig.guest(experiment, cell), rig.stimulus(experiment, cell));
        Subject { guest, stimulus, made_with: None }
    }

    /// The triggers. `None` if a probe measures or the guest works, since nobody triggers these.
    pub fn generator(&self) -> Option<&Generator> {
        match &self.stimulus {
            Stimulus::Triggers(generator) => Some(generator),
            Stimulus::Probe(_) | Stimulus::Work(_) => None,
        }
    }

    /// The triggers, to be changed.
    pub fn generator_mut(&mut self) -> Option<&mut Generator> {
        match &mut self.stimulus {
            Stimulus::Triggers(generator) => Some(generator),
            Stimulus::Probe(_) | Stimulus::Work(_) => None,
        }
    }

    /// Leaves the driver out if none can be built for the kernel. Its triggers are then interrupts that nobody answers.
    /// Everything that the kernel does by itself is there all the same. Returns what is missing then.
    pub fn spare_driver(&mut self) -> Option<String> {
        if self.guest.kernel.record.headers.is_some() {
            return None;
        }
        let generator = self.generator_mut()?;
        generator.responders = ResponderSet::default();
        generator.disturbances.clear();
        let contents = &mut self.guest.contents;
        (contents.driver, contents.task) = (None, None);
        Some("responders: the kernel has no headers, so that the driver cannot be built".into())
    }

    /// The subject of a bundle's run.
    ///
    /// # Errors
    /// If the run is of a machine, or was killed. If several guests measured it. If this version does not read its
    /// experiment. If its kernel is not in the cache.
    pub fn of_bundle(bench: &Bench, bundle: &Bundle) -> Result<Subject, Error> {
        let manifest = bundle.manifest();
        let experiment = experiment(bench, manifest)?;
        let made_with = MadeWith::of(manifest).ok_or_else(|| {
            let run = &manifest.run;
            Error::Unfit(format!(
                "{run}: it was killed before it was known what it ran on; take another run"
            ))
        })?;
        let rig = Rig::new(bench.clone(), &experiment)?;
        let cell = cell(&experiment, manifest)?;
        if rig.measures_in_parts(&experiment, cell) {
            return Err(Error::Unfit(format!(
                "{}: several guests measured it, one after the other, so that there is no one run to follow; leave interrupt_latency out of components, and measure again",
                manifest.run
            )));
        }
        let subject = Subject::of_cell(&rig, &experiment, cell);
        Ok(Subject { made_with: Some(made_with), ..subject })
    }
}

/// The experiment of a run, with only the run's flavour and load in it.
fn experiment(bench: &Bench, manifest: &Manifest) -> Result<Experiment, Error> {
    let about = &manifest.about;
    if about.target != "rig" {
        let instead = match &about.experiment.probe {
            Some(plan) => format!(
                "measure the same in the rig: {}",
                in_rig::command(bench, plan, &about.load)?
            ),
            None => "take a run of the rig".into(),
        };
        return Err(Error::Unfit(format!(
            "{}: it was measured on a machine, which cannot be run once more and followed from outside; {instead}",
            manifest.run
        )));
    }
    let name = PathBuf::from(format!("{}.toml", manifest.run));
    let asked = &about.experiment;
    let directory = Path::new(asked.directory.as_deref().unwrap_or(""));
    let whole = Experiment::parse_in(directory, &name, &asked.source)?;
    let mut experiment = whole.with_overrides(&asked.overrides)?;
    if asked.directory.is_none() {
        check_paths(&experiment, &manifest.run.to_string())?;
    }
    experiment.flavours.retain(|f| f.to_string() == about.flavour);
    experiment.loads.retain(|l| l.name() == about.load);
    Ok(experiment)
}

/// Checks relative paths. In the experiment of an old bundle they begin where the command is run, because nobody knows
/// where its file was.
fn check_paths(experiment: &Experiment, run: &str) -> Result<(), Error> {
    let GuestSection { modules, programs, files, .. } = &experiment.guest;
    let all = modules.iter().chain(programs).chain(files.iter().map(|file| &file.host));
    let relative =
        |path: &&PathBuf| experiment.has_relative_paths && path.starts_with(&experiment.directory);
    match all.filter(relative).find(|path| !path.exists()) {
        None => Ok(()),
        Some(path) => Err(Error::Unfit(format!(
            "{run}: its experiment has {}, which is not here, and the bundle does not say where the experiment was; run this in the directory of its file, where such paths begin",
            path.display()
        ))),
    }
}

fn cell<'a>(experiment: &'a Experiment, manifest: &Manifest) -> Result<Cell<'a>, Error> {
    let asked = &manifest.about.experiment;
    let measured = |c: &Cell| match c.instrument {
        Instrument::Generator(_) => asked.trigger.is_some(),
        Instrument::Probe(plan) => {
            asked.probe.as_ref().is_some_and(|asked| asked.probe == plan.probe)
        }
    };
    experiment.cells().find(measured).ok_or_else(|| {
        Error::MadeOtherwise(format!(
            "{}: its experiment does not have {} under {}: the bundle was altered; `onset show --verify` checks it",
            manifest.run, manifest.about.flavour, manifest.about.load
        ))
    })
}

/// Leaves only the wanted parts in an experiment. Of the flavours, these are the one of that name, or all of a kernel
/// of that name. Of the loads, these are `loads`, if there are any. Of the instruments, these are the triggers.
///
/// # Errors
/// If the experiment does not have a wanted part. The text says what it has.
pub fn narrow(
    experiment: &mut Experiment,
    flavour: Option<&str>,
    loads: &[Load],
) -> Result<(), Error> {
    if let Some(asked) = flavour {
        let asked = asked.split_whitespace().collect::<Vec<_>>().join(" ");
        let had: Vec<String> = experiment.flavours.iter().map(ToString::to_string).collect();
        let exact = had.contains(&asked);
        let matches = |f: &experiment::Flavour| {
            if exact { f.to_string() == asked } else { f.kernel == asked }
        };
        experiment.flavours.retain(matches);
        if experiment.flavours.is_empty() {
            let had = had.join("\", \"");
            return Err(Error::Unfit(format!(
                "the experiment has no flavour \"{asked}\"; it has \"{had}\""
            )));
        }
    }
    if let Some(asked) = loads.iter().find(|load| !experiment.loads.contains(load)) {
        let had: Vec<&str> = experiment.loads.iter().map(|l| l.name()).collect();
        let had = had.join(", ");
        return Err(Error::Unfit(format!("the experiment has no load {asked}; it has {had}")));
    }
    if !loads.is_empty() {
        experiment.loads.retain(|load| loads.contains(load));
    }
    experiment.instruments.retain(|i| matches!(i, Instrument::Generator(_)));
    if experiment.instruments.is_empty() {
        let why = "the experiment has no [trigger]; add one, as in experiments/ladder.toml";
        return Err(Error::Unfit(why.into()));
    }
    Ok(())
}

/// The parts that a run was made with. Its instructions depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeWith {
    /// The version of QEMU.
    pub qemu: String,
    /// The version of the plugin, and the beginning of its hash.
    pub plugin: String,
    /// The kernel's release.
    pub release: String,
    /// The key of the snapshot.
    pub snapshot: String,
    /// The parts that made up the guest ([`contents`](crate::target::contents)). Empty if nobody kept them.
    pub contents: BTreeMap<String, String>,
}

impl MadeWith {
    /// The parts that a bundle names. `None` if its run was killed before they were known.
    pub fn of(manifest: &Manifest) -> Option<MadeWith> {
        let about = &manifest.about;
        let machine = about.machine.as_ref()?;
        Some(MadeWith {
            qemu: about.qemu.clone()?,
            plugin: about.plugin.clone()?,
            release: about.kernel.as_ref()?.release.clone(),
            snapshot: machine.snapshot.clone()?,
            contents: machine.contents_blake3.clone(),
        })
    }

    /// The parts that this machine makes runs with, for a guest that is restored from the snapshot `key`.
    pub fn here(bench: &Bench, guest: &Guest, key: &str) -> MadeWith {
        MadeWith {
            qemu: bench.qemu_version().into(),
            plugin: crate::target::plugin_version(bench),
            release: guest.kernel.record.release.clone(),
            snapshot: key.into(),
            contents: crate::target::contents(guest),
        }
    }

    /// Refuses another QEMU, plugin or kernel, and other contents of the guest `here`, before the guest is booted for
    /// nothing.
    ///
    /// # Errors
    /// Names what differs. For versions, it names both.
    pub fn check(&self, here: &MadeWith) -> Result<(), Error> {
        let pairs = [
            ("QEMU", &self.qemu, &here.qemu, "install that version"),
            ("the plugin", &self.plugin, &here.plugin, "build that version of onset"),
            ("the kernel's release", &self.release, &here.release, "fetch or add that kernel"),
        ];
        if let Some((what, then, now, remedy)) = pairs.into_iter().find(|(_, a, b, _)| a != b) {
            return Err(Error::MadeOtherwise(format!(
                "{what} is {now} here and was {then} then, so the same instructions will not run; {remedy}, or measure anew"
            )));
        }
        let is_other = |(name, hash): &(&String, &String)| {
            here.contents.get(*name).is_some_and(|now| now != *hash)
        };
        let others = self.contents.iter().filter(is_other).map(|(name, _)| name.as_str());
        match others.collect::<Vec<_>>()[..] {
            [] => Ok(()),
            ref others => Err(Error::MadeOtherwise(format!(
                "the guest is another here than then, so the same instructions will not run: not the same content has {}; bring that back, or measure anew",
                others.join(", ")
            ))),
        }
    }

    /// Refuses another snapshot, if everything that [`MadeWith::check`] knows is the same.
    ///
    /// # Errors
    /// Says what the reason may be.
    pub fn check_snapshot(&self, key: &str) -> Result<(), Error> {
        if self.snapshot == key {
            return Ok(());
        }
        let may_be = if self.contents.is_empty() {
            "its image is another (onset's agent, driver or loads, the programs that this machine lends it, the experiment's modules, programs or files), or the kernel was built anew"
        } else {
            "the kernel, onset's parts and what the experiment names are the same, so the programs that this machine lends it for its load, or their libraries or the kernel's modules are others"
        };
        Err(Error::MadeOtherwise(format!(
            "the guest's snapshot is {key} here and was {} then: {may_be}; bring that back, or measure anew",
            self.snapshot
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let text = r#"
            title = "test"
            target = "rig"
            flavours = ["6.12 preempt=none", "6.12 preempt=full", "6.12-rt"]
            loads = ["idle", "mixed"]
            trigger = { period = "1ms", count = 5 }
        "#;
        Experiment::parse(Path::new("t.toml"), text).expect("an experiment")
    }

    fn narrowed(flavour: Option<&str>, load: Option<Load>) -> Result<Vec<String>, String> {
        let mut experiment = experiment();
        narrow(&mut experiment, flavour, load.as_slice()).map_err(|e| e.to_string())?;
        Ok(experiment.cells().map(|c| format!("{} {}", c.flavour, c.load)).collect())
    }

    #[test]
    fn a_flavour_is_named_whole_or_with_all_others_of_its_kernel() {
        let mixed = Some(Load::Mixed);
        assert_eq!(narrowed(Some("6.12-rt"), mixed), Ok(vec!["6.12-rt mixed".into()]));
        let full = narrowed(Some(" 6.12  preempt=full"), mixed);
        assert_eq!(full, Ok(vec!["6.12 preempt=full mixed".into()]));
        assert_eq!(narrowed(Some("6.12"), mixed).map(|cells| cells.len()), Ok(2));
        assert_eq!(narrowed(None, None).map(|cells| cells.len()), Ok(6));
    }

    #[test]
    fn what_an_experiment_does_not_have_is_answered_with_what_it_has() {
        let message = narrowed(Some("6.13"), None).expect_err("there is none");
        assert!(message.contains("\"6.12 preempt=none\""), "{message}");
        let message = narrowed(None, Some(Load::Disk)).expect_err("there is none");
        assert!(message.contains("idle, mixed"), "{message}");
    }

    #[test]
    fn a_path_of_an_old_bundle_is_missed_with_where_to_look() {
        let with = |key: &str, path: &str| {
            let text = format!("{}guest.{key} = [{path:?}]", experiment().source);
            Experiment::parse(Path::new("t.toml"), &text).expect("an experiment")
        };
        for (key, path) in [("modules", "no/m.ko"), ("programs", "no/p"), ("files", "no/f=/f")] {
            let message =
                check_paths(&with(key, path), "run-1").expect_err("it is not here").to_string();
            let named = path.split('=').next().expect("a path");
            assert!(message.contains(named) && message.contains("directory"), "{message}");
        }
        assert!(
            check_paths(&with("modules", "/no/m.ko"), "run-1").is_ok(),
            "it is looked for later"
        );
        assert!(check_paths(&experiment(), "run-1").is_ok());
    }

    fn made_with() -> MadeWith {
        let contents = [("onset's agent", "a"), ("/lab/m.ko", "b")];
        MadeWith {
            qemu: "10.0.2".into(),
            plugin: "0.1.0 00".into(),
            release: "6.12.0".into(),
            snapshot: "then".into(),
            contents: contents.map(|(name, hash)| (name.into(), hash.into())).into(),
        }
    }

    #[test]
    fn each_thing_that_is_another_than_then_is_named() {
        let refused = |change: fn(&mut MadeWith)| {
            let mut here = made_with();
            change(&mut here);
            made_with().check(&here).expect_err("another").to_string()
        };
        assert!(made_with().check(&made_with()).is_ok());
        assert!(refused(|m| m.qemu = "9".into()).starts_with("QEMU is 9 here and was 10.0.2 then"));
        assert!(refused(|m| m.plugin = "1".into()).starts_with("the plugin is 1 here"));
        assert!(refused(|m| m.release = "6.1".into()).starts_with("the kernel's release is 6.1"));
        let message = refused(|m| *m.contents.get_mut("/lab/m.ko").expect("there") = "c".into());
        assert!(message.contains("/lab/m.ko") && !message.contains("agent"), "{message}");
        let old = MadeWith { contents: BTreeMap::new(), ..made_with() };
        assert!(old.check(&made_with()).is_ok(), "nobody kept them");
        assert!(made_with().check(&old).is_ok(), "it is looked for when the guest is built");
    }

    #[test]
    fn another_snapshot_is_refused_with_both_keys_and_what_it_may_be() {
        assert!(made_with().check_snapshot("then").is_ok());
        let message = made_with().check_snapshot("now").expect_err("another").to_string();
        assert!(message.contains("then") && message.contains("now"), "{message}");
        assert!(message.contains("are the same, so the programs"), "{message}");
        let old = MadeWith { contents: BTreeMap::new(), ..made_with() };
        let message = old.check_snapshot("now").expect_err("another").to_string();
        assert!(message.contains("modules, programs or files"), "{message}");
    }
}
