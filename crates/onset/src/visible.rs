// SPDX-License-Identifier: GPL-2.0-or-later
//! Foreign text on its way to a terminal. Bundles, finds, experiments and consoles may come from anybody, and a terminal obeys what
//! stands in them: colours, titles, an order of letters that hides others. All that onset prints passes here.

use std::borrow::Cow;
use std::io::Write;

/// The text with every character by which a terminal is told something written out, as `\u{1b}`; line feeds and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c.escape_unicode().to_string())
}

/// The same of JSON, which stays that: control characters are escaped in its texts already, but for those above ASCII.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    written_out(text, |c| format!("\\u{:04x}", u32::from(c)))
}

fn written_out(text: &str, how: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(tells_a_terminal) {
        return Cow::Borrowed(text);
    }
    let written = text.chars().map(|c| match tells_a_terminal(c) {
        true => how(c),
        false => c.into(),
    });
    Cow::Owned(written.collect())
}

/// Control characters (Unicode's category Cc, with C1, which begin sequences of their own), and those that change the direction
/// of text (Unicode Standard Annex 9).
fn tells_a_terminal(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || (c.is_control() && c != '\n' && c != '\t')
}

/// Prints a line to stderr. Where that cannot be written, as a log on a full disk, the work goes on unheard.
pub fn tell_line(text: &str) {
    let line = format!("{}\n", visible(text));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// [`tell_line`] of what is formatted.
macro_rules! tell {
    ($($text:tt)*) => { $crate::visible::tell_line(&format!($($text)*)) };
}
pub(crate) use tell;

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
