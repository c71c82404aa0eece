// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs that a thread may run on.

use crate::Error;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::read_to_string;

const SYSTEM: &str = "/sys/devices/system/cpu";

/// Binds the calling thread to `cpu`.
///
/// # Errors
/// [`Error::CpuMissing`], [`Error::CpuOffline`], [`Error::CpuNotAllowed`]; [`Error::PinnedDeadline`] if the thread is
/// under `SCHED_DEADLINE`.
pub fn pin(cpu: u32) -> Result<(), Error> {
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(refused(cpu, Errno::INVAL));
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu as usize);
    sched_setaffinity(None, &cpus).map_err(|errno| refused(cpu, errno))
}

/// Lets the calling thread run wherever its cpuset allows.
///
/// # Errors
/// [`Error::System`].
pub fn unpin() -> Result<(), Error> {
    let mut cpus = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| cpus.set(cpu));
    sched_setaffinity(None, &cpus)
        .map_err(|errno| Error::System { call: "sched_setaffinity", errno })
}

/// The CPUs that the calling thread may run on now, rising.
///
/// # Errors
/// [`Error::System`], for example on machines with more than 1024 CPUs.
pub fn allowed_cpus() -> Result<Vec<u32>, Error> {
    let cpus = sched_getaffinity(None)
        .map_err(|errno| Error::System { call: "sched_getaffinity", errno })?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// The CPUs that are online, rising.
///
/// # Errors
/// [`Error::System`] if /sys is not mounted.
pub fn online_cpus() -> Result<Vec<u32>, Error> {
    listed("online")
        .ok_or(Error::System { call: "/sys/devices/system/cpu/online", errno: Errno::NOENT })
}

/// The list of CPUs in a file of /sys/devices/system/cpu.
fn listed(file: &str) -> Option<Vec<u32>> {
    cpu_list(&read_to_string(format!("{SYSTEM}/{file}")).ok()?)
}

/// Why the kernel did not accept the CPU. The kernel answers `EINVAL` for three different reasons.
fn refused(cpu: u32, errno: Errno) -> Error {
    if errno == Errno::BUSY {
        return Error::PinnedDeadline { cpu };
    }
    if errno != Errno::INVAL {
        return Error::System { call: "sched_setaffinity", errno };
    }
    let text = |file: &str| {
        read_to_string(format!("{SYSTEM}/{file}")).unwrap_or_default().trim().to_owned()
    };
    if listed("present").is_some_and(|present| !present.contains(&cpu)) {
        return Error::CpuMissing { cpu, present: text("present") };
    }
    if listed("online").is_some_and(|online| !online.contains(&cpu)) {
        return Error::CpuOffline { cpu, online: text("online") };
    }
    let allowed: Vec<String> = cpuset().unwrap_or_default().iter().map(u32::to_string).collect();
    Error::CpuNotAllowed { cpu, allowed: allowed.join(",") }
}

/// The CPUs that the thread may use at all. The thread's present mask may be narrower.
fn cpuset() -> Result<Vec<u32>, Error> {
    let before = sched_getaffinity(None);
    unpin()?;
    let cpus = allowed_cpus();
    if let Ok(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    cpus
}

/// The CPUs in a list of the kernel's ("0-3,8"). `None` if the text is no such list.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_are_read() {
        assert_eq!(cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list("7"), Some(vec![7]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("0-x"), None);
    }

    #[test]
    fn a_pinned_thread_may_run_only_there_until_it_is_unpinned() {
        std::thread::spawn(|| {
            let all = allowed_cpus().unwrap();
            let last = *all.last().unwrap();
            pin(last).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [last]);
            unpin().unwrap();
            assert!(all.iter().all(|cpu| allowed_cpus().unwrap().contains(cpu)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named_with_those_that_do() {
        for cpu in [1000, 1024, u32::MAX] {
            let Err(Error::CpuMissing { cpu: named, present }) = pin(cpu) else {
                panic!("CPU {cpu} exists?")
            };
            assert_eq!(named, cpu);
            assert_eq!(cpu_list(&present).unwrap()[0], 0);
        }
        assert!(online_cpus().unwrap().contains(&allowed_cpus().unwrap()[0]));
    }
}
