// SPDX-License-Identifier: GPL-2.0-or-later
//! Arthur, Emde, Mc Guire: Assessment of the Realtime Preemption Patches (2007), figures 9 to 26: a pulse of 50 µs
//! every millisecond, seen by an oscilloscope in infinite persistence, and the worst case of each kernel. In the rig,
//! the port is the oscilloscope: series and pictures have the edges that the port saw ([`crate::edges`]).

use super::claim::{Claim, Expects, Said, Scale, unreached, untold};
use super::delay::ratio;
use super::runs::{Mode, Repetition, Run, Runs, basis, summary};
use super::{
    Cell, Column, Picture, Printed, Row, Statistic, Table, Unit, Whose, printed, time_cell,
};
use bundle::{Bundle, BundleError, Manifest};
use hdrhistogram::Histogram;
use sample::{Nanos, SeriesName};
use serde::Serialize;
use stats::Summary;
use std::rc::Rc;

const US: Unit = Unit::Micros;
/// Horizontal divisions of an oscilloscope's screen; the rising edge is due at the first.
const DIVISIONS: u64 = 10;
/// With more time for each division, the pulse would be a needle.
const DIVISION_MAX: Nanos = Nanos(50_000);
/// How many places the screen has across: finer than a pixel of a phone.
const PLACES: u64 = 500;

/// Pictures with one time base.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, title = "Screens"))]
pub struct Screens {
    /// Time for each division. The screen has ten; the rising edge is due at the end of the first.
    #[serde(rename = "division_ns")]
    pub division: Nanos,
    /// Length of the pulse.
    #[serde(rename = "width_ns")]
    pub width: Nanos,
    /// One screen for each flavour and load, with all seeds on it.
    pub screens: Vec<Screen>,
}

/// The screen of one flavour and load. Places count from 0, the left edge, to 500.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Screen {
    /// Flavour and load.
    pub label: String,
    /// The places of edges and their brightness: 1 for the place with most edges, falling with the logarithm of the
    /// count.
    pub edges: Vec<Lit>,
    /// First and last place of the high level; past the screen if an edge was there.
    pub high: [u64; 2],
    /// End of the low level before the pulse, and begin of the low level after it.
    pub low: [u64; 2],
    /// How many edges are beyond the right end of the screen and therefore not drawn.
    pub beyond: u64,
    /// The latest edge, counted from the instant when it was due.
    #[serde(rename = "latest_ns")]
    pub latest: Option<Nanos>,
}

/// A place with edges.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lit {
    /// The place.
    pub place: u64,
    /// The brightness, 0 … 1.
    pub brightness: f64,
}

/// Figure 26. The starred one is a single glitch, by the paper.
const WORST: [Printed; 12] = [
    ("2.6.21.5-rt20", &["VIA C3 600 MHz", "520", "—", "—", "—"]),
    ("2.6.21.5-rt20", &["VIA C3 1 GHz", "35", "—", "—", "—"]),
    ("2.6.21.5-rt20", &["P4 2.8 GHz", "190*", "—", "—", "—"]),
    ("2.6.22.1-rt6", &["VIA C3 600 MHz", "520", "—", "—", "—"]),
    ("2.6.22.1-rt6", &["VIA C3 600 MHz (as printed)", "36", "—", "—", "—"]),
    ("2.6.22.1-rt6", &["P4 2.8 GHz", "22", "—", "—", "—"]),
    ("2.6.23-rc1-rt1", &["VIA C3 600 MHz", "500", "—", "—", "—"]),
    ("2.6.23-rc1-rt1", &["VIA C3 1 GHz", "38", "—", "—", "—"]),
    ("2.6.23-rc1-rt1", &["P4 2.8 GHz", "24", "—", "—", "—"]),
    ("RTLinux 3.2-rc1", &["VIA C3 600 MHz", "16", "—", "—", "—"]),
    ("RTAI 3.5", &["VIA C3 600 MHz", "14", "—", "—", "—"]),
    ("LXRT (RTAI 3.5)", &["VIA C3 600 MHz", "27", "—", "—", "—"]),
];

/// Figures 9 to 26.
pub(super) fn table(runs: &Runs) -> Result<Table, BundleError> {
    let groups = runs.groups();
    let ours = groups.iter().filter_map(|group| row(group));
    Ok(Table {
        id: "2007-toggle",
        heading: "A pulse of 50 µs every millisecond: worst jitter",
        source: "Arthur, Emde, Mc Guire 2007, figures 9 to 26",
        columns: vec![
            Column { name: "machine or load", unit: "" },
            US.column("jitter"),
            US.column("latest edge"),
            US.column("pulse off by"),
            US.column("probe's error"),
        ],
        rows: WORST.iter().map(printed).chain(ours).collect(),
        absent: runs.absent(),
        note: format!(
            "{} {} Jitter: the distance from the earliest to the latest place of an edge, for the edge that moves more. Pulse off by: by how much at most a pulse is longer or shorter than asked for. All figures are the worst of all seeds. The small print is the range over all seeds. Only the paper measured RTLinux, RTAI and LXRT.",
            runs.note(),
            vantage(runs)
        ),
        claims: claims(runs),
        picture: screens(runs, &groups)?.map(Picture::Screens),
    })
}

fn edges(manifest: &Manifest) -> impl Iterator<Item = &Summary> {
    ["rise", "fall"].into_iter().filter_map(|name| summary(manifest, name))
}

/// The distance from the earliest to the latest place of an edge, for the edge that moves more.
fn jitter(manifest: &Manifest) -> Option<Nanos> {
    edges(manifest).filter_map(|s| Some(s.max? - s.min?)).max()
}

fn latest(manifest: &Manifest) -> Option<Nanos> {
    edges(manifest).filter_map(|s| s.max).max()
}

/// The note about who saw the edges.
fn vantage(runs: &Runs) -> &'static str {
    let seen = runs.manifests().filter(|m| m.about.truth.is_some()).count();
    match seen {
        0 => {
            "The times of edges are from the program's own clock, since nothing saw them from outside."
        }
        n if n == runs.manifests().count() => {
            "The times of edges are from the port, which saw them from outside. The probe's error is by how much at most the program reported more than that."
        }
        _ => {
            "If a row has a probe's error, its times of edges are from the port, which saw them from outside; else they are from the program's own clock."
        }
    }
}

/// The time that the program reported for an edge minus the true time, at its greatest.
fn error_ns(manifest: &Manifest) -> Option<f64> {
    let truths = manifest.about.truth.iter().flatten();
    let of_edges = truths.filter(|t| ["rise", "fall"].contains(&t.series.as_str()));
    of_edges.filter_map(|t| t.error).map(|e| e.max_ns).max().map(|ns| ns as f64)
}

fn row(group: &[Rc<Run>]) -> Option<Row> {
    let worst = |of: &dyn Fn(&Manifest) -> Option<f64>| {
        let values: Vec<f64> = group.iter().filter_map(|run| of(run.manifest())).collect();
        time_cell(&values, Statistic::Max, US)
    };
    let ns = |nanos: Option<Nanos>| nanos.map(|n| n.0 as f64);
    let cells = vec![
        Cell::word(group[0].load()),
        worst(&|m| ns(jitter(m))),
        worst(&|m| ns(latest(m))),
        worst(&|m| ns(summary(m, "width").and_then(|s| s.max))),
        worst(&error_ns),
    ];
    let basis = basis(group, ["rise", "fall"])?;
    let label = group[0].flavour().into();
    Some(Row { label, whose: Whose::Ours, cells, basis: Some(basis) })
}

const RT: Said = Said {
    paper: "PREEMPT_RT keeps the pulse far better than a kernel without it: its worst jitter is 24 µs on the P4 and 500 µs on the VIA C3 at 600 MHz, and a kernel without it (figures 9, \
 10) is late by 1 and 2 ms, × 4 at least.",
    what: "Worst jitter of preempt=none, divided by that of PREEMPT_RT, under load",
    scale: Scale::Factor,
    expects: Expects::More,
    effect: 1.5,
    needs: "sound runs of preempt=none and of PREEMPT_RT under load",
};
const VOLUNTARY: Said = Said {
    paper: "CONFIG_PREEMPT_VOLUNTARY is definitely not suitable (§5); the paper prints no figure of it. It hardly helps, × 1.",
    what: "Worst jitter of preempt=none, divided by that of preempt=voluntary, under load",
    needs: "sound runs of preempt=none and of preempt=voluntary under load",
    ..PREEMPT
};
const PREEMPT: Said = Said {
    paper: "CONFIG_PREEMPT alone hardly helps (figures 11, 12): edges are late by 1 and 2 ms with it and without it, × 1.",
    what: "Worst jitter of preempt=none, divided by that of preempt=full, under load",
    expects: Expects::Same,
    needs: "sound runs of preempt=none and of preempt=full under load",
    ..RT
};

fn claims(runs: &Runs) -> Vec<Claim> {
    // The worst of all loads counts.
    let under_load = |r: &Repetition, mode| {
        let of = r.iter().filter(|run| run.mode == mode && !run.ticks && run.load() != "idle");
        of.filter_map(|run| jitter(run.manifest())).max().map(|n| n.0 as f64)
    };
    let at_rest = |r: &Repetition| {
        let run = r.run(Mode::None, false, "idle")?;
        jitter(run.manifest()).map(|n| n.0 as f64)
    };
    let told = |said: &Said, mode| {
        let reached = runs.each(|r| ratio(under_load(r, Mode::None), at_rest(r)));
        match reached.iter().copied().reduce(f64::max) {
            Some(most) => match unreached(most, "the pulse", "the worst jitter") {
                Some(why) => said.untold(why),
                None => {
                    let values =
                        runs.each(|r| ratio(under_load(r, Mode::None), under_load(r, mode)));
                    said.told(&values, runs.repetitions())
                }
            },
            None => said.untold(format!(
                "This claim needs {}, and of preempt=none without load, to know that the load reaches the pulse.",
                said.needs
            )),
        }
    };
    vec![
        told(&RT, Mode::Rt),
        told(&PREEMPT, Mode::Full),
        told(&VOLUNTARY, Mode::Voluntary),
        untold(
            "Kernels below Linux are better still: RTLinux has 16 µs, RTAI 14 µs, LXRT 27 µs, and PREEMPT_RT has 500 µs (VIA C3, 600 MHz).",
            "onset measures none of them.",
        ),
        untold(
            "The jitter of PREEMPT_RT is smaller on a faster processor: 24 µs at 2.8 GHz, 38 µs at 1 GHz, 500 µs at 600 MHz (2.6.23-rc1-rt1).",
            "Each run here has one speed; figure 25 is of several.",
        ),
    ]
}

pub(super) fn width(manifest: &Manifest) -> Nanos {
    match manifest.about.experiment.probe.as_ref().map(|plan| &plan.probe) {
        Some(probes::Probe::Toggle(toggle)) => toggle.width,
        // The paper's.
        _ => Nanos(50_000),
    }
}

/// The pictures of all runs. They have one time base so that a reader can compare them. None if there is no edge.
fn screens(runs: &Runs, groups: &[Vec<Rc<Run>>]) -> Result<Option<Screens>, BundleError> {
    let Some(latest) = runs.manifests().filter_map(latest).max() else { return Ok(None) };
    let width = runs.manifests().map(width).max().unwrap_or_default();
    let division = division(width.saturating_add(latest));
    let mut screens = Vec::new();
    for group in groups {
        let lit: Vec<&Bundle> = group
            .iter()
            .map(|run| run.bundle)
            .filter(|bundle| edges(bundle.manifest()).next().is_some())
            .collect();
        if !lit.is_empty() {
            screens.push(screen(&lit, division)?);
        }
    }
    Ok(Some(Screens { division, width, screens }))
}

/// The smallest time base of an oscilloscope (1, 2, 5 …) with which the screen reaches `end` after the first division.
fn division(end: Nanos) -> Nanos {
    let steps = (0..).flat_map(|power: u32| [1, 2, 5].map(|step| step * 10u64.pow(power)));
    let wide = |division: &u64| division * (DIVISIONS - 1) > end.0 || *division >= DIVISION_MAX.0;
    Nanos(steps.skip(6).find(wide).unwrap_or(DIVISION_MAX.0))
}

/// All repetitions on one screen, since a persistent screen shows every sweep.
fn screen(bundles: &[&Bundle], division: Nanos) -> Result<Screen, BundleError> {
    let about = &bundles[0].manifest().about;
    let width = width(bundles[0].manifest());
    let mut counts = vec![0u64; PLACES as usize];
    let mut beyond = 0;
    let place = |due: Nanos, late: u64| {
        let from_left = (division + due).saturating_add(Nanos(late));
        from_left.saturating_mul(PLACES) / (division * DIVISIONS)
    };
    let mut spans = [[place(Nanos(0), 0); 2], [place(width, 0); 2]];
    for ((name, due), span) in [("rise", Nanos(0)), ("fall", width)].into_iter().zip(&mut spans) {
        let mut ends: Option<[Nanos; 2]> = None;
        for bundle in bundles {
            let Some(summary) = summary(bundle.manifest(), name) else { continue };
            for (late, count) in recorded(&bundle.histogram(&series(summary))?) {
                match counts.get_mut(place(due, late) as usize) {
                    Some(lit) => *lit += count,
                    None => beyond += count,
                }
            }
            if let (Some(min), Some(max)) = (summary.min, summary.max) {
                let [least, most] = ends.unwrap_or([min, max]);
                ends = Some([least.min(min), most.max(max)]);
            }
        }
        if let Some(ends) = ends {
            *span = ends.map(|late| place(due, late.0).min(PLACES));
        }
    }
    let [rise, fall] = spans;
    Ok(Screen {
        label: format!("{}, {}", about.flavour, about.load),
        edges: lit(&counts),
        high: [rise[0], fall[1]],
        low: [rise[1], fall[0]],
        beyond,
        latest: bundles.iter().filter_map(|b| latest(b.manifest())).max(),
    })
}

fn series(summary: &Summary) -> SeriesName {
    summary.responder.clone()
}

pub(super) fn recorded(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let bucket = |v: hdrhistogram::iterators::IterationValue<u64>| {
        (histogram.lowest_equivalent(v.value_iterated_to()), v.count_at_value())
    };
    histogram.iter_recorded().map(bucket).collect()
}

/// Phosphor shows a single edge among thousands: brightness follows the logarithm of the count.
fn lit(counts: &[u64]) -> Vec<Lit> {
    let most = counts.iter().max().map_or(1.0, |most| (1.0 + *most as f64).ln());
    let bright = counts.iter().zip(0..).filter(|(count, _)| **count > 0);
    bright
        .map(|(count, place)| Lit { place, brightness: (1.0 + *count as f64).ln() / most })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_base_is_the_least_that_holds_every_edge_up_to_a_tenth_of_the_screen_for_the_pulse()
    {
        assert_eq!(division(Nanos(50_000)), Nanos(10_000));
        assert_eq!(division(Nanos(89_999)), Nanos(10_000));
        assert_eq!(division(Nanos(90_001)), Nanos(20_000));
        assert_eq!(division(Nanos(u64::MAX)), DIVISION_MAX);
    }

    #[test]
    fn a_single_edge_among_thousands_is_dim_but_lit() {
        let lit = lit(&[0, 1, 9_999]);
        assert_eq!(lit.iter().map(|l| l.place).collect::<Vec<_>>(), [1, 2]);
        assert!(lit[0].brightness > 0.05 && lit[1].brightness == 1.0, "{lit:?}");
    }
}
