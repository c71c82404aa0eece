// SPDX-License-Identifier: GPL-2.0-or-later
//! The files and threads of a machine, below a root directory: `/` in use, a directory of prepared files in tests.
//!
//! A file of the kernel (/proc, /sys) takes a text by one write. Any other file is replaced as a whole by one rename,
//! so that a kill leaves the old text or the new one.

use crate::thread::kernel_thread;
use crate::{KernelSeries, card, partition};
use probes::context::cpu_list;
use rustix::fs::{Mode, OFlags, fsync};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most bytes of a setting's file.
const BYTES_MAX: u64 = 1 << 20;
/// The most files that a pattern stands for.
const PLACES_MAX: usize = 1 << 16;
/// The file systems of the kernel's own files (include/uapi/linux/magic.h): proc, sysfs, debugfs, tracefs, cgroup 1 and
/// 2.
const KERNELS_OWN: [i64; 6] =
    [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x0027_e0eb, 0x6367_7270];

/// Where a setting is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Spot {
    /// A file of the running kernel, by its absolute path. Its value is gone after a reboot.
    Kernel(String),
    /// A file on disk, by its absolute path. It stays.
    Disk(String),
    /// A kernel thread. Its policy is gone after a reboot.
    Thread {
        /// Its number.
        pid: i32,
        /// When it began, in ticks since boot.
        began: u64,
        /// Its name.
        name: String,
    },
    /// onset's isolated partition of CPUs. It is gone after a reboot.
    Partition,
    /// A setting of a network card that ethtool(8) changes. Its value is gone after a reboot.
    Card {
        /// The network interface.
        interface: String,
        /// The setting, as ethtool names it.
        setting: String,
    },
}

impl Spot {
    /// Whether what is written there outlives a reboot.
    pub fn persists(&self) -> bool {
        matches!(self, Spot::Disk(_))
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::Kernel(path) | Spot::Disk(path) => f.write_str(path),
            Spot::Thread { pid, name, .. } => write!(f, "thread {name} ({pid})"),
            Spot::Partition => f.write_str(partition::DIRECTORY),
            Spot::Card { interface, setting } => write!(f, "{setting} of {interface}"),
        }
    }
}

/// A machine.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// The machine whose files are below `root`.
    pub fn below(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// The path on this machine of an absolute path of that one.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The trimmed text of a file. Absent if it is missing, unreadable or empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let text = self.file(path).ok()??;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn file(&self, path: &str) -> io::Result<Option<String>> {
        match confined::read(&self.path(path), BYTES_MAX) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
                io::Error::new(ErrorKind::InvalidData, "it holds bytes that are no text")
            }),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The number of this boot (/proc/sys/kernel/random/boot_id, random(4)), and that of the machine (machine-id(5)).
    /// A machine without the file has the name `none`.
    pub(crate) fn identity(&self) -> (String, String) {
        let of = |path| self.text(path).unwrap_or_else(|| "none".into());
        (of("/proc/sys/kernel/random/boot_id"), of("/etc/machine-id"))
    }

    /// The number of this machine (machine-id(5)); `none` without one.
    pub fn machine(&self) -> String {
        self.identity().1
    }

    /// The running kernel's release.
    pub fn release(&self) -> Option<String> {
        self.text("/proc/sys/kernel/osrelease")
    }

    /// The running kernel's series.
    pub(crate) fn series(&self) -> Option<KernelSeries> {
        KernelSeries::of(&self.release()?)
    }

    /// The CPUs that are online.
    pub fn online(&self) -> Vec<u32> {
        let text = self.text("/sys/devices/system/cpu/online");
        text.and_then(|text| cpu_list(&text)).unwrap_or_else(|| vec![0])
    }

    /// The CPUs that may ever be online; those that are online, where the kernel does not say.
    pub(crate) fn possible(&self) -> Vec<u32> {
        let text = self.text("/sys/devices/system/cpu/possible");
        text.and_then(|text| cpu_list(&text)).unwrap_or_else(|| self.online())
    }

    /// Whether the running kernel was built without an option. Unknown where the distribution keeps no configuration
    /// in /boot.
    pub(crate) fn lacks_option(&self, option: &str) -> Option<bool> {
        let config = self.text(&format!("/boot/config-{}", self.release()?))?;
        let is_set =
            |line: &str| line.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        Some(!config.lines().any(is_set))
    }

    /// The files that a pattern stands for, sorted, as absolute paths.
    pub(crate) fn matching(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let inside = |at: &String| -> Vec<String> {
                if !part.contains('*') {
                    return vec![format!("{at}/{part}")];
                }
                let entries = fs::read_dir(self.path(at)).into_iter().flatten().flatten();
                let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                names
                    .filter(|name| matches(part, name))
                    .map(|name| format!("{at}/{name}"))
                    .collect()
            };
            found = found.iter().flat_map(inside).take(PLACES_MAX).collect();
        }
        found.retain(|path| self.path(path).exists());
        found.sort_by_key(|path| natural(path));
        found
    }

    /// The kernel threads whose names a pattern stands for.
    pub(crate) fn threads(&self, pattern: &str) -> Vec<Spot> {
        let stats = self.matching("/proc/*/stat");
        let thread = |path: &String| {
            let pid = path.split('/').nth(2)?.parse().ok()?;
            let thread = kernel_thread(&self.text(path)?)?;
            let (began, name) = (thread.began, thread.name);
            matches(pattern, &name).then_some(Spot::Thread { pid, began, name })
        };
        stats.iter().filter_map(thread).collect()
    }

    /// The text at a place. `None` if the file or the thread is not there.
    ///
    /// # Errors
    /// Of the operating system; and for a thread of a policy that onset could not give back.
    pub fn read(&self, place: &Spot) -> io::Result<Option<String>> {
        let (pid, began) = match place {
            Spot::Kernel(path) | Spot::Disk(path) => return self.file(path),
            Spot::Thread { pid, began, .. } => (pid, began),
            Spot::Partition => return Ok(partition::read(self)),
            Spot::Card { interface, setting } => return Ok(card::read(self, interface, setting)),
        };
        let stat = self.text(&format!("/proc/{pid}/stat"));
        let thread = stat.and_then(|stat| kernel_thread(&stat)).filter(|t| t.began == *began);
        let Some(thread) = thread else { return Ok(None) };
        let unknown = || io::Error::other("its policy is none that onset can give back");
        thread.policy.map(|policy| Some(policy.to_string())).ok_or_else(unknown)
    }

    /// Gives a place this text. `None` removes a file on disk.
    ///
    /// # Errors
    /// Of the operating system: what the kernel says to the value, and a lack of privilege.
    pub(crate) fn write(&self, place: &Spot, text: Option<&str>) -> io::Result<()> {
        match (place, text) {
            (Spot::Kernel(path), Some(text)) => self.give(&self.path(path), text),
            (Spot::Disk(path), Some(text)) => replace(&self.path(path), text),
            (Spot::Disk(path), None) => remove(&self.path(path)),
            (Spot::Thread { pid, .. }, Some(text)) => {
                let policy = text.trim().parse().map_err(io::Error::other)?;
                rt::give(*pid, policy).map_err(io::Error::other)
            }
            (Spot::Partition, Some(text)) => partition::write(self, text),
            (Spot::Card { interface, setting }, Some(text)) => {
                card::write(self, interface, setting, text)
            }
            (_, None) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Writes to a file of the kernel.
    pub(crate) fn give(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)?;
        let system = rustix::fs::fstatfs(&file)?.f_type as i64;
        if !KERNELS_OWN.contains(&system) {
            // Links in /proc lead out of it, for example /proc/self/root.
            return match self.root == Path::new("/") {
                true => Err(io::Error::other("it is no file of the kernel")),
                false => replace(&path.canonicalize()?, text),
            };
        }
        // By one write: the kernel takes each as a value of its own.
        match file.write(text.as_bytes())? {
            n if n == text.len() => Ok(()),
            n => Err(io::Error::other(format!("the kernel took {n} of {} bytes", text.len()))),
        }
    }

    /// Makes a file that somebody else wrote, and its name, durable. One that is not there needs nothing.
    ///
    /// # Errors
    /// Of the operating system.
    pub(crate) fn sync(&self, path: &str) -> io::Result<()> {
        let path = self.path(path);
        match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            opened => opened?.sync_all().and_then(|()| sync_directory_of(&path)),
        }
    }

    /// Removes what a kill in the middle of a replacement left beside a file.
    pub(crate) fn tidy(&self, place: &Spot) {
        if let Spot::Kernel(_) | Spot::Disk(_) = place {
            let _ = fs::remove_file(beside(&self.resolved(place)));
        }
    }

    /// The path of a place without links: a file may have several names.
    pub(crate) fn resolved(&self, place: &Spot) -> PathBuf {
        let path = match place {
            Spot::Kernel(path) | Spot::Disk(path) => self.path(path),
            Spot::Thread { pid, .. } => self.path(&format!("/proc/{pid}")),
            Spot::Partition => self.path(partition::DIRECTORY),
            Spot::Card { interface, setting } => {
                self.path(&format!("/sys/class/net/{interface}")).join(setting)
            }
        };
        path.canonicalize().unwrap_or(path)
    }

    /// Runs a program of the machine by its absolute path, and gives what it prints.
    ///
    /// # Errors
    /// What it, or the operating system, says against it.
    pub(crate) fn run(&self, path: &str, arguments: &[&str]) -> Result<String, String> {
        let program = self.program(path).ok_or_else(|| format!("there is no {path}"))?;
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|e| format!("{path} cannot be run: {e}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(format!("{path} failed ({}): {}", output.status, text(&output.stderr))),
        }
    }

    /// A program of the machine by its absolute path, if it is there.
    pub(crate) fn program(&self, path: &str) -> Option<PathBuf> {
        Some(self.path(path)).filter(|path| path.is_file())
    }
}

/// The name that a file has while it is written. It begins with a point, so that who reads the directory skips it.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.onset-tune"))
}

/// Replaces a file as a whole, durably. A file that was there keeps its mode. A new script may be executed.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path);
    let mode = match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => return Err(io::Error::other("it is no regular file")),
        Ok(there) => there.permissions(),
        Err(_) if text.starts_with("#!") => Permissions::from_mode(0o755),
        Err(_) => Permissions::from_mode(0o644),
    };
    let _ = fs::remove_file(&new);
    let mut file = private(&new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(mode)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory_of(path)
}

/// A new file that nobody else may read: its text may be that of a file whose mode is narrower than the one that the
/// user's mask makes.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_directory_of(path)),
    }
}

/// Makes the names in a file's directory durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    Ok(fsync(directory.as_fd())?)
}

/// Whether a name is one that a pattern stands for: `*` is any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().any(|(at, _)| matches(after, &rest[at..])) || matches(after, "")
        }),
    }
}

/// A path for sorting, in which numbers count as numbers.
fn natural(path: &str) -> Vec<(u64, String)> {
    let parts = path.split_inclusive(|c: char| !c.is_ascii_digit());
    parts
        .map(|part| {
            (part.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0), part.into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_any_part_of_a_name() {
        for (pattern, name, is_one) in [
            ("cpu*", "cpu12", true),
            ("cpu*", "cpu", true),
            ("cpu*", "icpu", false),
            ("irq/*-nvme*", "irq/31-nvme0q1", true),
            ("*", "anything", true),
            ("stat", "status", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), is_one, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_found_in_the_order_of_their_numbers() {
        let root = tempfile::tempdir().unwrap();
        for cpu in [0, 1, 2, 10] {
            let directory = root.path().join(format!("sys/cpu{cpu}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("governor"), "powersave\n").unwrap();
        }
        fs::create_dir(root.path().join("sys/cpufreq")).unwrap();
        let found = System::below(root.path()).matching("/sys/cpu*/governor");
        let want = [0, 1, 2, 10].map(|cpu| format!("/sys/cpu{cpu}/governor"));
        assert_eq!(found, want);
    }

    #[test]
    fn on_the_machine_itself_no_file_on_disk_passes_for_one_of_the_kernel() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "a").unwrap();
        for start in ["", "/proc/self/root"] {
            let place = Spot::Kernel(format!("{start}{}", path.display()));
            let why = System::below("/").write(&place, Some("b")).unwrap_err().to_string();
            assert!(why.contains("no file of the kernel"), "{why}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "a");
    }

    #[test]
    fn nobody_else_may_read_a_file_before_it_has_the_mode_of_the_one_that_it_replaces() {
        let root = tempfile::tempdir().unwrap();
        let file = private(&root.path().join("file")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_on_disk_is_replaced_whole_and_keeps_its_mode() {
        let root = tempfile::tempdir().unwrap();
        let system = System::below(root.path());
        let place = Spot::Disk("/file".into());
        system.write(&place, Some("#!/bin/sh\n")).unwrap();
        let mode = || fs::metadata(root.path().join("file")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o755);
        fs::set_permissions(root.path().join("file"), Permissions::from_mode(0o600)).unwrap();
        system.write(&place, Some("b")).unwrap();
        assert_eq!((system.read(&place).unwrap().as_deref(), mode()), (Some("b"), 0o600));
        system.write(&place, None).unwrap();
        system.write(&place, None).unwrap();
        assert_eq!(system.read(&place).unwrap(), None);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
