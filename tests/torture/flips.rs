// SPDX-License-Identifier: GPL-2.0-or-later
//! Single bits of a bundle, flipped.

use crate::kills::MEASURE;
use crate::{Chance, table, times};
use bundle::Bundle;
use std::fs;
use std::path::{Path, PathBuf};
use testbench::Lab;

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a bundle").flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => vec![path],
        })
        .collect()
}

#[test]
fn every_flipped_bit_of_a_bundle_is_found() {
    let mut chance = Chance::new("flips");
    let lab = Lab::bare();
    lab.onset(&MEASURE);
    let bundle = lab.store().join(&lab.bundles()[0]);
    let verified = || Bundle::open(&bundle).and_then(|bundle| bundle.verify());
    verified().expect("a sound bundle");
    let files = files(&bundle);
    let tried = times(300, 2_000);
    let mut unclean = Vec::new();
    for _ in 0..tried {
        let path = chance.of(&files);
        let sound = fs::read(path).expect("a file");
        if sound.is_empty() {
            continue;
        }
        let (place, bit) = (chance.below(sound.len() as u64) as usize, chance.below(8));
        let mut flipped = sound.clone();
        flipped[place] ^= 1 << bit;
        fs::write(path, flipped).expect("writable");
        if verified().is_ok() {
            unclean.push(format!("{}: bit {bit} of byte {place}", path.display()));
        }
        fs::write(path, sound).expect("writable");
    }
    table("flipped bits of a bundle", tried, &unclean);
}
