// SPDX-License-Identifier: GPL-2.0-or-later
//! Options of the commands that run something once more and look inside.

use super::StoreArgument;
use crate::experiment::Load;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use trace::{Order, WindowKind};

/// `onset windows …`
#[derive(Debug, Args)]
pub struct Windows {
    /// An experiment's file, or a run: the beginning of its name, `latest`, or the path of its bundle.
    #[arg(value_name = "EXPERIMENT|RUN")]
    pub subject: String,
    /// Only this flavour, or all flavours of this kernel.
    #[arg(long)]
    pub flavour: Option<String>,
    /// Only this load.
    #[arg(long)]
    pub load: Option<Load>,
    /// Only windows of this kind; may be repeated.
    #[arg(long = "kind")]
    pub kinds: Vec<Kind>,
    /// What comes first.
    #[arg(long = "by", value_enum, default_value_t = By::Longest)]
    pub by: By,
    /// How many stacks of each kind.
    #[arg(long, default_value = "10")]
    pub top: NonZeroUsize,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A kind of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
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

/// By what windows are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The longest single window.
    Longest,
    /// All windows of one stack together.
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
