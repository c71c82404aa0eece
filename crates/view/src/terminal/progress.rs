// SPDX-License-Identifier: GPL-2.0-or-later
//! Progress on stderr. On a terminal these are bars with the phase and the remaining time, elsewhere plain lines.

use crate::visible::{tell, visible};
use experiment::{Cell, Experiment};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab::matrix::Event;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;
use work::Progress;

/// How often bars are redrawn while nothing happens, so that their clock moves.
const TICK: Duration = Duration::from_millis(200);

/// The progress of the cells that run.
pub struct Shown {
    names: Vec<String>,
    kind: Kind,
}

enum Kind {
    Bars(MultiProgress, Vec<Option<ProgressBar>>),
    Lines(Vec<Option<String>>),
}

impl Shown {
    /// For the cells of experiments.
    pub fn new(experiments: &[Experiment]) -> Shown {
        let names = experiments.iter().flat_map(|experiment| {
            experiment.cells().map(|cell| name(cell, experiment.instruments.len()))
        });
        Shown::of(names.collect())
    }

    /// Progress for work with these names.
    pub fn of(names: Vec<String>) -> Shown {
        let kind = if std::io::stderr().is_terminal() {
            Kind::Bars(MultiProgress::new(), vec![None; names.len()])
        } else {
            Kind::Lines(vec![None; names.len()])
        };
        Shown { names, kind }
    }

    /// Carries out `what`, which takes a while, and shows its progress. `ended` has the words of the last line: for
    /// success, and for failure.
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
            Event::Found(cell, _) => self.end(*cell, "measured before"),
            Event::Failed(cell, failure) => self.end(*cell, &format!("failed: {failure}")),
        }
    }

    /// Shows that cell number `cell` has made progress.
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
                        bar.set_style(style(
                            "{prefix:28!} {bar:20} {percent} % {per_sec} {eta} left",
                        ));
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

    /// Shows how cell number `cell` ended.
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

/// The name of a cell, with its instrument if the experiment has several.
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
        Progress::Preparing => "building the guest's image",
        Progress::Booting => "booting",
        Progress::WarmingUp => "warming up under load",
        Progress::Saving => "saving a snapshot",
        Progress::Restoring => "restoring the snapshot",
        Progress::Measuring(..) => "measuring",
    }
}
