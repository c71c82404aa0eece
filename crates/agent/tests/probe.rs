// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset-agent probe` as its parent sees it: the plan in, records through a ring, words out.

use agent::Word;
use probes::plan::{Gtod, Overrun, Periodic, Plan, Probe, ReadClock, SleepMethod};
use rt::Policy;
use sample::Nanos;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use wire::{Channel, Event, Reading};

/// Starts the probe with a ring, and gives it `plan`.
fn start(plan: &[u8], ring: &Channel) -> Child {
    let fd = ring.fd();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onset-agent"));
    command.args(["probe", &fd.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: fcntl is async-signal-safe, and the ring outlives the child.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn().expect("the agent");
    child.stdin.take().expect("piped").write_all(plan).expect("it reads its plan");
    child
}

/// Its exit status and what it said.
fn end(mut child: Child) -> (Option<i32>, Vec<Word>) {
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    let words = text.lines().map(|line| serde_json::from_str(line).expect("a word"));
    let words = words.collect();
    (child.wait().expect("our child").code(), words)
}

fn plan(probe: Probe) -> Vec<u8> {
    // Of the CPUs that this process may use, whichever these are.
    let cpus = vec![rt::allowed_cpus().expect("some")[0]];
    let plan = Plan { probe, policy: Policy::Other(0), cpus, pm_qos: false, program: None };
    serde_json::to_vec(&plan).expect("a plan serialises")
}

#[test]
fn what_it_measures_is_in_the_ring_and_its_report_on_stdout() {
    let mut ring = Channel::with_capacity(2_000).expect("memory");
    let probe = Probe::Gtod(Gtod { clocks: vec![ReadClock::Monotonic], count: 1_000 });
    let (status, words) = end(start(&plan(probe), &ring));
    assert_eq!(status, Some(0), "{words:?}");
    assert!(matches!(words[..], [Word::Report(_)]), "{words:?}");
    let (mut samples, mut ends) = (0, 0);
    ring.drain(|event, _| match event {
        Event::Reading(Reading::Sample { .. }) => samples += 1,
        Event::ProbeEnd => ends += 1,
        _ => {}
    })
    .expect("records");
    assert_eq!((samples, ends, ring.dropped()), (1_000, 1, 0));
}

#[test]
fn a_signal_ends_it_early_and_its_report_still_comes() {
    let mut ring = Channel::with_capacity(1 << 16).expect("memory");
    let probe = Probe::Periodic(Periodic {
        methods: vec![SleepMethod::ClockNanosleep],
        periods: vec![Nanos::from_millis(1)],
        count: 3_600_000,
        overrun: Overrun::Skip,
        migrate: false,
        slack: Nanos(1),
    });
    let child = start(&plan(probe), &ring);
    // The first record tells that it measures, and so that it minds signals.
    while ring.drain(|_, _| ()).expect("records") == 0 {
        std::thread::yield_now();
    }
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    let (status, words) = end(child);
    assert_eq!(status, Some(0), "{words:?}");
    assert!(matches!(words[..], [Word::Report(_)]), "{words:?}");
}

#[test]
fn a_plan_that_is_none_is_a_failure_in_words() {
    let ring = Channel::with_capacity(16).expect("memory");
    for text in ["", "{}", "{\"probe\": \"tea\"}"] {
        let (status, words) = end(start(text.as_bytes(), &ring));
        assert_eq!(status, Some(1));
        assert!(matches!(&words[..], [Word::Failed(why)] if why.contains("the plan")), "{words:?}");
    }
}
