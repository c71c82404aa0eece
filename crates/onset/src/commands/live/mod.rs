// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset live`: tells a generator of triggers what to do, and shows what it measures while it does.

mod record;

use self::record::Record;
use super::{print, print_json};
use crate::arguments::Live as Arguments;
use crate::failure::{Exit, Failure};
use lab::live::{Duty, Live, period};
use sample::ResponderSet;
use std::time::{Duration, Instant};
use view::results;
use view::terminal::{self, Key, Screen};
use view::visible::tell;
use wire::generator::{Ended, Setting, Ticks};

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
    let joined = live.is_running();
    if joined {
        refuse_settings(arguments)?;
        tell!("a run goes on, and this command joins it; what came before counts as lost");
    } else {
        apply(&mut live, arguments)?;
    }
    let mut record = match arguments.record {
        true => Some(Record::begin(&live, &arguments.store.store)?),
        false => None,
    };
    if !joined {
        live.start()?;
    }
    let interrupted = follow(&mut live, arguments, record.as_mut());
    conclude(&live, arguments, record, interrupted)
}

/// Gives the generator the settings that the user named.
fn apply(live: &mut Live, arguments: &Arguments) -> Result<(), Failure> {
    let tick = live.tick();
    let asked = match (arguments.frequency, arguments.period) {
        (Some(frequency), _) => Some(frequency.period(tick).map_err(Failure::usage)?),
        (None, Some(time)) => Some(period(time, tick).map_err(Failure::usage)?),
        (None, None) => None,
    };
    if let Some(period) = asked {
        live.set(Setting::Period, period.0)?;
    }
    let duty = arguments.duty.or(asked.map(|_| Duty::TENTH));
    if let Some(duty) = duty {
        let period = Ticks(live.identity().settings.get(Setting::Period));
        let (high, exact) = duty.high(period);
        if !exact {
            tell!(
                "{duty} of the period is no whole number of ticks: the line is high for {} of {} ticks",
                high.0,
                period.0
            );
        }
        live.set(Setting::High, high.0)?;
    }
    if let Some(jitter) = arguments.jitter {
        live.set(Setting::Jitter, period(jitter, tick).map_err(Failure::usage)?.0)?;
    }
    if let Some(batch) = arguments.batch {
        live.set(Setting::Batch, batch)?;
    }
    let measured: ResponderSet = match arguments.responders.as_slice() {
        [] => live.identity().responders(),
        some => some.iter().copied().collect(),
    };
    live.set(Setting::Responders, measured.mask().into())?;
    live.set(Setting::Count, arguments.count.map_or(u64::MAX, u64::from))?;
    Ok(())
}

fn refuse_settings(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { frequency, period, duty, jitter, batch, responders, count, .. } = arguments;
    let sets = frequency.is_some()
        || period.is_some()
        || duty.is_some()
        || jitter.is_some()
        || batch.is_some()
        || count.is_some()
        || !responders.is_empty();
    match sets {
        true => Err(Failure::usage(
            "the generator is in the middle of a run, whose settings are fixed: give the command without them to watch that run",
        )),
        false => Ok(()),
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
    let (mut drawn, mut ends, mut change) = (Instant::now(), None, None);
    loop {
        live.listen(WAIT)?;
        for observation in live.observed() {
            record.as_deref_mut().map_or(Ok(()), |record| record.observe(&observation))?;
        }
        if !live.is_running() {
            let Some(key) = change.take() else { return Ok(ends.is_some()) };
            if let Err(refused) = change_frequency(live, key) {
                screen.note(refused.to_string());
            }
            live.start()?;
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
        // Of a number of triggers that the user asked for, there is one run.
        let changes = matches!(key, Some(Key::Faster | Key::Slower)) && arguments.count.is_none();
        match ends {
            None if work::is_cancelled() || key == Some(Key::Quit) || changes => {
                change = key.filter(|_| changes);
                ends = Some(Instant::now());
                live.stop()?;
            }
            Some(since) if since.elapsed() > END => {
                return Err(Failure::unavailable(
                    "the generator was told to stop, and does not say that it has",
                ));
            }
            _ => {}
        }
    }
}

/// Halves or doubles the period and the time for which the line is high. Where the generator refuses that, both stay.
fn change_frequency(live: &mut Live, key: Key) -> Result<(), lab::Error> {
    let of = |setting| live.settings().get(setting);
    let (period, high) = (of(Setting::Period), of(Setting::High));
    let (new_period, new_high) = match key {
        Key::Faster => (period / 2, (high / 2).max(1)),
        _ => (period.saturating_mul(2), high.saturating_mul(2)),
    };
    live.set(Setting::Period, new_period)?;
    live.set(Setting::High, new_high).inspect_err(|_| drop(live.set(Setting::Period, period)))
}

fn cannot_draw(e: std::io::Error) -> Failure {
    Failure::unavailable(format!("cannot draw on the terminal: {e}"))
}

/// Shows the numbers, and where they are kept. Also where the conversation failed: what was measured until then counts.
fn conclude(
    live: &Live,
    arguments: &Arguments,
    record: Option<Record>,
    followed: Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let ended = live.stopped().map(|stopped| stopped.ended);
    let complete = followed.is_ok() && matches!(ended, Some(Ended::Complete | Ended::Asked));
    let bundle = record.map(|record| record.finish(complete)).transpose()?;
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
    match (followed?, complete) {
        (_, false) => Err(Failure::unavailable("the generator ended the run by itself")),
        (true, true) if arguments.count.is_some() => Ok(Exit::Interrupted),
        (_, true) => Ok(Exit::Success),
    }
}
