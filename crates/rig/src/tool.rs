// SPDX-License-Identifier: GPL-2.0-or-later
//! Running the host's programs: found or named with their package, ended with us, heard when they fail.

use crate::{Error, Result};
use std::cell::Cell;
use std::io::Read;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by the command's signal handler; everything that waits looks at it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Asks everything that waits to stop. Callable from a signal handler.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Does `work`; whatever it waits for on this thread at `deadline` stops as if [`interrupt`] had been called.
pub fn until<T>(deadline: Option<Instant>, work: impl FnOnce() -> T) -> T {
    struct Outer(Option<Instant>);
    impl Drop for Outer {
        fn drop(&mut self) {
            DEADLINE.set(self.0);
        }
    }
    let _outer = Outer(DEADLINE.replace(deadline));
    work()
}

/// Whether [`interrupt`] was called, or this thread's time is up ([`until`]).
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) || DEADLINE.get().is_some_and(|at| Instant::now() >= at)
}

/// How often waiting looks at its child and at [`interrupted`].
pub const POLL: Duration = Duration::from_millis(2);

/// Where programs are looked for, besides PATH: those of the administrator.
const DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The path of the host's program `name`, or of `name` itself where it is a path.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(DIRECTORIES.map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|p| p.is_file())
}

/// A child that is killed with its own children and reaped when it goes out of scope, and by the kernel
/// when we die.
pub struct Reaped(Child);

impl Reaped {
    /// Starts the program.
    ///
    /// # Errors
    /// Those of the system.
    pub fn spawn(command: &mut Command) -> std::io::Result<Reaped> {
        let parent = std::process::id();
        // A group of its own: the terminal's Ctrl-C reaches us alone, and we decide.
        command.process_group(0);
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The parent may have died before the line above.
                if libc::getppid() as u32 != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        command.spawn().map(Reaped)
    }

    /// The exit status, when it has ended.
    pub fn ended(&mut self) -> std::io::Result<Option<std::process::ExitStatus>> {
        self.0.try_wait()
    }
}

impl Reaped {
    /// Its ends of the pipes that it was started with, once.
    pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.0.stdin.take(), self.0.stdout.take(), self.0.stderr.take())
    }

    /// Its exit status, once it has ended.
    pub fn wait(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.0.wait()
    }

    /// Sends it SIGTERM.
    pub fn ask_to_end(&self) {
        // SAFETY: a plain system call; until it is reaped nobody else has its number.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGTERM) };
    }
}

/// Leaves the descriptors open across exec, in the child alone.
pub fn inherit(command: &mut Command, descriptors: Vec<RawFd>) {
    // SAFETY: fcntl is async-signal-safe, and the descriptors outlive the spawn.
    unsafe {
        command.pre_exec(move || {
            for fd in &descriptors {
                if libc::fcntl(*fd, libc::F_SETFD, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // What apt-get or make started would outlive them. Until it is reaped nobody else has its number.
        if let Ok(None) = self.0.try_wait() {
            // SAFETY: a plain system call; the group was made in `spawn`.
            unsafe { libc::killpg(self.0.id() as libc::pid_t, libc::SIGKILL) };
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Runs a program to its end and returns what it printed.
///
/// # Errors
/// [`Error::NoProgram`] with `package`; [`Error::Program`] with the end of its complaints when it
/// fails or takes longer than `deadline`; [`Error::Interrupted`].
pub(crate) fn run(
    command: &mut Command,
    package: &'static str,
    deadline: Duration,
) -> Result<String> {
    run_bytes(command, package, deadline).map(|out| String::from_utf8_lossy(&out).into_owned())
}

/// As [`run`], for output that is no text.
pub(crate) fn run_bytes(
    command: &mut Command,
    package: &'static str,
    deadline: Duration,
) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let line = line_of(command);
    let failed = |why: String| Error::Program { command: line.clone(), why };
    let Some(program) = find(&name) else {
        return Err(Error::NoProgram { name, package });
    };
    let mut command = resolved(command, &program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Reaped::spawn(&mut command).map_err(|e| failed(e.to_string()))?;
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut text);
            }
            text
        })
    };
    let out = drain(child.0.stdout.take().map(|p| Box::new(p) as _));
    let err = drain(child.0.stderr.take().map(|p| Box::new(p) as _));
    let begun = Instant::now();
    let status = loop {
        match child.ended() {
            Ok(Some(status)) => break status,
            Ok(None) if interrupted() => return Err(Error::Interrupted),
            Ok(None) if begun.elapsed() > deadline => {
                return Err(failed(format!("not done after {} s", deadline.as_secs())));
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(e) => return Err(failed(e.to_string())),
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    if status.success() {
        return Ok(out);
    }
    let said = if err.trim_ascii().is_empty() { out } else { err };
    Err(failed(format!("{status}: {}", last_lines(&String::from_utf8_lossy(&said), 12))))
}

/// The command line as a person reads it; of a program in namespaces of its own what runs in them.
fn line_of(command: &Command) -> String {
    let line = format!("{command:?}").replace('"', "");
    let inner = line.strip_prefix("bwrap ").and_then(|rest| rest.split_once(" --chdir "));
    match inner.and_then(|(_, rest)| rest.split_once(' ')) {
        Some((_, inner)) => format!("{inner} (by bwrap)"),
        None => line,
    }
}

/// The same command with the program at `path`: an ordinary user's PATH is without the administrator's
/// programs, depmod among them. Without a language either, because what programs say is parsed.
fn resolved(command: &Command, path: &Path) -> Command {
    let mut resolved = Command::new(path);
    resolved.args(command.get_args()).env("LC_ALL", "C");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => resolved.env(name, value),
            None => resolved.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        resolved.current_dir(directory);
    }
    resolved
}

/// The last `n` lines of a text, trimmed.
pub(crate) fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let e = run(&mut Command::new("no-such-program"), "nothing", LONG).unwrap_err();
        assert!(e.to_string().contains("apt-get install nothing"), "{e}");
    }

    #[test]
    fn a_failing_program_is_heard() {
        let e =
            run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "dash", LONG).unwrap_err();
        assert!(e.to_string().contains("why") && e.to_string().contains('3'), "{e}");
    }

    #[test]
    fn a_program_past_its_deadline_is_killed() {
        let e = run(Command::new("sleep").arg("1000"), "coreutils", Duration::ZERO).unwrap_err();
        assert!(e.to_string().contains("not done after"), "{e}");
    }

    #[test]
    fn what_is_waited_for_until_a_deadline_stops_there_and_nothing_later_does() {
        let long = || run(Command::new("sleep").arg("1000"), "coreutils", LONG);
        let stopped = until(Some(Instant::now()), long);
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        assert!(!interrupted());
        let later = Instant::now().checked_add(LONG);
        assert!(
            !until(later, interrupted) && until(later, || until(Some(Instant::now()), interrupted))
        );
    }

    #[test]
    fn programs_speak_the_language_that_is_parsed_and_keep_their_directory() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $LC_ALL $X; pwd"]).current_dir("/usr").env("X", "x");
        assert_eq!(run(&mut command, "dash", LONG).unwrap(), "C x\n/usr\n");
    }

    #[test]
    fn output_is_returned() {
        assert_eq!(run(Command::new("echo").arg("x"), "coreutils", LONG).unwrap(), "x\n");
    }
}
