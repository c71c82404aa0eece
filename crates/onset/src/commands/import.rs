// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset import`: makes bundles from the results of cyclictest, so that onset can compare and draw them.

use super::measure::limits;
use super::{SystemClock, print, store};
use crate::arguments::Import;
use crate::failure::{Exit, Failure};
use bundle::cyclictest::{Imported, Thread, read};
use bundle::store::Store;
use bundle::{
    About, Begun, Bundle, BundleError, BundleWriter, Conclusion, Experiment, Kernel, RunId, SCHEMA,
    Warning,
};
use lab::matrix::Issuer;
use sample::{Clock, Nanos, Observation, Sample, SeriesId, SeriesName};
use stats::{Constraint, Deadline, Demand, Limit, Subject};
use std::collections::BTreeMap;
use std::path::Path;
use toml_edit::Table;
use view::terminal;

/// The longest file that is read, in bytes: a histogram of a million rows.
const FILE_MAX: u64 = 64 << 20;
/// The word for whatever is not known.
const UNKNOWN: &str = "unknown";
/// How many names are tried: a number tells runs of the same second apart.
const TRIES: u16 = 1 << 10;

pub fn run(arguments: &Import) -> Result<Exit, Failure> {
    let limits = limits(&arguments.limits)?;
    // All files are read before the first bundle is made.
    let read = |path| file(path).map(|imported| (path, imported));
    let imported =
        arguments.files.iter().map(|path| read(path.as_path())).collect::<Result<Vec<_>, _>>()?;
    let store = store(&arguments.outcome.store.store);
    let mut bundles = Vec::new();
    for (path, imported) in &imported {
        let title = arguments.title.clone().unwrap_or_else(|| path.display().to_string());
        bundles.push(bundle(&store, &title, imported, &limits)?);
    }
    if let Some(output) = &arguments.outcome.report {
        super::report::write(&bundles, output)?;
    }
    if arguments.outcome.json {
        super::run::print_runs(&bundles)?;
    } else {
        print(&terminal::ladders(&bundles)?)?;
    }
    Ok(Exit::of(bundles.iter().map(|b| b.manifest().conclusion.verdict)))
}

fn file(path: &Path) -> Result<Imported, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let bytes = confined::read(path, FILE_MAX).map_err(|e| wrong(&e))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is no text"))?;
    read(&text).map_err(|e| wrong(&e))
}

fn bundle(
    store: &Store,
    title: &str,
    imported: &Imported,
    limits: &Table,
) -> Result<Bundle, Failure> {
    let names: Vec<SeriesName> = imported
        .threads
        .iter()
        .map(|t| t.name.parse().expect("letters, digits and a hyphen"))
        .collect();
    let limits = limits_of(limits, &names)?;
    check_reach(&limits, imported)?;
    let begun = begun(title, imported, limits, names);
    let mut writer = begin(store, &begun)?;
    for (series, thread) in (0..).map(SeriesId).zip(&imported.threads) {
        let all = thread.latencies.iter().flat_map(|(at, n)| std::iter::repeat_n(*at, *n as usize));
        for (trigger, latency) in (0..).zip(all) {
            if work::is_cancelled() {
                writer.give_up();
                return Err(rig::Error::Interrupted.into());
            }
            let sample = Sample { series, trigger, at: Nanos(0), latency, path: None };
            writer.observe(&Observation::Sample(sample))?;
        }
    }
    let conclusion =
        Conclusion::of(&writer.summaries(), &writer.tallies(), begun.limits, begun.warnings);
    Ok(Bundle::open(&writer.finish(begun.about, conclusion, true)?)?)
}

fn begin(store: &Store, begun: &Begun) -> Result<BundleWriter, BundleError> {
    let mut begun = begun.clone();
    for salt in 0..TRIES {
        begun.run = RunId::new(begun.about.created, "import cyclictest", salt);
        match BundleWriter::create(store.root(), &begun) {
            Err(BundleError::Exists { .. }) => {}
            done => return done,
        }
    }
    BundleWriter::create(store.root(), &begun)
}

fn begun(
    title: &str,
    imported: &Imported,
    limits: Vec<Limit>,
    responders: Vec<SeriesName>,
) -> Begun {
    let created = SystemClock.now();
    let release = imported.kernel.as_ref().map_or(UNKNOWN, |(release, _)| release);
    let kernel = imported.kernel.as_ref().map(|(release, build)| Kernel {
        name: release.clone(),
        release: release.clone(),
        build: build.clone(),
        command_line: UNKNOWN.into(),
        reported: BTreeMap::new(),
    });
    let experiment = Experiment {
        source: imported
            .command
            .clone()
            .map_or_else(String::new, |command| format!("# {command}\n")),
        directory: None,
        overrides: Vec::new(),
        paper: None,
        warm_up: Nanos(0),
        trigger: None,
        probe: None,
    };
    let about = About {
        title: title.into(),
        created,
        tool: SystemClock.tool(),
        target: "imported".into(),
        flavour: release.into(),
        load: UNKNOWN.into(),
        seed: 0,
        kernel,
        machine: None,
        qemu: None,
        plugin: None,
        experiment,
        load_counters: BTreeMap::new(),
        probe_counters: BTreeMap::new(),
        truth: None,
    };
    let run = RunId::new(created, "import cyclictest", 0);
    let warnings = vec![doubt(imported)];
    Begun { schema: SCHEMA, run, clock: Clock::Monotonic, responders, about, limits, warnings }
}

/// A note about what the file does not say.
fn doubt(imported: &Imported) -> Warning {
    let version = imported.version.as_deref().unwrap_or("of an unknown version");
    let begun =
        imported.begun.as_ref().map_or_else(String::new, |begun| format!(", measured {begun}"));
    let mut text = format!(
        "of cyclictest {version}{begun}; a latency may be up to {} longer than its row",
        imported.resolution
    );
    for thread in imported.threads.iter().filter(|thread| thread.beyond > 1) {
        let longest = thread.latencies.last().map_or(Nanos(0), |(at, _)| *at);
        text += &format!(
            "; {} loops of {} were longer than the histogram reaches, and count as long as the longest loop, {longest}",
            thread.beyond, thread.name
        );
    }
    Warning::Imported { text }
}

/// The limits on the command line that are for these series.
fn limits_of(limits: &Table, names: &[SeriesName]) -> Result<Vec<Limit>, Failure> {
    let mut all = Vec::new();
    for (scope, table) in limits {
        let known = names.iter().filter(|name| scope == "all" || name.as_str() == scope);
        let known: Vec<&SeriesName> = known.collect();
        if known.is_empty() {
            let names: Vec<&str> = names.iter().map(SeriesName::as_str).collect();
            return Err(Failure::usage(format!(
                "--limit {scope}: there is no such series; the series are {}",
                names.join(", ")
            )));
        }
        for (subject, bound) in table.as_table().into_iter().flatten() {
            let wrong = |why: &dyn std::fmt::Display| {
                Failure::usage(format!("--limit {scope}.{subject}: {why}"))
            };
            let demand =
                demand(subject, bound.as_str().unwrap_or_default()).map_err(|e| wrong(&e))?;
            let limit = |name: &&SeriesName| Limit { responder: SeriesName::clone(name), demand };
            all.extend(known.iter().map(limit));
        }
    }
    Ok(all)
}

/// What a limit demands of loops whose order is not known.
fn demand(subject: &str, bound: &str) -> Result<Demand, String> {
    let said = |e: &dyn std::fmt::Display| e.to_string();
    match subject.parse::<Subject>().map_err(|e| said(&e))? {
        Subject::Statistic(statistic) => {
            let bound: Nanos = bound.parse().map_err(|e| said(&e))?;
            Ok(Demand::Statistic { statistic, bound })
        }
        Subject::Deadline(kind @ Constraint::Miss, time) => {
            let tolerance = kind.tolerance(bound).map_err(|e| said(&e))?;
            Ok(Demand::Deadline(Deadline { time, tolerance }))
        }
        Subject::Deadline(Constraint::Consecutive | Constraint::Firm, time) => Err(format!(
            "a histogram does not say in which order the loops were; limit the misses, as miss({}ns)=0",
            time.0
        )),
    }
}

/// Refuses a deadline of which the file does not say how many loops missed it: loops beyond the histogram are known by
/// their number and by the longest of them.
fn check_reach(limits: &[Limit], imported: &Imported) -> Result<(), Failure> {
    for (limit, deadline) in limits.iter().filter_map(|l| Some((l, l.deadline()?))) {
        let of = |t: &&Thread| t.beyond > 1 && t.name == limit.responder.as_str();
        let Some(thread) = imported.threads.iter().find(of) else { continue };
        let mut rows = thread.latencies.iter().rev().map(|(at, _)| *at);
        let (longest, reach) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
        if (reach..longest).contains(&deadline.time) {
            return Err(Failure::usage(format!(
                "--limit {}.miss({}ns): {} loops were beyond the histogram, and nobody knows how many of them took longer; \
                 let the histogram reach further (cyclictest -h), or limit max",
                limit.responder, deadline.time.0, thread.beyond
            )));
        }
    }
    Ok(())
}
