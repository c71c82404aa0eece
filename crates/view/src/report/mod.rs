// SPDX-License-Identifier: GPL-2.0-or-later
//! The HTML report: the viewer's page with the numbers in it. This module computes nothing new. Every number comes from
//! a bundle, from a hunt, or from the replay of a run.

mod code;
mod costs;
mod hunt;
mod icicle;
mod inside;
mod lead;
pub(crate) mod papers;
mod place;
mod policy;
mod scope;
mod title;

pub use hunt::Hunted;

use crate::price::Prices;
use crate::results::Proof;
use bundle::company::{Unequal, unequal_by_experiment};
use bundle::{
    About, Bundle, BundleError, Details, Evidence, Experiment, Manifest, Schedule, Tool, UtcTime,
    Warning,
};
use code::Code;
use lab::followed::Inside;
use place::{File, Place, files};
use policy::policy;
use probes::context::keys;
use sample::{Clock, Losses};
use serde::Serialize;
use stats::{Column, CurvePoint, Finding, Slice, Summary, Verdict, Worst};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The marker in the viewer's page that the numbers replace.
const MARKER: &str = "__ONSET_REPORT__";

/// Why a report cannot be written.
#[derive(Debug)]
pub enum ReportError {
    /// The runs have different clocks, so they cannot share an axis.
    Clocks(Clock, Clock),
    /// A bundle cannot be read.
    Bundle(BundleError),
    /// The viewer's page is damaged.
    Viewer,
    /// The user named neither a run nor a hunt, and there is no proof.
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
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ConfigurationGroup")
)]
pub struct Group {
    /// Its heading.
    pub group: String,
    /// Its settings.
    pub entries: Vec<Entry>,
}

/// A setting.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ConfigurationEntry")
)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// One page.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report<'a> {
    /// The only version of the format that the viewer of this onset draws.
    schema: u32,
    /// The title.
    title: String,
    /// The main results in sentences.
    lead: Vec<String>,
    /// When the report was written, RFC 3339.
    created: UtcTime,
    /// The program that wrote the report; for runs, the program that made the first one.
    tool: &'a bundle::Tool,
    /// Numbers of different clocks never share an axis, so a report has exactly one.
    clock: Clock,
    /// The runs, one for each bundle: each execution of one flavour under one load.
    runs: Vec<Run<'a>>,
    /// Experiments in whose runs not the same responders answered: latencies of these runs cannot be compared.
    unequal: Vec<Unequal>,
    /// The tables of the papers, in the order of the papers; empty if no run belongs to one.
    papers: Vec<papers::Table>,
    /// All tables and figures of the papers; empty if no run belongs to one.
    contents: Vec<papers::Item>,
    /// The costs of the runs that measured any.
    costs: Option<costs::Costs>,
    /// What the kernels get and pay; null if both is known of fewer than two.
    prices: Option<Prices>,
    /// The hunts, on the virtual clock. A report that has only hunts has no runs.
    hunts: Vec<hunt::Hunt<'a>>,
    /// What knobs do to a machine or to kernels; null without a proof. A report that has only a proof has no runs.
    proof: Option<&'a Proof>,
    /// The names of functions in the guests, which all parts of the report share.
    code: Code,
}

impl Report<'_> {
    /// Number of the format between this module and the viewer (docs/report.schema.json, web/src/contract.ts).
    pub(crate) const SCHEMA: u32 = 16;
}

/// One execution of one flavour under one load: one bundle.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Run<'a> {
    /// Identity of the run, as `onset list` shows it.
    run: &'a str,
    /// The name of its experiment. It tells the run apart from runs of the same flavour and load in other experiments.
    experiment: String,
    /// Kernel and boot options (the flavour).
    flavour: &'a str,
    /// The load.
    load: &'a str,
    /// The seed. It is exact up to 2^53−1 in the viewer, which shows a larger one as approximate.
    seed: u64,
    /// The clock of the report.
    clock: Clock,
    /// The verdict. `inconclusive`: too few samples for a limit, or no limit. `invalid`: the run is unsound.
    verdict: Verdict,
    /// The numbers on which the verdict is based.
    evidence: Evidence,
    /// False if the run was interrupted; then it holds the samples until that moment.
    complete: bool,
    /// When the run began, RFC 3339.
    created: UtcTime,
    /// The series, in the order of the run.
    series: Vec<Series<'a>>,
    /// All warnings about the run.
    warnings: &'a [Warning],
    /// The outcome of each limit.
    findings: &'a [Finding],
    /// The whole configuration: kernel, machine, trigger, guest, load counters and more.
    configuration: Vec<Group>,
    /// The TOML text of the experiment, as it was run.
    experiment_source: &'a str,
    /// The files of the bundle.
    files: Vec<File>,
    /// What onset saw inside the run; null if the user did not ask, and for runs on a machine or of a probe.
    inside: Option<inside::Inside<'a>>,
    /// What an oscilloscope at the port saw; null for runs without a trigger's line.
    scope: Option<scope::Scope>,
}

/// All answers of one responder in one run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Series<'a> {
    /// The name of a mechanism of the driver, or of a method of a probe.
    responder: &'a str,
    /// How many samples there are, without losses.
    count: u64,
    /// The losses; the viewer shows them beside every maximum.
    losses: &'a Losses,
    /// Exact minimum; null without samples.
    min_ns: Option<u64>,
    /// Null without samples.
    mean_ns: Option<f64>,
    /// Null without samples.
    stddev_ns: Option<f64>,
    /// Exact maximum; null without samples.
    max_ns: Option<u64>,
    /// From the quantile as decimal text ("0.999") to ns. A quantile for which `count` is too small is absent.
    quantiles: BTreeMap<&'static str, u64>,
    /// The histogram, with logarithmic columns in rising order. Empty columns may be absent.
    columns: &'a [Column],
    /// The points of the percentile plot, in rising order and dense in the tail.
    curve: &'a [CurvePoint],
    /// Minimum and maximum of every slice of time since measuring began, so that no maximum is lost. Empty if the
    /// results were imported, without times.
    timeline: &'a [Slice],
    /// The worst samples, worst first. Empty if the results were imported, without the numbers of samples.
    worst: &'a [Worst],
}

/// The material of a report: at least one run, one hunt, or a proof.
#[derive(Clone, Copy, Debug)]
pub struct Material<'a> {
    /// The runs.
    pub bundles: &'a [Bundle],
    /// What onset saw inside the runs, by the name of the run. Runs into which onset did not look are absent.
    pub insides: &'a BTreeMap<String, Inside>,
    /// The hunts.
    pub hunts: &'a [Hunted],
    /// The proof.
    pub proof: Option<&'a Proof>,
}

impl Material<'_> {
    /// The clock of all numbers.
    fn clock(&self) -> Result<Clock, ReportError> {
        let runs = self.bundles.iter().map(|b| b.manifest().clock);
        let of_proof = self.proof.map(|proof| match proof.machine {
            Some(_) => Clock::Monotonic,
            None => Clock::Virtual,
        });
        let mut clocks = runs.chain(self.hunts.iter().map(|_| Clock::Virtual)).chain(of_proof);
        let first = clocks.next().ok_or(ReportError::Nothing)?;
        match clocks.find(|clock| *clock != first) {
            None => Ok(first),
            Some(other) => Err(ReportError::Clocks(first, other)),
        }
    }
}

/// The page for `material`. `viewer` is the viewer's page, and `output` is the file of the report: the paths in the
/// page are relative to its directory. `tool` makes the report, at `created`.
///
/// # Errors
/// [`ReportError`]: mixed clocks, an unreadable bundle, nothing to report.
pub fn page(
    output: &Path,
    viewer: &str,
    material: &Material,
    (created, tool): (UtcTime, &Tool),
) -> Result<String, ReportError> {
    let place = Place::of(output);
    let &Material { bundles, insides, hunts, proof } = material;
    let clock = material.clock()?;
    let details = bundles.iter().map(Bundle::details).collect::<Result<Vec<_>, _>>()?;
    let tool = bundles.first().map_or(tool, |b| &b.manifest().about.tool);
    let mut code = Code::default();
    let experiments = experiments(bundles);
    let lead = lead::lead(material, &experiments);
    let named = bundles.iter().zip(&details).zip(experiments);
    let runs = named.map(|((bundle, details), experiment)| {
        let seen = insides.get(bundle.manifest().run.as_str());
        let inside =
            seen.map(|seen| inside::inside(&place.path_to(bundle.path()), seen, &mut code));
        let scope = scope::scope(bundle, details, scope::SAMPLES_MAX / bundles.len() as u64)?;
        Ok(run(bundle, details, experiment, (inside, scope), &place))
    });
    let runs = runs.collect::<Result<_, BundleError>>()?;
    let papers = papers::tables(bundles)?;
    let report = Report {
        schema: Report::SCHEMA,
        title: title::title(material),
        lead,
        created,
        tool,
        clock,
        runs,
        unequal: unequal_by_experiment(bundles.iter().map(Bundle::manifest)),
        contents: papers::contents(&papers),
        papers,
        costs: costs::Costs::of(bundles),
        prices: Prices::of(&bundles.iter().map(Bundle::manifest).collect::<Vec<_>>()),
        hunts: hunts.iter().map(|hunted| hunt::hunt(hunted, &place, &mut code)).collect(),
        proof,
        code,
    };
    let json = serde_json::to_string(&report).expect("plain data");
    // In a script element, only "<" could end the element.
    let json = json.replace('<', "\\u003c");
    let (before, after) = viewer.split_once(MARKER).ok_or(ReportError::Viewer)?;
    Ok([before, &json, after].concat())
}

/// The words that tell runs of one flavour and load apart: the title of the experiment, the instrument if the
/// experiment has several, and the guest's seed if the experiment was repeated with others.
fn experiments(bundles: &[Bundle]) -> Vec<String> {
    let about = |b: &Bundle| (b.manifest().about.title.clone(), b.manifest().about.instrument());
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
    (inside, scope): (Option<inside::Inside<'a>>, Option<scope::Scope>),
    place: &Place,
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
        series: manifest
            .series
            .iter()
            .filter_map(|summary| series(summary, details, manifest.is_imported()))
            .collect(),
        warnings: &manifest.conclusion.warnings,
        findings: &manifest.conclusion.findings,
        configuration: configuration(manifest),
        experiment_source: &about.experiment.source,
        files: files(bundle, place),
        inside,
        scope,
    }
}

/// The series of a run. Of an imported one nobody knows when and in which order its samples were: it has no timeline,
/// and no worst samples by their numbers.
fn series<'a>(
    summary: &'a Summary,
    details: &'a [Details],
    is_imported: bool,
) -> Option<Series<'a>> {
    let shape = details.iter().find(|d| d.responder == summary.responder)?;
    let (timeline, worst) =
        if is_imported { (&[][..], &[][..]) } else { (&shape.timeline[..], &shape.worst[..]) };
    Some(Series {
        responder: summary.responder.as_str(),
        count: summary.count,
        losses: &summary.losses,
        min_ns: summary.min.map(|n| n.0),
        mean_ns: summary.mean,
        stddev_ns: summary.stddev,
        max_ns: summary.max.map(|n| n.0),
        quantiles: summary.quantiles.iter().map(|(q, n)| (q.key(), n.0)).collect(),
        columns: &shape.columns,
        curve: &shape.curve,
        timeline,
        worst,
    })
}

fn kernel_entries(kernel: &bundle::Kernel) -> Vec<Entry> {
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

/// The triggers, or the plan of the probe.
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
        entries.push(entry("policy", policy(plan.policy)));
        entries.push(entry("CPUs", cpus.join(", ")));
        entries.push(entry("kept out of deep idle states", plan.pm_qos.to_string()));
    }
    entries.push(warm_up);
    let name = if experiment.probe.is_some() { "Probe" } else { "Triggers" };
    Group { group: name.into(), entries }
}

/// The machine. If the run was killed before its target had described itself, only the kind of target is known.
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
        let shift = machine.icount_shift.and_then(|s| 1u64.checked_shl(s.into()));
        let shift = shift.map(|ns| format!("{ns} ns"));
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
    use bundle::examples::{run_id, write_bundle};

    #[test]
    fn a_page_names_its_runs_from_where_it_lies_and_no_directory_of_the_machine() {
        let root = tempfile::tempdir().unwrap();
        let bundle = write_bundle(&root.path().join("runs"), &run_id(0), 50);
        let bundles = [Bundle::open(&bundle).unwrap()];
        let material =
            Material { bundles: &bundles, insides: &BTreeMap::new(), hunts: &[], proof: None };
        let created = bundles[0].manifest().about.created;
        let page = |output: &str| {
            let output = root.path().join(output);
            std::fs::create_dir_all(output.parent().unwrap()).unwrap();
            page(
                &output,
                &format!("<{MARKER}>"),
                &material,
                (created, &bundles[0].manifest().about.tool),
            )
            .unwrap()
        };
        let run = bundle.file_name().unwrap().to_str().unwrap();
        for (output, way) in [("r.html", "runs"), ("pages/r.html", "../runs"), ("runs/r.html", "")]
        {
            let text = page(output);
            let whole = root.path().canonicalize().unwrap();
            for directory in [root.path(), &whole] {
                assert!(!text.contains(directory.to_str().unwrap()), "{text}");
            }
            let json: serde_json::Value = serde_json::from_str(&text[1..text.len() - 1]).unwrap();
            let href = json["runs"][0]["files"][0]["href"].as_str().unwrap();
            let way = Path::new(way).join(run).join("manifest.json");
            assert_eq!(Path::new(href), way);
            assert_eq!(json["lead"].as_array().map(Vec::len), Some(3), "{}", json["lead"]);
        }
    }
}
