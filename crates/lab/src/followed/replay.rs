// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes commands that replay a latency. A user pastes one into a shell, in the directory in which it was written.

use sample::Responder;
use std::path::Path;

/// The command for an answer of a run, or for a sample of a probe. It names the bundle by its path, which needs no
/// store to be found.
pub fn replay_of_answer(bundle: &Path, series: &str, trigger: u64) -> String {
    let bundle = shell_word(bundle);
    format!("onset replay {bundle} --sample {trigger} {} {series}", option(series))
}

/// The option that chooses a series. Both spellings are one option, and a probe has no responders.
pub fn option(series: &str) -> &'static str {
    if series.parse::<Responder>().is_ok() { "--responder" } else { "--series" }
}

/// The command for a find.
pub fn replay_of_find(find: &Path) -> String {
    format!("onset replay {}", shell_word(find))
}

/// A path in the form that a shell takes.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The words of a command in the form that a shell takes.
pub fn shell_words(words: &[impl AsRef<Path>]) -> String {
    words.iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_whatever_the_directory_is_called() {
        let find = |path: &str| replay_of_find(Path::new(path));
        assert_eq!(find("onset-runs/hunts/a_1"), "onset replay onset-runs/hunts/a_1");
        assert_eq!(find("my hunts/it's"), "onset replay 'my hunts/it'\\''s'");
        let answer = replay_of_answer(Path::new("my runs/1"), "task", 17);
        assert_eq!(answer, "onset replay 'my runs/1' --sample 17 --responder task");
        let sample = replay_of_answer(Path::new("runs/1"), "nanosleep-1ms", 3);
        assert_eq!(sample, "onset replay runs/1 --sample 3 --series nanosleep-1ms");
    }
}
