// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset run --json` prints, and every other command that makes runs.

use bundle::company::{Unequal, unequal_by_experiment};
use bundle::{Bundle, Evidence, Manifest, RunId, Truth, Warning};
use probes::context::keys;
use sample::Clock;
use serde::Serialize;
use stats::{Finding, Summary, Verdict};
use std::path::Path;

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Runs<'a> {
    /// Number of this format.
    schema: u32,
    /// One for each cell of the matrix that has a bundle, in the order of the experiment: flavours outside, then loads,
    /// then instruments (the triggers, or each probe).
    runs: Vec<Run<'a>>,
    /// One entry for each experiment in whose runs not the same responders answered. Each responder that answers makes
    /// the responders after it later, so latencies of these runs cannot be compared.
    unequal: Vec<Unequal>,
    /// Cells without a bundle; empty when every cell has one.
    errors: Vec<CellError>,
}

/// A cell without a bundle.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellError {
    /// Kernel and boot options (the flavour).
    pub flavour: String,
    /// The load.
    pub load: String,
    /// The instrument that should have measured.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = instruments())))]
    pub instrument: &'static str,
    /// What failed, why, and what to do next.
    pub message: String,
}

/// One cell of the matrix.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend(
        "if" = {"properties": {"complete": {"const": false}}},
        "then" = {"properties": {"verdict": {"const": "invalid"}}}
    ))
)]
struct Run<'a> {
    /// The name of the run, which is also the name of its bundle's directory.
    run: &'a RunId,
    /// Absolute path of the bundle.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^/")))]
    bundle: String,
    /// False if the run was interrupted or its machine died: then the series hold the samples until that moment, and
    /// the verdict is invalid.
    complete: bool,
    /// Kernel and boot options (the flavour), with single spaces; for this machine the release of its kernel.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    flavour: &'a str,
    /// The load; `unknown` if another program measured (`onset import`).
    #[cfg_attr(feature = "schema", schemars(extend("enum" = loads())))]
    load: &'a str,
    /// The instrument: the triggers of the rig, or a probe, by the name of its section in the experiment. `import` if
    /// another program measured.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = instruments_and_import())))]
    instrument: &'static str,
    /// The seed for the random displacements of the triggers; probes have nothing random.
    #[cfg_attr(feature = "schema", schemars(range(max = i64::MAX)))]
    seed: u64,
    /// The clock of all times of the run.
    clock: Clock,
    /// The preemption mode, as the kernel that ran names it (docs/methods/machine.md); absent if the kernel did not
    /// say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = PREEMPTION)))]
    preemption: Option<&'a str>,
    /// The numbers on which the verdict is based.
    evidence: Evidence,
    /// Hash of all samples (docs/bundles.md, "The hash of the samples"). Equal hashes mean equal samples.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    samples_blake3: &'a str,
    /// The series of the run. Responders of the driver are in the order of their pins; a responder that the kernel
    /// lacks is absent. The series of a probe are in the order of its plan; a series that could not be measured has a
    /// count of 0.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 65536)))]
    series: &'a [Summary],
    /// How accurate each series is, compared with what the rig saw from outside. Present only if the experiment asks
    /// for a witness (docs/truth.md), or if the port saw the edges of `toggle` (docs/methods/probes.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<&'a [Truth]>,
    /// All warnings about the run.
    warnings: &'a [Warning],
    /// The outcome of each limit that applies to the cell; empty if there is none.
    findings: &'a [Finding],
    /// The worst of the findings; inconclusive if there is no limit. If a warning makes the run invalid, the verdict is
    /// invalid, whatever the findings say.
    verdict: Verdict,
}

/// The preemption modes.
#[cfg(feature = "schema")]
const PREEMPTION: [&str; 5] = ["none", "voluntary", "full", "lazy", "rt"];
/// The instruments.
#[cfg(feature = "schema")]
fn instruments() -> Vec<&'static str> {
    ["trigger"].into_iter().chain(probes::PROBES.iter().map(|probe| probe.name)).collect()
}

/// The instruments, and `import` for runs that other programs measured.
#[cfg(feature = "schema")]
fn instruments_and_import() -> Vec<&'static str> {
    [instruments(), vec!["import"]].concat()
}

#[cfg(feature = "schema")]
fn loads() -> Vec<&'static str> {
    experiment::ALL_LOADS.map(|load| load.name()).into_iter().chain(["unknown"]).collect()
}

impl<'a> Runs<'a> {
    /// Version of the format (docs/run.schema.json).
    pub const SCHEMA: u32 = 1;

    /// The results of cells.
    pub fn of(bundles: &'a [Bundle], errors: Vec<CellError>) -> Self {
        let runs = bundles.iter().map(|b| Run::of(b.manifest(), b.path())).collect();
        let unequal = unequal_by_experiment(bundles.iter().map(Bundle::manifest));
        Runs { schema: Self::SCHEMA, runs, unequal, errors }
    }
}

impl<'a> Run<'a> {
    fn of(manifest: &'a Manifest, path: &Path) -> Self {
        let kernel = manifest.about.kernel.as_ref();
        let preemption = kernel.and_then(|kernel| kernel.reported.get(keys::PREEMPTION));
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        Run {
            run: &manifest.run,
            bundle: path.to_string_lossy().into_owned(),
            complete: manifest.complete,
            flavour: &manifest.about.flavour,
            load: &manifest.about.load,
            instrument: manifest.about.instrument(),
            seed: manifest.about.seed,
            clock: manifest.clock,
            preemption: preemption.map(String::as_str),
            evidence: manifest.evidence(),
            samples_blake3: &manifest.samples.blake3,
            series: &manifest.series,
            truth: manifest.about.truth.as_deref(),
            warnings: &manifest.conclusion.warnings,
            findings: &manifest.conclusion.findings,
            verdict: manifest.conclusion.verdict,
        }
    }
}
