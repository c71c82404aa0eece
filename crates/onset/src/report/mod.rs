// SPDX-License-Identifier: GPL-2.0-or-later
//! The HTML report: the viewer's page with the numbers in it. Pure transposition; every number is one of a bundle, of a hunt,
//! or of what was seen when a run was made once more.

mod code;
mod hunt;
mod icicle;
mod inside;
mod papers;
mod title;

pub use hunt::Hunted;

use crate::bundle::{
    About, Bundle, BundleError, Details, Evidence, Experiment, Manifest, Schedule, Tool, UtcTime,
    Warning,
};
use crate::company::{Unequal, unequal_by_experiment};
use crate::followed::Inside;
use code::Code;
use probes::context::keys;
use sample::{Clock, Losses};
use serde::Serialize;
use stats::{Bucket, Column, CurvePoint, Finding, Summary, Verdict, Worst};
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Number of the format between this module and the viewer (web/src/contract.ts).
const SCHEMA: u32 = 11;
/// What the viewer's page has in place of the numbers.
const MARKER: &str = "__ONSET_REPORT__";

/// Why there is no report.
#[derive(Debug)]
pub enum ReportError {
    /// Runs of different clocks do not share an axis.
    Clocks(Clock, Clock),
    /// A bundle cannot be read.
    Bundle(BundleError),
    /// The viewer's page is not one.
    Viewer,
    /// Neither a run nor a hunt.
    Nothing,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clocks(a, b) => write!(
                f,
                "the runs were measured with different clocks ({}, {}); write one report for each",
                a.name(),
                b.name()
            ),
            Self::Bundle(e) => e.fmt(f),
            Self::Viewer => f.write_str("the viewer's page is damaged; run `make build` again"),
            Self::Nothing => f.write_str("there is nothing to report; name a run or a hunt"),
        }
    }
}

impl std::error::Error for ReportError {}

impl From<BundleError> for ReportError {
    fn from(e: BundleError) -> Self {
        ReportError::Bundle(e)
    }
}

/// A named group of settings.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Its heading.
    pub group: String,
    /// Its settings.
    pub entries: Vec<Entry>,
}

/// A setting.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    title: String,
    created: UtcTime,
    tool: &'a crate::bundle::Tool,
    clock: Clock,
    runs: Vec<Run<'a>>,
    unequal: Vec<Unequal>,
    papers: Vec<papers::Table>,
    hunts: Vec<hunt::Hunt<'a>>,
    code: Code,
}

#[derive(Serialize)]
struct Run<'a> {
    run: &'a str,
    experiment: String,
    flavour: &'a str,
    load: &'a str,
    seed: u64,
    clock: Clock,
    verdict: Verdict,
    evidence: Evidence,
    complete: bool,
    created: UtcTime,
    series: Vec<Series<'a>>,
    warnings: &'a [Warning],
    findings: &'a [Finding],
    configuration: Vec<Group>,
    experiment_source: &'a str,
    files: Vec<File>,
    inside: Option<inside::Inside<'a>>,
}

#[derive(Serialize)]
struct Series<'a> {
    responder: &'a str,
    count: u64,
    losses: &'a Losses,
    min_ns: Option<u64>,
    mean_ns: Option<f64>,
    stddev_ns: Option<f64>,
    max_ns: Option<u64>,
    quantiles: BTreeMap<&'static str, u64>,
    columns: &'a [Column],
    curve: &'a [CurvePoint],
    timeline: &'a [Bucket],
    worst: &'a [Worst],
}

#[derive(Serialize)]
struct File {
    name: String,
    href: String,
    what: &'static str,
}

/// What a report is of: at least one run, or one hunt.
#[derive(Clone, Copy, Debug)]
pub struct Material<'a> {
    /// The runs.
    pub bundles: &'a [Bundle],
    /// What was seen inside of them, by the run's name; those that nobody looked into are absent.
    pub insides: &'a BTreeMap<String, Inside>,
    /// The hunts.
    pub hunts: &'a [Hunted],
}

impl Material<'_> {
    /// The clock of all numbers.
    fn clock(&self) -> Result<Clock, ReportError> {
        let runs = self.bundles.iter().map(|b| b.manifest().clock);
        let mut clocks = runs.chain(self.hunts.iter().map(|_| Clock::Virtual));
        let first = clocks.next().ok_or(ReportError::Nothing)?;
        match clocks.find(|clock| *clock != first) {
            None => Ok(first),
            Some(other) => Err(ReportError::Clocks(first, other)),
        }
    }
}

/// The page for `material`; `viewer` is the viewer's page.
///
/// # Errors
/// [`ReportError`]: mixed clocks, an unreadable bundle, nothing to report.
pub fn page(viewer: &str, material: &Material, created: UtcTime) -> Result<String, ReportError> {
    let &Material { bundles, insides, hunts } = material;
    let clock = material.clock()?;
    let details = bundles.iter().map(Bundle::details).collect::<Result<Vec<_>, _>>()?;
    let tool = bundles.first().map_or_else(Tool::this, |b| b.manifest().about.tool.clone());
    let mut code = Code::default();
    let named = bundles.iter().zip(&details).zip(experiments(bundles));
    let runs = named.map(|((bundle, details), experiment)| {
        let seen = insides.get(bundle.manifest().run.as_str());
        let inside = seen.map(|seen| inside::inside(bundle.path(), seen, &mut code));
        run(bundle, details, experiment, inside)
    });
    let runs = runs.collect();
    let report = Report {
        schema: SCHEMA,
        title: title::title(material),
        created,
        tool: &tool,
        clock,
        runs,
        unequal: unequal_by_experiment(bundles.iter().map(Bundle::manifest)),
        papers: papers::tables(bundles)?,
        hunts: hunts.iter().map(|hunted| hunt::hunt(hunted, &mut code)).collect(),
        code,
    };
    let json = serde_json::to_string(&report).expect("plain data");
    // Inside a script element only "<" could end it.
    let json = json.replace('<', "\\u003c");
    let (before, after) = viewer.split_once(MARKER).ok_or(ReportError::Viewer)?;
    Ok([before, &json, after].concat())
}

/// What runs of one flavour and load are told apart by: the experiment's title, the instrument where one experiment
/// measured with several, and the guest's seed where it was repeated with others.
fn experiments(bundles: &[Bundle]) -> Vec<String> {
    let about =
        |b: &Bundle| (b.manifest().about.title.clone(), b.manifest().about.experiment.instrument());
    let seeds: Vec<Option<u32>> =
        bundles.iter().map(|b| papers::guest_seed(b.manifest())).collect();
    let name = |(bundle, seed): (&Bundle, &Option<u32>)| {
        let (title, own) = about(bundle);
        let alike =
            || bundles.iter().zip(&seeds).filter(|(b, _)| b.manifest().about.title == title);
        let instrument = if alike().all(|(b, _)| about(b).1 == own) {
            String::new()
        } else {
            format!(": {own}")
        };
        match seed {
            Some(n) if alike().any(|(_, other)| other != seed) => {
                format!("{title}{instrument} · guest seed {n}")
            }
            _ => title + &instrument,
        }
    };
    bundles.iter().zip(&seeds).map(name).collect()
}

fn run<'a>(
    bundle: &'a Bundle,
    details: &'a [Details],
    experiment: String,
    inside: Option<inside::Inside<'a>>,
) -> Run<'a> {
    let manifest = bundle.manifest();
    let about = &manifest.about;
    Run {
        run: manifest.run.as_str(),
        experiment,
        flavour: &about.flavour,
        load: &about.load,
        seed: about.seed,
        clock: manifest.clock,
        verdict: manifest.conclusion.verdict,
        evidence: manifest.evidence(),
        complete: manifest.complete,
        created: about.created,
        series: manifest.series.iter().filter_map(|s| series(s, details)).collect(),
        warnings: &manifest.conclusion.warnings,
        findings: &manifest.conclusion.findings,
        configuration: configuration(manifest),
        experiment_source: &about.experiment.source,
        files: files(bundle),
        inside,
    }
}

fn series<'a>(summary: &'a Summary, details: &'a [Details]) -> Option<Series<'a>> {
    let shape = details.iter().find(|d| d.responder == summary.responder)?;
    Some(Series {
        responder: summary.responder.as_str(),
        count: summary.count,
        losses: &summary.losses,
        min_ns: summary.min.map(|n| n.0),
        mean_ns: summary.mean_ns,
        stddev_ns: summary.stddev_ns,
        max_ns: summary.max.map(|n| n.0),
        quantiles: summary.quantiles.iter().map(|(q, n)| (q.key(), n.0)).collect(),
        columns: &shape.columns,
        curve: &shape.curve,
        timeline: &shape.timeline,
        worst: &shape.worst,
    })
}

/// Where the raw data are, as links that work on the machine that wrote the report.
fn files(bundle: &Bundle) -> Vec<File> {
    let names = bundle.manifest().files.keys().cloned();
    let link = |name: String| {
        let path =
            bundle.path().canonicalize().unwrap_or_else(|_| bundle.path().into()).join(&name);
        let what = match name.as_str() {
            "samples.parquet" => "every sample (Parquet)",
            "series.json" => "what this page draws",
            "console.txt" => "what the guest's kernel printed",
            "manifest.json" => "everything about the run",
            _ => "histogram (HdrHistogram V2)",
        };
        File { href: file_url(&path), name, what }
    };
    std::iter::once("manifest.json".to_string()).chain(names).map(link).collect()
}

/// The address of an absolute path: all bytes but the unreserved ones and the slash are written in percent
/// (RFC 3986, section 2; RFC 8089).
fn file_url(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.fold("file://".to_string(), |url, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            url + char::from(*byte).encode_utf8(&mut [0; 4])
        }
        _ => url + &format!("%{byte:02X}"),
    })
}

fn kernel_entries(kernel: &crate::bundle::Kernel) -> Vec<Entry> {
    let own = [
        ("name", &kernel.name),
        ("release", &kernel.release),
        ("build", &kernel.build),
        ("command line", &kernel.command_line),
    ];
    let reported = kernel.reported.iter().map(|(key, value)| (key.as_str(), value));
    let entry = |(key, value): (&str, &String)| Entry { key: key.into(), value: value.clone() };
    let mut entries: Vec<Entry> = own.into_iter().chain(reported).map(entry).collect();
    if !kernel.reported.contains_key(keys::HZ) {
        entries.push(Entry { key: keys::HZ.into(), value: "unknown".into() });
    }
    entries
}

/// What was triggered, or what the probe was told.
fn asked_for(experiment: &Experiment) -> Group {
    let entry = |key: &str, value: String| Entry { key: key.into(), value };
    let warm_up = entry("warm-up", experiment.warm_up.to_string());
    let mut entries = Vec::new();
    if let Some(trigger) = &experiment.trigger {
        entries = match &trigger.schedule {
            Schedule::Periodic { period, jitter, phase, count } => vec![
                entry("count", count.to_string()),
                entry("period", period.to_string()),
                entry("jitter", jitter.to_string()),
                entry("phase", phase.to_string()),
            ],
            Schedule::Times { times_ns } => vec![entry("given times", times_ns.len().to_string())],
        };
        entries.push(entry("high for", trigger.high.to_string()));
        entries.push(entry("grace", trigger.grace.to_string()));
    }
    if let Some(plan) = &experiment.probe {
        let cpus: Vec<String> = plan.cpus.iter().map(u32::to_string).collect();
        entries.push(entry("probe", plan.probe.name().into()));
        entries.push(entry("policy", plan.policy.to_string()));
        entries.push(entry("CPUs", cpus.join(", ")));
        entries.push(entry("kept out of deep idle states", plan.pm_qos.to_string()));
    }
    entries.push(warm_up);
    let name = if experiment.probe.is_some() { "Probe" } else { "Triggers" };
    Group { group: name.into(), entries }
}

/// Of a run that was killed before its target had said what it is, the target alone.
fn machine_entries(about: &About) -> Vec<Entry> {
    let entry = |key: &str, value: String| Entry { key: key.into(), value };
    let optional = |key: &str, value: &Option<String>| value.clone().map(|v| entry(key, v));
    let mut entries = vec![entry("target", about.target.clone())];
    if let Some(machine) = &about.machine {
        entries.extend([
            entry("accelerator", machine.accelerator.clone()),
            entry("processor", machine.cpu.clone()),
            entry("memory", format!("{} MiB", machine.memory_mib)),
        ]);
        let shift = machine.icount_shift.map(|s| format!("{} ns", 1u64 << s));
        entries.extend(optional("time per instruction", &shift));
        entries.extend(optional("snapshot", &machine.snapshot));
    }
    entries.extend(optional("QEMU", &about.qemu));
    entries.extend(optional("plugin", &about.plugin));
    entries
}

/// The whole configuration of a run, in groups.
pub fn configuration(manifest: &Manifest) -> Vec<Group> {
    let about = &manifest.about;
    let entry = |key: &str, value: String| Entry { key: key.into(), value };
    let group = |name: &str, entries: Vec<Entry>| Group { group: name.into(), entries };
    let kernel = about.kernel.as_ref().map(|kernel| group("Kernel", kernel_entries(kernel)));
    let mut groups: Vec<Group> = kernel.into_iter().collect();
    groups.extend([
        group("Machine", machine_entries(about)),
        asked_for(&about.experiment),
        group(
            "Run",
            vec![
                entry("started", about.created.to_string()),
                entry("seed", about.seed.to_string()),
                entry("clock", manifest.clock.name().into()),
                entry("onset", format!("{} ({})", about.tool.version, about.tool.revision)),
                entry("samples", manifest.samples.count.to_string()),
                entry("samples' blake3", manifest.samples.blake3.clone()),
            ],
        ),
    ]);
    let counted = [
        ("Work done while measuring", &about.load_counters),
        ("Counted by the probe", &about.probe_counters),
    ];
    for (name, counters) in counted.into_iter().filter(|(_, counters)| !counters.is_empty()) {
        groups.push(group(name, counters.iter().map(|(k, n)| entry(k, n.to_string())).collect()));
    }
    if !about.experiment.overrides.is_empty() {
        let said = about.experiment.overrides.iter();
        groups.push(group(
            "Set on the command line",
            said.map(|(k, v)| entry(k, v.clone())).collect(),
        ));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_of_any_name() {
        let url = |path: &str| file_url(Path::new(path));
        assert_eq!(url("/runs/20261121-000000-a_b~c.d"), "file:///runs/20261121-000000-a_b~c.d");
        assert_eq!(url("/a b/#1/50%?/\u{b5}s"), "file:///a%20b/%231/50%25%3F/%C2%B5s");
    }
}
