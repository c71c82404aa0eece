// SPDX-License-Identifier: GPL-2.0-or-later
//! Loads on this machine: the scripts that the rig's guest runs. A supervisor ends them when this process ends.
//!
//! The supervisor is the agent under another name ([`agent::confinement`]). It notices when our end of its input is
//! closed. The kernel closes this end however this process ends. The supervisor removes everything that the load made.

use crate::Error;
use agent::Load;
use agent::confinement::{Account, Confinement, Reply, Request, SUPERVISOR};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The CPUs and the disk that a load may use.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The CPUs that are measured.
    pub measured: &'a [u32],
    /// Whether the load may run on the measured CPUs too.
    pub allow_measured: bool,
    /// A directory on the disk that the `disk` load is to keep busy. Without a directory the load writes to memory.
    pub disk: Option<&'a Path>,
}

/// A load that runs. It ends with this value, and then nothing of it is left.
#[derive(Debug)]
pub struct Running(Option<Supervisor>);

#[derive(Debug)]
struct Supervisor {
    child: Child,
    replies: BufReader<ChildStdout>,
    confinement: Confinement,
}

/// Starts a load. `idle` starts nothing.
///
/// # Errors
/// If this machine or user lacks something that the load needs, with the remedy. Nothing is left of the load then.
pub fn start(load: Load, place: &Place, agent: &Path) -> Result<Running, Error> {
    if load == Load::Idle {
        return Ok(Running(None));
    }
    let failed = |e: io::Error| {
        Error::Load(format!("load {load}: {}: {e}; run `make build`", agent.display()))
    };
    let mut child = Command::new(agent)
        .arg0(SUPERVISOR)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let replies = BufReader::new(child.stdout.take().expect("piped above"));
    let mut supervisor = Supervisor { child, replies, confinement: Confinement::default() };
    match supervisor.ask(&request(load, place)).map_err(failed)? {
        Reply::Started(confinement) => supervisor.confinement = confinement,
        Reply::Refused(why) => return Err(Error::Load(format!("load {load}: {why}"))),
        Reply::Account(_) => return Err(failed(io::ErrorKind::InvalidData.into())),
    }
    Ok(Running(Some(supervisor)))
}

fn request(load: Load, place: &Place) -> String {
    let request = Request {
        script: load.script(),
        programs: load.programs_on_machine().into_iter().map(str::to_owned).collect(),
        needs_network: load.needs_network(),
        avoid: if place.allow_measured { Vec::new() } else { place.measured.to_vec() },
        // The supervisor has another working directory.
        disk: place.disk.map(|d| d.canonicalize().unwrap_or_else(|_| d.to_owned())),
    };
    serde_json::to_string(&request).expect("requests have no unserialisable parts")
}

impl Running {
    /// What keeps the load in its place. Absent for `idle`.
    pub fn confinement(&self) -> Option<&Confinement> {
        self.0.as_ref().map(|s| &s.confinement)
    }

    /// The load's counters since its start, by name.
    ///
    /// # Errors
    /// If the load's supervisor was killed.
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, Error> {
        Ok(self.account()?.counters)
    }

    /// Ends the load. Returns what it did and printed.
    ///
    /// # Errors
    /// The errors of [`counters`](Self::counters).
    pub fn stop(mut self) -> Result<Account, Error> {
        self.account()
    }

    fn account(&mut self) -> Result<Account, Error> {
        let Some(supervisor) = &mut self.0 else { return Ok(Account::default()) };
        match supervisor.ask("") {
            Ok(Reply::Account(account)) => Ok(account),
            other => Err(Error::Load(format!(
                "the load's supervisor ended before the measurement did ({other:?}); repeat it"
            ))),
        }
    }
}

impl Supervisor {
    fn ask(&mut self, line: &str) -> io::Result<Reply> {
        let input = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // The line is written at once. A signal between two writes could leave half a line.
        input.write_all(format!("{line}\n").as_bytes())?;
        let mut reply = String::new();
        if self.replies.read_line(&mut reply)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&reply)?)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // The supervisor needs no other message, and ends once everything is removed.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// An agent that is a script. `$here` is its directory.
    fn agent_of(script: &str) -> (TempDir, PathBuf) {
        let directory = TempDir::new().unwrap();
        let (text, agent) = (directory.path().join("text"), directory.path().join("agent"));
        fs::write(&text, format!("#!/bin/sh\nhere=${{0%/*}}\n{script}\n")).unwrap();
        // Another process installs the file. A child of another test could hold our descriptor, and an open descriptor
        // for writing keeps a program from being run.
        let install = Command::new("install").arg(&text).arg(&agent).status().unwrap();
        assert!(install.success());
        (directory, agent)
    }

    const SUPERVISES: &str = r#"
        head -n 1 >"$here/request"
        echo '{"started":{"cpus":[0],"cgroup":["pids"],"processes":true,"mounts":true}}'
        while read -r line; do echo '{"account":{"counters":{"fork.storm":7},"console":"x"}}'; done
        echo ended >"$here/ended""#;

    const PLACE: Place = Place { measured: &[1], allow_measured: false, disk: None };

    fn request_of(place: &Place) -> Request {
        serde_json::from_str(&request(Load::Mixed, place)).unwrap()
    }

    #[test]
    fn a_load_is_asked_to_keep_off_the_measured_cpus_unless_it_may_run_there() {
        assert_eq!(request_of(&PLACE).avoid, [1]);
        assert!(request_of(&Place { allow_measured: true, ..PLACE }).avoid.is_empty());
    }

    #[test]
    fn a_request_is_one_line_with_what_the_load_needs() {
        assert!(!request(Load::Mixed, &PLACE).contains('\n'));
        let mixed = request_of(&PLACE);
        assert!(mixed.needs_network && mixed.script == Load::Mixed.script());
        assert!(mixed.programs.iter().any(|p| p == "hackbench"));
        let disk = Some(Path::new("."));
        assert!(request_of(&Place { disk, ..PLACE }).disk.unwrap().is_absolute());
    }

    #[test]
    fn a_load_counts_while_it_runs_and_ends_before_stop_returns() {
        let (directory, agent) = agent_of(SUPERVISES);
        let mut running = start(Load::Fork, &PLACE, &agent).unwrap();
        assert_eq!(running.confinement().unwrap().cpus, [0]);
        assert_eq!(running.counters().unwrap()["fork.storm"], 7);
        assert_eq!(running.stop().unwrap().console, "x");
        assert!(directory.path().join("ended").is_file());
    }

    #[test]
    fn a_load_ends_with_the_value() {
        let (directory, agent) = agent_of(SUPERVISES);
        drop(start(Load::Fork, &PLACE, &agent).unwrap());
        assert!(directory.path().join("ended").is_file());
    }

    #[test]
    fn what_the_supervisor_refuses_is_told_with_the_name_of_the_load() {
        let (_directory, agent) = agent_of(r#"read -r line; echo '{"refused":"needs a ping"}'"#);
        let failure = start(Load::Net, &PLACE, &agent).unwrap_err();
        assert_eq!(failure.to_string(), "load net: needs a ping");
    }

    #[test]
    fn a_supervisor_that_dies_is_no_load_that_did_nothing() {
        let (_directory, agent) = agent_of(
            "read -r line; echo '{\"started\":{\"cpus\":[],\"cgroup\":null,\"processes\":false,\"mounts\":false}}'",
        );
        let mut running = start(Load::Fork, &PLACE, &agent).unwrap();
        assert!(running.counters().unwrap_err().to_string().contains("supervisor ended"));
        let (_directory, agent) = agent_of("exit 1");
        assert!(start(Load::Fork, &PLACE, &agent).is_err());
    }

    #[test]
    fn idle_needs_no_supervisor() {
        let nothing = Path::new("/none");
        let mut idle = start(Load::Idle, &PLACE, nothing).unwrap();
        assert!(idle.counters().unwrap().is_empty() && idle.confinement().is_none());
        assert_eq!(idle.stop().unwrap(), Account::default());
        let missing = start(Load::Fork, &PLACE, nothing).unwrap_err();
        assert!(missing.to_string().contains("make build"), "{missing}");
    }
}
