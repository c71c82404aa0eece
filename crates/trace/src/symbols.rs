// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of the guest's addresses. Other code knows them, and gives them through [`Symbols`].

use crate::{Place, Stacks};

/// Names addresses of one booted kernel and its modules, as the kernel prints them (`%pS` and `%pB`,
/// Documentation/core-api/printk-formats.rst): `symbol+0x12`, or `symbol+0x12 [module]`.
pub trait Symbols {
    /// The place of an instruction. `None` if the address is in no known function.
    fn name(&self, address: u64) -> Option<String>;

    /// The place of the call that returns to this address. The address itself may be in the next function.
    fn caller(&self, address: u64) -> Option<String>;
}

impl<B: AsRef<[u8]>> Symbols for vmlinux::Map<B> {
    fn name(&self, address: u64) -> Option<String> {
        self.resolve(address).map(|place| place.to_string())
    }

    fn caller(&self, address: u64) -> Option<String> {
        self.resolve_return(address).map(|place| place.to_string())
    }
}

/// The name of `address`, or the address itself in hexadecimal: a frame without a name is still a frame.
pub fn named(symbols: &dyn Symbols, address: u64) -> String {
    symbols.name(address).unwrap_or_else(|| format!("{address:#x}"))
}

impl Stacks {
    /// A place by name: the frames of its stack, innermost first, or the one name of its address. Empty if the place is
    /// not known.
    pub fn names(&self, place: Place, symbols: &dyn Symbols) -> Vec<String> {
        let id = match place {
            Place::Unknown => return Vec::new(),
            Place::Address(address) => return vec![named(symbols, address)],
            Place::Stack(id) => id,
        };
        let caller = |a: u64| symbols.caller(a).unwrap_or_else(|| format!("{a:#x}"));
        match self.frames(id) {
            [] => Vec::new(),
            [innermost, callers @ ..] => {
                let callers = callers.iter().map(|&a| caller(a));
                std::iter::once(named(symbols, *innermost)).chain(callers).collect()
            }
        }
    }
}
