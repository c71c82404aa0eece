// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the modules for tests, once per version of their sources and kernel: a module that is built
//! again has other bytes, and with it every snapshot of a guest that holds it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The module `name`, built for 6.12.
pub fn module(name: &str) -> PathBuf {
    module_for("6.12", name)
}

/// The module `name`, built with the headers that its kernel came with.
pub fn module_for(kernel: &str, name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built_for = BUILT.lock().expect("no test panics while it builds");
    let place = built_for.entry(kernel.to_string()).or_insert_with(|| built(kernel));
    place.join(format!("{name}.ko"))
}

fn built(name: &str) -> PathBuf {
    let lab = lab::Lab::new();
    let listed = lab.onset(&["kernels", "list", "--json"]).exits(0).json();
    let kernels = listed["kernels"].as_array().expect("kernels");
    let is = |k: &&Value| k["name"] == name;
    let kernel = kernels.iter().find(is).expect("the caller asked for it");
    // Relative to the kernel's directory, which is in the cache.
    let headers = kernel["headers"].as_str().expect("fetched with its headers");
    let headers = lab.cache().join("kernels").join(name).join(headers);
    let headers = headers.canonicalize().expect("the headers");

    let sources = sources();
    let mut hasher = blake3::Hasher::new();
    hasher.update(kernel.to_string().as_bytes());
    for source in &sources {
        hasher.update(&fs::read(source).expect("a source"));
    }
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = tmp.join(format!("modules-{}", &hasher.finalize().to_hex()[..16]));
    if !place.exists() {
        build(&sources, &headers, &place);
    }
    place
}

fn sources() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rig/modules");
    let entries = fs::read_dir(directory).expect("the modules' sources").flatten();
    let mut sources: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    sources.sort();
    sources
}

/// Builds beside `place` and renames, so that what is there is whole.
fn build(sources: &[PathBuf], headers: &Path, place: &Path) {
    let beside = place.parent().expect("below the target directory");
    let draft = tempfile::tempdir_in(beside).expect("writable");
    for source in sources {
        let name = source.file_name().expect("a file");
        fs::copy(source, draft.path().join(name)).expect("writable");
    }
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(headers);
    make.args(["CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]);
    make.arg(format!("M={}", draft.path().display()));
    lab::Finished::of(&mut make).exits(0);
    fs::rename(draft.keep(), place).expect("the same disk");
}
