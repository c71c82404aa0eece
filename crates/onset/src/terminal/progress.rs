// SPDX-License-Identifier: GPL-2.0-or-later
//! Progress on stderr: bars with phase and time left on a terminal, plain lines elsewhere.

use crate::experiment::{Cell, Experiment};
use crate::matrix::Event;
use crate::visible::{tell, visible};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rig::Progress;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

/// Bars are redrawn this often while nothing happens, so that the clock moves.
const TICK: Duration = Duration::from_millis(200);

/// What is shown of a running matrix.
pub struct Shown {
    names: Vec<String>,
    kind: Kind,
}

enum Kind {
    Bars(MultiProgress, Vec<Option<ProgressBar>>),
    Lines(Vec<Option<String>>),
}

impl Shown {
    /// For an experiment's cells.
    pub fn new(experiment: &Experiment) -> Shown {
        Shown::of(experiment.cells().map(|c| name(c, experiment.instruments.len())).collect())
    }

    /// For what has these names.
    pub fn of(names: Vec<String>) -> Shown {
        let kind = if std::io::stderr().is_terminal() {
            Kind::Bars(MultiProgress::new(), vec![None; names.len()])
        } else {
            Kind::Lines(vec![None; names.len()])
        };
        Shown { names, kind }
    }

    /// Does `what`, which goes on for a while, with its progress; `ended` is what the last line says: where it was done, and
    /// where not.
    ///
    /// # Errors
    /// Those of `what`.
    pub fn during<T, E>(
        name: String,
        ended: [&str; 2],
        what: impl FnOnce(&dyn Fn(Progress)) -> Result<T, E>,
    ) -> Result<T, E> {
        let shown = RefCell::new(Shown::of(vec![name]));
        let done = what(&|progress| shown.borrow_mut().progress(0, progress));
        let [well, ill] = ended;
        shown.borrow_mut().end(0, if done.is_ok() { well } else { ill });
        done
    }

    /// Shows an event.
    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Progress(cell, progress) => self.progress(*cell, *progress),
            Event::Finished(cell, _, verdict) => self.end(*cell, verdict.name()),
            Event::Failed(cell, failure) => {
                self.end(*cell, &format!("failed: {}", failure.message))
            }
        }
    }

    /// Cell number `cell` goes on.
    pub fn progress(&mut self, cell: usize, progress: Progress) {
        let name = &self.names[cell];
        match &mut self.kind {
            Kind::Bars(all, bars) => {
                let bar = bars[cell].get_or_insert_with(|| {
                    let bar = all.add(ProgressBar::new_spinner());
                    bar.set_prefix(visible(name).into_owned());
                    bar.set_style(style("{prefix:30!} {spinner} {msg} {elapsed}"));
                    bar.enable_steady_tick(TICK);
                    bar
                });
                if let Progress::Measuring(done, total) = progress {
                    if bar.length() != Some(total) {
                        bar.set_length(total);
                        bar.reset_eta();
                        bar.set_style(style("{prefix:30!} {bar:28} {percent} % {eta} left"));
                    }
                    bar.set_position(done);
                } else {
                    bar.set_message(phase(progress));
                }
            }
            Kind::Lines(told) => {
                let line = match progress {
                    Progress::Measuring(done, total) => {
                        format!("measuring, {} %", done * 10 / total.max(1) * 10)
                    }
                    other => phase(other).to_string(),
                };
                if told[cell].as_ref() != Some(&line) {
                    tell!("{name}: {line}");
                    told[cell] = Some(line);
                }
            }
        }
    }

    /// Cell number `cell` ended, and how.
    pub fn end(&mut self, cell: usize, how: &str) {
        match &mut self.kind {
            Kind::Bars(all, bars) => {
                if let Some(bar) = bars[cell].take() {
                    bar.finish_and_clear();
                }
                let line = format!("{}: {how}", self.names[cell]);
                let _ = all.println(visible(&line));
            }
            Kind::Lines(_) => tell!("{}: {how}", self.names[cell]),
        }
    }
}

/// Of a cell; with its instrument where an experiment has several.
fn name(cell: Cell, instruments: usize) -> String {
    let Cell { flavour, load, instrument } = cell;
    match instruments {
        0 | 1 => format!("{flavour} · {load}"),
        _ => format!("{flavour} · {load} · {}", instrument.name()),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a constant template").progress_chars("█▓░")
}

fn phase(progress: Progress) -> &'static str {
    match progress {
        Progress::Preparing => "putting the guest together",
        Progress::Booting => "booting",
        Progress::WarmingUp => "warming up under load",
        Progress::Saving => "saving the machine",
        Progress::Restoring => "restoring the machine",
        Progress::Measuring(..) => "measuring",
    }
}
