// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset tune …`

use super::StoreArgument;
use clap::{Args, Subcommand};
use experiment::Load;
use hunt::Budget;
use sample::Nanos;
use std::path::PathBuf;

/// `onset tune`, alone or with what to do.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Tune {
    /// What to do. Without it the command prints the plan, and changes nothing.
    #[command(subcommand)]
    pub command: Option<TuneCommand>,
    /// The plan.
    #[command(flatten)]
    pub plan: TunePlan,
}

/// The options of the plan.
#[derive(Debug, Args)]
pub struct TunePlan {
    /// Which CPUs are measured.
    #[command(flatten)]
    pub cpus: CpusArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the proposed changes as a plan, which `onset tune apply --plan` carries out, here or on other machines.
    #[arg(short, long, value_name = "PLAN")]
    pub output: Option<PathBuf>,
}

/// Which CPUs are measured.
#[derive(Debug, Args)]
pub struct CpusArgument {
    /// The CPUs on which somebody waits for answers, as a list (1-2,5). Proposals keep other work away from them.
    /// [default: the last CPU that is online]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
}

/// Where the journal is.
#[derive(Debug, Args)]
pub struct JournalArgument {
    /// The directory of the journal, on a disk that keeps it when the power fails.
    #[arg(long, value_name = "DIR", default_value = machine::journal::DIRECTORY)]
    pub journal: PathBuf,
}

/// The commands of `onset tune`.
#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// Change settings of this machine. Each change is in a journal before it is made, and `onset tune undo` takes all
    /// of them back.
    Apply(TuneApply),
    /// Show what each knob does to the answers of this machine, or of a kernel in the rig (a virtual machine), and what
    /// it costs: knob by knob, and together.
    Prove(TuneProve),
    /// Show what is changed, and whether it still is.
    Status {
        /// Where the journal is.
        #[command(flatten)]
        journal: JournalArgument,
        /// Print a unit of systemd that undoes at boot what a power failure left, for you to install.
        #[arg(long)]
        unit: bool,
    },
    /// Take all changes back, the last one first. A setting that somebody else has changed since keeps its value.
    Undo {
        /// Where the journal is.
        #[command(flatten)]
        journal: JournalArgument,
    },
}

/// `onset tune prove …`
#[derive(Debug, Args)]
pub struct TuneProve {
    /// A knob and its value, or a knob alone for the proposed value. May be repeated. This machine proves knobs that
    /// take effect at once, the rig those that take effect at boot, too. [default: with --all, all of them]
    #[arg(long = "knob", value_name = "NAME=VALUE", required_unless_present = "all")]
    pub knobs: Vec<String>,
    /// All knobs in the rig, with the value that is proposed, or that guides to tuning name.
    #[arg(long, conflicts_with = "knobs", requires = "flavours")]
    pub all: bool,
    /// Screen first in the rig, as this machine does by itself: see what a quiet guest answers with each knob, and
    /// measure in pairs groups of the knobs that change nothing there. Only the knobs of a group with an effect, and
    /// those that change a quiet guest, get pairs alone.
    #[arg(long, requires = "flavours")]
    pub screen: bool,
    /// Hunt at the end for the latest answer in the rig, as long without a change as with all helping knobs: a time
    /// (5min) or a number of trials (200trials). [default: no hunt]
    #[arg(long, value_name = "BUDGET", value_parser = str::parse::<Budget>, requires = "flavours")]
    pub hunt: Option<Budget>,
    /// How many guests of the rig run at once. [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), requires = "flavours")]
    pub jobs: Option<u16>,
    /// Prove in the rig instead: the flavour (a kernel of the cache and boot options) without the knobs. May be
    /// repeated. [default: this machine]
    #[arg(long = "flavour", value_name = "FLAVOUR", conflicts_with_all = ["block", "cpus", "journal"])]
    pub flavours: Vec<String>,
    /// The load (background work).
    #[arg(long, default_value_t = Load::Mixed)]
    pub load: Load,
    /// Whose answers are to come sooner, and by which statistic: RESPONDER.STATISTIC. On this machine the responder is
    /// a probe (as in `onset measure`) or one of its series; `task` is the probe periodic. [default: periodic.p99, in
    /// the rig task.p99]
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<String>,
    /// How many pairs: of blocks of this machine, or of guests, each pair with another seed. With fewer than six no
    /// effect can be told from chance. [default: 50, in the rig 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pairs: Option<u16>,
    /// How long one block of this machine is measured. Each pair has two blocks.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::followed::working_time)]
    pub block: Nanos,
    /// Which CPUs of this machine are measured.
    #[command(flatten)]
    pub cpus: CpusArgument,
    /// Where the journal is.
    #[command(flatten)]
    pub journal: JournalArgument,
    /// Where bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Write the proof as a page, too: before and after, knob by knob, and the costs.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
}

/// `onset tune apply …`
#[derive(Debug, Args)]
pub struct TuneApply {
    /// The file of a plan. [default: what `onset tune` proposes; with --knob, no more than the knobs that it names]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Only what takes effect at once: `runtime`. [default: boot parameters, too]
    #[arg(long, value_name = "WHAT", value_parser = ["runtime"], hide_possible_values = true)]
    pub only: Option<String>,
    /// A knob and its value, or a knob alone for the proposed value. May be repeated. It goes before the plan.
    /// [default: the knobs of the plan]
    #[arg(long = "knob", value_name = "NAME=VALUE")]
    pub knobs: Vec<String>,
    /// Only the knobs of which a proof on this machine shows that they help towards this goal: RESPONDER.STATISTIC <
    /// TIME, as in 'task.max < 100us'. The proofs are of the measured CPUs, beside the load of the newest one.
    /// [default: what the plan says, proven or not]
    #[arg(long, value_name = "GOAL", conflicts_with_all = ["plan", "knobs"])]
    pub goal: Option<String>,
    /// What the knobs may cost, each and together, if there is a goal: 'throughput > -5%'. [default: anything]
    #[arg(long, value_name = "COST", requires = "goal")]
    pub cost: Option<String>,
    /// Where the proofs and their runs are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Which CPUs are measured.
    #[command(flatten)]
    pub cpus: CpusArgument,
    /// Where the journal is.
    #[command(flatten)]
    pub journal: JournalArgument,
}
