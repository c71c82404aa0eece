// SPDX-License-Identifier: GPL-2.0-or-later
//! How to be a real-time task under Linux.
//!
//! A program that must be in time does the following, before and while it runs. It takes a scheduling policy
//! ([`apply`]) and a CPU ([`pin`]). It keeps its memory resident ([`lock_memory`], [`prefault_stack`]). It keeps the
//! kernel from saving power at its expense ([`CpuDmaLatency`], [`timer_slack`]). It guards against itself
//! ([`RuntimeLimit`]). It is released periodically ([`Release`]), sleeps precisely ([`PreciseSleep`]) and shares data
//! without priority inversion ([`PiMutex`]). And it proves that nothing went on behind its back ([`Usage`]).
//!
//! Where the system refuses something, the error has the reason and the remedy ([`Error`]). Release and sleep run once
//! per period: they neither allocate nor lock nor panic, and they enter the kernel only to sleep.
//!
//! `examples/periodic.rs` puts these parts together.

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
pub use scheduler::{apply, give};
pub use usage::{Usage, memory_peak_kib};
