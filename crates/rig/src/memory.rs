// SPDX-License-Identifier: GPL-2.0-or-later
//! How much memory this machine has left for this process.

use std::path::Path;

/// Where cgroups of version 2 are.
const CGROUPS: &str = "/sys/fs/cgroup";
/// What a cgroup counts of copies of files.
const FILES: [&str; 2] = ["inactive_file", "active_file"];

/// The bytes of memory that programs may still take: of the machine (proc_meminfo(5), `MemAvailable`), and of the
/// cgroups of this process, whose memory a container or a scheduler may bound. `None` if the kernel does not say.
pub fn memory_available() -> Option<u64> {
    let machine = available(&std::fs::read_to_string("/proc/meminfo").ok()?);
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    machine.into_iter().chain(left_by_cgroups(&own, &read)).min()
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// What the process's cgroup, and those around it, leave of their bounds (Documentation/admin-guide/cgroup-v2.rst,
/// "Memory Interface Files"). `None` where none has a bound.
fn left_by_cgroups(own: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let around = Path::new(path).ancestors();
    let left = around.filter_map(|group| {
        let number = |file: &str| {
            let text = read(&Path::new(CGROUPS).join(group).join(file))?;
            // "max" is no bound.
            text.trim().parse::<u64>().ok()
        };
        // The kernel takes the copies of files back before it bounds anybody, as in `MemAvailable`.
        let stat = read(&Path::new(CGROUPS).join(group).join("memory.stat")).unwrap_or_default();
        let words = stat.lines().filter_map(|line| line.split_once(' '));
        let files = words.filter(|(name, _)| FILES.contains(name));
        let files: u64 = files.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
        let taken = number("memory.current")?.saturating_sub(files);
        Some(number("memory.max")?.saturating_sub(taken))
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_that_is_left_is_read() {
        let text = "MemTotal:       24000000 kB\nMemFree:  5 kB\nMemAvailable:    1000 kB\n";
        assert_eq!(available(text), Some(1_024_000));
        assert_eq!(available("MemFree: 5 kB\n"), None);
        assert!(memory_available().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn the_narrowest_cgroup_counts_and_one_without_a_bound_does_not() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/slurm/memory.max" => "1000\n",
                "/sys/fs/cgroup/slurm/memory.current" => "400\n",
                "/sys/fs/cgroup/slurm/job/memory.max" | "/sys/fs/cgroup/free/memory.max" => "max\n",
                "/sys/fs/cgroup/slurm/job/task/memory.max" => "700\n",
                "/sys/fs/cgroup/slurm/job/task/memory.current" => "250\n",
                "/sys/fs/cgroup/slurm/job/task/memory.stat" => {
                    "anon 50\nfile 200\ninactive_file 150\nactive_file 50\n"
                }
                "/sys/fs/cgroup/full/memory.max" => "700\n",
                "/sys/fs/cgroup/full/memory.current" => "700\n",
                "/sys/fs/cgroup/full/memory.stat" => "inactive_file 650\nactive_file 30\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let left = |own: &str| left_by_cgroups(own, &read);
        assert_eq!(left("12:cpu:/x\n0::/slurm/job/task\n"), Some(600));
        assert_eq!(left("0::/full\n"), Some(680));
        assert_eq!(left("0::/free\n"), None);
        assert_eq!(left("1:memory:/slurm\n"), None);
    }
}
