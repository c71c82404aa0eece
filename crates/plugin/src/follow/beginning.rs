// SPDX-License-Identifier: GPL-2.0-or-later
//! What is found out of QEMU and of the guest before anything is followed.

use super::code::INTERRUPT_FLAG;
use super::memory::StackMemory;
use super::{Follower, KERNEL, Registers, Vcpu, preempt_count};
use crate::checks::Failed;
use crate::vcpu::General;

impl Follower {
    /// The vCPU that has been made.
    pub(super) fn look_up(&self) -> Result<Vcpu, String> {
        let Follower { qemu, instrument, .. } = self;
        let registers = || -> Result<Registers, Failed> {
            let [cs, eflags] = instrument.registers([c"cs", c"eflags"])?;
            let gs_bases = instrument.registers([c"gs_base", c"k_gs_base"])?;
            Ok(Registers { general: instrument.general()?, cs, eflags, gs_bases })
        };
        let registers = registers().map_err(|failed| qemu.refusal(&failed))?;
        let cpu = qemu.cpu()?;
        let memory = StackMemory::new(cpu.memory(qemu.reads()), self.plan.current.is_some());
        Ok(Vcpu { cpu, registers, memory })
    }

    /// Before anything is executed. At the warm-up's end the guest is in user space; one that was let run on may be anywhere.
    pub(super) fn begin(&self) {
        let Vcpu { cpu, registers, memory } = self.vcpu();
        let told = registers.general.map(|register| self.read(register));
        cpu.learn(&told).unwrap_or_else(|failed| cpu.refuse(&failed));
        let stack = cpu.register(General::Rsp);
        memory.check(&self.instrument, stack).unwrap_or_else(|failed| cpu.refuse(&failed));
        if self.read(registers.cs) & 3 != 0 {
            return;
        }
        let mut followed = self.followed();
        followed.masked = self.read(registers.eflags) & INTERRUPT_FLAG == 0;
        let bases = registers.gs_bases.map(|base| self.read(base));
        let Some(base) = bases.into_iter().find(|base| *base >= KERNEL) else { return };
        let variable =
            |offset: Option<u64>| offset.map_or(0, |at| self.word(base.wrapping_add(at)));
        followed.preempt = preempt_count(variable(self.plan.preempt), self.plan.counts_irqs);
        followed.task = variable(self.plan.current);
        let pid = self.word(followed.task.wrapping_add(self.plan.task.pid)) as u32;
        followed.idle = followed.task != 0 && pid == 0;
    }
}
