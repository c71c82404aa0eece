// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads files below a root directory: `/` in use, a directory of prepared files in tests. It never blocks and never
//! fails.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// More than any file that is read here has; keeps an odd one from filling memory.
const BYTES_MAX: usize = 16 << 20;

/// Files below a root.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    pub fn new(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into() }
    }

    /// The trimmed text of a file; absent where there is none.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = self.whole(path)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// As [`text`](Self::text), but a file that can be read and is empty gives an empty text.
    pub fn whole(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a directory, sorted; none where it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The numbers among the names in a directory, rising; with a prefix before each.
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> = self.names(path).iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    pub fn is_directory(&self, path: &str) -> bool {
        self.root.join(path).is_dir()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Where a symbolic link leads, as it is written.
    pub fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.root.join(path)).ok()?.into_os_string().into_string().ok()
    }

    /// What a file yields without waiting.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.root.join(path);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        read_available(file)
    }
}

/// In large pieces: `/dev/kmsg` refuses to give part of a record.
fn read_available(mut file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    while bytes.len() < BYTES_MAX {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // The kernel's log has overwritten what would have come next, and goes on after it.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return None,
        }
    }
    Some(bytes)
}
