// SPDX-License-Identifier: GPL-2.0-or-later
//! Boot parameters: the command line, and an entry of GRUB that has more of them.
//!
//! The usual entries of the menu stay as they are. `42_onset` is a script of grub-mkconfig that makes one more entry,
//! by the distribution's own script with the parameters of `onset.cfg` added. grub-reboot(8) chooses that entry for
//! the next boot alone: a kernel that hangs with it comes up again without it.

use crate::{Spot, System};

/// The drop-in with the parameters. Debian's grub-mkconfig reads all files of that directory.
pub const PARAMETERS: &str = "/etc/default/grub.d/onset.cfg";
/// The script that makes the entry.
pub const SCRIPT: &str = "/etc/grub.d/42_onset";
/// The title of the entry, which the distribution's script makes of the name `onset`.
pub const TITLE: &str = "onset GNU/Linux";
const USUAL: &str = "/etc/grub.d/10_linux";
const DIRECTORY: &str = "/etc/default/grub.d";
const MENU: &str = "/boot/grub/grub.cfg";
const UPDATE: &str = "/usr/sbin/update-grub";
const CHOOSE: &str = "/usr/sbin/grub-reboot";
const ENVIRONMENT: &str = "/usr/bin/grub-editenv";
const PROBE: &str = "/usr/sbin/grub-probe";
/// Where GRUB keeps the choice of the next boot.
const GRUB_DIRECTORY: &str = "/boot/grub";
/// Where GRUB only reads (grub-mkconfig's 00_header): it could not take the choice back as it boots.
const READ_ONLY: [&str; 6] = ["btrfs", "cpiofs", "diskfilter", "lvm", "newc", "zfs"];
const HEAD: &str = "# Written by onset tune. `onset tune undo` takes it back.\n";

/// The text of [`SCRIPT`].
pub const SCRIPT_TEXT: &str = "#!/bin/sh
# Written by onset tune. `onset tune undo` takes it back.
# One more entry beside the usual ones: the distribution's own script, with the parameters of onset.cfg added.
[ -n \"$ONSET_TUNE\" ] || exit 0
GRUB_DISTRIBUTOR=onset
GRUB_DISABLE_SUBMENU=
GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT $ONSET_TUNE\"
export GRUB_DISTRIBUTOR GRUB_DISABLE_SUBMENU GRUB_CMDLINE_LINUX_DEFAULT
exec \"$(dirname \"$0\")/10_linux\"
";

/// The parameters of a command line, in order. `-` and `_` in their names are alike, as in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, Option<String>)>);

impl Parameters {
    /// The parameters before `--`.
    pub fn of(line: &str) -> Parameters {
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let part = |word: &str| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
        Parameters(words.map(part).collect())
    }

    /// The value of a parameter; empty if it stands there without one. As in the kernel, the last one holds.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rfind(|(known, _)| is_same(known, name));
        found.map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// Gives a parameter a value. An empty value is none.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| !is_same(known, name));
        self.0.push((name.into(), (!value.is_empty()).then(|| value.into())));
    }

    /// Each parameter and its value, which is empty if it has none.
    pub fn words(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref().unwrap_or_default()))
    }

    /// A parameter with its value as a word of the command line.
    pub fn word((name, value): (&str, &str)) -> String {
        if value.is_empty() { name.into() } else { format!("{name}={value}") }
    }

    /// The command line.
    pub fn line(&self) -> String {
        self.words().map(Self::word).collect::<Vec<_>>().join(" ")
    }
}

fn is_same(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.replace('-', "_");
    plain(a) == plain(b)
}

/// Whether a boot parameter's value needs no quotation marks anywhere on its way to the kernel.
pub fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:=+-/@".contains(c))
}

/// The text of the drop-in with these parameters.
pub fn dropin(parameters: &Parameters) -> String {
    format!("{HEAD}ONSET_TUNE='{}'\nexport ONSET_TUNE\n", parameters.line())
}

/// The parameters of a drop-in; none if somebody else wrote the file.
pub fn of_dropin(text: &str) -> Option<Parameters> {
    let line = text.strip_prefix(HEAD)?.lines().next()?;
    Some(Parameters::of(line.strip_prefix("ONSET_TUNE='")?.strip_suffix('\'')?))
}

/// The files on disk that onset changes: the drop-in, the script, and the menu that GRUB's programs make of both.
pub fn places() -> [Spot; 3] {
    [PARAMETERS, SCRIPT, MENU].map(|path| Spot::Disk(path.into()))
}

/// Whether a place is GRUB's menu. Who installs a kernel makes that file anew, too.
pub fn is_menu(place: &Spot) -> bool {
    matches!(place, Spot::Disk(path) if path == MENU)
}

/// The parameters of onset's entry. None without an entry.
pub fn of_entry(system: &System) -> Parameters {
    system.text(PARAMETERS).and_then(|text| of_dropin(&text)).unwrap_or_default()
}

/// Why onset cannot make an entry on this machine.
pub fn hindrance(system: &System) -> Option<String> {
    let needed = [(USUAL, false), (UPDATE, true), (DIRECTORY, false)];
    let missing = needed.iter().find(|(path, _)| !system.path(path).exists());
    missing
        .map(|(path, _)| format!("this machine does not boot by Debian's GRUB: there is no {path}"))
}

/// Why an entry that is chosen here for one boot would stay chosen: GRUB cannot take the choice back as it boots.
pub fn why_not_once(system: &System) -> Option<String> {
    let ask = |target| system.run(PROBE, &[target, GRUB_DIRECTORY]).unwrap_or_default();
    let said = [ask("--target=fs"), ask("--target=abstraction")].join(" ");
    let on = said.split_whitespace().find(|word| READ_ONLY.contains(word))?;
    Some(format!(
        "GRUB cannot write to {GRUB_DIRECTORY} as it boots ({on}), so a choice for one boot would stay for all"
    ))
}

/// Makes GRUB's menu of its files anew, durably: update-grub itself does not, and /boot may be another file system than
/// the journal's.
///
/// # Errors
/// With what the program says, or the operating system.
pub fn refresh(system: &System) -> Result<(), String> {
    system.run(UPDATE, &[])?;
    make_durable(system)
}

/// Makes GRUB's menu durable as it stands.
///
/// # Errors
/// With what the operating system says.
pub fn make_durable(system: &System) -> Result<(), String> {
    system.sync(MENU).map_err(|e| format!("{MENU} is written, and cannot be made durable: {e}"))
}

/// Whether both files of onset's entry are there.
pub fn has_entry(system: &System) -> bool {
    [PARAMETERS, SCRIPT].iter().all(|path| system.path(path).exists())
}

/// Whether the menu has onset's entry.
pub fn is_in_menu(system: &System) -> bool {
    let menu = system.text(MENU).unwrap_or_default();
    menu.lines().any(|line| line.starts_with(&format!("menuentry '{TITLE}'")))
}

/// Chooses onset's entry for the next boot alone.
///
/// # Errors
/// If somebody has chosen another entry. With what the program says.
pub fn choose(system: &System) -> Result<(), String> {
    match chosen(system)? {
        Some(other) if !is_ours(&other) => {
            Err(format!("the next boot is to be {other:?}, which somebody has chosen"))
        }
        _ => system.run(CHOOSE, &[TITLE]).map(drop),
    }
}

/// Takes the choice of the next boot back if it is onset's entry, and that is gone. GRUB leaves an empty choice behind
/// when it has booted one, which goes too.
///
/// # Errors
/// With what the program says.
pub fn unchoose(system: &System) -> Result<(), String> {
    // The entry of an earlier apply stays chosen.
    if has_entry(system) {
        return Ok(());
    }
    match chosen(system)? {
        Some(entry) if is_ours(&entry) => {
            system.run(ENVIRONMENT, &["-", "unset", "next_entry"]).map(drop)
        }
        _ => Ok(()),
    }
}

/// The entry that is chosen for the next boot alone. `None` also where GRUB keeps no such choice.
fn chosen(system: &System) -> Result<Option<String>, String> {
    if system.program(ENVIRONMENT).is_none() {
        return Ok(None);
    }
    let set = system.run(ENVIRONMENT, &["-", "list"])?;
    Ok(set.lines().find_map(|line| line.strip_prefix("next_entry=")).map(str::to_owned))
}

fn is_ours(entry: &str) -> bool {
    ["", TITLE].contains(&entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_command_line_holds_and_dashes_are_underscores() {
        let line = Parameters::of("quiet preempt=none rcu-nocbs=1 preempt=full -- preempt=lazy");
        assert_eq!(line.value("preempt"), Some("full"));
        assert_eq!(line.value("rcu_nocbs"), Some("1"));
        assert_eq!(line.value("quiet"), Some(""));
        assert_eq!(line.value("threadirqs"), None);
    }

    #[test]
    fn a_drop_in_is_read_as_it_was_written_and_another_file_is_none() {
        let mut parameters = Parameters::default();
        parameters.set("threadirqs", "");
        parameters.set("isolcpus", "managed_irq,domain,1-3");
        parameters.set("isolcpus", "domain,1");
        let text = dropin(&parameters);
        assert!(text.contains("ONSET_TUNE='threadirqs isolcpus=domain,1'\n"), "{text}");
        assert_eq!(of_dropin(&text), Some(parameters));
        assert_eq!(of_dropin("GRUB_TIMEOUT=0\n"), None);
    }

    #[test]
    fn a_value_that_a_shell_would_obey_is_not_plain() {
        assert!(is_plain("managed_irq,domain,1-3") && is_plain(""));
        for value in ["a b", "'", "$(reboot)", "a;b", "a\nb", "\\"] {
            assert!(!is_plain(value), "{value:?}");
        }
    }
}
