// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel threads: their names, policies and priorities, from /proc/PID/stat (proc_pid_stat(5)).

use probes::context::Stat;
use rt::Policy;

/// A kernel thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    /// When it began, in ticks since boot: its number may belong to another thread later.
    pub began: u64,
    /// Its policy. `None` for one that onset cannot give back.
    pub policy: Option<Policy>,
}

/// The kernel thread that a line of /proc/PID/stat describes; none if it describes another process.
pub fn kernel_thread(line: &str) -> Option<Thread> {
    let stat = Stat::of(line).filter(|stat| stat.is_kernel() == Some(true))?;
    let policy = match stat.field::<u32>(41)? {
        0 => Some(Policy::Other(stat.field(19)?)),
        1 => stat.field(40).map(Policy::Fifo),
        2 => stat.field(40).map(Policy::RoundRobin),
        _ => None,
    };
    Some(Thread { name: stat.name.into(), began: stat.field(22)?, policy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(flags: u32, policy: u32, priority: u32) -> String {
        format!(
            "14 (irq/9-(acpi)) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 -51 -5 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 {priority} {policy} 0 0 0"
        )
    }

    #[test]
    fn a_kernel_thread_is_read_with_its_policy() {
        let thread = kernel_thread(&stat(0x0020_8040, 1, 50)).unwrap();
        assert_eq!((thread.name.as_str(), thread.began), ("irq/9-(acpi)", 77));
        assert_eq!(thread.policy, Some(Policy::Fifo(50)));
        let policy = |n, priority| kernel_thread(&stat(0x0020_8040, n, priority)).unwrap().policy;
        assert_eq!(policy(0, 0), Some(Policy::Other(-5)));
        assert_eq!(policy(2, 7), Some(Policy::RoundRobin(7)));
        assert_eq!(policy(6, 0), None);
    }

    #[test]
    fn other_processes_and_cut_lines_are_no_kernel_threads() {
        let whole = stat(0x0020_8040, 1, 50);
        assert_eq!(kernel_thread(&stat(0x40_0000, 1, 50)), None);
        for text in ["", "14", "14 (a", &whole[..60]] {
            assert_eq!(kernel_thread(text), None, "{text:?}");
        }
    }
}
