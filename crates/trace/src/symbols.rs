// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of the guest's addresses, as somebody else knows them.

use crate::{Place, Stacks};

/// Names addresses of one booted kernel and its modules.
pub trait Symbols {
    /// `symbol`, `symbol+0x12` or `symbol+0x12 [module]`, as the kernel prints them (`%pS`,
    /// Documentation/core-api/printk-formats.rst); `None` where the address is in no known function.
    fn name(&self, address: u64) -> Option<String>;
}

/// The name of `address`, or the address itself in hexadecimal: a frame without a name is still a frame.
pub fn named(symbols: &dyn Symbols, address: u64) -> String {
    symbols.name(address).unwrap_or_else(|| format!("{address:#x}"))
}

impl Stacks {
    /// A place by name: the frames of its stack, innermost first, or the one name that its address has; empty where it is
    /// not known.
    pub fn names(&self, place: Place, symbols: &dyn Symbols) -> Vec<String> {
        match place {
            Place::Unknown => Vec::new(),
            Place::Address(address) => vec![named(symbols, address)],
            Place::Stack(id) => self.frames(id).iter().map(|&a| named(symbols, a)).collect(),
        }
    }
}
