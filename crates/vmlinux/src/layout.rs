// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a kernel keeps what an observer follows.

#[cfg(feature = "image")]
use crate::instructions::second_argument;

/// Offsets in bytes, if nothing else is said; `None` where the kernel has no such thing, or does not say where. Those of a CPU are counted from
/// the beginning of that CPU's variables, which is in the GS base while in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Of a CPU: the preemption count, of which the highest bit says that *no* rescheduling is needed
    /// (arch/x86/include/asm/preempt.h).
    pub preempt_count: Option<u64>,
    /// How many bytes that has: 4, or 8 where interrupts that are disabled are counted, too, in 8 bits behind those of bottom
    /// halves (include/linux/preempt.h since 7.2).
    pub preempt_count_bytes: Option<u64>,
    /// Of a CPU: the address of the running task's `task_struct`.
    pub current_task: Option<u64>,
    /// `task_struct.comm`: 16 bytes of text, ending with NUL.
    pub comm: Option<u64>,
    /// `task_struct.pid`: 32 bits; 0 is the idle task.
    pub pid: Option<u64>,
    /// `task_struct.prio`: 32 bits; 0 … 99 is real-time, lower being more urgent (-1: deadline).
    pub prio: Option<u64>,
    /// `task_struct.migration_disabled`: how many times, 16 bits.
    pub migration_disabled: Option<u64>,
    /// `task_struct.softirq_disable_cnt` (PREEMPT_RT): 32 bits.
    pub softirq_disable_cnt: Option<u64>,
    /// Number of the flag `TIF_NEED_RESCHED`, where the kernel has lazy requests, too: their flag is the next one
    /// (arch/x86/include/asm/thread_info.h; include/asm-generic/thread_info_tif.h since 6.18).
    pub need_resched: Option<u64>,
}

impl Layout {
    /// Whether the preemption count has 8 bits for interrupts that are disabled, and is of 64 bits for their sake.
    pub fn counts_irqs_disabled(&self) -> bool {
        self.preempt_count_bytes == Some(8)
    }
}

/// Numbers in a layout.
pub(crate) const FIELDS: usize = 9;

impl Layout {
    /// Whether it is of a PREEMPT_RT kernel, where bottom halves are disabled by task.
    pub fn is_preempt_rt(&self) -> bool {
        self.softirq_disable_cnt.is_some()
    }

    pub(crate) fn from_fields(fields: [Option<u64>; FIELDS]) -> Layout {
        let [
            preempt_count,
            preempt_count_bytes,
            current_task,
            comm,
            pid,
            prio,
            migration_disabled,
            softirq_disable_cnt,
            need_resched,
        ] = fields;
        Layout {
            preempt_count,
            preempt_count_bytes,
            current_task,
            comm,
            pid,
            prio,
            migration_disabled,
            softirq_disable_cnt,
            need_resched,
        }
    }

    #[cfg(feature = "image")]
    pub(crate) fn fields(&self) -> [Option<u64>; FIELDS] {
        [
            self.preempt_count,
            self.preempt_count_bytes,
            self.current_task,
            self.comm,
            self.pid,
            self.prio,
            self.migration_disabled,
            self.softirq_disable_cnt,
            self.need_resched,
        ]
    }

    /// The layout of a kernel, as far as its types and symbols tell it.
    #[cfg(feature = "image")]
    pub(crate) fn of(image: &crate::Image) -> Layout {
        let btf = image.btf.as_ref().ok();
        let member = |structure: &str, name: &str| btf?.offset(structure, name);
        // 6.2 … 6.14 keep what is used most in one structure; before and after these are variables.
        let of_cpu = |name: &str, member_name: &str| {
            let hot = || image.address("pcpu_hot")?.checked_add(member("pcpu_hot", member_name)?);
            hot().or_else(|| image.address(name))
        };
        let task = |name: &str| member("task_struct", name);
        Layout {
            preempt_count: of_cpu("__preempt_count", "preempt_count"),
            preempt_count_bytes: btf.and_then(|btf| btf.size_of_variable("__preempt_count")),
            current_task: of_cpu("current_task", "current_task"),
            comm: task("comm"),
            pid: task("pid"),
            prio: task("prio"),
            migration_disabled: task("migration_disabled"),
            softirq_disable_cnt: task("softirq_disable_cnt"),
            need_resched: second_argument(image, "resched_curr", "__resched_curr").map(u64::from),
        }
    }
}
