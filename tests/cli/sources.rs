// SPDX-License-Identifier: GPL-2.0-or-later
//! What holds for every file of the repository.

use lab::Finished;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files that say their licence otherwise or cannot, and why.
const EXEMPT: [(&str, &str); 6] = [
    ("LICENSE", "it is the licence"),
    (".lock", "written by cargo"),
    (".json", "JSON has no comments; schemas say it by $comment"),
    (".png", "an image has no lines"),
    (".txt", "seeds that proptest writes"),
    (".gitignore", "it lists names, and nothing in it is anybody's work"),
];

#[test]
fn every_file_begins_with_its_licence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !root.join(".git").exists() {
        lab::skip("this is no checkout, in which git tells the files");
        return;
    }
    let mut git = Command::new("git");
    // Whoever builds need not be whoever checked out.
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]).current_dir(&root);
    let listed = Finished::of(&mut git).exits(0).stdout;
    let is_exempt = |name: &str| EXEMPT.iter().any(|(end, _)| name.ends_with(end));
    // One that was removed and not yet committed is listed too.
    let files = listed.split_terminator('\0').filter(|n| !is_exempt(n) && root.join(n).is_file());
    let without = files.filter(|name| {
        let text = fs::read_to_string(root.join(name)).expect("a text");
        // The first line may say how the file is run.
        !text.lines().take(2).any(|line| line.contains("SPDX-License-Identifier: GPL-2.0-or-later"))
    });
    assert_eq!(without.collect::<Vec<_>>(), [""; 0]);
}

/// Foreign text reaches a terminal only where it is written out.
#[test]
fn one_place_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/onset/src");
    let allowed = ["visible.rs"];
    let mut left = vec![root];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else if !allowed.iter().any(|name| path.ends_with(name)) {
                let text = fs::read_to_string(&path).expect("text");
                let prints = text.contains("println!(") || text.contains("print!(");
                assert!(!prints, "{} prints by itself; take crate::visible", path.display());
            }
        }
    }
}
