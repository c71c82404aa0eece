// SPDX-License-Identifier: GPL-2.0-or-later
//! Call stacks as lines of text.

use crate::screen;

/// Columns of a line, as in the other tables.
const WIDTH: usize = 110;
/// How many frames are shown, since most stacks have the same callers from there on. JSON has all frames.
const FRAMES: usize = 10;

/// Columns of a line on this terminal.
fn columns() -> usize {
    screen::columns().map_or(WIDTH, |columns| columns.min(WIDTH))
}

/// The frames from the innermost on, each called by the next one, in as few lines as possible, after `indent` spaces.
pub fn lines(stack: &[String], indent: usize) -> Vec<String> {
    let width = columns();
    let mut lines = Vec::new();
    let mut line = String::new();
    let shown = stack.iter().take(FRAMES).map(String::as_str);
    let more = (stack.len() > FRAMES).then_some("…");
    for frame in shown.chain(more) {
        let full = indent + line.chars().count() + " < ".len() + frame.chars().count() + " <".len()
            > width;
        if !line.is_empty() && full {
            lines.push(format!("{:indent$}{line} <", ""));
            line.clear();
        }
        if !line.is_empty() {
            line += " < ";
        }
        line += frame;
    }
    if !line.is_empty() {
        lines.push(format!("{:indent$}{line}", ""));
    }
    lines
}

/// The frames of `inside`, without the callers that the stack of the opener also has.
pub fn below<'a>(inside: &'a [String], opener: &[String]) -> &'a [String] {
    let callers = inside.iter().rev().zip(opener.iter().rev());
    let common = callers.take_while(|(inside, opener)| inside == opener).count();
    &inside[..inside.len() - common]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_broken_between_frames_and_cut_with_a_sign() {
        assert_eq!(lines(&[], 2), Vec::<String>::new());
        let short: Vec<String> = ["a+0x1", "b+0x2"].map(String::from).into();
        assert_eq!(lines(&short, 2), ["  a+0x1 < b+0x2"]);
        let long: Vec<String> = (0..12).map(|n| format!("{n:0>40}")).collect();
        let text = lines(&long, 4);
        assert_eq!(text.len(), 5, "{text:#?}");
        assert!(text.iter().all(|l| l.chars().count() <= WIDTH), "{text:#?}");
        assert!(text[3].ends_with("7 <") && text[4].ends_with("9 < …"), "{text:#?}");
    }
}
