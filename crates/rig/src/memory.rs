// SPDX-License-Identifier: GPL-2.0-or-later
//! How much memory this machine has left.

/// The bytes of memory that programs may still take (proc_meminfo(5), `MemAvailable`). `None` if the kernel does not
/// say.
pub fn memory_available() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
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
}
