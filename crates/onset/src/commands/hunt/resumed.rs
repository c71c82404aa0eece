// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds the command with which the user goes on with a hunt.

use lab::followed::shell_word;
use std::ffi::OsString;
use std::path::Path;

/// The option that names a hunt's directory.
const DIRECTORY: &str = "--directory";

/// The words of a command, quoted for a shell. The first word is this program; the directory of the hunt is added.
pub fn command(words: impl Iterator<Item = OsString>, directory: &Path) -> String {
    let mut words: Vec<OsString> = ["onset".into()].into_iter().chain(words.skip(1)).collect();
    let names = |word: &OsString| {
        let word = word.to_string_lossy();
        word == DIRECTORY || word.starts_with(&format!("{DIRECTORY}="))
    };
    if !words.iter().any(names) {
        words.extend([DIRECTORY.into(), directory.into()]);
    }
    let words: Vec<String> = words.iter().map(|word| shell_word(Path::new(word))).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunt_is_gone_on_with_by_the_same_words_and_its_directory() {
        let again = |line: &[&str]| {
            command(line.iter().map(|word| OsString::from(*word)), Path::new("my runs/1"))
        };
        assert_eq!(
            again(&["/opt/onset", "hunt", "--flavour", "6.12 preempt=none", "--json"]),
            "onset hunt --flavour '6.12 preempt=none' --json --directory 'my runs/1'"
        );
        for named in
            [&["onset", "hunt", "--directory", "x"][..], &["onset", "hunt", "--directory=x"]]
        {
            assert_eq!(again(named), named.join(" "));
        }
    }
}
