// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset respond`: be the responder `task` of the driver on this machine, or start the user's program in its place.
//! Something outside triggers, and takes the time of the answers.

mod driver;

use crate::arguments::Respond;
use crate::failure::{Exit, Failure};
use probes::Answering;
use rt::Policy;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use view::visible::tell;
use wire::ports::DEVICE;
use work::{POLL, Reaped};

/// How long a program has to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(1);

pub fn run(arguments: &Respond) -> Result<Exit, Failure> {
    // To the end of the function.
    let _loaded = arguments.port.map(|port| driver::load(port, arguments)).transpose()?;
    match &arguments.program[..] {
        [] => answer(arguments),
        [program, words @ ..] => start(program, words, arguments),
    }
}

/// Answers until the user asks to stop.
fn answer(how: &Respond) -> Result<Exit, Failure> {
    rt::lock_memory().map_err(Failure::unavailable)?;
    let task = Answering::open().map_err(Failure::unavailable)?;
    std::thread::scope(|threads| {
        let answering = threads.spawn(|| task.answer(how.policy, how.cpu));
        tell!("answering triggers as {} on CPU {}, until Ctrl-C", how.policy, how.cpu);
        while !work::is_cancelled() && !answering.is_finished() {
            std::thread::sleep(POLL);
        }
        task.end();
        let answered = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        answered.map_err(Failure::unavailable).map(|()| Exit::Interrupted)
    })
}

/// Runs the program until it ends or the user asks to stop. It inherits policy and CPU of the thread that starts it.
fn start(program: &str, words: &[String], how: &Respond) -> Result<Exit, Failure> {
    if !Path::new(DEVICE).exists() {
        return Err(Failure::unavailable(format!(
            "there is no {DEVICE}, on which {program} would wait: load the driver with --port, or by hand (driver/README.md)"
        )));
    }
    // This thread has nothing else to do, so that its policy may be the program's. It is put back before it waits.
    rt::pin(how.cpu).and_then(|()| rt::apply(how.policy)).map_err(Failure::unavailable)?;
    let started = Reaped::spawn(Command::new(program).args(words));
    rt::apply(Policy::Other(0)).and_then(|()| rt::unpin()).map_err(Failure::unavailable)?;
    let mut child = started.map_err(|e| Failure::unavailable(format!("{program}: {e}")))?;
    tell!("{program} runs as {} on CPU {}, until Ctrl-C", how.policy, how.cpu);
    while !work::is_cancelled() {
        if let Some(status) = child.ended().map_err(Failure::unavailable)? {
            return Err(Failure::unavailable(format!("{program} ended with {status}")));
        }
        std::thread::sleep(POLL);
    }
    child.ask_to_end();
    let begun = Instant::now();
    while begun.elapsed() < FAREWELL && matches!(child.ended(), Ok(None)) {
        std::thread::sleep(POLL);
    }
    Ok(Exit::Interrupted)
}
