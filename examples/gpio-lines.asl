// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * GPIO lines for onset_port as an ACPI table, for a board whose GPIO chip is
 * \_SB.GPO0: line 17 triggers, and the lines 27 and 22 answer, in the order of
 * the responders. In a package of _DSD each line is the device, the number of the
 * resource in _CRS (the first is 0), the place of the line in that, and 0 (1:
 * active when low). Each further responder needs a line in both places. The
 * trigger's resource may also be one of an interrupt, which begins with
 * GpioInt (Edge, ActiveHigh, Exclusive, PullNone, 0,
 *
 * iasl gpio-lines.asl
 *
 * A board that has no such table in its firmware takes it from its initramfs
 * (admin-guide/acpi/initrd_table_override.rst in the kernel's documentation).
 *
 * The rig's tests measure with this table (tests/rig/acpi.rs).
 */
DefinitionBlock ("", "SSDT", 2, "ONSET", "LINES", 1)
{
    External (\_SB.GPO0, DeviceObj)

    Scope (\_SB)
    {
        Device (ONST)
        {
            Name (_HID, "PRP0001")
            Name (_CRS, ResourceTemplate ()
            {
                GpioIo (Exclusive, PullNone, 0, 0, IoRestrictionInputOnly, "\\_SB.GPO0", 0, ResourceConsumer) { 17 }
                GpioIo (Exclusive, PullNone, 0, 0, IoRestrictionOutputOnly, "\\_SB.GPO0", 0, ResourceConsumer) { 27, 22 }
            })
            Name (_DSD, Package ()
            {
                ToUUID ("daffd814-6eba-4d8c-8a91-bc9bbf4aa301"),
                Package ()
                {
                    Package () { "compatible", "onset,gpio-lines" },
                    Package () { "trigger-gpios", Package () { ^ONST, 0, 0, 0 } },
                    Package () { "answer-gpios", Package () { ^ONST, 1, 0, 0, ^ONST, 1, 1, 0 } }
                }
            })
        }
    }
}
