// SPDX-License-Identifier: GPL-2.0-or-later
//! A command that runs while the test goes on: what it says line by line, its children, its end.

use crate::{Finished, wait_for};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A running command. Killed when dropped.
pub struct Started {
    child: Child,
    lines: Receiver<String>,
    said: String,
    printed: Option<std::thread::JoinHandle<String>>,
}

impl Started {
    /// Starts a command.
    pub fn of(command: &mut Command) -> Started {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut stdout = child.stdout.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let told = BufReader::new(stderr).lines().map_while(Result::ok);
            told.map_while(|line| tell.send(line).ok()).for_each(drop);
        });
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.read_to_string(&mut text);
            text
        });
        Started { child, lines, said: String::new(), printed: Some(printed) }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says a line with this in it, and returns the line.
    #[track_caller]
    pub fn wait_until_it_says(&mut self, words: &str) -> String {
        loop {
            match self.lines.recv() {
                Ok(line) => {
                    self.said += &(line.clone() + "\n");
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(_) => panic!("it ended without saying {words:?}:\n{}", self.said),
            }
        }
    }

    /// Waits until it has a child of this name (the first 15 bytes count) and returns its number.
    pub fn wait_for_child(&self, name: &str) -> u32 {
        wait_for_child_of(self.id(), name)
    }

    /// Kills its children of this name, those that it starts anew too, until it has ended itself.
    pub fn kill_children(&self, name: &str) {
        wait_for("its end", || {
            let named = |pid: &u32| name_of(*pid) == short(name);
            let own = children(self.id()).into_iter().filter(named);
            own.for_each(|pid| send(pid, libc::SIGKILL));
            (!is_alive(self.id())).then_some(())
        });
    }

    /// Kills processes of this name that its own children of this name have started, until so many are killed or it has
    /// ended. Returns how many.
    pub fn kill_grandchildren(&self, name: &str, enough: usize) -> usize {
        let named = |pid: &u32| name_of(*pid) == short(name);
        let mut killed = BTreeSet::new();
        while killed.len() < enough && is_alive(self.id()) {
            let mut below: Vec<u32> = children(self.id()).into_iter().filter(named).collect();
            while let Some(parent) = below.pop() {
                for child in children(parent).into_iter().filter(named) {
                    below.push(child);
                    if killed.insert(child) {
                        send(child, libc::SIGKILL);
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        killed.len()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        send(self.id(), signal);
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Finished {
        let status = self.child.wait().expect("our child");
        while let Ok(line) = self.lines.recv() {
            self.said += &(line + "\n");
        }
        let printed = self.printed.take().expect("taken here only");
        Finished {
            status: status.code(),
            stdout: printed.join().expect("the reader does not panic"),
            stderr: std::mem::take(&mut self.said),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a process has a child of this name (the first 15 bytes count) and returns its number.
pub fn wait_for_child_of(parent: u32, name: &str) -> u32 {
    wait_for(name, || children(parent).into_iter().find(|pid| name_of(*pid) == short(name)))
}

/// Sends a signal to a process.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    // SAFETY: a plain system call; the processes are those that the tests started.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// Whether a process runs (a zombie does not).
pub fn is_alive(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Whether a process is there; a zombie is, until its parent has waited for it.
pub fn is_there(pid: u32) -> bool {
    state_and_parent(pid).is_some()
}

fn short(name: &str) -> String {
    name.chars().take(15).collect()
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_string()
}

/// Third and fourth field of proc_pid_stat(5); the second is in parentheses and may hold anything.
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Processor time that a process has used, in ticks of 10 ms (proc_pid_stat(5), fields 14 and 15); 0 where it is gone.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

fn children(parent: u32) -> Vec<u32> {
    processes().filter(|pid| state_and_parent(*pid).is_some_and(|(_, p)| p == parent)).collect()
}

/// Processes that have `path` on their command line, or a file below it open.
pub fn users_of(path: &Path) -> Vec<u32> {
    let text = path.to_string_lossy().into_owned();
    let names = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&text)
    };
    let holds = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|file| file.starts_with(path))
    };
    let ours = std::process::id();
    let uses = |pid: &u32| *pid != ours && (names(pid) || holds(pid));
    processes().filter(uses).filter(|pid| is_alive(*pid)).collect()
}

/// Command lines of the processes that have `path` in their environment: also of those that a command of a lab has
/// started, whoever is their parent by now.
pub fn started_with(path: &Path) -> Vec<String> {
    let text = path.to_string_lossy().into_owned();
    let of = |pid: u32, name: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let has = |pid: &u32| of(*pid, "environ").contains(&text) && is_alive(*pid);
    processes().filter(has).map(|pid| of(pid, "cmdline")).collect()
}

/// Kills a process outright.
pub fn kill(pid: u32) {
    send(pid, libc::SIGKILL);
}
