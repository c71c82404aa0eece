// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads files below a root directory: `/` in use, a directory of prepared files in tests. It never blocks and never
//! fails.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// More bytes than any file has that is read here. The limit keeps an unusual file from filling memory.
const BYTES_MAX: usize = 16 << 20;

/// The files below a root directory.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    pub fn new(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into() }
    }

    /// The trimmed text of a file. Absent if the file is missing, unreadable or empty.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = self.whole(path)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// As [`text`](Self::text), untrimmed. A readable file that is empty gives an empty text.
    pub fn whole(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a directory, sorted. An unreadable directory has none.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The numbers among the names in a directory, rising. Each name has `prefix` before its number.
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

    /// The target of a symbolic link, as the link has it.
    pub fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.root.join(path)).ok()?.into_os_string().into_string().ok()
    }

    /// The bytes that a file yields without waiting.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.root.join(path);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        read_available(file)
    }
}

/// Reads in large pieces, because `/dev/kmsg` refuses to give part of a record.
fn read_available(mut file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    while bytes.len() < BYTES_MAX {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // The kernel's log has overwritten the record that would have come next. Reading goes on after the gap.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return None,
        }
    }
    Some(bytes)
}
