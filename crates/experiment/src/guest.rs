// SPDX-License-Identifier: GPL-2.0-or-later
//! `[guest]`: the virtual machine that the rig builds, and the files that are put into it.

use super::paths::Paths;
use super::read::{Reader, Section};
use sample::Nanos;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A stock kernel and a guest image do not fit into less.
pub const MEMORY_MIN: Mebibytes = Mebibytes(64);
/// A greater size is a typing mistake: snapshots hold the guest's memory.
pub const MEMORY_MAX: Mebibytes = Mebibytes(64 * 1024);
/// Largest `shift` that QEMU's `-icount` takes (qemu-options.hx).
pub const SHIFT_MAX: u64 = 10;
/// A longer time is a typing mistake: the guest takes hours of wall time for it.
const BEGIN_AFTER_MAX: Nanos = Nanos::from_millis(3_600_000);

/// The seed of a guest that says nothing of it.
pub const GUEST_SEED: u32 = 1;

/// A size of memory in MiB (2²⁰ bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mebibytes(pub u32);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}MiB", self.0)
    }
}

/// The text is no whole number followed by `MiB` or `GiB`, or above 2³²−1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMebibytesError;

impl fmt::Display for ParseMebibytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory is a whole number of MiB or GiB (as in \"256MiB\")")
    }
}

impl std::error::Error for ParseMebibytesError {}

impl FromStr for Mebibytes {
    type Err = ParseMebibytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (number, scale) = match (text.strip_suffix("MiB"), text.strip_suffix("GiB")) {
            (Some(number), _) => (number, 1),
            (_, Some(number)) => (number, 1024),
            _ => return Err(ParseMebibytesError),
        };
        let number: u32 = number.trim_end().parse().map_err(|_| ParseMebibytesError)?;
        number.checked_mul(scale).map(Mebibytes).ok_or(ParseMebibytesError)
    }
}

/// A file of the host and where the guest finds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestFile {
    /// On the host; relative paths have been resolved against the experiment's directory.
    pub host: PathBuf,
    /// In the guest; absolute, without `..`.
    pub guest: PathBuf,
}

/// The virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// `None`: the rig's default.
    pub memory: Option<Mebibytes>,
    /// An instruction takes 2^shift ns of virtual time; 0 … 10.
    pub shift: u8,
    /// Of the random numbers that its kernel begins with.
    pub seed: u32,
    /// Kernel modules (host paths), loaded in this order before measuring.
    pub modules: Vec<PathBuf>,
    /// Programs (host paths), put into the guest's `/usr/bin` under their own names, with their libraries.
    pub programs: Vec<PathBuf>,
    /// Other files.
    pub files: Vec<GuestFile>,
    /// See from outside when the threads of a probe wake, and judge it by that.
    pub witness: bool,
    /// How long after the warm-up measuring begins, from a snapshot of its own.
    pub begin_after: Nanos,
}

/// Reads `[guest]`; relative paths begin where `paths` says.
pub(super) fn read(reader: &mut Reader, section: &Section, paths: &Paths) -> Guest {
    let memory = section.entry("memory").and_then(|e| {
        let (text, at) = reader.text(e, "\"256MiB\"")?;
        match text.parse() {
            Ok(memory) if (MEMORY_MIN..=MEMORY_MAX).contains(&memory) => Some(memory),
            Ok(memory) => {
                let help = format!("it is from {MEMORY_MIN} to {MEMORY_MAX}");
                reader.note(at, format!("memory cannot be {memory}"), help);
                None
            }
            Err(why) => {
                reader.note(at, format!("{text:?} is no size"), why.to_string());
                None
            }
        }
    });
    let shift = section.entry("shift").and_then(|e| reader.integer(e, 0..=SHIFT_MAX));
    let seed = section.entry("seed").and_then(|e| reader.integer(e, 0..=u32::MAX.into()));
    let seed = seed.map_or(GUEST_SEED, |seed| seed as u32);
    let mut list = |key, example| {
        let entry = section.entry(key);
        entry.map(|e| reader.paths(e, paths, example)).unwrap_or_default()
    };
    let modules = list("modules", "[\"path/to/module.ko\"]");
    let programs = list("programs", "[\"/usr/bin/stress-ng\"]");
    let files = files(reader, section, paths);
    // At most SHIFT_MAX.
    let shift = shift.unwrap_or(0) as u8;
    let witness = section.entry("witness").is_some_and(|e| reader.boolean(e).unwrap_or(false));
    let begin_after = section.entry("begin_after").and_then(|e| {
        let (duration, at) = reader.duration(e)?;
        if duration > BEGIN_AFTER_MAX {
            let message = format!("begin_after cannot be {duration}");
            reader.note(at, message, format!("it is at most {BEGIN_AFTER_MAX}"));
        }
        Some(duration)
    });
    let begin_after = begin_after.unwrap_or_default();
    Guest { memory, shift, seed, modules, programs, files, witness, begin_after }
}

fn files(reader: &mut Reader, section: &Section, paths: &Paths) -> Vec<GuestFile> {
    let Some(entry) = section.entry("files") else { return Vec::new() };
    let found = reader.words(entry, "[\"/etc/services\", \"host/path=/guest/path\"]", |text| {
        guest_file(text, paths)
    });
    let found = found.unwrap_or_default();
    let mut places = BTreeSet::new();
    for (file, at) in &found {
        if !places.insert(&file.guest) {
            let message = format!("two files at {} in the guest", file.guest.display());
            reader.note(at, message, "give each a place of its own: host/path=/guest/path");
        }
    }
    found.into_iter().map(|(file, _)| file).collect()
}

/// `/path` (the same in the guest) or `host=/guest`; the host's part may itself hold `=`.
fn guest_file(text: &str, paths: &Paths) -> Result<GuestFile, (String, String)> {
    let (host, guest) = match text.rfind("=/") {
        Some(i) => (&text[..i], &text[i + 1..]),
        None => (text, text),
    };
    let refuse = |why: &str| {
        let help = "write \"/path\" (the same in the guest) or \"host/path=/guest/path\"";
        Err((format!("{text:?} {why}"), help.to_owned()))
    };
    let path = Path::new(guest);
    if host.is_empty() || text.contains('\0') {
        return refuse("names no file of the host");
    }
    if !path.is_absolute() || path.file_name().is_none() {
        return refuse("does not say where in the guest the file goes");
    }
    // Compared as components, so that /a//b and /a/./b are the same place.
    let mut place = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            return refuse("leads out of its place in the guest by \"..\"");
        }
        place.push(part);
    }
    Ok(GuestFile { host: paths.whole(host), guest: place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_memory_needs_its_unit_and_fits() {
        assert_eq!("256MiB".parse(), Ok(Mebibytes(256)));
        assert_eq!("2 GiB".parse(), Ok(Mebibytes(2048)));
        for text in ["256", "256MB", "MiB", "-1MiB", "1.5GiB", "4194304GiB"] {
            assert_eq!(text.parse::<Mebibytes>(), Err(ParseMebibytesError), "{text}");
        }
    }

    #[test]
    fn a_file_goes_where_it_says_or_keeps_its_absolute_path() {
        let lab = Paths::in_directory(Path::new("/lab"));
        let file = |text| guest_file(text, &lab);
        let is = |host: &str, guest: &str| Ok(GuestFile { host: host.into(), guest: guest.into() });
        assert_eq!(file("/etc/services"), is("/etc/services", "/etc/services"));
        assert_eq!(file("data/a=b=/srv//x"), is("/lab/data/a=b", "/srv/x"));
        for text in ["", "data", "=/x", "data=/", "data=/../x", "a=b", "/"] {
            assert!(file(text).is_err(), "{text:?}");
        }
    }
}
