// SPDX-License-Identifier: GPL-2.0-or-later
//! The places in which a kernel keeps the things that an observer follows.

#[cfg(feature = "image")]
use crate::x86_64::instructions::second_argument;
#[cfg(feature = "image")]
use crate::x86_64::{CURRENT_TASK, HOT, PREEMPT_COUNT};

/// Offsets are in bytes unless a field says otherwise. `None` means that the kernel has no such thing, or does not say
/// where. An offset "of a CPU" counts from the beginning of this CPU's variables, which is in the GS base while the CPU
/// is in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Of a CPU: the preemption count. Its highest bit says that *no* rescheduling is needed
    /// (arch/x86/include/asm/preempt.h).
    pub preempt_count: Option<u64>,
    /// The number of bytes of the preemption count: 4, or 8 in a kernel that also counts disabled interrupts in it.
    /// That count has 8 bits behind those of bottom halves (include/linux/preempt.h since 7.2).
    pub preempt_count_bytes: Option<u64>,
    /// Of a CPU: the address of the running task's `task_struct`.
    pub current_task: Option<u64>,
    /// `task_struct.comm`: 16 bytes of text, which ends with NUL.
    pub comm: Option<u64>,
    /// `task_struct.pid`: 32 bits. 0 is the idle task.
    pub pid: Option<u64>,
    /// `task_struct.prio`: 32 bits. 0 … 99 is real-time. Lower numbers are more urgent than higher ones (-1: deadline).
    pub prio: Option<u64>,
    /// `task_struct.migration_disabled`: how many times migration is disabled, 16 bits.
    pub migration_disabled: Option<u64>,
    /// `task_struct.softirq_disable_cnt` (PREEMPT_RT): 32 bits.
    pub softirq_disable_cnt: Option<u64>,
    /// The number of the flag `TIF_NEED_RESCHED`, if the kernel has lazy requests too. The next number is the flag of a
    /// lazy request (arch/x86/include/asm/thread_info.h; include/asm-generic/thread_info_tif.h since 6.18).
    pub need_resched: Option<u64>,
}

impl Layout {
    /// Whether the preemption count has 64 bits, of which 8 count disabled interrupts.
    pub fn counts_irqs_disabled(&self) -> bool {
        self.preempt_count_bytes == Some(8)
    }
}

/// The number of fields in a layout.
pub(crate) const FIELDS: usize = 9;

impl Layout {
    /// Whether the kernel is PREEMPT_RT. In such a kernel each task disables bottom halves for itself.
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

    /// The layout of a kernel, as far as the kernel's types and symbols tell it.
    #[cfg(feature = "image")]
    pub(crate) fn of(image: &crate::Image) -> Layout {
        let btf = image.btf.as_ref().ok();
        let member = |structure: &str, name: &str| btf?.offset(structure, name);
        // In a kernel without this structure, these are variables of their own.
        let of_cpu = |[name, member_name]: [&str; 2]| {
            let hot = || image.address(HOT)?.checked_add(member(HOT, member_name)?);
            hot().or_else(|| image.address(name))
        };
        let task = |name: &str| member("task_struct", name);
        Layout {
            preempt_count: of_cpu(PREEMPT_COUNT),
            preempt_count_bytes: btf.and_then(|btf| btf.size_of_variable(PREEMPT_COUNT[0])),
            current_task: of_cpu(CURRENT_TASK),
            comm: task("comm"),
            pid: task("pid"),
            prio: task("prio"),
            migration_disabled: task("migration_disabled"),
            softirq_disable_cnt: task("softirq_disable_cnt"),
            need_resched: second_argument(image, "resched_curr", "__resched_curr").map(u64::from),
        }
    }
}
