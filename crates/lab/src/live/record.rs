// SPDX-License-Identifier: GPL-2.0-or-later
//! The bundle of what a generator measures.

use super::{Drift, Live, Mark, Tested};
use crate::Error;
use crate::matrix::Issuer;
use bundle::{
    About, Begun, BundleError, BundleWriter, Conclusion, Experiment, RunId, SCHEMA, Warning,
};
use sample::{Nanos, Observation, SeriesName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wire::generator::{SelfTest, Setting};

/// How many names are tried.
const TRIES: u16 = 64;

/// A bundle that is being written.
pub struct Record {
    begun: Begun,
    writer: BundleWriter,
}

impl Record {
    /// Begins the bundle of a conversation in which nothing was measured yet.
    ///
    /// # Errors
    /// Those of a store that cannot be written.
    pub fn begin(live: &Live, store: &Path, issuer: &dyn Issuer) -> Result<Record, Error> {
        let name = live.name();
        let created = issuer.now();
        let responders = live.channels().iter().map(|c| SeriesName::from(c.responder)).collect();
        let title = format!("live {name}");
        let run = RunId::new(created, &title, 0);
        let about = about(live, &name, issuer);
        let warnings = vec![Warning::FromOutside { name }];
        let (clock, limits) = (live.clock(), Vec::new());
        let begun = Begun { schema: SCHEMA, run, clock, responders, about, limits, warnings };
        let mut begun = begun;
        // Two of one second have one name, but for its salt.
        for salt in 0..TRIES {
            begun.run = RunId::new(created, &title, (std::process::id() as u16).wrapping_add(salt));
            match BundleWriter::create(store, &begun) {
                Err(BundleError::Exists { .. }) => {}
                created => return Ok(Record { writer: created?, begun }),
            }
        }
        Ok(Record { writer: BundleWriter::create(store, &begun)?, begun })
    }

    /// The name of the run.
    pub fn run(&self) -> &RunId {
        &self.begun.run
    }

    /// Takes an observation of the conversation.
    ///
    /// # Errors
    /// Those of a disk that is full.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), BundleError> {
        self.writer.observe(observation)
    }

    /// Writes the bundle of a conversation that has ended, and returns its directory. `failure` says why it was cut
    /// off, if it was. Where measurements were lost on the way, the longest latency may be among them, and a doubt says
    /// so.
    ///
    /// # Errors
    /// Those of a disk that is full; what was observed is then kept for the next command.
    pub fn finish(
        mut self,
        live: &mut Live,
        failure: Option<String>,
    ) -> Result<PathBuf, BundleError> {
        live.break_off();
        live.observed().iter().try_for_each(|observation| self.writer.observe(observation))?;
        let Begun { mut about, limits, mut warnings, .. } = self.begun;
        about.experiment.source = source(live);
        let summaries = self.writer.summaries();
        if let Some(drift) = live.drift().filter(Drift::is_doubtful) {
            let Drift { gain_ppb, uncertainty_ppb, .. } = drift;
            warnings.push(Warning::GeneratorClock { gain_ppb, uncertainty_ppb });
        }
        let complete = failure.is_none();
        warnings.extend(failure.map(|text| Warning::Failed { text }));
        let conclusion = Conclusion::of(&summaries, &self.writer.tallies(), limits, warnings);
        self.writer.finish(about, conclusion, complete)
    }
}

/// What the generator was set to, run by run, what it measured of itself, and what the user noted.
fn source(live: &Live) -> String {
    let tick = live.tick();
    let mut text =
        format!("# What the generator was set to, in ticks of {}/{} ns\n", tick.nanos, tick.per);
    for run in live.runs() {
        text += &format!("# from trigger {}, at {} ns:", run.triggers, run.elapsed.0);
        text.extend(Setting::ALL.map(|s| format!(" {} {}", s.name(), run.settings.get(s))));
        text.push('\n');
        if let Some(drift) = run.drift {
            let Drift { started, span, batches, .. } = drift;
            text += &format!(
                "# its clock: {drift} beside CLOCK_MONOTONIC here, of {batches} batches in {} ns; it started at {} ns there, or before\n",
                span.0, started.0
            );
        }
    }
    for Tested { triggers, outcome } in live.tests() {
        text += &match outcome {
            Ok(SelfTest { triggers: pulses, offset, jitter, late }) => format!(
                "# self-test at trigger {triggers}: {pulses} pulses, offset {offset}, jitter {jitter}, late {late} ticks\n",
                offset = offset.0,
                jitter = jitter.0,
                late = late.0
            ),
            Err(why) => format!("# self-test at trigger {triggers} failed: {why}\n"),
        };
    }
    for Mark { triggers, elapsed, note } in live.marks() {
        text += &format!("# mark at trigger {triggers}, at {} ns: {note}\n", elapsed.0);
    }
    text
}

fn about(live: &Live, name: &str, issuer: &dyn Issuer) -> About {
    let settings = &live.identity().settings;
    let experiment = Experiment {
        source: source(live),
        directory: None,
        overrides: Vec::new(),
        paper: None,
        warm_up: Nanos(0),
        trigger: None,
        probe: None,
    };
    About {
        title: format!("live: {name}"),
        created: issuer.now(),
        tool: issuer.tool(),
        target: "generator".into(),
        flavour: name.into(),
        load: "unknown".into(),
        seed: settings.get(Setting::Seed),
        kernel: None,
        machine: None,
        qemu: None,
        plugin: None,
        experiment,
        load_counters: BTreeMap::new(),
        probe_counters: BTreeMap::new(),
        truth: None,
    }
}
