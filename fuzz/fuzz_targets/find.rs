// SPDX-License-Identifier: GPL-2.0-or-later
//! Any file is a find that holds what it promises, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lab::followed::{Named, Reproducer};
use std::fs;
use std::sync::LazyLock;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("room for a directory"));

fuzz_target!(|bytes: &[u8]| {
    let path = PLACE.path().join("x.find.json");
    fs::write(&path, bytes).expect("room for a file");
    let Ok(find) = Reproducer::read(&path) else { return };
    let sample = find.sample();
    assert_eq!(sample.at, find.times_ns[sample.trigger as usize]);
    assert!(find.times_ns.is_sorted() && find.responders.contains(find.answer.responder));
    assert!(find.times_ns.iter().all(|at| at.checked_add(find.grace_ns).is_some()));
    let named = Named::Find(Box::new(find));
    assert!(named.samples(None, None).is_ok_and(|samples| samples.len() == 1));
});
