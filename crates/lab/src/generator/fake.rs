// SPDX-License-Identifier: GPL-2.0-or-later
//! A generator with a fake guest on a line of its own, for tests of whoever speaks to one.

use super::{Fired, Generator, Happened, Line};
use crate::target::fake::Fake;
use crate::target::{Lead, Target};
use experiment::Experiment;
use sample::{Responder, ResponderSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const EXPERIMENT: &str = r#"
    title = "test"
    target = "rig"
    flavours = ["a"]
    loads = ["idle"]
    responders = ["hardirq", "task"]
    trigger = { period = "1ms", count = 3 }
"#;

/// What a fake guest is asked to measure.
pub fn experiment() -> Experiment {
    Experiment::parse(Path::new("t.toml"), EXPERIMENT).expect("it is sound")
}

/// Who answers in it.
pub fn responders() -> ResponderSet {
    [Responder::Hardirq, Responder::Task].into_iter().collect()
}

/// A generator on a free port, in a thread of its own, which ends with this.
pub struct Served {
    /// Where it is.
    pub address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Vec<Fired>, Vec<Happened>)>>,
}

impl Served {
    /// One whose guest is this.
    pub fn new(fake: Fake) -> Served {
        let mut line = Line::listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = line.address().expect("a port");
        let ends = Arc::new(AtomicBool::new(false));
        let asked = ends.clone();
        let thread = std::thread::spawn(move || {
            let experiment = experiment();
            let cell = experiment.cells().next().expect("a cell");
            let session =
                fake.begin(&experiment, cell, Lead::Commands, &|_| ()).expect("it begins");
            let mut generator = Generator::new(session, responders(), "a fake");
            let (mut happened, mut fired) = (Vec::new(), Vec::new());
            while !asked.load(Ordering::Relaxed) {
                line.turn(&mut generator, &mut |what| happened.push(what));
                generator.turn(line.now()).expect("it goes on");
                fired.extend(generator.fired());
            }
            generator.switch_off();
            line.turn(&mut generator, &mut |what| happened.push(what));
            (fired, happened)
        });
        Served { address, ends, thread: Some(thread) }
    }

    /// Ends it: what it fired, and what happened on its line.
    pub fn end(mut self) -> (Vec<Fired>, Vec<Happened>) {
        self.join().expect("once")
    }

    fn join(&mut self) -> Option<(Vec<Fired>, Vec<Happened>)> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(|thread| thread.join().expect("no panic"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A test that fails does not wait for it.
        if !std::thread::panicking() {
            self.join();
        }
    }
}
