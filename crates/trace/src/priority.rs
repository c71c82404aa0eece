// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's priority in its usual form. It is made of the number by which the kernel sorts tasks (`task_struct.prio`,
//! include/linux/sched/prio.h). This number does not tell whether a real-time task is SCHED_FIFO or SCHED_RR.

/// `MAX_RT_PRIO`. Real-time priorities are below it: from 0 for 99 to 98 for 1.
const RT_END: u8 = 100;
/// `DEFAULT_PRIO`, which is nice 0.
const NICE_0: u8 = 120;
/// `MAX_PRIO`, which the idle task has. It is above the weakest niceness, 19.
const IDLE: u8 = 140;
/// `MAX_DL_PRIO` − 1, in the eight bits of a record.
const DEADLINE: u8 = -1i8 as u8;

/// The priority as `RT 80`, `nice 0` or `deadline`.
pub(crate) fn priority(prio: u8) -> String {
    match prio {
        DEADLINE => "deadline".into(),
        ..RT_END => format!("RT {}", RT_END - 1 - prio),
        RT_END..IDLE => format!("nice {}", i16::from(prio) - i16::from(NICE_0)),
        IDLE => "idle".into(),
        // No kernel has such a priority.
        _ => format!("prio {prio}"),
    }
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn the_kernels_number_reads_as_chrt_and_nice_say_it() {
        let table = [
            (255, "deadline"),
            (0, "RT 99"),
            (19, "RT 80"),
            (98, "RT 1"),
            (100, "nice -20"),
            (120, "nice 0"),
            (139, "nice 19"),
            (140, "idle"),
            (200, "prio 200"),
        ];
        for (prio, text) in table {
            assert_eq!(priority(prio), text);
        }
    }
}
