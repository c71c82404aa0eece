// SPDX-License-Identifier: GPL-2.0-or-later
//! How a thread takes a scheduling policy, and why the kernel refuses one.

use crate::{Error, Policy, affinity};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::read_to_string;

/// `CAP_SYS_NICE` (linux/capability.h).
const CAP_SYS_NICE: u32 = 23;

/// Gives the calling thread `policy`. Threads that it starts afterwards inherit FIFO, RR and OTHER. A DEADLINE thread
/// cannot start any thread (sched(7)).
///
/// # Errors
/// All kinds of [`Error`] but those about CPUs and memory.
pub fn apply(policy: Policy) -> Result<(), Error> {
    give(0, policy)
}

/// Gives a thread `policy`, by its number. 0 is the calling thread.
///
/// # Errors
/// As [`apply`], and `System` where there is no such thread.
pub fn give(thread: i32, policy: Policy) -> Result<(), Error> {
    let mut attributes = attributes(policy);
    // SAFETY: the structure is whole and says its own size.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw mut attributes, 0) };
    if answer == 0 {
        return Ok(());
    }
    // SAFETY: the pointer is to the errno of this thread, which the call above has set.
    let errno = Errno::from_raw_os_error(unsafe { *libc::__errno_location() });
    Err(reason(policy, errno, &Rights::found()))
}

fn attributes(policy: Policy) -> libc::sched_attr {
    let none = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    match policy {
        Policy::Other(nice) => libc::sched_attr { sched_nice: nice.into(), ..none },
        Policy::Fifo(priority) => libc::sched_attr {
            sched_policy: libc::SCHED_FIFO as u32,
            sched_priority: priority.into(),
            ..none
        },
        Policy::RoundRobin(priority) => libc::sched_attr {
            sched_policy: libc::SCHED_RR as u32,
            sched_priority: priority.into(),
            ..none
        },
        Policy::Deadline { runtime, deadline, period } => libc::sched_attr {
            sched_policy: libc::SCHED_DEADLINE as u32,
            sched_runtime: runtime.0,
            sched_deadline: deadline.0,
            sched_period: period.0,
            ..none
        },
    }
}

/// The rights and the cgroup of the thread, from which the reason of a refusal is found.
struct Rights {
    /// Whether it has `CAP_SYS_NICE` in the first user namespace. In another namespace the capability is worth nothing.
    nice: bool,
    limit_rtprio: u64,
    limit_nice: u64,
    cgroup: String,
    cgroup_runtime_us: Option<i64>,
}

impl Rights {
    fn found() -> Rights {
        let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
        let first = read_to_string("/proc/self/uid_map").is_ok_and(|map| is_first_namespace(&map));
        let cgroups = read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (cgroup, controller) = cpu_cgroup(&cgroups);
        let runtime = controller.and_then(|controller| {
            let file = format!("/sys/fs/cgroup/{controller}{cgroup}/cpu.rt_runtime_us");
            read_to_string(file).ok()?.trim().parse().ok()
        });
        Rights {
            nice: first && has_capability(&status, CAP_SYS_NICE),
            limit_rtprio: getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX),
            limit_nice: getrlimit(Resource::Nice).current.unwrap_or(u64::MAX),
            cgroup,
            cgroup_runtime_us: runtime,
        }
    }
}

fn reason(policy: Policy, errno: Errno, rights: &Rights) -> Error {
    match (policy, errno) {
        (Policy::Deadline { .. }, Errno::BUSY) => Error::DeadlineAdmission { policy },
        (Policy::Deadline { .. }, Errno::INVAL | Errno::TOOBIG) => {
            Error::DeadlineParameters { policy }
        }
        (Policy::Deadline { .. }, Errno::PERM) if !rights.nice => Error::DeadlinePrivilege,
        (Policy::Deadline { .. }, Errno::PERM) => {
            Error::DeadlineAffinity { allowed: affinity::allowed_cpus().unwrap_or_default() }
        }
        // The lowest nice value is 20 − RLIMIT_NICE (getrlimit(2)).
        (Policy::Other(nice), Errno::PERM | Errno::ACCESS) => {
            Error::Nice { nice, lowest: 20 - rights.limit_nice.min(40) as i64 }
        }
        (Policy::Fifo(priority) | Policy::RoundRobin(priority), Errno::PERM) => {
            if rights.nice || rights.limit_rtprio >= priority.into() {
                let cgroup = rights.cgroup.clone();
                Error::CgroupRuntime { policy, cgroup, runtime_us: rights.cgroup_runtime_us }
            } else {
                Error::Priority { policy, limit: rights.limit_rtprio }
            }
        }
        _ => Error::System { call: "sched_setattr", errno },
    }
}

/// Whether `CapEff` in a /proc/PID/status contains the capability.
fn has_capability(status: &str, capability: u32) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> capability & 1 == 1)
}

/// Whether the map is that of the first user namespace, which maps every ID to itself (user_namespaces(7)).
fn is_first_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The path of the cgroup that governs CPU time, and the directory of its controller in version 1 (cgroups(7)).
fn cpu_cgroup(text: &str) -> (String, Option<&str>) {
    let entries = || {
        text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        })
    };
    let version_1 = entries().find(|(names, _)| names.split(',').any(|name| name == "cpu"));
    match version_1.or_else(|| entries().find(|(names, _)| names.is_empty())) {
        Some(("", path)) => (path.to_owned(), None),
        Some((controller, path)) => (path.to_owned(), Some(controller)),
        None => (String::from("/"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Nanos;

    const DEADLINE: Policy = Policy::Deadline {
        runtime: Nanos(100_000),
        deadline: Nanos(1_000_000),
        period: Nanos(1_000_000),
    };

    fn rights(nice: bool, limit_rtprio: u64) -> Rights {
        let cgroup = "/user".to_owned();
        Rights { nice, limit_rtprio, limit_nice: 0, cgroup, cgroup_runtime_us: Some(0) }
    }

    #[test]
    fn a_refusal_is_explained_by_what_the_thread_may_do() {
        let fifo = Policy::Fifo(50);
        for (policy, errno, rights, want) in [
            (fifo, Errno::PERM, rights(false, 0), Error::Priority { policy: fifo, limit: 0 }),
            (fifo, Errno::PERM, rights(false, 49), Error::Priority { policy: fifo, limit: 49 }),
            (
                fifo,
                Errno::PERM,
                rights(false, 50),
                Error::CgroupRuntime { policy: fifo, cgroup: "/user".into(), runtime_us: Some(0) },
            ),
            (
                Policy::Other(-5),
                Errno::ACCESS,
                rights(false, 0),
                Error::Nice { nice: -5, lowest: 20 },
            ),
            (DEADLINE, Errno::PERM, rights(false, 99), Error::DeadlinePrivilege),
            (DEADLINE, Errno::BUSY, rights(true, 0), Error::DeadlineAdmission { policy: DEADLINE }),
            (
                DEADLINE,
                Errno::INVAL,
                rights(true, 0),
                Error::DeadlineParameters { policy: DEADLINE },
            ),
        ] {
            assert_eq!(reason(policy, errno, &rights), want);
        }
        assert!(matches!(
            reason(DEADLINE, Errno::PERM, &rights(true, 0)),
            Error::DeadlineAffinity { .. }
        ));
    }

    #[test]
    fn the_remedy_for_an_ordinary_user_names_limit_value_and_the_way_without_privilege() {
        let text = Error::Priority { policy: Policy::Fifo(80), limit: 3 }.to_string();
        for part in ["fifo:80", "RLIMIT_RTPRIO is 3", "limits.conf", "setcap", "--policy other"] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }

    #[test]
    fn the_cgroup_of_the_cpu_controller_is_found_in_both_versions() {
        for (text, want) in [
            (
                "9:name=systemd:/\n3:cpuset:/b\n1:cpu,cpuacct:/a:b\n0::/\n",
                ("/a:b", Some("cpu,cpuacct")),
            ),
            ("0::/user.slice/session-1.scope\n", ("/user.slice/session-1.scope", None)),
            ("", ("/", None)),
        ] {
            let (path, controller) = cpu_cgroup(text);
            assert_eq!((path.as_str(), controller), want);
        }
    }

    #[test]
    fn a_capability_counts_only_if_effective_and_in_the_first_namespace() {
        assert!(has_capability("CapPrm:\t0\nCapEff:\t0000000000800000\n", CAP_SYS_NICE));
        assert!(!has_capability("CapPrm:\tffffffff\nCapEff:\t0000000000000000\n", CAP_SYS_NICE));
        assert!(!has_capability("", CAP_SYS_NICE));
        assert!(is_first_namespace("         0          0 4294967295\n"));
        assert!(!is_first_namespace("         0       1000          1\n"));
    }

    #[test]
    fn a_policy_that_anybody_may_have_is_taken_and_read_back() {
        std::thread::spawn(|| {
            apply(Policy::Other(7)).unwrap();
            // SAFETY: the call asks for the nice value of the calling thread.
            assert_eq!(unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }, 7);
        })
        .join()
        .unwrap();
    }

    /// The kernel's answer to a deadline of `runtime` in 1 ms. The asking thread may run on one CPU or on all.
    fn asked(runtime: Nanos, pinned: bool) -> Result<(), Error> {
        let policy =
            Policy::Deadline { runtime, deadline: Nanos(1_000_000), period: Nanos(1_000_000) };
        let ask = move || {
            if pinned {
                affinity::pin(affinity::allowed_cpus()?[0])?;
            }
            apply(policy)
        };
        std::thread::spawn(ask).join().unwrap()
    }

    #[test]
    fn the_kernels_own_refusals_of_deadlines_are_told_apart() {
        if affinity::online_cpus().unwrap().len() == 1 || asked(Nanos(10_000), false).is_err() {
            println!("skipped: needs CAP_SYS_NICE and two CPUs");
            return;
        }
        assert!(
            matches!(asked(Nanos(10_000), true), Err(Error::DeadlineAffinity { allowed }) if allowed.len() == 1)
        );
        assert!(matches!(asked(Nanos(500), false), Err(Error::DeadlineParameters { .. })));
    }

    #[test]
    fn deadlines_that_are_too_much_together_are_not_admitted() {
        let share = read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        if share.trim() == "-1" || asked(Nanos(10_000), false).is_err() {
            println!("skipped: needs CAP_SYS_NICE and a limited share of real-time tasks");
            return;
        }
        // Each thread asks for a whole CPU, and keeps it until all threads have asked.
        let threads = affinity::online_cpus().unwrap().len();
        let all_asked = std::sync::Barrier::new(threads);
        let second = Nanos::from_secs(1);
        let policy = Policy::Deadline { runtime: second, deadline: second, period: second };
        let answers: Vec<_> = std::thread::scope(|s| {
            let ask = || {
                let answer = apply(policy);
                all_asked.wait();
                answer
            };
            let threads: Vec<_> = (0..threads).map(|_| s.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(answers.contains(&Err(Error::DeadlineAdmission { policy })), "{answers:?}");
    }
}
