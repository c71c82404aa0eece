// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs a load on a machine, apart from the rest of the machine, and leaves nothing behind.
//!
//! The command may end in any way: this process notices that its input has ended. If this process is killed itself, the
//! kernel kills the first process of the load with it, and with that one the whole namespace. Where the user may make
//! no namespaces, the load's processes then outlive this process. That is the one case that is not covered.

mod cgroup;
pub mod first;
mod home;
mod namespaces;

use agent::confinement::{Account, Confinement, FIRST, Reply, Request};
use agent::counter_value;
use cgroup::Cgroup;
use home::Home;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, setsid, wait};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The longest time for a set-up. A set-up takes tenths of a second, and only one that hangs takes this long.
const SET_UP: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
/// The most text of a load. A load prints the first failure of each of its commands.
const CONSOLE_BYTES_MAX: u64 = 64 << 10;

/// Serves one load. Returns the exit status.
pub fn run() -> i32 {
    let mut lines = std::io::stdin().lock().lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    let request: Request = match serde_json::from_str(&request) {
        Ok(request) => request,
        Err(e) => {
            eprintln!("onset-load is started by onset, which tells it what to run: {e}");
            return 2;
        }
    };
    // A session of its own keeps Ctrl-C away: the signal goes to the command, which decides.
    let _ = setsid();
    // A process of the load that loses its parent becomes a child of this process, so it can be found. The call takes a
    // truth value as a number.
    let _ = set_child_subreaper(Pid::from_raw(1));
    let group = Cgroup::create();
    let started = Running::start(&request, group.as_ref());
    match &started {
        Ok(running) => {
            say(&Reply::Started(running.confinement.clone()));
            while lines.next().is_some_and(|l| l.is_ok()) {
                say(&Reply::Account(running.home.account()));
            }
        }
        Err(why) => say(&Reply::Refused(why.clone())),
    }
    kill_descendants();
    drop(started);
    drop(group);
    0
}

/// Writes a reply. A command that no longer reads has closed the supervisor's input too.
fn say(reply: &Reply) {
    let line = serde_json::to_string(reply).expect("replies have no unserialisable parts");
    let _ = writeln!(std::io::stdout(), "{line}");
}

struct Running {
    confinement: Confinement,
    home: Home,
}

impl Running {
    fn start(request: &Request, group: Option<&Cgroup>) -> Result<Running, String> {
        let cpus = cpus(&request.avoid)?;
        let disk = request.disk.as_deref();
        if let Some(disk) = disk.filter(|d| !d.is_dir()) {
            return Err(format!("{} is no directory that the load could write to", disk.display()));
        }
        let namespaces = namespaces::enter(disk);
        let kept = disk.map(|d| if namespaces.mounts { Path::new(namespaces::KEPT) } else { d });
        let home = Home::create(kept, namespaces.mounts)?;
        for program in &request.programs {
            home.find(program)?;
        }
        if request.needs_network && !namespaces.mounts {
            return Err("this load makes network namespaces, which this user may not make here: run as root, or \
                        allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
                        kernel.apparmor_restrict_unprivileged_userns=0)"
                .into());
        }
        let limits = group.map(|g| g.limit(&cpus));
        let mut first = spawn(&request.script, &home, &cpus, group)?;
        wait_until_ready(&mut first, &home)?;
        let cgroup = limits.filter(|_| group.is_some_and(Cgroup::is_populated));
        let confinement = Confinement {
            cpus: cpus.into_iter().collect(),
            cgroup,
            processes: namespaces.processes,
            mounts: namespaces.mounts,
        };
        Ok(Running { confinement, home })
    }
}

/// The CPUs that this process may use, except those to avoid.
fn cpus(avoid: &[u32]) -> Result<BTreeSet<u32>, String> {
    let set = sched_getaffinity(None).map_err(|e| format!("cannot read the affinity: {e}"))?;
    let allowed: Vec<u32> =
        (0..CpuSet::MAX_CPU).filter(|c| set.is_set(*c)).map(|c| c as u32).collect();
    let left: BTreeSet<u32> = allowed.iter().copied().filter(|c| !avoid.contains(c)).collect();
    if left.is_empty() {
        return Err(format!(
            "the load has no CPU to run on: all that this process may use ({allowed:?}) are measured; measure fewer, \
             or allow the load on measured CPUs"
        ));
    }
    Ok(left)
}

/// Starts the first process and confines it. Only then does the first process start other processes.
fn spawn(
    script: &str,
    home: &Home,
    cpus: &BTreeSet<u32>,
    group: Option<&Cgroup>,
) -> Result<Child, String> {
    let failed = |e: std::io::Error| format!("cannot start the load: {e}");
    let script_path = home.write_script(script).map_err(failed)?;
    let console = home.open_console().map_err(failed)?;
    let mut set = CpuSet::new();
    cpus.iter().for_each(|c| set.set(*c as usize));
    let entrance = group.and_then(|g| g.entrance().ok());
    let mut command = Command::new("/proc/self/exe");
    command.arg0(FIRST).arg(script_path).current_dir("/").envs(home.environment());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(console);
    // SAFETY: between fork and exec the child makes only system calls, on values made before.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            if let Some(mut procs) = entrance.as_ref() {
                // A later step checks whether the process got in.
                let _ = procs.write_all(b"0\n");
            }
            Ok(sched_setaffinity(None, &set)?)
        });
    }
    command.spawn().map_err(failed)
}

/// Waits for the byte that the first process writes after the script. If the script failed, the process just ends.
fn wait_until_ready(first: &mut Child, home: &Home) -> Result<(), String> {
    let pipe = first.stdout.as_mut().expect("piped above");
    let ready = match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&SET_UP)) {
        Ok(0) => return Err(format!("the load's set-up hangs: {}", home.last_words())),
        Ok(_) => pipe.read_exact(&mut [0]),
        Err(e) => Err(e.into()),
    };
    ready.map_err(|_| format!("the load's set-up failed: {}", home.last_words()))
}

/// Kills until none are left. A process that forks faster than this looks becomes our child when its parent dies.
fn kill_descendants() {
    loop {
        for pid in descendants() {
            // The process is gone already, or a set-user-ID program made it another user's. Waiting shows which.
            let _ = kill_process(pid, Signal::KILL);
        }
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn descendants() -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<i32> = Vec::new();
    let mut next = vec![std::process::id() as i32];
    while let Some(pid) = next.pop() {
        let own = children.remove(&pid).unwrap_or_default();
        found.extend(&own);
        next.extend(own);
    }
    found.into_iter().filter_map(Pid::from_raw).collect()
}

/// The fourth field of `/proc/PID/stat`. The second field is a name that may hold anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

impl Home {
    fn account(&self) -> Account {
        let mut counters = BTreeMap::new();
        for entry in fs::read_dir(self.counters()).into_iter().flatten().flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            counters
                .insert(entry.file_name().to_string_lossy().into_owned(), counter_value(&bytes));
        }
        Account { counters, console: beginning(&self.console()) }
    }

    fn last_words(&self) -> String {
        let console = beginning(&self.console());
        let lines: Vec<&str> = console.lines().rev().take(3).collect();
        match lines.as_slice() {
            [] => "it printed nothing".into(),
            lines => lines.iter().rev().copied().collect::<Vec<_>>().join("; "),
        }
    }
}

fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(path) {
        let _ = file.take(CONSOLE_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) S 3) S 42 7 7"), Some(42));
        assert_eq!(parent("7 (a"), None);
        assert_eq!(parent(""), None);
    }

    #[test]
    fn our_child_is_a_descendant_and_our_parent_is_not() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let found: Vec<i32> = descendants().iter().map(|p| p.as_raw_nonzero().get()).collect();
        let _ = child.kill();
        let _ = child.wait();
        assert!(found.contains(&(child.id() as i32)));
        assert!(!found.contains(&(std::os::unix::process::parent_id() as i32)));
    }

    #[test]
    fn a_load_without_a_cpu_is_refused_with_the_remedy() {
        let all: Vec<u32> = (0..CpuSet::MAX_CPU as u32).collect();
        let why = cpus(&all).unwrap_err();
        assert!(why.contains("measure fewer"), "{why}");
        assert!(!cpus(&[]).unwrap().is_empty());
    }
}
