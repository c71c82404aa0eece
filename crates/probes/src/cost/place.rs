// SPDX-License-Identifier: GPL-2.0-or-later
//! The directory that the rows put their files in, and the numbers that shuffle.

use crate::{RunError, failure};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory of this process, which goes with it. It is below `TMPDIR`, or `/tmp`.
pub(super) struct Place {
    directory: PathBuf,
    /// The seed of permutations.
    pub(super) seed: u32,
}

impl Place {
    /// Makes the directory.
    ///
    /// # Errors
    /// If there is no directory for files, or none to write to.
    pub(super) fn make(seed: u32) -> Result<Place, RunError> {
        let above = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let directory = above.join(format!("onset-cost-{}", std::process::id()));
        let failed = |e: io::Error| {
            let reason = format!("{e}; set TMPDIR to a directory that can be written to");
            failure::unavailable(&format!("directory {}", directory.display()), reason)
        };
        std::fs::create_dir(&directory).map_err(failed)?;
        Ok(Place { directory, seed })
    }

    /// The path of a file of this name.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The same for a system call.
    pub(super) fn text(&self, name: &str) -> CString {
        text(&self.path(name))
    }

    /// Makes a file of so many bytes, unless it is there.
    pub(super) fn file(&self, name: &str, bytes: usize) -> io::Result<PathBuf> {
        let path = self.path(name);
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == bytes as u64) {
            return Ok(path);
        }
        // A file that did not fit is no file to measure.
        std::fs::write(&path, vec![1; bytes]).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A directory that stays behind is no reason to lose the samples.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A path for a system call.
pub(super) fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path of this process has no zero byte")
}

/// The next number of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The numbers below `n` in a mixed order (Fisher and Yates).
pub(super) fn shuffled(n: usize, state: &mut u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, (next(state) % (last as u64 + 1)) as usize);
    }
    order
}
