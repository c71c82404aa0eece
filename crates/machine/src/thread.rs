// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel threads: their names, policies and priorities, from /proc/PID/stat (proc_pid_stat(5)).

use rt::Policy;

/// The flag of a thread that belongs to the kernel (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

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
pub fn kernel_thread(stat: &str) -> Option<Thread> {
    // The name may hold anything, even parentheses. The fields after the name have none.
    let (_, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The manual page counts fields from 1. The first field here is its third.
    let field = |n: usize| fields.get(n - 3).copied();
    let flags: u32 = field(9)?.parse().ok()?;
    if flags & PF_KTHREAD == 0 {
        return None;
    }
    let priority = field(40)?.parse().ok();
    let policy = match field(41)? {
        "0" => Some(Policy::Other(field(19)?.parse().ok()?)),
        "1" => priority.map(Policy::Fifo),
        "2" => priority.map(Policy::RoundRobin),
        _ => None,
    };
    Some(Thread { name: name.into(), began: field(22)?.parse().ok()?, policy })
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
