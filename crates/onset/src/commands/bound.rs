// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset bound`: computes a bound of the scheduling latency from the longest stretches of a run. Shows beside it the
//! longest scheduling latency that the run had.

use super::windows::each_cell;
use super::{print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::bound::bound;
use view::results::Bound;
use view::terminal;

pub fn run(arguments: &arguments::Bound) -> Result<Exit, Failure> {
    let all = each_cell(&arguments.cells, bound)?;
    let exceeded = all.iter().any(|b| b.holds == Some(false));
    let unknown = all.iter().any(|b| b.holds.is_none());
    if arguments.json {
        print_json(&Bound::of(&all))?;
    } else {
        for bounded in &all {
            print(&(terminal::bound(bounded) + "\n"))?;
        }
    }
    Ok(match (exceeded, unknown) {
        (true, _) => Exit::Exceeded,
        (_, true) => Exit::Undecided,
        _ => Exit::Success,
    })
}
