// SPDX-License-Identifier: GPL-2.0-or-later
//! A counter of a load: a file of eight bytes that anyone may read at any time.

use agent::{COUNTERS_DIR, COUNTERS_VARIABLE};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A number that only grows.
pub struct Counter {
    file: File,
    value: u64,
}

impl Counter {
    /// Makes the counter's file.
    pub fn create(name: &str) -> std::io::Result<Counter> {
        let directory = std::env::var_os(COUNTERS_VARIABLE).unwrap_or(COUNTERS_DIR.into());
        fs::create_dir_all(&directory)?;
        Ok(Counter { file: File::create(Path::new(&directory).join(name))?, value: 0 })
    }

    /// Makes the counter of what succeeds, and that of what fails, which has `.failed` behind its name.
    pub fn pair(name: &str) -> std::io::Result<(Counter, Counter)> {
        Ok((Counter::create(name)?, Counter::create(&format!("{name}.failed"))?))
    }

    /// The number.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Adds `more`. Nothing is written if that is 0.
    pub fn add(&mut self, more: u64) -> std::io::Result<()> {
        if more == 0 {
            return Ok(());
        }
        self.value += more;
        self.file.write_all_at(&self.value.to_le_bytes(), 0)
    }
}
