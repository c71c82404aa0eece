// SPDX-License-Identifier: GPL-2.0-or-later
//! The runs that belong to one table, by repetition, and the missing cells of its experiment.

use super::{Basis, Cell, Row, Statistic, Unit, Whose, time_cell};
use bundle::{Bundle, BundleError, Manifest};
use experiment::{Experiment, Paper, Target};
use probes::context::keys;
use sample::{Clock, Nanos};
use stats::{Summary, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// The preemption mode of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    None,
    Voluntary,
    Full,
    Lazy,
    Rt,
    /// Neither the kernel nor its flavour says it.
    Unknown,
}

impl Mode {
    /// The mode that the running kernel named; if it named none, the mode that the flavour asks for.
    fn of(manifest: &Manifest) -> Mode {
        let about = &manifest.about;
        let reported = about.kernel.iter().find_map(|k| k.reported.get(keys::PREEMPTION));
        let mut words = about.flavour.split(' ');
        if words.next().is_some_and(|kernel| kernel.ends_with("-rt")) {
            return Mode::Rt;
        }
        let asked = words.find_map(|word| word.strip_prefix("preempt="));
        match reported.map(String::as_str).or(asked) {
            Some("none") => Mode::None,
            Some("voluntary") => Mode::Voluntary,
            Some("full") => Mode::Full,
            Some("lazy") => Mode::Lazy,
            Some("rt") => Mode::Rt,
            _ => Mode::Unknown,
        }
    }
}

/// Whether only the tick drives the timers.
fn ticks(manifest: &Manifest) -> bool {
    let is_off = |line: &str| line.split_ascii_whitespace().any(|word| word == "highres=off");
    let about = &manifest.about;
    is_off(&about.flavour) || about.kernel.iter().any(|k| is_off(&k.command_line))
}

/// One run, with the numbers that tables need of it.
pub(super) struct Run<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) mode: Mode,
    pub(super) ticks: bool,
    /// The guest's seed; on a machine, the number of the run among runs of its kind.
    pub(super) repetition: u64,
    /// The latency of the first period, for series of relative sleep.
    first: BTreeMap<String, Nanos>,
}

impl<'a> Run<'a> {
    pub(super) fn manifest(&self) -> &'a Manifest {
        self.bundle.manifest()
    }

    pub(super) fn load(&self) -> &'a str {
        &self.manifest().about.load
    }

    pub(super) fn flavour(&self) -> &'a str {
        &self.manifest().about.flavour
    }

    /// Whether the run is sound: onset concludes nothing from an invalid run.
    pub(super) fn is_sound(&self) -> bool {
        self.manifest().conclusion.verdict != Verdict::Invalid
    }

    pub(super) fn is_rig(&self) -> bool {
        self.manifest().about.target == Target::Rig.name()
    }

    /// A statistic of a series in ns.
    pub(super) fn value(&self, series: &str, statistic: Statistic) -> Option<f64> {
        let summary = summary(self.manifest(), series)?;
        match statistic {
            Statistic::First => self.first.get(series).map(|n| n.0 as f64),
            other => other.of(summary),
        }
    }

    /// The maximum minus the mean.
    pub(super) fn excess(&self, series: &str) -> Option<f64> {
        Some(self.value(series, Statistic::Max)? - self.value(series, Statistic::Mean)?)
    }

    /// The length of a tick in ns.
    pub(super) fn tick(&self) -> Option<f64> {
        let kernel = self.manifest().about.kernel.as_ref()?;
        let hz: f64 = kernel.reported.get(keys::HZ)?.parse().ok()?;
        (hz > 0.0).then(|| 1e9 / hz)
    }
}

/// The sound runs of one repetition.
pub(super) struct Repetition<'r, 'a>(Vec<&'r Run<'a>>);

impl<'r, 'a> Repetition<'r, 'a> {
    /// The first run of a kernel with such timers under a load.
    pub(super) fn run(&self, mode: Mode, ticks: bool, load: &str) -> Option<&'r Run<'a>> {
        self.all(ticks, load).find(|run| run.mode == mode)
    }

    /// The runs of all kernels with such timers under a load.
    pub(super) fn all(&self, ticks: bool, load: &str) -> impl Iterator<Item = &'r Run<'a>> {
        self.0.iter().copied().filter(move |r| r.ticks == ticks && r.load() == load)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'r Run<'a>> {
        self.0.iter().copied()
    }
}

/// Some runs of one paper's experiment, in the order of the report.
pub(super) struct Runs<'a> {
    pub(super) runs: Vec<Rc<Run<'a>>>,
    /// Flavour, load and repetitions of every cell of the experiment's file, in its order.
    wanted: Vec<(String, String, u32)>,
}

impl<'a> Runs<'a> {
    /// None where there is no run of that paper.
    ///
    /// # Errors
    /// [`BundleError`] where samples cannot be read.
    pub(super) fn of(paper: Paper, bundles: &'a [Bundle]) -> Result<Option<Runs<'a>>, BundleError> {
        let is = |b: &&Bundle| b.manifest().about.experiment.paper.as_deref() == Some(paper.name());
        let mut bundles: Vec<&Bundle> = bundles.iter().filter(is).collect();
        if bundles.is_empty() {
            return Ok(None);
        }
        let wanted = wanted(&bundles);
        // Flavours are in the order of the experiment, in whatever order the user named the runs.
        bundles.sort_by_key(|b| {
            let about = &b.manifest().about;
            let place = wanted.iter().position(|(f, l, _)| *f == about.flavour && *l == about.load);
            (place.unwrap_or(wanted.len()), about.created)
        });
        let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut runs = Vec::new();
        for bundle in bundles {
            let manifest = bundle.manifest();
            let ordinal = seen.entry((&manifest.about.flavour, &manifest.about.load)).or_default();
            *ordinal += 1;
            runs.push(Rc::new(Run {
                bundle,
                mode: Mode::of(manifest),
                ticks: ticks(manifest),
                repetition: guest_seed(manifest).map_or(*ordinal, u64::from),
                first: first(bundle)?,
            }));
        }
        Ok(Some(Runs { runs, wanted }))
    }

    /// The runs under one load.
    pub(super) fn under(&self, load: &str) -> Runs<'a> {
        self.filtered(|_, l| l == load, |run| run.load() == load)
    }

    /// The runs with such timers.
    pub(super) fn with_timers(&self, ticks: bool) -> Runs<'a> {
        let off = |flavour: &str| flavour.split(' ').any(|word| word == "highres=off");
        self.filtered(|flavour, _| off(flavour) == ticks, |run| run.ticks == ticks)
    }

    /// The runs that `keep` keeps; the cells of the experiment stay as they are.
    pub(super) fn kept(&self, keep: impl Fn(&Run) -> bool) -> Runs<'a> {
        self.filtered(|_, _| true, keep)
    }

    fn filtered(
        &self,
        wants: impl Fn(&str, &str) -> bool,
        keep: impl Fn(&Run) -> bool,
    ) -> Runs<'a> {
        Runs {
            runs: self.runs.iter().filter(|run| keep(run)).cloned().collect(),
            wanted: self.wanted.iter().filter(|(f, l, _)| wants(f, l)).cloned().collect(),
        }
    }

    pub(super) fn manifests(&self) -> impl Iterator<Item = &'a Manifest> + '_ {
        self.runs.iter().map(|run| run.manifest())
    }

    pub(super) fn is_rig(&self) -> bool {
        self.runs.iter().any(|run| run.is_rig())
    }

    /// What the repetitions are.
    pub(super) fn repetitions(&self) -> &'static str {
        if self.is_rig() { "seeds" } else { "runs" }
    }

    /// The result of `relation` for each repetition that has the runs for it.
    pub(super) fn each(&self, relation: impl Fn(&Repetition<'_, 'a>) -> Option<f64>) -> Vec<f64> {
        let mut repetitions: BTreeMap<u64, Vec<&Run<'a>>> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.is_sound()) {
            repetitions.entry(run.repetition).or_default().push(run);
        }
        let relations = repetitions.into_values().map(|runs| relation(&Repetition(runs)));
        relations.flatten().filter(|value| value.is_finite()).collect()
    }

    /// Cells without a run, or with fewer runs than the experiment asks for, in words for a reader.
    pub(super) fn absent(&self) -> Vec<String> {
        let there = |flavour: &str, load: &str| {
            let of = self.runs.iter().filter(|r| r.flavour() == flavour && r.load() == load);
            of.map(|run| run.repetition).collect::<BTreeSet<_>>().len()
        };
        let missing = self.wanted.iter().filter_map(|(flavour, load, repeats)| {
            let name = format!("{flavour} under {load}");
            match there(flavour, load) {
                0 => Some(name),
                n if n < *repeats as usize => Some(format!(
                    "{name}: {} of {repeats} {}",
                    repeats - n as u32,
                    self.repetitions()
                )),
                _ => None,
            }
        });
        missing.collect()
    }

    /// The runs of each flavour and load, each repetition once. Sound runs are together, other runs are by themselves.
    pub(super) fn groups(&self) -> Vec<Vec<Rc<Run<'a>>>> {
        let mut groups: Vec<Vec<Rc<Run<'a>>>> = Vec::new();
        for run in &self.runs {
            let fits = |group: &&mut Vec<Rc<Run<'a>>>| {
                let first = &group[0];
                first.is_sound()
                    && run.is_sound()
                    && (first.flavour(), first.load()) == (run.flavour(), run.load())
            };
            match groups.iter_mut().find(fits) {
                Some(group) if group.iter().any(|r| r.repetition == run.repetition) => {}
                Some(group) => group.push(run.clone()),
                None => groups.push(vec![run.clone()]),
            }
        }
        groups
    }

    /// These rows of the groups that have the series, each with its load beside its flavour.
    pub(super) fn labelled(&self, series: &str, mut rows: Vec<Row>) -> Vec<Row> {
        let groups = self.groups();
        let named = groups.iter().filter(|group| summary(group[0].manifest(), series).is_some());
        for (row, group) in rows.iter_mut().zip(named) {
            row.label = format!("{}, {}", group[0].flavour(), group[0].load());
        }
        rows
    }

    /// A row of onset for each group that has any of the series.
    pub(super) fn rows(&self, unit: Unit, cells: &[(&str, Statistic)]) -> Vec<Row> {
        let groups = self.groups();
        groups.iter().filter_map(|g| row(g, g[0].flavour().into(), unit, cells)).collect()
    }

    /// The clock of onset's numbers.
    pub(super) fn note(&self) -> String {
        let mut notes = BTreeSet::new();
        for manifest in self.manifests() {
            let shift = manifest.about.machine.as_ref().and_then(|m| m.icount_shift);
            notes.insert(match (manifest.clock, shift) {
                (Clock::Virtual, Some(shift)) => format!(
                    "virtual time at {} ns an instruction. It says how long the path of the kernel is, without caches and bus. Do not divide \
                    it by the paper's times",
                    1u64 << shift
                ),
                (clock, _) => format!("{} time of the target", clock.name()),
            });
        }
        if notes.is_empty() {
            return "onset has no numbers for this table.".into();
        }
        let notes: Vec<String> = notes.into_iter().collect();
        format!("onset's figures: {}.", notes.join("; "))
    }
}

/// Cells of the experiments, without the replacements of the command line, which may have left cells out. A file that
/// this version cannot read says nothing about missing cells.
fn wanted(bundles: &[&Bundle]) -> Vec<(String, String, u32)> {
    let mut wanted: Vec<(String, String, u32)> = Vec::new();
    let mut read = BTreeSet::new();
    for bundle in bundles {
        let about = &bundle.manifest().about;
        let source = &about.experiment.source;
        if !read.insert((source, &about.target)) {
            continue;
        }
        let Ok(experiment) = Experiment::parse(Path::new("experiment"), source) else { continue };
        let target = [("target".into(), about.target.clone())];
        let Ok(experiment) = experiment.with_overrides(&target) else { continue };
        for cell in experiment.cells() {
            // A report about a machine may be read elsewhere.
            let flavour = match experiment.target {
                Target::Local => about.flavour.clone(),
                Target::Rig => cell.flavour.to_string(),
            };
            let load = cell.load.name().to_owned();
            if !wanted.iter().any(|(f, l, _)| (f, l) == (&flavour, &load)) {
                wanted.push((flavour, load, experiment.repeats));
            }
        }
    }
    wanted
}

/// The seed of a run's guest; `None` on a machine.
pub(in crate::report) fn guest_seed(manifest: &Manifest) -> Option<u32> {
    let about = &manifest.about;
    if about.target != Target::Rig.name() {
        return None;
    }
    let asked = &about.experiment;
    let experiment = Experiment::parse(Path::new("experiment"), &asked.source).ok()?;
    Some(experiment.with_overrides(&asked.overrides).ok()?.guest.seed)
}

/// The latency of the first period of each series of relative sleep. Its phase against the tick differs from the
/// others'.
fn first(bundle: &Bundle) -> Result<BTreeMap<String, Nanos>, BundleError> {
    let series = &bundle.manifest().series;
    let sleeps = |s: &&Summary| s.responder.as_str().starts_with("nanosleep-");
    let mut first = BTreeMap::new();
    if series.iter().find(sleeps).is_none() {
        return Ok(first);
    }
    bundle.samples(|sample| {
        if sample.trigger == 0
            && let Some(summary) = series.get(sample.series.index()).filter(sleeps)
        {
            first.insert(summary.responder.as_str().to_owned(), sample.latency);
        }
    })?;
    Ok(first)
}

/// The numbers of a series of a run.
pub(super) fn summary<'a>(manifest: &'a Manifest, series: &str) -> Option<&'a Summary> {
    manifest.series.iter().find(|s| s.responder.as_str() == series)
}

/// A row of onset for the runs of a group; none if they have none of the series.
pub(super) fn row(
    group: &[Rc<Run>],
    label: String,
    unit: Unit,
    cells: &[(&str, Statistic)],
) -> Option<Row> {
    let names: BTreeSet<&str> = cells.iter().map(|(series, _)| *series).collect();
    let basis = basis(group, names)?;
    let cell = |(series, statistic): &(&str, Statistic)| -> Cell {
        let values: Vec<f64> = group.iter().filter_map(|r| r.value(series, *statistic)).collect();
        time_cell(&values, *statistic, unit)
    };
    let cells = cells.iter().map(cell).collect();
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

/// The runs, samples and losses behind a row of these series; none if the runs have none of them.
pub(super) fn basis<'n>(
    group: &[Rc<Run>],
    names: impl IntoIterator<Item = &'n str>,
) -> Option<Basis> {
    let names: Vec<&str> = names.into_iter().collect();
    let of = |run: &Rc<Run<'_>>| -> (u64, u64) {
        let found: Vec<&Summary> =
            names.iter().filter_map(|n| summary(run.manifest(), n)).collect();
        let counts = found.iter().map(|s| (s.count, s.losses.total()));
        counts.fold((0, 0), |(count, lost), (c, l)| (count + c, lost + l))
    };
    let first = group.first()?.manifest();
    let responder = names.iter().find_map(|n| summary(first, n))?.responder.as_str().into();
    let (count, lost) =
        group.iter().map(of).fold((0, 0), |(count, lost), (c, l)| (count + c, lost + l));
    let repetitions = group.len() as u64;
    Some(Basis { run: first.run.as_str().into(), responder, repetitions, count, lost })
}
