// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tests across crates share: a place to run the command in, its result as data, and the
//! processes and directories that it may leave behind.
//!
//! Three variables of the environment, set by `tests/run.sh`, each with a default for a test that is run by hand:
//! `ONSET` (the command), `ONSET_TEST_CACHE` (what becomes `XDG_CACHE_HOME`: kernels and snapshots, shared by
//! all tests) and `ONSET_TEST_NOTES` (a file with a line for each test that was skipped, and one for how long each
//! took). A fourth, `ONSET_TEST_QEMU`, names a second QEMU for the tests of `tests/rig/qemu.rs`. A fifth,
//! `ONSET_TEST_KERNELS`, is `all` for tests that try each of their kernels (`make test-all`).

mod contract;
mod notes;
mod outcome;
mod process;
mod programs;

pub use contract::{assert_as_promised, assert_as_promised_by, is_as_promised};
pub use notes::skip;
pub use outcome::{Finished, Run};
pub use process::{
    Started, cpu_ticks, is_alive, is_there, kill, started_with, users_of, wait_for_child_of,
};
pub use programs::{compiled, repository};

use notes::{note, say};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The command under test.
pub fn onset() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/onset");
    let path = std::env::var_os("ONSET").map_or(built, PathBuf::from);
    path.canonicalize()
        .unwrap_or_else(|e| panic!("{}: {e}; build it first: make build", path.display()))
}

/// The cache that tests share.
fn shared_cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    variable("ONSET_TEST_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME"))
        .or_else(|| Some(variable("HOME")?.join(".cache")))
        .expect("one of ONSET_TEST_CACHE, XDG_CACHE_HOME and HOME is set")
}

/// Prints what was planted beside what was found, as the benches do: `make bench` shows it.
pub fn figure(what: &str, planted: u64, found: u64) {
    println!("{what:<66} {planted:>8}  {found}");
}

/// Whether all of these kernels are in the cache; else the calling test is skipped.
pub fn have_kernels(names: &[&str]) -> bool {
    let kernels = shared_cache().join("onset/kernels");
    let missing: Vec<_> =
        names.iter().filter(|n| !kernels.join(n).join("kernel.json").is_file()).collect();
    if !missing.is_empty() {
        skip(&format!("no kernel {missing:?}; fetch it: onset kernels fetch"));
    }
    missing.is_empty()
}

/// The kernels with which a test of many kernels begins: an old and a new one, of them one with PREEMPT_RT, and the
/// oldest where a test is about old ones, too.
const FIRST: [&str; 3] = ["6.1", "6.12", "7.3-rt"];

/// Those of these kernels that are in the cache; without any of them the calling test is skipped. What a test runs
/// without is said, and the test counts as run. Of more than two kernels only those of [`FIRST`] are tried, unless
/// `ONSET_TEST_KERNELS` is `all`: kernels differ in what a test is about much less often than a test takes long.
pub fn those_here<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let tries_all =
        names.len() <= 2 || std::env::var("ONSET_TEST_KERNELS").is_ok_and(|v| v == "all");
    let tried = names.iter().copied().filter(|name| tries_all || FIRST.contains(name));
    let names: Vec<&str> = tried.collect();
    let kernels = shared_cache().join("onset/kernels");
    let (here, missing): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|n| kernels.join(n).join("kernel.json").is_file());
    match (here.is_empty(), missing.is_empty()) {
        (true, _) => drop(have_kernels(&names)),
        (false, false) => note(&format!("without {missing:?}; fetch it: onset kernels fetch")),
        (false, true) => {}
    }
    here
}

/// Those of these flavours whose kernels [`those_here`] has.
pub fn flavours_here<'a>(flavours: &[&'a str]) -> Vec<&'a str> {
    let kernel = |flavour: &'a str| flavour.split(' ').next().expect("a kernel");
    let mut kernels: Vec<&str> = flavours.iter().map(|flavour| kernel(flavour)).collect();
    kernels.dedup();
    let here = those_here(&kernels);
    flavours.iter().copied().filter(|flavour| here.contains(&kernel(flavour))).collect()
}

/// A place to work in: a store, a directory for experiments, a cache. All but a shared cache vanish with it.
pub struct Lab {
    directory: tempfile::TempDir,
    cache: PathBuf,
    begun: Instant,
}

/// How long a test took is told, so that whoever waits for all of them knows for which.
impl Drop for Lab {
    fn drop(&mut self) {
        say("took", &format!("{} s", self.begun.elapsed().as_secs()));
    }
}

impl Lab {
    /// With the cache of all tests.
    pub fn new() -> Lab {
        Lab { directory: temporary(), cache: shared_cache(), begun: Instant::now() }
    }

    /// With an empty cache of its own.
    pub fn bare() -> Lab {
        let directory = temporary();
        let cache = directory.path().join("cache");
        std::fs::create_dir_all(cache.join("onset")).expect("a writable directory");
        Lab { directory, cache, begun: Instant::now() }
    }

    /// With a cache of its own, in which there are the kernels of all tests and no snapshots: for tests
    /// that damage or watch the cache.
    pub fn private() -> Lab {
        let lab = Lab::bare();
        let (from, to) = (shared_cache().join("onset/kernels"), lab.cache().join("kernels"));
        std::os::unix::fs::symlink(from, to).expect("a writable directory");
        lab
    }

    /// Where tests may write.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// The command's own part of the cache.
    pub fn cache(&self) -> PathBuf {
        self.cache.join("onset")
    }

    /// Writes a file into the lab and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below the lab")).expect("writable");
        std::fs::write(&path, text).expect("writable");
        path
    }

    /// Writes an executable script into `bin/`, which [`Lab::with_bin`] puts before PATH.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("writable");
        path
    }

    /// In `bin/` the QEMU of PATH, which has these variables in its environment, as a shell exports them.
    pub fn qemu_with(&self, exports: &str) {
        let real = "PATH=\"${PATH#*:}\"\nexec qemu-system-x86_64 \"$@\"";
        self.script("qemu-system-x86_64", &format!("export {exports} {real}"));
    }

    /// A QEMU of this version in `bin/` that gets on with the plugin, and does nothing else.
    pub fn qemu(&self, version: &str) {
        let passes = "case \"$*\" in *trial=on*) echo \"onset plugin: passed, with version $ONSET_PLUGIN_INTERFACE\"; exit ;; esac";
        let body = format!("{passes}\necho 'QEMU emulator version {version}'");
        self.script("qemu-system-x86_64", &body);
    }

    /// PATH with the lab's `bin/` first.
    pub fn with_bin(&self) -> String {
        let path = std::env::var("PATH").expect("PATH is text");
        format!("{}:{path}", self.path().join("bin").display())
    }

    /// The command with the lab's cache and store, in the lab's directory.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(onset());
        command
            .args(words)
            .current_dir(self.path())
            .env("XDG_CACHE_HOME", &self.cache)
            .env("ONSET_STORE", self.store())
            .env_remove("ONSET");
        command
    }

    /// Runs the command to its end.
    pub fn onset(&self, words: &[&str]) -> Finished {
        Finished::of(&mut self.command(words))
    }

    /// Runs an experiment with `--json` and further words.
    pub fn run(&self, experiment: &str, words: &[&str]) -> Finished {
        let path = self.experiment(experiment);
        self.onset(&[&["run", &path, "--json"], words].concat())
    }

    /// Writes an experiment, named by its content so that several do not meet, and returns its path.
    pub fn experiment(&self, text: &str) -> String {
        let name = format!("{}.toml", &blake3::hash(text.as_bytes()).to_hex()[..12]);
        self.write(&name, text).to_string_lossy().into_owned()
    }

    /// Names in a directory of the lab or its cache, sorted; none where there is no such directory.
    pub fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// What the store holds besides its lock and its index.
    pub fn bundles(&self) -> Vec<String> {
        let mut names = Lab::names(&self.store());
        names.retain(|n| n != ".lock" && !n.starts_with("index.sqlite"));
        names
    }
}

impl Default for Lab {
    fn default() -> Lab {
        Lab::new()
    }
}

fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("onset-test-").tempdir().expect("a writable directory")
}

/// All responders, in the order of their pins. `timer_softirq` answers at the next tick, 4 ms later at most.
pub const RESPONDERS: [&str; 11] = [
    "hardirq",
    "threaded_irq",
    "tasklet",
    "bh_work",
    "work",
    "work_highpri",
    "kthread",
    "task",
    "tasklet_hi",
    "timer_softirq",
    "waitqueue",
];

/// A line for [`experiment`]: only the first to answer and the last do.
pub const FIRST_AND_LAST: &str = "responders = [\"hardirq\", \"task\"]";

/// The text of an experiment: periodic triggers as in the experiments that are shipped; `more` is added at its
/// end and may hold further tables.
pub fn experiment(flavours: &[&str], loads: &[&str], count: u64, more: &str) -> String {
    format!(
        "title = \"test\"\ntarget = \"rig\"\nflavours = {flavours:?}\nloads = {loads:?}\n\
         trigger = {{ period = \"1ms\", jitter = \"200us\", count = {count}, grace = \"50ms\" }}\n{more}\n"
    )
}

/// Writes an altered manifest as somebody would who knows how it is sealed (docs/bundles.md).
pub fn write_manifest(path: &Path, manifest: &serde_json::Value) {
    let mut unsealed = manifest.clone();
    unsealed.as_object_mut().expect("an object").remove("seal");
    let text = serde_json::to_string_pretty(&unsealed).expect("plain data");
    let text = text.strip_suffix("\n}").expect("an object").to_owned() + ",\n";
    let seal = blake3::hash(text.as_bytes()).to_hex();
    std::fs::write(path, format!("{text}  \"seal\": \"{seal}\"\n}}\n")).expect("writable");
}

/// Writes the list of hashes that the cache has beside files (crates/rig/src/intact.rs), of all files in a directory.
pub fn write_hashes(directory: &Path) {
    let list = "hashes.json";
    let names = Lab::names(directory).into_iter().filter(|name| name != list);
    let hash = |name: String| {
        let bytes = std::fs::read(directory.join(&name)).expect("a file");
        (name, serde_json::Value::from(blake3::hash(&bytes).to_hex().as_str()))
    };
    let hashes: serde_json::Map<_, _> = names.map(hash).collect();
    let text = serde_json::Value::Object(hashes).to_string();
    std::fs::write(directory.join(list), text).expect("writable");
}

/// Waits until `condition` gives something. Panics after minutes, since a test that hangs tells nothing.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while std::time::Instant::now() < deadline {
        if let Some(found) = condition() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("waited in vain for {what}");
}
