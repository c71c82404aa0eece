// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the facts about QEMU and the guest that the follower needs before it follows anything.

use super::memory::StackMemory;
use super::{Follower, Registers, Vcpu};
use crate::checks::Failed;
use crate::x86_64::{self, General, KERNEL, preempt_count};

impl Follower {
    /// Looks up the vCPU that QEMU has made.
    pub(super) fn look_up(&self) -> Result<Vcpu, String> {
        let Follower { qemu, instrument, .. } = self;
        let registers = || -> Result<Registers, Failed> {
            let [code_segment, flags] = instrument.registers(x86_64::STATE_NAMES)?;
            let bases = instrument.registers(x86_64::BASE_NAMES)?;
            Ok(Registers { general: instrument.general()?, code_segment, flags, bases })
        };
        let registers = registers().map_err(|failed| qemu.refusal(&failed))?;
        let cpu = qemu.cpu()?;
        let memory = StackMemory::new(cpu.memory(qemu.reads()), self.plan.current.is_some());
        Ok(Vcpu { cpu, registers, memory })
    }

    /// Begins to follow, before the guest executes anything. At the end of the warm-up the guest is in user space. A
    /// guest that was let run on may be anywhere.
    pub(super) fn begin(&self) {
        let Vcpu { cpu, registers, memory } = self.vcpu();
        let told = registers.general.map(|register| self.read(register));
        cpu.learn(&told).unwrap_or_else(|failed| cpu.refuse(&failed));
        let stack = cpu.register(General::Stack);
        memory.check(&self.instrument, stack).unwrap_or_else(|failed| cpu.refuse(&failed));
        let is_kernel = x86_64::is_kernel(self.read(registers.code_segment));
        if is_kernel {
            self.followed().masked = x86_64::masks(self.read(registers.flags));
        }
        // In user space the kernel's base is in the other register.
        let bases = registers.bases.map(|base| self.read(base));
        let Some(base) = bases.into_iter().find(|base| *base >= KERNEL) else { return };
        let variable =
            |offset: Option<u64>| offset.map_or(0, |at| self.word(base.wrapping_add(at)));
        if is_kernel {
            let offset = self.plan.preempt.map(|count| count.offset);
            self.followed().preempt = preempt_count(variable(offset), self.counts_irqs());
        }
        // Otherwise nobody knew who runs until the first switch. A kernel that isolates its page tables hides it from
        // user space.
        let task = variable(self.plan.current);
        if task >= KERNEL {
            self.run(task, cpu.time(0));
        }
    }
}
