// SPDX-License-Identifier: GPL-2.0-or-later
//! The options of the live instrument: the generator of triggers, and what is on the other end of its line.

use super::{Port, StoreArgument};
use clap::Args;
use experiment::Load;
use lab::live::{Duty, Frequency};
use rt::Policy;
use sample::{Nanos, Responder};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// `onset generator …`
#[derive(Debug, Args)]
pub struct Generator {
    /// The flavour: a kernel of the cache and boot options, as in "6.12 preempt=none".
    #[arg(long)]
    pub flavour: String,
    /// The load (background work) of the guest.
    #[arg(long, value_name = "LOAD", default_value = "idle")]
    pub load: Load,
    /// A responder (a mechanism that answers). May be repeated. [default: the eight with a data pin, as far as the
    /// kernel has them]
    #[arg(long = "responder", value_name = "NAME")]
    pub responders: Vec<String>,
    /// The loopback address on which the generator listens. Port 0 stands for a free port; the command prints which.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7010")]
    pub listen: SocketAddr,
    /// Write all triggers to this file after each run, as an experiment: `onset run` of the file gives the same
    /// samples. [default: no log]
    #[arg(long, value_name = "FILE.toml")]
    pub log: Option<PathBuf>,
}

/// `onset live …`
#[derive(Debug, Args)]
pub struct Live {
    /// Where the generator is: HOST:PORT, or the path of a serial device as in /dev/ttyACM0.
    #[arg(value_name = "ADDRESS:PORT|DEVICE")]
    pub place: String,
    /// How often the generator triggers, as in 16Hz or 2kHz. [default: what the generator is set to]
    #[arg(long)]
    pub frequency: Option<Frequency>,
    /// The time from one trigger to the next, instead of a frequency. [default: what the generator is set to]
    #[arg(long, value_name = "TIME", conflicts_with = "frequency")]
    pub period: Option<Nanos>,
    /// The share of a period during which the line is high. [default: 10% if you give a frequency or a period, else
    /// what the generator is set to]
    #[arg(long, value_name = "PERCENT")]
    pub duty: Option<Duty>,
    /// Each trigger is late by a random time up to this. [default: what the generator is set to]
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<Nanos>,
    /// How many measurements the generator sends at once. [default: what the generator is set to]
    #[arg(long, value_name = "N")]
    pub batch: Option<u64>,
    /// A responder (a mechanism that answers) to measure. May be repeated. [default: every responder]
    #[arg(long = "responder", value_name = "NAME")]
    pub responders: Vec<Responder>,
    /// Stop after so many triggers. [default: when you stop it]
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,
    /// Write all latencies to a bundle in the store.
    #[arg(long)]
    pub record: bool,
    /// Write each latency to this file while it comes, as a table. [default: no file]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
    /// Print the numbers as JSON at the end.
    #[arg(long)]
    pub json: bool,
}

/// `onset respond …`
#[derive(Debug, Args)]
pub struct Respond {
    /// Load the driver for this port, and unload it at the end: parport0, parport:ADDRESS:IRQ, or the line of a GPIO
    /// chip that triggers, as in gpiochip0:17. [default: the driver that is loaded]
    #[arg(long, value_name = "PORT")]
    pub port: Option<Port>,
    /// The lines of the same GPIO chip that answer, with commas: one for each responder, in the order in which you name
    /// them. [default: none]
    #[arg(long = "answer", value_name = "LINE", value_delimiter = ',', requires = "port")]
    pub answers: Vec<u16>,
    /// A responder (a mechanism that answers). May be repeated; task has to be one of them. [default: on GPIO lines
    /// task, on a parallel port every responder that the kernel has]
    #[arg(long = "responder", value_name = "NAME", requires = "port")]
    pub responders: Vec<Responder>,
    /// The file of the driver's module. [default: the module that is installed, by modprobe]
    #[arg(long, value_name = "FILE", requires = "port")]
    pub module: Option<PathBuf>,
    /// Scheduling of the task: fifo:80, rr:50, other.
    #[arg(long, value_name = "POLICY", default_value = "fifo:80")]
    pub policy: Policy,
    /// The CPU of the task.
    #[arg(long, value_name = "CPU", default_value_t = 0)]
    pub cpu: u32,
    /// Your program and its arguments, behind --: it waits on /dev/onset and answers (docs/own-program.md). [default:
    /// onset's own task]
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// `onset serve …`
#[derive(Debug, Args)]
pub struct Serve {
    /// The address of the page. Port 0 stands for a free port; the command prints which. On an address that other
    /// machines can reach, the page has a token, which the command prints.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7080")]
    pub listen: SocketAddr,
    /// Where the bundles are.
    #[command(flatten)]
    pub store: StoreArgument,
}
