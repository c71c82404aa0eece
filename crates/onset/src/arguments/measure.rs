// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset measure …`. The command makes an experiment from the options: each option is a key of it
//! (docs/experiments.md). The experiment checks the values; this module knows only their number and kind. The options
//! of a probe come from the definition of the probe.

use super::Outcome;
use agent::{ALL_LOADS, Load};
use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, value_parser,
};
use probes::{Definition, Key, Kind, PROBES};
use std::path::PathBuf;

/// A probe, and the options that the user gave.
#[derive(Debug)]
pub struct Measure {
    /// The name of the probe.
    pub probe: &'static str,
    /// The keys of its section that the user gave, in the order of its definition.
    pub keys: Vec<(&'static str, Given)>,
    /// How it is measured.
    pub how: How,
}

/// The value of a key, as the user typed it.
#[derive(Debug)]
pub enum Given {
    /// A number.
    Number(u64),
    /// A time, a word or another text.
    One(String),
    /// Several values of the same kind.
    Several(Vec<String>),
    /// True.
    Set,
}

impl Given {
    fn of(key: &Key, matches: &ArgMatches) -> Option<Given> {
        match key.kind {
            Kind::Count | Kind::Number(..) => {
                matches.get_one(key.name).map(|number| Given::Number(*number))
            }
            Kind::Times(_) | Kind::Words(_) => {
                let all = matches.get_many::<String>(key.name)?;
                Some(Given::Several(all.cloned().collect()))
            }
            Kind::Time(_) | Kind::Word(_) | Kind::Text(_) => {
                matches.get_one::<String>(key.name).cloned().map(Given::One)
            }
            Kind::Flag => matches.get_flag(key.name).then_some(Given::Set),
        }
    }
}

impl FromArgMatches for Measure {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Measure, Error> {
        let named = matches.subcommand().and_then(|(name, matches)| {
            Some((PROBES.into_iter().find(|probe| probe.name == name)?, matches))
        });
        let (probe, matches) = named.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let given = |key: &Key| Some((key.name, Given::of(key, matches)?));
        let keys = options(probe).filter_map(given).collect();
        Ok(Measure { probe: probe.name, keys, how: How::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Measure::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Measure {
    fn augment_subcommands(command: Command) -> Command {
        let of = |probe: &'static Definition| {
            let command = Command::new(probe.name).args(options(probe).map(option));
            How::augment_args(command).about(probe.about)
        };
        command.subcommands(PROBES.map(of))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Measure::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        PROBES.iter().any(|probe| probe.name == name)
    }
}

fn loads() -> String {
    let names = ALL_LOADS.map(Load::name).join(", ");
    format!(
        "Background work: {names}. The command measures under several loads one after the other. [default: idle]"
    )
}

/// The keys that are options of the probe's own; every probe has a duration.
fn options(probe: &'static Definition) -> impl Iterator<Item = &'static Key> {
    probe.keys.iter().filter(|key| key.name != "duration")
}

/// `--method` of `methods`, `--rate HZ` of `rate_hz`.
fn option(key: &'static Key) -> Arg {
    let (name, unit) = key.option();
    let option = Arg::new(key.name).long(name.clone()).help(help(key));
    let named = |name: &str| option.clone().value_name(name.replace('-', "_").to_uppercase());
    match key.kind {
        Kind::Flag => option.action(ArgAction::SetTrue),
        Kind::Count | Kind::Number(..) => {
            named(unit.unwrap_or(&name)).value_parser(value_parser!(u64))
        }
        Kind::Word(_) | Kind::Text(_) => named(&name),
        Kind::Words(_) => named(&name).action(ArgAction::Append).value_delimiter(','),
        Kind::Time(_) => named("time").allow_hyphen_values(true),
        Kind::Times(_) => {
            named("time").action(ArgAction::Append).value_delimiter(',').allow_hyphen_values(true)
        }
    }
}

fn help(key: &Key) -> String {
    let help = match key.kind {
        Kind::Word(words) | Kind::Words(words) => key.help.replace("{}", &words().join(", ")),
        _ => key.help.into(),
    };
    match key.kind {
        Kind::Flag => help,
        _ => format!("{help} [default: {}]", key.default),
    }
}

/// The options that all probes share.
#[derive(Debug, Args)]
pub struct How {
    /// Scheduling of the measuring tasks: fifo:90, rr:50, deadline:RUNTIME,DEADLINE,PERIOD, other.
    /// [default: fifo:90; of cost other]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// The CPUs to measure, for example 0-1,3. [default: 0]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Background work.
    #[arg(long = "load", value_name = "LOAD", value_delimiter = ',', help = loads())]
    pub loads: Vec<String>,
    /// Let the load run on the measured CPUs too. [default: the load runs only on the other CPUs]
    #[arg(long)]
    pub load_on_measured_cpus: bool,
    /// A directory on the disk that the disk load keeps busy. [default: the disk load writes to memory]
    #[arg(long, value_name = "DIR")]
    pub load_disk: Option<PathBuf>,
    /// How long the load runs before measuring begins. [default: 200ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warm_up: Option<String>,
    /// How long the whole measurement takes, for example 30s or 1h, instead of --count. All series share this time.
    /// [default: --count; for noise 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Keep the CPUs out of deep idle states under any scheduling policy. [default: only under a real-time policy on
    /// this machine, as cyclictest does]
    #[arg(long)]
    pub pm_qos: bool,
    /// Let the CPUs go into deep idle states, as they do when nobody measures.
    #[arg(long, conflicts_with = "pm_qos")]
    pub no_pm_qos: bool,
    /// A limit: STATISTIC=TIME for every series, for example max=100us, or SERIES.STATISTIC=TIME for one. On misses of
    /// a deadline: 'miss(100us)=0', 'miss(100us)=1 in 10000', 'consecutive(100us)=2' or 'firm(100us)=9 of 10'. May be
    /// repeated. [default: no limit]
    #[arg(long = "limit", value_name = "LIMIT")]
    pub limits: Vec<String>,
    /// Measure in the rig (a virtual machine) instead, with this flavour: a kernel of the cache and boot options, as in
    /// "6.12 preempt=none". May be repeated. [default: this machine]
    #[arg(long = "flavour", value_name = "FLAVOUR")]
    pub flavours: Vec<String>,
    /// What the command writes and prints.
    #[command(flatten)]
    pub outcome: Outcome,
    /// For the probe cycles: your program and its arguments, behind --. [default: none]
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}
