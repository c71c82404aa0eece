// SPDX-License-Identifier: GPL-2.0-or-later
//! All that the rig knows of the processor's architecture, x86-64: the QEMU and the machine that emulate it, Debian's
//! name for it, the image that boots, the kernel's entries, and the registers.

use crate::{Error, Result};
use vmlinux::Regs;

/// Debian's name for the architecture.
pub const DEBIAN: &str = "amd64";
/// The end of the release of Debian's kernels for this architecture.
pub(crate) const RELEASE_END: &str = "-amd64";

/// The name of QEMU's program.
pub const QEMU: &str = "qemu-system-x86_64";
/// The name of QEMU's package in Debian.
pub const PACKAGE: &str = "qemu-system-x86";

/// The places of the dynamic linker below a root directory: Debian's and Ubuntu's, then Fedora's.
pub(crate) const LINKERS: [&str; 2] =
    ["usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"];
/// The places of libraries below a root directory, and below those of QEMU's firmware.
pub(crate) const LIBRARIES: [&str; 3] =
    ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib64"];
pub(crate) const FIRMWARE: [&str; 3] =
    ["usr/share/qemu", "usr/share/seabios", "usr/share/seavgabios"];

/// The name of QEMU's machine.
pub(crate) const KIND: &str = "pc";
/// The guest's processor. It does not say that string instructions are fast (ERMS, FSRM, FSRS). QEMU counts each
/// iteration of such an instruction as an instruction, and leaves its translated code after each. A kernel that
/// believes they are fast clears a page byte by byte. This takes 4096 virtual nanoseconds, several times as long as the
/// kernel's other loops for it.
pub const CPU: &str = "max,erms=off,fsrm=off,fsrs=off";
/// The word of the guest's command line that sends the kernel's messages to the first serial line.
pub(crate) const CONSOLE: &str = "console=ttyS0,115200";

/// The bytes of a page.
pub(crate) const PAGE: u64 = 1 << 12;

/// The entries of calls into the kernel, besides the gates of the interrupt table (arch/x86/entry/entry_64*.S). All of
/// them mask interrupts.
pub(crate) const CALLS: [&str; 5] = [
    "entry_SYSCALL_64",
    "entry_SYSCALL_compat",
    "entry_SYSENTER_compat",
    "entry_INT80_compat",
    "asm_int80_emulation",
];
/// The gates of exceptions, and of the interrupts that have an entry of their own.
pub(crate) const GATES: [&str; 2] = ["asm_exc_", "asm_sysvec_"];
/// The gate of page faults, which is one of them.
pub(crate) const PAGE_FAULT: &str = "asm_exc_page_fault";
/// The stubs of the other interrupts, one after the other. They end at the first symbol behind them
/// (arch/x86/include/asm/idtentry.h).
pub(crate) const STUBS: [&str; 2] = ["irq_entries_start", "spurious_entries_start"];

/// The registers in QEMU's print of them (target/i386/cpu-dump.c): `RIP=ffffffff81000000 …`.
pub(crate) fn regs(text: &str) -> Option<Regs> {
    let register = |name: &str| {
        let digits = text.split_once(&format!("{name}="))?.1.get(..16)?;
        u64::from_str_radix(digits, 16).ok()
    };
    Some(Regs {
        ip: register("RIP")?,
        sp: register("RSP")?,
        bp: register("RBP")?,
        dx: register("RDX")?,
        di: register("RDI")?,
        r10: register("R10")?,
        r13: register("R13")?,
    })
}

/// Checks an image. A bzImage begins with a boot sector and has "HdrS" at 0x202 (Documentation/arch/x86/boot.rst). Its
/// own sizes tell whether it was cut short.
pub(crate) fn check_image(name: &str, image: &[u8]) -> Result<()> {
    let error = |why: &str| Error::Kernel {
        name: name.into(),
        why: format!("{why}; give an x86 bzImage (vmlinuz)"),
    };
    if image.get(0x202..0x206) != Some(b"HdrS") {
        return Err(error("the image is not a bzImage"));
    }
    let sectors = u64::from(image[0x1f1].max(4)) + 1;
    let paragraphs = image[0x1f4..0x1f8].try_into().map_or(0, u32::from_le_bytes);
    if (image.len() as u64) < sectors * 512 + u64::from(paragraphs) * 16 {
        return Err(error("the image is cut short"));
    }
    Ok(())
}
