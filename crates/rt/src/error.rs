// SPDX-License-Identifier: GPL-2.0-or-later
//! Why the system refuses to let a thread be a real-time task, and what to do about it.

use crate::Policy;
use rustix::io::Errno;
use std::fmt;

/// A refusal with the reason that was found. The text names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The thread has neither `CAP_SYS_NICE` nor enough `RLIMIT_RTPRIO` (sched(7), "Privileges and resource limits").
    Priority {
        /// The policy that was asked for.
        policy: Policy,
        /// The value of `RLIMIT_RTPRIO`: the highest priority that is allowed. 0 allows none.
        limit: u64,
    },
    /// The thread has neither `CAP_SYS_NICE` nor enough `RLIMIT_NICE` (getrlimit(2)).
    Nice {
        /// The nice value that was asked for.
        nice: i8,
        /// The lowest nice value that `RLIMIT_NICE` allows.
        lowest: i64,
    },
    /// The thread may use real-time policies, but its cgroup has no real-time run time
    /// (`CONFIG_RT_GROUP_SCHED`: Documentation/scheduler/sched-rt-group.rst).
    CgroupRuntime {
        /// The policy that was asked for.
        policy: Policy,
        /// The cgroup that the CPU controller uses.
        cgroup: String,
        /// The value of `cpu.rt_runtime_us`, in µs. `None` if the file does not exist, as in cgroup v2.
        runtime_us: Option<i64>,
    },
    /// `SCHED_DEADLINE` needs `CAP_SYS_NICE`. No resource limit gives it.
    DeadlinePrivilege,
    /// The kernel admits `SCHED_DEADLINE` only for threads that may run on every CPU of their scheduling domain
    /// (Documentation/scheduler/sched-deadline.rst, §5).
    DeadlineAffinity {
        /// The CPUs that the thread may use.
        allowed: Vec<u32>,
    },
    /// The deadline tasks that the kernel has admitted leave too little bandwidth.
    DeadlineAdmission {
        /// The policy that was asked for.
        policy: Policy,
    },
    /// The run time, the deadline or the period is outside of the kernel's range.
    DeadlineParameters {
        /// The policy that was asked for.
        policy: Policy,
    },
    /// A deadline task cannot be bound to a CPU.
    PinnedDeadline {
        /// The CPU.
        cpu: u32,
    },
    /// There is no such CPU.
    CpuMissing {
        /// The CPU.
        cpu: u32,
        /// The CPUs that exist.
        present: String,
    },
    /// The CPU is offline.
    CpuOffline {
        /// The CPU.
        cpu: u32,
        /// The CPUs that are online.
        online: String,
    },
    /// The CPU is online, but the thread's cpuset does not contain it.
    CpuNotAllowed {
        /// The CPU.
        cpu: u32,
        /// The CPUs that the thread may use.
        allowed: String,
    },
    /// `RLIMIT_MEMLOCK` is too small to lock the mapped memory, and there is no `CAP_IPC_LOCK` (mlock(2)).
    MemoryLimit {
        /// The value of the limit.
        limit_kib: u64,
        /// The size of the mapped memory.
        mapped_kib: u64,
    },
    /// `/dev/cpu_dma_latency` cannot be opened.
    PowerManagement(Errno),
    /// Any other refusal.
    System {
        /// The system call or file.
        call: &'static str,
        /// The error that the system call or the file gave.
        errno: Errno,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Priority { policy, limit } => write!(
                f,
                "{policy} is not permitted: no CAP_SYS_NICE, and RLIMIT_RTPRIO is {limit}; run with sudo, or \
                 put \"@GROUP - rtprio 99\" into /etc/security/limits.conf and log in again, or \
                 \"setcap cap_sys_nice+ep\" the program, or use --policy other"
            ),
            Error::Nice { nice, lowest } => write!(
                f,
                "a nice value of {nice} is not permitted: no CAP_SYS_NICE, and RLIMIT_NICE allows {lowest} at \
                 the lowest; run with sudo, or put \"@GROUP - nice {nice}\" into /etc/security/limits.conf and log in \
                 again, or use --policy other"
            ),
            Error::CgroupRuntime { policy, cgroup, runtime_us } => {
                let found = found_in_cgroup(*runtime_us);
                write!(f, "{policy} is refused to the cgroup {cgroup} (CONFIG_RT_GROUP_SCHED): {found}")
            }
            Error::DeadlinePrivilege => f.write_str(
                "SCHED_DEADLINE needs CAP_SYS_NICE, which no resource limit replaces; run with sudo, or \
                 \"setcap cap_sys_nice+ep\" the program, or use --policy fifo:PRIORITY or other",
            ),
            Error::DeadlineAffinity { allowed } => write!(
                f,
                "SCHED_DEADLINE is refused to a thread that is bound to CPUs {allowed:?}: let it run on all \
                 CPUs, make an exclusive cpuset, or switch admission off (kernel.sched_rt_runtime_us=-1)"
            ),
            Error::DeadlineAdmission { policy } => write!(
                f,
                "{policy} is not admitted: with those that run already it exceeds the share of real-time tasks \
                 (kernel.sched_rt_runtime_us / sched_rt_period_us); use a shorter run time or a longer period"
            ),
            Error::DeadlineParameters { policy } => write!(
                f,
                "{policy} is outside of what the kernel takes: 1024 ns ≤ run time ≤ deadline ≤ period, and the \
                 period within kernel.sched_deadline_period_min_us … max_us"
            ),
            Error::PinnedDeadline { cpu } => write!(
                f,
                "a SCHED_DEADLINE thread may not be bound to CPU {cpu}; bind it by an exclusive cpuset"
            ),
            Error::CpuMissing { cpu, present } => {
                write!(f, "there is no CPU {cpu}; this machine has {present}")
            }
            Error::CpuOffline { cpu, online } => write!(
                f,
                "CPU {cpu} is offline (online: {online}); take another, or write 1 to \
                 /sys/devices/system/cpu/cpu{cpu}/online"
            ),
            Error::CpuNotAllowed { cpu, allowed } => write!(
                f,
                "CPU {cpu} is not in the cpuset of this process (allowed: {allowed}); take one of those, or start \
                 from a cgroup that holds it"
            ),
            Error::MemoryLimit { limit_kib, mapped_kib } => write!(
                f,
                "memory cannot be locked: {mapped_kib} KiB are mapped, RLIMIT_MEMLOCK is {limit_kib} KiB, and \
                 there is no CAP_IPC_LOCK; run with sudo, or put \"@GROUP - memlock unlimited\" into \
                 /etc/security/limits.conf and log in again"
            ),
            Error::PowerManagement(errno) => write!(
                f,
                "/dev/cpu_dma_latency: {errno}; it keeps CPUs out of deep idle states and belongs to root: run with \
                 sudo, or give your group the right to write it"
            ),
            Error::System { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl std::error::Error for Error {}

fn found_in_cgroup(runtime_us: Option<i64>) -> String {
    let found = match runtime_us {
        Some(us) => &format!("its cpu.rt_runtime_us is {us}; write 950000 there"),
        None => "it has no real-time run time; boot with rt_group_sched=0",
    };
    format!("{found}, or start from the root cgroup, or use --policy other")
}
