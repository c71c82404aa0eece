// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the probes know of the processor's architecture, x86-64: its counter ([`tsc`]), its I/O ports
//! ([`parallel_port`]), and what Linux says of it. On other processors what needs the counter or a port is refused.

/// The highest number of a CPU that a kernel can have (NR_CPUS of Debian's amd64 kernels).
pub const CPU_MAX: u32 = 8191;

pub(crate) mod parallel_port;
pub(crate) mod tsc;

/// What `/proc/cpuinfo` calls what the processor can do.
pub(crate) const FLAGS: &str = "flags";
/// The flag that hypervisors set (CPUID leaf 1, ECX bit 31). Other architectures have none.
pub(crate) const VIRTUAL: &str = "hypervisor";

/// What `uname -m` says on such a machine, also to programs of 32 bits.
pub(crate) const MACHINES: [&str; 3] = ["x86_64", "i686", "x86"];
/// What the names of its own clock source begin with.
pub(crate) const COUNTER: &str = "tsc";
