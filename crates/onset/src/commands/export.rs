// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset export`: writes the samples of a run for programs that cannot read Parquet.

use super::{open, write_out};
use crate::arguments::Export;
use crate::failure::{Exit, Failure};
use bundle::Bundle;
use sample::Sample;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;

/// How many bytes are written at once.
const PART: usize = 1 << 16;

pub fn run(arguments: &Export) -> Result<Exit, Failure> {
    let bundle = open(&arguments.run, &arguments.store.store)?;
    let Some(path) = &arguments.output else {
        csv(&bundle, write_out)?;
        return Ok(Exit::Success);
    };
    let failed = |e| Failure::unavailable(format!("{}: {e}", path.display()));
    let mut file = File::create(path).map_err(failed)?;
    csv(&bundle, |part| file.write_all(part.as_bytes()).map_err(failed))?;
    file.sync_all().map_err(failed)?;
    Ok(Exit::Success)
}

/// A heading and a line for each sample, in the order of recording (RFC 4180; names of series need no quotation marks).
fn csv(bundle: &Bundle, mut write: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let names: Vec<&str> = bundle.manifest().series.iter().map(|s| s.responder.as_str()).collect();
    let mut text = String::from("responder,trigger,at_ns,latency_ns,path_insns\n");
    let mut failed = None;
    bundle.samples(|sample| {
        let Sample { series, trigger, at, latency, path } = sample;
        let path = path.map_or_else(String::new, |path| path.0.to_string());
        let _ = writeln!(text, "{},{trigger},{},{},{path}", names[series.index()], at.0, latency.0);
        if text.len() >= PART && failed.is_none() {
            failed = write(&text).err();
            text.clear();
        }
    })?;
    failed.map_or_else(|| write(&text), Err)
}
