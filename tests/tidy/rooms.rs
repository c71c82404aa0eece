// SPDX-License-Identifier: GPL-2.0-or-later
//! The rooms of the house: who may use whom, how large each is, and whether ARCHITECTURE.md has it.

use crate::sources::{all, none_of, root, written_in};
use std::collections::BTreeMap;
use std::fs;
use toml_edit::DocumentMut;

/// From the bottom to the top: a room uses those before it alone.
pub const ROOMS: [&str; 20] = [
    "sample",
    "stats",
    "confined",
    "work",
    "wire",
    "vmlinux",
    "trace",
    "rt",
    "probes",
    "machine",
    "plugin",
    "agent",
    "rig",
    "experiment",
    "bundle",
    "hunt",
    "lab",
    "view",
    "serve",
    "onset",
];
/// Of all lines of Rust in the rooms, in percent.
const SHARE_MAX: usize = 15;

fn floor(room: &str) -> usize {
    ROOMS.iter().position(|r| *r == room).unwrap_or_else(|| panic!("{room} is no room: see ROOMS"))
}

#[test]
fn rooms_use_those_below_them_alone() {
    let mut wrong = Vec::new();
    for room in rooms() {
        let manifest = root().join("crates").join(&room).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let manifest: DocumentMut = text.parse().expect("TOML");
        let Some(dependencies) = manifest.get("dependencies").and_then(|d| d.as_table()) else {
            continue;
        };
        let paths = dependencies.iter().filter_map(|(_, value)| value.get("path")?.as_str());
        for used in paths.filter_map(|path| path.strip_prefix("../")) {
            if floor(used) >= floor(&room) {
                wrong.push(format!("{room} uses {used}, which is not below it"));
            }
        }
    }
    none_of(wrong);
}

fn rooms() -> Vec<String> {
    let files = all().into_iter().map(|(name, _)| name);
    let manifests = files.filter_map(|name| {
        let room = name.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some(room.to_owned())
    });
    manifests.collect()
}

#[test]
fn no_room_holds_more_than_its_share() {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (name, text) in written_in(&[".rs"]) {
        if let Some((room, _)) = name.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
        {
            *lines.entry(room.to_owned()).or_default() += text.lines().count();
        }
    }
    let sum: usize = lines.values().sum();
    let large = lines.iter().filter(|(_, lines)| **lines * 100 > sum * SHARE_MAX);
    none_of(large.map(|(room, lines)| format!("{room}: {lines} of {sum} lines")).collect());
}

#[test]
fn the_picture_of_the_house_has_every_room() {
    let picture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("text");
    let is_in = |room: &String| {
        picture.lines().any(|line| line.trim_start().starts_with(&format!("{room}/")))
    };
    none_of(rooms().into_iter().filter(|room| !is_in(room)).collect());
}
