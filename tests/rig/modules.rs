// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the modules for tests, once per version of their sources and kernel: a module that is built
//! again has other bytes, and with it every snapshot of a guest that holds it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use testbench::Lab;

/// The module `name`, built for 6.12.
pub fn module(name: &str) -> PathBuf {
    module_for("6.12", name)
}

/// The module `name`, built for a kernel.
pub fn module_for(kernel: &str, name: &str) -> PathBuf {
    // One at a time: each test would build them all.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().expect("no test panics while it builds");
    let kernels = crate::bench(&Lab::new()).cache().kernels().expect("a cache");
    let kernel = kernels.get(kernel).expect("the caller asked for it");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("rig/modules");
    let built = kernel.modules_of(&sources).expect("they build");
    let is = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    built.into_iter().find(is).unwrap_or_else(|| panic!("the Kbuild file does not name {name}"))
}
