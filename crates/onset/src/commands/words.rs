// SPDX-License-Identifier: GPL-2.0-or-later
//! The words of this very command, changed: for the user who is to give it again, and for other machines.

use std::ffi::{OsStr, OsString};

/// Behind this word there are no options.
const END: &str = "--";

/// Whether the word is this option, perhaps with its value.
fn is_option(word: &OsStr, option: &str) -> bool {
    let word = word.to_string_lossy();
    let is_short = !option.starts_with("--");
    let with_value = |rest: &str| is_short || rest.starts_with('=');
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || with_value(rest))
}

/// The words without these options, each of which has a value. The first word is the name of this program.
pub fn without(words: impl Iterator<Item = OsString>, options: &[&str]) -> Vec<OsString> {
    let mut kept: Vec<OsString> = vec!["onset".into()];
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        if word == END {
            kept.push(word);
            kept.extend(words);
            break;
        }
        match options.iter().find(|option| is_option(&word, option)) {
            // The value is a word of its own, unless it stands behind an equals sign.
            Some(option) if word == *option => drop(words.next()),
            Some(_) => {}
            None => kept.push(word),
        }
    }
    kept
}

/// The words with this option, unless they have it.
pub fn give(mut words: Vec<OsString>, option: &str, value: &OsStr) -> Vec<OsString> {
    let end = words.iter().position(|word| word == END).unwrap_or(words.len());
    if !words[..end].iter().any(|word| is_option(word, option)) {
        words.splice(end..end, [option.into(), value.into()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_are_taken_out_with_their_values_and_given_once() {
        let line = "/opt/onset hunt x.toml --on slurm --tasks=4 --shards 8 --json --onward";
        let left = without(words(line).into_iter(), &["--on", "--tasks", "--shards"]);
        assert_eq!(left, words("onset hunt x.toml --json --onward"));
        let given = give(left.clone(), "--directory", "d".as_ref());
        assert_eq!(given, words("onset hunt x.toml --json --onward --directory d"));
        let left = without(
            words("onset atlas -o d -oe --output=f --top 3 -- -o").into_iter(),
            &["--output", "-o"],
        );
        assert_eq!(left, words("onset atlas --top 3 -- -o"));
        let given = give(left, "--output", "g".as_ref());
        assert_eq!(given, words("onset atlas --top 3 --output g -- -o"));
        for there in ["onset hunt --directory e", "onset hunt --directory=e"] {
            assert_eq!(give(words(there), "--directory", "d".as_ref()), words(there));
        }
    }
}
