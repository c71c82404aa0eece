// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset live`: tells a generator of triggers what to do, and shows what it measures while it does.

use super::{SystemClock, print, print_json, store};
use crate::arguments::Live as Arguments;
use crate::failure::{Exit, Failure};
use lab::live::{Left, Live, Standing, Talk, Wanted, table};
use lab::matrix::Issuer;
use sample::Observation;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use view::results;
use view::terminal::{self, Key, Screen};
use view::visible::tell;
use wire::generator::Setting;

/// How often the screen is drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const TOLD_EVERY: Duration = Duration::from_secs(1);

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let live = Live::connect(&arguments.place)?;
    let (joined, wanted) = (live.is_running(), wanted(arguments));
    if joined && wanted != Wanted::default() {
        return Err(Failure::usage(
            "the generator is in the middle of a run, whose settings are fixed: give the command without them to watch that run",
        ));
    }
    let mut table = arguments.csv.as_deref().map(|path| Table::open(path, &live)).transpose()?;
    let store = arguments.record.then(|| store(&arguments.store.store));
    let recorded = store.as_ref().map(|store| (store.root(), &SystemClock as &dyn Issuer));
    let (mut talk, note) = Talk::begin(live, &wanted, recorded)?;
    note.iter().for_each(|note| tell!("{note}"));
    let begun = table.iter_mut().try_for_each(Table::begin);
    let followed = begun.and_then(|()| follow(&mut talk, arguments, &mut table));
    conclude(&mut talk, arguments, followed)
}

/// What the user asks of the generator.
fn wanted(arguments: &Arguments) -> Wanted {
    Wanted {
        frequency: arguments.frequency,
        period: arguments.period,
        duty: arguments.duty,
        jitter: arguments.jitter,
        batch: arguments.batch,
        responders: arguments.responders.clone(),
        count: arguments.count,
    }
}

/// The latencies in a file, as they come.
struct Table<'a> {
    path: &'a Path,
    file: File,
    names: Vec<&'static str>,
    lines: String,
}

impl<'a> Table<'a> {
    /// A file that can be written, with what it holds already: the generator may still refuse the run.
    fn open(path: &'a Path, live: &Live) -> Result<Table<'a>, Failure> {
        let names = live.channels().iter().map(|channel| channel.responder.name()).collect();
        let opened = File::options().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|e| cannot_write(path, &e))?;
        Ok(Table { path, file, names, lines: String::new() })
    }

    /// Replaces what it holds by the head of a table.
    fn begin(&mut self) -> Result<(), Failure> {
        // A pipe or a terminal has no length.
        let is_file = self.file.metadata().is_ok_and(|about| about.is_file());
        let cut = if is_file { self.file.set_len(0) } else { Ok(()) };
        cut.map_err(|e| cannot_write(self.path, &e))?;
        self.lines = table::HEAD.into();
        self.write()
    }

    fn take(&mut self, observation: &Observation) {
        if let Observation::Sample(sample) = observation {
            table::row(&mut self.lines, sample, &self.names);
        }
    }

    /// Writes what was taken.
    fn write(&mut self) -> Result<(), Failure> {
        let written = self.file.write_all(self.lines.as_bytes());
        self.lines.clear();
        written.map_err(|e| cannot_write(self.path, &e))
    }
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Failure {
    Failure::unavailable(format!("cannot write {}: {e}", path.display()))
}

/// Follows the conversation to its end. Returns whether the user ended it.
fn follow(
    talk: &mut Talk,
    arguments: &Arguments,
    table: &mut Option<Table<'_>>,
) -> Result<bool, Failure> {
    let mut screen = if arguments.json { Screen::Lines } else { Screen::open() };
    let every = if screen.is_drawn() { DRAWN_EVERY } else { TOLD_EVERY };
    let (mut drawn, mut change) = (Instant::now(), None);
    loop {
        let standing = talk.step(&mut |heard| table.iter_mut().for_each(|t| t.take(&heard)))?;
        table.iter_mut().try_for_each(Table::write)?;
        if standing == Standing::Ended {
            let Some(key) = change.take() else { return Ok(talk.is_stopped()) };
            if let Err(refused) = talk.go_on(|live| start_otherwise(live, key)) {
                screen.note(refused.to_string());
            }
        }
        if drawn.elapsed() >= every {
            drawn = Instant::now();
            screen.show(talk.live(), talk.is_stopped()).map_err(cannot_draw)?;
        }
        let key = screen.key().map_err(cannot_draw)?;
        match key {
            Some(Key::Reset) => talk.reset(),
            Some(Key::Pause) => screen.pause(),
            Some(Key::Mark) => screen.note(mark(talk)),
            _ => {}
        }
        // Of a number of triggers that the user asked for, there is one run.
        let changes = matches!(key, Some(Key::Faster | Key::Slower)) && arguments.count.is_none();
        if work::is_cancelled() || key == Some(Key::Quit) {
            change = None;
            talk.stop()?;
        } else if changes && !talk.is_stopped() {
            change = key;
            talk.stop()?;
        }
    }
}

/// Keeps a mark with the present time, and says so.
fn mark(talk: &mut Talk) -> String {
    if let Err(refused) = talk.mark("") {
        return refused.to_string();
    }
    talk.live().marks().last().map_or_else(String::new, terminal::marked)
}

/// Starts a run at twice the frequency, or at half of it. If the generator refuses that, or half a period is no whole
/// number of ticks, the run is as the one before.
fn start_otherwise(live: &mut Live, key: Key) -> Result<(), lab::Error> {
    let of = |setting| live.settings().get(setting);
    let (period, high) = (of(Setting::Period), of(Setting::High));
    let (new_period, new_high) = match key {
        Key::Faster if period % 2 == 1 => {
            live.start()?;
            let why = format!("a period of {period} ticks has no half in whole ticks");
            return Err(lab::Error::Unfit(why));
        }
        Key::Faster => (period / 2, (high / 2).max(1)),
        _ => (period.saturating_mul(2), high.saturating_mul(2)),
    };
    let set = live.set(Setting::Period, new_period);
    let set = set.and_then(|()| live.set(Setting::High, new_high));
    let refused = match set.and_then(|()| live.start()) {
        Ok(()) => return Ok(()),
        Err(refused @ lab::Error::Unfit(_)) => refused,
        Err(e) => return Err(e),
    };
    live.set(Setting::Period, period)?;
    live.set(Setting::High, high)?;
    live.start()?;
    Err(refused)
}

fn cannot_draw(e: std::io::Error) -> Failure {
    Failure::unavailable(format!("cannot draw on the terminal: {e}"))
}

/// Shows the numbers, and where they are kept. Also where the conversation failed: what was measured until then counts.
fn conclude(
    talk: &mut Talk,
    arguments: &Arguments,
    followed: Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let failure = followed.as_ref().err().map(|failure| failure.message.clone());
    let Left { bundle, failure } = talk.finish(failure)?;
    let live = talk.live();
    if let Some(stopped) = live.stopped() {
        tell!("{}", terminal::stopped(stopped));
    }
    if arguments.json {
        print_json(&results::Live::of(live, bundle.as_deref()))?;
    } else {
        print(&terminal::live(live))?;
        if let Some(path) = bundle {
            print(&format!("Bundle\n  {}\n", path.display()))?;
        }
    }
    match (followed?, failure) {
        (_, Some(fault)) => Err(Failure::unavailable(fault)),
        (true, None) if arguments.count.is_some() => Ok(Exit::Interrupted),
        (_, None) => Ok(Exit::Success),
    }
}
