// SPDX-License-Identifier: GPL-2.0-or-later
//! The process that measures: `onset-agent probe`, its plan, its rings and its words.

use crate::Error;
use agent::Word;
use probes::Plan;
use sample::{Nanos, Observation};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use wire::{Channel, Event};
use work::Reaped;

/// The most records that fit into the ring of one measuring thread: 2 MiB. At the shortest period (20 µs) the reader
/// may be kept from running for more than a second.
const RECORDS_MAX: u64 = 1 << 16;
/// The fewest records of a ring.
const RECORDS_MIN: u64 = 1 << 10;
/// How long the reader may be kept from running with a smaller ring. The probe's memory is locked, so a ring costs as
/// much memory as it could hold.
const KEPT_WAITING: Nanos = Nanos::from_millis(2_000);

/// A probe at work.
pub struct Process {
    child: Reaped,
    channels: Vec<Channel>,
    words: JoinHandle<String>,
    complaints: JoinHandle<String>,
}

/// How a probe ended.
pub struct Ended {
    /// The words that the probe sent, in order.
    pub words: Vec<Word>,
    /// The text that the probe wrote to stderr.
    pub complaints: String,
    /// The exit status.
    pub status: ExitStatus,
}

impl Process {
    /// Starts `agent` on the plan.
    ///
    /// # Errors
    /// If the agent cannot be started.
    pub fn start(agent: &Path, plan: &Plan) -> Result<Process, Error> {
        let failed = |e| Error::Probe(format!("{} probe: {e}", agent.display()));
        let channels = (0..plan.threads())
            .map(|_| Channel::with_capacity(records(plan)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(of_channel)?;
        let mut command = Command::new(agent);
        command.arg("probe").args(channels.iter().map(|c| c.fd().to_string()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        work::inherit(&mut command, channels.iter().map(Channel::fd).collect());
        let mut child = Reaped::spawn(&mut command).map_err(failed)?;
        let (stdin, stdout, stderr) = child.pipes();
        let plan = serde_json::to_vec(plan).expect("plain data");
        stdin.map_or(Ok(()), |mut stdin| stdin.write_all(&plan)).map_err(failed)?;
        Ok(Process { child, channels, words: read_all(stdout), complaints: read_all(stderr) })
    }

    /// Asks the probe to end with what it has measured.
    pub fn stop(&self) {
        self.child.ask_to_end();
    }

    /// Whether the probe has ended. After that, [`drain`](Self::drain) finds the rest.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.ended().map_err(|e| Error::Probe(e.to_string()))
    }

    /// Hands over the measurements since the last call. Returns the number of records.
    ///
    /// # Errors
    /// If the rings hold something else.
    pub fn drain(&mut self, mut observe: impl FnMut(Observation)) -> Result<u64, Error> {
        let mut malformed = false;
        let mut records = 0;
        for channel in &mut self.channels {
            let drained = channel.drain(|event, _| match *event {
                Event::Reading(reading) => observe(reading.into()),
                _ => malformed |= !event.is_last(),
            });
            records += drained.map_err(of_channel)?;
        }
        if malformed {
            let what = "the probe reports what is no reading; build onset and its parts together";
            return Err(Error::Probe(what.into()));
        }
        Ok(records)
    }

    /// The number of records that were lost because a ring was full.
    pub fn dropped(&self) -> u64 {
        self.channels.iter().map(Channel::dropped).sum()
    }

    /// The words that the probe sent until it ended with `status`.
    pub fn words(self, status: ExitStatus) -> Ended {
        let text = |thread: JoinHandle<String>| thread.join().unwrap_or_default();
        let words = text(self.words);
        // A line that is no word was cut short by the probe's end.
        let words = words.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ended { words, complaints: text(self.complaints), status }
    }
}

/// The error that a ring could not be made or read.
fn of_channel(e: wire::ChannelError) -> Error {
    Error::Probe(e.to_string())
}

/// How many records the ring of a measuring thread holds.
fn records(plan: &Plan) -> usize {
    let gap = plan.probe.shortest_gap().map_or(Nanos(1), |gap| gap.max(Nanos(1)));
    (KEPT_WAITING / gap).clamp(RECORDS_MIN, RECORDS_MAX) as usize
}

/// Reads a pipe in a thread of its own, so that the process never waits for this reader.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // Half of the text is better than nothing.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}
