// SPDX-License-Identifier: GPL-2.0-or-later
//! What a guest is put together of, so that of two guests that are not alike it can be said where they differ.
//!
//! It cannot see the programs that the machine lends a guest for its load, their libraries, and modules of the kernel:
//! these are in the key of the snapshot alone.

use ::rig::Guest;
use std::collections::BTreeMap;
use std::path::Path;

/// By name the hash of each, in hexadecimal: the kernel's image, our own parts, and the files of the machine that the
/// experiment names. What cannot be read is left out; who builds the guest fails with the reason.
pub fn contents(guest: &Guest) -> BTreeMap<String, String> {
    let of_bytes = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let of_file = |path: &Path| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(confined::file(path).ok()?).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    };
    let asked = &guest.contents;
    let mut contents = BTreeMap::new();
    let mut add = |name: &str, hash: Option<String>| {
        contents.extend(hash.map(|hash| (name.to_owned(), hash)));
    };
    add("the kernel's image", Some(guest.kernel.record.image_blake3.clone()));
    add("onset's agent", of_file(&asked.agent));
    add("the load's script", Some(of_bytes(asked.load.script().as_bytes())));
    if asked.driver.is_some() {
        add("onset's driver", guest.kernel.driver().ok().and_then(|path| of_file(&path)));
    }
    // Of modules that are given as sources it is what is built of them.
    let of_sources = |path: &Path| {
        let mut hasher = blake3::Hasher::new();
        for built in guest.kernel.modules_of(path).ok()? {
            hasher.update_reader(confined::file(&built).ok()?).ok()?;
        }
        Some(hasher.finalize().to_hex().to_string())
    };
    for path in asked.modules.iter().filter(|path| path.is_dir()) {
        add(&path.display().to_string(), of_sources(path));
    }
    let named = asked.programs.iter().map(Path::new).filter(|program| program.is_absolute());
    let files = asked.files.iter().map(|(host, _)| host.as_path());
    for path in asked.modules.iter().map(AsRef::as_ref).chain(named).chain(files) {
        add(&path.display().to_string(), of_file(path));
    }
    contents
}
