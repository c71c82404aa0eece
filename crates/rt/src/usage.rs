// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts that the kernel keeps of a thread. They prove that nothing disturbed it.

use sample::Nanos;

/// The counters of a thread or process since it began, or between two moments (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no reading from a disk.
    pub minor_faults: u64,
    /// Page faults that waited for reading from a disk.
    pub major_faults: u64,
    /// How often the thread blocked.
    pub voluntary_switches: u64,
    /// How often the thread was preempted.
    pub involuntary_switches: u64,
    /// CPU time in user space and in the kernel together, exact to a microsecond.
    pub cpu_time: Nanos,
}

impl Usage {
    /// The usage of the calling thread since it began.
    pub fn of_thread() -> Usage {
        Usage::read(libc::RUSAGE_THREAD)
    }

    /// The usage of all threads of this process, with those that have ended.
    pub fn of_process() -> Usage {
        Usage::read(libc::RUSAGE_SELF)
    }

    /// The usage of the children of this process that have ended and were waited for.
    pub fn of_children() -> Usage {
        Usage::read(libc::RUSAGE_CHILDREN)
    }

    fn read(who: libc::c_int) -> Usage {
        let usage = rusage(who);
        let nanos = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
        Usage {
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            cpu_time: Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime)),
        }
    }

    /// The usage since `earlier`, an older reading of the same thread.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            minor_faults: self.minor_faults.wrapping_sub(earlier.minor_faults),
            major_faults: self.major_faults.wrapping_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.wrapping_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .wrapping_sub(earlier.involuntary_switches),
            cpu_time: self.cpu_time.wrapping_sub(earlier.cpu_time),
        }
    }

    /// The number of all page faults.
    pub fn page_faults(&self) -> u64 {
        self.minor_faults + self.major_faults
    }
}

/// The most memory that was ever resident in this process, in KiB.
pub fn memory_peak_kib() -> u64 {
    rusage(libc::RUSAGE_SELF).ru_maxrss as u64
}

fn rusage(who: libc::c_int) -> libc::rusage {
    // SAFETY: all zeros is a valid rusage, and the pointer is to one. The call cannot fail for these values of `who`.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_fresh_pages_shows_as_faults_and_doing_nothing_does_not() {
        let idle = (Usage::of_thread(), Usage::of_thread());
        assert_eq!(idle.1.since(&idle.0).page_faults(), 0);
        let before = Usage::of_thread();
        let pages = 64;
        // The memory is beyond malloc's threshold, so it is mapped afresh. Huge pages cannot begin inside 256 KiB.
        let fresh = std::hint::black_box(vec![1u8; pages * 4096]);
        assert!(Usage::of_thread().since(&before).page_faults() >= pages as u64 / 2);
        drop(fresh);
        assert!(memory_peak_kib() > 256);
    }
}
