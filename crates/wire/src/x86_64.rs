// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the crate knows of the processor's architecture, x86-64: I/O ports, and pins of the I/O APIC. The rest of
//! onset takes them from [`ports`](crate::ports).

/// First I/O port of the parallel port (LPT1): data, status and control register.
pub const PARALLEL: u16 = 0x378;
/// Its interrupt: pin of the I/O APIC.
pub const PARALLEL_IRQ: u8 = 7;

/// The register of the device that disturbs, 8 bits wide: "OD".
pub const DISTURBANCE: u16 = 0x4f44;
/// Its interrupt: pin of the I/O APIC; free in the rig's guest, which has no PCI device that interrupts.
pub const DISTURBANCE_IRQ: u8 = 5;

/// The second data register of the rig, 8 bits wide: the pins 8 … 15, which a parallel port has not. It reads as it was
/// written. "OH": the higher pins.
pub const HIGHER: u16 = 0x4f48;

/// The port to which the guest's init writes its phase, a [`Mark`](crate::Mark); "ON", far from any device.
pub const MARK: u16 = 0x4f4e;
/// What that port reads as. An absent port floats high, so init tells the rig from a real machine by this.
pub const PRESENT: u8 = 0x4f;
/// Read: the length of a probe's plan in bytes, then the plan, four bytes at a time, little endian, with zeroes after
/// its end. A length of 0 says that there is no plan. "OP".
pub const PLAN: u16 = 0x4f50;
/// Written: the events of a probe, eight times four bytes each, little endian. "OT".
pub const DATA: u16 = 0x4f54;
/// Written three times in a row. The first write, of anything, comes right before the guest reads its CLOCK_MONOTONIC.
/// The second and the third are what it read, in ns: the lower half, right after the reading, and then the upper half.
/// "OX".
pub const CLOCK: u16 = 0x4f58;
/// The plugin claims it for a moment, to try whether QEMU claims ports as it should. Nobody in the guest knows it.
pub const TRIED: u16 = 0x4f5c;
/// A port of 32 bits reads as this where nobody answers.
pub const ABSENT: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_of_the_rig_do_not_overlap() {
        let ports = [
            (PARALLEL, 3),
            (DISTURBANCE, 1),
            (HIGHER, 1),
            (MARK, 1),
            (PLAN, 4),
            (DATA, 4),
            (CLOCK, 4),
            (TRIED, 4),
        ];
        for (n, (port, length)) in ports.into_iter().enumerate() {
            assert!(ports[n + 1..].iter().all(|(next, _)| port + length <= *next), "{port:#x}");
        }
    }
}
