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
use stats::{Constraint, Deadline, Demand, Limit, MissCounts, Statistic, Subject};
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
        "of cyclictest {version}{begun}; a latency may be up to {} longer than its row; periods that passed while cyclictest was late are in no row",
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

/// Refuses a limit of which the file does not say whether the loops kept it. A row has all loops from its latency up to
/// the next row. Loops beyond the histogram are known by their number and by the longest of them.
fn check_reach(limits: &[Limit], imported: &Imported) -> Result<(), Failure> {
    for limit in limits {
        let of = |thread: &&Thread| thread.name == limit.responder.as_str();
        let Some(thread) = imported.threads.iter().find(of) else { continue };
        let within = imported.resolution - Nanos(1);
        let (what, bound, known) = match limit.demand {
            Demand::Statistic { statistic, bound } => {
                (statistic.to_string(), bound, between(thread, statistic, within))
            }
            Demand::Deadline(deadline) => {
                let time = deadline.time;
                (format!("miss({}ns)", time.0), time, undecided(thread, deadline, within))
            }
        };
        let Some((lower, upper)) = known.filter(|(lower, upper)| (*lower..*upper).contains(&bound))
        else {
            continue;
        };
        return Err(Failure::usage(format!(
            "--limit {}.{what}: the file does not say whether the bound {bound} was kept: it knows the latency only to lie between {} and {} ns; \
             let cyclictest count ns (--nsecs) and its histogram reach further (-h), or give {}ns",
            limit.responder, lower.0, upper.0, upper.0
        )));
    }
    Ok(())
}

/// The loops of a thread by what is known of their latencies: the least, the greatest, and their number.
fn known(thread: &Thread, within: Nanos) -> Vec<(Nanos, Nanos, u64)> {
    let mut loops: Vec<_> =
        thread.latencies.iter().map(|(at, n)| (*at, *at + within, *n)).collect();
    // Of the loops beyond the histogram the longest is known.
    if thread.beyond > 1
        && let Some(longest) = loops.pop()
    {
        let reach = loops.last().map_or(Nanos(0), |(_, upper, _)| *upper);
        loops.extend([(reach, longest.1, longest.2 - 1), (longest.0, longest.1, 1)]);
    }
    loops
}

/// Between which latencies a statistic of a thread is. `None` if it has too few loops for it.
fn between(thread: &Thread, statistic: Statistic, within: Nanos) -> Option<(Nanos, Nanos)> {
    let loops = known(thread, within);
    let count = thread.loops();
    match statistic {
        Statistic::Max => loops.last().map(|(lower, upper, _)| (*lower, *upper)),
        Statistic::Mean => {
            let mean = |of: fn(&(Nanos, Nanos, u64)) -> Nanos| {
                let sum: u128 = loops.iter().map(|l| u128::from(of(l).0) * u128::from(l.2)).sum();
                let count = (count > 0).then_some(u128::from(count))?;
                Some(Nanos(u64::try_from(sum.div_ceil(count)).ok()?))
            };
            Some((mean(|l| l.0)?, mean(|l| l.1)?))
        }
        Statistic::Quantile(quantile) if quantile.supported_by(count) => {
            let rank = quantile.rank(count);
            let mut seen = 0;
            let found = loops.iter().find(|(_, _, n)| {
                seen += n;
                seen >= rank
            });
            found.map(|(lower, upper, _)| (*lower, *upper))
        }
        Statistic::Quantile(_) => None,
    }
}

/// Loops of which nobody knows whether they missed this deadline, by what is known of their latency. `None` also if the
/// deadline was missed too often without them, or tolerates them all.
fn undecided(thread: &Thread, deadline: Deadline, within: Nanos) -> Option<(Nanos, Nanos)> {
    let Deadline { time, tolerance } = deadline;
    let loops = known(thread, within);
    let events = thread.loops();
    let too_many = |end: fn(&(Nanos, Nanos, u64)) -> Nanos| {
        let missed = loops.iter().filter(|l| end(l) > time).map(|l| l.2).sum();
        MissCounts { events, missed, worst: None }.exceed(tolerance, events)
    };
    if too_many(|l| l.0) || !too_many(|l| l.1) {
        return None;
    }
    let open = loops.iter().find(|(lower, upper, _)| (*lower..*upper).contains(&time));
    open.map(|(lower, upper, _)| (*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Tolerance;

    fn thread(latencies: &[(u64, u64)], beyond: u64) -> Thread {
        let of = |(us, n): &(u64, u64)| (Nanos::from_micros(*us), *n);
        let latencies = latencies.iter().map(of).collect();
        Thread { name: "thread0".into(), latencies, beyond }
    }

    #[test]
    fn a_bound_inside_a_row_or_beyond_the_histogram_is_left_open() {
        let within = Nanos(999);
        let known = |thread: &Thread, text: &str| {
            let (lower, upper) = between(thread, text.parse().expect("a statistic"), within)?;
            Some((lower.0, upper.0))
        };
        let all_seen = thread(&[(9, 990), (100, 10)], 0);
        assert_eq!(known(&all_seen, "max"), Some((100_000, 100_999)));
        assert_eq!(known(&all_seen, "p50"), Some((9_000, 9_999)));
        assert_eq!(known(&all_seen, "mean"), Some((9_910, 10_909)));
        assert_eq!(known(&all_seen, "p99.999"), None);
        // Twenty loops were beyond the histogram, and the longest took 3,689 µs.
        let beyond = thread(&[(9, 9_000), (399, 980), (3_689, 20)], 20);
        assert_eq!(known(&beyond, "p99.9"), Some((399_999, 3_689_999)));
        assert_eq!(known(&beyond, "max"), Some((3_689_000, 3_689_999)));
        let open = |us: u64, most: u64| {
            let deadline =
                Deadline { time: Nanos::from_micros(us), tolerance: Tolerance::Misses { most } };
            undecided(&beyond, deadline, within).is_some()
        };
        assert_eq!([8, 9, 10].map(|us| open(us, 1_000)), [false, true, false]);
        assert_eq!([9, 399, 400, 4_000].map(|us| open(us, 20)), [false, true, false, false]);
        assert_eq!([399, 400, 3_689, 4_000].map(|us| open(us, 19)), [false, true, true, false]);
        assert_eq!([399, 1_000, 3_689, 4_000].map(|us| open(us, 0)), [false, false, true, false]);
        let exact = thread(&[(9, 5), (10, 1)], 0);
        let deadline =
            Deadline { time: Nanos::from_micros(9), tolerance: Tolerance::Misses { most: 0 } };
        assert_eq!(undecided(&exact, deadline, Nanos(0)), None);
        // Nothing is open where each loop is known to the nanosecond.
        assert_eq!(between(&exact, Statistic::Mean, Nanos(0)), Some((Nanos(9_167), Nanos(9_167))));
    }
}
