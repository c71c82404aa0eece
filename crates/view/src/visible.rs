// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes foreign text safe for a terminal. Bundles, finds, experiments and consoles may come from anybody. A terminal
//! obeys commands in their text: colours, titles, an order of letters that hides other letters. All output of onset
//! passes through this module.

use std::borrow::Cow;
use std::io::Write;

/// The text, with every character that commands a terminal written out, as `\u{1b}`. Line feeds and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c.escape_unicode().to_string())
}

/// The same for JSON, which stays JSON: control characters in its texts are escaped already, except those above ASCII.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    written_out(text, |c| format!("\\u{:04x}", u32::from(c)))
}

pub(crate) fn written_out(text: &str, how: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(tells_a_terminal) {
        return Cow::Borrowed(text);
    }
    let written = text.chars().map(|c| match tells_a_terminal(c) {
        true => how(c),
        false => c.into(),
    });
    Cow::Owned(written.collect())
}

/// Whether a character is a control character (Unicode's category Cc, also C1, which begin sequences of their own), or
/// changes the direction of text (Unicode Standard Annex 9).
fn tells_a_terminal(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || (c.is_control() && c != '\n' && c != '\t')
}

/// Prints a line to stderr. If stderr cannot be written, for example a log on a full disk, the work goes on without it.
pub fn tell_line(text: &str) {
    let line = format!("{}\n", visible(text));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// [`tell_line`] with a format.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::visible::tell_line(&format!($($text)*)) };
}
pub use tell;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out_and_all_else_stays() {
        assert_eq!(visible("μs · ä\tb\n"), "μs · ä\tb\n");
        assert_eq!(visible("a\u{1b}[2Jb\r\u{7}"), "a\\u{1b}[2Jb\\u{d}\\u{7}");
        assert_eq!(visible("\u{9b}31m\u{202e}x\u{7f}"), "\\u{9b}31m\\u{202e}x\\u{7f}");
    }

    #[test]
    fn json_says_the_same_as_before() {
        let foreign = "\u{9b}31m \u{1b} \u{2066}";
        let json = serde_json::to_string(foreign).unwrap();
        let shown = visible_json(&json);
        assert!(!shown.contains(tells_a_terminal), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), foreign);
    }
}
