// SPDX-License-Identifier: GPL-2.0-or-later
//! The runs that belong to one table, and what of its experiment is missing.

use super::claim::Now;
use super::{Basis, Cell, Row, Statistic, Unit, Whose, time_cell};
use crate::bundle::{Bundle, Manifest};
use crate::experiment::{Experiment, Paper};
use sample::Clock;
use stats::{Summary, Verdict};
use std::collections::BTreeSet;
use std::path::Path;

/// Some runs of one paper's experiment, in the order of the report.
pub(super) struct Runs<'a> {
    pub(super) bundles: Vec<&'a Bundle>,
    /// Flavour and load of every cell of the experiment's file, in its order.
    wanted: Vec<(String, String)>,
}

impl<'a> Runs<'a> {
    /// None where there is no run of that paper.
    pub(super) fn of(paper: Paper, bundles: &'a [Bundle]) -> Option<Runs<'a>> {
        let is = |b: &&Bundle| b.manifest().about.experiment.paper.as_deref() == Some(paper.name());
        let mut bundles: Vec<&Bundle> = bundles.iter().filter(is).collect();
        if bundles.is_empty() {
            return None;
        }
        let mut wanted = Vec::new();
        for source in
            bundles.iter().map(|b| &b.manifest().about.experiment.source).collect::<BTreeSet<_>>()
        {
            // As written, without what was set on the command line: that may have left cells out. A file that this
            // version cannot read says nothing about what is missing.
            let Ok(experiment) = Experiment::parse(Path::new("experiment"), source) else {
                continue;
            };
            let cells =
                experiment.cells().map(|c| (c.flavour.to_string(), c.load.name().to_owned()));
            wanted.extend(cells);
        }
        let mut seen = BTreeSet::new();
        wanted.retain(|cell| seen.insert(cell.clone()));
        // Flavours in the order of the experiment, however the report was asked for.
        bundles.sort_by_key(|b| {
            let about = &b.manifest().about;
            let place = wanted.iter().position(|(f, l)| (f, l) == (&about.flavour, &about.load));
            place.unwrap_or(wanted.len())
        });
        Some(Runs { bundles, wanted })
    }

    /// Those under one load.
    pub(super) fn under(&self, load: &str) -> Runs<'a> {
        self.filtered(|_, l| l == load)
    }

    /// Those of some flavours.
    pub(super) fn of_flavours(&self, keep: impl Fn(&str) -> bool) -> Runs<'a> {
        self.filtered(|flavour, _| keep(flavour))
    }

    fn filtered(&self, keep: impl Fn(&str, &str) -> bool) -> Runs<'a> {
        let about = |b: &Bundle| {
            let about = &b.manifest().about;
            keep(&about.flavour, &about.load)
        };
        Runs {
            bundles: self.bundles.iter().copied().filter(|b| about(b)).collect(),
            wanted: self.wanted.iter().filter(|(f, l)| keep(f, l)).cloned().collect(),
        }
    }

    pub(super) fn manifests(&self) -> impl Iterator<Item = &'a Manifest> + '_ {
        self.bundles.iter().map(|b| b.manifest())
    }

    /// Cells without a run, as a reader calls them.
    pub(super) fn absent(&self) -> Vec<String> {
        let there: BTreeSet<(&str, &str)> =
            self.manifests().map(|m| (&*m.about.flavour, &*m.about.load)).collect();
        let missing = self.wanted.iter().filter(|(f, l)| !there.contains(&(&**f, &**l)));
        missing.map(|(flavour, load)| format!("{flavour} under {load}")).collect()
    }

    /// A statistic of a series in each run that is sound and has it: nothing is concluded from an invalid one.
    pub(super) fn values(&self, series: &str, statistic: Statistic) -> Vec<Now> {
        let sound = self.manifests().filter(|m| m.conclusion.verdict != Verdict::Invalid);
        let value = |m: &Manifest| {
            let ns = statistic(summary(m, series)?)?;
            Some(Now { ns, whose: m.about.flavour.clone() })
        };
        sound.filter_map(value).collect()
    }

    /// The first of [`Runs::values`]: of the flavour that stands first.
    pub(super) fn first(&self, series: &str, statistic: Statistic) -> Option<Now> {
        self.values(series, statistic).into_iter().next()
    }

    /// A row of ours for each run that has any of the series.
    pub(super) fn rows(&self, unit: Unit, cells: &[(&str, Statistic)]) -> Vec<Row> {
        self.manifests().filter_map(|m| row(m, m.about.flavour.clone(), unit, cells)).collect()
    }

    /// In which time ours were measured.
    pub(super) fn note(&self) -> String {
        let mut notes = BTreeSet::new();
        for manifest in self.manifests() {
            let shift = manifest.about.machine.as_ref().and_then(|m| m.icount_shift);
            notes.insert(match (manifest.clock, shift) {
                (Clock::Virtual, Some(shift)) => format!(
                    "virtual time at {} ns an instruction: how long the path is that the kernel takes, without caches and bus",
                    1u64 << shift
                ),
                (clock, _) => format!("{} time of the target", clock.name()),
            });
        }
        if notes.is_empty() {
            return "Ours: not measured.".into();
        }
        let notes: Vec<String> = notes.into_iter().collect();
        format!("Ours: {}.", notes.join("; "))
    }
}

/// The numbers of a series of a run.
pub(super) fn summary<'a>(manifest: &'a Manifest, series: &str) -> Option<&'a Summary> {
    manifest.series.iter().find(|s| s.responder.as_str() == series)
}

/// A row of ours; none where the run has none of the series.
pub(super) fn row(
    manifest: &Manifest,
    label: String,
    unit: Unit,
    cells: &[(&str, Statistic)],
) -> Option<Row> {
    let names: BTreeSet<&str> = cells.iter().map(|(series, _)| *series).collect();
    let basis = basis(manifest, names)?;
    let cell = |(series, statistic): &(&str, Statistic)| -> Cell {
        time_cell(summary(manifest, series).and_then(statistic), unit)
    };
    let cells = cells.iter().map(cell).collect();
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

/// What a row stands on that is computed from these series; none where the run has none of them.
pub(super) fn basis<'n>(
    manifest: &Manifest,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<Basis> {
    let found: Vec<&Summary> = names.into_iter().filter_map(|n| summary(manifest, n)).collect();
    Some(Basis {
        run: manifest.run.as_str().into(),
        responder: found.first()?.responder.as_str().into(),
        count: found.iter().map(|s| s.count).sum(),
        lost: found.iter().map(|s| s.losses.total()).sum(),
    })
}

/// The least and the greatest of some values.
pub(super) fn ends(values: &[Now]) -> Option<(&Now, &Now)> {
    let least = values.iter().min_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let greatest = values.iter().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    Some((least, greatest))
}

/// Whether only the tick drives the timers.
pub(super) fn ticks(flavour: &str) -> bool {
    flavour.split(' ').any(|word| word == "highres=off")
}

/// Whether the kernel is a PREEMPT_RT build, by the name it is kept under.
pub(super) fn is_rt(flavour: &str) -> bool {
    flavour.split(' ').next().is_some_and(|kernel| kernel.ends_with("-rt"))
}
