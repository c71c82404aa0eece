// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line. The man page and the shell completions are generated from it.

mod breed;
mod examples;
mod followed;
mod live;
mod measure;
mod patch;
mod port;
mod sharing;
mod tune;

pub use breed::Breed;
pub use examples::command;
pub use followed::{
    Above, Atlas, Blame, Bound, Cells, Census, Explain, Latencies, Minimise, Replay, Windows,
};
pub use live::{Generator, Live, Respond, Serve};
pub use measure::{Given, How, Measure};
pub use patch::{Patch, PatchBuild, PatchCommand, PatchProve};
pub use port::Port;
pub use sharing::{Merge, Sharing};
pub use tune::{CpusArgument, JournalArgument, Tune, TuneApply, TuneCommand, TunePlan, TuneProve};

use clap::error::{ContextKind, ContextValue};
use clap::{Args, FromArgMatches, Parser, Subcommand};
use experiment::Load;
use hunt::{Budget, StrategyName};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use view::screen::Colour;

/// Measures, explains and compares how long Linux takes to answer an event.
#[derive(Debug, Parser)]
#[command(name = "onset", version, infer_subcommands = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always, never.
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        default_value = "auto",
        value_name = "WHEN"
    )]
    pub color: Colour,
}

/// Reads the command line. Ends the process when the user only asks for help, and when the command line is wrong.
pub fn parsed() -> Arguments {
    let matches = command().try_get_matches().and_then(|m| Arguments::from_arg_matches(&m));
    matches.unwrap_or_else(|e| explained(e).exit())
}

/// The same error, with the command that the user may have meant by a mistyped one.
fn explained(mut error: clap::Error) -> clap::Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    let known = command();
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
    /// Check what onset can do on this machine, and say how to get the missing parts.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Check only whether this machine can make shards of the work in this directory: that it has the same onset,
        /// QEMU and kernels as the machine that began it (docs/cluster.md). [default: check everything else]
        #[arg(long, value_name = "DIR")]
        shards: Option<PathBuf>,
        /// The name of a file in the directory, which shows that it is shared. A command with --on gives it.
        /// [default: none]
        #[arg(long, value_name = "NAME", requires = "shards", hide = true)]
        sees: Option<String>,
    },
    /// Manage the cache of kernels, which the guests of the rig (virtual machines) boot.
    #[command(subcommand)]
    Kernels(Kernels),
    /// Run experiments: every flavour (kernel and boot options) under every load (background work).
    Run(Run),
    /// Measure with one probe, on this machine or in the rig (a virtual machine).
    Measure {
        /// The probe: what it measures, and how.
        #[command(subcommand)]
        probe: Measure,
    },
    /// Search the rig for the longest latency of one flavour (kernel and boot options), under one load or several.
    Hunt(Hunt),
    /// Breed loads: search for the load under which answers come latest. Loads are made of stressors of stress-ng,
    /// mixed and timed by a seed; those that reach new code or make answers later have children.
    Breed(Breed),
    /// Be a generator of triggers on the network, which `onset live` shows: a guest of the rig (a virtual machine) that
    /// is triggered as the host says, and answers.
    Generator(Generator),
    /// Show how late a machine answers while it does: tell a generator of triggers what to do, and show what it
    /// measures.
    Live(Live),
    /// Answer the triggers of a generator on this machine: be the responder `task` of the loaded driver, or start your
    /// program in its place.
    Respond(Respond),
    /// Serve a page on this machine: the runs of a store, their reports, and a live generator.
    Serve(Serve),
    /// List the runs of a store, newest first.
    List {
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the results of one run.
    Show {
        /// The run: the beginning of its name, `latest`, or the path of its bundle.
        run: String,
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
        /// Print the manifest as JSON.
        #[arg(long)]
        json: bool,
        /// Compute all figures again from the samples, and compare them with the figures in the bundle.
        #[arg(long)]
        verify: bool,
    },
    /// Compare two runs, responder by responder. The responder that got worst comes first.
    Compare {
        /// The earlier run: the beginning of its name, `latest`, or the path of its bundle.
        before: String,
        /// The later run, named in the same way.
        after: String,
        /// Exit with status 1 if this condition holds, for example `task.p99 > +5%`, `task.max > +20us` or
        /// `task.max > 100us`. Exit with status 3 if onset cannot tell: a run has no such number, is invalid or
        /// incomplete, or lost what could be beyond the bound, or the bound is within 0.1 % of a quantile. May be
        /// repeated: then one condition that holds is enough. [default: no condition]
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
        /// The runs (the beginning of a name, `latest`, or the path of a bundle), or the directories of hunts.
        #[arg(required = true, value_name = "RUN|HUNT")]
        runs: Vec<String>,
        /// Replay each run and watch it. The report then also shows windows (stretches with interrupts or preemption
        /// off), the causes of all latencies, and explanations of the longest ones. onset cannot replay a run on this
        /// machine or a run of a probe: the report shows those as without this option.
        #[arg(long)]
        inside: bool,
        /// The file to write.
        #[arg(short, long, default_value = "report.html")]
        output: PathBuf,
        /// Where the bundles are.
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Write the samples of a run for other programs.
    Export(Export),
    /// Make runs from the output of cyclictest, so that onset can compare, judge and draw them.
    Import(Import),
    /// Explain single latencies: replay them, and show where their time went. Of costs, show which functions their
    /// instructions went to.
    Explain(Explain),
    /// Replay a run, and show how much time each cause took in all its latencies.
    Blame(Blame),
    /// Replay one latency: the guest executes the same instructions again.
    Replay(Replay),
    /// Rank the stretches in which a guest runs with interrupts or preemption off, with the call stacks that open
    /// them.
    Windows(Windows),
    /// Make an atlas of a kernel: its longest stretches with interrupts or preemption off, under every stressor of
    /// stress-ng. The same command goes on with an atlas that was interrupted.
    Atlas(Atlas),
    /// Show onset's own preemption points for a stock kernel, and build kernels with and without them. A preemption
    /// point is a place at which the kernel lets a waiting task run (docs/patches.md).
    Patch(Patch),
    /// Compute a bound from the longest stretches of a run: how late the kernel could schedule a task. Show beside it
    /// how late the kernel did.
    Bound(Bound),
    /// Take a census: the latency of a trigger at each instant of a window, and so the distribution itself, without
    /// statistics.
    Census(Census),
    /// Bring the results of shards together that were made on machines without a common directory (docs/cluster.md).
    Merge(Merge),
    /// Remove the triggers that a latency does not need.
    Minimise(Minimise),
    /// Show what could be changed on this machine to make it answer sooner. `tune apply` changes it, by a journal, and
    /// `tune undo` takes it back.
    Tune(Tune),
    /// Write the man page and the shell completions into a directory.
    #[command(hide = true)]
    Documentation {
        /// The directory.
        directory: PathBuf,
    },
}

/// `onset export …`
#[derive(Debug, Args)]
pub struct Export {
    /// The run: the beginning of its name, `latest`, or the path of its bundle.
    pub run: String,
    /// Write comma-separated values: responder, trigger, at_ns, latency_ns, path_insns.
    #[arg(long, required = true)]
    pub csv: bool,
    /// The file to write. [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
}

/// `onset import …`
#[derive(Debug, Args)]
pub struct Import {
    /// Files that cyclictest --json=FILE wrote, or the output of cyclictest --histogram=400 --quiet.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The title of the run. [default: the file's name]
    #[arg(long)]
    pub title: Option<String>,
    /// A limit: STATISTIC=TIME for every thread, for example max=100us, or SERIES.STATISTIC=TIME for one. On misses of
    /// a deadline: 'miss(100us)=0' or 'miss(100us)=1 in 10000'. May be repeated. [default: no limit]
    #[arg(long = "limit", value_name = "LIMIT")]
    pub limits: Vec<String>,
    /// What becomes of the runs.
    #[command(flatten)]
    pub outcome: Outcome,
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
        /// List the kernels of Debian's archive instead: the newest of each series, and which parts of it the archive
        /// has.
        #[arg(long)]
        available: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch the newest kernel of a series (7.3, 7.3-rt) from Debian's archive, and build its driver. The command needs
    /// no root, and leaves the machine's own packages and package lists as they are.
    Fetch {
        /// The series; you may give several. `newest` and `newest-rt` stand for the newest series.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove kernels from the cache, with their headers and drivers.
    Remove {
        /// The names of the kernels, as in `onset kernels list`.
        #[arg(required_unless_present = "build_roots")]
        names: Vec<String>,
        /// Remove the build roots too: compilers of other Debian releases, which onset fetched to build modules. onset
        /// fetches them again when it needs them.
        #[arg(long)]
        build_roots: bool,
    },
    /// Add a kernel from packages of Debian, or of a distribution that derives from Debian: the packages of the image,
    /// of its modules and, for the driver, of its headers and of kbuild.
    AddDeb {
        /// The files of the packages.
        #[arg(required = true)]
        debs: Vec<PathBuf>,
        /// The name of the kernel in the cache. [default: its series]
        #[arg(long)]
        name: Option<String>,
        /// Replace the kernel of that name, if the cache has one.
        #[arg(long)]
        replace: bool,
    },
    /// Add a kernel that you built yourself.
    Add {
        /// The name of the kernel in the cache. It starts with a letter or digit and has letters, digits and .-_+~.
        #[arg(long)]
        name: String,
        /// Replace the kernel of that name, if the cache has one.
        #[arg(long)]
        replace: bool,
        /// The bzImage.
        #[arg(long)]
        image: PathBuf,
        /// The directory of its modules: …/lib/modules/RELEASE.
        #[arg(long)]
        modules: PathBuf,
        /// The kernel's build directory, against which onset builds the driver. [default: none: without the driver no
        /// responders]
        #[arg(long)]
        headers: Option<PathBuf>,
    },
}

/// `onset run …`
#[derive(Debug, Args)]
pub struct Run {
    /// The files of the experiments.
    #[arg(required = true)]
    pub experiments: Vec<PathBuf>,
    /// Replace the seed of the experiments. [default: the seed in the file]
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
    /// Replace a value of the experiments, for example trigger.count=100000. May be repeated. [default: the values in
    /// the files]
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub overrides: Vec<(String, String)>,
    /// How many guests of the rig run at once. [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Go on after an interruption: do not measure again what the store has of the same experiments, kernels and onset
    #[arg(long)]
    pub resume: bool,
    /// How the work is shared.
    #[command(flatten)]
    pub sharing: Sharing,
    /// What becomes of the runs.
    #[command(flatten)]
    pub outcome: Outcome,
}

/// `onset hunt …`
#[derive(Debug, Args)]
pub struct Hunt {
    /// The experiment from which the hunt takes its guest and its triggers. [default: a guest of --flavour and --load,
    /// in which the task and the hard interrupt handler answer]
    pub experiment: Option<PathBuf>,
    /// The flavour: a kernel of the cache and boot options, as in "6.12 preempt=none". [default: the flavour of the
    /// experiment, if it has only one]
    #[arg(long)]
    pub flavour: Option<String>,
    /// Hunt only under this load (background work). May be repeated. Each load has a guest of its own, and the hunt
    /// takes turns in them. [default: every load of the experiment]
    #[arg(long = "load", value_name = "LOAD")]
    pub loads: Vec<Load>,
    /// The seed of the guest's own random numbers. May be repeated: each seed makes one more guest for each load, with
    /// the same load and another history. [default: the seed in the experiment's [guest]]
    #[arg(long = "guest-seed", value_name = "N")]
    pub guest_seeds: Vec<u32>,
    /// The responder (the mechanism that answers) whose longest latency the hunt searches for. May be repeated.
    /// [default: every responder of the experiment]
    #[arg(long = "responder", value_name = "NAME")]
    pub responders: Vec<String>,
    /// When the hunt stops: after a time (5min, 30s), or after a number of trials (200trials). A hunt that finds
    /// nothing new stops before that. Of a hunt that is divided into shards, each shard has this budget.
    #[arg(long, default_value = "5min", value_parser = str::parse::<Budget>)]
    pub budget: Budget,
    /// Finds from which the hunt starts: a file of a find, or the directory of a hunt. May be repeated. Their triggers
    /// are fired again first, and all strategies go on from there. They have to be of guests of this hunt, made by this
    /// onset. [default: none]
    #[arg(long, value_name = "FIND")]
    pub from: Vec<PathBuf>,
    /// A strategy of the hunt. May be repeated: the strategies share the time. [default: all strategies]
    #[arg(long = "strategy", value_name = "NAME", value_parser = str::parse::<StrategyName>)]
    pub strategies: Vec<StrategyName>,
    /// The seed of everything random in the hunt. A hunt with the same seed finds the same.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// How many guests of the rig run at once. More than 8 are of no use, since a hunt makes at most 8 trials at once.
    /// [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The directory of the hunt. If it holds this very hunt already, onset goes on with it. [default: a new
    /// directory among the bundles]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// How the work is shared.
    #[command(flatten)]
    pub sharing: Sharing,
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
    /// Write an HTML report of the runs to this file too. [default: no report]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

impl Run {
    /// All replacements in the order in which they were given, the seed last.
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
