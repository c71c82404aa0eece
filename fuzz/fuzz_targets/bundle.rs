// SPDX-License-Identifier: GPL-2.0-or-later
//! Any directory is a bundle or refused. The input is a row of files: length of the name (1 byte), name,
//! length of the content (4 bytes, little endian), content; what is cut short ends the row, as a full
//! disk would. Begin with a corpus of real bundles packed like that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onset::bundle::Bundle;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir().expect("room for a directory");
    unpack(bytes, directory.path());
    let Ok(bundle) = Bundle::open(directory.path()) else { return };
    let _ = bundle.verify();
    let _ = bundle.details();
    let _ = bundle.samples(|_| ());
    for series in &bundle.manifest().series {
        let _ = bundle.histogram(&series.responder);
    }
});

/// Writes the files; `None` at the end of the row.
fn unpack(mut bytes: &[u8], directory: &Path) -> Option<()> {
    loop {
        let (&length, rest) = bytes.split_first()?;
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (content, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        // The files of a bundle, not of the machine: every part of the name is a plain word.
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let word =
            |part: &str| !part.starts_with('.') && part.chars().all(plain) && !part.is_empty();
        let Ok(name) = str::from_utf8(name) else { continue };
        if !name.split('/').all(word) {
            continue;
        }
        let path = directory.join(name);
        // A file may stand where this one needs a directory: then it is not written.
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, content);
    }
}
