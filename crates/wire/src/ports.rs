// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the rig's guest meets the rig: the numbers of I/O ports and interrupts, the names of the driver's devices and
//! of the second serial line. The plugin and the guest's init take them from here, and the driver takes them by
//! `driver/onset_wire.h`.
//!
//! The module holds numbers and names only. The code that accesses a port says who may do so and what happens then.

pub use crate::x86_64::{
    ABSENT, CLOCK, DATA, DISTURBANCE, DISTURBANCE_IRQ, HIGHER, MARK, PARALLEL, PARALLEL_IRQ, PLAN,
    PRESENT, TRIED,
};

/// The second serial line by the name that QEMU, the plugin and the rig have for its end on the host.
pub const WIRE: &str = "onset-agent";
/// The byte that ends measuring, on that line from the plugin to init.
pub const DONE: u8 = b'.';

/// The label of the rig's GPIO chip, whose lines are the pins of the parallel port by their numbers.
pub const CHIP: &str = "onset-rig";
/// The number of the line of that chip that triggers: the first behind the pins of all responders.
pub const CHIP_TRIGGER: usize = sample::ALL_RESPONDERS.len();

/// The name of the driver's module.
pub const MODULE: &str = "onset_port";

/// The first argument of `getpid` where the probe `cost` begins or ends a measured stretch; the call takes none. The
/// witness sees the call, and the kernel does the same with it as with any other. "onsetcst".
pub const BATCH: u64 = 0x6f6e_7365_7463_7374;
/// Bits of that call's third argument: whether the stretch counts for its series or is taken away from it, and whether
/// it ends. The number of the batch lies above these. The second argument is the series.
pub const BATCH_COUNTS: u64 = 1;
/// See [`BATCH_COUNTS`].
pub const BATCH_ENDS: u64 = 2;
/// The number of bits below the number of the batch.
pub const BATCH_BITS: u32 = 2;

/// The driver's device of the `task` responder.
pub const DEVICE: &str = "/dev/onset";
/// The driver's device of its samples.
pub const SAMPLES: &str = "/dev/onset-samples";
/// The letter of the driver's ioctls.
pub const IOCTL: u8 = b'O';
/// Number of the ioctl by which `task` answers, without an argument.
pub const ANSWER: u8 = 0x70;
/// Number of the ioctl that stops the driver's timer, without an argument.
pub const STOP: u8 = 0x71;

/// The request of an ioctl without an argument: `_IO(IOCTL, number)` of include/uapi/asm-generic/ioctl.h.
pub const fn request(number: u8) -> u32 {
    (IOCTL as u32) << 8 | number as u32
}

/// A phase of the guest's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// The load runs, warming up.
    WarmUp = 1,
    /// Measuring begins at this instruction.
    Measuring = 2,
    /// The probe has ended and its records were handed over.
    Done = 3,
}

impl Mark {
    /// All of them.
    pub const ALL: [Mark; 3] = [Mark::WarmUp, Mark::Measuring, Mark::Done];

    /// The one that is written as this byte.
    pub fn of(byte: u8) -> Option<Mark> {
        Mark::ALL.into_iter().find(|mark| *mark as u8 == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_known_by_its_byte_and_no_other_is_one() {
        assert!(Mark::ALL.into_iter().all(|mark| Mark::of(mark as u8) == Some(mark)));
        assert_eq!([0, 4, 255].map(Mark::of), [None; 3]);
    }
}
