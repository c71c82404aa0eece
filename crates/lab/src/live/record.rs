// SPDX-License-Identifier: GPL-2.0-or-later
//! The bundle of what a generator measures.

use super::Live;
use crate::Error;
use crate::matrix::Issuer;
use bundle::{
    About, Begun, BundleError, BundleWriter, Conclusion, Experiment, RunId, SCHEMA, Warning,
};
use sample::{Nanos, Observation, SeriesName};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wire::generator::Setting;

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
        let run = RunId::new(created, &format!("live {name}"), std::process::id() as u16);
        let about = about(live, &name, issuer);
        let warnings = vec![Warning::FromOutside { name }];
        let (clock, limits) = (live.clock(), Vec::new());
        let begun = Begun { schema: SCHEMA, run, clock, responders, about, limits, warnings };
        let writer = BundleWriter::create(store, &begun)?;
        Ok(Record { begun, writer })
    }

    /// Takes an observation of the conversation.
    ///
    /// # Errors
    /// Those of a disk that is full.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), BundleError> {
        self.writer.observe(observation)
    }

    /// Writes the bundle, and returns its directory. `complete` is false where the conversation was cut off.
    ///
    /// # Errors
    /// Those of a disk that is full; what was observed is then kept for the next command.
    pub fn finish(self, complete: bool) -> Result<PathBuf, BundleError> {
        let Begun { about, limits, warnings, .. } = self.begun;
        let conclusion = Conclusion::of(&self.writer.summaries(), limits, warnings);
        self.writer.finish(about, conclusion, complete)
    }
}

fn about(live: &Live, name: &str, issuer: &dyn Issuer) -> About {
    let settings = &live.identity().settings;
    let source = Setting::ALL.map(|s| format!("# {} = {}\n", s.name(), settings.get(s))).concat();
    let experiment = Experiment {
        source: format!(
            "# What the generator was set to, in ticks of {}/{} ns\n{source}",
            live.tick().nanos,
            live.tick().per
        ),
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
