// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the sources keep the rules of CONTRIBUTING.md. Reads files alone: no part of onset is built for it.
//!
//! It cannot see what a name means, nor whether a comment is true.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod files;
#[cfg(test)]
mod functions;
#[cfg(test)]
mod names;
#[cfg(test)]
mod rooms;
#[cfg(test)]
mod units;

#[cfg(test)]
mod sources {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// The checkout.
    pub fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The files that git knows or would add, with the text of those that are text.
    pub fn all() -> Vec<(String, String)> {
        let mut git = Command::new("git");
        // Whoever builds need not be whoever checked out.
        git.args([
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = git.current_dir(root()).output().expect("git, and a checkout");
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let names = String::from_utf8(listed.stdout).expect("names are text");
        let mut names: Vec<&str> = names.split_terminator('\0').collect();
        names.sort_unstable();
        names.dedup();
        // One that was removed and not yet committed is listed too.
        let text = |name: &str| fs::read_to_string(root().join(name)).ok();
        names.into_iter().filter_map(|name| Some((name.to_owned(), text(name)?))).collect()
    }

    /// Of these, what somebody writes in one of these languages.
    pub fn written_in(ends: &[&str]) -> Vec<(String, String)> {
        let mut files = all();
        files.retain(|(name, _)| ends.iter().any(|end| name.ends_with(end)));
        assert!(!files.is_empty(), "no file ends with {ends:?}");
        files
    }

    /// Fails with all that is wrong, a line each.
    pub fn none_of(wrong: Vec<String>) {
        assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
    }
}
