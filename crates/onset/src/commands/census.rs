// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset census`: the latency of a trigger at each instant of a window around a find.

use super::report::write_chosen;
use super::{bench, named, print, print_json};
use crate::arguments;
use crate::failure::{Exit, Failure};
use lab::census::{Counted, Window, stretches, take};
use lab::followed::{Choice, Ready, reproducer};
use sample::Nanos;
use std::fmt::Write;
use view::results::Census;
use view::terminal::{self, Shown};
use view::visible::{tell, tell_line};

pub fn run(arguments: &arguments::Census) -> Result<Exit, Failure> {
    let bench = bench()?;
    let named = named(&arguments.latencies)?;
    let choice = arguments.sample.map(Choice::Trigger);
    let find = reproducer(&bench, &named, arguments.latencies.series.as_ref(), choice)?;
    let window = Window::around(&find, arguments.around, arguments.every)?;
    let jobs = arguments.jobs.map_or_else(super::run::processors, usize::from);
    let subject = find.subject(&bench)?;
    let title = named.title();
    let words = ["counted", "not counted"];
    let (stretches, latencies) = Shown::during(title.clone(), words, |progress| {
        let ready = Ready::new(&bench, subject, progress)?;
        let stretches = stretches(&ready, &find, window)?;
        let latencies = take(&ready, &find, window, jobs, progress, &tell_line)?;
        Ok::<_, lab::Error>((stretches, latencies))
    })?;
    let responder = find.answer.responder.name();
    if let Some(path) = &arguments.picture {
        let heading = format!("{responder} · {title}: a trigger every {}", window.every);
        let picture = view::census_picture(&heading, window, &latencies, &stretches);
        write_chosen(path, picture.as_bytes())?;
    }
    if let Some(path) = &arguments.csv {
        write_chosen(path, csv(window, &latencies).as_bytes())?;
    }
    let counted = Counted::of(window, &latencies, &stretches);
    let census = Census { schema: Census::SCHEMA, title, responder, counted };
    if arguments.json {
        print_json(&census)?;
    } else {
        print(&terminal::census(&census))?;
    }
    if census.counted.latency.is_none() {
        tell!("! nobody answered: see what `onset replay` of the find says");
        return Ok(Exit::Undecided);
    }
    Ok(Exit::Success)
}

/// The latency of each instant. A trigger without an answer has none.
fn csv(window: Window, latencies: &[Option<Nanos>]) -> String {
    let mut text = "at_ns,latency_ns\n".to_string();
    for (at, latency) in window.instants().zip(latencies) {
        let latency = latency.map_or(String::new(), |ns| ns.0.to_string());
        let _ = writeln!(text, "{},{latency}", at.0);
    }
    text
}
