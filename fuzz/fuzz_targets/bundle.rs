// SPDX-License-Identifier: GPL-2.0-or-later
//! Any directory is a bundle or refused; one that is opened can be read, verified and drawn. The input is a row of
//! files ([`files`]). The manifest is sealed again and its hashes of the other files are made true, as by somebody who
//! knows how: else nothing behind them would be reached.
#![no_main]

mod files;

use libfuzzer_sys::fuzz_target;
use bundle::{Bundle, MANIFEST, UtcTime};
use view::report::{Material, page};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static PLACE: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("room for a directory"));

fuzz_target!(|bytes: &[u8]| {
    let directory = PLACE.path().join("bundle");
    files::unpack(bytes, &directory);
    seal(&directory);
    let Ok(bundle) = Bundle::open(&directory) else { return };
    let is_verified = bundle.verify().is_ok();
    let _ = bundle.details();
    let mut count = 0;
    let are_read = bundle.samples(|_| count += 1).is_ok();
    for series in &bundle.manifest().series {
        let _ = bundle.histogram(&series.responder);
    }
    if is_verified {
        assert!(are_read && count == bundle.manifest().samples.count);
    }
    let created: UtcTime = "2026-11-21T20:39:11Z".parse().expect("a time");
    let tool = bundle.manifest().about.tool.clone();
    let (bundles, insides) = ([bundle], BTreeMap::new());
    let _ = page(
        &PLACE.path().join("x.html"),
        "__ONSET_REPORT__",
        &Material { bundles: &bundles, insides: &insides, hunts: &[] },
        (created, &tool),
    );
});

/// Makes lengths, hashes and seal true, where the manifest is JSON.
fn seal(directory: &Path) -> Option<()> {
    let path = directory.join(MANIFEST);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    for (name, record) in manifest.get_mut("files")?.as_object_mut()? {
        let Ok(content) = fs::read(directory.join(name)) else { continue };
        if let Some(record) = record.as_object_mut() {
            record.insert("bytes".into(), content.len().into());
            record.insert("blake3".into(), blake3::hash(&content).to_hex().as_str().into());
        }
    }
    manifest.as_object_mut()?.remove("seal");
    let text = serde_json::to_string_pretty(&manifest).ok()?;
    let text = text.strip_suffix("\n}")?.to_owned() + ",\n";
    let seal = blake3::hash(text.as_bytes()).to_hex();
    fs::write(path, format!("{text}  \"seal\": \"{seal}\"\n}}\n")).ok()
}
