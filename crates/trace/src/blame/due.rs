// SPDX-License-Identifier: GPL-2.0-or-later
//! The causes why a task that was due at an instant goes on only later.
//!
//! At that instant the timer of the task expires. Until the timer's interrupt enters the kernel, masked interrupts
//! delay it, or it has not come: the kernel had set the timer for later. From then on, whatever keeps the task from
//! running is the cause, also its own interrupt, which serves others before the task and after it. If another task
//! wakes the task (softirqs in a thread, or a task that hands over), whatever keeps that one from running comes before.

use super::path::Path;
use super::{Cause, Stage, in_interrupt, own_time, sleeps_on_lock, waiting};
use crate::Tasks;
use crate::cpu::{Activity, Cpu};

/// The cause of the part that passed after event `index`.
pub(super) fn cause(cpu: &Cpu, path: &Path, index: usize, stage: Stage, tasks: &Tasks) -> Cause {
    let activity = cpu.activity();
    let Some(task) = path.responder else { return Cause::Unexplained };
    match stage {
        Stage::Line => before_entry(cpu, activity, index >= path.pending),
        Stage::Entry | Stage::Handler => match path.handler_task {
            Some(by) if path.handler_woken.is_none_or(|woken| index >= woken) => {
                match cpu.running() == Some(by) {
                    true => own_time(cpu, activity, Cause::Task(by)),
                    false => waiting(cpu, activity, false, by, tasks),
                }
            }
            // The interrupt's own path has no function of anybody yet, or none any more.
            _ => match in_interrupt(cpu, activity, false) {
                served @ (Cause::Interrupt(_) | Cause::Softirq(_) | Cause::Unexplained) => served,
                _ => Cause::Entry,
            },
        },
        Stage::WakeUp | Stage::NeedResched | Stage::Schedule => {
            waiting(cpu, activity, false, task, tasks)
        }
        Stage::Resumed | Stage::User => match path.sleeps(index) && !sleeps_on_lock(cpu, path) {
            true => asleep(cpu, activity),
            false => waiting(cpu, activity, false, task, tasks),
        },
    }
}

/// The cause before the interrupt of the timer enters the kernel. `pending` says whether it waited for the CPU.
fn before_entry(cpu: &Cpu, activity: Activity, pending: bool) -> Cause {
    match (cpu.masked(), activity) {
        (None, _) => Cause::Unexplained,
        (Some(true), Activity::Interrupt(other)) if pending => Cause::Interrupt(other),
        (Some(true), _) if pending => Cause::IrqsOff(cpu.masked_at()),
        (Some(false), _) if pending => Cause::Entry,
        (Some(_), _) => Cause::Timer,
    }
}

/// The cause while the task sleeps in the middle of its work.
fn asleep(cpu: &Cpu, activity: Activity) -> Cause {
    match activity {
        Activity::Idle => Cause::Sleep,
        Activity::IrqsOff(_) | Activity::PreemptOff(_) | Activity::Kernel(_) | Activity::User => {
            cpu.running().map_or(Cause::Unexplained, Cause::Task)
        }
        _ => in_interrupt(cpu, activity, false),
    }
}
