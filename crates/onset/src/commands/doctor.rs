// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset doctor`: what this machine can and cannot do, and how to get what is missing.

use super::{print, print_json};
use crate::experiment::ALL_LOADS;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::terminal::{Align, Table};
use rig::{Cache, Emulator, tool};
use serde::Serialize;
use std::path::Path;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;
/// A kernel with headers, drivers and the snapshots of a comparison.
const FREE_MIB: u64 = 4096;
/// Two guests with QEMU's code caches.
const MEMORY_MIB: u64 = 2048;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// Something works less well, or not at all, but a rig runs.
    Limited,
    /// No rig runs.
    Missing,
}

#[derive(Serialize)]
struct Check {
    what: &'static str,
    state: State,
    found: String,
    remedy: Option<String>,
}

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    rig: bool,
    checks: &'a [Check],
}

pub fn run(json: bool) -> Result<Exit, Failure> {
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
    let rig = checks.iter().all(|c| c.state != State::Missing);
    if json {
        print_json(&Printed { schema: SCHEMA, rig, checks: &checks })?;
    } else {
        print(&table(&checks))?;
        print(if rig {
            "\nThe rig runs here.\n"
        } else {
            "\nThe rig does not run here yet; see above.\n"
        })?;
    }
    Ok(if rig { Exit::Success } else { Exit::Unavailable })
}

fn table(checks: &[Check]) -> String {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left), ("", Align::Left)]);
    for check in checks {
        let sign = match check.state {
            State::Good => "✓",
            State::Limited => "!",
            State::Missing => "✗",
        };
        table.row([sign.into(), check.what.into(), check.found.clone()]);
        if let Some(remedy) = &check.remedy {
            table.row(["".into(), "".into(), format!("→ {remedy}")]);
        }
    }
    // Without the empty heading.
    table.lines()[1..].join("\n") + "\n"
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
        "install qemu-system-x86 {} (Debian 13, or Debian 12 with backports: make prepare-run), or name another by {}",
        rig::versions_tried(),
        rig::CHOICE
    );
    let found = match Emulator::find() {
        Err(e) => return bad(WHAT, State::Missing, e.to_string(), remedy),
        Ok(found) => found,
    };
    let version = match std::env::var(rig::CHOICE) {
        Ok(choice) if !choice.is_empty() => format!("{}, by {}", found.version(), rig::CHOICE),
        _ => found.version().to_owned(),
    };
    let is_tried = found.is_tried();
    // What is missing of the plugin is said beside.
    let plugin = Installation::find().map(|i| i.parts().plugin).ok().filter(|p| p.is_file());
    match plugin.map(|plugin| found.tried_with(&plugin)) {
        Some(Err(e)) => bad(WHAT, State::Missing, e.to_string(), remedy),
        _ if is_tried => good(WHAT, version),
        Some(Ok(_)) => bad(
            WHAT,
            State::Limited,
            format!(
                "{version}: it passes the plugin's first checks, and onset was not tried with it"
            ),
            format!("runs with it carry a doubt; {remedy}"),
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
        Ok(page) => good(WHAT, format!("the viewer's page, {} kB", page.len() / 1000)),
        Err(e) => bad(WHAT, State::Limited, e.message, "make build"),
    }
}

/// What building the driver and a guest's image takes, with the packages.
const BUILDING: [(&str, &str); 5] =
    [("make", "make"), ("gcc", "gcc"), ("depmod", "kmod"), ("xz", "xz-utils"), ("ldd", "libc-bin")];

/// What getting kernels takes, with the packages; kernels that are there already do without. Debian's modules
/// are compressed by xz; those of a kernel that was added may be by zstd.
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
    bad(what, without, format!("without {}", names(missing)), remedy)
}

fn kernels() -> Check {
    const WHAT: &str = "kernels";
    let list = Cache::of_user().and_then(|c| c.kernels()?.list());
    match list {
        Err(e) => bad(WHAT, State::Missing, e.to_string(), "make the cache readable"),
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
    // What gcc hides is not in PATH; it comes with gcc.
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
    bad(WHAT, State::Limited, format!("programs are missing for {}", lacking.join(", ")), remedy)
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
                    "a comparison takes up to {FREE_MIB} MiB; set XDG_CACHE_HOME to a larger disk"
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
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0);
    let found = format!("{} MiB available", kib >> 10);
    if kib >> 10 >= MEMORY_MIB {
        return good(WHAT, found);
    }
    bad(WHAT, State::Limited, found, "run with --jobs 1")
}

fn processors() -> Check {
    let n = std::thread::available_parallelism().map_or(1, usize::from);
    good("processors", format!("{n}: as many machines run at once"))
}
