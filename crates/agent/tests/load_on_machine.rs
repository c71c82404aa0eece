// SPDX-License-Identifier: GPL-2.0-or-later
//! Every load on the machine that runs the tests, for real: it works, keeps its place, and leaves nothing behind
//! however it ends. A load whose programs or privileges are missing here is refused with the remedy, and a note says
//! so.

#[path = "../../../tests/testbench/notes.rs"]
mod notes;

use agent::confinement::{Account, Confinement, Reply, Request, SUPERVISOR};
use agent::{ALL_LOADS, Load};
use notes::{note, skip};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Asked this often at most for what must come about; a minute in all.
const TRIES: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(20);

/// One load at a time: what each leaves behind is looked for on the whole machine.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if holds() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("never came about: {what}");
}

fn request(load: Load) -> Request {
    Request {
        script: load.script(),
        programs: load.programs_on_machine().into_iter().map(str::to_owned).collect(),
        needs_network: load.needs_network(),
        avoid: Vec::new(),
        disk: None,
    }
}

fn agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onset-agent"));
    command.arg0(SUPERVISOR);
    command
}

/// The agent in a user namespace that allows no others: as where the system forbids them.
fn agent_without_namespaces() -> Command {
    let forbid = "for kind in pid mnt net user; do echo 0 >/proc/sys/user/max_${kind}_namespaces; done; \
                  exec -a onset-load \"$0\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "bash", "-c", forbid]);
    command.arg(env!("CARGO_BIN_EXE_onset-agent"));
    command
}

struct Supervisor {
    child: Child,
    replies: BufReader<ChildStdout>,
}

impl Supervisor {
    fn start(mut command: Command, request: &Request) -> Supervisor {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let line = serde_json::to_string(request).unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        Supervisor { child, replies }
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"))
    }

    /// What holds the load, or none where it is refused, which a note says.
    fn started(&mut self) -> Option<Confinement> {
        match self.reply() {
            Reply::Started(confinement) => Some(confinement),
            Reply::Refused(why) => {
                assert!(why.contains("apt install") || why.contains("run as root"), "{why}");
                note(&why);
                None
            }
            other => panic!("{other:?}"),
        }
    }

    fn account(&mut self) -> Account {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        match self.reply() {
            Reply::Account(account) => account,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until each counter of the load has moved.
    fn works(&mut self, load: Load) {
        eventually(load.name(), || {
            let account = self.account();
            let moved = |c: &&str| account.counters.get(*c).is_some_and(|n| *n > 0);
            load.counters().iter().all(moved)
        });
        let account = self.account();
        for (name, n) in &account.counters {
            assert!(
                // Whether a player runs dry beside a compiler is a matter of the machine's time.
                !name.ends_with(".failed") || name == "media.block.failed" || *n == 0,
                "{load}: {name} {n}: {}",
                account.console
            );
        }
    }
}

/// What a machine has more of while a load runs. Processes by session: the supervisor leads one.
#[derive(Debug, Default, PartialEq)]
struct Traces {
    processes: Vec<String>,
    mounts: Vec<String>,
    groups: Vec<String>,
    files: Vec<String>,
}

fn traces(session: u32) -> Traces {
    let name = format!("onset-load-{session}");
    let listed = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|e| e.path().to_string_lossy().into_owned());
        paths.filter(|p| p.ends_with(&name)).collect()
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let groups = mounts.lines().filter(|l| l.contains(" - cgroup2 "));
    let groups = groups.filter_map(|l| l.split(' ').nth(4)).flat_map(|top| listed(Path::new(top)));
    let groups = groups.collect();
    let ours = |l: &&str| l.contains("onset-load") || l.contains("/run/netns/east");
    Traces {
        processes: processes(session),
        groups,
        mounts: mounts.lines().filter(ours).map(str::to_owned).collect(),
        files: [&std::env::temp_dir(), Path::new("/tmp"), Path::new("/run")]
            .into_iter()
            .flat_map(listed)
            .collect(),
    }
}

fn processes(session: u32) -> Vec<String> {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|e| fs::read_to_string(e.path().join("stat")).ok());
    let in_session = |stat: &String| {
        let after = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        after.split_whitespace().nth(3) == Some(&session.to_string())
    };
    stats.filter(in_session).collect()
}

fn is_gone(session: u32) {
    eventually("nothing is left", || traces(session) == Traces::default());
}

/// Whether all programs of a load are where it looks for them.
fn has_programs(load: Load) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let places: Vec<PathBuf> = std::env::split_paths(&path).chain(more).collect();
    let programs = load.programs_on_machine();
    programs.iter().all(|program| places.iter().any(|place| place.join(program).is_file()))
}

/// Whether this user may make the namespaces of a network load without a user namespace, as root may.
fn may_make_namespaces() -> bool {
    let words = ["--pid", "--mount", "--net", "--fork", "true"];
    Command::new("unshare").args(words).status().is_ok_and(|status| status.success())
}

/// The loads whose programs every system has.
const NEED_NOTHING: [Load; 4] = [Load::Disk, Load::Fork, Load::Fs, Load::Media];

#[test]
fn every_load_works_and_leaves_nothing_when_its_input_ends() {
    let _alone = alone();
    let may_make_namespaces = may_make_namespaces();
    let mut begun = Vec::new();
    for load in ALL_LOADS.into_iter().filter(|l| *l != Load::Idle) {
        let mut supervisor = Supervisor::start(agent(), &request(load));
        let session = supervisor.child.id();
        if let Some(confinement) = supervisor.started() {
            eprintln!("{load}: {confinement:?}");
            supervisor.works(load);
            assert!(processes(session).len() > 1);
            begun.push(load);
        } else {
            let may_begin = !load.needs_network() || may_make_namespaces;
            assert!(!has_programs(load) || !may_begin, "{load} is refused, and lacks nothing");
        }
        drop(supervisor.child.stdin.take());
        assert!(supervisor.child.wait().unwrap().success(), "{load}");
        assert_eq!(traces(session), Traces::default(), "{load}");
    }
    assert!(NEED_NOTHING.iter().all(|load| begun.contains(load)), "{begun:?}");
}

#[test]
fn without_namespaces_a_load_works_and_leaves_nothing_and_a_network_is_refused() {
    let _alone = alone();
    let user_namespace =
        Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !user_namespace.is_ok_and(|s| s.success()) {
        return skip("forbidding namespaces takes a user namespace, which is forbidden here");
    }
    for load in [Load::Disk, Load::Fork, Load::Fs, Load::Compile, Load::Ipc, Load::Memory] {
        let mut supervisor = Supervisor::start(agent_without_namespaces(), &request(load));
        let session = supervisor.child.id();
        if let Some(confinement) = supervisor.started() {
            assert!(!confinement.processes && !confinement.mounts, "{confinement:?}");
            supervisor.works(load);
        } else {
            assert!(!has_programs(load), "{load} is refused, and lacks nothing");
        }
        drop(supervisor.child.stdin.take());
        assert!(supervisor.child.wait().unwrap().success(), "{load}");
        assert_eq!(traces(session), Traces::default(), "{load}");
    }
    for load in ALL_LOADS.into_iter().filter(|load| load.needs_network()) {
        let mut supervisor = Supervisor::start(agent_without_namespaces(), &request(load));
        let refused = |reply| matches!(reply, Reply::Refused(why) if why.contains("run as root"));
        assert!(refused(supervisor.reply()), "{load}");
    }
}

#[test]
fn a_load_ends_with_the_process_that_started_it_even_when_that_is_killed() {
    let _alone = alone();
    // A shell is the command: it holds the pipe's only end, and is killed.
    let script = "(cat \"$2\"; exec sleep 1000) | (exec -a onset-load \"$1\")";
    let file = std::env::temp_dir().join(format!("onset-request-{}", std::process::id()));
    fs::write(&file, serde_json::to_string(&request(Load::Fork)).unwrap() + "\n").unwrap();
    let mut starter = Command::new("bash")
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_onset-agent")])
        .arg(&file)
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(starter.stdout.take().unwrap()).read_line(&mut line).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(line.contains("started"), "{line}");
    let session = sessions_of_supervisors(starter.id());
    assert!(!processes(session).is_empty());
    // The whole process group, as a terminal or a job scheduler does; the supervisor has left it.
    let status = Command::new("kill").args(["-KILL", "--", &format!("-{}", starter.id())]).status();
    assert!(status.unwrap().success());
    starter.wait().unwrap();
    is_gone(session);
}

/// The session of the supervisor among the descendants of a process.
fn sessions_of_supervisors(starter: u32) -> u32 {
    let children = |pid: u32| -> Vec<u32> {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
    };
    let mut next = children(starter);
    while let Some(pid) = next.pop() {
        if !processes(pid).is_empty() {
            return pid;
        }
        next.extend(children(pid));
    }
    panic!("no supervisor below {starter}");
}

#[test]
fn a_killed_supervisor_takes_its_namespaces_with_it() {
    let _alone = alone();
    let mut supervisor = Supervisor::start(agent(), &request(Load::Fork));
    let session = supervisor.child.id();
    let Some(confinement) = supervisor.started().filter(|c| c.processes && c.mounts) else {
        return skip("no namespaces here");
    };
    supervisor.works(Load::Fork);
    supervisor.child.kill().unwrap();
    supervisor.child.wait().unwrap();
    eventually("no process is left", || processes(session).is_empty());
    // The next one sweeps the group that nobody could remove.
    let mut next = Supervisor::start(agent(), &request(Load::Fork));
    assert_eq!(next.started(), Some(confinement));
    drop(next.child.stdin.take());
    next.child.wait().unwrap();
    assert_eq!(traces(session), Traces::default());
}

#[test]
fn a_load_keeps_off_the_measured_cpus() {
    let _alone = alone();
    let Some(measured) = first_of_several_cpus() else {
        return skip("only one CPU may be used here");
    };
    let mut supervisor =
        Supervisor::start(agent(), &Request { avoid: vec![measured], ..request(Load::Fork) });
    let session = supervisor.child.id();
    let confinement = supervisor.started().unwrap();
    assert!(!confinement.cpus.is_empty() && !confinement.cpus.contains(&measured));
    supervisor.works(Load::Fork);
    let pids = processes(session);
    let pids = pids.iter().filter_map(|s| s.split(' ').next()?.parse().ok());
    for pid in pids.filter(|pid: &u32| *pid != session) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        let parts = list.unwrap_or_default().trim().split(',');
        assert!(!parts.clone().any(|p| p.split('-').next() == Some(&measured.to_string())));
    }
    drop(supervisor.child.stdin.take());
    supervisor.child.wait().unwrap();
}

fn first_of_several_cpus() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim();
    let first = list.split(['-', ',']).next()?;
    (first != list).then(|| first.parse().ok())?
}

#[test]
fn a_disk_that_is_named_is_written_to_and_left_as_it_was() {
    let _alone = alone();
    let disk = std::env::temp_dir().join(format!("onset-disk-{}", std::process::id()));
    fs::create_dir(&disk).unwrap();
    let asked = Request { disk: Some(disk.clone()), ..request(Load::Disk) };
    let mut supervisor = Supervisor::start(agent(), &asked);
    supervisor.started().unwrap();
    supervisor.works(Load::Disk);
    let made = disk.join(format!("onset-load-{}", supervisor.child.id()));
    assert!(made.join("file").is_file());
    drop(supervisor.child.stdin.take());
    supervisor.child.wait().unwrap();
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
    fs::remove_dir(&disk).unwrap();
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let _alone = alone();
    for (change, expected) in [
        (Request { programs: vec!["no-such".into()], ..request(Load::Fork) }, "no-such"),
        (Request { avoid: (0..8192).collect(), ..request(Load::Fork) }, "measure fewer"),
        (Request { disk: Some("/no/such".into()), ..request(Load::Disk) }, "/no/such"),
        (Request { script: "echo reason >&2; exit 3".into(), ..request(Load::Fork) }, "reason"),
    ] {
        let mut supervisor = Supervisor::start(agent(), &change);
        let session = supervisor.child.id();
        assert!(matches!(supervisor.reply(), Reply::Refused(why) if why.contains(expected)));
        supervisor.child.wait().unwrap();
        assert_eq!(traces(session), Traces::default(), "{expected}");
    }
    let mut nonsense = agent().stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(nonsense.wait().unwrap().code(), Some(2));
}
