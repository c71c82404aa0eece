// SPDX-License-Identifier: GPL-2.0-or-later
//! The version of QEMU's plugin interface that the plugin speaks.
//!
//! A plugin declares one version, and QEMU refuses a plugin that declares a version which QEMU does not have. QEMU 10.0
//! has 2 to 4, and QEMU 11.1 has 7 alone. QEMU tells its versions only after the plugin has declared one. So the
//! program that starts QEMU tries first, and then says which version to declare ([`DECLARES`]). If it says nothing, the
//! plugin declares [`OLDEST`].

use crate::checks::{Check, Failed};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use wire::arguments::{DECLARES, INTERFACES};

/// The first version that the plugin knows.
pub const OLDEST: i32 = *INTERFACES.start() as i32;
/// The last version that the plugin knows.
pub const NEWEST: i32 = *INTERFACES.end() as i32;

/// The version that the plugin declares. QEMU reads it when it has loaded the plugin.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU looks for it by this name")]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(OLDEST);

/// The dynamic linker calls this before QEMU looks at anything of the plugin.
#[used]
#[unsafe(link_section = ".init_array")]
static DECLARE: extern "C" fn() = declare;

extern "C" fn declare() {
    // SAFETY: the name is NUL-terminated, and nobody changes the environment while QEMU loads plugins.
    let said = unsafe {
        let value = libc::getenv(DECLARES.as_ptr());
        if value.is_null() { None } else { CStr::from_ptr(value).to_str().ok() }
    };
    if let Some(version) = said.and_then(|text| text.parse().ok()) {
        qemu_plugin_version.store(version, Relaxed);
    }
}

/// `qemu_info_t`, as far as the plugin needs it.
#[repr(C)]
pub struct Info {
    target: *const c_char,
    oldest: c_int,
    newest: c_int,
}

/// The version that QEMU and the plugin speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interface(i32);

impl Interface {
    /// The first version that translates the guest's addresses, and reads its memory by the machine's addresses.
    pub const READS_MEMORY: Interface = Interface(5);
    /// The first version that hands each callback the data that was registered with it.
    pub const HANDS_ON: Interface = Interface(7);

    /// The version on which QEMU and the plugin agreed, when QEMU installs the plugin.
    ///
    /// # Errors
    /// If the plugin does not know the version, or QEMU does not have it.
    pub fn agreed(info: &Info) -> Result<Interface, Failed> {
        Interface::of(qemu_plugin_version.load(Relaxed), info.oldest, info.newest)
    }

    fn of(declared: i32, oldest: i32, newest: i32) -> Result<Interface, Failed> {
        let known = (OLDEST..=NEWEST).contains(&declared);
        Check::Interface.passes(known && (oldest..=newest).contains(&declared), || {
            format!("its plugin interface has the versions {oldest} to {newest}, and {declared} was declared; known are {OLDEST} to {NEWEST}")
        })?;
        Ok(Interface(declared))
    }

    /// The number of the version.
    pub fn number(self) -> i32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_agreed_upon_if_it_is_known_and_qemu_has_it() {
        assert_eq!(Interface::of(4, 2, 4).map(Interface::number), Ok(4));
        assert_eq!(Interface::of(7, 7, 9).map(Interface::number), Ok(7));
        for (declared, oldest, newest) in [(4, 5, 7), (7, 2, 6), (8, 8, 8), (3, 2, 4)] {
            let failed = Interface::of(declared, oldest, newest).unwrap_err();
            assert_eq!(failed.check, Check::Interface);
            assert!(failed.why.contains("known are 4 to 7"), "{failed}");
        }
    }

    #[test]
    fn memory_is_read_by_the_interface_from_its_fifth_version_on() {
        let of = |version| Interface::of(version, 2, 7).unwrap();
        assert!(of(4) < Interface::READS_MEMORY && of(5) >= Interface::READS_MEMORY);
        assert!(of(6) < Interface::HANDS_ON && of(7) >= Interface::HANDS_ON);
    }
}
