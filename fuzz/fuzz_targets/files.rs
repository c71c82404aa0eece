// SPDX-License-Identifier: GPL-2.0-or-later
//! A row of files as an input: length of the name (1 byte), name, length of the content (4 bytes, little endian),
//! content; what is cut short ends the row, as a full disk would.

use std::fs;
use std::path::Path;

/// Makes the directory anew, with these files in it; `None` at the end of the row.
pub fn unpack(mut bytes: &[u8], directory: &Path) -> Option<()> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("room for a directory");
    loop {
        let (&length, rest) = bytes.split_first()?;
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (content, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        let Ok(name) = str::from_utf8(name) else { continue };
        if !name.split('/').all(is_word) {
            continue;
        }
        let path = directory.join(name);
        // A file may stand where this one needs a directory: then it is not written.
        let _ = path.parent().map(fs::create_dir_all);
        let _ = fs::write(path, content);
    }
}

/// The files of a bundle, not of the machine.
fn is_word(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !part.starts_with('.') && part.chars().all(plain) && !part.is_empty()
}
