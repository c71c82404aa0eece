// SPDX-License-Identifier: GPL-2.0-or-later
//! What a command left: its status, its words, and the runs that it printed as JSON.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command that ended.
pub struct Finished {
    /// Its exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

impl Finished {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Finished {
        let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Finished::from(output)
    }

    /// Asserts its exit status; shows its words where it is another.
    #[track_caller]
    pub fn exits(self, status: i32) -> Finished {
        assert_eq!(self.status, Some(status), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that each of these stands in what it said.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Finished {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in:\n{}", self.stderr);
        }
        self
    }

    /// How many trials of a hunt were forks, by what it said at its end.
    #[track_caller]
    pub fn forks(&self) -> usize {
        let said = self
            .stderr
            .lines()
            .find_map(|line| line.strip_suffix(" of the trials made now were forks"));
        said.and_then(|forks| forks.parse().ok()).unwrap_or_else(|| panic!("{}", self.stderr))
    }

    /// What it printed, as JSON and nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| {
            panic!("stdout is not JSON ({e}):\n{}\n{}", self.stdout, self.stderr)
        })
    }

    /// The runs that `onset run --json` printed.
    #[track_caller]
    pub fn runs(&self) -> Vec<Run> {
        let runs = self.json()["runs"].as_array().cloned().expect("a list of runs");
        runs.into_iter().map(Run).collect()
    }

    /// The one run that was printed.
    #[track_caller]
    pub fn run(&self) -> Run {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{}\n{}", self.stdout, self.stderr);
        runs.into_iter().next().expect("counted")
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Finished {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished {
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// A run as `onset run --json` prints it.
#[derive(Clone, Debug)]
pub struct Run(pub Value);

impl Run {
    /// A text of the run itself: `flavour`, `load`, `verdict`, `samples_blake3` …
    #[track_caller]
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.0))
    }

    /// The numbers of a responder.
    #[track_caller]
    pub fn series(&self, responder: &str) -> &Value {
        let series = self.0["series"].as_array().expect("series");
        series
            .iter()
            .find(|s| s["responder"] == responder)
            .unwrap_or_else(|| panic!("no {responder} in {}", self.0))
    }

    /// Names of those who answered.
    pub fn responders(&self) -> Vec<&str> {
        let series = self.0["series"].as_array().expect("series");
        series.iter().filter_map(|s| s["responder"].as_str()).collect()
    }

    /// A responder's median in ns.
    #[track_caller]
    pub fn median(&self, responder: &str) -> u64 {
        let series = self.series(responder);
        series["quantiles"]["0.5"].as_u64().unwrap_or_else(|| panic!("no median in {series}"))
    }

    /// A responder's maximum in ns.
    #[track_caller]
    pub fn max(&self, responder: &str) -> u64 {
        let series = self.series(responder);
        series["max_ns"].as_u64().unwrap_or_else(|| panic!("no maximum in {series}"))
    }

    /// Codes of the warnings, in order.
    pub fn codes(&self) -> Vec<&str> {
        let warnings = self.0["warnings"].as_array().expect("warnings");
        warnings.iter().filter_map(|w| w["code"].as_str()).collect()
    }

    /// The warning with this code.
    #[track_caller]
    pub fn warning(&self, code: &str) -> &Value {
        let warnings = self.0["warnings"].as_array().expect("warnings");
        warnings
            .iter()
            .find(|w| w["code"] == code)
            .unwrap_or_else(|| panic!("no warning {code} among {warnings:?}"))
    }

    /// The bundle's directory.
    pub fn bundle(&self) -> PathBuf {
        PathBuf::from(self.text("bundle"))
    }

    /// A JSON file of the bundle.
    #[track_caller]
    pub fn file(&self, name: &str) -> Value {
        let path = self.bundle().join(name);
        let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The counters of the load and of the guest's kernel.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let counters = self.file("manifest.json")["about"]["load_counters"].clone();
        serde_json::from_value(counters).expect("counters are numbers")
    }

    /// What the guest's kernel printed while it booted, from the snapshot in a cache.
    #[track_caller]
    pub fn boot_console(&self, cache: &Path) -> String {
        let manifest = self.file("manifest.json");
        let key = manifest["about"]["machine"]["snapshot"].as_str().expect("a restored machine");
        let path = cache.join("snapshots").join(key).join("console");
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}
