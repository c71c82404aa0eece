// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the QEMU that runs the machines: the host's own, or one that the user names. Checks that the plugin works with
//! it.
//!
//! The interfaces of QEMU that the plugin needs are not stable. The plugin looks at them itself
//! (`crates/plugin/src/checks.rs`), and is asked to do so before a machine is made. A QEMU is refused because of a
//! check that it does not pass, and not because of its version.

use crate::error::At;
use crate::tool;
use crate::x86_64::{FIRMWARE, LIBRARIES, LINKERS, PACKAGE, QEMU};
use crate::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use wire::arguments::{DECLARES, INTERFACES, PASSED, QEMUS_TRIED, TRIAL};

/// The environment variable that names another QEMU: its program, or the root directory of another release.
pub const CHOICE: &str = "ONSET_QEMU";
/// The environment variable of ld.so(8).
const PRELOAD: &str = "LD_PRELOAD";
/// QEMU's message about a plugin that declares more than QEMU has (plugins/loader.c).
const AT_MOST: &str = "supports only up to version ";
/// The longest wait for a version or a trial. Both usually come in a moment.
const DEADLINE: Duration = Duration::from_secs(60);

/// A QEMU, and how to call it.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// The arguments that come before all others.
    leading: Vec<OsString>,
    version: String,
    /// The version of the plugin interface on which QEMU and the plugin agreed in a trial.
    interface: Option<u32>,
    /// The plugin, with its open file, if QEMU is to have it.
    plugin: Option<(PathBuf, Arc<File>)>,
}

impl Emulator {
    /// The QEMU that `ONSET_QEMU` names, or otherwise the host's.
    ///
    /// # Errors
    /// If there is no QEMU, or it does not say its version.
    pub fn find() -> Result<Emulator> {
        let (program, leading) = match std::env::var_os(CHOICE).filter(|choice| !choice.is_empty())
        {
            Some(choice) => chosen(Path::new(&choice))?,
            None => {
                let missing = || Error::NoProgram { name: QEMU.into(), package: PACKAGE };
                (tool::find(QEMU).ok_or_else(missing)?, Vec::new())
            }
        };
        let mut found =
            Emulator { program, leading, version: String::new(), interface: None, plugin: None };
        let text = tool::run(found.command().arg("--version"), PACKAGE, DEADLINE)?;
        let first = text.lines().next().unwrap_or_default();
        found.version = first.trim_start_matches("QEMU emulator version ").to_string();
        Ok(found)
    }

    /// The version that QEMU says it has, such as `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether onset was tried with this version.
    pub fn is_tried(&self) -> bool {
        is_tried(&self.version)
    }

    /// QEMU's program, with the arguments that it always needs.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading);
        if let Some(version) = self.interface {
            command.env(declares(), version.to_string());
        }
        self.plugin.iter().for_each(|plugin| preload(&mut command, plugin));
        command
    }

    /// The same QEMU after a trial with the plugin. It passes everything that can be checked before there is a machine.
    ///
    /// # Errors
    /// [`Error::Qemu`] with the check that QEMU does not pass.
    pub fn tried_with(mut self, plugin: &Path) -> Result<Emulator> {
        let path = std::path::absolute(plugin).at(plugin)?;
        self.plugin = Some((path, Arc::new(File::open(plugin).at(plugin)?)));
        let first = self.trial(plugin, *INTERFACES.end());
        let interface = match first {
            Err(said) => match at_most(&said).filter(|version| INTERFACES.contains(version)) {
                Some(version) => self.trial(plugin, version),
                None => Err(said),
            },
            passed => passed,
        };
        match interface {
            Ok(version) => Ok(Emulator { interface: Some(version), ..self }),
            Err(said) => Err(Error::Qemu(refusal(&self.version, &said))),
        }
    }

    /// Lets the plugin declare this version and look. Returns the version. The error is what QEMU or the plugin said.
    fn trial(&self, plugin: &Path, version: u32) -> std::result::Result<u32, String> {
        let mut command = self.command();
        command.env(declares(), version.to_string());
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-S"]);
        command.args(["-machine", "none", "-accel", "tcg", "-plugin"]);
        command.arg(format!("file={},{TRIAL}=on", super::option_value(plugin)));
        let said = match tool::run(&mut command, PACKAGE, DEADLINE) {
            Err(Error::Program { why, .. }) => return Err(why),
            other => other.map_err(|e| e.to_string())?,
        };
        let passed = said.lines().any(|line| {
            line.strip_prefix(PASSED).is_some_and(|number| number == version.to_string())
        });
        if passed { Ok(version) } else { Err(said) }
    }
}

/// Has the dynamic linker take the plugin's functions before those of the C library: `gettimeofday` and
/// `__longjmp_chk`, of which crates/plugin/src/tlb.rs and pausing.rs say why. The linker takes a space or a colon in a
/// path for its end. Such a path is named by this process's descriptor, which QEMU may not open if this program has
/// capabilities of its own (setcap).
fn preload(command: &mut Command, (plugin, file): &(PathBuf, Arc<File>)) {
    let parts = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
    let mut libraries = match plugin.as_os_str().as_bytes().iter().any(parts) {
        false => plugin.clone().into_os_string(),
        true => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
    };
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    command.env(PRELOAD, libraries);
}

/// The variable that tells the plugin which version of QEMU's plugin interface to declare.
fn declares() -> &'static OsStr {
    OsStr::from_bytes(DECLARES.to_bytes())
}

/// Whether onset was tried with this version (in the form of [`Emulator::version`]).
pub fn is_tried(version: &str) -> bool {
    QEMUS_TRIED
        .iter()
        .any(|tried| version.strip_prefix(tried).is_some_and(|rest| rest.starts_with('.')))
}

/// The versions with which onset was tried, for messages.
pub fn versions_tried() -> String {
    QEMUS_TRIED.join(" and ")
}

/// The newest version of the plugin interface, if QEMU said that it has none above.
fn at_most(said: &str) -> Option<u32> {
    let rest = said.split(AT_MOST).nth(1)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The message for a QEMU of this version that does not pass. The plugin names the check. If QEMU did not take the
/// plugin, this is a check as well.
fn refusal(version: &str, said: &str) -> String {
    if said.contains("the check `") {
        return said.to_owned();
    }
    format!(
        "{version} is refused, the check `interface` failed: {said}\nonset was tried with QEMU {}",
        versions_tried()
    )
}

/// The program and the leading arguments for a user's `choice`.
fn chosen(choice: &Path) -> Result<(PathBuf, Vec<OsString>)> {
    if !choice.is_dir() {
        let found = choice.to_str().and_then(tool::find);
        let missing = || {
            Error::Qemu(format!(
                "{CHOICE} is {}, and there is no such program or directory",
                choice.display()
            ))
        };
        return Ok((found.ok_or_else(missing)?, Vec::new()));
    }
    let inside = |places: &[&str]| -> Vec<PathBuf> {
        places.iter().map(|place| choice.join(place)).filter(|path| path.exists()).collect()
    };
    let program = choice.join("usr/bin").join(QEMU);
    let linker = inside(&LINKERS).into_iter().next().filter(|_| program.is_file());
    let linker = linker.ok_or_else(|| {
        Error::Qemu(format!(
            "{CHOICE} is {}, which is no root directory with usr/bin/{QEMU} and a dynamic linker in it",
            choice.display()
        ))
    })?;
    let libraries = std::env::join_paths(inside(&LIBRARIES)).map_err(|_| {
        Error::Qemu(format!("{CHOICE} is {}, whose path has a colon in it", choice.display()))
    })?;
    let mut leading = vec!["--library-path".into(), libraries, program.into_os_string()];
    for directory in inside(&FIRMWARE) {
        leading.extend(["-L".into(), directory.into_os_string()]);
    }
    Ok((linker, leading))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A QEMU that is a shell script.
    fn emulator(directory: &Path, script: &str) -> Emulator {
        // The shell reads the script. A program that was just written cannot be run while a child of another test still
        // has it open.
        let path = directory.join("qemu");
        fs::write(&path, format!("{script}\n")).unwrap();
        let version = "12.3.4 (made up)".into();
        Emulator {
            program: "/bin/sh".into(),
            leading: vec![path.into()],
            version,
            interface: None,
            plugin: None,
        }
    }

    fn tried(script: &str) -> std::result::Result<Option<u32>, String> {
        let directory = tempfile::tempdir().unwrap();
        // No library: the dynamic linker says so, and goes on.
        let plugin = directory.path().join("the plugin.so");
        fs::write(&plugin, "").unwrap();
        let tried = emulator(directory.path(), script).tried_with(&plugin);
        tried.map(|e| e.interface).map_err(|e| e.to_string())
    }

    const SAYS_ITS_VERSION: &str =
        r#"echo "onset plugin: passed, with version $ONSET_PLUGIN_INTERFACE""#;

    #[test]
    fn versions_that_were_tried_are_told_from_others() {
        for version in ["10.0.2 (Debian 1:10.0.2+ds-2)", "11.1.3", "11.1.0-rc1"] {
            assert_eq!(is_tried(version), version != "11.1.0-rc1" || version.starts_with("11.1."));
        }
        for version in ["10.1.0", "11.0.2", "1.1", "10.02", "12.0.0", "110.0.1"] {
            assert!(!is_tried(version), "{version}");
        }
    }

    #[test]
    fn the_newest_interface_is_taken_that_both_have() {
        assert_eq!(tried(SAYS_ITS_VERSION), Ok(Some(7)));
        let old = format!(
            r#"[ $ONSET_PLUGIN_INTERFACE -le 5 ] || {{ echo "requires 7, but this QEMU supports only up to version 5" >&2; exit 1; }}
            {SAYS_ITS_VERSION}"#
        );
        assert_eq!(tried(&old), Ok(Some(5)));
    }

    #[test]
    fn a_qemu_whose_interface_is_not_known_is_refused_by_the_check_of_it() {
        let ancient = "echo 'this QEMU supports only up to version 3' >&2; exit 1";
        let coming = "echo 'this QEMU supports only a minimum version of 9' >&2; exit 1";
        for script in
            [ancient, coming, "echo something else", SAYS_ITS_VERSION.replace('$', "\\$").as_str()]
        {
            let said = tried(script).unwrap_err();
            for word in ["12.3.4", "`interface`", "10.0 and 11.1"] {
                assert!(said.contains(word), "{said}");
            }
        }
    }

    #[test]
    fn a_check_that_the_plugin_names_is_passed_on() {
        let script = "echo 'onset plugin: this QEMU 12.3.4 is refused, the check `clocks` failed: so' >&2; exit 1";
        let said = tried(&script.replace('`', "\\`").replace('\'', "\"")).unwrap_err();
        assert!(said.contains("`clocks`") && !said.contains("`interface`"), "{said}");
    }

    #[test]
    fn a_root_directory_is_run_by_its_own_linker_with_its_own_libraries_and_firmware() {
        let root = tempfile::tempdir().unwrap();
        let none = chosen(root.path()).unwrap_err().to_string();
        assert!(none.contains("no root directory"), "{none}");
        for file in [LINKERS[0], "usr/bin/qemu-system-x86_64", "usr/share/seabios/bios.bin"] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let (program, leading) = chosen(root.path()).unwrap();
        assert_eq!(program, root.path().join(LINKERS[0]));
        let words: Vec<String> = leading
            .iter()
            .map(|w| w.to_string_lossy().replace(root.path().to_str().unwrap(), "R"))
            .collect();
        assert_eq!(
            words,
            [
                "--library-path",
                "R/usr/lib/x86_64-linux-gnu",
                "R/usr/bin/qemu-system-x86_64",
                "-L",
                "R/usr/share/seabios",
            ]
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_variable_that_asked_for_it() {
        let said = chosen(Path::new("/no/such/qemu")).unwrap_err().to_string();
        assert!(said.contains("ONSET_QEMU is /no/such/qemu"), "{said}");
        assert_eq!(chosen(Path::new("/bin/sh")).unwrap(), ("/bin/sh".into(), Vec::new()));
    }
}
