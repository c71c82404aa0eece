// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the host's programs. If a program is missing, the error names its package. A program ends when onset ends. If a
//! program fails, the error has its output.

use crate::{Error, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use work::{POLL, Reaped, is_cancelled};

/// The directories in which programs are searched besides PATH: those of the administrator.
const DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The path of the host's program `name`. If `name` is a path, this is the path itself.
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

/// Runs a program to its end, and returns its output.
///
/// # Errors
/// [`Error::NoProgram`] with `package`. [`Error::Program`] with the end of its error output if it fails or takes longer
/// than `deadline`. [`Error::Interrupted`].
pub fn run(command: &mut Command, package: &'static str, deadline: Duration) -> Result<String> {
    run_bytes(command, package, deadline).map(|out| String::from_utf8_lossy(&out).into_owned())
}

/// The same as [`run`], for output that is no text.
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
    let (_, out, err) = child.pipes();
    let out = drain(out.map(|p| Box::new(p) as _));
    let err = drain(err.map(|p| Box::new(p) as _));
    let begun = Instant::now();
    let status = loop {
        match child.ended() {
            Ok(Some(status)) => break status,
            Ok(None) if is_cancelled() => return Err(Error::Interrupted),
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

/// The command line as a person reads it. For a program in namespaces of its own, this is the command inside them.
fn line_of(command: &Command) -> String {
    let line = format!("{command:?}").replace('"', "");
    let inner = line.strip_prefix("bwrap ").and_then(|rest| rest.split_once(" --chdir "));
    match inner.and_then(|(_, rest)| rest.split_once(' ')) {
        Some((_, inner)) => format!("{inner} (by bwrap)"),
        None => line,
    }
}

/// The same command with the program at `path`. An ordinary user's PATH lacks the administrator's programs, such as
/// depmod. The command has no language either, because onset reads its output.
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
pub fn last_lines(text: &str, n: usize) -> String {
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
    fn what_is_waited_for_stops_when_it_is_asked_to() {
        let cancel = work::Cancel::default();
        cancel.ask();
        let long = || run(Command::new("sleep").arg("1000"), "coreutils", LONG);
        let stopped = cancel.during(long);
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
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
