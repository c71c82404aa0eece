// SPDX-License-Identifier: GPL-2.0-or-later
//! Functions of the QEMU that loaded us, looked up by name at start: one that lacks any of them is refused before the
//! machine is built.

use std::ffi::{CString, c_void};

/// QEMU versions (major, minor) that the plugin was tried with.
pub(crate) const VERSIONS_TRIED: &[(i64, i64)] = &[(10, 0)];

/// Declares a structure of C functions with a `resolve` that finds them.
macro_rules! symbols {
    ($(#[$doc:meta])* struct $set:ident { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $set {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl $set {
            fn resolve() -> Result<$set, String> {
                Ok($set {
                    $($name: {
                        let address = crate::symbols::symbol(stringify!($name))?;
                        // SAFETY: a C function of QEMU with the signature of VERSIONS_TRIED.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(address) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use symbols;

/// The address of a function or variable of QEMU.
pub(crate) fn symbol(name: &str) -> Result<*mut c_void, String> {
    let c_name = CString::new(name).expect("a symbol's name has no NUL");
    // SAFETY: a NUL-terminated name; looking up has no precondition.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c_name.as_ptr()) };
    if address.is_null() {
        return Err(format!("this QEMU does not export `{name}` ({})", versions_tried()));
    }
    Ok(address)
}

/// For messages.
pub(crate) fn versions_tried() -> String {
    let list: Vec<String> = VERSIONS_TRIED.iter().map(|(a, b)| format!("{a}.{b}")).collect();
    format!("onset was tried with QEMU {}", list.join(", "))
}

/// Why a QEMU is refused whose version was tried and whose structures are others nevertheless.
pub(crate) fn laid_out_otherwise([major, minor, micro]: [i64; 3]) -> String {
    format!(
        "QEMU {major}.{minor}.{micro} lays its vCPU out otherwise than those that are known; {}: install Debian's build of that, or add this one (CONTRIBUTING.md, Adding a QEMU version) and report it with what `onset doctor --json` prints",
        versions_tried()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_that_is_laid_out_otherwise_is_named_beside_those_that_were_tried() {
        let said = laid_out_otherwise([10, 0, 99]);
        for word in ["QEMU 10.0.99", "tried with QEMU 10.0:", "CONTRIBUTING.md", "onset doctor"] {
            assert!(said.contains(word), "{said}");
        }
    }
}
