// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks up the functions of the QEMU that loaded the plugin by name, at start. The plugin refuses a QEMU that lacks
//! any of them, before the machine is built.

use crate::checks::{Check, Failed};
use std::ffi::{CString, c_void};

/// Declares a structure of C functions with a `resolve` that finds them.
macro_rules! symbols {
    ($(#[$doc:meta])* struct $set:ident { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $set {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl $set {
            fn resolve() -> Result<$set, crate::checks::Failed> {
                Ok($set {
                    $($name: {
                        let address = crate::symbols::symbol(stringify!($name))?;
                        type Function = unsafe extern "C" fn($($arg),*) $(-> $ret)?;
                        // SAFETY: this is a C function of QEMU with the signature of QEMUS_TRIED.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use symbols;

/// The address of a function or variable of QEMU.
pub(crate) fn symbol(name: &str) -> Result<*mut c_void, Failed> {
    let c_name = CString::new(name).expect("a symbol's name has no NUL");
    // SAFETY: the name is NUL-terminated, and looking up has no precondition.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c_name.as_ptr()) };
    if address.is_null() {
        return Err(Check::Symbols.fails(format!("it does not export `{name}`")));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    symbols! {
        struct Strange {
            getpid: fn() -> i32;
            qemu_has_no_such_function: fn();
        }
    }

    #[test]
    fn a_symbol_that_is_not_exported_fails_the_check_of_symbols_and_is_named() {
        assert!(symbol("getpid").is_ok());
        let both = Strange::resolve().map(|s| (s.getpid, s.qemu_has_no_such_function));
        let failed = both.expect_err("nobody exports that");
        assert_eq!(failed.check, Check::Symbols);
        assert!(failed.why.contains("`qemu_has_no_such_function`"), "{failed}");
    }
}
