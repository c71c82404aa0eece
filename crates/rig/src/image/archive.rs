// SPDX-License-Identifier: GPL-2.0-or-later
//! A cpio archive (newc) as the kernel unpacks it at boot (Documentation/driver-api/early-userspace/buffer-format.rst).

use cpio::newc::{Builder, trailer};
use std::collections::BTreeSet;
use std::io::Write;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// An archive being written. Entries are numbered and dated by us, so that the same calls give the
/// same bytes.
pub struct Archive {
    bytes: Vec<u8>,
    present: BTreeSet<String>,
}

impl Archive {
    pub fn new() -> Archive {
        Archive { bytes: Vec::new(), present: BTreeSet::new() }
    }

    /// A regular file, and the directories above it. A path already present is kept as it is.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entry(path, REGULAR | mode, content, None);
    }

    /// A directory, and those above it.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, &[], None);
    }

    /// A symbolic link `directory/name` to `target`.
    pub fn link(&mut self, name: &str, directory: &str, target: &str) {
        let path =
            if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") };
        self.entry(&path, SYMLINK | 0o777, target.as_bytes(), None);
    }

    /// `/dev/console`.
    pub fn console(&mut self) {
        self.entry("dev/console", CHARACTER | 0o600, &[], Some((5, 1)));
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8], device: Option<(u32, u32)>) {
        let path = path.trim_start_matches('/');
        if let Some((parent, _)) = path.rsplit_once('/')
            && !self.present.contains(parent)
        {
            self.directory(parent);
        }
        if !self.present.insert(path.to_string()) {
            return;
        }
        let (major, minor) = device.unwrap_or((0, 0));
        let builder = Builder::new(path)
            .ino(self.present.len() as u32)
            .mode(mode)
            .nlink(1)
            .rdev_major(major)
            .rdev_minor(minor);
        let mut writer = builder.write(&mut self.bytes, content.len() as u32);
        writer.write_all(content).expect("writing to memory");
        writer.finish().expect("writing to memory");
    }

    pub fn finish(mut self) -> Vec<u8> {
        trailer(&mut self.bytes).expect("writing to memory");
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_is_in_them_and_once() {
        let mut archive = Archive::new();
        archive.file("/a/b/c", 0o644, b"x");
        archive.file("a/b/d", 0o755, b"yz");
        let mut bytes = &archive.finish()[..];
        let mut names = Vec::new();
        loop {
            let reader = cpio::newc::Reader::new(bytes).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            names.push((reader.entry().name().to_string(), reader.entry().file_size()));
            bytes = reader.finish().unwrap();
        }
        let expected = [("a", 0), ("a/b", 0), ("a/b/c", 1), ("a/b/d", 2)];
        assert!(names.iter().map(|(n, s)| (n.as_str(), *s)).eq(expected), "{names:?}");
    }

    #[test]
    fn the_same_calls_give_the_same_bytes() {
        let make = || {
            let mut archive = Archive::new();
            archive.console();
            archive.link("bin", "", "usr/bin");
            archive.finish()
        };
        assert_eq!(make(), make());
    }
}
