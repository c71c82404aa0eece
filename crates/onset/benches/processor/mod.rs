// SPDX-License-Identifier: GPL-2.0-or-later
//! Processor time, which other users of the machine do not lengthen as they do wall time.

use std::time::Duration;

/// What the children that have ended took of the processors, with theirs.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, behind_the_name) = stat.rsplit_once(')').expect("proc_pid_stat(5)");
    // cutime and cstime, the 16th and 17th, in hundredths of a second.
    let ticks = behind_the_name.split_whitespace().skip(13).take(2);
    Duration::from_millis(10 * ticks.map(|n| n.parse::<u64>().expect("a number")).sum::<u64>())
}
