// SPDX-License-Identifier: GPL-2.0-or-later
//! A program that is not part of onset, started under a policy on chosen CPUs: the user's own, or a peer of the probes.
//! It ends with whoever started it.
//!
//! The program takes its policy from the thread that starts it, which has that policy only meanwhile. The kernel lets
//! no task with SCHED_DEADLINE start another one (sched-deadline.rst, §5).

use crate::failure;
use crate::report::RunError;
use rt::Policy;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};
use work::{POLL, Reaped};

/// How long a program has to end after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(1);

/// The program while it runs. When this value is dropped, or has said how the program ended, the program is gone with
/// all that it started.
pub struct RunningProgram(Reaped);

impl RunningProgram {
    /// Starts the program. The calling thread has ordinary policy afterwards, and stays on its CPUs. `named` is for the
    /// message of a failure, and `remedy` says there what to do.
    ///
    /// # Errors
    /// If the policy is SCHED_DEADLINE or not allowed, if a CPU may not be used, or if the program cannot be started.
    pub fn start(
        command: &mut Command,
        policy: Policy,
        cpus: &[u32],
        (named, remedy): (&str, &str),
    ) -> Result<RunningProgram, RunError> {
        if let Policy::Deadline { .. } = policy {
            let wrong = "a task with this policy starts no program; measure with other, and let the program take the policy itself";
            return Err(failure::plan("policy", wrong));
        }
        if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= libc::CPU_SETSIZE as u32) {
            let most = libc::CPU_SETSIZE - 1;
            return Err(failure::plan(
                "cpus",
                format!("there is no CPU {cpu}; {most} is the last"),
            ));
        }
        let cpus = cpus.to_vec();
        // SAFETY: only system calls are made between fork and exec, and nothing is allocated.
        unsafe {
            command.pre_exec(move || stay_on(&cpus));
        }
        rt::apply(policy)?;
        let started = Reaped::spawn(command);
        rt::apply(Policy::Other(0))?;
        let started = started.map_err(|e| failure::unavailable(named, format!("{e}; {remedy}")))?;
        Ok(RunningProgram(started))
    }

    /// Its ends of the pipes that it was started with, once.
    pub fn pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        let (_, stdout, stderr) = self.0.pipes();
        (stdout, stderr)
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its exit status, if it has ended. What it started ends then, too: a program behind a script would go on alone.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.0.has_ended().unwrap_or(false) {
            self.0.kill_all();
        }
        self.0.ended()
    }

    /// Its exit status, once it has ended.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.ended()? {
                Some(status) => return Ok(status),
                None => std::thread::sleep(POLL),
            }
        }
    }

    /// Asks it and what it started to end, by SIGTERM.
    pub fn ask_to_end(&self) {
        self.0.ask_to_end();
    }

    /// Ends it and what it started: by SIGTERM, so that it can put its machine to rest, and then by SIGKILL.
    pub fn end(mut self) {
        self.ask_to_end();
        let begun = Instant::now();
        let is_there = |program: &Reaped| {
            program.has_ended().is_ok_and(|ended| !ended || program.has_children())
        };
        while begun.elapsed() < FAREWELL && is_there(&self.0) {
            std::thread::sleep(POLL);
        }
        let _ = self.ended();
    }
}

/// Binds the calling process to these CPUs.
fn stay_on(cpus: &[u32]) -> io::Result<()> {
    // SAFETY: plain system calls on plain data.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu as usize, &mut set));
        match libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::Stdio;

    fn start(script: &str, policy: Policy) -> Result<RunningProgram, RunError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        let cpus = rt::allowed_cpus().expect("there are some");
        RunningProgram::start(&mut command, policy, &cpus, ("sh", "install a shell"))
    }

    #[test]
    fn a_program_runs_where_it_is_put_and_its_starter_is_left_alone() {
        let mut program = start("exit 7", Policy::Other(0)).expect("it starts");
        assert_eq!(program.wait().expect("it ends").code(), Some(7));
        let mut nowhere = Command::new("/no/such/program");
        let cpus = rt::allowed_cpus().expect("there are some");
        let remedy = ("mine", "name another");
        let failed = RunningProgram::start(&mut nowhere, Policy::Other(0), &cpus, remedy);
        let message = failed.err().expect("it is not there").to_string();
        assert!(message.contains("mine") && message.contains("name another"), "{message}");
        assert_eq!(rt::allowed_cpus().expect("as before"), cpus);
    }

    #[test]
    fn a_program_that_does_not_heed_sigterm_is_killed_and_one_that_does_ends_itself() {
        let lines_of = |at_the_end: &str| {
            let script = format!("trap '{at_the_end}' TERM; echo up; while :; do sleep 0.05; done");
            let mut program = start(&script, Policy::Other(0)).expect("it starts");
            let (stdout, _) = program.pipes();
            let mut lines = BufReader::new(stdout.expect("a pipe")).lines();
            // It has set its trap by now.
            assert_eq!(lines.next().expect("a line").expect("text"), "up");
            let id = program.id();
            program.end();
            assert!(!Path::new(&format!("/proc/{id}")).exists());
            lines.map(|line| line.expect("text")).collect::<Vec<_>>()
        };
        assert_eq!(lines_of("echo bye; exit 0"), ["bye"]);
        assert!(lines_of("").is_empty());
    }

    /// A process that was killed takes a moment to be gone.
    fn wait_until_gone(pid: &str) {
        let begun = Instant::now();
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{stat}");
            std::thread::sleep(POLL);
        }
    }

    #[test]
    fn what_a_script_started_ends_with_it_in_time_and_is_killed_after_it() {
        for (last, said) in [("trap 'echo bye; exit' TERM", vec!["bye"]), ("trap '' TERM", vec![])]
        {
            let inner = format!("{last}; echo $$; while :; do sleep 0.05; done");
            let mut program =
                start(&format!("sh -c \"{}\"; true", inner.replace('$', "\\$")), Policy::Other(0))
                    .expect("it starts");
            let (stdout, _) = program.pipes();
            let mut lines = BufReader::new(stdout.expect("a pipe")).lines();
            let inner = lines.next().expect("a line").expect("text");
            assert_ne!(inner, program.id().to_string());
            program.end();
            assert_eq!(lines.map(|line| line.expect("text")).collect::<Vec<_>>(), said);
            wait_until_gone(&inner);
        }
        // A script that ends by itself leaves nobody.
        let mut program = start("sleep 100 & echo $!", Policy::Other(0)).expect("it starts");
        let (stdout, _) = program.pipes();
        let left = BufReader::new(stdout.expect("a pipe")).lines().next();
        let left = left.expect("a line").expect("text");
        assert_eq!(program.wait().expect("it ends").code(), Some(0));
        wait_until_gone(&left);
    }

    #[test]
    fn a_deadline_is_refused_with_what_to_do() {
        let ms = sample::Nanos::from_millis(1);
        let policy = Policy::Deadline { runtime: ms, deadline: ms, period: ms };
        let message = start("exit 0", policy).err().expect("refused").to_string();
        assert!(message.contains("let the program take the policy itself"), "{message}");
    }
}
