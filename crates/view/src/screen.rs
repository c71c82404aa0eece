// SPDX-License-Identifier: GPL-2.0-or-later
//! The terminal behind stdout: how wide it is, whether it shows colours, and how text is made to fit. A file or a pipe
//! has no width. It gets colours only if the user asks for them.

use crate::visible::written_out;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// When onset colours its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set (no-color.org) or TERM is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The meaning of a text, which its colour shows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A limit was kept.
    Good,
    /// A limit was exceeded, or the worst figure.
    Bad,
    /// Undecided, or there is a warning.
    Doubt,
}

/// Characters that mark the begin and the end of a colour until the text is printed. They are noncharacters, which
/// Unicode reserves for use inside a program. They have no width.
const GOOD: char = '\u{fdd0}';
const BAD: char = '\u{fdd1}';
const DOUBT: char = '\u{fdd2}';
const END: char = '\u{fdd3}';

/// On a terminal that is narrower than this, onset does not make text fit.
const COLUMNS_MIN: usize = 40;

struct Screen {
    columns: Option<usize>,
    colours: bool,
}

static SCREEN: OnceLock<Screen> = OnceLock::new();

/// Looks at stdout once, before onset prints anything.
pub fn look(colour: Colour) {
    let is_terminal = std::io::stdout().is_terminal();
    let columns = is_terminal
        .then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .map(|columns| columns.max(COLUMNS_MIN));
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let colours = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal && !is_set("NO_COLOR") && !is_dumb
        }
    };
    let _ = SCREEN.set(Screen { columns, colours });
}

/// Columns of the terminal; none where text may have any width.
pub fn columns() -> Option<usize> {
    SCREEN.get().and_then(|screen| screen.columns)
}

/// The text in the colour of its tone, if colours are on.
pub fn toned(tone: Tone, text: &str) -> String {
    let begin = match tone {
        Tone::Good => GOOD,
        Tone::Bad => BAD,
        Tone::Doubt => DOUBT,
    };
    format!("{begin}{text}{END}")
}

/// How many columns the text takes.
pub fn width(text: &str) -> usize {
    text.chars().filter(|c| !is_mark(*c)).count()
}

fn is_mark(c: char) -> bool {
    (GOOD..=END).contains(&c)
}

/// The text as it goes to stdout: with foreign control characters written out, with colours or without, and with lines
/// broken to fit.
pub fn shown(text: &str) -> String {
    let screen = SCREEN.get();
    let colours = screen.is_some_and(|screen| screen.colours);
    render(text, screen.and_then(|screen| screen.columns), colours)
}

fn render(text: &str, columns: Option<usize>, colours: bool) -> String {
    let text = match columns {
        Some(columns) => text.split_inclusive('\n').map(|line| folded(line, columns)).collect(),
        None => text.to_owned(),
    };
    let mut rendered = String::new();
    // Most of the text has no marks.
    for part in text.split_inclusive(is_mark) {
        let mark = part.chars().next_back().filter(|c| is_mark(*c));
        let plain = mark.map_or(part, |mark| &part[..part.len() - mark.len_utf8()]);
        rendered += &written_out(plain, |c| c.escape_unicode().to_string());
        // Select Graphic Rendition of ECMA-48: green, red, yellow, and none.
        rendered += match mark {
            _ if !colours => "",
            Some(GOOD) => "\u{1b}[32m",
            Some(BAD) => "\u{1b}[1;31m",
            Some(DOUBT) => "\u{1b}[33m",
            Some(_) => "\u{1b}[0m",
            None => "",
        };
    }
    rendered
}

/// The line, broken between words. Further lines begin two columns to the right of the first. A number stays with its
/// unit, and a frame of a stack stays with the sign that the next frame calls it.
fn folded(line: &str, columns: usize) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if width(body) <= columns {
        return line.to_owned();
    }
    let indent = body.len() - body.trim_start_matches(' ').len();
    let further = " ".repeat((indent + 2).min(columns / 2));
    // A command stays one command for a user who copies it.
    let is_command = body[indent..].starts_with("onset ");
    let (columns, goes_on) = if is_command { (columns - 2, " \\\n") } else { (columns, "\n") };
    let mut folded = String::new();
    let mut room = columns;
    for (first, word) in words(&body[indent..]).into_iter().enumerate().map(|(n, w)| (n == 0, w)) {
        if first {
            folded += &" ".repeat(indent);
            room = room.saturating_sub(indent);
        } else if width(word.trim_end()) > room {
            folded.truncate(folded.trim_end_matches(' ').len());
            folded += goes_on;
            folded += &further;
            room = columns - further.len();
        }
        folded += word;
        room = room.saturating_sub(width(word));
    }
    folded.truncate(folded.trim_end_matches(' ').len());
    folded + end
}

/// The words, each with the spaces behind it and with the text that has to stay with it.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begin = 0;
    let mut is_quoted = false;
    let bytes = text.as_bytes();
    for at in 1..text.len() {
        // Text in quotation marks is one word, as for a shell.
        is_quoted ^= bytes[at - 1] == b'\'';
        if bytes[at - 1] != b' ' || bytes[at] == b' ' || is_quoted {
            continue;
        }
        let before = text[begin..at].trim_end_matches(' ');
        let apart = at - begin - before.len();
        let next = text[at..].split(' ').next().unwrap_or_default();
        let is_unit = ["ns", "µs", "ms", "s", "%", "MiB", "kB"]
            .contains(&next.trim_end_matches([',', ';', ')', '.', ':', '(']));
        let is_number = before.chars().next_back().is_some_and(|c| c.is_ascii_digit());
        if (apart == 1 && is_number && is_unit) || next == "<" {
            continue;
        }
        words.push(&text[begin..at]);
        begin = at;
    }
    words.push(&text[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_and_never_inside_a_number() {
        let line = "  task answered after 12.3 µs under mixed\n";
        assert_eq!(folded(line, 60), line);
        assert_eq!(folded(line, 25), "  task answered after\n    12.3 µs under mixed\n");
        for columns in 20..45 {
            let folded = folded(line, columns);
            assert!(folded.contains("12.3 µs"), "{folded}");
            assert!(folded.lines().all(|line| width(line) <= columns), "{columns}: {folded}");
            let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
            assert_eq!(words(&folded), words(line));
        }
    }

    #[test]
    fn a_stack_is_broken_behind_the_sign_of_a_call() {
        let folded = folded("first+0x1 < second+0x2 < third+0x3", 24);
        assert_eq!(folded, "first+0x1 < second+0x2 <\n  third+0x3");
    }

    #[test]
    fn a_broken_command_is_still_one() {
        let folded = folded("  onset replay here --trigger 17 --load 'a b'\n", 24);
        assert_eq!(folded, "  onset replay here \\\n    --trigger 17 \\\n    --load 'a b'\n");
    }

    #[test]
    fn colours_take_no_room_and_foreign_ones_stay_outside() {
        let text = format!("{} by \u{1b}[31m\n", toned(Tone::Bad, "FAIL"));
        assert_eq!(width(&text), "FAIL by ?[31m\n".len());
        assert_eq!(render(&text, None, false), "FAIL by \\u{1b}[31m\n");
        assert_eq!(render(&text, None, true), "\u{1b}[1;31mFAIL\u{1b}[0m by \\u{1b}[31m\n");
    }
}
