// SPDX-License-Identifier: GPL-2.0-or-later
//! A scheduling policy in words.

use rt::Policy;

/// As chrt(1) and nice(1) say it.
pub(super) fn policy(policy: Policy) -> String {
    match policy {
        Policy::Other(0) => "other".into(),
        Policy::Other(nice) => format!("other, nice {nice}"),
        Policy::Fifo(priority) => format!("FIFO {priority}"),
        Policy::RoundRobin(priority) => format!("RR {priority}"),
        Policy::Deadline { runtime, deadline, period } => {
            format!("deadline: {runtime} within {deadline}, every {period}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_as_people_write_it() {
        let of = |text: &str| policy(text.parse().expect("a policy"));
        assert_eq!(
            [of("fifo:80"), of("rr:1"), of("other:-5")],
            ["FIFO 80", "RR 1", "other, nice -5"]
        );
        assert_eq!(of("deadline:100us,1ms,2ms"), "deadline: 100 µs within 1.00 ms, every 2.00 ms");
    }
}
