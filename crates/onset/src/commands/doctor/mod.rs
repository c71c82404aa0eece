// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset doctor`: checks what onset can do on this machine, and says how to get the missing parts. It also names the
//! settings that make the latencies of this machine longer.

mod latency;

use super::{print, print_json};
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use experiment::ALL_LOADS;
use lab::shards::{Parts, Sign, WorkFile, place_of};
use rig::{Cache, Emulator, tool};
use std::path::Path;
use view::results::{Check, Doctor, State};
use view::screen::{Tone, toned};

/// Disk space that a comparison takes: a kernel with headers, drivers and snapshots.
const FREE_MIB: u64 = 4096;
/// Memory of two guests with QEMU's code caches.
const MEMORY_MIB: u64 = 2048;

pub fn run(json: bool, shards: Option<&Path>, sees: Option<&str>) -> Result<Exit, Failure> {
    if let Some(directory) = shards {
        return can_make_shards(directory, sees);
    }
    let checks = [
        qemu(),
        parts(),
        viewer(),
        building(),
        fetching(),
        kernels(),
        loads(),
        cache(),
        memory(),
        processors(),
    ];
    // Not those of this command alone: isolated CPUs, which are not among them, are the ones to be measured.
    // Without /sys there is one CPU at least.
    let online = rt::online_cpus().unwrap_or_else(|_| vec![0]);
    let latency = latency::checks(&probes::context::read(&online));
    let doctor = Doctor::of(&checks, &latency);
    if json {
        print_json(&doctor)?;
    } else {
        print(&table(&checks))?;
        print(if doctor.rig_runs() {
            "\nThe rig runs here.\n"
        } else {
            "\nThe rig does not run here yet; the lines with ✗ say what is missing.\n"
        })?;
        print("\nSettings of this machine that matter when you measure it (onset measure):\n")?;
        print(&table(&latency))?;
    }
    Ok(if doctor.rig_runs() { Exit::Success } else { Exit::Unavailable })
}

/// Checks that this machine makes shards of a work as the others do. `sees` is the name of a file that another machine
/// has put into the directory.
fn can_make_shards(directory: &Path, sees: Option<&str>) -> Result<Exit, Failure> {
    // The directory of a work is meant, and the one in it that concerns shards is understood.
    let inside = place_of(directory);
    let directory = if inside.is_dir() { &inside } else { directory };
    let work = WorkFile::read(directory)?;
    sees.map_or(Ok(()), |name| Sign::check(directory, name))?;
    let kernels = work.parts.kernels.keys().map(String::as_str).collect();
    let here = Parts::here(&super::bench()?, super::version(), &kernels)?;
    work.check(directory, work.shards, &here)?;
    print("This machine can make shards of the work.\n")?;
    Ok(Exit::Success)
}

fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let sign = match check.state {
            State::Good => toned(Tone::Good, "✓"),
            State::Limited => toned(Tone::Doubt, "!"),
            State::Missing => toned(Tone::Bad, "✗"),
        };
        text += &format!("{sign}  {:width$}  {}\n", check.what, check.found);
        if let Some(remedy) = &check.remedy {
            text += &format!("   {:width$}  → {remedy}\n", "");
        }
    }
    text
}

fn good(what: &'static str, found: impl Into<String>) -> Check {
    Check { what, state: State::Good, found: found.into(), remedy: None }
}

fn bad(
    what: &'static str,
    state: State,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Check {
    Check { what, state, found: found.into(), remedy: Some(remedy.into()) }
}

fn qemu() -> Check {
    const WHAT: &str = "QEMU";
    let remedy = format!(
        "install {} {} (Debian 13, or Debian 12 with backports: make prepare-run), or name another QEMU in the variable {}",
        rig::QEMU_PACKAGE,
        rig::versions_tried(),
        rig::CHOICE
    );
    let found = match Emulator::find() {
        Err(e) => return bad(WHAT, State::Missing, e.to_string(), remedy),
        Ok(found) => found,
    };
    let version = match std::env::var(rig::CHOICE) {
        Ok(choice) if !choice.is_empty() => {
            format!("{}, chosen by {}", found.version(), rig::CHOICE)
        }
        _ => found.version().to_owned(),
    };
    let is_tried = found.is_tried();
    // The line about the plugin says what is missing of it.
    let plugin = Installation::find().map(|i| i.parts().plugin).ok().filter(|p| p.is_file());
    match plugin.map(|plugin| found.tried_with(&plugin)) {
        Some(Err(e)) => bad(WHAT, State::Missing, e.to_string(), remedy),
        _ if is_tried => good(WHAT, version),
        Some(Ok(_)) => bad(
            WHAT,
            State::Limited,
            format!(
                "{version}: it passes the plugin's first checks, but onset was not tried with it"
            ),
            format!("runs with it carry a warning; {remedy}"),
        ),
        None => {
            bad(WHAT, State::Limited, format!("{version}: onset was not tried with it"), remedy)
        }
    }
}

fn parts() -> Check {
    const WHAT: &str = "plugin and agent";
    match Installation::find().map(|i| i.parts().plugin) {
        Ok(plugin) if !plugin.is_file() => {
            bad(WHAT, State::Missing, format!("{} is missing", plugin.display()), "make build")
        }
        Ok(plugin) => good(WHAT, plugin.parent().unwrap_or(&plugin).display().to_string()),
        Err(e) => bad(WHAT, State::Missing, e.message, "make build"),
    }
}

fn viewer() -> Check {
    const WHAT: &str = "report";
    match Installation::find().and_then(|i| i.viewer()) {
        Ok(page) => good(WHAT, format!("the page is there, {} kB", page.len() / 1000)),
        Err(e) => bad(WHAT, State::Limited, e.message, "make build"),
    }
}

/// The programs that build the driver and a guest's image, with their packages.
const BUILDING: [(&str, &str); 5] =
    [("make", "make"), ("gcc", "gcc"), ("depmod", "kmod"), ("xz", "xz-utils"), ("ldd", "libc-bin")];

/// The programs that fetch and add kernels, with their packages. Kernels that are in the cache already need none of
/// them. Debian's modules are compressed by xz; the modules of a kernel that the user added may be compressed by zstd.
const FETCHING: [(&str, &str); 4] =
    [("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg"), ("zstd", "zstd")];

fn building() -> Check {
    tools("building drivers and images", &BUILDING, State::Missing)
}

fn fetching() -> Check {
    tools("fetching and adding kernels", &FETCHING, State::Limited)
}

fn tools(what: &'static str, tools: &[(&str, &str)], without: State) -> Check {
    let is_missing = |(name, _): &&(&str, &str)| tool::find(name).is_none();
    let missing: Vec<_> = tools.iter().filter(is_missing).collect();
    let names =
        |tools: Vec<&(&str, &str)>| tools.iter().map(|t| t.0).collect::<Vec<_>>().join(", ");
    if missing.is_empty() {
        return good(what, names(tools.iter().collect()));
    }
    let mut packages: Vec<&str> = missing.iter().map(|t| t.1).collect();
    packages.dedup();
    let remedy = format!("apt-get install {}", packages.join(" "));
    bad(what, without, format!("missing: {}", names(missing)), remedy)
}

fn kernels() -> Check {
    const WHAT: &str = "kernels";
    let list = Cache::of_user().and_then(|c| c.kernels()?.list());
    match list {
        Err(e) => bad(
            WHAT,
            State::Missing,
            e.to_string(),
            "make the directory of the cache readable for you",
        ),
        Ok(list) if list.is_empty() => {
            bad(WHAT, State::Missing, "none in the cache", "onset kernels fetch 6.12 6.12-rt")
        }
        Ok(list) => {
            let names: Vec<String> =
                list.iter().map(|k| format!("{} ({})", k.name, k.release)).collect();
            good(WHAT, names.join(", "))
        }
    }
}

fn loads() -> Check {
    const WHAT: &str = "loads";
    // cc1 comes with gcc, which does not put it in PATH.
    let present = |program: &str| program == "cc1" || tool::find(program).is_some();
    let lacking: Vec<String> = ALL_LOADS
        .iter()
        .filter_map(|load| {
            let missing: Vec<&str> = load.programs().into_iter().filter(|p| !present(p)).collect();
            (!missing.is_empty()).then(|| format!("{load} ({})", missing.join(", ")))
        })
        .collect();
    if lacking.is_empty() {
        return good(WHAT, ALL_LOADS.map(|l| l.name()).join(", "));
    }
    let remedy =
        "apt-get install e2fsprogs iproute2 iputils-ping iperf3 rt-tests stress-ng gcc make";
    bad(
        WHAT,
        State::Limited,
        format!("programs are missing for these loads: {}", lacking.join(", ")),
        remedy,
    )
}

fn cache() -> Check {
    const WHAT: &str = "cache";
    let found = Cache::of_user().and_then(|c| {
        tempfile::tempdir_in(c.directory())
            .map_err(|source| rig::Error::File { path: c.directory().into(), source })?;
        Ok(c.directory().to_path_buf())
    });
    match found {
        Err(e) => bad(
            WHAT,
            State::Missing,
            e.to_string(),
            "set XDG_CACHE_HOME to a directory that you may write",
        ),
        Ok(path) => {
            let free = free_mib(&path);
            let found = format!("{}, {free} MiB free", path.display());
            if free >= FREE_MIB {
                return good(WHAT, found);
            }
            bad(
                WHAT,
                State::Limited,
                found,
                format!(
                    "a comparison takes up to {FREE_MIB} MiB; free some space, or set XDG_CACHE_HOME to a directory on a larger disk"
                ),
            )
        }
    }
}

fn free_mib(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |s| (s.f_bavail * s.f_frsize) >> 20)
}

fn memory() -> Check {
    const WHAT: &str = "memory";
    let mib = rig::memory_available().unwrap_or_default() >> 20;
    let found = format!("{mib} MiB available");
    if mib >= MEMORY_MIB {
        return good(WHAT, found);
    }
    bad(WHAT, State::Limited, found, "run with --jobs 1")
}

fn processors() -> Check {
    let n = std::thread::available_parallelism().map_or(1, usize::from);
    good("processors", format!("{n}: onset runs as many guests at once"))
}
