// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the probes know of the processor's architecture, x86-64: its counter ([`tsc`]), its I/O ports
//! ([`parallel_port`]), and what Linux says of it. On other processors, a probe that needs one of them is refused.

/// The highest number that a CPU can have in a kernel (NR_CPUS of Debian's amd64 kernels).
pub const CPU_MAX: u32 = 8191;

pub(crate) mod parallel_port;
pub(crate) mod tsc;

/// The name of the line in `/proc/cpuinfo` that lists the processor's abilities.
pub(crate) const FLAGS: &str = "flags";
/// The flag that hypervisors set (CPUID leaf 1, ECX bit 31). Other architectures have none.
pub(crate) const VIRTUAL: &str = "hypervisor";

/// The answers of `uname -m` on such a machine, also to programs of 32 bits.
pub(crate) const MACHINES: [&str; 3] = ["x86_64", "i686", "x86"];
/// The beginning of the names of this architecture's own clock sources.
pub(crate) const COUNTER: &str = "tsc";
