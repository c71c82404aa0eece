// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset live`: tells a generator of triggers what to do, and shows what it measures while it does.

use super::{SystemClock, print, print_json, store};
use crate::arguments::Live as Arguments;
use crate::failure::{Exit, Failure};
use lab::live::{Live, Record, Wanted};
use std::time::{Duration, Instant};
use view::results;
use view::terminal::{self, Key, Screen};
use view::visible::tell;
use wire::generator::Setting;
use work::Cancel;

/// How long one look at the line waits.
const WAIT: Duration = Duration::from_millis(20);
/// How often the screen is drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long the end of a run is waited for, beside the time that the generator waits for answers.
const END: Duration = Duration::from_secs(10);

pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = Live::connect(&arguments.place)?;
    let (joined, wanted) = (live.is_running(), wanted(arguments));
    match joined {
        true if wanted != Wanted::default() => {
            return Err(Failure::usage(
                "the generator is in the middle of a run, whose settings are fixed: give the command without them to watch that run",
            ));
        }
        true => tell!("a run goes on, and this command joins it; what came before counts as lost"),
        false => wanted.apply(&mut live)?.iter().for_each(|note| tell!("{note}")),
    }
    let mut record = match arguments.record {
        true => Some(Record::begin(&live, store(&arguments.store.store).root(), &SystemClock)?),
        false => None,
    };
    if !joined {
        live.start()?;
    }
    let interrupted = follow(&mut live, arguments, record.as_mut());
    conclude(&mut live, arguments, record, interrupted)
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

/// Follows the conversation to its end. Returns whether the user ended it.
fn follow(
    live: &mut Live,
    arguments: &Arguments,
    mut record: Option<&mut Record>,
) -> Result<bool, Failure> {
    let mut screen = if arguments.json { Screen::Lines } else { Screen::open() };
    let every = if screen.is_drawn() { DRAWN_EVERY } else { TOLD_EVERY };
    let (mut drawn, mut ends, mut change) = (Instant::now(), None::<Instant>, None);
    loop {
        let before = live.elapsed();
        live.listen(WAIT)?;
        for observation in live.observed() {
            record.as_deref_mut().map_or(Ok(()), |record| record.observe(&observation))?;
        }
        if !live.is_running() {
            let Some(key) = change.take() else { return Ok(ends.is_some()) };
            if let Err(refused) = start_otherwise(live, key) {
                screen.note(refused.to_string());
            }
            ends = None;
        }
        if drawn.elapsed() >= every {
            drawn = Instant::now();
            screen.show(live, ends.is_some()).map_err(cannot_draw)?;
        }
        let key = screen.key().map_err(cannot_draw)?;
        match key {
            Some(Key::Reset) => live.reset(),
            Some(Key::Pause) => screen.pause(),
            _ => {}
        }
        let quits = work::is_cancelled() || key == Some(Key::Quit);
        // Of a number of triggers that the user asked for, there is one run.
        let changes = matches!(key, Some(Key::Faster | Key::Slower)) && arguments.count.is_none();
        match &mut ends {
            None if quits || changes => {
                change = key.filter(|_| changes && !quits);
                ends = Some(Instant::now());
                // Also when the user has asked to stop: the last answers are still to come.
                Cancel::default().during(|| live.stop())?;
            }
            None => {}
            Some(since) => {
                change = change.filter(|_| !quits);
                // Time still goes on there.
                if live.elapsed() > before {
                    *since = Instant::now();
                }
                if since.elapsed() > END {
                    let why = "the generator was told to stop, and does not say that it has";
                    return Err(Failure::unavailable(why));
                }
            }
        }
    }
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
        Ok(_) => return Ok(()),
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
    live: &mut Live,
    arguments: &Arguments,
    record: Option<Record>,
    followed: Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let failure = match &followed {
        Err(failure) => Some(failure.message.clone()),
        Ok(_) => live.stopped().and_then(terminal::fault),
    };
    let bundle = record.map(|record| record.finish(live, failure.clone())).transpose()?;
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
