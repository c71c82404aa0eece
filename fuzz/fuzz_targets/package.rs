// SPDX-License-Identifier: GPL-2.0-or-later
//! Whatever files a package has, nothing is written outside the place that it is unpacked to, and no link leads out of
//! it. The input is the tar archive in it, with the sums of its headers made true.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("room for a directory"));

fuzz_target!(|bytes: &[u8]| {
    let root = PLACE.path().join("root");
    let _ = fs::remove_dir_all(&root);
    fs::write(PLACE.path().join("victim"), "precious").expect("room for a file");
    let mut archive = bytes.to_vec();
    archive.chunks_exact_mut(512).for_each(sum);
    let _ = rig::unpack_for_fuzzing(&archive, &root);
    let victim = fs::read_to_string(PLACE.path().join("victim"));
    assert!(victim.is_ok_and(|text| text == "precious"));
    let names = fs::read_dir(PLACE.path()).expect("it is there").count();
    assert_eq!(names, 2, "something was written beside the root");
    leads_in(&root, &root.canonicalize().expect("it was made"));
});

/// Every block that says that it is a header is one.
fn sum(block: &mut [u8]) {
    if &block[257..262] == b"ustar" {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

fn leads_in(directory: &Path, root: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("it is there"));
        if kind.is_symlink() {
            assert!(path.canonicalize().is_ok_and(|end| end.starts_with(root)), "{path:?}");
        } else if kind.is_dir() {
            leads_in(&path, root);
        } else {
            assert!(kind.is_file(), "{path:?}");
        }
    }
}
