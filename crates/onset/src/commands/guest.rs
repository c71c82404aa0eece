// SPDX-License-Identifier: GPL-2.0-or-later
//! The experiment that a command makes of its options, where the user gave none: what a hunt searches in, and what a
//! generator has behind it.

use experiment::Load;
use std::fmt::Display;
use toml_edit::{Array, DocumentMut, Item, value};

/// What the options say of the guest. Each list has every name once.
pub(super) struct Asked<'a> {
    pub(super) title: &'a str,
    pub(super) flavour: &'a str,
    pub(super) loads: &'a [Load],
    /// None: all that the kernel has.
    pub(super) responders: &'a [String],
}

impl Asked<'_> {
    /// The keys of the experiment, without the triggers.
    pub(super) fn root(&self) -> DocumentMut {
        let mut root = DocumentMut::new();
        root["title"] = value(self.title);
        root["target"] = value("rig");
        root["flavours"] = list(&[self.flavour]);
        root["loads"] = list(self.loads);
        if !self.responders.is_empty() {
            root["responders"] = list(self.responders);
        }
        root
    }
}

fn list(words: &[impl Display]) -> Item {
    value(words.iter().map(ToString::to_string).collect::<Array>())
}
