// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset respond`: be the responder `task` of the driver on this machine, or start the user's program in its place.
//! Something outside triggers, and takes the time of the answers.

mod driver;

use crate::arguments::Respond;
use crate::failure::{Exit, Failure};
use probes::{Answering, RunningProgram};
use std::path::Path;
use std::process::Command;
use view::visible::tell;
use wire::ports::DEVICE;
use work::POLL;

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

/// Runs the program until it ends or the user asks to stop.
fn start(program: &str, words: &[String], how: &Respond) -> Result<Exit, Failure> {
    if !Path::new(DEVICE).exists() {
        return Err(Failure::unavailable(format!(
            "there is no {DEVICE}, on which {program} would wait: load the driver with --port, or by hand (driver/README.md)"
        )));
    }
    let remedy = (program, "name a program that is there and may be executed");
    let started =
        RunningProgram::start(Command::new(program).args(words), how.policy, &[how.cpu], remedy);
    let mut started = started.map_err(Failure::unavailable)?;
    tell!("{program} runs as {} on CPU {}, until Ctrl-C", how.policy, how.cpu);
    while !work::is_cancelled() {
        if let Some(status) = started.ended().map_err(Failure::unavailable)? {
            return Err(Failure::unavailable(format!("{program} ended with {status}")));
        }
        std::thread::sleep(POLL);
    }
    started.end();
    Ok(Exit::Interrupted)
}
