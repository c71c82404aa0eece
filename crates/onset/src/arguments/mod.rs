// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line. Man page and completions are generated from it.

mod followed;
mod measure;

pub use followed::{Above, Blame, Bound, Cells, Explain, Latencies, Minimise, Replay, Windows};
pub use measure::{How, Measure};

use crate::experiment::Load;
use crate::hunt::{Budget, Strategy};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXIT_CODES: &str = "Exit status:
  0   every limit was kept
  1   a limit was exceeded, or a regression found
  2   wrong usage or a wrong experiment
  3   inconclusive or invalid
  69  something outside failed: no QEMU, no kernel, a guest that does not boot
  130 interrupted";

const COMPARE_EXAMPLES: &str = "Exit status: 0; 1 where a --fail-if holds; 3 where one has no number to hold, or the runs have no responder in common.

Examples:
  onset compare 20261125-0801 latest
  onset compare before/ after/ --fail-if 'task.p99 > +5%' --fail-if 'hardirq.max > 50us'";

/// Measures, explains and compares how late Linux answers.
#[derive(Debug, Parser)]
#[command(name = "onset", version, after_help = EXIT_CODES, infer_subcommands = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The same error with the command that a mistyped one may have meant.
pub fn explained(mut error: clap::Error) -> clap::Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    let known = Arguments::command();
    let alike = known.get_subcommands().map(|c| c.get_name());
    let nearest = alike.min_by_key(|name| strsim::damerau_levenshtein(name, &typed));
    if let Some(name) = nearest.filter(|name| strsim::damerau_levenshtein(name, &typed) <= 2) {
        let suggested = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, suggested);
    }
    error
}

/// A number from 1 up.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("it is a whole number from 1 up, not {text:?}"))
}

/// A seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it is a whole number from 0 to {}, not {text:?}", u64::MAX))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what this machine can and cannot do, and how to get what is missing.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Manage the kernels that guests boot.
    #[command(subcommand)]
    Kernels(Kernels),
    /// Run experiments: every flavour under every load.
    Run(Run),
    /// Measure with one probe, on this machine or in the rig.
    Measure {
        /// What is measured.
        #[command(subcommand)]
        probe: Measure,
    },
    /// Search for the worst answer of one flavour, under one load or several, in the rig, instead of waiting for it.
    Hunt(Hunt),
    /// List the runs of a store, newest first.
    List {
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one run.
    Show {
        /// The run: the beginning of its name, `latest`, or the path of its bundle.
        run: String,
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
        /// Print the manifest as JSON.
        #[arg(long)]
        json: bool,
        /// Compute everything again from the samples and compare.
        #[arg(long)]
        verify: bool,
    },
    /// Compare two runs, responder by responder, those that got worst first.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare {
        /// The run before: the beginning of its name, `latest`, or the path of its bundle.
        before: String,
        /// The run after.
        after: String,
        /// Exit with 1 where this holds, as `task.p99 > +5%`, `task.max > +20us` or `task.max > 100us`; with 3 where a run has no
        /// such number. Several times: where one of them holds.
        #[arg(long, value_name = "CONDITION")]
        fail_if: Vec<stats::Condition>,
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a self-contained HTML report of runs and hunts.
    Report {
        /// The runs; or directories of hunts.
        #[arg(required = true, value_name = "RUN|HUNT")]
        runs: Vec<String>,
        /// Run each once more and look: windows, ledgers and the worst answers explained. Runs of a machine or of a probe, which
        /// cannot be looked into, are as without it.
        #[arg(long)]
        inside: bool,
        /// The file to write.
        #[arg(short, long, default_value = "report.html")]
        output: PathBuf,
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Tell where the time of single latencies went: run them again, and look.
    Explain(Explain),
    /// Account for all the time of a run's latencies, by cause: run it again, and look.
    Blame(Blame),
    /// Have one latency again, to the instruction.
    Replay(Replay),
    /// Find the stretches in which a guest runs with interrupts or preemption off, ranked, with the stacks that open them.
    Windows(Windows),
    /// Put the longest stretches of a run together: how late a task could be scheduled, beside how late it was.
    Bound(Bound),
    /// Take away the triggers that a latency does not need.
    Minimise(Minimise),
    /// Write the man page and the shell completions into a directory.
    #[command(hide = true)]
    Documentation {
        /// The directory.
        directory: PathBuf,
    },
}

/// Where bundles are.
#[derive(Debug, Args)]
pub struct StoreArgument {
    /// The directory of the bundles.
    #[arg(long, env = "ONSET_STORE", default_value = "onset-runs", value_name = "DIR")]
    pub store: PathBuf,
}

/// `onset kernels …`
#[derive(Debug, Subcommand)]
pub enum Kernels {
    /// List the kernels in the cache.
    List {
        /// Those that Debian's archive has, instead: the newest of each series, and what there is of it.
        #[arg(long)]
        available: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch the newest kernel of a series (7.3, 7.3-rt) from Debian's archive, and build its driver: no root is needed, and
    /// the machine's own packages and package lists stay as they are.
    Fetch {
        /// The series; several may be given. The last one is `newest`, or `newest-rt`.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove kernels from the cache, with their headers and drivers.
    Remove {
        /// Their names.
        #[arg(required_unless_present = "build_roots")]
        names: Vec<String>,
        /// Also the compilers of other Debian releases that modules were built with; they are fetched again when needed.
        #[arg(long)]
        build_roots: bool,
    },
    /// Take a kernel out of packages of Debian, or of one that derives from it: the image, its modules and, for the driver,
    /// its headers and kbuild.
    AddDeb {
        /// The packages.
        #[arg(required = true)]
        debs: Vec<PathBuf>,
        /// The name it gets; by default its series.
        #[arg(long)]
        name: Option<String>,
        /// Replace the kernel of that name, if there is one.
        #[arg(long)]
        replace: bool,
    },
    /// Take a kernel that you built.
    Add {
        /// The name it gets: starts with a letter or digit and has letters, digits and .-_+~.
        #[arg(long)]
        name: String,
        /// Replace the kernel of that name, if there is one.
        #[arg(long)]
        replace: bool,
        /// The bzImage.
        #[arg(long)]
        image: PathBuf,
        /// Its modules: …/lib/modules/RELEASE.
        #[arg(long)]
        modules: PathBuf,
        /// A tree to build modules against (the kernel's build directory).
        #[arg(long)]
        headers: Option<PathBuf>,
    },
}

/// `onset run …`
#[derive(Debug, Args)]
pub struct Run {
    /// The experiments' files.
    #[arg(required = true)]
    pub experiments: Vec<PathBuf>,
    /// Replaces the experiments' seed.
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
    /// Replaces a value of the experiments, as in trigger.count=100000; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub overrides: Vec<(String, String)>,
    /// How many machines of the rig run at once; by default one per processor.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// What becomes of the runs.
    #[command(flatten)]
    pub outcome: Outcome,
}

/// `onset hunt …`
#[derive(Debug, Args)]
pub struct Hunt {
    /// The experiment whose guest and triggers are taken; by default the task and the hard handler are triggered.
    pub experiment: Option<PathBuf>,
    /// The flavour, as in "6.12 preempt=none"; not needed where the experiment has one.
    #[arg(long)]
    pub flavour: Option<String>,
    /// Only this load; may be repeated. By default every load of the experiment: each has a guest of its own, in which the hunt
    /// takes turns.
    #[arg(long = "load", value_name = "LOAD")]
    pub loads: Vec<Load>,
    /// A seed of the guest's own random numbers; may be repeated, for as many guests of each load: the same load with another
    /// history. By default the experiment's.
    #[arg(long = "guest-seed", value_name = "N")]
    pub guest_seeds: Vec<u32>,
    /// Whose worst answer is looked for; may be repeated. By default every responder of the experiment.
    #[arg(long = "responder", value_name = "NAME")]
    pub responders: Vec<String>,
    /// When to stop: after a time (5min, 30s), or after so many trials (200trials) and no more. A hunt that finds nothing new stops
    /// earlier.
    #[arg(long, default_value = "5min", value_parser = str::parse::<Budget>)]
    pub budget: Budget,
    /// The strategies that share the time; may be repeated. By default all.
    #[arg(long = "strategy", value_name = "NAME", value_parser = str::parse::<Strategy>)]
    pub strategies: Vec<Strategy>,
    /// Of everything random; the same seed finds the same.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// How many machines of the rig run at once; by default one per processor. More than 8 are of no use: a hunt makes 8 trials at
    /// once at the most.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The hunt's directory; by default a new one among the bundles. One that holds this very hunt is gone on with.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What becomes of runs.
#[derive(Debug, Args)]
pub struct Outcome {
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Write a report of the runs to this file too.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

impl Run {
    /// All replacements in the order of the experiment's own, the seed last.
    pub fn replacements(&self) -> Vec<(String, String)> {
        let seed = self.seed.map(|seed| ("seed".to_string(), seed.to_string()));
        self.overrides.iter().cloned().chain(seed).collect()
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, as in trigger.count=100000")?;
    Ok((key.trim().to_string(), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_parser_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_seed_is_one_more_replacement() {
        let words = ["onset", "run", "x.toml", "--set", "trigger.count=5", "--seed", "9"];
        let Command::Run(run) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("not a run");
        };
        let expected = [("trigger.count", "5"), ("seed", "9")];
        assert!(run.replacements().iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(expected));
    }

    #[test]
    fn a_replacement_without_a_value_is_refused_with_an_example() {
        let error =
            Arguments::try_parse_from(["onset", "run", "x.toml", "--set", "seed"]).unwrap_err();
        assert!(error.to_string().contains("trigger.count=100000"));
    }
}
