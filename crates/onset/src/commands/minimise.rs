// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset minimise`: removes from a find, or from a run, the load, the triggers and the disturbances that its latency
//! does not need.

use super::report::write_chosen;
use super::{bench, hunt as hunting, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::followed::{Choice, Named, Ready, Reproducer, reproducer};
use lab::minimise::{Size, Steps, minimise, under_less};
use rig::Bench;
use std::path::{Path, PathBuf};
use view::results::Minimised;
use view::terminal::{self, Shown};
use view::visible::{tell, tell_line};

pub fn run(arguments: &arguments::Minimise) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    let choice = arguments.sample.map(Choice::Trigger);
    let find = reproducer(&bench, &named, arguments.latencies.series.as_ref(), choice)?;
    let output = arguments.output.clone().unwrap_or_else(|| output(&named, arguments, &find));
    let before = Size::of(&find);
    let find = match arguments.load {
        true => under_less_load(&bench, &find, arguments)?.unwrap_or(find),
        false => find,
    };
    let subject = find.subject(&bench)?;
    let ready = Shown::during(named.title(), ["ready", "failed"], |progress| {
        Ready::new(&bench, subject, progress)
    })?;
    let found = |trials, size| {
        let kept = terminal::kept(size, Size::of(&find));
        tell!("{trials} trials: {kept} are enough for a latency of {}", size.latency_ns);
    };
    let smaller = minimise(&ready, &find, &found, &tell_line)?;
    let text = serde_json::to_string_pretty(&smaller.find).expect("plain data") + "\n";
    write_chosen(&output, text.as_bytes())?;
    let minimised = Minimised {
        schema: Minimised::SCHEMA,
        find: output,
        responder: find.answer.responder.name(),
        before,
        after: Size::of(&smaller.find),
        trials: smaller.trials,
        minimal: smaller.minimal,
        replayed: smaller.replayed,
    };
    if arguments.json {
        print_json(&minimised)?;
    } else {
        print(&terminal::minimised(&minimised))?;
    }
    Ok(if smaller.replayed { Exit::Success } else { Exit::Interrupted })
}

fn under_less_load(
    bench: &Bench,
    find: &Reproducer,
    arguments: &arguments::Minimise,
) -> Result<Option<Reproducer>, lab::Error> {
    let steps = Steps {
        prepare: &|subject| hunting::ready(bench, subject, &find.kernel),
        search: &hunting::search,
        say: &tell_line,
    };
    under_less(bench, find, arguments.budget, super::run::processors(), &steps)
}

/// The file that is written by default: for `task.find.json` it is `task.find.min.json` in the same directory, for a
/// run it is `task.min.json` in the current directory.
fn output(named: &Named, arguments: &arguments::Minimise, find: &Reproducer) -> PathBuf {
    match named {
        Named::Find(_) => Path::new(&arguments.latencies.run).with_extension("min.json"),
        Named::Run(_) => format!("{}.min.json", find.answer.responder).into(),
    }
}
