// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds programs of the host with the libraries that they need, as the host's own loader finds them (ldd(1)).

use super::unusable;
use crate::{Error, Result, tool};
use agent::PROGRAMS;
use agent::load::package_of;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

/// A program to put into the guest.
pub struct Program {
    /// The program's place on the host, with links followed.
    pub host: PathBuf,
    name: String,
}

/// The place of a program in the image.
pub fn program(name: &str) -> String {
    format!("{}/{name}", PROGRAMS.trim_start_matches('/'))
}

impl Program {
    /// Finds a program by name or path. gcc hides `cc1` and similar programs, so gcc is asked for them.
    pub fn find(name: &str) -> Result<Program> {
        let package = package_of(name).unwrap_or("(the package it is in)");
        let missing = || Error::NoProgram { name: name.into(), package };
        let path = tool::find(name).or_else(|| hidden_in_gcc(name)).ok_or_else(missing)?;
        let host = path.canonicalize().map_err(|_| missing())?;
        // The name that was asked for, and not the target of a link such as /bin/sh.
        let name = name.rsplit('/').next().unwrap_or_default().to_string();
        Ok(Program { host, name })
    }

    /// The program's place in the guest. gcc looks for cc1 in the same place as the host's gcc.
    pub fn guest_path(&self) -> String {
        if self.name == "cc1" {
            return self.host.to_string_lossy().into_owned();
        }
        program(&self.name)
    }

    /// The shared libraries that the program needs, and the loader. Empty for a static program or a script.
    pub fn libraries(&self) -> Result<Vec<PathBuf>> {
        let mut file =
            confined::file(&self.host).map_err(|e| unusable(&self.host, &e.to_string()))?;
        let mut magic = [0; 4];
        // A script may be shorter than that.
        if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
            return Ok(Vec::new());
        }
        match tool::run(Command::new("ldd").arg(&self.host), "libc-bin", DEADLINE) {
            Ok(text) => {
                let needed = parse(&text).map_err(|lib| {
                    unusable(&self.host, &format!("needs {lib}, which is not installed"))
                })?;
                Ok(with_unwinder(needed))
            }
            // ldd says in this way that a program is static.
            Err(Error::Program { why, .. }) if why.contains("not a dynamic executable") => {
                Ok(Vec::new())
            }
            Err(e) => Err(e),
        }
    }
}

fn hidden_in_gcc(name: &str) -> Option<PathBuf> {
    let argument = format!("-print-prog-name={name}");
    let path = tool::run(Command::new("gcc").arg(argument), "gcc", DEADLINE).ok()?;
    let path = PathBuf::from(path.trim());
    path.is_absolute().then_some(path)
}

/// The place of a library in the guest. The loader and the libraries keep their directories, below /usr. The guest's
/// links lead there.
pub fn guest_library(host: &Path) -> String {
    let path = host.to_string_lossy();
    let path = path.trim_start_matches('/');
    if path.starts_with("usr/") { path.to_string() } else { format!("usr/{path}") }
}

/// Adds the library that glibc itself loads when a thread is cancelled or exits. ldd knows nothing of it, and without
/// it iperf3 3.16 and later aborts.
fn with_unwinder(mut libraries: Vec<PathBuf>) -> Vec<PathBuf> {
    let libc = libraries.iter().find(|l| l.file_name().is_some_and(|n| n == "libc.so.6"));
    let unwinder = libc.map(|libc| libc.with_file_name("libgcc_s.so.1"));
    libraries.extend(unwinder.filter(|u| u.is_file() && !libraries.contains(u)));
    libraries
}

/// The paths in ldd's output. The error is the name of a library that was not found.
fn parse(text: &str) -> std::result::Result<Vec<PathBuf>, String> {
    let mut libraries = Vec::new();
    for line in text.lines().map(str::trim) {
        let (name, rest) = line.split_once(" => ").unwrap_or(("", line));
        if rest.starts_with("not found") {
            return Err(name.to_string());
        }
        let path = rest.split(" (").next().unwrap_or_default();
        if path.starts_with('/') {
            libraries.push(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_is_understood() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(parse(text).unwrap(), expected.map(PathBuf::from));
        assert_eq!(parse("\tlibx.so => not found\n").unwrap_err(), "libx.so");
    }

    #[test]
    fn libraries_go_below_usr_where_the_links_lead() {
        assert_eq!(guest_library(Path::new("/lib64/ld.so")), "usr/lib64/ld.so");
        assert_eq!(guest_library(Path::new("/usr/lib/x.so")), "usr/lib/x.so");
    }

    #[test]
    fn a_program_of_this_machine_has_its_libraries() {
        let sh = Program::find("sh").unwrap();
        assert_eq!(sh.guest_path(), "usr/bin/sh");
        let libraries = sh.libraries().unwrap();
        for name in ["libc.so", "libgcc_s.so"] {
            assert!(libraries.iter().any(|l| l.to_string_lossy().contains(name)), "{name}");
        }
        let e = Program::find("no-such-program").map(|_| ()).unwrap_err();
        assert!(e.to_string().contains("no-such-program"));
    }
}
