// SPDX-License-Identifier: GPL-2.0-or-later
//! A part of a census: the latencies of one shard's instants, in a file.

use super::Window;
use crate::Error;
use crate::followed::Reproducer;
use crate::shards::{Shard, missing};
use confined::Directory;
use sample::Nanos;
use serde::{Deserialize, Serialize};
use std::path::Path;

const BYTES_MAX: u64 = 256 << 20;

/// What one shard of a census measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Of what: the hash of the find's file.
    find: String,
    /// The window of the whole census.
    window: Window,
    /// The latencies at the shard's instants, in their order.
    latencies: Vec<Option<Nanos>>,
}

fn file(shard: Shard) -> String {
    format!("{}.json", shard.file_name())
}

impl Part {
    /// What a shard measured.
    pub fn of(find: &Reproducer, window: Window, latencies: Vec<Option<Nanos>>) -> Part {
        Part { find: Part::hash(find), window, latencies }
    }

    /// The hash of a find's file.
    pub fn hash(find: &Reproducer) -> String {
        let text = serde_json::to_string(find).expect("plain data");
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Those shards that are not in this directory.
    pub fn missing(shards: &Path, all: &[Shard]) -> Vec<Shard> {
        missing(shards, all, file)
    }

    /// Writes the part into this directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, shards: &Path, shard: Shard) -> Result<(), Error> {
        let text = serde_json::to_string(self).expect("plain data") + "\n";
        Directory::open(shards)
            .and_then(|open| open.replace(file(shard), text.as_bytes()))
            .map_err(|e| Error::File(format!("{}: {e}", shards.display())))
    }

    /// The latencies of the whole window, from the parts in this directory.
    ///
    /// # Errors
    /// If a part is missing, damaged, or of another census.
    pub fn all(
        shards: &Path,
        all: &[Shard],
        find: &Reproducer,
        window: Window,
    ) -> Result<Vec<Option<Nanos>>, Error> {
        let count = window.count() as usize;
        let mut latencies = Vec::new();
        for shard in all {
            let path = shards.join(file(*shard));
            let refused = |why: String| Error::File(format!("{}: {why}", path.display()));
            let bytes = confined::read(&path, BYTES_MAX).map_err(|e| refused(e.to_string()))?;
            let part: Part = serde_json::from_slice(&bytes).map_err(|e| {
                refused(format!("{e}; remove the file, and the shard is made again"))
            })?;
            let expected = shard.range(count).len();
            let Part { find: its, window: asked, .. } = &part;
            if (its, asked, part.latencies.len()) != (&Part::hash(find), &window, expected) {
                let why = "it is of another census; choose another directory, or remove the file";
                return Err(refused(why.into()));
            }
            latencies.extend(part.latencies);
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_make_the_whole_window_and_those_of_another_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let find = Reproducer::example();
        let window = Window { from: Nanos(0), until: Nanos(100), every: Nanos(10) };
        let whole: Vec<Option<Nanos>> = (0..11).map(|n| (n != 4).then_some(Nanos(n))).collect();
        let all = Shard::all(4).unwrap();
        for shard in all.iter().rev() {
            let part = Part::of(&find, window, whole[shard.range(11)].to_vec());
            assert!(Part::missing(root.path(), &all).contains(shard));
            part.keep(root.path(), *shard).unwrap();
        }
        assert!(Part::missing(root.path(), &all).is_empty());
        assert_eq!(Part::all(root.path(), &all, &find, window).unwrap(), whole);
        let other = Window { from: Nanos(10), until: Nanos(110), ..window };
        let why = Part::all(root.path(), &all, &find, other).unwrap_err().to_string();
        assert!(why.contains("of another census"), "{why}");
        std::fs::write(root.path().join("2-of-4.json"), "{").unwrap();
        let why = Part::all(root.path(), &all, &find, window).unwrap_err().to_string();
        assert!(why.contains("2-of-4.json") && why.contains("made again"), "{why}");
    }
}
