// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists the parts that make up a guest. So onset can say in which parts two different guests differ.
//!
//! The module cannot see the programs that the machine lends a guest for its load, their libraries, and modules of the
//! kernel. Only the key of the snapshot depends on these.

use ::rig::Guest;
use std::collections::BTreeMap;
use std::path::Path;

/// The hash of each part by its name, in hexadecimal: the kernel's image, our own parts, and the files of the machine
/// that the experiment names. A file that cannot be read is left out. Building the guest then fails with the reason.
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
    // For modules that are given as sources, the hash is that of the built modules.
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
