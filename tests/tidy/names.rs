// SPDX-License-Identifier: GPL-2.0-or-later
//! One word for one idea: a name that one room gives to others means no other thing in another room.

use crate::sources::{none_of, root};
use std::collections::BTreeMap;
use std::fs;
use syn::{Item, UseTree, Visibility};

/// Rooms that nobody imports: programs, and the command.
const NOBODY_IMPORTS: [&str; 2] = ["plugin", "onset"];
/// Names that several rooms give, and why that confuses nobody.
const IN_SEVERAL: [(&str, &str); 22] = [
    ("About", "of a bundle, and of a hunt's journal: what the thing is about"),
    ("At", "trace gives on that of sample"),
    ("Clock", "a clock's domain in sample, and what is read and slept on in rt"),
    ("Error", "each room has its own"),
    ("Event", "what the plugin says, and in trace the same with names"),
    ("Experiment", "what is read in experiment; what a bundle keeps of it"),
    ("Explained", "a latency that was explained, and the JSON of it"),
    ("Generator", "what an experiment asks for, and what the rig does"),
    ("Guest", "what an experiment asks for, and what the rig boots"),
    ("Journal", "of a run, and of a hunt"),
    ("Kernel", "what the rig boots, and what a bundle says of it"),
    ("Load", "experiment gives on that of the agent"),
    ("Machine", "what a bundle says of it, and the rig's QEMU"),
    ("Plan", "what a probe is told, and what the follower is told"),
    ("Schedule", "when triggers come, and what a bundle says of that"),
    ("StackId", "trace gives on that of wire"),
    ("Stimulus", "rig gives on that of wire"),
    ("Target", "the word in an experiment, and who measures"),
    ("TaskId", "trace gives on that of wire"),
    ("Timeline", "of a series, and of interrupts that a scout saw"),
    ("Trigger", "what an experiment asks for, and what a bundle says of it"),
    ("Hunt", "what is searched, and the JSON of it"),
];

/// The names that a room's lib.rs gives to others.
fn given(room: &str) -> Vec<String> {
    let path = root().join("crates").join(room).join("src/lib.rs");
    let text = fs::read_to_string(&path).expect("each room has a lib.rs");
    let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names = Vec::new();
    for item in &parsed.items {
        match item {
            Item::Use(item) if is_public(&item.vis) => leaves(&item.tree, &mut names),
            Item::Struct(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Enum(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            Item::Trait(item) if is_public(&item.vis) => names.push(item.ident.to_string()),
            _ => {}
        }
    }
    // Types; functions are verbs, and constants shout.
    names.retain(|name| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase));
    names
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn leaves(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(name) => names.push(name.rename.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, names)),
        UseTree::Glob(_) => {}
    }
}

#[test]
fn a_name_that_a_room_gives_means_one_thing() {
    let mut given_by: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for room in crate::rooms::ROOMS.iter().filter(|room| !NOBODY_IMPORTS.contains(room)) {
        for name in given(room) {
            given_by.entry(name).or_default().push(room);
        }
    }
    let is_allowed = |name: &str| IN_SEVERAL.iter().any(|(allowed, _)| *allowed == name);
    let twice = given_by.iter().filter(|(name, rooms)| rooms.len() > 1 && !is_allowed(name));
    none_of(twice.map(|(name, rooms)| format!("{name}: {}", rooms.join(", "))).collect());
}
