// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes the relative paths of an experiment absolute.

use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Makes paths whole, and remembers whether one was not.
pub struct Paths<'a> {
    directory: &'a Path,
    relative: Cell<bool>,
}

impl<'a> Paths<'a> {
    /// Relative ones begin at `directory`.
    pub fn in_directory(directory: &'a Path) -> Self {
        Paths { directory, relative: Cell::new(false) }
    }

    /// Where `path` leads.
    pub fn whole(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.relative.set(self.relative.get() || path.is_relative());
        self.directory.join(path)
    }

    /// Whether one of those was relative.
    pub fn had_relative(&self) -> bool {
        self.relative.get()
    }

    /// Where relative ones begin.
    pub fn directory(&self) -> &'a Path {
        self.directory
    }
}
