// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes a cpio archive (newc) for the kernel to unpack at boot
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use crate::error::At;
use crate::{Error, Result};
use cpio::newc::{Builder, trailer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// An archive that is written to a file and hashed on the way. This code numbers and dates the entries, so that the
/// same calls give the same bytes.
pub struct Archive {
    path: PathBuf,
    out: Hashed,
    /// Every path in the archive, and the origin of its content.
    present: BTreeMap<String, String>,
}

struct Hashed {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl Write for Hashed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buffer)?;
        self.hasher.update(&buffer[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Archive {
    /// Begins an empty archive in a new file.
    pub fn create(path: &Path) -> Result<Archive> {
        let file = BufWriter::new(File::create(path).at(path)?);
        let out = Hashed { file, hasher: blake3::Hasher::new() };
        Ok(Archive { path: path.into(), out, present: BTreeMap::new() })
    }

    /// Adds a regular file with the content of a file of the host, and the directories above it.
    pub fn copy(&mut self, path: &str, mode: u32, host: &Path) -> Result<()> {
        let mut file = confined::file(host).at(host)?;
        let length = file.metadata().at(host)?.len();
        self.entry(path, REGULAR | mode, &host.to_string_lossy(), length, None, &mut file)
    }

    /// Adds a regular file with this content. `origin` names the content in errors.
    pub fn file(&mut self, path: &str, mode: u32, origin: &str, content: &[u8]) -> Result<()> {
        self.entry(path, REGULAR | mode, origin, content.len() as u64, None, &mut &*content)
    }

    /// Adds a directory, and the directories above it.
    pub fn directory(&mut self, path: &str) -> Result<()> {
        self.entry(path, DIRECTORY | 0o755, "a directory", 0, None, &mut io::empty())
    }

    /// Adds a symbolic link `path` to `target`.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        let length = target.len() as u64;
        self.entry(path, SYMLINK | 0o777, "a link", length, None, &mut target.as_bytes())
    }

    /// Adds `/dev/console`.
    pub fn console(&mut self) -> Result<()> {
        let device = Some((5, 1));
        self.entry("dev/console", CHARACTER | 0o600, "a device", 0, device, &mut io::empty())
    }

    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        origin: &str,
        length: u64,
        device: Option<(u32, u32)>,
        content: &mut dyn io::Read,
    ) -> Result<()> {
        let path = path.trim_start_matches('/');
        if let Some((parent, _)) = path.rsplit_once('/')
            && !self.present.contains_key(parent)
        {
            self.directory(parent)?;
        }
        match self.present.get(path) {
            None => self.present.insert(path.to_string(), origin.to_string()),
            Some(known) if known == origin => return Ok(()),
            Some(known) => {
                let why = format!(
                    "/{path} is to come from {known} and from {origin}; take one of them out"
                );
                return Err(Error::Guest { phase: "being put together", why });
            }
        };
        let (major, minor) = device.unwrap_or((0, 0));
        let length = u32::try_from(length).map_err(|_| Error::Guest {
            phase: "being put together",
            why: format!("{origin} is larger than 4 GiB, which an initramfs cannot hold"),
        })?;
        let builder = Builder::new(path)
            .ino(self.present.len() as u32)
            .mode(mode)
            .nlink(1)
            .rdev_major(major)
            .rdev_minor(minor);
        let mut writer = builder.write(&mut self.out, length);
        let copied = io::copy(content, &mut writer).and_then(|_| writer.finish().map(drop));
        copied.at(&self.path)
    }

    /// Ends the archive. Returns the hash of its bytes.
    pub fn finish(mut self) -> Result<blake3::Hash> {
        trailer(&mut self.out).at(&self.path)?;
        self.out.flush().at(&self.path)?;
        Ok(self.out.hasher.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(fill: impl Fn(&mut Archive) -> Result<()>) -> Result<(Vec<u8>, blake3::Hash)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut archive = Archive::create(&path)?;
        fill(&mut archive)?;
        let hash = archive.finish()?;
        Ok((std::fs::read(&path).unwrap(), hash))
    }

    #[test]
    fn directories_come_before_what_is_in_them_and_once() {
        let (bytes, hash) = archive(|a| {
            a.file("/a/b/c", 0o644, "c", b"x")?;
            a.file("a/b/d", 0o755, "d", b"yz")
        })
        .unwrap();
        assert_eq!(hash, blake3::hash(&bytes));
        let mut rest = &bytes[..];
        let mut names = Vec::new();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            names.push((reader.entry().name().to_string(), reader.entry().file_size()));
            rest = reader.finish().unwrap();
        }
        let expected = [("a", 0), ("a/b", 0), ("a/b/c", 1), ("a/b/d", 2)];
        assert!(names.iter().map(|(n, s)| (n.as_str(), *s)).eq(expected), "{names:?}");
    }

    #[test]
    fn the_same_calls_give_the_same_bytes() {
        let make = || {
            archive(|a| {
                a.console()?;
                a.link("bin", "usr/bin")
            })
        };
        assert_eq!(make().unwrap(), make().unwrap());
    }

    #[test]
    fn one_file_twice_is_once_and_two_files_of_one_path_are_refused_by_name() {
        let twice = |a: &mut Archive| {
            a.file("lib/x.so", 0o644, "/lib/x.so", b"1")?;
            a.file("lib/x.so", 0o644, "/lib/x.so", b"1")
        };
        assert!(archive(twice).is_ok());
        let error = archive(|a| {
            a.file("bin/find", 0o755, "/bin/find", b"1")?;
            a.file("bin/find", 0o755, "/tmp/mine", b"2")
        });
        let text = error.unwrap_err().to_string();
        assert!(text.contains("/bin/find") && text.contains("/tmp/mine"), "{text}");
    }
}
