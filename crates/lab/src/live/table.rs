// SPDX-License-Identifier: GPL-2.0-or-later
//! The latencies of a conversation as a table that grows while they come (CSV, RFC 4180).

use sample::Sample;
use std::fmt::Write;

/// As `onset export --csv` has it, without the instructions, which no generator counts.
pub const HEAD: &str = "responder,trigger,at_ns,latency_ns\n";

/// Writes the line of a latency. `names` are those of the series.
pub fn row(lines: &mut String, sample: &Sample, names: &[&str]) {
    let Sample { series, trigger, at, latency, .. } = sample;
    let _ = writeln!(lines, "{},{trigger},{},{}", names[series.index()], at.0, latency.0);
}
