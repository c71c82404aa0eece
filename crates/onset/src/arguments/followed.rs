// SPDX-License-Identifier: GPL-2.0-or-later
//! Options of the commands that replay a run and watch the kernel while it runs.

use super::{Sharing, StoreArgument, at_least_one};
use clap::{Args, ValueEnum};
use experiment::{Flavour, Load};
use hunt::Budget;
use lab::followed::Choice;
use sample::{Nanos, ParseDurationError, SeriesName};
use stats::{Quantile, UnknownQuantile};
use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use trace::{Order, WindowKind};

/// What the command replays and watches.
#[derive(Debug, Args)]
pub struct Cells {
    /// The file of an experiment, or a run: the beginning of its name, `latest`, or the path of its bundle.
    #[arg(value_name = "EXPERIMENT|RUN")]
    pub subject: String,
    /// Only this flavour (a kernel and boot options), or all flavours of this kernel. [default: all flavours]
    #[arg(long)]
    pub flavour: Option<String>,
    /// Only this load. [default: all loads]
    #[arg(long)]
    pub load: Option<Load>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
}

/// `onset windows …`
#[derive(Debug, Args)]
pub struct Windows {
    /// What the command watches.
    #[command(flatten)]
    pub cells: Cells,
    /// Only windows of this kind (a window is a stretch in which something is off). May be repeated. [default: all
    /// kinds]
    #[arg(long = "kind")]
    pub kinds: Vec<Kind>,
    /// By what the windows are ranked.
    #[arg(long = "by", value_enum, default_value_t = By::Longest)]
    pub by: By,
    /// How many call stacks the command shows of each kind.
    #[arg(long, default_value = "10")]
    pub top: NonZeroUsize,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `onset atlas …`
#[derive(Debug, Args)]
pub struct Atlas {
    /// The flavour: a kernel of the cache and boot options.
    #[arg(long, default_value = "6.12 preempt=none")]
    pub flavour: Flavour,
    /// A stressor of stress-ng, by its name. May be repeated. [default: all that can tell something in a guest]
    #[arg(long = "stressor", value_name = "NAME")]
    pub stressors: Vec<String>,
    /// How long each stressor works, in virtual time.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = working_time)]
    pub duration: Nanos,
    /// The seed of the guest's kernel and of the stressors. The same seed makes the same atlas.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// How many guests of the rig run at once. [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The directory of the atlas. If it holds this very atlas already, onset goes on with it. [default: a directory
    /// among the bundles, named after the flavour]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How the work is shared.
    #[command(flatten)]
    pub sharing: Sharing,
    /// How many places the command shows of each kind of stretches.
    #[arg(long, default_value = "20")]
    pub top: NonZeroUsize,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A time that a stressor can work in.
pub(super) fn working_time(text: &str) -> Result<Nanos, String> {
    let range = Nanos::from_millis(10)..=Nanos::from_secs(60);
    let time: Nanos = text.parse().map_err(|e: ParseDurationError| e.to_string())?;
    if range.contains(&time) { Ok(time) } else { Err("it is from 10ms to 60s".into()) }
}

/// `onset bound …`
#[derive(Debug, Args)]
pub struct Bound {
    /// What the command watches.
    #[command(flatten)]
    pub cells: Cells,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A kind of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "they are the words of the field")]
pub enum Kind {
    /// Interrupts are masked.
    IrqsOff,
    /// No other task gets the CPU.
    PreemptOff,
    /// Softirqs wait.
    BhOff,
    /// The task may not move to another CPU.
    MigrationOff,
}

impl From<Kind> for WindowKind {
    fn from(kind: Kind) -> WindowKind {
        match kind {
            Kind::IrqsOff => WindowKind::IrqsOff,
            Kind::PreemptOff => WindowKind::PreemptOff,
            Kind::BhOff => WindowKind::BhOff,
            Kind::MigrationOff => WindowKind::MigrationOff,
        }
    }
}

/// How windows are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// By the longest single window of each call stack.
    Longest,
    /// By the time of all windows of each call stack together.
    Total,
}

impl From<By> for Order {
    fn from(by: By) -> Order {
        match by {
            By::Longest => Order::Longest,
            By::Total => Order::Total,
        }
    }
}

/// The run or the find whose latencies are meant.
#[derive(Debug, Args)]
pub struct Latencies {
    /// A run (the beginning of its name, `latest`, or the path of its bundle), or the file of a find.
    #[arg(value_name = "RUN|FIND")]
    pub run: String,
    /// Only latencies of this responder, or of this series of a probe. [default: all of them]
    #[arg(long = "responder", value_name = "NAME", visible_alias = "series")]
    pub series: Option<SeriesName>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
}

/// `onset explain …`
#[derive(Debug, Args)]
pub struct Explain {
    /// The run or the find.
    #[command(flatten)]
    pub latencies: Latencies,
    /// The latencies of it.
    #[command(flatten)]
    pub choice: Explained,
    /// Another run of the same costs: show what each function executes more than there, or less. Only for runs of the
    /// probe `cost`.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["sample", "worst"])]
    pub against: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The latencies that the command explains.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Explained {
    /// Explain the answers to the trigger with this number, or the event of a probe with this number. [default: the
    /// longest latency of the run]
    #[arg(long, value_name = "N")]
    pub sample: Option<u64>,
    /// Explain this many of the longest latencies. [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub worst: Option<NonZeroUsize>,
}

impl Explained {
    /// The choice of the user.
    pub fn choice(&self) -> Option<Choice> {
        let worst = self.worst.map(|n| Choice::Worst(n.get()));
        self.sample.map(Choice::Trigger).or(worst)
    }
}

/// `onset blame …`
#[derive(Debug, Args)]
pub struct Blame {
    /// The run: the beginning of its name, `latest`, or the path of its bundle.
    pub run: String,
    /// Only latencies of at least this: a quantile of each responder as in p99, a duration as in 50us, or `all`.
    #[arg(long, default_value = "p99")]
    pub above: Above,
    /// Only latencies of this responder, or of this series of a probe. [default: all of them]
    #[arg(long = "responder", value_name = "NAME", visible_alias = "series")]
    pub series: Option<SeriesName>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The shortest latency that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// All latencies count.
    All,
    /// Latencies from this quantile of each responder on.
    Quantile(Quantile),
    /// Latencies from this one on.
    Latency(Nanos),
}

impl fmt::Display for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Above::All => f.write_str("0 ns"),
            Above::Quantile(quantile) => quantile.fmt(f),
            Above::Latency(latency) => latency.fmt(f),
        }
    }
}

impl FromStr for Above {
    type Err = String;

    fn from_str(text: &str) -> Result<Above, String> {
        if text == "all" {
            return Ok(Above::All);
        }
        if text.starts_with('p') {
            return text.parse().map(Above::Quantile).map_err(|e: UnknownQuantile| e.to_string());
        }
        let latency = text.parse().map(Above::Latency);
        latency
            .map_err(|e| format!("{e}; write all, a quantile as in p99, or a duration as in 50us"))
    }
}

/// `onset replay …`
#[derive(Debug, Args)]
pub struct Replay {
    /// The run or the find.
    #[command(flatten)]
    pub latencies: Latencies,
    /// The longest latency of the trigger, or of the event of a probe, with this number. [default: the longest latency
    /// of the run]
    #[arg(long, value_name = "N", conflicts_with = "worst")]
    pub sample: Option<u64>,
    /// The N-th longest latency of the run. [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub worst: Option<NonZeroUsize>,
    /// How many times the command replays the latency.
    #[arg(long, value_name = "N", default_value = "1")]
    pub times: NonZeroU64,
    /// Write a trace of what the guest did around the latency, for the Perfetto UI. [default: no trace]
    #[arg(long, value_name = "FILE.pftrace")]
    pub trace: Option<PathBuf>,
    /// Write the pins around the latency as a value change dump, for PulseView or GTKWave. [default: no dump]
    #[arg(long, value_name = "FILE.vcd")]
    pub vcd: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `onset census …`
#[derive(Debug, Args)]
pub struct Census {
    /// The run or the find.
    #[command(flatten)]
    pub latencies: Latencies,
    /// The longest latency of the trigger with this number. [default: the longest latency of the run]
    #[arg(long, value_name = "N")]
    pub sample: Option<u64>,
    /// How long the window is. Its middle is the latency's trigger.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub around: Nanos,
    /// How far apart two triggers of the window are. Each has a trial of its own. A busy guest executes an instruction
    /// in a nanosecond, unless its experiment says otherwise (icount_shift).
    #[arg(long, value_name = "TIME", default_value = "10ns")]
    pub every: Nanos,
    /// How many trials run at once. [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The directory for the results of shards. [default: a directory among the bundles, named after find and window]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// How the work is shared.
    #[command(flatten)]
    pub sharing: Sharing,
    /// Draw the latency over the instant of the trigger. [default: no picture]
    #[arg(long, value_name = "FILE.svg")]
    pub picture: Option<PathBuf>,
    /// Write the latency of each instant as comma-separated values: at_ns, latency_ns. [default: no file]
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `onset minimise …`
#[derive(Debug, Args)]
pub struct Minimise {
    /// The run or the find.
    #[command(flatten)]
    pub latencies: Latencies,
    /// The longest latency of the trigger with this number. [default: the longest latency of the run]
    #[arg(long, value_name = "N")]
    pub sample: Option<u64>,
    /// First try smaller loads: hunt for a short time in an idle guest, and under each part of the load, for a latency
    /// that is as long.
    #[arg(long)]
    pub load: bool,
    /// How long the command hunts under each load: a time (5min) or a number of trials (200trials).
    #[arg(long, default_value = "200trials", requires = "load")]
    pub budget: Budget,
    /// The file to write. [default: NAME.min.json beside the find NAME.json, and RESPONDER.min.json for a run]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_all_a_quantile_or_a_duration_with_its_unit() {
        assert_eq!("all".parse(), Ok(Above::All));
        assert_eq!("p99.9".parse(), Ok(Above::Quantile(Quantile::P999)));
        assert_eq!("50us".parse(), Ok(Above::Latency(Nanos(50_000))));
        for (wrong, said) in [("p98", "p99.9"), ("50", "50us"), ("", "50us")] {
            let why = wrong.parse::<Above>().expect_err(wrong);
            assert!(why.contains(said), "{why}");
        }
    }
}
