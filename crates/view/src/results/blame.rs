// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset blame --json` prints.

use bundle::Bundle;
use lab::followed::{Account, replay_of_answer};
use sample::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use trace::{LatencyKind, Sum};

/// The whole output.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blame<'a> {
    /// Number of this format.
    schema: u32,
    /// The run.
    run: &'a str,
    /// What onset cannot see in this kernel, and why.
    missing: &'a [String],
    /// One account for each responder, in the order of the run.
    ledgers: Vec<Ledger<'a>>,
}

/// The account of one responder.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ledger<'a> {
    /// The responder that answered.
    responder: &'a str,
    /// How many samples are in the account.
    samples: u64,
    /// The shortest latency in the account.
    from_ns: Nanos,
    /// The sum of these latencies.
    total_ns: Nanos,
    /// The causes, the one with the greatest total first; they add up to `total_ns`.
    rows: Vec<LedgerRow<'a>>,
    /// The same sum, divided into the kinds of latency of the RT patch's paper.
    kinds: &'a BTreeMap<LatencyKind, Sum>,
}

/// The account of one cause.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LedgerRow<'a> {
    #[serde(flatten)]
    row: &'a trace::LedgerRow,
    /// The command that replays this sample, for a shell in the directory in which this command ran.
    replay: String,
}

impl<'a> Blame<'a> {
    /// Version of the format (docs/blame.schema.json).
    pub const SCHEMA: u32 = 3;

    /// The accounts of a run, and what onset cannot see in its kernel.
    pub fn of(bundle: &'a Bundle, accounts: &'a [Account], missing: &'a [String]) -> Self {
        let ledgers = accounts.iter().map(|account| Ledger::of(bundle, account)).collect();
        Blame { schema: Self::SCHEMA, run: bundle.manifest().run.as_str(), missing, ledgers }
    }
}

impl<'a> Ledger<'a> {
    fn of(bundle: &Bundle, Account { responder, report }: &'a Account) -> Self {
        let row = |row: &'a trace::LedgerRow| {
            let replay = replay_of_answer(bundle.path(), responder, row.max_trigger);
            LedgerRow { row, replay }
        };
        Ledger {
            responder,
            samples: report.samples,
            from_ns: report.from_ns,
            total_ns: report.total_ns,
            rows: report.rows.iter().map(row).collect(),
            kinds: &report.kinds,
        }
    }
}
