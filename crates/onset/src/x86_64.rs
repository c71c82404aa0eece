// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the command knows of the processor's architecture, x86-64.

/// Debian's package of a real-time kernel.
pub(crate) const REAL_TIME_KERNEL: &str = "linux-image-rt-amd64";
