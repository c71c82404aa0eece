// SPDX-License-Identifier: GPL-2.0-or-later
//! Being a real-time task under Linux.
//!
//! What a program does before and while it must be in time: take a scheduling policy ([`apply`]) and a CPU
//! ([`pin`]), keep its memory resident ([`lock_memory`], [`prefault_stack`]), keep the kernel from saving power at its
//! expense ([`CpuDmaLatency`], [`timer_slack`]), guard against itself ([`RuntimeLimit`]), be released periodically
//! ([`Release`]), sleep precisely ([`PreciseSleep`]), share data without priority inversion ([`PiMutex`]), and prove
//! that nothing went on behind its back ([`Usage`]).
//!
//! What is refused is refused with its reason and remedy ([`Error`]). What runs once per period, releasing and sleeping,
//! neither allocates nor locks nor panics, and enters the kernel to sleep alone.
//!
//! `examples/periodic.rs` puts it together.

mod affinity;
mod clock;
mod error;
mod limit;
mod memory;
mod pi;
mod policy;
mod power;
mod precise;
mod release;
mod scheduler;
mod usage;

pub use affinity::{allowed_cpus, online_cpus, pin, unpin};
pub use clock::{Clock, SystemClock, now};
pub use error::Error;
pub use limit::RuntimeLimit;
pub use memory::{lock_memory, prefault_stack};
pub use pi::{PiCondvar, PiGuard, PiMutex};
pub use policy::{ParsePolicyError, Policy};
pub use power::{CpuDmaLatency, timer_slack};
pub use precise::PreciseSleep;
pub use release::{Overrun, Release, Woken};
pub use scheduler::apply;
pub use usage::{Usage, memory_peak_kib};
